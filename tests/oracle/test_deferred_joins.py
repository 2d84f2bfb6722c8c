"""Joins that wait behind a stash: results as plain Spark gives them, and a past as exact as any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE, assert_same, epoch_sizes, run_flow, write_files

import samovar as sv
from samovar.compile import levels
from samovar.record.store import Recording

ITEMS, ORDERS, CUSTOMERS = 400, 60, 25
Frames = dict[str, Any]


class Total(sv.Operator):
    """The sum of prices so far, in the order of the items."""

    output = "item bigint, name string, total bigint"
    total = sv.ValueState(0)

    def process(self, row: dict[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        self.total += row["price"]
        yield {"item": row["item"], "name": row["name"], "total": self.total}


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins are deferred however small their sides are."""
    monkeypatch.setattr(levels, "HEAVY", 0)
    monkeypatch.setattr(levels, "MANY", 0)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("deferred")
    tables = {
        "items": {
            "item": range(ITEMS),
            "o": [(7 * i) % ORDERS for i in range(ITEMS)],
            "price": [(i * i) % 101 for i in range(ITEMS)],
        },
        "orders": {
            "o": range(ORDERS),
            "day": [i % 10 for i in range(ORDERS)],
            "c": [i % 31 for i in range(ORDERS)],
        },
        "customers": {
            "c": range(CUSTOMERS),
            "name": [None if i == 3 else f"c{i % 9}" for i in range(CUSTOMERS)],
        },
    }
    return {name: write_files(folder / name, pa.table(t), 5) for name, t in tables.items()}


def sold(frames: Frames) -> Any:
    recent = frames["orders"].filter("day > 6")
    return frames["items"].join(recent, on="o").select("item", "price", "c")


def totals(frames: Frames) -> Any:
    named = sold(frames).join(frames["customers"], on="c")
    return named.groupBy("name").count().orderBy("name").limit(4)


def without_partners(frames: Frames) -> Any:
    return sold(frames).join(frames["customers"], on="c", how="left").selectExpr("item + 1 AS item", "name")


def unknown(frames: Frames) -> Any:
    return sold(frames).join(frames["customers"], on="c", how="anti")


def twice(frames: Frames) -> Any:
    """The stashed rows are also used by themselves."""
    rows = sold(frames)
    return rows.join(frames["customers"], on="c").select("item").union(rows.select("item"))


FLOWS: list[Callable[[Frames], Any]] = [totals, without_partners, unknown, twice]


@pytest.mark.parametrize("build", FLOWS, ids=lambda f: f.__name__)
def test_deferred_joins_give_what_plain_spark_gives(
    spark: SparkSession, shop: dict[str, str], tmp_path: Path, build: Callable[[Frames], Any]
) -> None:
    expected = build({name: spark.read.parquet(path) for name, path in shop.items()}).toArrow()
    for size in epoch_sizes():
        flow = sv.Workflow("deferred")
        build({name: flow.read.parquet(path, name=name) for name, path in shop.items()}).sink("S")
        run = run_flow(spark, flow, tmp_path / f"{size}", epoch_bytes=size)
        assert Recording(run.recording).sizes()["stash"] > 0
        assert_same(expected, run.result("S"), ordered=build is totals)


@pytest.mark.parametrize("size", [ONE_FILE, ALL_AT_ONCE], ids=["many epochs", "one epoch"])
def test_the_past_of_a_deferred_join_is_exact(
    spark: SparkSession, shop: dict[str, str], tmp_path: Path, size: int
) -> None:
    flow = sv.Workflow("deferred")
    frames = {name: flow.read.parquet(path, name=name) for name, path in shop.items()}
    named = sold(frames).join(frames["customers"], on="c", name="named")
    named.select("item", "price", "name").apply(Total(), name="total").sink("S")
    run = run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size)
    rows = run.result("S").sort_by("item").to_pylist()
    with sv.open(run.recording, spark=spark) as past:
        for at in (1, len(rows) // 2, len(rows)):
            moment = past.jump("total", tuples=at)
            assert moment.state("total")["total"] == rows[at - 1]["total"]
            assert moment.counters["named"].given >= at
        first = past.first("total", f"total > {rows[40]['total']}")
        assert first.state("total")["total"] == rows[41]["total"]
        assert first.step_back().state("total")["total"] == rows[40]["total"]
