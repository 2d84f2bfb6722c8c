"""How many tuples operators produced, by chunks of the leaves: what a job counted is known for every window.

A jump to the n-th tuple of an operator, and the counters of operators at a window's start, are sums over these counts.
The output of sources, and of operators that produce one tuple for each, follows from the files' numbers of rows without
a job. The log says what an operator produced in its epoch, so a place is counted from the nearer end of the epoch: half
of its rows at most. Outputs that depend on a Python operator or a limit are not counted this way: they would have to
run again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from samovar.compile.native import hidden
from samovar.compile.plan import Plan
from samovar.positions import END, ROW_WIDTH, Position, Window, chunk_of, chunk_start, pack, unit_of
from samovar.replay.trace.leaves import Leaves
from samovar.replay.trace.segments import Segment, only_native

__all__ = ["Tally"]

Job = Callable[[Segment, Window, Callable[[Callable[[str], DataFrame]], DataFrame]], pa.Table]
"""Makes a frame from the streams of native operators in a window of a segment, and fetches it."""
Total = Callable[[Segment, str], int | None]
"""How many tuples an operator produced in a segment, by the log."""
Chunk = tuple[int, ...]
"""The source and number of a chunk."""

Stretch = tuple[Chunk, Chunk]
"""Chunks from one on, before another one."""

FIRST: Chunk = ()
LAST: Chunk = (END,)
"""Before and behind all chunks."""
MARGIN = 16
"""A part of the segment's rows: a tuple lies about where its number says, so much more is counted at once."""


class _Counted:
    """How many tuples one operator produced in the chunks of a segment before `head`, and in those from `tail` on.

    `total`: how many it produced in the whole segment, by the log; None where the log does not say it.
    """

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.head: Chunk = FIRST
        self.tail: Chunk = LAST
        self.chunks: list[Chunk] = []
        """The counted chunks with tuples, in order."""
        self.sums = [0]
        self._counts: dict[Chunk, int] = {}

    @classmethod
    def whole(cls, counts: Mapping[Chunk, int]) -> _Counted:
        """The counts of all chunks."""
        counted = cls()
        counted.add(FIRST, LAST, counts)
        return counted

    def add(self, low: Chunk, high: Chunk, counts: Mapping[Chunk, int]) -> None:
        """Chunks from one on, before another one: those behind the head, or those before the tail."""
        if low <= self.head:
            self.head = max(self.head, high)
        if high >= self.tail:
            self.tail = min(self.tail, low)
        self._counts |= {chunk: n for chunk, n in counts.items() if low <= chunk < high}
        self.chunks = sorted(self._counts)
        self.sums = [0, *accumulate(self._counts[chunk] for chunk in self.chunks)]
        if self.head >= self.tail:
            self.head, self.tail, self.total = LAST, FIRST, self.sums[-1]

    def knows(self, chunk: Chunk) -> bool:
        """Whether the tuples before a chunk are counted."""
        return chunk <= self.head or (self.total is not None and chunk >= self.tail)

    def before(self, chunk: Chunk) -> int:
        """The tuples before a chunk that is known."""
        counted = self.sums[bisect_left(self.chunks, chunk)]
        if chunk <= self.head or self.total is None:
            return counted
        return counted + self.total - self.sums[-1]


