"""The door of a run: who comes in, and what strangers, nonsense and slow visitors do not harm."""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.control.support import WAIT, exactly, is_closed

from samovar.control.channel import CHALLENGE_BYTES
from samovar.control.door import ADDRESS, FRAME_LIMIT, Door, Reply, Request, Visit, read_address
from samovar.errors import ChannelProblem, RecordingError


def answer(request: Request) -> Reply:
    if request.do == "wait":
        held.wait(WAIT)
    if request.do == "much":
        return Reply(body=bytes(FRAME_LIMIT + 1))
    return Reply(body=pickle.dumps((request.do, pickle.loads(request.body))))


held = threading.Event()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    held.clear()
    made = Door("r", answer, tmp_path)
    yield made
    held.set()
    made.close()


def test_a_visitor_with_the_address_is_answered_request_by_request(door: Door, tmp_path: Path) -> None:
    visit = Visit(*read_address(tmp_path))
    for number in range(3):
        assert pickle.loads(visit.ask("pause", number=number).body) == ("pause", {"number": number})
    visit.close()


def test_a_wrong_secret_or_another_runs_name_is_not_let_in(door: Door) -> None:
    for run, secret in (("r", bytes(32)), ("other", door.secret)):
        with pytest.raises(ChannelProblem, match="did not let us in"):
            Visit(door.address, run, secret)


def test_strangers_and_broken_frames_are_sent_away_and_others_are_served(door: Door) -> None:
    stranger = socket.create_connection(door.address, timeout=WAIT)
    exactly(stranger, CHALLENGE_BYTES)
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
    assert is_closed(stranger)
    broken = Visit(door.address, "r", door.secret)
    broken._sock.sendall(struct.pack(">I", 2 << 30) + bytes(16))  # a length of 2 GB
    with pytest.raises(ChannelProblem):
        broken.ask("status")
    assert pickle.loads(Visit(door.address, "r", door.secret).ask("status").body) == ("status", {})


def test_visitors_do_not_wait_for_each_other(door: Door) -> None:
    first, second = Visit(door.address, "r", door.secret), Visit(door.address, "r", door.secret)
    waiting = threading.Thread(target=lambda: first.ask("wait"))
    waiting.start()
    assert second.ask("status").error is None
    held.set()
    waiting.join(WAIT)
    assert not waiting.is_alive()


def test_a_reply_that_is_too_large_is_an_error_and_not_the_end(door: Door) -> None:
    visit = Visit(door.address, "r", door.secret)
    error = visit.ask("much").error
    assert error is not None
    assert "at most" in str(error["message"])
    assert visit.ask("status").error is None


def test_only_so_many_come_in_at_once(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "VISITORS", 2)
    kept = [Visit(door.address, "r", door.secret) for _ in range(2)]
    with pytest.raises(ChannelProblem):
        Visit(door.address, "r", door.secret)
    assert all(v.ask("status").error is None for v in kept)


def test_when_it_closes_visitors_are_told_and_the_address_is_gone(tmp_path: Path) -> None:
    door = Door("r", answer, tmp_path)
    address = read_address(tmp_path)
    assert (tmp_path / ADDRESS).stat().st_mode & 0o777 == 0o600
    visit = Visit(*address)
    door.close()
    with pytest.raises(ChannelProblem, match=r"has ended|broke"):
        visit.ask("status")
    with pytest.raises(RecordingError, match="which does not"):
        read_address(tmp_path)
    with pytest.raises(ChannelProblem, match="found nobody"):
        Visit(*address)
