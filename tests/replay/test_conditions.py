"""Conditions in SQL over what an operator takes or gives, against plain Spark's answer to the same question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.runtime.steered import Gated, numbers

import samovar as sv
from samovar.errors import TimeTravelError

NEAR = "oc >= cid AND oc - cid <= 1"
CUSTOMERS = [(k, f"n{k}", k * 2) for k in (0, 1, 3, 4, 9)]


class Stored(sv.Operator):
    """Its rows cannot be computed again: a join stores what it gives before it probes."""

    output = "cid int, name string, lim int"
    n = sv.ValueState(0)

    def process(self, row, port=0):
        self.n += 1
        yield row


def joined(orders: Any, customers: Any, stored: Any, kind: str, **named: str) -> Any:
    """A join over Samovar's frames or Spark's DataFrames."""
    if kind == "cross":
        return orders.crossJoin(customers, **named)
    how = {"stored": "inner", "pruned": "left"}.get(kind, kind)
    return orders.join(stored if kind == "stored" else customers, F.expr(NEAR), how, **named)


class Made:
    """Small recordings of one join each, and the same rows in plain Spark."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir()
        for i in range(3):
            ids = list(range(i * 4, i * 4 + 4))
            table = pa.table({"id": ids, "oc": [x * 5 % 7 for x in ids]})
            pq.write_table(table, folder / "in" / f"{i}.parquet")
        self.orders = spark.read.parquet(str(folder / "in"))
        self.customers = spark.createDataFrame(CUSTOMERS, "cid int, name string, lim int")
        self.pasts: dict[str, sv.Past] = {}

    def plain(self, kind: str) -> DataFrame:
        return joined(self.orders, self.customers, self.customers, kind)

    def past(self, kind: str) -> sv.Past:
        """A run in three epochs: its operator of that name is a join, a window, an aggregate or in a build side."""
        if kind not in self.pasts:
            flow = sv.Workflow("conditions")
            self._build(flow, flow.read.parquet(str(self.folder / "in"), name="orders"), kind).sink("S")
            run = flow.run(spark=self.spark, record=self.folder / "runs", progress=False, epoch_bytes=1)
            self.pasts[kind] = sv.open(run.recording, spark=self.spark)
        return self.pasts[kind]

    def _build(self, flow: sv.Workflow, orders: sv.Frame, kind: str) -> sv.Frame:
        if kind == "window":
            place = F.expr("row_number() OVER (PARTITION BY oc ORDER BY id)")
            return orders.withColumn("place", place, name=kind)
        if kind == "aggregate":
            return orders.groupBy("oc").agg(F.expr("sum(id) AS total"), name=kind)
        customers = flow.values("cid int, name string, lim int", CUSTOMERS, name="customers")
        if kind == "inside":
            names = customers.select("lim", F.expr("cid AS other"), name="names")
            both = customers.join(names, "lim", name=kind)
            return orders.join(both, F.expr("oc = cid"), build="right", name="outside")
        stored = customers.apply(Stored(), name="stored_customers") if kind == "stored" else customers
        made = joined(orders, customers, stored, kind, name=kind)
        return made.select("id", name="narrow") if kind == "pruned" else made


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    found = Made(spark, tmp_path_factory.mktemp("conditions"))
    yield found
    for past in found.pasts.values():
        past.close()


CASES = [
    ("inner", "oc <> cid"),
    ("inner", "oc <> cid AND id > 5"),
    ("inner", "name = 'n9'"),
    ("left", "cid IS NULL AND id > 3"),
    ("right", "id IS NULL"),
    ("right", "id % 2 = 1 AND oc = cid"),
    ("semi", "oc > 3"),
    ("anti", "oc > 3"),
    ("cross", "oc = cid AND lim > 5"),
    ("stored", "lim + oc = 9"),
    ("pruned", "lim = 8"),
]


@pytest.mark.parametrize(("kind", "condition"), CASES)
def test_a_join_is_asked_over_the_columns_of_both_sides(made: Made, kind: str, condition: str) -> None:
    key = "cid" if kind == "right" else "id"  # the side whose tuples flow, in their order
    # the conditions on semi and anti joins name columns of the tuples only
    source = made.orders if kind in ("semi", "anti") else made.plain(kind)
    first = source.filter(condition).orderBy(key).select(key).first()
    moment = made.past(kind).first(kind, condition)
    assert (moment and moment.last.row[key]) == (first and first[0])
    if moment is not None:
        rows = made.plain(kind).filter(f"{key} = {first[0]}").select(key).collect()
        assert [r[key] for r in moment.last.outputs] == [r[0] for r in rows]


