"""Columns, functions, SQL texts and types that do not fit, in every kind of operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.bad_input.support import flow_of, payments, refused

import samovar as sv
from samovar.errors import SchemaProblem, UnsupportedMethod, WorkflowError


class Copy(sv.Operator):
    output = "id long, customer string"

    def process(self, row, port=0):
        yield row


UNKNOWN_COLUMN: dict[str, Callable[[sv.Frame], sv.Frame]] = {
    "select": lambda s: s.select("amout", name="X"),
    "selectExpr": lambda s: s.selectExpr("id", "amout * 2 AS twice", name="X"),
    "filter": lambda s: s.filter("amout > 1", name="X"),
    "qualified": lambda s: s.filter("src.amout > 1", name="X"),
    "groupBy": lambda s: s.groupBy("amout").agg("count(1) AS n", name="X"),
    "aggregate": lambda s: s.groupBy("customer").agg("sum(amout) AS total", name="X"),
    "sort": lambda s: s.orderBy("amout", name="X"),
    "by": lambda s: s.apply(Copy(), by="amout", name="X"),
    "dropDuplicates": lambda s: s.dropDuplicates(["amout"], name="X"),
    "withColumn": lambda s: s.withColumn("twice", "amout * 2", name="X"),
    "dropna": lambda s: s.dropna(subset=["amout"], name="X"),
    "fillna": lambda s: s.fillna(0.0, subset=["amout"], name="X"),
    "join on": lambda s: s.join(s.select("amount", name="o"), "amout", name="X"),
    "join condition": lambda s: s.join(s.selectExpr("amount AS b", name="o"), "amout = b", name="X"),
}


@pytest.mark.parametrize("kind", UNKNOWN_COLUMN)
def test_an_unknown_column_is_answered_with_the_nearest_name(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    UNKNOWN_COLUMN[kind](src).sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert error.operator == "X"
    assert "amout" in error.message
    assert error.hint == "Did you mean 'amount'?"
    assert not (tmp_path / "runs").exists()


def test_an_unknown_column_as_an_attribute_is_answered_with_the_nearest_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    _, src = flow_of(payments(tmp_path / "payments"))
    with pytest.raises(UnsupportedMethod) as caught:
        src.amout  # noqa: B018
    assert caught.value.hint == "Did you mean 'amount'?"


def test_a_number_that_is_no_columns_is_answered_with_the_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    _, src = flow_of(payments(tmp_path / "payments"))
    for use in (lambda: src.orderBy(9), lambda: src.groupBy(9), lambda: src[9]):
        with pytest.raises(WorkflowError, match=r"from 1 to (.|\n)*amount"):
            use()


def test_an_unknown_field_of_a_struct_is_answered_with_the_nearest_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.selectExpr("struct(amount) AS pay", name="pay").selectExpr("pay.amout", name="X").sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert (error.operator, error.hint) == ("X", "Did you mean 'amount'?")


@pytest.mark.parametrize(
    ("made", "near"),
    [
        (lambda s: s.selectExpr("uper(customer) AS c", name="X"), "upper"),
        (lambda s: s.filter("lenght(customer) > 1", name="X"), "length"),
        (lambda s: s.groupBy("customer").agg("summ(amount) AS t", name="X"), "sum"),
    ],
)
def test_an_unknown_function_is_answered_with_the_nearest_name(
    spark: SparkSession, tmp_path: Path, made: Callable[[sv.Frame], sv.Frame], near: str
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    made(src).sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert (error.operator, error.hint) == ("X", f"Did you mean '{near}'?")


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (lambda s: s.filter("amount > > 1", name="X"), ["    amount > > 1", "             ^"]),
        (lambda s: s.selectExpr("id", "upper(customer", name="X"), ["    upper(customer"]),
        (
            lambda s: s.withColumn("d", "case when amount > 1 then 2", name="X"),
            ["    case when amount > 1 then 2"],
        ),
        (lambda s: s.groupBy("customer").agg("sum(amount", name="X"), ["    sum(amount", "              ^"]),
    ],
)
def test_a_syntax_error_shows_the_text_and_the_place(
    spark: SparkSession, tmp_path: Path, made: Callable[[sv.Frame], sv.Frame], shown: list[str]
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    made(src).sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert error.operator == "X"
    lines = error.message.splitlines()
    assert all(line in lines for line in shown), error.message
    assert lines[-1].strip() == "^"


def test_an_expression_where_a_name_is_wanted_is_answered_with_what_to_use(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.select("amount * 2 AS twice", name="X").sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert "selectExpr" in str(error.hint)


def other(flow: sv.Workflow) -> sv.Frame:
    return flow.values("cust string, n int, list array<int>", [("c1", 1, [1])], name="other")


MISFITS: dict[str, tuple[Callable[[sv.Frame, sv.Frame], sv.Frame], str]] = {
    "join condition": (lambda s, o: s.join(o, "customer = list", name="X"), "ARRAY<INT>"),
    "join condition that is no condition": (lambda s, o: s.join(o, "amount AND n", name="X"), "DOUBLE"),
    "union of other width": (lambda s, o: s.union(o, name="X"), "number of columns"),
    "union of other types": (
        lambda s, o: s.select("customer", "qty", "id", name="t").union(o, name="X"),
        "id bigint / list array<int>",
    ),
    "unionByName": (lambda s, o: s.unionByName(o, name="X"), "allowMissingColumns"),
    "intersect": (lambda s, o: s.intersect(o, name="X"), "number of columns"),
    "filter that is no condition": (lambda s, o: s.filter("amount", name="X"), "amount double"),
    "types in an expression": (
        lambda s, o: s.selectExpr("items + amount AS x", name="X"),
        "items array<bigint>",
    ),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_types_that_do_not_fit_are_shown_side_by_side(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    made, said = MISFITS[kind]
    made(src, other(flow)).sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert error.operator == "X"
    assert said in str(error), str(error)
    assert error.hint
    assert not (tmp_path / "runs").exists()


def test_a_column_that_two_sides_have_is_called_ambiguous(spark: SparkSession, tmp_path: Path) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.join(src.select("customer", "amount", name="o"), "customer", name="J").select(
        "amount", name="X"
    ).sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert error.operator == "X"
    assert "got several" in error.message


@pytest.mark.parametrize("ddl", ["id lnog, b", "id long b string", "id long,"])
def test_an_output_that_is_no_schema_is_shown_with_the_place(
    spark: SparkSession, tmp_path: Path, ddl: str
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.apply(type("Copy", (Copy,), {"output": ddl})(), name="X").sink("S")
    error = refused(flow, tmp_path, SchemaProblem, spark=spark)
    assert error.operator == "X"
    assert ddl in error.message
    assert "types are Spark's" in str(error.hint)


class NoRow(sv.Operator):
    output = "id long"

    def process(self):
        return ()


class NoPort(sv.Operator):
    output = "id long"

    def process(self, row):
        return ()


class NoFinishPort(sv.Operator):
    output = "id long"

    def process(self, row, port=0):
        return ()

    def finish(self, a, b):
        return ()


class NoBatchPort(sv.Operator):
    output = "id long"

    def process_batch(self, batch):
        yield batch


@pytest.mark.parametrize(
    ("operator", "ports", "said"),
    [
        (NoRow(), 1, "process(self, row, port=0)"),
        (NoPort(), 2, "it has 2 input ports"),
        (NoFinishPort(), 1, "finish(self, port=0)"),
        (NoBatchPort(), 1, "process_batch(self, batch, port=0)"),
    ],
)
def test_a_method_with_the_wrong_signature_is_refused_before_the_run(
    spark: SparkSession, tmp_path: Path, operator: sv.Operator, ports: int, said: str
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    flow.apply(operator, *([src] * ports), name="X").sink("S")
    error = refused(flow, tmp_path, WorkflowError, spark=spark)
    assert error.operator == "X"
    assert said in str(error)
    assert not (tmp_path / "runs").exists()
