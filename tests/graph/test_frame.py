"""Each Frame method adds the operator its PySpark namesake stands for; what is not supported says what to use."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from samovar.errors import NoEffect, NotAValue, UnsupportedMethod, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.frame import Frame
from samovar.graph.grouped import GroupedFrame
from samovar.graph.operators.base import Expr
from samovar.graph.pyspark_names import FRAME, GROUPED, READER, WRITER
from samovar.graph.reader import Reader
from samovar.graph.workflow import Workflow
from samovar.graph.writer import Writer


class FakeColumn:
    """Stands for a PySpark Column, which needs a session to exist."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"

    def cast(self, to: str) -> FakeColumn:
        return FakeColumn(f"CAST({self.text} AS {to})")

    def alias(self, name: str) -> FakeColumn:
        return FakeColumn(f"{self.text} AS {name}")

    def asc(self) -> FakeColumn:
        return FakeColumn(f"{self.text} ASC NULLS FIRST")

    def desc(self) -> FakeColumn:
        return FakeColumn(f"{self.text} DESC NULLS LAST")

    def __and__(self, other: FakeColumn) -> FakeColumn:
        return FakeColumn(f"({self.text} AND {other.text})")


def batches(rows: Any) -> Any:
    yield from rows


@pytest.fixture
def flow() -> Workflow:
    return Workflow("w")


@pytest.fixture
def frame(flow: Workflow) -> Frame:
    return flow.values("a int, b string", [(1, "x")], name="v")


def added(made: Frame) -> ops.Op:
    return made._flow._ops[made._name]


