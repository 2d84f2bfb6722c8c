"""Counters of every operator equal the numbers of rows that plain Spark counts, whatever way they were found."""

from __future__ import annotations

import random
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.choice import by_default
from tests.oracle.generate import random_program
from tests.oracle.operators import RunningByKey, Totals
from tests.oracle.support import epoch_sizes, run_flow, write_files
from tests.oracle.test_python_operators import ROWS, rows, table

import samovar as sv
from samovar.compile.counters import counted_apart, tallying
from samovar.compile.levels import Placement
from samovar.compile.plan import Plan
from samovar.compile.samples import is_drawn

A, B = rows("a"), rows("b", 7)
LOW = [r for r in A if r["n"] is not None and r["n"] < 6]
JOINED = [(one["tag"], two["tag"]) for one in LOW for two in B if one["k"] == two["k"] is not None]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("tables")
    return {"a": write_files(root / "a", table("a"), 2), "b": write_files(root / "b", table("b", 7), 1)}


def counters(run: Any) -> dict[str, tuple[int, int]]:
    return {o.name: (o.taken, o.given) for o in run.progress.operators}


def check_edges(flow: sv.Workflow, counted: dict[str, tuple[int, int]]) -> None:
    """What an operator took is what its inputs gave; what only samples are drawn from is not part of a run."""
    for op in flow.graph().ops.values():
        if op.inputs and op.name in counted and not is_drawn(op):
            given = sum(counted[up][1] for up in op.inputs)
            assert counted[op.name][0] == given, (
                f"{op.name} took {counted[op.name][0]}, its inputs gave {given}"
            )


@pytest.mark.parametrize("seed", by_default([3, 5, 11, 17, 29], [3, 11, 29]))
def test_counters_equal_the_rows_plain_spark_counts(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    rnd = random.Random(seed)
    program = random_program(rnd, spark, tmp_path, steps=6)
    counts = [df.groupBy().agg(F.lit(i), F.count("*")) for i, df in enumerate(program.plain)]
    wanted = [n for _, n in sorted(reduce(DataFrame.unionAll, counts).collect())]
    for size in epoch_sizes():
        flow = sv.Workflow("counting")
        frames = program.on_frames(flow)
        frames[-1].sink("S")
        counted = counters(run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size))
        for frame, n in zip(frames, wanted, strict=True):
            if frame._name in counted:
                assert counted[frame._name][1] == n, f"{frame._name}, epochs of {size}\n{program.text()}"
        check_edges(flow, counted)
        assert counted["S"][0] == wanted[-1]


def counted_flow(flow: sv.Workflow, data: dict[str, str]) -> None:
    """Operators whose counters come in different ways: from files, workers, deltas, consumers, a job of their own."""
    a = flow.read.parquet(data["a"], name="a")
    b = flow.read.parquet(data["b"], name="b")
    low = a.filter("n < 6", name="low")
    low.sink("low rows")
    low.select("k", "n", name="narrow").join(b.select("k", "tag", name="few"), on="k", name="joined").filter(
        "n > 100", name="none"
    ).select("tag", name="still none").sink("nothing")
    a.filter("1 = 2", name="never").groupBy("k").agg("count(*) AS n", name="groups of nothing").sink(
        "no groups"
    )
    sums = a.groupBy("k").agg("sum(n) AS s", name="sums")
    sums.filter("s > 5", name="large sums").sort("s", name="sorted").limit(2, name="top").sink("top sums")
    a.limit(4, name="four").filter("n > 0", name="of four").sink("first")
    a.selectExpr("tag", "explode(list) AS e", name="exploded").distinct(name="different").sink("elements")
    a.apply(Totals(), name="totals").filter("total > 10", name="late").sink("totals rows")
    a.apply(RunningByKey(), by="k", key_partitions=2, name="running").limit(3, name="three").sink(
        "three rows"
    )
    # the right side is optimised away: a left join that keeps nothing of it
    pairs = b.filter("n > 3", name="some b").select("k", name="keys").distinct(name="different keys")
    a.select("k", name="all keys").join(pairs, on="k", how="left", name="useless").distinct(
        name="again"
    ).sink("keys out")
    a.union(a.filter("n IS NULL", name="nulls"), name="both").sink("union rows")


