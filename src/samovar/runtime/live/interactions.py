"""Interactions of a running job: who asked, when, and which moment that was.

A request costs the run nothing: it is noted with its time and, for a Python operator, with the number of tuples that
the operator had taken, as its workers reported last (twice a second, and when they stop). When the epoch of the request
is committed, that number is the interaction's moment. For operators that Spark runs, which report nothing, and for a
timer, whose moments are spread evenly, the share of the epoch's time that had passed stands for the share of its
tuples.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from samovar.record.log import Counters, EpochCommitted, Interaction

__all__ = ["Interactions"]

TICKS = 100_000
"""Interactions of a timer in one epoch at most: a short timer over a long epoch must not fill the log."""


@dataclass(frozen=True)
class _Asked:
    id: str
    at: float
    operator: str
    note: str
    by: str = "person"
    tuples: int | None = None
    """Tuples of the run that the operator had taken, as its workers reported; None: it has no workers that report."""


@dataclass
class _Timer:
    operator: str
    every: float
    next: float
    note: str


class Interactions:
    """What was asked and is not yet placed in the run. For any thread."""

    def __init__(self, count: int = 0) -> None:
        self._count = count
        self._asked: list[_Asked] = []
        self._timers: list[_Timer] = []
        self._lock = threading.Lock()

    def new_id(self) -> str:
        """The next interaction's name."""
        with self._lock:
            self._count += 1
            return f"I{self._count}"

    def ask(
        self, operator: str, note: str = "", *, at: float | None = None, tuples: int | None = None
    ) -> str:
        """Note a request; returns its name. `tuples`: the number that the operator had taken, if that is known."""
        request = _Asked(self.new_id(), time.time() if at is None else at, operator, note, tuples=tuples)
        with self._lock:
            self._asked.append(request)
        return request.id

    def every(self, operator: str, seconds: float, note: str = "") -> None:
        """Ask at regular times from now on."""
        with self._lock:
            self._timers.append(_Timer(operator, seconds, time.time() + seconds, note))

    def placed(
        self, fact: EpochCommitted, totals: Callable[[], Mapping[str, Counters]], *, end: bool = False
    ) -> tuple[Interaction, ...]:
        """The interactions that fell into an epoch, with their moments. `end`: all that are left.

        `totals` gives the counters of the epochs before, which are added up only when there is something to place.
        """
        self._tick(fact.at)
        with self._lock:
            here = [a for a in self._asked if end or a.at <= fact.at]
            self._asked = [a for a in self._asked if a not in here]
        if not here:
            return ()
        before = totals()
        return tuple(
            Interaction(
                id=asked.id,
                at=asked.at,
                operator=asked.operator,
                epoch=fact.epoch,
                tuples=_tuples(asked, fact, before.get(asked.operator, Counters())),
                note=asked.note,
                by=asked.by,
            )
            for asked in here
        )

    def _tick(self, until: float) -> None:
        for timer in self._timers:
            ticks = 0
            while timer.next <= until and ticks < TICKS:
                name = self.new_id()
                with self._lock:
                    self._asked.append(_Asked(name, timer.next, timer.operator, timer.note, "timer"))
                timer.next += timer.every
                ticks += 1


def _tuples(asked: _Asked, fact: EpochCommitted, before: Counters) -> int:
    """The tuples that the operator had taken: as reported, or by the share of the epoch's time that had passed."""
    first = sum(before.taken)
    taken = sum(fact.counters.get(asked.operator, Counters()).taken)
    if (
        asked.tuples is not None
    ):  # a task that Spark started twice, or an attempt that was given up, counts as well
        return min(max(asked.tuples, first), first + taken)
    passed = 1.0 if fact.seconds <= 0 else 1 - (fact.at - asked.at) / fact.seconds
    return first + round(min(max(passed, 0.0), 1.0) * taken)
