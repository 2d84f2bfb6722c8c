"""Settings under which a program has to return the same rows, and how an input is dealt out to partitions.

Rows that depend on each other (by the dependence of the input) stay in one partition and in their order; everything
else may come anywhere: that is what Spark promises, and no more.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from samovar.diff.dependence import Dependence, Key
from samovar.diff.event_values import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Setting", "applied", "blocks_of", "can_retry", "dealt", "plan", "taken_twice"]


@dataclass(frozen=True)
class Setting:
    """One way to run a program. The defaults are the calmest: one partition, in the order given."""

    partitions: int = 1
    order: str = "as given"
    """Of the input: `as given`, `reversed`, or `mixed` by a seed."""
    shuffle_partitions: int = 1
    adaptive: bool = False
    batch_rows: int = 10_000
    retry: bool = False
    """Whether every task of the last stage fails at its end and is done again."""
    cuts: int = 1
    """Micro-batches that the input of a stream comes in."""
    again: bool = False
    """Whether nothing is changed: a second run shows whether the program is deterministic at all."""

    def words(self) -> dict[str, str]:
        """Each setting in words."""
        return {
            "partitions": f"{self.partitions} input partition{'s' * (self.partitions != 1)}",
            "order": f"input {self.order}",
            "shuffle_partitions": f"{self.shuffle_partitions} shuffle partition{'s' * (self.shuffle_partitions != 1)}",
            "adaptive": f"adaptive execution {'on' if self.adaptive else 'off'}",
            "batch_rows": f"Arrow batches of {self.batch_rows:,} rows",
            "retry": "tasks done twice" if self.retry else "tasks done once",
            "cuts": f"{self.cuts} micro-batch{'es' * (self.cuts != 1)}",
            "again": "a second run" if self.again else "a first run",
        }

    def changed(self, other: Setting) -> list[str]:
        """The names of the fields in which two settings differ."""
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name)]

    def describe(self, against: Setting) -> str:
        """The fields that differ from another setting, in words."""
        words = self.words()
        return ", ".join(words[name] for name in self.changed(against)) or "the same settings"


def plan(runs: int, seed: int, *, retries: bool, stream: bool = False) -> list[Setting]:
    """The settings to try, the calmest first, then one change at a time, then many at once."""
    rng = random.Random(seed)
    if stream:
        settings = [
            Setting(),
            Setting(cuts=3),
            Setting(order="reversed"),
            Setting(again=True),
            Setting(shuffle_partitions=5),
            Setting(cuts=7, shuffle_partitions=2),
        ]
    else:
        settings = [
            Setting(),
            Setting(order="reversed"),
            Setting(partitions=3),
            Setting(again=True),
            *([Setting(retry=True)] if retries else []),
            Setting(shuffle_partitions=5),
            Setting(batch_rows=1),
            Setting(order=f"mixed ({seed})"),
            Setting(partitions=4, order="reversed", shuffle_partitions=3),
            Setting(adaptive=True, partitions=2, shuffle_partitions=4),
        ]
    while len(settings) < runs:
        many = Setting(
            order=f"mixed ({rng.randrange(1000)})",
            shuffle_partitions=rng.choice([1, 2, 3, 7]),
            batch_rows=rng.choice([1, 2, 3, 10_000]),
        )
        if stream:
            many = replace(many, cuts=rng.choice([2, 4, 5, 9]))
        else:
            many = replace(many, partitions=rng.choice([2, 3, 5, 7]), adaptive=rng.random() < 0.5)
        settings.append(many)
    return settings[:runs]


def dealt(table: pa.Table, setting: Setting, arrives: Dependence, spark: SparkSession) -> DataFrame:
    """The rows as a DataFrame with the partitions and the order of the setting."""
    blocks = blocks_of(table, setting, arrives, setting.partitions)
    frames = [spark.createDataFrame(table.take(pa.array(b, pa.int64()))).coalesce(1) for b in blocks]
    return reduce(lambda above, below: above.unionAll(below), frames)


def blocks_of(table: pa.Table, setting: Setting, arrives: Dependence, count: int) -> list[list[int]]:
    """The numbers of the rows in each of `count` blocks, in the order of the setting."""
    groups = _groups(table, arrives)
    if setting.order == "reversed":
        groups.reverse()
    elif setting.order.startswith("mixed"):
        random.Random(setting.order).shuffle(groups)
    blocks: list[list[int]] = [[] for _ in range(count)]
    for i, group in enumerate(groups):
        blocks[i * count // max(1, len(groups))] += group
    if setting.order == "as given":
        blocks = [sorted(block) for block in blocks]
    return blocks


def _groups(table: pa.Table, arrives: Dependence) -> list[list[int]]:
    """Rows that have to stay together, in their order: those connected by the dependence."""
    if not arrives.clauses:
        return [[i] for i in range(table.num_rows)]
    rows = rows_of(table)
    if len(arrives.clauses) == 1 and isinstance(key := arrives.clauses[0], Key):
        by_key: dict[Any, list[int]] = {}
        for i, row in enumerate(rows):
            by_key.setdefault(key.of(row), []).append(i)
        return list(by_key.values())
    groups: list[list[int]] = []
    for i, row in enumerate(rows):
        connected = [g for g in groups if any(arrives.depends(row, rows[j]) for j in g)]
        joined = sorted([i, *(j for g in connected for j in g)])
        groups = sorted([*(g for g in groups if g not in connected), joined])
    return groups


@contextlib.contextmanager
def applied(setting: Setting, spark: SparkSession) -> Iterator[None]:
    """Change Spark's settings for the time of a block."""
    values = {
        "spark.sql.shuffle.partitions": str(setting.shuffle_partitions),
        "spark.sql.adaptive.enabled": str(setting.adaptive).lower(),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(setting.batch_rows),
        "spark.sql.unionOutputPartitioning": "false",  # else Spark makes one partition of pieces with one each
    }
    before = {key: spark.conf.get(key, None) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def can_retry(spark: SparkSession) -> bool:
    """Whether Spark does a failed task again: `local[2]` does not, `local[2,4]` and clusters do."""
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect: a cluster, but without a task context to ask
        return False
    master = str(context.master)
    if not master.startswith("local"):
        return int(context.getConf().get("spark.task.maxFailures", "4") or 4) > 1
    limits = master.partition("[")[2].rstrip("]").split(",")
    return master.startswith("local[") and len(limits) > 1 and int(limits[1]) > 1


def taken_twice(df: DataFrame) -> pa.Table:
    """The rows of a DataFrame, but every task fails once after it has yielded them all."""

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            raise RuntimeError("a task that has to be done again")

    return df.mapInArrow(fail_once, df.schema).toArrow()
