"""Qualifiers of columns: asked of Spark, and given back to rows that lost them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from samovar.compile.qualifiers import Qualifiers, column_qualifiers, marked, requalified, with_marks

BOTH = Qualifiers((("id", "a"), ("v", "a"), ("id", "b"), ("w", None)), natural=False)


def test_rows_get_their_qualifiers_back_without_a_join(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = spark.sql("SELECT 1 AS id, 2 AS v, 3 AS id, 4 AS w, 5 AS __sv_p0")
    made = requalified(stored, BOTH)
    assert made.columns == ["id", "v", "id", "w", "__sv_p0"]
    chosen = made.selectExpr("b.id AS b", "a.id AS a", "a.v", "w", "__sv_p0")
    assert [tuple(r) for r in chosen.collect()] == [(3, 1, 2, 4, 5)]
    made.explain()
    assert "Join" not in capsys.readouterr().out


def test_columns_that_nobody_mentions_may_be_missing(spark: SparkSession) -> None:
    made = requalified(spark.sql("SELECT 1 AS id, 3 AS id, 4 AS w"), BOTH)
    assert [tuple(r) for r in made.selectExpr("a.id", "b.id", "w").collect()] == [(1, 3, 4)]


def test_a_frame_without_qualifiers_stays_as_it_is(spark: SparkSession) -> None:
    df = spark.range(1)
    assert requalified(df, Qualifiers((("id", None),), natural=False)) is df


def test_spark_says_which_column_carries_which_qualifier(spark: SparkSession) -> None:
    left = marked(spark.sql("SELECT 1 AS id, 2 AS v"), "l").alias("a")
    right = marked(spark.sql("SELECT 1 AS id, 3 AS w"), "r").alias("b")
    joined = with_marks(left.join(right, left["id"] == right["id"]).selectExpr("*", "v + w AS x"), "j")
    known = {"a", "b", "c"}
    assert column_qualifiers(joined, known) == (("id", "a"), ("v", "a"), ("id", "b"), ("w", "b"), ("x", None))
    # a name that one qualifier has twice cannot be said, so it gets none
    twice = marked(joined, "t").alias("c")
    assert column_qualifiers(twice, known) == (("id", None), ("v", "c"), ("id", None), ("w", "c"), ("x", "c"))
