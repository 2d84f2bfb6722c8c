"""How many tuples operators gave, chunk by chunk of the leaves: counted by one job, then known for every window.

A jump to the n-th tuple of an operator, and what operators had taken and given when a window began, are sums over it.
What sources gave, and operators that give a tuple for each, is known from the files' numbers of rows without a job.
Outputs that depend on a Python operator or a limit are not counted this way: they would have to run again.
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
    """What one operator gave in the chunks of a segment."""

    def __init__(self, chunks: Sequence[tuple[int, int]], counts: Sequence[int]) -> None:
        self.chunks = chunks
        self.sums = [0, *accumulate(counts)]

    def before(self, chunk: tuple[int, int]) -> int:
        return self.sums[bisect_left(self.chunks, chunk)]


class Tally:
    """Counts of what native operators gave, kept as long as the recording is open."""

    def __init__(self, plan: Plan, leaves: Leaves, job: Job) -> None:
        self.plan = plan
        self.leaves = leaves
        self._job = job
        self._known: dict[tuple[Segment, str], _Counted] = {}
        self._lock = threading.Lock()

    def can(self, segment: Segment, name: str) -> bool:
        """Whether what an operator gave can be counted without running Python code."""
        if self.leaves.bits(segment) is None or not self.plan.width[name]:
            return False
        return only_native(self.plan, segment.level, name)

    def before(self, segment: Segment, names: Iterable[str], low: Position) -> dict[str, int]:
        """How many tuples operators gave before an edge of a chunk."""
        wanted = list(names)
        chunk = self._chunk(segment, low)
        return {n: counted.before(chunk) for n, counted in self._counted(segment, wanted).items()}

    def edge(self, segment: Segment, at: Position) -> bool:
        """Whether a position is an edge of a chunk."""
        bits = self.leaves.bits(segment)
        return bits is not None and len(at) == ROW_WIDTH and chunk_start(chunk_of(at, bits), bits) == at

    def chunk(self, segment: Segment, names: Sequence[str], rank: int) -> tuple[Position, Position] | None:
        """The edges of the chunk that holds the `rank`-th of the tuples that operators gave; None: there are fewer."""
        counts = [self._counted(segment, names)[n] for n in names]
        chunks = sorted({c for own in counts for c in own.chunks})

        def up_to(chunk: tuple[int, int]) -> int:
            return sum(own.sums[bisect_right(own.chunks, chunk)] for own in counts)

        at = bisect_left(chunks, rank, key=up_to)
        if at == len(chunks):
            return None
        (source, number), bits = chunks[at], self.leaves.bits(segment)
        assert bits is not None
        return chunk_start((source, number), bits), chunk_start((source, number + 1), bits)

    def _chunk(self, segment: Segment, at: Position) -> tuple[int, int]:
        bits = self.leaves.bits(segment)
        assert bits is not None
        return chunk_of(at, bits)

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
        """What an operator gave that passes on one tuple for each of some leaves; None for any other."""
        behind, bits = self.leaves.leaves_behind(segment, name), self.leaves.bits(segment)
        if behind is None or bits is None:
            return None
        runs = [self.leaves.runs_from(segment, leaf) for leaf in behind]
        counts: Counter[tuple[int, int]] = Counter()
        for source, first, rows in (run for own in runs for run in own or ()):
            stop = first + rows
            for chunk in range(first >> bits, -(-stop >> bits)):
                counts[source, chunk] += min(stop, chunk + 1 << bits) - max(first, chunk << bits)
        chunks = sorted(counts)
        return _Counted(chunks, [counts[c] for c in chunks])

    def _count(self, segment: Segment, names: Sequence[str]) -> None:
        bits = self.leaves.bits(segment) or 0

        def counts(stream: Callable[[str], DataFrame]) -> DataFrame:
            parts = []
            for number, name in enumerate(names):
                df = stream(name)
                source, place = hidden(df)[:2]
                chunk = [F.col(source).alias("source"), F.shiftright(place, bits).alias("chunk")]
                own = df.groupBy(*chunk).agg(F.count(F.lit(1)).alias("n"))
                parts.append(own.select(F.lit(number).alias("op"), "source", "chunk", "n"))
            return reduce(lambda a, b: a.union(b), parts)

        table = self._job(segment, make=counts).sort_by(
            [("op", "ascending"), ("source", "ascending"), ("chunk", "ascending")]
        )
        numbers = table.column("op").to_numpy()
        for number, name in enumerate(names):
            own = table.filter(pa.array(numbers == number))
            chunks = list(zip(own.column("source").to_pylist(), own.column("chunk").to_pylist(), strict=True))
            self._known[segment, name] = _Counted(chunks, own.column("n").to_pylist())
