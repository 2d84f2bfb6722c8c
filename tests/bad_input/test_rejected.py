"""CSV and JSON rows that do not parse: counted, kept with file and line, shown; never dropped in silence."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from tests.bad_input.support import refused

import samovar as sv
from samovar.errors import SourceError, UnknownName
from samovar.runtime.display import render

SCHEMA = "id int, day date, amount double"


def csv(folder: Path, *files: str, header: bool = True) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for i, body in enumerate(files):
        (folder / f"{i}.csv").write_text(("id,day,amount\n" if header else "") + body)
    return str(folder)


ONE = "1,2024-01-01,1.5\nx,2024-01-02,2.5\n3,2024-01-03,3.5\n"
TWO = "4,2024-01-04,4.5\n5,yesterday,5.5\n5,yesterday,5.5\n6,2024-01-06,6.5,more\n7,2024-01-07,7.5\n"


def flow_of(path: str, **options: Any) -> tuple[sv.Workflow, sv.Frame]:
    flow = sv.Workflow("shop")
    return flow, flow.read.csv(path, schema=SCHEMA, header=True, name="src", **options)


def ran(flow: sv.Workflow, tmp_path: Path, spark: SparkSession, **options: Any) -> Any:
    return flow.run(spark=spark, record=tmp_path / "runs", progress=False, **options)


@pytest.mark.parametrize("mode", [None, "PERMISSIVE", "DROPMALFORMED", "dropmalformed"])
@pytest.mark.parametrize("epoch_bytes", [None, 1])
def test_bad_rows_are_counted_and_kept_with_file_and_line(
    spark: SparkSession, tmp_path: Path, mode: str | None, epoch_bytes: int | None
) -> None:
    path = csv(tmp_path / "in", ONE, TWO)
    flow, src = flow_of(path, **({"mode": mode} if mode else {}))
    src.sink("S")
    run = ran(flow, tmp_path, spark, epoch_bytes=epoch_bytes)
    assert sorted(run.result("S")["id"].to_pylist()) == [1, 3, 4, 7]
    assert run.progress.rejected == {"src": 4}
    kept = run.rejected("src").to_pylist()
    one, two = f"{path}/0.csv", f"{path}/1.csv"
    assert kept == [
        {"file": one, "line": 3, "text": "x,2024-01-02,2.5"},
        {"file": two, "line": 3, "text": "5,yesterday,5.5"},
        {"file": two, "line": 4, "text": "5,yesterday,5.5"},
        {"file": two, "line": 5, "text": "6,2024-01-06,6.5,more"},
    ]
    past = sv.open(run.recording)
    assert past.rejected("src").to_pylist() == kept
    assert past.progress.rejected == {"src": 4}
    given = {op.name: op.given for op in run.progress.operators}
    assert given["src"] == 4


def test_bad_rows_are_shown_in_the_summary(spark: SparkSession, tmp_path: Path) -> None:
    flow, src = flow_of(csv(tmp_path / "in", ONE, TWO))
    src.sink("S")
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render(ran(flow, tmp_path, spark).progress))
    console.file.close()
    assert "4 rows of 'src' did not parse" in console.export_text()


QUOTED = '1,"say ""hi"", ok",10\n2,"plain, comma",20\n3,"multi\nline",30\n4,"x",40\n'


@pytest.mark.parametrize(
    ("options", "rows", "rejected", "hint"),
    [
        ({}, 2, 3, True),
        ({"multiLine": True}, 3, 1, True),
        ({"escape": '"', "multiLine": True}, 4, 0, False),
    ],
    ids=["as Spark reads it", "lines in quotes", "as it was written"],
)
def test_a_run_that_lost_rows_says_so_at_its_end(
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, Any],
    rows: int,
    rejected: int,
    hint: bool,
) -> None:
    (tmp_path / "in.csv").write_text("id,note,n\n" + QUOTED)
    flow = sv.Workflow("shop")
    read = flow.read.csv(str(tmp_path / "in.csv"), header=True, name="src", **options)
    read.sink("S")
    run = ran(flow, tmp_path, spark)
    run.wait(progress=False)  # said once
    assert run.result("S").num_rows == rows
    assert run.progress.rejected == ({"src": rejected} if rejected else {})
    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING" and r.name == "samovar"]
    assert len(said) == (1 if rejected else 0)
    if said:
        assert f"{rejected} row" in said[0]
        assert "run.rejected('src')" in said[0]
        assert ("multiLine=True" in said[0]) is hint


def test_rejected_rows_of_several_lines_get_the_lines_they_begin_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    body = 'id,note,n\n1,"a\nb",1\nx,"same\none",2\n3,c,3\ny,"d\ne",4\nx,"same\ntwo",5\n'
    (tmp_path / "in.csv").write_text(body)
    flow = sv.Workflow("shop")
    options: dict[str, Any] = {"header": True, "multiLine": True, "escape": '"'}
    flow.read.csv(str(tmp_path / "in.csv"), schema="id int, note string, n int", name="src", **options).sink(
        "S"
    )
    run = ran(flow, tmp_path, spark)
    assert [(r["line"], r["text"]) for r in run.rejected("src").to_pylist()] == [
        (4, 'x,"same\none",2'),
        (7, 'y,"d\ne",4'),
        (9, 'x,"same\ntwo",5'),
    ]


def test_a_chunked_file_gives_the_lines_of_the_original(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMOVAR_LARGE_FILE", "200")
    monkeypatch.setenv("SAMOVAR_CACHE", str(tmp_path / "cache"))
    lines = [f"{i},2024-01-01,{i}.5" if i % 10 else "bad,2024-01-01,0" for i in range(1, 51)]
    path = csv(tmp_path / "in", "\n".join(lines) + "\n")
    flow, src = flow_of(path)
    src.groupBy().agg("count(1) AS n", name="count").sink("S")
    run = ran(flow, tmp_path, spark, epoch_bytes=400)
    assert len(sv.open(run.recording).history.epochs) > 2
    assert run.result("S")["n"].to_pylist() == [45]
    kept = run.rejected("src").to_pylist()
    assert [(r["file"], r["line"]) for r in kept] == [(f"{path}/0.csv", 10 * i + 1) for i in range(1, 6)]


def test_which_rows_are_bad_does_not_depend_on_which_columns_are_used(
    spark: SparkSession, tmp_path: Path
) -> None:
    for kind in ("csv", "json"):
        flow = sv.Workflow("shop")
        if kind == "csv":
            src = flow.read.csv(csv(tmp_path / "csv", ONE, TWO), schema=SCHEMA, header=True, name="src")
        else:
            (tmp_path / "json").mkdir()
            (tmp_path / "json" / "0.json").write_text(
                '{"id":1,"day":"2024-01-01","amount":1}\n{"id":3,"day":"2024-01-01","amount":"much"}\n{"id": oops\n'
                '{"id":4,"day":"2024-01-01","amount":1}\n{"id":5}\n{"id":7,"day":null,"amount":1}\n'
            )
            src = flow.read.json(str(tmp_path / "json"), schema=SCHEMA, name="src")
        src.select("id", name="ids").sink("ids_only")
        src.groupBy().agg("count(1) AS n", name="count").sink("n")
        src.sink("all")
        run = ran(flow, tmp_path, spark)
        good = sorted(run.result("all")["id"].to_pylist())
        assert good == ([1, 3, 4, 7] if kind == "csv" else [1, 4, 5, 7])
        assert sorted(run.result("ids_only")["id"].to_pylist()) == good
        assert run.result("n")["n"].to_pylist() == [4]
        assert run.progress.rejected == {"src": 4 if kind == "csv" else 2}
        assert run.rejected("src").num_rows == run.progress.rejected["src"]


def test_bad_rows_of_a_build_side_are_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    flow, small = flow_of(csv(tmp_path / "in", ONE, TWO))
    wide = tmp_path / "wide"
    wide.mkdir()
    for f in range(3):
        (wide / f"{f}.csv").write_text(
            "id,name\n" + "".join(f"{i},{'n' * 100}\n" for i in range(f * 4, f * 4 + 4))
        )
    names = flow.read.csv(str(wide), schema="id int, name string", header=True, name="names")
    names.join(small, "id", name="J").sink("S")
    run = ran(flow, tmp_path, spark, epoch_bytes=1)
    assert len(sv.open(run.recording).history.epochs) >= 3
    assert sorted(run.result("S")["id"].to_pylist()) == [1, 3, 4, 7]
    assert run.progress.rejected == {"src": 4}
    assert run.rejected("src").num_rows == 4


def test_bad_rows_of_a_source_that_is_read_on_two_levels_are_counted_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow, src = flow_of(csv(tmp_path / "in", ONE, TWO))
    total = src.groupBy().agg("sum(amount) AS total", name="total")
    src.crossJoin(total, name="J").selectExpr("id", "amount / total AS share", name="share").sink("S")
    run = ran(flow, tmp_path, spark, epoch_bytes=1)
    assert sorted(run.result("S")["id"].to_pylist()) == [1, 3, 4, 7]
    assert run.progress.rejected == {"src": 4}
    assert run.rejected("src").num_rows == 4


def test_failfast_ends_the_run_with_the_row(spark: SparkSession, tmp_path: Path) -> None:
    path = csv(tmp_path / "in", "1,2024-01-01,1.5\n", TWO)
    flow, src = flow_of(path, mode="FAILFAST")
    src.sink("S")
    error = refused(flow, tmp_path, SourceError, spark=spark)
    assert error.operator == "src"
    assert f"{path}/1.csv, line 3: 5,yesterday,5.5" in error.message
    assert "PERMISSIVE" in str(error.hint)


def test_a_schema_with_a_corrupt_record_of_its_own_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = csv(tmp_path / "in", ONE, TWO)
    schema = f"{SCHEMA}, _corrupt_record string"
    flow = sv.Workflow("shop")
    flow.read.csv(path, schema=schema, header=True, name="src").sink("S")
    run = ran(flow, tmp_path, spark)
    assert run.progress.rejected == {}
    plain = spark.read.csv(path, schema=schema, header=True)
    assert sorted(map(str, run.result("S").to_pylist())) == sorted(str(r.asDict()) for r in plain.collect())


def test_json_rows_that_do_not_parse_are_kept_apart_without_a_schema(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.json").write_text('{"id":1,"name":"a"}\n{"id":2,"name"\n{"id":3,"name":"c"}\n')
    flow = sv.Workflow("shop")
    flow.read.json(str(folder), name="src").sink("S")
    run = ran(flow, tmp_path, spark)
    assert run.result("S").to_pylist() == [{"id": 1, "name": "a"}, {"id": 3, "name": "c"}]
    assert run.rejected("src").to_pylist() == [
        {"file": f"{folder}/0.json", "line": 2, "text": '{"id":2,"name"'}
    ]


def test_a_csv_without_bad_rows_gives_what_plain_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    body = 'id,day,amount,name,flag\n1,2024-01-01,1.5,ann,true\n2,,,,\n3,2024-02-29,1e3,"b, ob",false\n'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_text(body)
    options = {"header": True, "inferSchema": True}
    flow = sv.Workflow("shop")
    flow.read.csv(str(tmp_path / "in"), name="src", **options).sink("S")
    run = ran(flow, tmp_path, spark)
    plain = spark.read.csv(str(tmp_path / "in"), **options)
    assert run.result("S").to_pylist() == [r.asDict() for r in plain.collect()]
    assert run.result("S").to_pylist()[0]["day"] == datetime.date(2024, 1, 1)
    assert flow.schema_of("src") == plain.schema
    assert run.progress.rejected == {}
    assert run.rejected("src").num_rows == 0


def test_rejected_rows_of_an_unknown_source_are_refused_with_the_nearest_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow, src = flow_of(csv(tmp_path / "in", ONE))
    src.sink("S")
    run = ran(flow, tmp_path, spark)
    with pytest.raises(UnknownName, match="Did you mean 'src'"):
        run.rejected("scr")
