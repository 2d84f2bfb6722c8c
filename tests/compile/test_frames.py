"""The frames of an epoch over made-up inputs: what they ask for, and what a strategy changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import samovar as sv
from samovar.compile.analysis import analyse, empty_frame
from samovar.compile.frames import EpochFrames
from samovar.compile.plan import Plan, make_plan
from samovar.compile.strategy import EpochRange, Strategy

ROWS = "n bigint, k string"
PLAIN = Strategy()
COVERS = EpochRange(0, 0, {}, first=True, last=False)


class MadeUp:
    """Inputs from lists of rows, by operator."""

    def __init__(
        self, spark: SparkSession, rows: dict[str, list[Any]], passed: tuple[int, int] = (0, 0)
    ) -> None:
        self.spark = spark
        self.given = rows
        self.before = passed
        self.asked: list[tuple[str, int | None]] = []

    def empty(self, schema: StructType) -> DataFrame:
        return empty_frame(self.spark, schema)

    def rows(self, name: str, level: int | None) -> DataFrame | None:
        self.asked.append((name, level))
        return self.spark.createDataFrame(self.given[name], ROWS) if name in self.given else None

    def stored(self, kind: str, name: str, schema: StructType) -> DataFrame:
        return self.empty(schema)

    def passed(self, name: str) -> tuple[int, int]:
        return self.before

    def python(self, chain: tuple[str, ...], df: DataFrame, schema: StructType) -> DataFrame:
        raise NotImplementedError


@pytest.fixture(scope="module")
def plan(spark: SparkSession) -> Plan:
    flow = sv.Workflow("seam")
    a, b = (flow.read.schema(ROWS).parquet(f"{name}.parquet", name=name) for name in "ab")
    small = a.filter("n < 10", name="small")
    small.join(b.select("k", name="keys"), on="k", name="joined").sink("S")
    small.sort("n", name="sorted").limit(3, name="top").sink("T")
    schemas = {name: empty_frame(spark, ROWS).schema for name in "ab"}
    analysis = analyse(spark, flow.graph(), schemas)
    return make_plan(spark, analysis, {"a": 1 << 20, "b": 1 << 10}, buckets=1, settings={"now": 0})


def values(df: DataFrame) -> list[int]:
    return sorted(row.n for row in df.collect())


def frames(plan: Plan, inputs: MadeUp, strategy: Strategy = PLAIN, level: int = 0) -> EpochFrames:
    return EpochFrames(plan, 0, replace(COVERS, low=level, high=level), inputs, strategy)


A = [(1, "x"), (5, "y"), (20, "x")]


def test_what_inputs_read_is_not_computed(spark: SparkSession, plan: Plan) -> None:
    computed = MadeUp(spark, {"a": A})
    assert values(frames(plan, computed).stream("small", 0)) == [1, 5]
    assert computed.asked == [("small", 0), ("a", 0)]
    read = MadeUp(spark, {"small": [(7, "z")]})
    assert values(frames(plan, read).stream("small", 0)) == [7]
    assert read.asked == [("small", 0)]


def test_a_frame_is_built_once(spark: SparkSession, plan: Plan) -> None:
    inputs = MadeUp(spark, {"a": A})
    made = frames(plan, inputs)
    assert made.stream("small", 0) is made.stream("small", 0)
    assert inputs.asked.count(("a", 0)) == 1


def test_a_mend_changes_what_an_operator_takes_in_and_nothing_before_it(
    spark: SparkSession, plan: Plan
) -> None:
    mends = {"small": lambda df: df.filter("n <> 5")}
    made = frames(plan, MadeUp(spark, {"a": A}), Strategy(mends=mends))
    assert values(made.stream("small", 0)) == [1]
    assert values(made.stream("a", 0)) == [1, 5, 20]


def test_a_limit_goes_on_where_committed_epochs_ended(spark: SparkSession, plan: Plan) -> None:
    level = plan.placement.level["top"]
    rows = {"sorted": [(1, "x"), (2, "x"), (3, "x"), (4, "x")]}
    for passed, left in (((0, 0), 3), ((2, 2), 1), ((9, 3), 0)):
        made = frames(plan, MadeUp(spark, rows, passed), level=level)
        assert made.stream("top", level).count() == left


def test_few_rows_are_sent_to_the_build_side_and_join_the_same(spark: SparkSession, plan: Plan) -> None:
    rows = {"a": A, "b": [(0, "x"), (0, "z")]}
    joined = {
        few: frames(plan, MadeUp(spark, rows), Strategy(few=few)).stream("joined", 0) for few in (False, True)
    }
    assert values(joined[False]) == values(joined[True]) == [1]
    plans = {few: df._jdf.queryExecution().analyzed().toString() for few, df in joined.items()}  # type: ignore[operator]
    assert ["broadcast" in plans[few] for few in (False, True)] == [False, True]


def test_a_build_side_comes_from_the_strategy_and_is_computed_only_if_that_asks(
    spark: SparkSession, plan: Plan
) -> None:
    kept = spark.createDataFrame([("y",)], "k string")
    inputs = MadeUp(spark, {"a": A})
    made = frames(plan, inputs, Strategy(build_side=lambda key, make, by: kept))
    assert values(made.stream("joined", 0)) == [5]
    assert not [name for name, _ in inputs.asked if name in ("b", "keys")]
