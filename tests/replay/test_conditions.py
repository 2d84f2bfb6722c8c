"""Conditions in SQL over what an operator takes or gives, against plain Spark's answer to the same question."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
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


FILES, EACH = 2, 6
ORDERS = [(i, i * 5 % 7) for i in range(FILES * EACH)]
WINDOW = "row_number() OVER (PARTITION BY oc ORDER BY id)"
JOINS = {
    "inner": ("oc <> cid", "oc <> cid AND id > 5", "name = 'n9'"),
    "left": ("cid IS NULL AND id > 3",),
    "right": ("id IS NULL", "id % 2 = 1 AND oc = cid"),
    # the conditions on semi and anti joins name columns of the tuples only
    "semi": ("oc > 3",),
    "anti": ("oc > 3",),
    "cross": ("oc = cid AND lim > 5",),
    "stored": ("lim + oc = 9",),
    "pruned": ("lim = 8",),
}
AT_THE_END = {
    "window": ("place = 2", "place = 2 AND oc = 9"),
    "full": ("cid IS NULL", "id IS NULL AND cid = 9", "cid = oc AND name = 'n9'"),
}
CASES = [(kind, condition) for kind, conditions in JOINS.items() for condition in conditions]


def key_of(kind: str) -> str:
    """The key of the side whose tuples flow, in their order."""
    return "cid" if kind == "right" else "id"


class Made:
    """Two recordings with an operator of each kind, under its name, and what plain Spark says of the same rows."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir()
        for i in range(FILES):
            ids, ocs = zip(*ORDERS[i * EACH : (i + 1) * EACH], strict=True)
            table = pa.table({"id": ids, "oc": ocs})
            # row groups make the files larger than the customers, which are then what a join holds
            pq.write_table(table, folder / "in" / f"{i}.parquet", row_group_size=1)
        flowing_customers = ("right", "full", "stored")  # which need epochs of their own
        others = (
            kind for kind in (*JOINS, *AT_THE_END, "aggregate", "inside") if kind not in flowing_customers
        )
        self._pasts: dict[str, sv.Past] = {}
        self._record(tuple(others))
        self._record(flowing_customers)
        self._answers()

    def _record(self, kinds: tuple[str, ...]) -> None:
        flow = sv.Workflow("conditions")
        orders = flow.read.parquet(str(self.folder / "in"), name="orders")
        customers = flow.values("cid int, name string, lim int", CUSTOMERS, name="customers")
        for kind in kinds:
            self._build(orders, customers, kind).sink("S" if kind == "inner" else f"S {kind}")
        run = flow.run(spark=self.spark, record=self.folder / "runs", progress=False, epoch_bytes=1)
        past = sv.open(run.recording, spark=self.spark)
        self._pasts |= dict.fromkeys(kinds, past)

    def past(self, operator: str) -> sv.Past:
        """The recording in which there is such an operator."""
        return self._pasts.get(operator, self._pasts["inner"])

    def close(self) -> None:
        for past in set(self._pasts.values()):
            past.close()

    def _build(self, orders: sv.Frame, customers: sv.Frame, kind: str) -> sv.Frame:
        if kind == "window":
            return orders.withColumn("place", F.expr(WINDOW), name=kind)
        if kind == "aggregate":
            return orders.groupBy("oc").agg(F.expr("sum(id) AS total"), name=kind)
        if kind == "inside":
            names = customers.select("lim", F.expr("cid AS other"), name="names")
            both = customers.join(names, "lim", name=kind)
            return orders.join(both, F.expr("oc = cid"), build="right", name="outside")
        stored = customers.apply(Stored(), name="stored_customers") if kind == "stored" else customers
        made = joined(orders, customers, stored, kind, name=kind)
        return made.select("id", name="narrow") if kind == "pruned" else made

    def _answers(self) -> None:
        """Ask plain Spark all questions at once: of each row its key, and which conditions it meets."""
        orders = self.spark.read.parquet(str(self.folder / "in"))
        customers = self.spark.createDataFrame(CUSTOMERS, "cid int, name string, lim int")
        parts = []
        for kind, conditions in (JOINS | AT_THE_END).items():
            if kind == "window":
                plain = orders.withColumn("place", F.expr(WINDOW))
            else:
                plain = joined(orders, customers, customers, kind)
            met = F.array(*map(F.expr, conditions))
            if kind in ("semi", "anti"):  # asked of each tuple, whether they give it or not
                parts.append(orders.select(F.lit(kind), key_of(kind), met, F.lit(False)))
                met = F.array(F.lit(False))
            parts.append(plain.select(F.lit(kind), key_of(kind), met, F.lit(True)))
        self._rows = [tuple(row) for row in reduce(DataFrame.unionAll, parts).collect()]

    def meeting(self, kind: str, condition: str) -> list[int | None]:
        """The keys of the rows that meet a condition."""
        place = (JOINS | AT_THE_END)[kind].index(condition)
        return [key for of, key, met, _ in self._rows if of == kind and met[place]]

    def given(self, kind: str, key: int) -> list[int]:
        """The key of a tuple, as often as there are rows that an operator gives for it."""
        return [found for of, found, _, given in self._rows if given and (of, found) == (kind, key)]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    found = Made(spark, tmp_path_factory.mktemp("conditions"))
    yield found
    found.close()


