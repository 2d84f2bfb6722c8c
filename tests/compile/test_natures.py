"""What expressions do with rows, as Spark says: also of functions that nobody here has heard of."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import functions as F

import samovar as sv
from samovar.compile.natures import nature_of
from samovar.compile.shapes import Nature
from samovar.graph import operators as ops
from samovar.graph.operators.base import expr


def mean(v: pd.Series) -> float:
    return float(v.mean())


@pytest.fixture(scope="module")
def rows(spark: Any) -> Iterator[Any]:
    spark.udf.register("zork", F.pandas_udf(mean, "double"))
    spark.udf.register("dice", F.udf(lambda x: x, "double").asNondeterministic())
    spark.udf.register("twice", F.udf(lambda x: 2 * x, "double"))
    yield spark.createDataFrame([], "id bigint, v double, vec array<float>, at timestamp")
    for name in ("zork", "dice", "twice"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


CASES: list[tuple[Any, Nature]] = [
    ("v + 1", Nature()),
    ("upper('rand()')", Nature()),
    ("twice(v)", Nature()),
    ("aggregate(vec, 0f, (a, b) -> a + b)", Nature()),
    ("current_timestamp()", Nature()),
    ("sum(v)", Nature(gathers=True)),
    ("vector_avg(vec)", Nature(gathers=True)),
    ("zork(v) AS m", Nature(gathers=True)),
    ("rank() OVER (ORDER BY v)", Nature(gathers=True)),
    ("explode(vec)", Nature(generates=True)),
    ("stack(2, 1, 2) AS (a)", Nature(generates=True)),
    ("rand()", Nature(volatile=True)),
    ("rand(7) AS r", Nature(volatile=True)),
    ("uuid()", Nature(volatile=True)),
    ("monotonically_increasing_id()", Nature(volatile=True)),
    ("spark_partition_id()", Nature(volatile=True)),
    ("dice(v)", Nature(volatile=True, undivided=True)),
    (lambda: F.vector_sum("vec"), Nature(gathers=True)),
    (lambda: F.udf(lambda x: x, "double")("v"), Nature()),
    (lambda: F.udf(lambda x: x, "double").asNondeterministic()("v"), Nature(volatile=True)),
    (lambda: F.udf(lambda x: x, "double")(F.rand(3)), Nature(volatile=True, undivided=True)),
    (lambda: F.udf(lambda x: x, "timestamp")(F.current_timestamp()), Nature(undivided=True)),
]


@pytest.mark.parametrize(("given", "nature"), CASES)
def test_spark_says_what_an_expression_does(given: Any, nature: Nature, rows: Any) -> None:
    text = expr(given()) if callable(given) else given
    op = ops.Select(name="s", inputs=("a",), columns=(text,))
    assert nature_of(op, [rows]) == nature
    assert nature_of(ops.WithColumns(name="w", inputs=("a",), columns={"x": text}), [rows]) == nature


def test_an_operator_has_the_natures_of_all_its_expressions(rows: Any) -> None:
    op = ops.Select(name="s", inputs=("a",), columns=("*", "rand() AS r", "explode(vec) AS e"))
    assert nature_of(op, [rows]) == Nature(generates=True, volatile=True)


def test_what_spark_cannot_be_asked_about_is_told_by_names(spark: Any) -> None:
    df = (
        spark.createDataFrame([], "at timestamp, v bigint")
        .groupBy(F.window("at", "5 seconds"))
        .agg(F.sum("v"))
    )
    op = ops.Select(name="s", inputs=("a",), columns=("*", "window_time(window)"))
    assert nature_of(op, [df]) == Nature()


def test_an_aggregate_that_nobody_here_knows_gives_one_row(spark: Any, rows: Any, tmp_path: Any) -> None:
    spark.range(8).selectExpr("id * 1D AS v").repartition(4).write.parquet(str(tmp_path / "in"))
    flow = sv.Workflow("unknown")
    flow.read.parquet(str(tmp_path / "in")).selectExpr("zork(v) AS m").sink("S")
    run = flow.run(spark=spark, record=False, progress=False, epoch_bytes=1)
    assert run.result("S").to_pylist() == [{"m": 3.5}]
