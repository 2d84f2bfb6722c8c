"""What people in other processes can ask of a run: the commands of `Run`, by name, over its door.

A visitor has shown that it knows the secret of the run, which is that of the user who started it. Its arguments are
unpickled; an operator it brings for `modify` is code that runs. What it gets is plain data: values of other types than
Python's own are sent as text.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samovar.control.door import Door, Reply, Request
from samovar.errors import CommandRefused, SamovarError, UnknownName
from samovar.runtime.live.statistics import Meter
from samovar.runtime.progress import GOING

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["Visitors", "open_door", "simple"]

log = logging.getLogger("samovar.visitors")

_KNOWN = (type(None), bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta)
WAITING = 4.0
"""Seconds a visitor's question waits at most; who wants to wait longer asks again."""


def open_door(run: Run, folder: Path) -> Door | None:
    """A door to a run; None where there can be none."""
    try:
        return Door(run.id, Visitors(run).answer, folder)
    except OSError as error:
        log.warning("run %s cannot be joined from other processes: %s", run.id, error)
        return None


class Visitors:
    """Carries out what visitors ask for. For any thread."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._meter = Meter(run)
        self._does: dict[str, Callable[..., Any]] = {
            "status": self._status,
            "pause": lambda mode="direct": self._then(lambda: run.pause(mode=mode)),
            "resume": lambda: self._then(run.resume),
            "stop": lambda: self._then(run.stop),
            "wait": self._wait,
            "inspect": self._inspect,
            "in_flight": lambda operator, limit=10: asdict(run.in_flight(operator, limit=limit)),
            "held": lambda: {"held": [asdict(h) for h in run.holds]},
            "retry": lambda row=None, operator=None: self._then(lambda: run.retry(row, operator=operator)),
            "skip": lambda all_like_it=False, operator=None: self._then(
                lambda: run.skip(all_like_it=all_like_it, operator=operator)
            ),
            "modify": self._modify,
            "interact": lambda operator, note="": {"interaction": run.interact(operator, note)},
            "watch": lambda operator, condition: {"name": run.watch(operator, condition)},
            "break_at": lambda operator, **how: {"name": run.break_at(operator, **how)},
            "unwatch": lambda name: self._then(lambda: run.unwatch(name)),
            "breakpoints": self._breakpoints,
            "statistics": lambda: self._meter.read().as_dict(),
        }

    def answer(self, request: Request) -> Reply:
        """Carry a request out."""
        try:
            if request.do not in self._does:
                raise UnknownName(request.do, self._does, what="a command")
            arguments = pickle.loads(request.body) if request.body else {}
            return Reply(body=pickle.dumps(simple(self._does[request.do](**arguments))))
        except SamovarError as error:
            told = {"type": type(error).__name__, "message": error.text, "hint": error.hint}
            return Reply(error={**told, "operator": getattr(error, "operator", None)})
        except Exception as error:
            log.debug("a visitor's request failed", exc_info=True)
            return Reply(error={"type": type(error).__name__, "message": str(error), "hint": None})

    def _status(self) -> dict[str, Any]:
        run = self.run
        progress = run.progress
        return {
            "run": run.id,
            "status": run.status,
            "epoch": progress.epoch,
            "fraction": progress.fraction,
            "seconds": progress.seconds,
            "held": [{"operator": h.operator, "row": h.row, "error": h.error} for h in run.holds],
            "reached": [asdict(r) for r in run.reached],
        }

    def _then(self, do: Callable[[], object]) -> dict[str, Any]:
        do()
        return self._status()

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

    def _modify(self, changes: Mapping[str, bytes], **how: Any) -> dict[str, Any]:
        if not changes:
            raise CommandRefused("Expected operators to modify, got none.", state=self.run.status)
        made = {name: pickle.loads(body) for name, body in changes.items()}
        return self._then(lambda: self.run.modify(made, **how))

    def _breakpoints(self) -> dict[str, Any]:
        run = self.run
        return {
            "breakpoints": [asdict(b) for b in run.breakpoints],
            "reached": [asdict(r) for r in run.reached],
        }


def simple(value: Any) -> Any:
    """A value as Python's own types, so that whoever gets it needs no module of the user's."""
    if type(value) in _KNOWN:
        return value
    if isinstance(value, Mapping):
        return {simple(k): simple(v) for k, v in dict.items(value)} if isinstance(value, dict) else str(value)
    if isinstance(value, list):
        return [simple(v) for v in list.__iter__(value)]
    if isinstance(value, tuple):
        return tuple(simple(v) for v in value)
    if isinstance(value, AbstractSet):
        return frozenset(simple(v) for v in value)
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:499]}…"