X = FakeColumn("x")
CASES: list[tuple[Callable[[Frame], Frame], ops.Op]] = [
    (lambda f: f.select("a", "b", name="n"), ops.Select(name="n", columns=("a", "b"))),
    (lambda f: f.select(["a", "b c"], name="n"), ops.Select(name="n", columns=("a", "`b c`"))),
    (lambda f: f.select("*", X, name="n"), ops.Select(name="n", columns=("*", "x"))),
    (lambda f: f.select("s.a", "s.*", name="n"), ops.Select(name="n", columns=("s.a", "s.*"))),
    (lambda f: f.select("größe", name="n"), ops.Select(name="n", columns=("`größe`",))),
    (lambda f: f.selectExpr("a + 1 AS c", name="n"), ops.Select(name="n", columns=("a + 1 AS c",))),
    (lambda f: f.selectExpr(["a", "b"], name="n"), ops.Select(name="n", columns=("a", "b"))),
    (lambda f: f[["a", "b"]], ops.Select(name="select_1", columns=("a", "b"))),
    (lambda f: f.filter("a > 1", name="n"), ops.Filter(name="n", condition="a > 1")),
    (lambda f: f.where("a > 1", name="n"), ops.Filter(name="n", condition="a > 1")),
    (lambda f: f.filter(condition=X), ops.Filter(name="filter_1", condition="x")),
    (lambda f: f[X], ops.Filter(name="filter_1", condition="x")),
    (lambda f: f.withColumn("c", "a + 1", name="n"), ops.WithColumns(name="n", columns={"c": "a + 1"})),
    (lambda f: f.withColumn(colName="c", col=X), ops.WithColumns(name="with_columns_1", columns={"c": "x"})),
    (
        lambda f: f.withColumns({"c": "1", "d": "2"}, name="n"),
        ops.WithColumns(name="n", columns={"c": "1", "d": "2"}),
    ),
    (lambda f: f.withColumnRenamed("a", "z", name="n"), ops.Rename(name="n", columns={"a": "z"})),
    (lambda f: f.withColumnsRenamed({"a": "z"}, name="n"), ops.Rename(name="n", columns={"a": "z"})),
    (lambda f: f.toDF("x", "y", name="n"), ops.ToDF(name="n", names=("x", "y"))),
    (lambda f: f.drop("a", X, name="n"), ops.Drop(name="n", columns=("a", "x"))),
    (lambda f: f.alias("t", name="n"), ops.Alias(name="n", alias="t")),
    (lambda f: f.dropna(name="n"), ops.DropNa(name="n")),
    (lambda f: f.dropna("all", 2, "a", name="n"), ops.DropNa(name="n", how="all", thresh=2, subset=("a",))),
    (lambda f: f.na.drop(subset=["a", "b"]), ops.DropNa(name="drop_na_1", subset=("a", "b"))),
    (lambda f: f.fillna(0, ["a"], name="n"), ops.FillNa(name="n", value=0, subset=("a",))),
    (lambda f: f.na.fill({"a": 0, "b": "x"}), ops.FillNa(name="fill_na_1", value={"a": 0, "b": "x"})),
    (lambda f: f.replace(1, 2, "a", name="n"), ops.Replace(name="n", pairs=((1, 2),), subset=("a",))),
    (lambda f: f.replace([1, 2], 3, name="n"), ops.Replace(name="n", pairs=((1, 3), (2, 3)))),
    (lambda f: f.replace([1, 2], [3, 4], name="n"), ops.Replace(name="n", pairs=((1, 3), (2, 4)))),
    (lambda f: f.na.replace({"x": None}), ops.Replace(name="replace_1", pairs=(("x", None),))),
    (lambda f: f.distinct(name="n"), ops.Distinct(name="n")),
    (lambda f: f.dropDuplicates(name="n"), ops.DropDuplicates(name="n")),
    (lambda f: f.drop_duplicates(["a"], name="n"), ops.DropDuplicates(name="n", subset=("a",))),
    (lambda f: f.orderBy("a", "b", name="n"), ops.Sort(name="n", keys=("a", "b"))),
    (lambda f: f.sort(["a", "b"], ascending=False), ops.Sort(name="sort_1", keys=("a DESC", "b DESC"))),
    (lambda f: f.orderBy("a", "b", ascending=[True, 0]), ops.Sort(name="sort_1", keys=("a", "b DESC"))),
    (lambda f: f.orderBy(X, ascending=False), ops.Sort(name="sort_1", keys=("x DESC NULLS LAST",))),
    (lambda f: f.limit(3, name="n"), ops.Limit(name="n", n=3)),
    (lambda f: f.limit(num=3), ops.Limit(name="limit_1", n=3)),
    (lambda f: f.offset(3, name="n"), ops.Limit(name="n", offset=3)),
    (lambda f: f.sample(0.5, name="n"), ops.Sample(name="n", fraction=0.5)),
    (lambda f: f.sample(0.5, 7, name="n"), ops.Sample(name="n", fraction=0.5, seed=7)),
    (lambda f: f.sample(0.5, seed=7, name="n"), ops.Sample(name="n", fraction=0.5, seed=7)),
    (lambda f: f.sample(False, 0.5, 7, name="n"), ops.Sample(name="n", fraction=0.5, seed=7)),
    (lambda f: f.sample(fraction=0.5, seed=7, name="n"), ops.Sample(name="n", fraction=0.5, seed=7)),
    (
        lambda f: f.sample(True, 1.5, 7, name="n"),
        ops.Sample(name="n", fraction=1.5, seed=7, replacement=True),
    ),
    (lambda f: f.agg("count(*) AS n", name="n"), ops.Aggregate(name="n", aggregates=("count(*) AS n",))),
    (
        lambda f: f.groupBy("b").agg("sum(a) AS s", X, name="n"),
        ops.Aggregate(name="n", keys=("b",), aggregates=("sum(a) AS s", "x")),
    ),
    (
        lambda f: f.groupby(["b", X]).agg({"a": "max", "*": "count"}, name="n"),
        ops.Aggregate(name="n", keys=("b", "x"), aggregates=("max(a) AS `max(a)`", "count(1) AS `count(1)`")),
    ),
    (
        lambda f: f.groupBy("b").count(name="n"),
        ops.Aggregate(name="n", keys=("b",), aggregates=("count(1) AS count",)),
    ),
    (
        lambda f: f.groupBy("b").sum("a", "x y", name="n"),
        ops.Aggregate(name="n", keys=("b",), aggregates=("sum(a) AS `sum(a)`", "sum(`x y`) AS `sum(x y)`")),
    ),
    (
        lambda f: f.rollup("b").mean("a", name="n"),
        ops.Aggregate(name="n", keys=("b",), aggregates=("avg(a) AS `avg(a)`",), grouping="rollup"),
    ),
    (
        lambda f: f.cube("b").pivot("a", [1, 2]).min("a", name="n"),
        ops.Aggregate(
            name="n",
            keys=("b",),
            aggregates=("min(a) AS `min(a)`",),
            grouping="cube",
            pivot="a",
            pivot_values=(1, 2),
        ),
    ),
    (lambda f: f.mapInArrow(batches, "a int", name="n"), ops.Batches(name="n", schema="a int")),
    (
        lambda f: f.mapInPandas(batches, "a int", False, name="n"),
        ops.Batches(name="n", schema="a int", form="pandas"),
    ),
    (lambda f: f.transform(lambda g, n: g.limit(n), 4), ops.Limit(name="limit_1", n=4)),
    (
        lambda f: (
            f.write.mode("overwrite").partitionBy("b").option("compression", "zstd").parquet("o/", name="n")
        ),
        ops.Write(
            name="n",
            format="parquet",
            path="o/",
            mode="overwrite",
            options={"compression": "zstd"},
            partition_by=("b",),
        ),
    ),
    (
        lambda f: f.write.csv(Path("o"), "append", header=True, sep=None),
        ops.Write(name="write_1", format="csv", path="o", mode="append", options={"header": "true"}),
    ),
    (
        lambda f: f.write.format("json").save("o", mode="ignore", name="n"),
        ops.Write(name="n", format="json", path="o", mode="ignore"),
    ),
]


