"""Damage found on resuming: the run goes on before the damaged epoch, says so, and ends as if nothing had been."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.choice import by_default

import samovar as sv
from samovar.errors import RecordingCorrupt, RecordingError, RecordingInUse, RunStopped, StorageProblem
from samovar.record.digests import note_sound
from samovar.record.log import EpochCommitted, RunResumed, RunStarted
from samovar.record.state_files import read_state
from samovar.record.store import History, Recording
from samovar.runtime.failures.explanation import damage_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 4, 20


class Sum(sv.Operator):
    """The running sum of n."""

    output = "n bigint, total bigint"
    total: Any = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.total += row["n"]
        yield {"n": row["n"], "total": self.total}


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run stopped after its third epoch: a running sum with a state, and an aggregate with deltas."""
    base = tmp_path_factory.mktemp("rollback")
    (base / "in").mkdir()
    for n in range(FILES):
        pq.write_table(pa.table({"n": range(n * ROWS, (n + 1) * ROWS)}), base / "in" / f"{n}.parquet")
    flow = sv.Workflow("sums")
    rows = flow.read.parquet(str(base / "in"), name="rows").apply(Sum(), name="sum")
    rows.sink("S")
    rows.groupBy().agg("sum(total) AS total", name="all").sink("A")
    run = flow.start(spark=spark, record=base / "runs", epoch_bytes=1, run_id="sums")
    run.on_progress(lambda p: run.stop(wait=False) if p.epoch == 3 else None)
    with pytest.raises(RunStopped):
        run.wait(120, progress=False)
    return base / "runs" / "sums"


