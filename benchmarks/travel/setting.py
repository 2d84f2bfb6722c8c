"""What the experiments share: the session, the data, a scratch folder, and how a workflow is run and opened."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import Data
from benchmarks.pairs import Pair
from benchmarks.workflows import WORKFLOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import samovar as sv

__all__ = ["Row", "Setting", "interesting", "median", "percentile", "stopwatch", "taken_by"]

Row = dict[str, Any]
"""A row of a table: headings and values."""


def interesting(name: str, flow: sv.Workflow) -> str:
    """The operator that Figure 15 of IcedTea marks: the first of its kind."""
    kinds = {"w1": "Filter", "w2": "Join", "w3": "Filter", "w4": "Select", "w5": "Python"}
    graph = flow.graph()
    return next(op.name for op in graph.ops.values() if type(op).__name__ == kinds[name])


@dataclass
class Setting:
    """One experiment's surroundings."""

    spark: SparkSession
    data: Data
    scratch: Path
    runs: int
    tick: Callable[[str], None]
    workflows: Sequence[str] = tuple(WORKFLOWS)
    """Those that a part for all workflows looks at."""

    def pair(self, name: str) -> Pair:
        """A workflow whose data is there."""
        pair = WORKFLOWS[name]
        self.data.ensure(pair.inputs)
        return pair

    def run(self, flow: sv.Workflow, **options: Any) -> sv.Run:
        """A run of a workflow to its end, recorded in the scratch folder."""
        record = self.scratch / f"runs-{time.monotonic_ns()}"
        return flow.run(spark=self.spark, record=record, progress=False, **options)

    def told(self, row: Row) -> Row:
        """The same row, said at once: an experiment may take long."""
        print(json.dumps(row), file=sys.stderr, flush=True)
        return row

    def open(self, run: sv.Run) -> sv.Past:
        """The run's recording."""
        import samovar as sv

        assert run.recording is not None
        return sv.open(run.recording, spark=self.spark)


def taken_by(past: sv.Past, operator: str) -> int:
    """How many tuples an operator took in a run one by one: a join's build side is its state."""
    return sum(past._session.taken_in(segment, operator) for segment in past._session.segments)


@contextmanager
def stopwatch() -> Iterator[list[float]]:
    """The seconds a block takes, as the one element of a list."""
    taken: list[float] = []
    start = time.perf_counter()
    yield taken
    taken.append(time.perf_counter() - start)


def median(samples: Sequence[float]) -> float:
    return statistics.median(samples)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that so many of them do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
