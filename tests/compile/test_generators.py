"""Generators in epochs: a row's child number follows from the tuple, not from where Spark computes it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from samovar.compile.generators import with_number
from samovar.compile.native import apply_native, hidden, visible
from samovar.graph import operators as ops
from samovar.graph.operators.base import expr

ROWS = """
    SELECT id, sequence(1, id % 4) AS a, IF(id % 3 = 0, NULL, map('x', id, 'y', 2 * id)) AS m,
        array(named_struct('q', id, 'r', 1), NULL) AS s, 0L AS __sv_p0, id AS __sv_p1
    FROM range(1, 9) ORDER BY id
"""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("explode(a) AS x", "posexplode(a) AS (p, x)"),
        ("explode_outer(f(a, ')')) x", "posexplode_outer(f(a, ')')) AS (p, x)"),
        ("explode(m) AS (k, `the v`)", "posexplode(m) AS (p, k, `the v`)"),
        ("explode(m)", "posexplode(m) AS (p, `key`, `value`)"),
        ("EXPLODE (a) as x", "posexplode(a) AS (p, x)"),
    ],
)
def test_explode_tells_the_number_of_each_row(text: str, written: str) -> None:
    told = with_number(["id", text, "id + 1 AS y"], "p", lambda _: ["key", "value"])
    assert [t.replace(" (a)", "(a)") for t in told or ()] == ["id", written, "id + 1 AS y"]


@pytest.mark.parametrize(
    "texts",
    [
        ["explode(a) AS x", "explode(b) AS y"],
        ["posexplode(a)"],
        ["inline(s)"],
        ["explode(a"],
        ["(explode(a)) AS x"],
        ["my_generator(a) AS x"],
    ],
)
def test_of_other_generators_the_number_is_not_told(texts: list[str]) -> None:
    assert with_number(texts, "p", lambda _: ()) is None


def select(*texts: str) -> ops.Select:
    return ops.Select(name="g", inputs=("s",), columns=texts)


def generated(op: ops.Select | ops.WithColumns, df: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in apply_native(op, [df], "many").collect()), key=repr)


def values(df: DataFrame, names: Sequence[str]) -> list[str]:
    chosen = [df.columns.index(n) for n in names]
    return sorted(repr([row[i] for i in chosen]) for row in df.collect())


@pytest.mark.parametrize(
    "texts",
    [
        ["id", "explode(a) AS x", "x + 1 AS y"],
        ["*", "explode(a)"],
        ["explode_outer(m)", "id AS key"],
        ["explode(m) AS (k, v)", "id"],
        ["posexplode(a)", "id"],
        ["inline(s)", "id"],
        ["stack(2, 'u', id, 'v', 2 * id) AS (n, w)"],
        ["explode(a) AS x", "explode(array(x, 0)) AS y"],
    ],
)
def test_rows_are_sparks_and_their_positions_the_same_wherever_they_are_computed(
    spark: SparkSession, texts: list[str]
) -> None:
    df = spark.sql(ROWS)
    plain = df.select(*(c for c in df.columns if c not in hidden(df)))
    result = apply_native(select(*texts), [df], "many")
    expected = plain.selectExpr(*texts)
    assert visible(result) == expected.columns
    assert result.select(*hidden(result)).columns == ["__sv_p0", "__sv_p1", "__sv_p2"]
    assert [f.dataType for f in result.schema.fields[:-3]] == [f.dataType for f in expected.schema.fields]
    rows = generated(select(*texts), df)
    assert sorted(repr(row[:-3]) for row in rows) == sorted(repr(tuple(r)) for r in expected.collect())
    assert rows == generated(select(*texts), df.repartition(3, "id"))
    few = generated(select(*texts), df.filter("id > 4"))  # a window: what was before it is not there
    assert few == [row for row in rows if row[-2] > 4]
    children: dict[object, set[object]] = {}
    for row in rows:
        children.setdefault(row[-2], set()).add(row[-1])
    assert all(numbers == set(range(len(numbers))) for numbers in children.values())
    assert sum(map(len, children.values())) == len(rows)


def test_columns_without_text_and_replaced_columns_are_numbered_too(spark: SparkSession) -> None:
    df = spark.sql(ROWS)
    wanted = generated(select("id", "explode(a) AS a"), df)
    assert generated(select("id", expr(F.explode("a").alias("a"))), df) == wanted
    added = {"A": "explode(a)", "b": expr(F.col("id") + 1)}
    beside = ops.WithColumns(name="g", inputs=("s",), columns=added)
    result = apply_native(beside, [df], "many")
    assert (
        visible(result)
        == df.withColumns({"A": F.expr("explode(a)"), "b": F.lit(1)}).drop(*hidden(df)).columns
    )
    assert values(result, ["id", "A", *hidden(result)]) == sorted(repr(list(row)) for row in wanted)
    assert all(row["b"] == row["id"] + 1 for row in result.collect())
    alike = df.select("id", F.lit(0).alias("id"), "a", *hidden(df))  # no select can name these two
    result = apply_native(
        ops.WithColumns(name="g", inputs=("s",), columns={"a": "explode(a)"}), [alike], "many"
    )
    assert visible(result) == ["id", "id", "a"]
    assert values(result, ["a", *hidden(result)]) == sorted(repr(list(row[1:])) for row in wanted)
