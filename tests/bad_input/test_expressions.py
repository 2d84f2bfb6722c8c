"""Expressions that fail inside Spark: the operator and the row are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.bad_input.support import flow_of, payments, refused
from tests.choice import by_default

import samovar as sv
from samovar.errors import ExpressionFailed


def few_payments(folder: Path, *, files: int = 2) -> str:
    """Payments 6 and 7 in the last file, and two before them in each other file."""
    payments(folder, files=6)
    for i in set(range(6)) - set(range(4 - files, 4)):
        (folder / f"{i}.parquet").unlink()
    return str(folder)


class Copy(sv.Operator):
    output = "id long, qty int"

    def process(self, row, port=0):
        yield row


FAILING: dict[str, tuple[Callable[[sv.Frame], sv.Frame], str]] = {
    "division in withColumn": (lambda s: s.withColumn("x", "100 div qty", name="X"), "Division by zero"),
    "division in filter": (lambda s: s.filter("100 div qty > 1", name="X"), "Division by zero"),
    "cast in select": (lambda s: s.selectExpr("id", "CAST(text AS INT) AS x", name="X"), "'seven'"),
    "array index": (lambda s: s.selectExpr("id", "items[1] AS x", name="X"), "out of bounds"),
    "argument of an aggregate": (
        lambda s: s.groupBy("customer").agg("sum(100 div qty) AS x", name="X"),
        "Division by zero",
    ),
    "aggregate that keeps its input": (
        lambda s: s.groupBy("qty").agg("percentile(100 div qty, 0.5) AS x", name="X"),
        "Division by zero",
    ),
    "sort key": (lambda s: s.orderBy(F.expr("100 div qty"), name="X"), "Division by zero"),
    "key of a Python operator": (lambda s: s.apply(Copy(), by="100 div qty", name="X"), "Division by zero"),
    "after a Python operator": (
        lambda s: s.apply(Copy(), name="P").withColumn("x", "100 div qty", name="X"),
        "Division by zero",
    ),
    "one of two equal texts": (
        lambda s: (
            s.filter("customer <> 'c1'", name="A")
            .withColumn("x", "100 div qty", name="B")
            .union(s.withColumn("x", "100 div qty", name="X"), name="U")
        ),
        "Division by zero",
    ),
}


VARIANTS = ("division in withColumn", "array index")
MANY = "cast in select"
"""The kind that is searched in more files and rows; for the others there are just enough to find the one."""


@pytest.mark.parametrize("kind", by_default(FAILING, set(FAILING) - set(VARIANTS)))
def test_the_row_on_which_an_expression_fails_is_found(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    made, said = FAILING[kind]
    folder = tmp_path / "payments"
    flow, src = flow_of(payments(folder, files=3) if kind == MANY else few_payments(folder))
    made(src).sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark)
    assert error.operator == "X"
    assert said in error.message
    assert error.row is not None
    assert error.row.get("id", 7) == 7
    assert error.row.get("qty", 0) == 0
    assert error.hint


def test_the_row_is_found_in_the_epoch_that_failed(spark: SparkSession, tmp_path: Path) -> None:
    flow, src = flow_of(few_payments(tmp_path / "payments"))
    src.withColumn("x", "100 div qty", name="X").sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark, epoch_bytes=1)
    assert (error.epoch, error.row["id"]) == (1, 7)


def test_a_python_function_used_as_a_column_is_shown_with_its_lines(
    spark: SparkSession, tmp_path: Path
) -> None:
    @F.udf("int")
    def share(n):
        return 100 // n

    flow, src = flow_of(few_payments(tmp_path / "payments"))
    src.withColumn("x", share("qty"), name="X").sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark)
    assert (error.operator, error.row["id"]) == ("X", 7)
    assert "ZeroDivisionError" in error.error
    assert "return 100 // n" in error.traceback


def test_a_join_condition_that_fails_shows_a_row_of_each_side(spark: SparkSession, tmp_path: Path) -> None:
    flow, src = flow_of(few_payments(tmp_path / "payments", files=1))
    other = flow.values("n int", [(1,), (0,)], name="other")
    src.join(other, "100 div (qty + n) > 60", name="X").sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark)
    assert error.operator == "X"
    assert error.row["src"]["id"] == 7
    assert error.row["other"] == {"n": 0}


def test_a_join_that_casts_one_side_shows_the_row_of_that_side(spark: SparkSession, tmp_path: Path) -> None:
    flow, src = flow_of(few_payments(tmp_path / "payments", files=1))
    other = flow.values("n int", [(1,), (2,)], name="other")
    src.join(other, "text = n", name="X").sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark)
    assert (error.operator, error.row["text"]) == ("X", "seven")
    assert "The row comes from 'src'" in error.message
    assert "differ in type" in str(error.hint)


def test_a_union_that_casts_shows_the_row(spark: SparkSession, tmp_path: Path) -> None:
    flow, src = flow_of(few_payments(tmp_path / "payments", files=1))
    other = flow.values("n int", [(1,), (2,)], name="other")
    other.union(src.select("text", name="texts"), name="X").sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark)
    assert (error.operator, error.row) == ("X", {"text": "seven"})
    assert "differ in type" in str(error.hint)


def test_a_build_side_that_fails_is_named_itself(spark: SparkSession, tmp_path: Path) -> None:
    flow, src = flow_of(few_payments(tmp_path / "payments"))
    other = flow.values("customer string, n int", [("c1", 1), ("c2", 0)], name="other")
    src.join(other.withColumn("x", "10 div n", name="B"), "customer", name="J").sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark)
    assert (error.operator, error.row) == ("B", {"customer": "c2", "n": 0})


def test_a_sum_that_overflows_shows_the_group(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("shop")
    rows = [(f"g{i % 3}", 2**62 if i in (1, 4) else 1) for i in range(9)]
    flow.values("g string, n bigint", rows, name="src").groupBy("g").agg("sum(n) AS n", name="X").sink("S")
    error = refused(flow, tmp_path, ExpressionFailed, spark=spark)
    assert (error.operator, error.row) == ("X", {"g": "g1"})
    assert "rows of this group together" in error.message
    assert "try_sum" in str(error.hint)