@pytest.mark.parametrize(("method", "expected"), CASES)
def test_a_method_adds_its_operator(frame: Frame, method: Callable[[Frame], Frame], expected: ops.Op) -> None:
    made = added(method(frame))
    assert type(made) is type(expected)
    assert made == type(expected)(
        **{f: getattr(expected, f) for f in expected.__struct_fields__} | {"inputs": ("v",)}
    )


TWO: list[tuple[Callable[[Frame, Frame], Frame], dict[str, Any]]] = [
    (lambda f, g: f.join(g, "a"), {"on": ("a",), "how": "inner", "condition": None}),
    (lambda f, g: f.join(g, "order id"), {"on": ("order id",)}),
    (lambda f, g: f.join(g, ["a", "b"], "left"), {"on": ("a", "b"), "how": "left"}),
    (lambda f, g: f.join(g, on="a", how="LEFT_ANTI"), {"on": ("a",), "how": "anti"}),
    (lambda f, g: f.join(g, "v.a = w.a", "outer"), {"on": None, "condition": "v.a = w.a", "how": "full"}),
    (lambda f, g: f.join(g, X, build="left"), {"condition": "x", "build": "left"}),
    (lambda f, g: f.join(g, [X, FakeColumn("y")]), {"condition": "(x AND y)"}),
    (lambda f, g: f.join(g), {"how": "cross", "on": None, "condition": None}),
    (lambda f, g: f.join(g, []), {"how": "cross", "on": None, "condition": None}),
    (lambda f, g: f.crossJoin(g), {"how": "cross"}),
    (lambda f, g: f.union(g), {"by_name": False}),
    (lambda f, g: f.unionAll(g), {"by_name": False}),
    (lambda f, g: f.unionByName(g, allowMissingColumns=True), {"by_name": True, "allow_missing": True}),
    (lambda f, g: f.intersect(g), {"kind_of_set": "intersect"}),
    (lambda f, g: f.intersectAll(g), {"kind_of_set": "intersectAll"}),
    (lambda f, g: f.subtract(g), {"kind_of_set": "subtract"}),
    (lambda f, g: f.exceptAll(g), {"kind_of_set": "exceptAll"}),
]


@pytest.mark.parametrize(("method", "expected"), TWO)
def test_a_method_of_two_frames_connects_both(
    flow: Workflow, frame: Frame, method: Callable[[Frame, Frame], Frame], expected: dict[str, Any]
) -> None:
    made = added(method(frame, flow.values("a int", [(1,)], name="w")))
    assert made.inputs == ("v", "w")
    assert {k: getattr(made, k) for k in expected} == expected


