"""What each operator does over epochs, told from its kind and the nature of its expressions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest

import samovar as sv
from samovar.compile.shapes import Nature, nature_by_names, shape_of
from samovar.compile.sqltext import function_names


def last(build: Callable[[sv.Frame], Any]) -> Any:
    flow = sv.Workflow("shapes")
    made = build(flow.read.parquet("/data/a", name="a"))
    return flow._ops[made._name]


def nature(op: Any) -> Nature:
    return reduce(Nature.__or__, map(nature_by_names, op.expressions()), Nature())


def other(frame: sv.Frame) -> sv.Frame:
    return frame._flow.read.parquet("/data/b")


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda a: a, "source"),
        (lambda a: a.selectExpr("x + 1 AS y", "upper(s)"), "one"),
        (lambda a: a.selectExpr("aggregate(list, 0, (p, q) -> p + q) AS s"), "one"),
        (lambda a: a.withColumn("y", "filter(list, e -> e > 1)"), "one"),
        (lambda a: a.selectExpr("'explode(x)' AS text"), "one"),
        (lambda a: a.selectExpr("explode AS y"), "one"),
        (lambda a: a.selectExpr("k", "explode(list) AS e"), "many"),
        (lambda a: a.selectExpr("stack(2, a, b)"), "many"),
        (lambda a: a.withColumn("e", "posexplode_outer(list)"), "many"),
        (lambda a: a.selectExpr("sum(x) AS s"), "keep"),
        (lambda a: a.selectExpr("rank() OVER (ORDER BY x) AS r"), "keep"),
        (lambda a: a.withColumn("r", "lag(x) over (partition by k order by x)"), "keep"),
        (lambda a: a.filter("x > 1"), "some"),
        (lambda a: a.dropna(), "some"),
        (lambda a: a.sample(0.5), "some"),
        (lambda a: a.fillna(0), "one"),
        (lambda a: a.replace(1, 2), "one"),
        (lambda a: a.drop("x"), "one"),
        (lambda a: a.withColumnRenamed("x", "y"), "one"),
        (lambda a: a.toDF("p", "q"), "one"),
        (lambda a: a.alias("t"), "one"),
        (lambda a: a.union(other(a)), "union"),
        (lambda a: a.join(other(a), on="k"), "join"),
        (lambda a: a.join(other(a), on="k", how="left"), "join"),
        (lambda a: a.join(other(a), on="k", how="full"), "keep"),
        (lambda a: a.crossJoin(other(a)), "join"),
        (lambda a: a.intersect(other(a)), "keep"),
        (lambda a: a.limit(3), "limit"),
        (lambda a: a.offset(3), "limit"),
        (lambda a: a.distinct(), "accumulate"),
        (lambda a: a.dropDuplicates(["k"]), "accumulate"),
        (lambda a: a.groupBy("k").agg("sum(x)"), "accumulate"),
        (lambda a: a.cube("k").agg("sum(x)"), "keep"),
        (lambda a: a.groupBy("k").pivot("s", ["p"]).agg("sum(x)"), "keep"),
        (lambda a: a.sort("x"), "keep"),
        (lambda a: a.mapInArrow(lambda batches: batches, "x int"), "batches"),
    ],
)
def test_the_shape_of_an_operator(build: Callable[[sv.Frame], Any], shape: str) -> None:
    op = last(build)
    assert shape_of(op, nature(op)) == shape


def test_a_python_operator_is_stateful_unless_it_says_otherwise() -> None:
    class One(sv.Operator):
        output = "x int"

        def process(self, row: dict[str, Any], port: int = 0) -> Any:
            yield {"x": 1}

    op = last(lambda a: a.apply(One()))
    assert shape_of(op) == "python"
    assert shape_of(op, stateless=True) == "batches"


def test_what_only_one_query_can_give_waits_for_the_end_of_its_input() -> None:
    undivided = Nature(volatile=True, undivided=True)
    assert shape_of(last(lambda a: a.selectExpr("x")), undivided) == "keep"
    assert shape_of(last(lambda a: a.filter("x > 1")), undivided) == "keep"
    assert shape_of(last(lambda a: a.groupBy("k").agg("sum(x)")), undivided) == "keep"


def test_functions_are_found_also_in_text_that_cannot_be_read() -> None:
    assert function_names("rand( 'open") == {"rand"}
    assert function_names("f(g(x), 'h(y)')") == {"f", "g"}
