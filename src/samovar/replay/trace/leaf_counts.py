"""How many tuples operators produced, by chunks of the leaves: counted by one job, then known for every window.

A jump to the n-th tuple of an operator, and the counters of operators at a window's start, are sums over these counts.
The output of sources, and of operators that produce one tuple for each, follows from the files' numbers of rows without
a job. Outputs that depend on a Python operator or a limit are not counted this way: they would have to run again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from samovar.compile.native import hidden
from samovar.compile.plan import Plan
from samovar.positions import ROW_WIDTH, Position, chunk_of, chunk_start
from samovar.replay.trace.leaves import Leaves
from samovar.replay.trace.segments import Segment, only_native

__all__ = ["Tally"]

Job = Callable[..., pa.Table]
"""Makes a frame (`make`) from the streams of a segment and fetches it."""


class _Counted:
    """How many tuples one operator produced in each chunk of a segment."""

    def __init__(self, chunks: Sequence[tuple[int, int]], counts: Sequence[int]) -> None:
        self.chunks = chunks
        self.sums = [0, *accumulate(counts)]

    def before(self, chunk: tuple[int, int]) -> int:
        return self.sums[bisect_left(self.chunks, chunk)]


class Tally:
    """How many tuples native operators produced; kept as long as the recording is open."""

    def __init__(self, plan: Plan, leaves: Leaves, job: Job) -> None:
        self.plan = plan
        self.leaves = leaves
        self._job = job
        self._known: dict[tuple[Segment, str], _Counted] = {}
        self._lock = threading.Lock()

    def can(self, segment: Segment, name: str) -> bool:
        """Whether an operator's output can be counted without running Python code."""
        if self.leaves.bits(segment) is None or not self.plan.width[name]:
            return False
        return only_native(self.plan, segment.level, name)

    def before(self, segment: Segment, names: Iterable[str], low: Position) -> dict[str, int]:
        """How many tuples operators produced before an edge of a chunk."""
        chunk = chunk_of(low, self._bits(segment))
        return {n: counted.before(chunk) for n, counted in self._counted(segment, list(names)).items()}

    def edge(self, segment: Segment, at: Position) -> bool:
        """Whether a position is an edge of a chunk."""
        bits = self.leaves.bits(segment)
        return bits is not None and len(at) == ROW_WIDTH and chunk_start(chunk_of(at, bits), bits) == at

    def chunk(self, segment: Segment, names: Sequence[str], rank: int) -> tuple[Position, Position] | None:
        """The edges of the chunk with the `rank`-th of the tuples that operators produced; None: there are fewer."""
        counts = [self._counted(segment, names)[n] for n in names]
        chunks = sorted({chunk for counted in counts for chunk in counted.chunks})

        def up_to(chunk: tuple[int, int]) -> int:
            return sum(counted.sums[bisect_right(counted.chunks, chunk)] for counted in counts)

        at = bisect_left(chunks, rank, key=up_to)
        if at == len(chunks):
            return None
        (source, number), bits = chunks[at], self._bits(segment)
        return chunk_start((source, number), bits), chunk_start((source, number + 1), bits)

    def _bits(self, segment: Segment) -> int:
        """The size of chunks, for segments that have them (see `can`)."""
        bits = self.leaves.bits(segment)
        assert bits is not None
        return bits

    def _counted(self, segment: Segment, names: Sequence[str]) -> dict[str, _Counted]:
        with self._lock:
            missing = []
            for name in dict.fromkeys(names):
                if (segment, name) in self._known:
                    continue
                if (known := self._from_files(segment, name)) is not None:
                    self._known[segment, name] = known
                else:
                    missing.append(name)
            if missing:
                self._count(segment, missing)
            return {n: self._known[segment, n] for n in names}

    def _from_files(self, segment: Segment, name: str) -> _Counted | None:
        """The counts of an operator that produces one tuple for each of some leaves; None for any other operator."""
        behind, bits = self.leaves.leaves_behind(segment, name), self.leaves.bits(segment)
        if behind is None or bits is None:
            return None
        runs = [self.leaves.runs_from(segment, leaf) for leaf in behind]
        counts: Counter[tuple[int, int]] = Counter()
        for source, first, rows in (run for of_leaf in runs for run in of_leaf or ()):
            stop = first + rows
            for chunk in range(first >> bits, -(-stop >> bits)):
                counts[source, chunk] += min(stop, chunk + 1 << bits) - max(first, chunk << bits)
        chunks = sorted(counts)
        return _Counted(chunks, [counts[c] for c in chunks])

    def _count(self, segment: Segment, names: Sequence[str]) -> None:
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

        by_name: dict[str, dict[tuple[int, int], int]] = {name: {} for name in names}
        for row in self._job(segment, make=counts).to_pylist():
            by_name[names[row["op"]]][row["source"], row["chunk"]] = row["n"]
        for name, counted in by_name.items():
            chunks = sorted(counted)
            self._known[segment, name] = _Counted(chunks, [counted[chunk] for chunk in chunks])
