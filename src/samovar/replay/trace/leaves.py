"""Where the leaf tuples of a segment lie: by arithmetic where the rows of each file are counted, else by a Spark job.

Windows begin and end at edges of chunks: ranges of positions of the same size. So what operators gave before a window
is a sum over chunks (see leaf_counts.py), whatever window somebody looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from samovar.compile.plan import Plan
from samovar.positions import ROW_BITS, Position, RowRange, chunk_of, chunk_start
from samovar.replay.trace.segments import Segment, edges_of, leaves_of
from samovar.runtime.sources.units import Source, stretches_of

__all__ = ["Leaves"]

Looked = Callable[[Segment, Position | None, int | None], list[Position]]
"""Finds leaf positions from one on, some of them."""
Mended = Callable[[Segment], Collection[str]]
"""Operators whose input lost rows in a segment."""

MOST_CHUNKS = 15
"""At most two to the power of this many chunks in a segment."""


class Leaves:
    """The places of leaf tuples of a recording."""

    smallest = 7
    """The least bits of a place inside a chunk: smaller chunks than windows would only be more to count."""

    def __init__(self, plan: Plan, sources: Mapping[str, Source], look: Looked, mended: Mended) -> None:
        self.plan = plan
        self.sources = sources
        self._look = look
        self._mended = mended
        self._runs: dict[Segment, list[RowRange] | None] = {}

    def runs(self, segment: Segment) -> list[RowRange] | None:
        """Leaf tuples as runs, if the number of rows of each file is known; else None."""
        if segment not in self._runs:
            self._runs[segment] = self._runs_of(segment)
        return self._runs[segment]

    def _runs_of(self, segment: Segment) -> list[RowRange] | None:
        ranges: list[RowRange] = []
        for name in leaves_of(self.plan, segment.level):
            own = self.runs_from(segment, name)
            if own is None:
                return None
            ranges += own
        return sorted(ranges)

    def runs_from(self, segment: Segment, leaf: str) -> list[RowRange] | None:
        """The runs of one leaf."""
        source = self.sources.get(leaf)
        return None if source is None else stretches_of(source, *segment.units.get(leaf, (0, 0)))

    def width(self, segment: Segment, widths: Mapping[str, int]) -> int:
        """How many parts of a position name the leaf tuple it comes from."""
        return min(widths[n] for n in leaves_of(self.plan, segment.level))

    def leaves_behind(self, segment: Segment, operator: str) -> list[str] | None:
        """The leaves for each of whose tuples an operator gives one (a union may name one twice); else None."""
        edges, mended = edges_of(self.plan, segment.level), self._mended(segment)
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
        """Whether every leaf tuple reaches an operator as it is."""
        ups = edges_of(self.plan, segment.level).inputs[operator]
        behind = self.leaves_behind(segment, ups[0] if ups else operator) if len(ups) < 2 else None
        if behind is None or len(behind) > 1:
            return False
        alone = len(leaves_of(self.plan, segment.level)) == 1
        return alone or not any(name != behind[0] for name in segment.units)

    # --- positions --------------------------------------------------------------------------------------------------

    def after(self, segment: Segment, low: Position | None, count: int) -> Position | None:
        """The leaf position `count` tuples after another one; None when the segment ends before."""
        runs = self.runs(segment)
        if runs is None:
            places = self._look(segment, low, count + 1)
            return places[count] if len(places) > count else None
        left = count
        for source, first, rows in runs:
            start = 0
            if low is not None:
                if (source, first + rows) <= low:
                    continue
                start = max(0, low[1] - first) if low[0] == source and low[1] >= first else 0
            if start + left < rows:
                return source, first + start + left
            left -= rows - start
        return None

    def before(self, segment: Segment, high: Position | None, count: int) -> Position | None:
        """The leaf position `count` tuples before another one (None: the end); None at the segment's start."""
        runs = self.runs(segment)
        if runs is None:
            places = self._look(segment, None, None)
            stop = len(places) if high is None else sum(1 for at in places if at < high)
            return places[stop - count] if stop > count else None
        left = count
        for source, first, rows in reversed(runs):
            stop = rows
            if high is not None:
                if (source, first) >= high:
                    continue
                stop = min(rows, high[1] - first) if high[0] == source else rows
            if stop > left:
                return source, first + stop - left
            left -= stop
        return None

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
        runs = self.runs(segment)
        if runs is None:
            return None
        rows = sum(n for _, _, n in runs)
        return min(max(self.smallest, rows.bit_length() - MOST_CHUNKS), ROW_BITS)

    def rows_before(self, segment: Segment, at: Position) -> int:
        """How many leaf tuples lie before a position; for segments that have runs."""
        total = 0
        for source, first, rows in self.runs(segment) or ():
            if (source, first) < at:
                total += min(rows, at[1] - first) if source == at[0] else rows
        return total
