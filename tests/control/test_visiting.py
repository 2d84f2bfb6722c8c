"""The door of a run: who comes in, and what strangers, nonsense and slow visitors do not harm."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.control.support import WAIT, is_closed

from samovar.control import door as door_module
from samovar.control.door import ADDRESS, FRAME_LIMIT, Door, Visit, read_address
from samovar.errors import ChannelProblem, CommandRefused, RecordingError, SamovarError

waiting = threading.Event()
"""Set while a command `wait` is being carried out."""
released = threading.Event()
"""Ends the command `wait`."""


def answer(command: str, arguments: dict[str, Any]) -> Any:
    if command == "wait":
        waiting.set()
        released.wait(WAIT)
    if command == "much":
        return bytes(FRAME_LIMIT + 1)
    if command == "refuse":
        raise CommandRefused("Not now.", state="paused", hint="Later.")
    if command == "fail":
        raise ZeroDivisionError("by zero")
    return [command, arguments]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    waiting.clear()
    released.clear()
    made = Door("r", answer, tmp_path)
    yield made
    released.set()
    made.close()


def test_a_visitor_with_the_address_is_answered_request_by_request(door: Door, tmp_path: Path) -> None:
    visit = Visit(*read_address(tmp_path))
    for number in range(3):
        assert visit.ask("pause", number=number) == ["pause", {"number": number}]


def test_it_listens_on_loopback_only(door: Door) -> None:
    assert door.address[0] == "127.0.0.1"


def test_a_wrong_secret_or_another_runs_name_is_not_let_in(door: Door) -> None:
    for run, secret in (("r", bytes(32)), ("other", door.secret), ("r", door.secret[:-1]), ("", b"")):
        with pytest.raises(ChannelProblem, match="did not let us in"):
            Visit(door.address, run, secret)


def test_nothing_is_carried_out_without_the_secret(door: Door) -> None:
    visit = Visit(door.address, "r", door.secret)
    for header in ("", "Basic x", "Basic \xff", "Bearer " + door.secret.hex()):
        visit._headers = {"Authorization": header}
        with pytest.raises(ChannelProblem):
            visit.ask("wait")
    assert not waiting.is_set()


def test_strangers_nonsense_and_huge_bodies_are_sent_away_and_others_are_served(door: Door) -> None:
    authorised = Visit(door.address, "r", door.secret)._headers["Authorization"]
    for data in (
        b"\xff" * 100 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
        *(
            f"POST / HTTP/1.1\r\nAuthorization: {authorised}\r\nContent-Length: {length}\r\n\r\n".encode()
            for length in (2 << 30, -1, "many")
        ),
    ):
        stranger = socket.create_connection(door.address, timeout=WAIT)
        stranger.sendall(data)
        assert is_closed(stranger), data
    assert Visit(door.address, "r", door.secret).ask("status") == ["status", {}]


def test_visitors_do_not_wait_for_each_other(door: Door) -> None:
    first, second = Visit(door.address, "r", door.secret), Visit(door.address, "r", door.secret)
    thread = threading.Thread(target=lambda: first.ask("wait"))
    thread.start()
    assert waiting.wait(WAIT)
    assert second.ask("status") == ["status", {}]
    released.set()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_an_error_of_the_run_is_raised_for_the_visitor(door: Door) -> None:
    visit = Visit(door.address, "r", door.secret)
    with pytest.raises(CommandRefused, match="Not now") as refused:
        visit.ask("refuse")
    assert refused.value.hint == "Later."
    with pytest.raises(SamovarError, match="by zero"):
        visit.ask("fail")
    assert visit.ask("status") == ["status", {}]


def test_a_reply_that_is_too_large_is_an_error_and_not_the_end(door: Door) -> None:
    visit = Visit(door.address, "r", door.secret)
    with pytest.raises(ChannelProblem, match="at most"):
        visit.ask("much")
    assert visit.ask("status") == ["status", {}]


def test_only_so_many_come_in_at_once_and_silent_ones_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "VISITORS", 2)
    monkeypatch.setattr(door_module._Handler, "timeout", 1.0)
    door = Door("r", answer, tmp_path)
    silent = [socket.create_connection(door.address, timeout=WAIT) for _ in range(2)]
    with pytest.raises(ChannelProblem):
        Visit(door.address, "r", door.secret)
    assert all(is_closed(sock) for sock in silent)
    assert Visit(door.address, "r", door.secret).ask("status") == ["status", {}]
    door.close()


def test_when_it_closes_the_address_is_gone_and_only_what_is_being_carried_out_is_answered(
    tmp_path: Path,
) -> None:
    door = Door("r", answer, tmp_path)
    address = read_address(tmp_path)
    assert (tmp_path / ADDRESS).stat().st_mode & 0o777 == 0o600
    waiting.clear()
    released.clear()
    visit = Visit(*address)
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(visit.ask("wait")))
    thread.start()
    assert waiting.wait(WAIT)
    door.close()
    with pytest.raises(ChannelProblem, match="has ended"):
        visit.ask("status")
    with pytest.raises(RecordingError, match="which does not"):
        read_address(tmp_path)
    with pytest.raises(ChannelProblem, match="found nobody"):
        Visit(*address)
    released.set()
    thread.join(WAIT)
    assert answers == [["wait", {}]]
