"""Sources as lists of units: which files count, in what order, and what is copied because it cannot be read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.errors import SourceChanged, SourceError
from samovar.runtime.workflow_file import read_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Order(sv.Operator):
    """Numbers rows in the order in which they come."""

    output = "place bigint, n bigint"
    place: Any = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.place += 1
        yield {"place": self.place, "n": row["n"]}


def _write(path: Path, *numbers: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path)


def _order(
    spark: SparkSession, folder: Path, frame: sv.Frame, flow: sv.Workflow, **options: Any
) -> list[int]:
    frame.apply(Order(), name="order").sink("S")
    run = flow.run(spark=spark, record=folder / "runs", **options)
    rows = sorted(run.result("S").to_pylist(), key=lambda r: r["place"])
    return [r["n"] for r in rows]


@pytest.mark.parametrize("epoch_bytes", [1, None])
def test_files_are_read_in_the_order_of_their_names_whatever_they_hold(
    epoch_bytes: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    names = [
        "a b.parquet",
        "a%20b.parquet",
        "b,c.parquet",
        "sub/d.parquet",
        "zo ë.parquet",
        "ünder=1.parquet",
    ]
    for n, name in enumerate(sorted(names)):
        _write(tmp_path / "in" / name, 2 * n + 1, 2 * n)
    for hidden in ("_SUCCESS", ".part.parquet.crc", "_temporary/x.parquet"):
        _write(tmp_path / "in" / hidden, 99)
    (tmp_path / "in" / "empty.parquet").touch()
    flow = sv.Workflow("w")
    frame = flow.read.parquet(str(tmp_path / "in"), name="in")
    got = _order(spark, tmp_path, frame, flow, epoch_bytes=epoch_bytes)
    assert got == [n for i in range(len(names)) for n in (2 * i + 1, 2 * i)]


def test_two_sources_are_read_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path / "z" / "0.parquet", 1, 2)
    _write(tmp_path / "a" / "0.parquet", 3, 4)
    flow = sv.Workflow("w")
    first = flow.read.parquet(str(tmp_path / "z"), name="z")
    second = flow.read.parquet(str(tmp_path / "a"), name="a")
    assert _order(spark, tmp_path, first.union(second), flow, epoch_bytes=1) == [1, 2, 3, 4]


def test_a_path_with_nothing_says_what_is_near(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path / "payments" / "0.parquet", 1)
    flow = sv.Workflow("w")
    flow.read.parquet(str(tmp_path / "paymnts"), name="in").sink("S")
    with pytest.raises(SourceError, match="found nothing") as caught:
        flow.run(spark=spark, record=tmp_path / "runs")
    assert f"Did you mean {tmp_path / 'payments'}?" == caught.value.hint
    assert not list((tmp_path / "runs").glob("*"))


def test_an_empty_folder_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    flow = sv.Workflow("w")
    flow.read.parquet(str(tmp_path / "in"), name="in").sink("S")
    with pytest.raises(SourceError, match="empty folder"):
        flow.run(spark=spark, record=tmp_path / "runs")


def test_a_damaged_parquet_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path / "in" / "0.parquet", 1)
    (tmp_path / "in" / "1.parquet").write_bytes(b"PAR1 not really")
    flow = sv.Workflow("w")
    flow.read.parquet(str(tmp_path / "in"), name="in").sink("S")
    with pytest.raises(SourceError, match=r"1\.parquet"):
        flow.run(spark=spark, record=tmp_path / "runs")


def test_a_live_dataframe_is_copied_so_that_the_run_can_be_resumed_without_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = sv.Workflow("w")
    flow.read.frame(spark.range(20).selectExpr("id AS n"), name="live").apply(Order(), name="order").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    run.on_progress(lambda _: run.stop(wait=False))
    run.wait_ended(60)
    past = sv.open(str(run.recording))
    kept = read_sources(past._recording)["live"]
    assert kept.kept
    assert sum(u.rows or 0 for u in kept.spans) == 20
    assert sorted(past.resume(spark).result("S").column("n").to_pylist()) == list(range(20))


def test_a_copied_input_that_is_damaged_is_not_taken_for_whole(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("w")
    flow.read.frame(spark.range(20).selectExpr("id AS n"), name="live").apply(Order(), name="order").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    run.on_progress(lambda _: run.stop(wait=False))
    run.wait_ended(60)
    past = sv.open(str(run.recording))
    Path(read_sources(past._recording)["live"].spans[-1].path).unlink()
    with pytest.raises(SourceChanged, match="is gone"):
        past.resume(spark)
