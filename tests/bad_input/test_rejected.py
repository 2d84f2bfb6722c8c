"""CSV and JSON rows that do not parse: counted, kept with file and line, shown; never dropped in silence."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from tests.bad_input.support import refused
from tests.choice import by_default

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


MODES = {
    "src": None,
    "permissive": "PERMISSIVE",
    "malformed": "DROPMALFORMED",
    "small letters": "dropmalformed",
}


Counted = Callable[[str, int | None], tuple[str, Any]]


@pytest.fixture(scope="module")
def counted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """The folder of a source of `MODES`, and a run that reads it: in one epoch all of them, else one by itself."""
    root = tmp_path_factory.mktemp("counted")
    path = csv(root / "in", ONE, TWO)
    runs: dict[tuple[str, ...], Any] = {}

    def run(name: str, epoch_bytes: int | None) -> tuple[str, Any]:
        names = tuple(MODES) if epoch_bytes is None else (name,)
        if names not in runs:
            flow = sv.Workflow("shop")
            for each in names:
                mode = {"mode": MODES[each]} if MODES[each] else {}
                read = flow.read.csv(path, schema=SCHEMA, header=True, name=each, **mode)
                read.sink(f"S {each}")
            runs[names] = ran(flow, root, spark, epoch_bytes=epoch_bytes)
        return path, runs[names]

    return run


CASES = [(name, size) for size in (None, 1) for name in MODES]


@pytest.mark.parametrize("case", by_default(CASES, [*CASES[: len(MODES)], ("src", 1)]), ids=str)
def test_bad_rows_are_counted_and_kept_with_file_and_line(
    counted: Counted, case: tuple[str, int | None]
) -> None:
    name, epoch_bytes = case
    path, run = counted(name, epoch_bytes)
    assert sorted(run.result(f"S {name}")["id"].to_pylist()) == [1, 3, 4, 7]
    rejected = dict.fromkeys(MODES if epoch_bytes is None else [name], 4)
    assert run.progress.rejected == rejected
    kept = run.rejected(name).to_pylist()
    one, two = f"{path}/0.csv", f"{path}/1.csv"
    assert kept == [
        {"file": one, "line": 3, "text": "x,2024-01-02,2.5"},
        {"file": two, "line": 3, "text": "5,yesterday,5.5"},
        {"file": two, "line": 4, "text": "5,yesterday,5.5"},
        {"file": two, "line": 5, "text": "6,2024-01-06,6.5,more"},
    ]
    past = sv.open(run.recording)
    assert past.rejected(name).to_pylist() == kept
    assert past.progress.rejected == rejected
    given = {op.name: op.given for op in run.progress.operators}
    assert given[name] == 4


def test_bad_rows_are_shown_in_the_summary(counted: Counted) -> None:
    _, run = counted("src", 1)
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render(run.progress))
    console.file.close()
    assert "4 rows of 'src' did not parse" in console.export_text()


QUOTED = '1,"say ""hi"", ok",10\n2,"plain, comma",20\n3,"multi\nline",30\n4,"x",40\n'


LOST: dict[str, tuple[dict[str, Any], int, int, bool]] = {
    "as Spark reads it": ({}, 2, 3, True),
    "lines in quotes": ({"multiLine": True}, 3, 1, True),
    "as it was written": ({"escape": '"', "multiLine": True}, 4, 0, False),
}


def test_a_run_that_lost_rows_says_so_at_its_end(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in.csv").write_text("id,note,n\n" + QUOTED)
    flow = sv.Workflow("shop")
    for name, (options, *_) in LOST.items():
        flow.read.csv(str(tmp_path / "in.csv"), header=True, name=name, **options).sink(f"S {name}")
    run = ran(flow, tmp_path, spark)
    run.wait(progress=False)  # said once
    assert run.progress.rejected == {name: lost for name, (_, _, lost, _) in LOST.items() if lost}
    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING" and r.name == "samovar"]
    assert len(said) == len(run.progress.rejected)
    for name, (_, rows, lost, hint) in LOST.items():
        assert run.result(f"S {name}").num_rows == rows
        of_it = [text for text in said if f"run.rejected('{name}')" in text]
        assert len(of_it) == (1 if lost else 0)
        if of_it:
            assert f"{lost} row" in of_it[0]
            assert ("multiLine=True" in of_it[0]) is hint


LINES = 'id,note,n\n1,"a\nb",1\nx,"same\none",2\n3,c,3\ny,"d\ne",4\nx,"same\ntwo",5\n'
CLEAN = 'id,day,amount,name,flag\n1,2024-01-01,1.5,ann,true\n2,,,,\n3,2024-02-29,1e3,"b, ob",false\n'
GUESSED = {"header": True, "inferSchema": True}
WITH_CORRUPT = f"{SCHEMA}, _corrupt_record string"


@dataclass(frozen=True)
class Several:
    """A run that reads several sources of their own kinds."""

    folder: Path
    flow: sv.Workflow
    run: Any


@pytest.fixture(scope="module")
def several(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Several:
    folder = tmp_path_factory.mktemp("several")
    (folder / "lines.csv").write_text(LINES)
    (folder / "clean.csv").write_text(CLEAN)
    (folder / "0.json").write_text('{"id":1,"name":"a"}\n{"id":2,"name"\n{"id":3,"name":"c"}\n')
    path = csv(folder / "corrupt", ONE, TWO)
    flow = sv.Workflow("shop")
    options: dict[str, Any] = {"header": True, "multiLine": True, "escape": '"'}
    lines = flow.read.csv(
        str(folder / "lines.csv"), schema="id int, note string, n int", name="lines", **options
    )
    lines.sink("S lines")
    flow.read.csv(str(folder / "clean.csv"), name="clean", **GUESSED).sink("S clean")
    flow.read.csv(path, schema=WITH_CORRUPT, header=True, name="corrupt").sink("S corrupt")
    flow.read.json(str(folder / "0.json"), name="json").sink("S json")
    return Several(folder, flow, ran(flow, folder, spark))


def test_rejected_rows_of_several_lines_get_the_lines_they_begin_on(several: Several) -> None:
    assert [(r["line"], r["text"]) for r in several.run.rejected("lines").to_pylist()] == [
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
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "0.json").write_text(
        '{"id":1,"day":"2024-01-01","amount":1}\n{"id":3,"day":"2024-01-01","amount":"much"}\n{"id": oops\n'
        '{"id":4,"day":"2024-01-01","amount":1}\n{"id":5}\n{"id":7,"day":null,"amount":1}\n'
    )
    flow = sv.Workflow("shop")
    sources = (
        flow.read.csv(csv(tmp_path / "csv", ONE, TWO), schema=SCHEMA, header=True, name="csv"),
        flow.read.json(str(tmp_path / "json"), schema=SCHEMA, name="json"),
    )
    for kind, src in zip(("csv", "json"), sources, strict=True):
        src.select("id").sink(f"{kind} ids only")
        src.groupBy().agg("count(1) AS n").sink(f"{kind} n")
        src.sink(f"{kind} all")
    run = ran(flow, tmp_path, spark)
    assert run.progress.rejected == {"csv": 4, "json": 2}
    for kind, wanted in (("csv", [1, 3, 4, 7]), ("json", [1, 4, 5, 7])):
        good = sorted(run.result(f"{kind} all")["id"].to_pylist())
        assert good == wanted
        assert sorted(run.result(f"{kind} ids only")["id"].to_pylist()) == good
        assert run.result(f"{kind} n")["n"].to_pylist() == [4]
        assert run.rejected(kind).num_rows == run.progress.rejected[kind]


def test_bad_rows_of_a_build_side_are_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    flow, small = flow_of(csv(tmp_path / "in", ONE, TWO))
    wide = tmp_path / "wide"
    wide.mkdir()
    for f in range(2):
        (wide / f"{f}.csv").write_text(
            "id,name\n" + "".join(f"{i},{'n' * 100}\n" for i in range(f * 6, f * 6 + 6))
        )
    names = flow.read.csv(str(wide), schema="id int, name string", header=True, name="names")
    names.join(small, "id", name="J").sink("S")
    run = ran(flow, tmp_path, spark, epoch_bytes=1)
    assert len(sv.open(run.recording).history.epochs) >= 2
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


def test_a_schema_with_a_corrupt_record_of_its_own_is_left_alone(
    spark: SparkSession, several: Several
) -> None:
    assert "corrupt" not in several.run.progress.rejected
    plain = spark.read.csv(str(several.folder / "corrupt"), schema=WITH_CORRUPT, header=True).collect()
    got = several.run.result("S corrupt").to_pylist()
    assert sorted(map(str, got)) == sorted(str(r.asDict()) for r in plain)


def test_json_rows_that_do_not_parse_are_kept_apart_without_a_schema(several: Several) -> None:
    assert several.run.result("S json").to_pylist() == [{"id": 1, "name": "a"}, {"id": 3, "name": "c"}]
    assert several.run.rejected("json").to_pylist() == [
        {"file": f"{several.folder}/0.json", "line": 2, "text": '{"id":2,"name"'}
    ]


def test_a_csv_without_bad_rows_gives_what_plain_spark_gives(spark: SparkSession, several: Several) -> None:
    plain = spark.read.csv(str(several.folder / "clean.csv"), **GUESSED)
    got = several.run.result("S clean").to_pylist()
    assert got == [r.asDict() for r in plain.collect()]
    assert got[0]["day"] == datetime.date(2024, 1, 1)
    assert several.flow.schema_of("clean") == plain.schema
    assert "clean" not in several.run.progress.rejected
    assert several.run.rejected("clean").num_rows == 0


def test_rejected_rows_of_an_unknown_source_are_refused_with_the_nearest_name(counted: Counted) -> None:
    _, run = counted("src", 1)
    with pytest.raises(UnknownName, match="Did you mean 'src'"):
        run.rejected("scr")