READS: list[tuple[Callable[[Workflow], Frame], ops.Op]] = [
    (lambda w: w.read.parquet("a", "b", name="n"), ops.Read(name="n", format="parquet", path=("a", "b"))),
    (
        lambda w: w.read.parquet(["a", Path("b")], name="n"),
        ops.Read(name="n", format="parquet", path=("a", "b")),
    ),
    (
        lambda w: w.read.csv("a", "x int", header=True, sep=";", quote=None),
        ops.Read(
            name="read_csv_1",
            format="csv",
            path=("a",),
            schema="x int",
            options={"header": "true", "sep": ";"},
        ),
    ),
    (lambda w: w.read.json(["a", "b"]), ops.Read(name="read_json_1", format="json", path=("a", "b"))),
    (lambda w: w.read.text("a", name="n"), ops.Read(name="n", format="text", path=("a",))),
    (lambda w: w.read.orc("a", name="n"), ops.Read(name="n", format="orc", path=("a",))),
    (
        lambda w: w.read.format("xml").schema("a int").option("rowTag", "r").options(n=1).load("p", name="n"),
        ops.Read(name="n", format="xml", path=("p",), schema="a int", options={"rowTag": "r", "n": "1"}),
    ),
    (lambda w: w.read.table("t"), ops.Table(name="table_1", table="t")),
]


@pytest.mark.parametrize(("read", "expected"), READS)
def test_readers_add_sources(flow: Workflow, read: Callable[[Workflow], Frame], expected: ops.Op) -> None:
    assert added(read(flow)) == expected


def test_a_reader_used_twice_does_not_share_options(flow: Workflow) -> None:
    reader = flow.read.option("header", True)
    one = added(reader.csv("a"))
    reader.option("sep", ";").csv("b")
    assert one.options == {"header": "true"}  # type: ignore[attr-defined]


def test_sink_gives_the_frame_back(frame: Frame) -> None:
    assert frame.sink("S") is frame
    assert frame._flow._ops["S"] == ops.Sink(name="S", inputs=("v",))


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f.repartition(4, "a"),
        lambda f: f.coalesce(1),
        lambda f: f.hint("broadcast"),
        lambda f: f.cache(),
        lambda f: f.persist(),
        lambda f: f.unpersist(),
    ],
)
def test_hints_to_spark_change_nothing_and_say_so(frame: Frame, call: Callable[[Frame], Frame]) -> None:
    with pytest.warns(NoEffect, match=r"\) changes nothing on a Frame: ") as said:
        assert call(frame) is frame
    assert [w.filename for w in said] == [__file__]


@pytest.mark.parametrize(
    ("use", "hint"),
    [
        (lambda f: bool(f), "frame is not None"),
        (lambda f: f and 1, "num_rows"),
        (lambda f: list(f), "to_pylist"),
        (lambda f: next(iter(f)), "YourOperator"),
        (lambda f: "a" in f, "frame.columns"),
        (lambda f: len(f), r"count\(\*\)"),
    ],
)
def test_a_plan_is_not_a_value(frame: Frame, use: Callable[[Frame], Any], hint: str) -> None:
    with pytest.raises(NotAValue, match=f"A Frame is a plan(.|\n)*{hint}") as caught:
        use(frame)
    assert isinstance(caught.value, TypeError)


def test_a_frame_handed_to_a_function_of_dataframes_says_what_to_do(frame: Frame) -> None:
    with pytest.raises(UnsupportedMethod, match=r"not a DataFrame(.|\n)*build='right'"):
        frame._jdf  # noqa: B018  what F.broadcast(frame) asks for


@pytest.mark.parametrize(
    ("pyspark", "ours", "table"),
    [
        ("DataFrame", Frame, FRAME),
        ("GroupedData", GroupedFrame, GROUPED),
        ("DataFrameReader", Reader, READER),
        ("DataFrameWriter", Writer, WRITER),
    ],
)
def test_every_name_of_pyspark_is_there_or_has_a_hint(pyspark: str, ours: type, table: Any) -> None:
    theirs = {n for n in dir(getattr(importlib.import_module("pyspark.sql"), pyspark)) if n[0] != "_"}
    own = {n for n in dir(ours) if n[0] != "_"}
    assert theirs - own - set(table) == set(), "neither a method here nor in the table of hints"
    assert set(table) & own == set(), "a method here needs no hint"
    assert set(table) - theirs == set(), "no name of PySpark's"


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda f: f.unpivot, "stack"),
        (lambda f: f.toJSON, "to_json"),
        (lambda f: f.exists, "left_semi"),
        (lambda f: f.stat, "corr"),
        (lambda f: f.to, "cast"),
        (lambda f: f.groupBy("a").applyInPandas, "by='key'"),
        (lambda f: f.write.saveAsTable, "parquet"),
        (lambda f: f._flow.read.jdbc, "url="),
        (lambda f: f.write.parquett, "Did you mean 'parquet'"),
        (lambda f: f.groupBy("a").aggg, "Did you mean 'agg'"),
        (lambda f: f._flow.read.cvs, "Did you mean 'csv'"),
    ],
)
def test_a_name_of_pyspark_that_is_missing_has_a_hint_of_its_own(
    frame: Frame, ask: Callable[[Frame], Any], hint: str
) -> None:
    with pytest.raises(UnsupportedMethod, match=f"(.|\n)*Hint: .*{hint}"):
        ask(frame)


