"""The coordinator under peers of every kind: whatever one of them does, the others are served."""

from __future__ import annotations

import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.control.support import WAIT, Heard, client, coordinator, exactly, is_closed, raw, shaken

from samovar.control import messages as m
from samovar.control.channel import CHALLENGE_BYTES, PROOF_BYTES, Wire, new_secret, prove
from samovar.control.coordinator import STRANGERS, Coordinator
from samovar.errors import EnvironmentProblem


def is_served(made: Coordinator, heard: Heard) -> bool:
    """Whether a newcomer is heard and answered."""
    with client(made) as one:
        assert one.wait_connected(WAIT)
        while heard.next(m.Hello)[0] != one.worker:
            pass
        assert made.send(one.worker, m.PauseOrder(order=7))
        assert one.wait(WAIT)
        return one.take() == [m.PauseOrder(order=7)]


def test_a_worker_presents_itself_and_is_heard() -> None:
    with coordinator() as (made, heard), client(made) as one:
        worker, hello = heard.next(m.Hello)
        assert (worker, hello.pid) == (one.worker, os.getpid())
        one.send(m.TaskEnded(task="t"))
        assert heard.next(m.TaskEnded)[1].task == "t"
        assert made.workers == [one.worker]


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    with coordinator() as (made, _):
        assert made.address[0] == "127.0.0.1"


def test_an_address_that_is_taken_is_named() -> None:
    with coordinator() as (made, heard):
        host, port = made.address
        with pytest.raises(EnvironmentProblem, match=f"{host}:{port}"):
            Coordinator("other", lambda *_: None, lambda *_: None, port=port)
        assert is_served(made, heard)


def test_a_wrong_secret_is_refused_and_the_client_says_so() -> None:
    with (
        coordinator() as (made, heard),
        client(made, secret=new_secret(), back_off=(0.001, 0.01)) as stranger,
    ):
        with pytest.raises(Exception, match="does not know this run or its secret"):
            stranger.wait(WAIT)
        assert heard.messages.empty()
        assert is_served(made, heard)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4,
        bytes(PROOF_BYTES),
        struct.pack(">I", 1 << 31) + bytes(PROOF_BYTES),
        os.urandom(4096),
    ],
    ids=["http", "zeros", "2 GB", "random"],
)
def test_garbage_instead_of_a_handshake_is_dropped(garbage: bytes) -> None:
    with coordinator() as (made, heard):
        with raw(made) as peer:
            peer.sendall(garbage)
            assert is_closed(peer)
        assert is_served(made, heard)


@pytest.mark.parametrize(
    "frame",
    [struct.pack(">I", 1 << 31), struct.pack(">I", 5) + bytes(21), b"\xff" * 64],
    ids=["2 GB", "wrong tag", "ones"],
)
def test_garbage_after_the_handshake_is_dropped(frame: bytes) -> None:
    with coordinator() as (made, heard):
        sock, _ = shaken(made)
        with sock:
            sock.sendall(frame)
            assert is_closed(sock)
        assert is_served(made, heard)


def test_a_message_before_hello_is_dropped() -> None:
    with coordinator() as (made, heard):
        sock, wire = shaken(made)
        with sock:
            sock.sendall(wire.seal(m.Bye()))
            assert is_closed(sock)
        assert is_served(made, heard)


def test_a_recorded_handshake_is_of_no_use() -> None:
    with coordinator() as (made, heard):
        with raw(made) as first:
            proof, _, _ = prove(exactly(first, CHALLENGE_BYTES), made.secret, made.run)
            first.sendall(proof)
            exactly(first, 32)
        with raw(made) as second:
            exactly(second, CHALLENGE_BYTES)
            second.sendall(proof)
            assert is_closed(second)
        assert is_served(made, heard)


def test_a_connection_that_breaks_in_the_middle_of_a_frame_is_told_as_lost() -> None:
    with coordinator() as (made, heard):
        sock, wire = shaken(made)
        sock.sendall(wire.seal(m.Hello(worker="w", pid=1)))
        heard.next(m.Hello)
        frame = wire.seal(m.StateGiven(request="c", operator="X", body=bytes(10_000)))
        sock.sendall(frame[:5_000])
        sock.close()
        assert heard.lost.get(timeout=WAIT)[0] == "w"
        assert is_served(made, heard)


