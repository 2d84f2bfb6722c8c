"""Counters of one epoch: each number in one place, most of them for free (see compile/counters.py)."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from samovar.compile.counters import add_up, counted_apart, needs_counter, tallying
from samovar.compile.plan import ROWS
from samovar.graph import operators as ops
from samovar.record.log import Counters
from samovar.runtime.epochs.attempt import Attempt
from samovar.runtime.spark.job_tags import tagged

__all__ = ["RowCounts", "observed"]


class RowCounts:
    """Counts the rows of an attempt. `fixed`: operators whose input a person changed."""

    def __init__(self, attempt: Attempt, fixed: Collection[str] = ()) -> None:
        self.attempt = attempt
        self.fixed = frozenset(fixed)
        covers = attempt.covers
        self.tallying = tallying(attempt.plan, covers.low, covers.high, attempt.stored) - self.fixed
        self.measured: dict[tuple[str, int | None], int] = {}
        """What is known so far: rows that an operator gave, or took on a port."""
        self.observations: dict[tuple[str, int | None], tuple[Observation, DataFrame, Column]] = {}
        self._apart: dict[str, Future[int]] = {}
        # two, as many as there are sides of a join: more would take cores from the epoch's own jobs
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="samovar-count")

    # --- in the plan ------------------------------------------------------------------------------------------------

    def counted(self, name: str, level: int | None, df: DataFrame) -> DataFrame:
        """The frame with a counter of its rows, where nothing else tells their number."""
        attempt, plan = self.attempt, self.attempt.plan
        if level is None and not attempt.covers.first:
            return df
        if isinstance(plan.graph.ops[name], ops.Sort) and plan.placement.level[name] < attempt.covers.low:
            totals = attempt.context.history.totals().get(name, Counters())
            self.measured[name, None] = sum(totals.taken)  # a sort gives what it took
            return df
        if (name, None) in self.observations or not (name in self.fixed or self.lacks(name, level)):
            return df
        if counted_apart(plan, name) and name not in self.fixed:
            self.count_apart(name, df)
            return df
        return self.observe((name, None), df, F.count(F.lit(1)))

    def lacks(self, name: str, level: int | None) -> bool:
        """Whether nothing else tells how many rows an operator gives."""
        known = frozenset(n for n, port in self.measured if port is None)
        return needs_counter(self.attempt.plan, name, level, self.attempt.stored | self.tallying, known)

    def tallied(self, name: str, df: DataFrame) -> DataFrame:
        """An aggregate's output without the numbers of rows of its groups, which are added up on the way."""
        if (name, 0) not in self.observations:
            df = self.observe((name, 0), df, F.sum(ROWS))
        return df.drop(ROWS)

    def observe(self, key: tuple[str, int | None], df: DataFrame, rows: Column, *others: Column) -> DataFrame:
        """The frame with a counter for one number."""
        observation = Observation()
        self.observations[key] = (observation, df, rows)
        return df.observe(observation, rows.alias("rows"), *others)

    # --- beside the plan --------------------------------------------------------------------------------------------

    def count_apart(self, name: str, df: DataFrame) -> None:
        """Count an operator's rows in a job of their own, beside the epoch's."""
        if name not in self._apart:
            self._apart[name] = self._pool.submit(self._count, name, df)

    def _count(self, name: str, df: DataFrame) -> int:
        context = self.attempt.context
        # tags and group belong to a thread
        with tagged(context.spark, context.tag), tagged(context.spark, self.attempt.name):
            context.group(self.attempt.name)
            context.describe(f"epoch {self.attempt.number}, counting {name}")
            try:
                return df.count()
            finally:
                context.group(None)

    # --- when the jobs are done -------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Read the counters; where Spark has optimised one away with its part of the plan, count that part apart."""
        for name, rows_of in self._apart.items():
            self.measured[name, None] = rows_of.result()
        for key, (observation, df, rows) in self.observations.items():
            number = observed(observation, "rows")
            if number is None:
                self.attempt.context.describe(f"epoch {self.attempt.number}, counting {key[0]}")
                number = df.agg(rows).toArrow().column(0)[0].as_py() or 0
            self.measured[key] = number

    def close(self) -> None:
        """End what counts beside the plan."""
        self._pool.shutdown(cancel_futures=True)

    def totals(self) -> dict[str, Counters]:
        """The counters of the epoch, for its commit."""
        covers, history = self.attempt.covers, self.attempt.context.history
        before = {name: c.given for name, c in history.totals().items()}
        counted = add_up(
            self.attempt.plan, self.measured, covers.low, covers.high, first=covers.first, before=before
        )
        return {name: Counters(taken, given) for name, (taken, given) in counted.items()}


def observed(observation: Observation, name: str) -> int | None:
    """A counter's value; None when Spark left that part of the plan out, because nothing needed its rows."""
    try:
        return int(observation.get.get(name) or 0)
    except Exception:  # PySpark cannot read the empty row that Spark then has
        return None
