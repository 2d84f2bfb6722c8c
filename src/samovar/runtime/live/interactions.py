"""Interactions of a running job: who asked, when, and which moment that was.

A request costs the run nothing: it is noted with its time and, where workers count, with how many tuples the operator
had taken by then, as they told last (twice a second). When the epoch it fell into is committed, that number is the
interaction's moment. For operators that Spark runs by itself, and for a timer, which asks at regular times, the share
of the epoch's time that had passed stands for the share of its tuples.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from samovar.record.log import Counters, EpochCommitted, Interaction

__all__ = ["Interactions"]

TICKS = 100_000
"""Interactions a timer makes at most in one epoch."""


@dataclass(frozen=True)
class _Asked:
    id: str
    at: float
    operator: str
    note: str
    by: str = "person"
    tuples: int | None = None
    """How many tuples of the run the operator had taken, as its workers told; None: nobody told."""


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
        """Note a request; returns its name. `tuples`: how many the operator had taken, if that is known."""
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
    """How many tuples the operator had taken: as workers told, or by the share of the epoch's time that had passed."""
    own = fact.counters.get(asked.operator, Counters())
    if asked.tuples is not None:  # an attempt that was given up may have come farther than the epoch
        return min(max(asked.tuples, sum(before.taken)), sum(before.taken) + sum(own.taken))
    passed = 1.0 if fact.seconds <= 0 else 1 - (fact.at - asked.at) / fact.seconds
    return sum(before.taken) + round(min(max(passed, 0.0), 1.0) * sum(own.taken))