class Tally:
    """How many tuples native operators produced; kept as long as the recording is open."""

    def __init__(self, plan: Plan, leaves: Leaves, job: Job, total: Total) -> None:
        self.plan = plan
        self.leaves = leaves
        self._job = job
        self._total = total
        self._known: dict[tuple[Segment, str], _Counted] = {}
        self._lock = threading.Lock()

    def can(self, segment: Segment, name: str) -> bool:
        """Whether an operator's output can be counted without running Python code."""
        if self.leaves.bits(segment) is None or not self.plan.width[name]:
            return False
        return only_native(self.plan, segment.level, name)

    def before(self, segment: Segment, names: Iterable[str], low: Position) -> dict[str, int]:
        """How many tuples operators produced before an edge of a chunk."""
        chunk, wanted = chunk_of(low, self._bits(segment)), list(names)
        with self._lock:
            self._count_all(segment, {n: self._nearer(segment, n, chunk) for n in wanted})
            return {n: self._of(segment, n).before(chunk) for n in wanted}

    def edge(self, segment: Segment, at: Position) -> bool:
        """Whether a position is an edge of a chunk."""
        bits = self.leaves.bits(segment)
        return bits is not None and len(at) == ROW_WIDTH and chunk_start(chunk_of(at, bits), bits) == at

    def chunk(self, segment: Segment, names: Sequence[str], rank: int) -> tuple[Position, Position] | None:
        """The edges of the chunk with the `rank`-th of the tuples that operators produced; None: there are fewer."""
        with self._lock:
            found = self._chunk(segment, names, rank)
        if found is None:
            return None
        (source, number), bits = found, self._bits(segment)
        return chunk_start((source, number), bits), chunk_start((source, number + 1), bits)

    def _chunk(self, segment: Segment, names: Sequence[str], rank: int) -> Chunk | None:
        """The chunk of a tuple. Counts from the nearer end of the segment to beyond the tuple's likely place."""
        counted = [self._of(segment, name) for name in names]
        rows = self.leaves.rows(segment)
        margin = max(1, rows // MARGIN)
        while True:
            head, tail = min(c.head for c in counted), max(c.tail for c in counted)
            if rank <= sum(c.before(head) for c in counted):
                return _first(counted, rank, FIRST, head)
            totals = [c.total for c in counted if c.total is not None]
            told = len(totals) == len(counted)
            if told and rank > sum(c.before(tail) for c in counted):
                return _first(counted, rank, tail, LAST)
            if head >= tail:
                return None
            place = rows * rank // max(sum(totals), 1) if told else rows
            forwards = 2 * place <= rows or not told
            at = place + margin if forwards else place - margin
            edge = self.leaves.after(segment, None, at) if at > 0 else None
            chunk = None if edge is None else chunk_of(edge, self._bits(segment))
            self._count_all(segment, {n: self._stretch(segment, n, chunk, forwards) for n in names})
            margin *= 2

    def _bits(self, segment: Segment) -> int:
        """The size of chunks, for segments that have them (see `can`)."""
        bits = self.leaves.bits(segment)
        assert bits is not None
        return bits

    def _of(self, segment: Segment, name: str) -> _Counted:
        """What is known of an operator without a job, or by the jobs so far."""
        if (segment, name) not in self._known:
            known = self._from_files(segment, name)
            self._known[segment, name] = known or _Counted(self._total(segment, name))
        return self._known[segment, name]

    def _from_files(self, segment: Segment, name: str) -> _Counted | None:
        """The counts of an operator that produces one tuple for each of some leaves; None for any other operator."""
        behind, bits = self.leaves.leaves_behind(segment, name), self.leaves.bits(segment)
        if behind is None or bits is None:
            return None
        runs = [self.leaves.runs_from(segment, leaf) for leaf in behind]
        counts: Counter[Chunk] = Counter()
        for source, first, rows in (run for of_leaf in runs for run in of_leaf or ()):
            stop = first + rows
            for chunk in range(first >> bits, -(-stop >> bits)):
                counts[source, chunk] += min(stop, chunk + 1 << bits) - max(first, chunk << bits)
        return _Counted.whole(counts)

    def _nearer(self, segment: Segment, name: str, chunk: Chunk) -> Stretch:
        """What to count to know an operator's tuples before a chunk: whichever side has fewer rows."""
        counted = self._of(segment, name)
        if counted.knows(chunk):
            return chunk, chunk
        up, down = (self._stretch(segment, name, chunk, forwards) for forwards in (True, False))
        is_up = counted.total is None or self._rows(segment, *up) <= self._rows(segment, *down)
        return up if is_up else down

    def _stretch(self, segment: Segment, name: str, chunk: Chunk | None, forwards: bool) -> Stretch:
        """The chunks from the head to one, or from one to the tail, in whole units: Spark reads whole files.

        Without a chunk: all that are not counted.
        """
        counted, bits = self._of(segment, name), self._bits(segment)
        if chunk is None:
            return counted.head, counted.tail
        source, place = chunk[0], chunk[1] << bits
        unit = unit_of(place)
        if forwards:
            behind = place if place == pack(unit, 0) else pack(unit + 1, 0)
            return counted.head, min(chunk_of((source, behind), bits), counted.tail)
        return max(chunk_of((source, pack(unit, 0)), bits), counted.head), counted.tail

    def _rows(self, segment: Segment, low: Chunk, high: Chunk) -> int:
        """How many leaf tuples lie in a stretch of chunks."""
        window = self._window(segment, low, high)
        before = 0 if window.low is None else self.leaves.rows_before(segment, window.low)
        behind = self.leaves.rows(segment)
        return (behind if window.high is None else self.leaves.rows_before(segment, window.high)) - before

    def _count_all(self, segment: Segment, stretches: Mapping[str, Stretch]) -> None:
        """Count operators, each over its stretch: a job for those with the same one."""
        by_stretch: dict[Stretch, list[str]] = {}
        for name, (low, high) in stretches.items():
            if low < high:
                by_stretch.setdefault((low, high), []).append(name)
        for (low, high), names in by_stretch.items():
            self._count(segment, names, low, high)

    def _window(self, segment: Segment, low: Chunk, high: Chunk) -> Window:
        bits = self._bits(segment)
        return Window(
            None if low == FIRST else chunk_start((low[0], low[1]), bits),
            None if high == LAST else chunk_start((high[0], high[1]), bits),
        )

    def _count(self, segment: Segment, names: Sequence[str], low: Chunk = FIRST, high: Chunk = LAST) -> None:
        bits = self._bits(segment)

        def counts(stream: Callable[[str], DataFrame]) -> DataFrame:
            parts = []
            for number, name in enumerate(names):
                df = stream(name)
                source, place = hidden(df)[:2]
                chunk = [F.col(source).alias("source"), F.shiftright(place, bits).alias("chunk")]
                counted = df.groupBy(*chunk).agg(F.count(F.lit(1)).alias("n"))
                parts.append(counted.select(F.lit(number).alias("op"), "source", "chunk", "n"))
            return reduce(lambda a, b: a.union(b), parts)

        by_name: dict[str, dict[Chunk, int]] = {name: {} for name in names}
        for row in self._job(segment, self._window(segment, low, high), counts).to_pylist():
            by_name[names[row["op"]]][row["source"], row["chunk"]] = row["n"]
        for name, counted in by_name.items():
            self._of(segment, name).add(low, high, counted)


def _first(counted: Sequence[_Counted], rank: int, low: Chunk, high: Chunk) -> Chunk | None:
    """The chunk with the `rank`-th tuple among known chunks from one on, before another one."""
    chunks = sorted({chunk for c in counted for chunk in c.chunks if low <= chunk < high})
    behind = [*chunks[1:], high]
    at = bisect_left(range(len(chunks)), rank, key=lambda i: sum(c.before(behind[i]) for c in counted))
    return chunks[at] if at < len(chunks) else None
