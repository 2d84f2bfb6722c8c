"""Large single files: cut once, in order, cached, cut again when the file changes."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.runtime.folders import cache_folder
from samovar.runtime.sources import chunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 3000


@pytest.fixture(autouse=True)
def small_files_count_as_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMOVAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SAMOVAR_LARGE_FILE", "8000")


def _rows(shift: int = 0) -> list[dict[str, Any]]:
    return [{"id": (i * 7919 + shift) % 10007, "text": f"row {i}, {'x' * (i % 5)}"} for i in range(ROWS)]


def _parquet(path: Path, rows: list[dict[str, Any]], group: int = ROWS) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group, compression="none")


def _csv(path: Path, rows: list[dict[str, Any]], *, header: bool = True) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"], lineterminator="\n")
        if header:
            writer.writeheader()
        writer.writerows(rows)


def _json(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


class Collect(sv.Operator):
    """Numbers rows in the order in which they come."""

    output = "n bigint, row string"
    n: Any = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.n += 1
        yield {"n": self.n, "row": json.dumps(dict(row))}


def _in_order(
    frame: sv.Frame, flow: sv.Workflow, spark: SparkSession, folder: Path, file: str
) -> list[dict[str, Any]]:
    """The rows as a Python operator sees them, over several epochs."""
    epoch_bytes = (folder / file).stat().st_size // 3
    frame.apply(Collect(), name="order").sink("S")
    run = flow.run(spark=spark, record=folder / "runs", epoch_bytes=epoch_bytes)
    assert len(sv.open(str(run.recording)).history.epochs) > 1
    got = sorted(run.result("S").to_pylist(), key=lambda r: r["n"])
    return [json.loads(r["row"]) for r in got]


@pytest.mark.parametrize("group", [ROWS, 700, 100], ids=["one row group", "several", "many"])
def test_a_cut_parquet_file_keeps_the_order_of_its_rows(
    group: int, spark: SparkSession, tmp_path: Path
) -> None:
    _parquet(tmp_path / "in.parquet", _rows(), group)
    flow = sv.Workflow("w")
    frame = flow.read.parquet(str(tmp_path / "in.parquet"), name="in")
    assert _in_order(frame, flow, spark, tmp_path, "in.parquet") == _rows()
    assert len(list(cache_folder().glob("*/*.parquet"))) > 3


def test_a_parquet_file_cut_by_several_tasks_keeps_the_order_of_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    setting = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "20000")
    try:
        test_a_cut_parquet_file_keeps_the_order_of_its_rows(100, spark, tmp_path)
    finally:
        spark.conf.set(setting, before or "134217728")


@pytest.mark.parametrize("header", [True, False])
def test_a_cut_csv_file_keeps_the_order_of_its_rows_and_its_header(
    header: bool, spark: SparkSession, tmp_path: Path
) -> None:
    _csv(tmp_path / "in.csv", _rows(), header=header)
    flow = sv.Workflow("w")
    frame = flow.read.csv(str(tmp_path / "in.csv"), schema="id bigint, text string", header=header, name="in")
    assert _in_order(frame, flow, spark, tmp_path, "in.csv") == _rows()
    assert len(list(cache_folder().glob("*/*.csv"))) > 3


def test_a_cut_json_file_keeps_the_order_of_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    _json(tmp_path / "in.json", _rows())
    flow = sv.Workflow("w")
    frame = flow.read.json(str(tmp_path / "in.json"), schema="id bigint, text string", name="in")
    assert _in_order(frame, flow, spark, tmp_path, "in.json") == _rows()


def test_a_cut_text_file_keeps_the_order_of_its_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = [r["text"] for r in _rows()]
    (tmp_path / "in.txt").write_text("\n".join(lines))  # and no newline at the end
    flow = sv.Workflow("w")
    frame = flow.read.text(str(tmp_path / "in.txt"), name="in")
    assert _in_order(frame, flow, spark, tmp_path, "in.txt") == [{"value": line} for line in lines]


def _cached() -> dict[str, tuple[float, int]]:
    return {str(p): (p.stat().st_mtime, p.stat().st_ino) for p in cache_folder().glob("*/*") if p.is_file()}


def _values(spark: SparkSession, path: Path, folder: Path) -> list[int]:
    flow = sv.Workflow("w")
    flow.read.parquet(str(path), name="in").select("id").sink("S")
    found: list[int] = flow.run(spark=spark, record=folder / "runs").result("S").column("id").to_pylist()
    return sorted(found)


def test_chunks_are_used_again_and_cut_anew_when_the_file_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "in.parquet"
    _parquet(path, _rows())
    assert _values(spark, path, tmp_path) == sorted(r["id"] for r in _rows())
    first = _cached()
    assert first
    assert _values(spark, path, tmp_path) == sorted(r["id"] for r in _rows())
    assert _cached() == first
    before = path.stat()
    _parquet(path, _rows(shift=1))
    os.utime(path, (before.st_atime, before.st_mtime + 5))
    assert _values(spark, path, tmp_path) == sorted(r["id"] for r in _rows(shift=1))
    assert first.items() <= _cached().items()
    assert len(_cached()) > len(first)


@pytest.mark.parametrize("python", [False, True])
def test_text_is_cut_into_small_chunks_for_python_operators_alone(
    python: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAMOVAR_LARGE_FILE")
    monkeypatch.setattr(chunks, "FINE_LARGE", 8000)
    monkeypatch.setattr(chunks, "FINE_CHUNK", 3000)
    path = tmp_path / "in.csv"
    _csv(path, _rows())
    flow = sv.Workflow("w")
    rows = flow.read.csv(str(path), schema="id bigint, text string", header=True, name="in")
    if not python:
        rows.sink("S")
        assert flow.run(spark=spark, record=tmp_path / "runs", epoch_bytes=1).result("S").num_rows == ROWS
        assert not _cached()
        return
    rows.apply(Collect(), name="order").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=path.stat().st_size // 3)
    run.on_progress(lambda _: run.stop(wait=False))
    run.wait_ended(60)
    assert len(_cached()) > path.stat().st_size // 3000
    shutil.rmtree(tmp_path / "cache")  # cut again as they were
    with sv.open(run.recording) as past:
        assert len(past.history.epochs) < 4
        got = sorted(past.resume(spark).result("S").to_pylist(), key=lambda row: row["n"])
    assert [json.loads(row["row"]) for row in got] == _rows()


def test_names_of_files_are_those_of_the_files_themselves(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    _csv(path, _rows())
    flow = sv.Workflow("w")
    read = flow.read.csv(str(path), schema="id bigint, text string", header=True, name="in")
    read.selectExpr("input_file_name() AS file").distinct().sink("S")
    assert flow.run(spark=spark, record=tmp_path / "runs").result("S").to_pylist() == [
        {"file": path.as_uri()}
    ]


def test_what_cannot_be_cut_safely_stays_whole(spark: SparkSession, tmp_path: Path) -> None:
    import gzip

    _csv(tmp_path / "in.csv", _rows())
    with gzip.open(tmp_path / "in.csv.gz", "wb", compresslevel=0) as file:
        file.write((tmp_path / "in.csv").read_bytes())
    for path, options in ((tmp_path / "in.csv.gz", {}), (tmp_path / "in.csv", {"multiLine": True})):
        flow = sv.Workflow("w")
        read = flow.read.csv(str(path), schema="id bigint, text string", header=True, name="in", **options)
        read.sink("S")
        assert flow.run(spark=spark, record=tmp_path / "runs").result("S").num_rows == ROWS
    assert not _cached()


def test_chunks_that_are_gone_when_a_run_is_resumed_are_cut_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "in.parquet"
    _parquet(path, _rows())
    flow = sv.Workflow("w")
    flow.read.parquet(str(path), name="in").apply(Collect(), name="order").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=path.stat().st_size // 3)
    run.on_progress(lambda _: run.stop(wait=False))
    run.wait_ended(60)
    assert run.status == "stopped"
    shutil.rmtree(tmp_path / "cache")
    again = sv.open(str(run.recording)).resume(spark)
    assert again.result("S").num_rows == ROWS