def _check_results(past: sv.Past) -> None:
    totals = [n * (n + 1) // 2 for n in range(FILES * ROWS)]
    assert past.result("S").column("total").to_pylist() == totals
    assert past.result("A").column("total").to_pylist() == [sum(totals)]


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


Damage = tuple[str, Callable[[Path], None], int]
DAMAGES: dict[str, Damage] = {
    "a flipped bit": ("epochs/000001-*/results/S/*.parquet", _flip, 1),
    "an empty file": ("epochs/000002-*/deltas/all/*.parquet", lambda path: os.truncate(path, 0), 2),
    "a lost state": ("epochs/000001-*/state/sum/0000.delta", Path.unlink, 1),
    "a lost folder": ("epochs/000001-*", shutil.rmtree, 1),
}
"""What is damaged, how, and how many epochs are whole."""


@pytest.mark.parametrize("kind", DAMAGES)
def test_epochs_before_the_first_damaged_one_are_whole(stopped: Path, tmp_path: Path, kind: str) -> None:
    pattern, damage, epochs = DAMAGES[kind]
    copy = tmp_path / "sums"
    shutil.copytree(stopped, copy)
    damaged = next(copy.glob(pattern))
    damage(damaged)
    recording = Recording.open(copy)
    count, problems = recording.whole_epochs(recording.history(), moved=lambda epoch, name: False)
    assert count == epochs
    assert damaged.name in " ".join(map(str, problems))


@pytest.mark.parametrize("kind", by_default(DAMAGES, ("a flipped bit", "a lost state")))
def test_a_run_goes_on_before_the_first_damaged_epoch_and_says_so(
    stopped: Path,
    tmp_path: Path,
    spark: SparkSession,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    pattern, damage, epochs = DAMAGES[kind]
    copy = tmp_path / "sums"
    shutil.copytree(stopped, copy)
    damaged = next(copy.glob(pattern))
    damage(damaged)
    past = sv.open(copy)
    with caplog.at_level(logging.WARNING, "samovar"):
        run = past.resume(spark)
    told = [r.getMessage() for r in caplog.records if "computed again" in r.getMessage()]
    assert len(told) == 1
    assert ("epochs 1 to 2 are" if epochs == 1 else "epoch 2 is") in told[0]
    assert run.progress.note in told[0]
    run.wait(120, progress=False)
    _check_results(past)
    (fact,) = [f for f in past._recording.facts() if isinstance(f, RunResumed)]
    assert fact.epoch == epochs
    assert fact.damaged
    assert damaged.name in " ".join(fact.damaged)
    assert str(tmp_path) not in " ".join(fact.damaged)
    counted = {past._recording.epoch_folder(e).name for e in past.history.epochs}
    assert {p.name for p in (copy / "epochs").iterdir()} == counted


def test_what_only_looking_back_needs_does_not_undo_epochs(tmp_path: Path) -> None:
    made = Recording.create(tmp_path / "r")
    assert made.log is not None
    made.log.append(
        RunStarted(at=1.0, format=2, run="r", workflow="w", samovar="0", spark="4", python="3.11.7")
    )
    for number in range(3):
        folder = made.attempt_folder(number, "aa")
        for name in ("decisions/rows.pkl", "results/S/part.parquet"):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_bytes(b"some rows")
        made.log.append(
            EpochCommitted(at=2.0, epoch=number, level=0, attempt="aa", files=made.sealed(folder))
        )
    _flip(made.attempt_folder(0, "aa") / "decisions/rows.pkl")
    assert made.whole_epochs(made.history(), moved=lambda epoch, name: False) == (3, [])
    _flip(made.attempt_folder(1, "aa") / "results/S/part.parquet")
    count, problems = made.whole_epochs(made.history(), moved=lambda epoch, name: False)
    assert (count, len(problems)) == (1, 1)
    assert made.whole_epochs(made.history(), moved=lambda epoch, name: True) == (3, [])
    made.close()


def test_a_change_whose_state_is_lost_is_undone_with_it() -> None:
    def epoch(number: int, **more: Any) -> EpochCommitted:
        return EpochCommitted(at=1.0, epoch=number, level=0, attempt="aa", **more)

    facts = [epoch(0), epoch(1, switched={"F": 1}), epoch(2, code={"G": 1}), epoch(3)]
    for count, changed in ((4, {"F", "G"}), (3, {"F", "G"}), (2, {"F"}), (1, set())):
        history = History.of([*facts, RunResumed(at=2.0, epoch=count)])
        assert len(history.epochs) == count
        assert {n for change in history.changes for n in change.operators} == changed


def test_damaged_epochs_of_published_results_are_not_computed_again(
    tmp_path: Path, spark: SparkSession
) -> None:
    pq.write_table(pa.table({"n": range(5)}), tmp_path / "in.parquet")
    flow = sv.Workflow("written")
    rows = flow.read.parquet(str(tmp_path / "in.parquet"), name="rows")
    rows.write.parquet(str(tmp_path / "out"), name="W")
    rows.sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    past = sv.open(str(run.recording))
    past.resume(spark).wait(60, progress=False)  # whole, though files of W lie elsewhere by now
    _flip(next(past.path.glob("epochs/*/results/S/*.parquet")))
    with pytest.raises(RecordingCorrupt, match="lie at their paths already"):
        past.resume(spark)
    with pytest.raises(RecordingCorrupt, match="checksum"):
        past.result("S")
    assert pq.read_table(tmp_path / "out").num_rows == 5


@pytest.mark.slow
def test_the_command_line_says_that_epochs_are_computed_again(stopped: Path, tmp_path: Path) -> None:
    copy = tmp_path / "sums"
    shutil.copytree(stopped, copy)
    os.truncate(next(copy.glob("epochs/000002-*/results/S/*.parquet")), 0)
    done = subprocess.run(
        [sys.executable, "-m", "samovar.cli.main", "run", "--resume", str(copy)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "epoch 2 is computed again" in " ".join(done.stderr.split())
    _check_results(sv.open(copy))


def test_a_bit_that_flips_while_the_run_goes_on_is_told_as_damage_and_mended_by_a_resume(
    stopped: Path, tmp_path: Path, spark: SparkSession
) -> None:
    copy = tmp_path / "sums"
    shutil.copytree(stopped, copy)
    delta = next(copy.glob("epochs/000000-*/deltas/all/*.parquet"))
    page = pq.read_metadata(delta).row_group(0).column(0)
    run = sv.open(copy).resume(spark)

    def flip(progress: Any) -> None:
        if progress.epoch != 4:  # the next one closes the aggregate
            return
        data = bytearray(delta.read_bytes())
        crc = zlib.crc32(data)
        data[page.data_page_offset + page.total_compressed_size - 1] ^= 1
        delta.write_bytes(data)
        note_sound(delta, delta.stat(), crc)  # as if the file looked as before

    run.on_progress(flip)
    with pytest.raises(RecordingCorrupt, match=delta.name) as caught:
        run.wait(120, progress=False)
    assert "resume" in (caught.value.hint or "")
    past = sv.open(copy)
    past.resume(spark).wait(120, progress=False)
    _check_results(past)
    assert [f.epoch for f in past._recording.facts() if isinstance(f, RunResumed)] == [3, 0]


def test_damage_that_a_worker_finds_is_no_failure_of_the_users_code(
    tmp_path: Path, spark: SparkSession
) -> None:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read_state(tmp_path / "0000.delta")
        yield from batches

    (tmp_path / "0000.delta").write_bytes(b"nothing of the kind, but long enough")
    with pytest.raises(Exception, match="RecordingCorrupt") as caught:
        spark.range(3).mapInArrow(read, "id bigint").collect()
    found = damage_in(str(caught.value), tmp_path)
    assert isinstance(found, RecordingCorrupt)
    assert found.message == f"State file {tmp_path}/0000.delta does not match its checksum."
    assert "resume" in (found.hint or "")


# --- recordings that cannot be written, or whose code cannot run ------------------------------------------------------


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs the right to mount: {done.stderr.strip()}")


def test_resuming_a_recording_that_cannot_be_written_is_told(
    stopped: Path, tmp_path: Path, spark: SparkSession
) -> None:
    at = tmp_path / "readonly"
    at.mkdir()
    _mount("--bind", str(stopped), str(at))
    try:
        _mount("-o", "remount,ro,bind", str(at))
        past = sv.open(at)
        assert past.result("S").num_rows == 3 * ROWS
        with pytest.raises(StorageProblem, match="cannot be written: Read-only") as caught:
            past.resume(spark)
        assert "copy it to where it can be written" in (caught.value.hint or "")
    finally:
        subprocess.run(["umount", str(at)], check=True)


def _made_by(recording: Path, python: str) -> None:
    """Have the log say that another Python made the recording."""
    log = recording / "log.jsonl"
    first, rest = log.read_bytes().split(b"\n", 1)
    fact = {**json.loads(first[9:]), "python": python}
    body = json.dumps(fact).encode()
    log.write_bytes(b"%08x %s\n%s" % (zlib.crc32(body), body, rest))


def test_code_of_another_python_is_made_from_its_text_and_refused_without(
    stopped: Path, tmp_path: Path, spark: SparkSession
) -> None:
    copy = tmp_path / "sums"
    shutil.copytree(stopped, copy)
    _made_by(copy, "3.10.2")
    (copy / "code" / "sum.pkl").write_bytes(b"nothing that can be loaded")
    past = sv.open(copy, spark=spark)
    assert past.jump("sum", tuples=5).state("sum")["total"] == 10
    past.close()
    written = json.loads((copy / "workflow.json").read_text())
    for op in written["operators"]:
        op.pop("code", None)
    (copy / "workflow.json").write_text(json.dumps(written))
    past = sv.open(copy, spark=spark)
    with pytest.raises(RecordingCorrupt, match=r"workflow\.json"):
        past.jump("sum", tuples=5)
    past.close()


def test_code_of_another_python_without_a_text_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    pq.write_table(pa.table({"n": range(5)}), tmp_path / "in.parquet")
    made = type("Made", (Sum,), {})  # no text of it anywhere
    flow = sv.Workflow("textless")
    flow.read.parquet(str(tmp_path / "in.parquet"), name="rows").apply(made(), name="sum").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    _made_by(Path(str(run.recording)), "3.10.2")
    past = sv.open(str(run.recording), spark=spark)
    for use in (past.resume, lambda: past.jump("sum", tuples=2)):
        with pytest.raises(RecordingError, match=r"compiled by Python 3\.10") as caught:
            use()
        assert "Use Python 3.10" in (caught.value.hint or "")
        assert caught.value.operator == "sum"
    assert past.result("S").num_rows == 5
    past.close()


# --- two writers ------------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_one_that_lost_its_turn_leaves_the_recording_readable(
    stopped: Path, tmp_path: Path, spark: SparkSession
) -> None:
    copy = tmp_path / "sums"
    shutil.copytree(stopped, copy)
    first = sv.open(copy).resume(spark)
    refused: list[BaseException] = []

    def meanwhile(progress: Any) -> None:
        if refused:
            return
        (copy / "LOCK").unlink()  # as where locks are not kept
        try:
            sv.open(copy).resume(spark)
        except RecordingInUse as error:
            refused.append(error)
            (copy / "WRITER").unlink()
            (copy / "LOCK").unlink()
            Recording.open(copy, write=True).close()  # somebody else has it now, and has written nothing

    first.on_progress(meanwhile)
    with pytest.raises(RecordingInUse):
        first.wait(120, progress=False)
    assert refused
    past = sv.open(copy)
    assert len(past.history.epochs) == 4
    past.resume(spark).wait(120, progress=False)
    _check_results(past)