def test_a_handshake_that_takes_too_long_is_dropped() -> None:
    with coordinator(handshake_seconds=0.2) as (made, heard):
        with raw(made) as silent, raw(made) as slow:
            slow.sendall(b"S")
            assert is_closed(silent)
            assert is_closed(slow)
        assert is_served(made, heard)


def test_a_worker_that_falls_silent_is_told_as_lost_also_if_it_drips_bytes() -> None:
    with coordinator(silence_seconds=0.3) as (made, heard):
        sock, wire = shaken(made)
        with sock:
            sock.sendall(wire.seal(m.Hello(worker="w", pid=1)))
            heard.next(m.Hello)
            frame = wire.seal(m.StateGiven(request="c", operator="X", body=bytes(100)))
            for byte in frame[:20]:
                sock.sendall(bytes([byte]))
            worker, why = heard.lost.get(timeout=WAIT)
            assert (worker, "was silent" in why) == ("w", True)


def test_a_peer_that_does_not_read_is_dropped_and_delays_nobody() -> None:
    with coordinator(queue_bound=1 << 20) as (made, heard):
        sock, wire = shaken(made)
        with sock:
            sock.sendall(wire.seal(m.Hello(worker="deaf", pid=1)))
            heard.next(m.Hello)
            big = m.SwitchOrder(version=1, codes={"X": m.CodeVersion(1, bytes(1 << 19))})
            while made.send(
                "deaf", big
            ):  # returns at once each time: the queue is bounded, the kernel's buffers are
                pass
            assert heard.lost.get(timeout=WAIT)[0] == "deaf"
        assert is_served(made, heard)


def test_a_large_message_comes_whole() -> None:
    with coordinator() as (made, heard), client(made) as one:
        heard.next(m.Hello)
        body = os.urandom(20 << 20)
        one.send(m.StateGiven(request="c", operator="X", body=body))
        assert heard.next(m.StateGiven)[1].body == body
        made.send(one.worker, m.SwitchOrder(version=1, codes={"X": m.CodeVersion(1, body)}))
        assert one.wait(WAIT)
        (got,) = one.take()
        assert isinstance(got, m.SwitchOrder)
        assert got.codes["X"].body == body


def test_two_hundred_connect_at_once_and_all_are_served() -> None:
    def visit(number: int, made: Coordinator) -> tuple[socket.socket, Wire[m.ToWorker]]:
        sock, wire = shaken(made)
        sock.sendall(wire.seal(m.Hello(worker=f"w{number}", pid=number)))
        return sock, wire

    with coordinator(handshake_seconds=30) as (made, heard), ThreadPoolExecutor(50) as pool:
        visitors = list(pool.map(lambda n: visit(n, made), range(200)))
        assert {heard.next(m.Hello)[0] for _ in range(200)} == {f"w{n}" for n in range(200)}
        for number, (sock, wire) in enumerate(visitors):
            made.send(f"w{number}", m.PauseOrder(order=number))
            got: list[m.ToWorker] = []
            while not got:
                got = wire.open(sock.recv(1 << 16))
            assert got == [m.PauseOrder(order=number)]
            sock.close()


def test_more_strangers_than_it_bears_cost_the_oldest_their_place() -> None:
    with coordinator(handshake_seconds=60) as (made, heard):
        strangers = [raw(made) for _ in range(STRANGERS + 1)]
        assert is_closed(strangers[0])
        assert is_served(made, heard)
        for sock in strangers:
            sock.close()


def test_a_worker_that_connects_anew_takes_the_place_of_its_old_connection() -> None:
    with coordinator() as (made, heard):
        old, wire = shaken(made)
        old.sendall(wire.seal(m.Hello(worker="w", pid=1)))
        heard.next(m.Hello)
        new, wire = shaken(made)
        new.sendall(wire.seal(m.Hello(worker="w", pid=1)))
        heard.next(m.Hello)
        assert is_closed(old)
        assert heard.lost.empty()
        made.send("w", m.PauseOrder(order=1))
        assert wire.open(new.recv(1 << 16)) == [m.PauseOrder(order=1)]
        for sock in (old, new):
            sock.close()
