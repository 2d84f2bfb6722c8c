"""Every type of Spark's, on each way through a workflow: what a result gives is what `DataFrame.toArrow` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import samovar as sv
from samovar.errors import RunError, SchemaProblem
from samovar.runtime.summary import _check_whole, _nullable
from samovar.server.runs.results import page_of

POINT = "x'0101000000000000000000F03F0000000000000040'"
PLAIN = {
    "b": "id % 2 = 0",
    "i8": "CAST(id AS TINYINT)",
    "i16": "CAST(id AS SMALLINT)",
    "i32": "CAST(id AS INT)",
    "i64": "id * 10000000000",
    "f32": "CAST(id / 3 AS FLOAT)",
    "f64": "id / 3",
    "dec9": "CAST(id AS DECIMAL(9, 2))",
    "dec38": "CAST('12345678901234567890123456789012345.678' AS DECIMAL(38, 3)) + id",
    "s": "concat('s', id)",
    "lower": "concat('S', id) COLLATE UTF8_LCASE",
    "c": "CAST('ab' AS CHAR(5))",
    "vc": "CAST('ab' AS VARCHAR(5))",
    "bin": "CAST(concat('b', id) AS BINARY)",
    "d": "date_add(DATE'1500-02-28', CAST(id AS INT))",
    "ts": "TIMESTAMP'1500-02-28 12:34:56.789012' + make_dt_interval(CAST(id AS INT))",
    "ntz": "TIMESTAMP_NTZ'2024-02-29 12:34:56.789012'",
    "dt": "make_dt_interval(CAST(id AS INT), 2, 3, 4.5)",
    "h": "INTERVAL '3' HOUR",
    "arr": "array(id, NULL)",
    "m": "map('a', id)",
    "st": "named_struct('x', id, 'y', array(map('k', TIMESTAMP_NTZ'2024-01-01 00:00:00')))",
    "nothing": "NULL",
    "maybe": "IF(id % 2 = 0, named_struct('x', IF(id = 0, NULL, DATE'2024-01-01')), NULL)",
}
VARIANTS = {
    "v": 'parse_json(concat(\'{"a": \', id, \', "b": [1, 2.5, "x", null], "c": {"d": "\', id, \'"}}\'))',
    "mixed": "IF(id % 2 = 0, parse_json('\"text\"'), CAST(TIMESTAMP'2024-01-01 00:00:00' AS VARIANT))",
    "vs": "named_struct('q', parse_json(CAST(id AS STRING)), 'r', 1)",
    "va": "array(parse_json('true'), CAST(1.25BD AS VARIANT))",
    "vm": "map('k', parse_json('[1, 2]'))",
}
SPATIAL = {
    "geo": f"st_setsrid(st_geomfromwkb({POINT}), 3857)",
    "geog": f"st_geogfromwkb({POINT})",
}
KINDS = {
    "all": {**PLAIN, **VARIANTS, **SPATIAL},
    "all but spatial": {**PLAIN, **VARIANTS},
    "variants": VARIANTS,
}


class Pass(sv.Operator):
    output = "*"
    n = sv.ValueState(0)

    def process(self, row, port=0):
        self.n += 1
        yield row


def direct(ids: Any, columns: list[str]) -> Any:
    return ids.selectExpr("id", *columns)


def stored(ids: Any, columns: list[str]) -> Any:
    return ids.selectExpr("id", *columns).orderBy("id")


def grouped(ids: Any, columns: list[str]) -> Any:
    names = [c.rsplit(" AS ", 1)[1] for c in columns]
    return ids.selectExpr("id", *columns).groupBy("id").agg(*(F.first(n).alias(n) for n in names))


def joined(ids: Any, columns: list[str]) -> Any:
    return ids.join(ids.selectExpr("id", *columns), "id")


def python(ids: Any, columns: list[str]) -> Any:
    return ids.selectExpr("id", *columns).apply(Pass())


@pytest.fixture(scope="module")
def numbers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("types") / "ids"
    folder.mkdir()
    for i in range(2):
        pq.write_table(pa.table({"id": [i * 2, i * 2 + 1]}), folder / f"{i}.parquet")
    return str(folder)


def expected(spark: SparkSession, numbers: str, kind: str) -> pa.Table:
    columns = [f"{text} AS {name}" for name, text in KINDS[kind].items()]
    return spark.read.parquet(numbers).selectExpr("id", *columns).orderBy("id").toArrow()


def result(spark: SparkSession, numbers: str, kind: str, way: Any, runs: Path) -> tuple[Any, pa.Table]:
    columns = [f"{text} AS {name}" for name, text in KINDS[kind].items()]
    flow = sv.Workflow("types")
    way(flow.read.parquet(numbers, name="ids"), columns).sink("S")
    run = flow.run(spark=spark, record=runs, progress=False, epoch_bytes=1)
    return run, run.result("S").sort_by("id")


def check_same(got: pa.Table, wanted: pa.Table) -> None:
    assert got.to_pylist() == wanted.to_pylist()
    assert [(f.name, f.type) for f in got.schema] == [(f.name, _nullable(f.type)) for f in wanted.schema]


WAYS = [direct, stored, grouped, joined, python]


@pytest.mark.parametrize("way", WAYS)
def test_a_result_is_what_spark_gives(spark: SparkSession, numbers: str, tmp_path: Path, way: Any) -> None:
    # Spark itself cannot join rows with geographies: "not support type: GeographyType(4326)"
    kind = "all but spatial" if way is joined else "all"
    _, got = result(spark, numbers, kind, way, tmp_path)
    check_same(got, expected(spark, numbers, kind))


@pytest.mark.parametrize("shredded", [True, False], ids=["shredded", "whole"])
def test_variants_are_the_same_in_the_past_in_files_and_on_pages(
    spark: SparkSession, numbers: str, tmp_path: Path, shredded: bool
) -> None:
    columns = [f"{text} AS {name}" for name, text in VARIANTS.items()]
    files, setting = str(tmp_path / "in"), "spark.sql.variant.writeShredding.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, str(shredded).lower())
    spark.read.parquet(numbers).selectExpr("id", *columns).repartition(1).sortWithinPartitions(
        "id"
    ).write.parquet(files)
    spark.conf.set(setting, before)
    rows = expected(spark, numbers, "variants").to_pylist(maps_as_pydicts="strict")
    flow = sv.Workflow("variants")
    passed = flow.read.parquet(files, name="ids").apply(Pass(), name="P").filter("id >= 0", name="F")
    passed.sink("S")
    passed.write.parquet(str(tmp_path / "out"))
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    assert spark.conf.get(setting) == before
    assert run.result("S").to_pylist(maps_as_pydicts="strict") == rows
    check_same(run.result("S"), spark.read.parquet(str(tmp_path / "out")).orderBy("id").toArrow())
    with sv.open(run.recording, spark=spark) as past:
        moment = past.jump("P", tuples=2)
        assert moment.last.row == rows[1]
        assert moment.last.outputs == (rows[1],)
        assert moment.step_over("P").last.row == rows[2]
        assert past.why("S", {"id": 3})[0].row == rows[3]
        assert past.first("F", "variant_get(v, '$.a', 'int') = 2").last.row == rows[2]
        page = page_of(past, "S", session=lambda: spark)
        assert page.rows == page_of(past, "S", sort="id", session=lambda: spark).rows
        assert len(page.rows) == len(rows)


def test_variants_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("compared")
    text = "parse_json(concat('{\"a\": ', id, '}')) AS v"
    flow.values("id int", [(0,), (1,)], name="ids").selectExpr("id", text).sink("S")
    run = flow.run(spark=spark, record=tmp_path, progress=False)
    same = spark.createDataFrame([(0,), (1,)], "id int").selectExpr("id", text)
    other = spark.createDataFrame([(0,), (2,)], "id int").selectExpr("least(id, 1) AS id", text)
    with sv.open(run.recording, spark=spark) as past:
        assert sv.diff.compare(past, same, spark=spark).equivalent
        assert not sv.diff.compare(past, other, spark=spark).equivalent


def test_a_result_with_missing_variants_holds_nulls(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("nulls")
    rows = flow.values("id int", [(0,), (1,)], name="ids")
    rows.selectExpr("id", "IF(id = 0, NULL, parse_json('1')) AS v", "array(CAST(NULL AS VARIANT)) AS a").sink(
        "S"
    )
    got = flow.run(spark=spark, record=False, progress=False).result("S").to_pylist()
    assert [(r["v"] is None, r["a"]) for r in got] == [(True, [None]), (False, [None])]


REFUSED = {
    "year to month": ("INTERVAL '1-2' YEAR TO MONTH", "interval year to month"),
    "in an array": ("array(INTERVAL '1' YEAR)", "Arrow has no such type"),
    "any interval": ("make_interval(1, 2)", "Arrow has no such type"),
    "time": ("TIME'12:34:56'", "this session has no TIME"),
    "geometries inside": (f"array(st_geomfromwkb({POINT}))", "inside other values its SRID is lost"),
    "geometries of any kind": (
        f"IF(id = 0, st_geomfromwkb({POINT}), st_setsrid(st_geomfromwkb({POINT}), 3857))",
        "its SRID differs from row to row",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_a_result_cannot_hold_is_refused_when_the_workflow_is_checked(
    spark: SparkSession, kind: str
) -> None:
    text, said = REFUSED[kind]
    flow = sv.Workflow("refused")
    flow.values("id int", [(0,)], name="ids").selectExpr(f"{text} AS x").sink("S")
    with pytest.raises(SchemaProblem, match=said) as caught:
        flow.schema_of("S")
    assert caught.value.operator == "S"
    assert "x" in str(caught.value.hint)


def test_a_session_with_times_keeps_them(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        flow = sv.Workflow("times")
        text = "TIME'12:34:56.789012' AS t"
        flow.values("id int", [(0,)], name="ids").selectExpr(text).sink("S")
        got = flow.run(spark=spark, record=False, progress=False).result("S")
        check_same(got, spark.range(1).selectExpr(text).toArrow())
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")


def test_a_variant_that_lies_in_several_columns_is_not_read_as_half_of_it(tmp_path: Path) -> None:
    kind = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int64()})
    with pytest.raises(RunError, match="only Spark can read"):
        _check_whole(pa.struct({"inside": kind}), "v")


def test_a_moment_shows_values_that_arrow_has_no_type_for_as_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = sv.Workflow("intervals")
    long = flow.values("id int", [(1,), (2,)], name="ids").selectExpr(
        "id", "make_ym_interval(id) AS y", name="long"
    )
    long.filter("y > INTERVAL '0' YEAR", name="F").select("id").sink("S")
    run = flow.run(spark=spark, record=tmp_path, progress=False)
    with sv.open(run.recording, spark=spark) as past:
        assert past.jump("F", tuples=1).last.row == {"id": 1, "y": "INTERVAL '1-0' YEAR TO MONTH"}
