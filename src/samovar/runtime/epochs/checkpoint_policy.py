"""Marks: places inside an epoch where the state of Python operators is kept, so that a jump need not start before.

A mark is a leaf position. When an operator's next tuple lies at or behind it, the operator's changes since the mark
before are written. All operators of a level have the same marks, so that what all of them wrote at one is a consistent
cut. How many an epoch gets follows from tau: a jump costs `JUMP` seconds and the work since the mark before. Pure.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

__all__ = ["JUMP", "SHARE", "Marker", "Policy", "mark_count", "mark_positions"]

Policy = Literal["tau", "every", "none"]
"""When marks are made: so that a jump takes at most tau seconds; every `EVERY` tuples; never."""

JUMP = 1.5
"""Seconds a jump takes besides computing what lies between the mark and the moment."""
EVERY = 1000
"""Tuples between marks, for the policy `every`."""
SHARE = 0.02
"""Of a run's time, what keeping the state may take."""
MOST = 256
"""Marks in an epoch at most."""

Position = tuple[int, ...]
Stretch = tuple[int, int, int]
"""Source, first place, rows: tuples that lie one after another."""


def mark_count(policy: Policy, tau: float, rows: int, seconds: float) -> int:
    """How many marks an epoch of so many tuples gets that will take so many seconds."""
    if policy == "none":
        return 0
    if policy == "every":
        return min(rows // EVERY, MOST)
    spacing = max(tau - JUMP, tau / 4, 0.05)
    return min(max(0, round(seconds / spacing) - 1), rows // EVERY, MOST)


def mark_positions(stretches: Sequence[Stretch], count: int) -> tuple[Position, ...]:
    """That many positions, with about as many tuples between each two of them."""
    rows = sum(n for _, _, n in stretches)
    made: list[Position] = []
    before = 0
    for source, first, own in stretches:
        while len(made) < count and (at := rows * (len(made) + 1) // (count + 1)) < before + own:
            made.append((source, first + at - before))
        before += own
    return tuple(made)


class Placed(Protocol):
    """Rows that know where they lie."""

    def place(self, i: int) -> Position: ...


class Marker:
    """Cuts the rows of a bucket at the marks. One that would cost more than `share` of the time is left out."""

    def __init__(
        self, marks: Sequence[Position], share: float = SHARE, passed: int = 0, written: Sequence[int] = ()
    ) -> None:
        self.marks = marks
        self.share = share
        self.passed = passed
        """How many marks the rows have reached."""
        self.written: list[int] = list(written)
        self._cost = 0.0
        self._since = time.perf_counter()

    def cut(
        self, view: Placed, start: int, stop: int, write: Callable[[int], None]
    ) -> Iterator[tuple[int, int]]:
        """Stretches of rows to process one after the other; `write` is called between them with the mark's number."""
        while self.passed < len(self.marks) and start < stop:
            mark = self.marks[self.passed]
            at = bisect_left(range(start, stop), mark, key=lambda i: view.place(i)[: len(mark)]) + start
            if at == stop:
                break
            if at > start:
                yield start, at
                start = at
            self.passed += 1
            self._write(write)
        if start < stop:
            yield start, stop

    def _write(self, write: Callable[[int], None]) -> None:
        now = time.perf_counter()
        if self._cost > self.share * (now - self._since):
            return
        write(self.passed)
        self.written.append(self.passed)
        self._since = time.perf_counter()
        self._cost = self._since - now