def test_a_column_is_carried_under_its_text(frame: Frame) -> None:
    made = added(frame.filter(X))
    assert isinstance(made.condition, Expr)  # type: ignore[attr-defined]
    assert made.condition.column is X  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["collect", "toPandas", "show", "count", "rdd", "writeStream"])
def test_what_would_run_spark_says_what_to_do_instead(frame: Frame, name: str) -> None:
    with pytest.raises(UnsupportedMethod, match=f"has no '{name}'(.|\n)*Instead"):
        getattr(frame, name)


def test_a_misspelt_method_gets_the_nearest_name(frame: Frame) -> None:
    with pytest.raises(UnsupportedMethod, match="Did you mean 'withColumn"):
        frame.withColum("a", "1")


def test_grouped_frames_say_what_to_use_too(frame: Frame) -> None:
    with pytest.raises(UnsupportedMethod, match="by="):
        frame.groupBy("a").applyInPandas(batches, "a int")
    with pytest.raises(UnsupportedMethod, match="Did you mean 'count'"):
        frame.groupBy("a").cout()


BAD: list[tuple[Callable[[Frame], Any], str]] = [
    (lambda f: f.dropna("some"), "how="),
    (lambda f: f.fillna(None), "to fill in, got None"),
    (lambda f: f.replace([1, 2], [3]), "Expected 2 values"),
    (lambda f: f.orderBy(), "at least one column"),
    (lambda f: f.orderBy("a", ascending=[True, False]), "Expected `ascending` for 1"),
    (lambda f: f.limit(-1), "0 or more"),
    (lambda f: f.offset(-1), "0 or more"),
    (lambda f: f.sample(2.0), "between 0 and 1"),
    (lambda f: f.sample(), "between 0 and 1"),
    (lambda f: f.sample(True, -0.5), "between 0 and 1"),
    (lambda f: f.join(f, "a", "lefft"), "Did you mean 'left'"),
    (lambda f: f.join(f, "a", build="both"), "build="),
    (lambda f: f.agg(), "at least one aggregate"),
    (lambda f: f.transform(lambda g: 5), "to return a Frame, got int"),
    (lambda f: f.write.mode("maybe"), "mode of append"),
    (lambda f: f.write.save("o", format="delta"), "format of parquet"),
    (lambda f: f.mapInArrow(batches, 5), "schema as DDL"),
    (lambda f: f._flow.read.frame(f), "Expected a PySpark DataFrame, got Frame"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_arguments_are_refused(frame: Frame, call: Callable[[Frame], Any], message: str) -> None:
    with pytest.raises(WorkflowError, match=message):
        call(frame)


def test_copying_and_pickling_do_not_trip_over_unknown_attributes(frame: Frame) -> None:
    assert copy.copy(frame)._name == "v"
    assert copy.deepcopy(frame)._flow is not frame._flow
    assert pickle.loads(pickle.dumps(frame))._flow._ops == frame._flow._ops
    assert pickle.loads(pickle.dumps(frame.groupBy("a")))._keys == ("a",)
    assert not hasattr(frame, "__array__")


def test_an_attribute_error_inside_a_property_is_shown_not_hidden(
    frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(flow: Workflow, name: str) -> Any:
        raise AttributeError("inner trouble")

    monkeypatch.setattr(Workflow, "schema_of", broken)
    with pytest.raises(AttributeError, match="inner trouble"):
        _ = frame.columns
