"""Resuming: after a stop, with changed or missing input, with a second process in the way, on a full disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.errors import RecordingInUse, RunStopped, SourceChanged, StorageProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 3


def _inputs(folder: Path, *, rows: int = 50, width: int = 0) -> Path:
    folder.mkdir()
    for n in range(FILES):
        noise = [os.urandom(width).hex() for _ in range(rows)]
        table = pa.table({"n": list(range(n * rows, (n + 1) * rows)), "noise": noise})
        pq.write_table(table, folder / f"{n}.parquet")
    return folder


class Sum(sv.Operator):
    """The running sum of n."""

    output = "n bigint, total bigint, noise string"
    total: Any = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.total += row["n"]
        yield {**row, "total": self.total}


def _flow(source: Path, target: Path | None = None) -> sv.Workflow:
    flow = sv.Workflow("sums")
    rows = flow.read.parquet(str(source), name="rows").apply(Sum(), name="sum")
    rows.sink("S")
    if target is not None:
        rows.write.parquet(str(target), name="W")
    return flow


def _stopped(spark: SparkSession, source: Path, folder: Path) -> sv.Past:
    """A run stopped after its first epoch."""
    run = _flow(source).start(spark=spark, record=folder / "runs", epoch_bytes=1)
    run.on_progress(lambda _: run.stop(wait=False))
    with pytest.raises(RunStopped):
        run.wait(60, progress=False)
    past = sv.open(str(run.recording))
    assert past.status == "stopped"
    assert len(past.history.epochs) == 1
    return past


def _totals(rows: int = 50) -> list[int]:
    return [n * (n + 1) // 2 for n in range(FILES * rows)]


def test_a_stopped_run_goes_on_after_its_last_epoch_with_its_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    past = _stopped(spark, _inputs(tmp_path / "in"), tmp_path)
    run = past.resume(spark)
    assert run.result("S").column("total").to_pylist() == _totals()
    assert past.status == "completed"
    assert [e.epoch for e in past.history.epochs] == list(range(FILES))


def test_a_completed_run_resumed_does_nothing_more(spark: SparkSession, tmp_path: Path) -> None:
    run = _flow(_inputs(tmp_path / "in")).run(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    past = sv.open(str(run.recording))
    before = past.history.epochs
    again = past.resume(spark).wait(progress=False)
    assert past.history.epochs == before
    assert again.result("S").column("total").to_pylist() == _totals()


def test_an_input_that_changed_is_refused_and_accepted_again_when_restored(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = _inputs(tmp_path / "in")
    past = _stopped(spark, source, tmp_path)
    file = source / "2.parquet"
    stat, data = file.stat(), file.read_bytes()
    file.write_bytes(data + b"x")
    with pytest.raises(SourceChanged, match=r"2\.parquet of source 'rows' has changed") as caught:
        past.resume(spark)
    assert caught.value.operator == "rows"
    assert past.status == "stopped"
    file.write_bytes(data)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert past.resume(spark).result("S").num_rows == 50 * FILES


def test_an_input_that_is_gone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = _inputs(tmp_path / "in")
    past = _stopped(spark, source, tmp_path)
    (source / "0.parquet").unlink()
    with pytest.raises(SourceChanged, match=r"0\.parquet of source 'rows' is gone"):
        past.resume(spark)


def test_files_added_to_the_folder_later_do_not_belong_to_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = _inputs(tmp_path / "in")
    past = _stopped(spark, source, tmp_path)
    pq.write_table(pa.table({"n": [1], "noise": [""]}), source / "9.parquet")
    assert past.resume(spark).result("S").column("total").to_pylist() == _totals()


_HOLD = """
import sys
from samovar.record.store import Recording
held = Recording.open(sys.argv[1], write=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_recording_another_process_writes_cannot_be_resumed(spark: SparkSession, tmp_path: Path) -> None:
    past = _stopped(spark, _inputs(tmp_path / "in"), tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(past.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RecordingInUse, match="Another process"):
            past.resume(spark)
        assert past.status == "running"
        other.kill()
        other.wait()
    assert past.resume(spark).result("S").num_rows == 50 * FILES


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB, where mounting is permitted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_ends_the_run_with_what_to_do_and_a_resume_finishes_it(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    source = _inputs(tmp_path / "in", rows=300, width=300)  # about 180 kB a file, kept twice
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_300_000)
    run = _flow(source, tmp_path / "out").start(spark=spark, record=small_disk / "runs", epoch_bytes=1)
    with pytest.raises(StorageProblem, match=r"disk is full|No space left") as caught:
        run.wait(progress=False)
    assert "resume" in (caught.value.hint or "")
    assert run.status == "failed"
    assert not (tmp_path / "out").exists()
    past = sv.open(str(run.recording))
    assert past.history.epochs
    assert not past.history.epochs[-1].last
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    again = past.resume(spark)
    assert again.result("S").column("total").to_pylist() == _totals(300)
    rows = pq.read_table(tmp_path / "out", columns=["n"]).num_rows
    assert rows == 300 * FILES


def test_a_disk_that_is_full_from_the_start_leaves_no_recording(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    source = _inputs(tmp_path / "in")
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 4096)
        except OSError:
            pass
    with pytest.raises(StorageProblem):
        _flow(source).start(spark=spark, record=small_disk / "runs", epoch_bytes=1).wait(progress=False)
    assert not list(small_disk.glob("runs/*/log.jsonl"))
