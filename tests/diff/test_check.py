"""Programs against references: equal ones pass, and what differs is shown on a small input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import samovar as sv
from samovar.diff import check, equality, keyed, on_frames, plain, rows
from samovar.diff.comparison_errors import ProgramProblem

ITEMS = rows("k int, v int", keyed={"k": 2}, nulls=False, values={"v": list(range(10))}, max_size=8)


def sums(df: Any) -> Any:
    return df.groupBy("k").agg(F.sum("v").alias("total"))


def plain_sums(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for k in {row["k"] for row in items}:
        yield {"k": k, "total": sum(row["v"] for row in items if row["k"] == k)}


def test_a_right_program_passes_against_plain_python(spark: Any) -> None:
    found = check(sums, plain(plain_sums), ITEMS, examples=6, spark=spark)
    assert found, found.explain()
    assert found.examples == 6


def test_a_wrong_program_fails_on_a_small_input_that_the_seed_gives_again(spark: Any) -> None:
    def wrong(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        return plain_sums([dict(row) for row in {tuple(row.items()) for row in items}])

    found = [check(plain(wrong), plain(plain_sums), ITEMS, seed=3, spark=spark) for _ in range(2)]
    assert not found[0]
    assert len(found[0].inputs["0"]) == 2
    assert found[0].inputs["0"][0] == found[0].inputs["0"][1]
    assert found[0].inputs == found[1].inputs
    text = found[0].explain()
    assert "Input, 2 rows:" in text
    assert "seed=3" in text
    assert repr(found[0]) == text


def test_a_wrong_program_on_spark_fails(spark: Any) -> None:
    found = check(
        lambda df: sums(df.dropDuplicates()), plain(plain_sums), ITEMS, seed=3, seconds=1, spark=spark
    )
    assert not found
    assert found.verdict is not None
    assert "seed=3" in found.explain()


def test_a_program_that_raises_on_one_side_only_differs(spark: Any) -> None:
    def strict(df: Any) -> Any:
        return df.select("k", F.expr("if(v = 7, raise_error('seven'), v)").alias("v"))

    given = [{"k": 1, "v": 7}]
    found = check(strict, lambda df: df.select("k", "v"), given, spark=spark)
    assert not found
    assert "Input, 1 row:\n  {k: 1, v: 7}\n\nThe left program raised" in found.explain()
    both = check(strict, strict, given, spark=spark)
    assert both
    assert "on 1 input: both raised (" in both.explain()


def test_schemas_that_differ_are_a_difference(spark: Any) -> None:
    found = check(lambda df: df, lambda df: df.withColumnRenamed("v", "w"), [{"k": 1, "v": 1}], spark=spark)
    assert not found
    assert "got 2 that differ" in found.explain()


def test_functions_on_frames_and_workflows(spark: Any) -> None:
    flow = sv.Workflow("sums")
    flow.values("k int, v int", [(1, 1)], name="items").groupBy("k").agg("sum(v) AS total").sink("S")
    given = [{"k": 1, "v": 2}, {"k": 1, "v": 3}, {"k": 2, "v": 4}]

    def on_either(df: Any) -> Any:
        return df.groupBy("k").agg(F.sum("v").alias("total"))

    for program in (on_frames(on_either), flow):
        found = check(program, plain(plain_sums), given, spark=spark)
        assert found, found.explain()
    assert check(flow, plain(plain_sums), {"items": given}, spark=spark) is not None
    with pytest.raises(sv.errors.UnknownName, match="Did you mean 'items'"):
        check(flow, flow, {"item": given}, spark=spark)


def test_several_inputs_by_place_and_by_name(spark: Any) -> None:
    left, right = [{"k": 1, "v": 2}], [{"k": 1, "w": 5}]

    def joined(a: Any, b: Any) -> Any:
        return a.join(b, "k").select("k", (F.col("v") + F.col("w")).alias("s"))

    expected = plain(lambda a, b: [{"k": x["k"], "s": x["v"] + y["w"]} for x in a for y in b])
    assert check(joined, expected, (left, right), spark=spark)
    assert check(joined, expected, {"a": left, "b": right}, spark=spark)


def test_recordings_and_tables_have_their_output_already(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("twice")
    flow.values("x bigint", [(1,), (2,)], name="in").selectExpr("x * 2 AS x").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    past = sv.open(run.recording, spark=spark)
    assert check(past, plain(lambda: [{"x": 2}, {"x": 4}]), spark=spark)
    assert not check(past, spark.createDataFrame([(2,)], "x bigint"), spark=spark)


def test_order_and_equality_are_those_asked_for(spark: Any) -> None:
    given = [{"k": 1, "v": 1}, {"k": 1, "v": 2}]

    def backwards(df: Any) -> Any:
        return df.orderBy(F.desc("v"))

    assert check(backwards, lambda df: df, given, spark=spark)
    assert not check(backwards, lambda df: df, given, depends=keyed("k"), spark=spark)
    assert check(
        backwards, lambda df: df, given, depends=keyed("k"), equal=equality(columns=["k"]), spark=spark
    )


@pytest.mark.parametrize(
    ("program", "message"),
    [(3, "Expected a program"), (lambda df: None, "Did it forget to return its result")],
)
def test_what_is_no_program(spark: Any, program: Any, message: str) -> None:
    with pytest.raises(ProgramProblem, match=message):
        check(program, lambda df: df, [{"k": 1}], spark=spark)