def test_counters_come_out_right_however_they_are_found(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    different = sum(len(r["list"]) for r in A)  # of which no two are alike
    wanted = {
        "a": ROWS,
        "low": len(LOW),
        "narrow": len(LOW),
        "joined": len(JOINED),
        "none": 0,
        "still none": 0,
        "never": 0,
        "groups of nothing": 0,
        "sums": len({r["k"] for r in A}),
        "top": 2,
        "four": 4,
        "of four": sum((r["n"] or 0) > 0 for r in A[:4]),
        "exploded": different,
        "different": different,
        "totals": ROWS + 1,
        "running": ROWS + 2,
        "three": 3,
        "some b": sum(r["n"] is not None and r["n"] > 3 for r in B),
        "useless": ROWS,
        "both": ROWS + sum(r["n"] is None for r in A),
    }
    for size in epoch_sizes():
        flow = sv.Workflow("counting")
        counted_flow(flow, data)
        counted = counters(run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size))
        assert {n: counted[n][1] for n in wanted} == wanted, f"epochs of {size}"
        check_edges(flow, counted)


def test_aggregates_that_store_nothing_count_their_input_themselves(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    wanted = {
        "low": len(LOW),
        "sums": len({r["k"] for r in LOW}),
        "sorted": len({r["k"] for r in LOW}),
        "joined": len(JOINED),
        "whole": 1,
        "never": 0,
        "of nothing": 1,
        "some": sum(r["n"] is not None and r["n"] > 2 for r in A),
        "one": 1,
    }
    for size in epoch_sizes():
        flow = sv.Workflow("tallies")
        a, b = (flow.read.parquet(data[name], name=name) for name in ("a", "b"))
        low_rows = a.filter("n < 6", name="low")
        low_rows.groupBy("k").agg("sum(n) AS s", name="sums").sort("s", "k", name="sorted").sink("in order")
        both = low_rows.select("k", name="keys").join(b.select("k"), on="k", name="joined")
        both.groupBy().agg("count(1) AS n", name="whole").sink("all")
        a.filter("n < n", name="never").groupBy().agg("sum(n) AS s", name="of nothing").sink("nothing")
        some = a.filter("n > 2", name="some").groupBy("k").agg("max(n) AS m", name="largest")
        some.limit(1, name="one").sink("any")
        run = run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size)
        counted = counters(run)
        assert {n: counted[n][1] for n in wanted} == wanted, f"epochs of {size}"
        check_edges(flow, counted)
    plan = run._thread.context.plan
    found = tallying(plan, 0, plan.placement.levels - 1, frozenset())
    assert found == {"sums", "whole", "of nothing"}, "what a limit follows may not be read to its end"


@pytest.mark.parametrize(
    ("condition", "apart"),
    [
        ("n <= 6", True),
        ("n <> 6", True),
        ("n = 1 OR n > 2", True),
        ("NOT n = 1", True),
        ("n = 6", False),
        ("n IN (1, 2)", False),
        ("n BETWEEN 1 AND 2", False),
        ("n >= 1 AND n < 3", False),
        ("tag LIKE 'a%'", False),
        ("length(tag) > 2", False),
    ],
)
def test_a_job_of_its_own_counts_plain_filters_that_leave_many_rows(condition: str, apart: bool) -> None:
    flow = sv.Workflow("apart")
    flow.read.parquet("a", name="a").filter(condition, name="kept").sink("S")
    placement = Placement({}, {}, {}, {}, frozenset(), {}, frozenset(), 0)
    plan = Plan(flow.graph(), {}, placement, frozenset(), {}, {}, {}, frozenset(), {})
    assert counted_apart(plan, "kept") is apart
