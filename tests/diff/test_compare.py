"""Tables compared by Spark: the verdict is the matcher's, and what is shown is what differs."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tests.choice import by_default
from tests.diff.support import reordered, stream, table

import samovar as sv
from samovar.diff import (
    Matcher,
    accepts,
    compare,
    equality,
    independent,
    keyed,
    ordered,
    punctuated,
    synchronised,
)
from samovar.diff.comparison_errors import (
    DependenceProblem,
    DiffError,
    EqualityProblem,
    EventProblem,
    SchemasDiffer,
    SideProblem,
)
from samovar.diff.tables import table_comparison


def frame(spark: Any, rows: pa.Table, partitions: int = 3) -> Any:
    """A DataFrame whose order is that of the table."""
    size = max(1, math.ceil(rows.num_rows / partitions))
    made = None
    for start in range(0, max(1, rows.num_rows), size):
        piece = spark.createDataFrame(rows.slice(start, size))
        made = piece if made is None else made.unionAll(piece)
    return made


def judged(left: pa.Table, right: pa.Table, depends: Any, equal: Any) -> bool:
    matcher = Matcher(depends=depends, equal=equal)
    matcher.push_batch("left", left)
    matcher.push_batch("right", right)
    return matcher.close().equivalent


CASES = [
    (independent, None),
    (independent, equality(columns=["key", "note"])),
    (ordered, None),
    (keyed("key"), None),
    (keyed("key", "city") | keyed("city", "note"), None),
    (synchronised(by="mark"), None),
    (synchronised(keyed("key"), by={"mark": True}, within="city"), None),
    (punctuated(time="time", by="mark"), None),
    (independent, equality(tolerance=0.6)),
    (keyed("key"), equality(tolerance={"amount": 0.6})),
    (synchronised(by="mark"), equality(tolerance=0.1)),
]


@pytest.mark.parametrize("number", by_default(range(len(CASES)), {0, 2, 3, 4, 6, 7, 8, 9, 10}))
def test_the_verdict_is_the_matchers(spark: Any, number: int) -> None:
    agree(spark, *CASES[number], seeds=(0, 3) if number in (3, 8) else (0,))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_verdict_is_the_matchers_on_many_tables(spark: Any, number: int) -> None:
    agree(spark, *CASES[number], seeds=range(10, 30))


def agree(spark: Any, depends: Any, equal: Any, seeds: Iterable[int]) -> None:
    seen = set()
    for seed in seeds:
        rng = random.Random(seed)
        rows = stream(rng, 60)
        other = reordered(rng, rows, depends, 300, 0.002 if seed % 2 else 0.0)
        if seed % 4 == 3:
            other = [*other[:40], dict(other[40], note="changed"), *other[41:]]
        left, right = table(rows), table(other)
        verdict = compare(frame(spark, left), frame(spark, right, 2), depends=depends, equal=equal)
        expected = judged(left, right, depends, equal)
        assert verdict.equivalent == expected, verdict.explain()
        seen.add(expected)
    assert True in seen


def test_one_changed_cell_among_many_is_one_pair_of_rows(spark: Any) -> None:
    left = spark.range(20_000).select("id", F.concat(F.lit("n"), "id").alias("name"))
    right = left.repartition(5).withColumn("name", F.expr("if(id = 777, 'other', name)"))
    verdict = compare(left, right)
    assert not verdict
    assert (verdict.count("left"), verdict.count("right")) == (1, 1)
    assert verdict.rows("left") == 20_000
    assert verdict.event == {"id": 777, "name": "n777"}
    lines = verdict.explain().splitlines()
    assert lines[0] == "The tables differ (independent). 20,000 and 20,000 rows."
    assert [line.split() for line in lines[-3:]] == [
        ["id", "name"],
        ["left", "777", "*n777*"],
        ["right", "777", "*other*"],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("depends", [independent, ordered, keyed("k")])
def test_one_row_among_a_million(spark: Any, depends: Any) -> None:
    left = spark.range(0, 1_000_000, 1, 4).select("id", (F.col("id") % 1000).alias("k"), F.rand(3).alias("x"))
    right = left.withColumn("x", F.expr("if(id = 654321, -1.0D, x)"))
    verdict = compare(left, right, depends=depends)
    assert (verdict.count("left"), verdict.count("right")) == (1, 1)
    assert verdict.event["id"] == 654_321
    assert len(verdict.explain().splitlines()) <= 6
    assert compare(left, left, depends=depends)


def test_many_rows_that_differ_are_counted_and_a_few_are_shown(spark: Any) -> None:
    left = spark.range(30_000).select("id", (F.col("id") % 5).alias("v"))
    right = left.withColumn("v", F.expr("if(id % 2 = 0, v + 10, v)")).unionAll(left.filter("id = 1"))
    verdict = compare(left, right, rows=50)
    assert (verdict.count("left"), verdict.count("right")) == (15_000, 15_001)
    assert len(verdict.unmatched("left")) == 50
    assert all(row["id"] % 2 == 0 for row in verdict.unmatched("left"))
    assert verdict.explain(rows=4).endswith("... and 29,993 more") or "more" in verdict.explain(rows=4)


@pytest.mark.parametrize(("few", "hashes"), [(200_000, 1_000_000), (300, 1_000_000), (0, 1_000_000), (0, 0)])
def test_rows_too_often_are_the_same_on_each_way_to_count_them(
    spark: Any, monkeypatch: pytest.MonkeyPatch, few: int, hashes: int
) -> None:
    monkeypatch.setattr(table_comparison, "_FEW", few)
    monkeypatch.setattr(table_comparison, "_HASHES", hashes)
    rng = random.Random(5)
    sides = [[(rng.randrange(40), rng.choice("abc")) for _ in range(n)] for n in (400, 380)]
    counts = [Counter(rows) for rows in sides]
    frames = [spark.createDataFrame(rows, "n int, `a``.b` string").repartition(3) for rows in sides]
    verdict = compare(*frames, rows=1000)
    for side, mine, other in (("left", 0, 1), ("right", 1, 0)):
        expected = counts[mine] - counts[other]
        assert verdict.count(side) == expected.total() > 20
        assert Counter(tuple(row.values()) for row in verdict.unmatched(side)) == expected
    assert verdict.rows("left") == 400
    assert len(compare(*frames, rows=7).unmatched("right")) == 7


def test_no_rows_to_show_are_refused() -> None:
    one = pa.table({"id": [1]})

    with pytest.raises(DiffError, match="at least one row to show, got rows=0"):
        compare(one, one, rows=0)


def test_a_missing_row_is_one_difference_though_all_after_it_move(spark: Any) -> None:
    left = spark.range(1_000).select((F.col("id") % 3).alias("k"), "id").coalesce(1)
    right = left.filter("id <> 501")
    for depends, lines in ((ordered, 1), (keyed("k"), 1)):
        verdict = compare(left, right, depends=depends)
        assert verdict.lines == lines
        assert verdict.position == 501
        assert verdict.event["id"] == 501
        assert "row 501" in verdict.explain()


def test_rows_as_often_on_both_sides(spark: Any) -> None:
    left = spark.createDataFrame([(1,)] * 5 + [(2,)] * 3, "x int")
    right = spark.createDataFrame([(1,)] * 3 + [(2,)] * 5, "x int")
    verdict = compare(left, right)
    assert (verdict.count("left"), verdict.count("right")) == (2, 2)
    assert verdict.unmatched("left") == [{"x": 1}, {"x": 1}]


VALUES: list[tuple[str, list[Any], list[Any]]] = [
    ("double", [float("nan"), -0.0, None], [0.0, None, float("nan")]),
    ("struct<`a.b`:int,`c``d`:array<array<float>>>", [(1, [[-0.0], []])], [(1, [[0.0], []])]),
    ("map<string,int>", [{"a": 1, "b": None}], [{"b": None, "a": 1}]),
    ("array<int>", [[1, None], []], [[], [1, None]]),
    ("struct<a:int,b:array<map<int,double>>>", [(1, [{1: -0.0, 2: 0.5}])], [(1, [{2: 0.5, 1: 0.0}])]),
    ("decimal(10,2)", [Decimal("1.50")], [Decimal("1.5")]),
    ("void", [None, None], [None, None]),
    ("binary", [b"\0a", b""], [b"", b"\0a"]),
]


def side_by_side(spark: Any, cases: list[tuple[str, list[Any]]]) -> Any:
    """Rows of several schemas in one DataFrame, each with the number of its case; columns of the others are null."""
    columns = [[f"c{n}_{field.strip()}" for field in fields_of(kind)] for n, (kind, _) in enumerate(cases)]
    rows = []
    for number, (_, values) in enumerate(cases):
        for value in values:
            row = [value if n == number else (None,) * len(names) for n, names in enumerate(columns)]
            rows.append((number, *(cell for cells in row for cell in cells)))
    schema = ", ".join(["number int", *(name for names in columns for name in names)])
    return spark.createDataFrame(rows, schema)


def fields_of(schema: str) -> list[str]:
    """The columns of a schema as text."""
    return schema.split(", ")


def test_values_that_are_equal(spark: Any) -> None:
    sides = [
        side_by_side(spark, [(f"x {case[0]}", [(value,) for value in case[side]]) for case in VALUES])
        for side in (1, 2)
    ]
    verdict = compare(*sides)
    assert verdict, verdict.explain()
    assert verdict.rows("left") == sum(len(left) for _, left, _ in VALUES)


PAIRS: list[tuple[str, Any, Any]] = [
    ("x int, y int", (None, 1), (1, None)),
    ("x array<int>", ([None, 1],), ([1, None],)),
    ("x array<int>", ([],), (None,)),
    ("x array<array<int>>", ([[1], [2]],), ([[1, 2], []],)),
    ("x struct<a:int,b:int>", ((None, 1),), ((1, None),)),
    ("x map<int,int>", ({1: 2},), ({2: 1},)),
    ("x string, y string", ("ab", "c"), ("a", "bc")),
    ("x double", (float("nan"),), (None,)),
]


def test_values_that_are_not(spark: Any) -> None:
    sides = [side_by_side(spark, [(case[0], [case[side]]) for case in PAIRS]) for side in (1, 2)]
    verdict = compare(*sides)
    assert not verdict
    for side in ("left", "right"):
        assert sorted(row["number"] for row in verdict.unmatched(side)) == list(range(len(PAIRS)))


def test_floats_within_a_tolerance_that_sort_differently(spark: Any) -> None:
    left = spark.createDataFrame([(1.0, "b"), (1.0 + 1e-9, "a")], "x double, y string")
    right = spark.createDataFrame([(1.0, "a"), (1.0 + 1e-9, "b")], "x double, y string")
    assert compare(left, right, equal=equality(tolerance=1e-6))
    assert not compare(left, right)


def test_several_floats_whose_partners_are_not_in_one_order(spark: Any) -> None:
    left = spark.createDataFrame(pa.table({"x": [0.0, 0.4], "y": [5.0, 1.0]}))
    right = spark.createDataFrame(pa.table({"x": [0.1, 0.3], "y": [1.0, 5.0]}))
    assert compare(left, right, equal=equality(tolerance=0.5))
    verdict = compare(left, right, equal=equality(tolerance=0.05))
    assert verdict.count("left") == 2


def test_functions_run_on_executors(spark: Any) -> None:
    left = spark.createDataFrame(pa.table({"id": [1, 2], "words": ["b,a", "c"]})).coalesce(1)
    right = spark.createDataFrame(pa.table({"id": [2, 1], "words": ["c", "a,b"]})).coalesce(1)
    same = equality(key=lambda e: (e["id"], sorted(e["words"].split(","))))
    assert compare(left, right, equal=same)
    accepting = accepts(lambda reference, output: set(output["words"]) <= set(reference["words"]))
    assert compare(left, right, equal=accepting)
    assert not compare(left, right, depends=lambda a, b: True, equal=same)


def test_a_dependence_that_raises_shows_the_pair(spark: Any) -> None:
    df = spark.createDataFrame(pa.table({"x": [1, 2]})).coalesce(1)
    with pytest.raises(DependenceProblem, match=r"raised KeyError[\s\S]*event b: \{'x': 1\}"):
        compare(df, df.orderBy(F.desc("x")), depends=lambda a, b: a["z"] == b["z"])


def test_an_equality_that_is_none_shows_the_events(spark: Any) -> None:
    df = spark.createDataFrame(pa.table({"x": [1, 2]})).coalesce(1)
    with pytest.raises(EqualityProblem, match=r"Expected a symmetric equality[\s\S]*event a: \{'x': "):
        compare(df, df, equal=lambda a, b: a["x"] <= b["x"])


def test_sides_may_be_tables_paths_lists_and_catalog_tables(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    (tmp_path / "rows.json").write_text('{"id":2,"name":"b"}\n{"id":1,"name":"a"}\n')
    spark.createDataFrame(rows).createOrReplaceTempView("rows_seen")
    others = [rows.to_batches()[0], rows.to_pylist(), str(tmp_path / "rows.parquet"), tmp_path / "rows.json"]
    for other in [*others, "rows_seen", rows.to_pandas()]:
        assert compare(rows, other, spark=spark), other


def test_results_of_runs_and_recordings(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("numbers")
    flow.values("x int", [(n,) for n in range(10)]).filter("x > 2", name="big").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    rows = [{"x": n} for n in range(3, 10)]
    assert compare(run, rows, schema="kinds")
    assert compare(sv.open(run.recording, spark=spark), run)
    assert compare(str(run.recording), run)
    with pytest.raises(sv.errors.UnknownName, match="Expected a sink of the left side, got 'T'"):
        compare(run, run, sink="T")


# --- bad input ----------------------------------------------------------------------------------------------


def test_schemas_that_differ_are_shown_side_by_side(spark: Any) -> None:
    left = spark.createDataFrame([(1, "a", 1.0)], "id int, name string, amount double")
    right = spark.createDataFrame([(1, "a", 1)], "id int not null, nome string, amount int")
    with pytest.raises(SchemasDiffer) as raised:
        compare(left, right)
    lines = [line.split() for line in str(raised.value).splitlines()]
    assert lines[2:7] == [
        ["column", "left", "right"],
        ["id", "int", "int", "not", "null"],
        ["*", "name", "string", "-"],
        ["*", "amount", "double", "int"],
        ["*", "nome", "-", "string"],
    ]
    assert "'name' and 'nome' may be the same column" in str(raised.value)


def test_widths_and_nullability_matter_when_asked_for(spark: Any) -> None:
    left = spark.createDataFrame([(1,)], "x int not null")
    right = spark.createDataFrame([(1,)], "x bigint")
    with pytest.raises(SchemasDiffer, match='schema="kinds"'):
        compare(left, right)
    assert compare(left, right, schema="kinds")
    with pytest.raises(SchemasDiffer, match='schema="types"'):
        compare(left, spark.createDataFrame([(1,)], "x int"), schema="exact")


def test_columns_that_neither_side_has_are_a_mistake_of_the_question(spark: Any) -> None:
    df = spark.range(1).selectExpr("id", "1.0D AS fare")
    with pytest.raises(
        SideProblem, match=r"Expected a column 'ids'.*got id, fare\.\s+Hint: Did you mean 'id'"
    ):
        compare(df, df, depends=keyed("ids"))
    with pytest.raises(SideProblem, match="Expected a column 'amount'"):
        compare(df, df, equal=equality(tolerance={"amount": 1.0}))
    with pytest.raises(SchemasDiffer, match="Expected the column 'fare' on the right side"):
        compare(df, df.drop("fare"), depends=keyed("fare"))


def test_columns_of_the_same_name_are_refused(spark: Any) -> None:
    df = spark.createDataFrame([(1, 2)], "x int, y int")
    with pytest.raises(EventProblem, match="got 'x' twice on the right side"):
        compare(df, df.toDF("x", "x"))


def test_empty_sides(spark: Any) -> None:
    full = spark.createDataFrame(pa.table({"x": [1]}))
    empty = full.filter("false")
    for depends in (independent, keyed("x"), lambda a, b: True):
        assert compare(empty, empty, depends=depends)
        verdict = compare(empty, full, depends=depends)
        assert (verdict.equivalent, verdict.side, verdict.event) == (False, "right", {"x": 1})


def test_a_table_that_changes_from_look_to_look_is_refused(spark: Any) -> None:
    def by_chance(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"x": [random.random() for _ in range(batch.num_rows)]})

    left = spark.range(0, 100, 1, 1).mapInArrow(by_chance, "x double")
    with pytest.raises(SideProblem, match="a second look found others"):
        compare(left, left)
    assert compare(left.withColumn("x", F.col("x") > 2), spark.range(100).selectExpr("id > 200 AS x"))
    assert not compare(left, spark.range(100).selectExpr("id + 0.5D AS x"), cache=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "Expected a DataFrame, a pyarrow table, a path"),
        ("nowhere.parquet", "found nothing at 'nowhere.parquet'"),
        (pa.table({}), "Expected a table with columns"),
        ([], "An empty list has no columns"),
    ],
)
def test_what_is_no_table(spark: Any, value: Any, message: str) -> None:
    with pytest.raises(DiffError, match=message):
        compare(spark.range(1), value)
