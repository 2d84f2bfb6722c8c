"""Where the leaf tuples of a segment lie: by arithmetic where the rows of each file are counted, else by a Spark job.

Windows begin and end at edges of chunks: ranges of positions of the same size. So the number of tuples that operators
produced before any window is a sum over chunks (see leaf_counts.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from samovar.compile.plan import Plan
from samovar.positions import ROW_BITS, Position, RowRange, chunk_of, chunk_start
from samovar.replay.trace.segments import Segment, edges_of, leaves_of
from samovar.runtime.sources.units import Source, row_ranges

__all__ = ["Leaves"]

Looked = Callable[[Segment, Position | None, int | None], list[Position]]
"""Finds leaf positions of a segment by a Spark job: from a position on, up to a number of them (None: all)."""
Mended = Callable[[Segment], Collection[str]]
"""Operators whose input lost rows in a segment."""

MOST_CHUNKS = 15
"""A segment has at most two to this power of chunks: their counts fit into memory, and one job counts them all."""


@dataclass(eq=False)
class Leaves:
    """The positions of the leaf tuples of a recording."""

    smallest = 7
    """Chunks have at least two to this power of places: smaller chunks than windows would only be more to count."""

    plan: Plan
    sources: Mapping[str, Source]
    look: Looked
    mended: Mended
    _runs: dict[Segment, list[RowRange] | None] = field(default_factory=dict, init=False)
    _sums: dict[Segment, list[int]] = field(default_factory=dict, init=False)
    """The leaf tuples before each run, and before the end: a segment may have thousands of runs."""

    def runs(self, segment: Segment) -> list[RowRange] | None:
        """Leaf tuples as runs, if the number of rows of each file is known; else None."""
        if segment not in self._runs:
            self._runs[segment] = self._runs_of(segment)
        return self._runs[segment]

    def _runs_of(self, segment: Segment) -> list[RowRange] | None:
        ranges: list[RowRange] = []
        for name in self.flowing(segment):
            runs = self.runs_from(segment, name)
            if runs is None:
                return None
            ranges += runs
        return sorted(ranges)

    def runs_from(self, segment: Segment, leaf: str) -> list[RowRange] | None:
        """The runs of one leaf."""
        source = self.sources.get(leaf)
        return None if source is None else row_ranges(source, range(*segment.units.get(leaf, (0, 0))))

    def flowing(self, segment: Segment) -> list[str]:
        """The leaves that can have tuples in a segment: sources of a level are read one after the other."""

        def flows(name: str) -> bool:
            start, stop = segment.units.get(name, (0, 0))
            return start < stop or (self.plan.placement.ends(name) and segment.first)

        return [name for name in leaves_of(self.plan, segment.level) if flows(name)]

    def leaf_of(self, segment: Segment, at: Position) -> Position:
        """The leaf position that a position begins with: the first parts name the leaf tuple it comes from."""
        return at[: self.width(segment, at[0])] if at else at

    def width(self, segment: Segment, first: int) -> int:
        """How many parts leaf positions with this first part have.

        Text has more than Parquet. Rows of a stash keep the first parts of their origin, so beside a stash all leaf
        positions are cut to the same width; several tuples may then have one leaf position.
        """
        names = self.flowing(segment) or leaves_of(self.plan, segment.level)
        numbers = {n: self.sources[n].number for n in names if n in self.sources}
        alike = [n for n in names if len(numbers) < len(names) or numbers[n] == first]
        return min(self.plan.width[n] for n in alike or names)

    def leaves_behind(self, segment: Segment, operator: str) -> list[str] | None:
        """The leaves from which an operator produces one tuple for each (a union may name one twice); else None."""
        edges, mended = edges_of(self.plan, segment.level), self.mended(segment)
        behind: list[str] = []
        todo = [operator]
        while todo:
            name = todo.pop()
            ups = edges.inputs.get(name)
            if ups is None or (ups and (edges.shapes[name] not in ("one", "union") or name in mended)):
                return None
            todo += ups
            if not ups:
                behind.append(name)
        return behind

    def straight(self, segment: Segment, operator: str) -> bool:
        """Whether an operator takes exactly the leaf tuples, one by one."""
        ups = edges_of(self.plan, segment.level).inputs[operator]
        behind = self.leaves_behind(segment, ups[0] if ups else operator) if len(ups) < 2 else None
        if behind is None or len(behind) > 1:
            return False
        alone = len(leaves_of(self.plan, segment.level)) == 1
        return alone or not any(name != behind[0] for name in segment.units)

    # --- positions --------------------------------------------------------------------------------------------------

    def after(self, segment: Segment, low: Position | None, count: int) -> Position | None:
        """The first leaf position with at least `count` tuples between another one and it; None: there is none."""
        if self.runs(segment) is None:
            places = self.look(segment, low, count + 1)
            if len(places) <= count:
                return None
            at = places[count]
            if not count or places[count - 1] != at:
                return at
            behind = self.look(segment, (*at[:-1], at[-1] + 1), 1)  # several tuples have this position
            return behind[0] if behind else None
        return self._nth(segment, count if low is None else self.rows_before(segment, low) + count)

    def before(self, segment: Segment, high: Position | None, count: int) -> Position | None:
        """The last leaf position with at least `count` tuples between it and another one (None: the end).

        None at the segment's start.
        """
        if self.runs(segment) is None:
            places = self.look(segment, None, None)
            stop = len(places) if high is None else bisect_left(places, high)
            return places[stop - count] if stop > count and places[stop - count] != places[0] else None
        stop = self.rows(segment) if high is None else self.rows_before(segment, high)
        return self._nth(segment, stop - count) if stop > count else None

    def _nth(self, segment: Segment, rank: int) -> Position | None:
        """The position of a leaf tuple by its number in the segment, from 0; for segments that have runs."""
        if rank >= self.rows(segment):
            return None
        sums = self._before_runs(segment)
        i = bisect_right(sums, rank) - 1
        source, first, _ = (self.runs(segment) or ())[i]
        return source, first + rank - sums[i]

    def edge_after(self, segment: Segment, low: Position | None, count: int) -> Position | None:
        """The first edge of a chunk that lies at least `count` tuples after a position; None: the end."""
        at = self.after(segment, low, count)
        return None if at is None else self.ceil(segment, at)

    def edge_before(self, segment: Segment, high: Position | None, count: int) -> Position | None:
        """The last edge of a chunk that lies at least `count` tuples before a position; None: the start."""
        at = self.before(segment, high, count)
        return None if at is None else self.floor(segment, at)

    def ceil(self, segment: Segment, at: Position) -> Position | None:
        """The first edge of a chunk at or behind a leaf position (itself where there are no chunks); None: the end."""
        bits = self.bits(segment)
        if bits is None:
            return at
        source, before = chunk_of((at[0], at[1] - 1), bits)
        edge = chunk_start((source, before + 1), bits)
        return edge if self.after(segment, edge, 0) is not None else None

    def floor(self, segment: Segment, at: Position) -> Position | None:
        """The last edge of a chunk at or before a leaf position (itself where there are no chunks); None: the start."""
        bits = self.bits(segment)
        if bits is None:
            return at
        edge = chunk_start(chunk_of(at, bits), bits)
        return edge if self.rows_before(segment, edge) else None

    # --- chunks -----------------------------------------------------------------------------------------------------

    def bits(self, segment: Segment) -> int | None:
        """How many bits of a place lie inside a chunk; None where the number of rows of a file is not known."""
        if self.runs(segment) is None:
            return None
        return min(max(self.smallest, self.rows(segment).bit_length() - MOST_CHUNKS), ROW_BITS)

    def rows(self, segment: Segment) -> int:
        """How many leaf tuples a segment has; for segments that have runs."""
        return self._before_runs(segment)[-1]

    def _before_runs(self, segment: Segment) -> list[int]:
        if segment not in self._sums:
            self._sums[segment] = [0, *accumulate(rows for _, _, rows in self.runs(segment) or ())]
        return self._sums[segment]

    def rows_before(self, segment: Segment, at: Position) -> int:
        """How many leaf tuples lie before a position; for segments that have runs."""
        runs, sums = self.runs(segment) or [], self._before_runs(segment)
        i = bisect_left(runs, at) - 1  # the last run that begins before the position
        if i < 0:
            return 0
        source, first, rows = runs[i]
        return sums[i] + (min(rows, at[1] - first) if source == at[0] else rows)
