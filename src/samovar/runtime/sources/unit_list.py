"""The units of a source, derived from its spans: files, chunks of files, or ranges of rows in Parquet files.

A *span* is a file, or rows of one that lie one after another. Where a source has a *grain*, each of its spans is cut
into units of that many rows, the last one of what is left; without one, each span is a unit. Units are numbered span
after span. So a source of 20,000 units is stored as a few files and a number, and a unit is found by bisection.

In its file every span begins at a multiple of the grain: the number of a row's unit follows from the row's. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise

import msgspec

from samovar.positions import RowRange, pack

__all__ = ["Unit", "UnitList", "grain_of"]

SMALLEST_GRAIN = 64
"""Rows of a unit at least: an epoch costs some tenths of a second, in which a slow operator does as many tuples."""
MOST_UNITS = 20_000
"""Units of a source at most, about: marks, windows and chunks of leaf tuples are counted unit by unit."""


class Unit(msgspec.Struct, frozen=True, array_like=True):
    """A file, or a chunk cut from the file `origin` that starts at its row or line `start`; or `rows` rows of it."""

    path: str
    size: int
    """Bytes of the whole file."""
    mtime: float
    rows: int | None = None
    origin: str | None = None
    start: int = 0
    first: int = 0
    """The unit's first row in the file `path`."""
    file_rows: int | None = None
    """Rows of the whole file, where the unit has only some of them."""

    @property
    def share(self) -> int:
        """Bytes of the unit: those of its file in proportion. Units that make up a file add up to its size."""
        return self.share_up_to(self.rows or 0) if self.file_rows else self.size

    def share_up_to(self, rows: int) -> int:
        """Bytes of the unit's first rows."""
        whole = self.file_rows or self.rows
        if not whole:
            return self.size
        return self.size * (self.first + rows) // whole - self.size * self.first // whole

    def part(self, start: int, stop: int) -> Unit:
        """Some rows of a unit whose rows are counted."""
        if start == 0 and stop == self.rows:
            return self
        return msgspec.structs.replace(
            self, rows=stop - start, first=self.first + start, file_rows=self.file_rows or self.rows
        )


def grain_of(spans: Sequence[Unit]) -> int:
    """Rows a unit, for a source whose files' rows are counted; 0: no file has more rows than a unit at least has."""
    rows = [span.rows or 0 for span in spans]
    grain = max(SMALLEST_GRAIN, -(-sum(rows) // MOST_UNITS))
    return grain if max(rows, default=0) > grain else 0


class UnitList:
    """The units of a source by their number. Looking one up costs a bisection of the spans."""

    def __init__(self, spans: Sequence[Unit], grain: int) -> None:
        self.spans = spans
        self.grain = grain
        counts = (max(1, -(-(span.rows or 0) // grain)) if grain else 1 for span in spans)
        self.edges = [0, *accumulate(counts)]
        """The number of each span's first unit, and of units in all: where files end."""

    def __len__(self) -> int:
        return self.edges[-1]

    def __getitem__(self, number: int) -> Unit:
        if not 0 <= number < len(self):
            raise IndexError(f"Expected a unit below {len(self)}, got {number}")
        return self.spans_of(range(number, number + 1))[0][1]

    @cached_property
    def ends(self) -> list[int]:
        """The bytes before each unit, and before the end. Costs a step for each unit, the first time."""
        sizes = chain.from_iterable(self._sizes(i) for i in range(len(self.spans)))
        return [0, *accumulate(sizes)]

    def _sizes(self, i: int) -> list[int]:
        span, count = self.spans[i], self.edges[i + 1] - self.edges[i]
        if count == 1:
            return [span.share]
        bounds = [span.share_up_to(min(n * self.grain, span.rows or 0)) for n in range(count + 1)]
        return [high - low for low, high in pairwise(bounds)]

    def spans_of(self, units: range) -> list[tuple[int, Unit]]:
        """What some units consist of, file by file: the number of the first of them in a file, and all their rows."""
        spans = []
        i, number = bisect_right(self.edges, units.start) - 1, units.start
        while number < units.stop:
            span, first = self.spans[i], self.edges[i]
            i += 1
            stop = min(units.stop, self.edges[i])
            if (number, stop) != (first, self.edges[i]):
                rows = span.rows or 0
                low, high = (n - first for n in (number, stop))
                span = span.part(low * self.grain, min(high * self.grain, rows))
            spans.append((number, span))
            number = stop
        return spans

    def ranges_of(self, units: range, source: int) -> list[RowRange] | None:
        """The rows of each of some units as places; None where the rows of a file are not counted."""
        ranges: list[RowRange] = []
        for number, span in self.spans_of(units):
            if span.rows is None:
                return None
            step = self.grain or max(span.rows, 1)
            # a file without rows is a unit too
            for low in range(0, max(span.rows, 1), step):
                place = pack(number + low // step, 0)
                ranges.append((source, place, min(step, span.rows - low)))
        return ranges

    def places(self, number: int, rows: range) -> list[int]:
        """The places of rows of a span whose first unit has that number."""
        if not self.grain:
            return [pack(number, row) for row in rows]
        return [pack(number + row // self.grain, row % self.grain) for row in rows]

    def split(self, number: int, parts: Sequence[Unit]) -> tuple[Unit, ...]:
        """The spans of a list in which some files, a unit each, take the place of a unit."""
        i = bisect_right(self.edges, number) - 1
        first, behind = self.edges[i], self.edges[i + 1]
        before = [span for _, span in self.spans_of(range(first, number))]
        after = [span for _, span in self.spans_of(range(number + 1, behind))]
        return (*self.spans[:i], *before, *parts, *after, *self.spans[i + 1 :])
