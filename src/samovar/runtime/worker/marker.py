"""Marks inside a worker: the rows of a key partition are cut at them, and the state is kept between two cuts."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from samovar.positions import Position
from samovar.runtime.exchange.task import MARK_SHARE

__all__ = ["Marker"]


class Placed(Protocol):
    """Rows with positions."""

    def place(self, i: int) -> Position: ...


@dataclass
class Marker:
    """Cuts the rows of a bucket at the marks. A mark that would cost more than `share` of the time is skipped."""

    marks: Sequence[Position]
    share: float = MARK_SHARE
    passed: int = field(default=0, init=False)
    """How many marks the rows have reached."""
    written: Sequence[int] = field(default=(), init=False)
    """The numbers of marks at which the state was written: others were skipped."""

    def __post_init__(self) -> None:
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
        self.written = [*self.written, self.passed]
        self._since = time.perf_counter()
        self._cost = self._since - now