@pytest.mark.parametrize(("kind", "condition"), CASES)
def test_a_join_is_asked_over_the_columns_of_both_sides(made: Made, kind: str, condition: str) -> None:
    key = key_of(kind)
    first = min(made.meeting(kind, condition), default=None)
    moment = made.past(kind).first(kind, condition)
    assert (moment and moment.last.row[key]) == first
    if moment is not None:
        assert [r[key] for r in moment.last.outputs] == made.given(kind, first)


@pytest.mark.parametrize("condition", AT_THE_END["window"])
def test_what_a_window_gives_holds_from_its_end_on(made: Made, condition: str) -> None:
    moment = made.past("window").first("window", condition)
    assert (moment is not None) == bool(made.meeting("window", condition))
    if moment is not None:
        assert not moment.pending("window")  # all of its input is taken
        assert moment.epoch == FILES - 1


@pytest.mark.parametrize("condition", AT_THE_END["full"])
def test_a_full_join_is_asked_over_its_rows_at_its_end(made: Made, condition: str) -> None:
    moment = made.past("full").first("full", condition)
    assert (moment is not None) == bool(made.meeting("full", condition))
    assert moment is None or not moment.pending("full")


def test_an_aggregate_is_asked_over_its_groups_then_over_its_tuples(made: Made) -> None:
    assert (
        made.past("aggregate").first("aggregate", "total > 9").last.row["id"] == 9
    )  # 2 and 9 have the same oc
    assert made.past("aggregate").first("aggregate", "id = 6").last.row == {"id": 6, "oc": 2}


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
    with pytest.raises(TimeTravelError, match=said) as caught:
        made.past(operator).first(operator, condition)
    assert "__sv_" not in str(caught.value)
    if "got '" in said:
        assert caught.value.hint


def test_a_log_takes_the_columns_of_both_sides(made: Made) -> None:
    table = made.past("inner").log("inner", "oc * 100 + cid", where="name <> 'n0'")
    near = [(oc, cid) for _, oc in ORDERS for cid, *_ in CUSTOMERS if 0 <= oc - cid <= 1]
    assert sorted(table["value"].to_pylist()) == sorted(oc * 100 + cid for oc, cid in near if cid != 0)
    with pytest.raises(TimeTravelError, match="got 'nope'"):
        made.past("inner").log("inner", "nope")
    with pytest.raises(TimeTravelError, match="when its input has ended"):
        made.past("window").log("window", "place")


def test_a_watch_on_a_join_marks_the_tuples_whose_rows_meet_it(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("watched")
    # The run waits at its first tuple until the watch is set.
    gate = flow.read.parquet(numbers(tmp_path, 5)).apply(Gated(str(tmp_path), stop=0), name="gate")
    orders = gate.selectExpr("int(x) AS id", "int(x) AS oc", name="orders")
    customers = flow.values("cid int, name string", [(k, f"n{k}") for k in (0, 1, 3)], name="customers")
    orders.join(customers, F.expr("oc >= cid"), "inner", name="J", build="right").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs")
    with pytest.raises(TimeTravelError, match="got 'nope'"):
        run.watch("J", "nope > 1")
    run.watch("J", "oc - cid = 1")
    (tmp_path / "go").touch()
    run.wait(progress=False)
    past = sv.open(run.recording, spark=spark)
    wanted = {i for i in range(5) for k in (0, 1, 3) if i - k == 1}
    found = [past.jump(i).last.row["id"] for i in past.interactions]
    assert sorted(found) == sorted(wanted)
