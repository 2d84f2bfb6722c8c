"""What people in other processes can ask of a run: the commands of `Run`, by name, over its door.

A visitor has shown the secret of the run, which only the user who started it can read. So an operator that it sends
for `modify` is unpickled: it is code that is to run. All else is plain data in both directions: values of other types
than MessagePack's are sent as text.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samovar.control.door import Door
from samovar.errors import CommandRefused, UnknownName
from samovar.runtime.live.modification import Modified
from samovar.runtime.live.statistics import Meter
from samovar.runtime.progress import GOING
from samovar.text import shown

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["RemoteCommands", "open_door", "plain_data"]

log = logging.getLogger("samovar.visitors")

WAITING = 4.0
"""Seconds that `wait` waits at most; a visitor that wants to wait longer asks again."""


def open_door(run: Run, folder: Path) -> Door | None:
    """A door to a run; None where there can be none."""
    try:
        return Door(run.id, RemoteCommands(run).answer, folder)
    except OSError as error:
        log.warning("run %s cannot be joined from other processes: %s", run.id, error)
        return None


class RemoteCommands:
    """Carries out the commands of visitors. For any thread."""

    def __init__(self, run: Run) -> None:
        self.run = run
        meter = Meter(run)
        self._commands: dict[str, Callable[..., Any]] = {
            "status": self._status,
            "wait": self._wait,
            "inspect": self._inspect,
            "in_flight": lambda operator, limit=10: asdict(run.in_flight(operator, limit=limit)),
            "held": lambda: {"held": [asdict(h) for h in run.holds]},
            "interact": lambda operator, note="": {"interaction": run.interact(operator, note)},
            "watch": lambda operator, condition: {"name": run.watch(operator, condition)},
            "break_at": lambda operator, **where: {"name": run.break_at(operator, **where)},
            "breakpoints": lambda: {"breakpoints": [asdict(b) for b in run.breakpoints], **self._reached()},
            "statistics": lambda: meter.read().as_dict(),
        }
        self._changes: dict[str, Callable[..., object]] = {
            "pause": run.pause,
            "resume": run.resume,
            "stop": run.stop,
            "retry": run.retry,
            "skip": run.skip,
            "modify": self._modify,
            "unwatch": run.unwatch,
        }
        """Commands that return the status of the run when they are carried out; `modify`: and what became of it."""

    def answer(self, command: str, arguments: dict[str, Any]) -> Any:
        """What a command returns, as plain data."""
        if command in self._changes:
            outcome = self._changes[command](**arguments)
            became = {} if outcome is None else {"modified": str(outcome)}
            return plain_data({**self._status(), **became})
        if command not in self._commands:
            raise UnknownName(command, [*self._commands, *self._changes], what="a command")
        return plain_data(self._commands[command](**arguments))

    def _status(self) -> dict[str, Any]:
        progress = self.run.progress
        return {
            "run": self.run.id,
            "status": self.run.status,
            "epoch": progress.epoch,
            "fraction": progress.fraction,
            "seconds": progress.seconds,
            "held": [{"operator": h.operator, "row": h.row, "error": h.error} for h in self.run.holds],
            **self._reached(),
        }

    def _reached(self) -> dict[str, Any]:
        return {"reached": [asdict(r) for r in self.run.reached]}

    def _wait(self, states: tuple[Any, ...] = ("paused", "holding")) -> dict[str, Any]:
        """Wait a while for a state; `waited` is False when it has not come."""
        try:
            now = self.run.wait_until(*states, timeout=WAITING)
        except TimeoutError:
            return {**self._status(), "waited": False}
        return {**self._status(), "waited": now in states or now not in GOING}

    def _inspect(self, operator: str) -> dict[str, Any]:
        seen = self.run.inspect(operator)
        return {
            "operator": operator,
            "epoch": seen.epoch,
            "consistent": seen.consistent,
            "state": seen.state,
            "note": seen.note,
            "parts": [{"bucket": p.bucket, "worker": p.worker, "tuples": p.tuples} for p in seen.parts],
        }

    def _modify(self, changes: Mapping[str, bytes]) -> Modified:
        if not changes:
            raise CommandRefused("Expected operators to modify, got none.", state=self.run.status)
        return self.run.modify({name: pickle.loads(code) for name, code in changes.items()})


def plain_data(value: Any) -> Any:
    """A value of MessagePack's types, so that a visitor needs no module of the user's."""
    if value is None or isinstance(value, bool | float | str | bytes):
        return value
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return value
    if isinstance(value, dict):
        return {plain_data(k): plain_data(v) for k, v in dict.items(value)}
    if isinstance(value, list):
        return [plain_data(v) for v in value]
    if isinstance(value, tuple | AbstractSet):  # may be a key
        return tuple(plain_data(v) for v in value)
    if isinstance(value, date | time | Decimal):
        return str(value)
    return shown(value, 500)
