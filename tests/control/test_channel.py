"""The bytes on the wire: what is sealed comes out as it was, and nothing else is let in."""

from __future__ import annotations

from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from samovar.control import messages as m
from samovar.control.channel import PROOF_BYTES, Challenge, Wire, new_secret, prove, verify_answer
from samovar.errors import ChannelProblem

SECRET = new_secret()


def ends(limit: int = m.FRAME_LIMIT) -> tuple[Wire[m.FromWorker], Wire[m.ToWorker]]:
    """Both ends after a handshake."""
    challenge = Challenge()
    proof, nonce_c, nonce_w = prove(challenge.bytes, SECRET, "run")
    answer, nonce = challenge.check(proof, SECRET, "run")
    return challenge.wire(nonce, SECRET, "run", limit), verify_answer(
        answer, SECRET, "run", nonce_c, nonce_w, limit
    )


EVERYTHING: list[m.Message] = [
    m.Hello(
        worker="w",
        pid=1,
        task=m.TaskBegun(task="t", run="r", epoch=1, attempt="a", operators=("X",)),
        stopped=3,
    ),
    m.TaskProgress(task="t", at=1.5, operators={"X": m.Figures(1, 2, 0.5, 3, 4, 5)}),
    m.Stopped(order=1, place=m.TuplePlace("X", 1, 2, 0, 9)),
    m.StateGiven(request="c1", operator="X", body=bytes(range(256))),
    m.Held(
        hold="h",
        place=m.TuplePlace("X", 0),
        error="E",
        like="E:1",
        row=b"\x80\x04",
        frames=(m.TracebackFrame("f.py", 3, "process", "x = 1/0", {"x": "1"}),),
        state="{}",
    ),
    m.Switched(version=2, switches=(m.SwitchPoint(2, m.TuplePlace("X", 0)),)),
    m.Alive(),
    m.Bye(why="done"),
]
ORDERS: list[m.Message] = [
    m.Orders(
        task="t",
        stop=4,
        codes={"X": (m.CodeVersion(1, b"c", b"t"),)},
        skip_all=(m.SkipAllDecision(operator="X", like="E:1"),),
        decisions=(m.TupleDecision(m.TuplePlace("X", 0), "edit", b"r"),),
    ),
    m.PauseOrder(order=1),
    m.SwitchOrder(version=3, codes={"X": m.CodeVersion(3, b"c")}),
    m.Decision(hold="h", kind="edit", row=b"r"),
    m.Abandon(task="t", why="stopped"),
]


def test_messages_come_out_as_they_went_in() -> None:
    coordinator, worker = ends()
    assert coordinator.open(b"".join(worker.seal(x) for x in EVERYTHING)) == EVERYTHING
    assert worker.open(b"".join(coordinator.seal(x) for x in ORDERS)) == ORDERS


@given(cuts=st.lists(st.integers(1, 40), min_size=1))
@settings(max_examples=50, deadline=None)
def test_frames_may_come_in_any_pieces(cuts: list[int]) -> None:
    coordinator, worker = ends()
    data = b"".join(worker.seal(x) for x in EVERYTHING)
    got: list[m.FromWorker] = []
    at = turn = 0
    while at < len(data):
        size = cuts[turn % len(cuts)]
        got += coordinator.open(data[at : at + size])
        at, turn = at + size, turn + 1
    assert got == EVERYTHING
    assert not coordinator._buffer


@given(data=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_garbage_is_never_a_message(data: bytes) -> None:
    coordinator, _ = ends()
    with suppress(ChannelProblem):
        assert coordinator.open(data) == []  # a frame that has not come whole, maybe


@given(at=st.integers(0, 59), flip=st.integers(1, 255))
@settings(max_examples=100, deadline=None)
def test_a_changed_byte_is_noticed(at: int, flip: int) -> None:
    coordinator, worker = ends()
    frame = bytearray(worker.seal(m.TaskEnded(task="t" * 40)))
    frame[at] ^= flip
    with suppress(ChannelProblem):
        assert coordinator.open(bytes(frame)) == []  # the length says that more is to come


def test_a_frame_cannot_be_repeated_left_out_or_sent_back() -> None:
    coordinator, worker = ends()
    first, second = worker.seal(m.WentOn(order=1)), worker.seal(m.WentOn(order=2))
    with pytest.raises(ChannelProblem, match="tag"):
        ends()[0].open(first)  # another connection
    with pytest.raises(ChannelProblem, match="tag"):
        worker.open(first)  # the other direction
    with pytest.raises(ChannelProblem, match="tag"):
        coordinator.open(second)  # the first one left out
    coordinator, worker = ends()
    first = worker.seal(m.WentOn(order=1))
    coordinator.open(first)
    with pytest.raises(ChannelProblem, match="tag"):
        coordinator.open(first)


def test_a_length_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(ChannelProblem, match=r"at most 67,108,864 bytes, got one of 2,147,483,648"):
        ends()[0].open((1 << 31).to_bytes(4, "big"))


def test_a_message_beyond_the_limit_is_not_sent() -> None:
    _, worker = ends(limit=1000)
    with pytest.raises(ChannelProblem, match="at most 1,000 bytes"):
        worker.seal(m.StateGiven(request="c", operator="X", body=bytes(2000)))
    worker.seal(m.Alive())


def test_a_worker_cannot_say_what_only_the_coordinator_may() -> None:
    coordinator, worker = ends()
    with pytest.raises(ChannelProblem, match="protocol"):
        coordinator.open(worker.seal(m.PauseOrder(order=1)))


def test_another_version_of_the_protocol_is_refused_by_name() -> None:
    other = bytearray(Challenge().bytes)
    other[4] = 9
    with pytest.raises(ChannelProblem, match="Expected protocol 1, got 9"):
        prove(bytes(other), SECRET, "run")


@pytest.mark.parametrize("wrong", ["secret", "run", "replay", "garbage"])
def test_a_wrong_proof_is_refused(wrong: str) -> None:
    challenge = Challenge()
    secret = new_secret() if wrong == "secret" else SECRET
    asked = Challenge() if wrong == "replay" else challenge
    proof, _, _ = prove(asked.bytes, secret, "other" if wrong == "run" else "run")
    if wrong == "garbage":
        proof = bytes(PROOF_BYTES)
    with pytest.raises(ChannelProblem):
        challenge.check(proof, SECRET, "run")


def test_a_coordinator_without_the_secret_is_found_out() -> None:
    challenge = Challenge()
    _, nonce_c, nonce_w = prove(challenge.bytes, SECRET, "run")
    with pytest.raises(ChannelProblem, match="does not know"):
        verify_answer(bytes(32), SECRET, "run", nonce_c, nonce_w)
