"""Input files that are replaced during a run: what was read of them since is not committed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.errors import SourceChanged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 4, 50


def _write(file: Path, start: int, rows: int) -> None:
    pq.write_table(pa.table({"n": list(range(start, start + rows))}), file)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for n in range(FILES):
        _write(folder / f"{n}.parquet", n * ROWS, ROWS)
    return folder


class Replaces(sv.Operator):
    """Passes rows on; at the row numbered `at` it replaces a file by another."""

    output = "n bigint"

    def __init__(self, at: int, file: str, by: str) -> None:
        self.at = at
        self.file = file
        self.by = by

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        if row["n"] == self.at:
            os.replace(self.by, self.file)
        yield {"n": row["n"]}


def _fails(run: sv.Run, committed: int, match: str) -> None:
    with pytest.raises(SourceChanged, match=match) as caught:
        run.wait(120, progress=False)
    assert (caught.value.operator, run.status) == ("src", "failed")
    assert run.recording is not None
    past = sv.open(run.recording)
    assert len(past.history.epochs) == committed
    assert past.result("S").num_rows == committed * ROWS


@pytest.mark.parametrize("native", [True, False], ids=["native", "python"])
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda file: _write(file, 0, 3 * ROWS), r"2\.parquet of source 'src' has changed .* bytes"),
        (lambda file: os.utime(file, (1, 1)), r"2\.parquet of source 'src' has changed .* last changed at"),
        (lambda file: file.unlink(), r"2\.parquet of source 'src' is gone"),
    ],
    ids=["replaced", "touched", "removed"],
)
def test_a_file_that_changes_before_its_epoch_ends_the_run(
    spark: SparkSession,
    tmp_path: Path,
    source: Path,
    change: Callable[[Path], None],
    match: str,
    native: bool,
) -> None:
    flow = sv.Workflow("changes")
    rows = flow.read.parquet(str(source), name="src")
    (rows if native else rows.apply(Replaces(-1, "", ""), name="op")).sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    run.on_progress(lambda p: change(source / "2.parquet") if p.epoch == 1 else None)
    _fails(run, 2, match)


def test_a_file_that_is_replaced_while_its_epoch_runs_is_not_committed(
    spark: SparkSession, tmp_path: Path, source: Path
) -> None:
    other = tmp_path / "other.parquet"
    _write(other, 0, 2 * ROWS)
    flow = sv.Workflow("changes")
    rows = flow.read.parquet(str(source), name="src")
    rows.apply(Replaces(2 * ROWS + 1, str(source / "2.parquet"), str(other)), name="op").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    _fails(run, 2, r"2\.parquet of source 'src' has changed since the run listed it")


def test_a_build_side_that_changes_between_epochs_ends_the_run(
    spark: SparkSession, tmp_path: Path, source: Path
) -> None:
    names = tmp_path / "names.parquet"
    pq.write_table(pa.table({"n": list(range(FILES * ROWS)), "name": ["x"] * FILES * ROWS}), names)
    flow = sv.Workflow("changes")
    build = flow.read.parquet(str(names), name="src")
    flow.read.parquet(str(source), name="rows").join(build, "n", name="named").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    run.on_progress(lambda p: os.utime(names, (1, 1)) if p.epoch == 1 else None)
    _fails(run, 1, r"names\.parquet of source 'src' has changed")


def test_a_remote_file_that_changes_is_noticed_during_the_run_and_on_resuming(
    spark: SparkSession, tmp_path: Path, source: Path
) -> None:
    # a file system of Hadoop's own with another scheme: its files are listed by Spark alone
    mounted = "fs.viewfs.mounttable.inputs.link./in"
    spark.conf.set(mounted, source.as_uri())
    try:
        flow = sv.Workflow("remote")
        flow.read.parquet("viewfs://inputs/in", name="src").sink("S")
        run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
        stat = (source / "2.parquet").stat()
        run.on_progress(lambda p: os.utime(source / "2.parquet", (1, 1)) if p.epoch == 1 else None)
        _fails(run, 2, r"viewfs://inputs/in/2\.parquet of source 'src' has changed")
        assert run.recording is not None
        past = sv.open(run.recording)
        with pytest.raises(SourceChanged, match=r"2\.parquet"):
            past.resume(spark)
        os.utime(source / "2.parquet", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert past.resume(spark).result("S").num_rows == FILES * ROWS
    finally:
        spark.conf.unset(mounted)
