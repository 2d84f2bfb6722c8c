"""Rows that do not add up: an epoch that lost files, or was given other rows than were listed, is not committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.errors import CountsDiffer
from samovar.runtime.epochs import epoch
from samovar.runtime.parquet_files import rows_in
from samovar.runtime.worker.chain import FLUSH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 400


class Count(sv.Operator):
    """By key: passes rows on. Removes the state files of keys before it, if told so."""

    output = "n bigint, k bigint"
    seen: Any = sv.MapState()

    def __init__(self, folder: str = "") -> None:
        self.folder = folder

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        if row["k"] not in self.seen and self.folder:
            for path in Path(self.folder).glob("*/epochs/*/state/*/[0-9]*.delta"):
                path.unlink()
        self.seen[row["k"]] = self.seen.get(row["k"], 0) + 1
        yield {"n": row["n"], "k": row["k"]}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for f in range(2):
        table = pa.table({"n": list(range(f * ROWS // 2, (f + 1) * ROWS // 2)), "k": list(range(ROWS // 2))})
        pq.write_table(table, folder / f"{f}.parquet")
    return folder


def _fails(
    flow: sv.Workflow, spark: SparkSession, folder: Path, operator: str, **options: Any
) -> CountsDiffer:
    """The error of a run of which nothing is committed."""
    run = flow.start(spark=spark, record=folder / "runs", key_partitions=16, **options)
    with pytest.raises(CountsDiffer, match=r"Epoch 0 does not add up and is not committed") as caught:
        run.wait(120, progress=False)
    error = caught.value
    assert (error.operator, run.status) == (operator, "failed")
    assert error.got < error.expected
    assert run.recording is not None
    assert sv.open(run.recording).history.epochs == []
    return error


def test_an_epoch_that_lost_state_files_is_not_committed(
    spark: SparkSession, tmp_path: Path, source: Path
) -> None:
    flow = sv.Workflow("loses")
    rows = flow.read.parquet(str(source), name="src")
    rows.apply(Count(str(tmp_path / "runs")), by="k", name="count").sink("S")
    error = _fails(flow, spark, tmp_path, "count")
    assert error.expected == ROWS
    assert f"'src' gave {ROWS} rows, of which 'count' took {error.got}." in str(error)


@pytest.mark.parametrize("kind", ["sink", "target", "delta"])
def test_an_epoch_that_lost_rows_after_they_were_written_is_not_committed(
    spark: SparkSession, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def lossy(folders: Iterable[Path]) -> int:
        """The rows that are left when the first file with rows is gone, as if it lay on another host."""
        folders = list(folders)
        files = sorted(p for f in folders for p in f.glob("*.parquet"))
        next(p for p in files if pq.read_metadata(p).num_rows).unlink()
        return rows_in(folders)

    monkeypatch.setattr(epoch, "rows_in", lossy)
    flow = sv.Workflow("loses")
    rows = flow.read.parquet(str(source), name="src")
    if kind == "delta":
        rows.groupBy("k").agg("count(1) AS n", name="end").sink("S")
    elif kind == "target":
        rows.write.parquet(str(tmp_path / "out"), name="end")
    else:
        rows.sink("end")
    error = _fails(flow, spark, tmp_path, "end", epoch_bytes=1)
    assert error.expected == ROWS // 2  # one file of two
    assert not (tmp_path / "out").exists()


def test_files_that_spark_is_told_to_pass_over_are_not_missed(
    spark: SparkSession, tmp_path: Path, source: Path
) -> None:
    flow = sv.Workflow("some")
    flow.read.parquet(str(source), name="src", pathGlobFilter="0.*").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs")
    assert run.result("S").num_rows == ROWS // 2
    assert {o.name: o.given for o in run.progress.operators}["src"] == ROWS // 2


def test_a_python_operator_before_one_that_takes_a_few_batches_sees_all_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    def few(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)

    many = 5 * FLUSH
    pq.write_table(pa.table({"n": list(range(many)), "k": [0] * many}), tmp_path / "many.parquet")
    flow = sv.Workflow("few")
    rows = flow.read.parquet(str(tmp_path / "many.parquet"), name="src").apply(Count(), name="all")
    rows.mapInArrow(few, "n bigint, k bigint", name="few").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs")
    assert {o.name: o.taken for o in run.progress.operators}["all"] == many
    assert 0 < run.result("S").num_rows < many