@pytest.mark.parametrize("condition", ["place = 2", "place = 2 AND oc = 9"])
def test_what_a_window_gives_holds_from_its_end_on(made: Made, condition: str) -> None:
    window = made.orders.selectExpr("*", "row_number() OVER (PARTITION BY oc ORDER BY id) AS place")
    moment = made.past("window").first("window", condition)
    assert (moment is not None) == (window.filter(condition).count() > 0)
    if moment is not None:
        assert not moment.pending("window")  # all of its input is taken
        assert moment.epoch == 2


@pytest.mark.parametrize("condition", ["cid IS NULL", "id IS NULL AND cid = 9", "cid = oc AND name = 'n9'"])
def test_a_full_join_is_asked_over_its_rows_at_its_end(made: Made, condition: str) -> None:
    moment = made.past("full").first("full", condition)
    assert (moment is not None) == (made.plain("full").filter(condition).count() > 0)
    assert moment is None or not moment.pending("full")


def test_an_aggregate_is_asked_over_its_groups_then_over_its_tuples(made: Made) -> None:
    past = made.past("aggregate")
    assert past.first("aggregate", "total > 9").last.row["id"] == 9  # 2 and 9 have the same oc
    assert past.first("aggregate", "id = 6").last.row == {"id": 6, "oc": 2}


@pytest.mark.parametrize(
    ("operator", "condition", "said"),
    [
        ("inner", "nme = 'n3'", r"takes \(id, oc\) or gives \(id, oc, cid, name, lim\), got 'nme'"),
        ("semi", "cid = 3", r"takes \(id, oc\), got 'cid'"),
        ("window", "plce = 2", r"got 'plce'"),
        ("aggregate", "x = 2", r"takes \(id, oc\) or gives \(oc, total\), got 'x'"),
        ("S", "nope", r"got 'nope'"),
        ("inner", "oc >", r"cannot be evaluated"),
        ("inner", "abs(name, oc) > 3", r"cannot be evaluated"),
        ("orders", "oc > 3", r"'orders' is a source"),
        ("inside", "lim > 3", r"'inside' is read whole as the build side of 'outside'"),
    ],
)
def test_what_cannot_be_asked_is_refused(made: Made, operator: str, condition: str, said: str) -> None:
    past = made.past(operator if operator not in ("S", "orders") else "inner")
    with pytest.raises(TimeTravelError, match=said) as caught:
        past.first(operator, condition)
    assert "__sv_" not in str(caught.value)
    if "got '" in said:
        assert caught.value.hint


def test_a_log_takes_the_columns_of_both_sides(made: Made) -> None:
    past = made.past("inner")
    table = past.log("inner", "oc * 100 + cid", where="name <> 'n0'")
    rows = made.plain("inner").filter("name <> 'n0'").selectExpr("oc * 100 + cid AS v").collect()
    assert sorted(table["value"].to_pylist()) == sorted(r.v for r in rows)
    with pytest.raises(TimeTravelError, match="got 'nope'"):
        past.log("inner", "nope")
    with pytest.raises(TimeTravelError, match="when its input has ended"):
        made.past("window").log("window", "place")


def test_a_watch_on_a_join_marks_the_tuples_whose_rows_meet_it(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("watched")
    # The run waits at its first tuple until the watch is set.
    gate = flow.read.parquet(numbers(tmp_path, 10)).apply(Gated(str(tmp_path), stop=0), name="gate")
    orders = gate.selectExpr("int(x) AS id", "int(x % 5) AS oc", name="orders")
    customers = flow.values("cid int, name string", [(k, f"n{k}") for k in (0, 1, 3)], name="customers")
    orders.join(customers, F.expr("oc >= cid"), "inner", name="J", build="right").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs")
    with pytest.raises(TimeTravelError, match="got 'nope'"):
        run.watch("J", "nope > 1")
    run.watch("J", "oc - cid = 1")
    (tmp_path / "go").touch()
    run.wait(progress=False)
    past = sv.open(run.recording, spark=spark)
    wanted = {i for i in range(10) for k in (0, 1, 3) if i % 5 - k == 1}
    found = [past.jump(i).last.row["id"] for i in past.interactions]
    assert sorted(found) == sorted(wanted)
