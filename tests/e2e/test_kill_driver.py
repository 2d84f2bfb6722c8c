"""`kill -9` of the driver at any instant, then a resume: the same results and counters as without."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.e2e.child import Child, wait_until
from tests.e2e.flows import build, everything, file_bytes, payments

import samovar as sv
from samovar.record.log import EpochCommitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 5


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return payments(tmp_path_factory.mktemp("kill-driver") / "in", files=FILES, rows=200)


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, source: Path) -> dict[str, Any]:
    base = source.parent
    run = build(source, base / "out").start(
        spark=spark, record=base / "runs", run_id="whole", epoch_bytes=file_bytes(source)
    )
    run.wait(progress=False)
    return everything(sv.open(base / "runs" / "whole"), base / "out")


def _spec(folder: Path, source: Path, run: str, **more: Any) -> dict[str, Any]:
    return {
        "source": str(source),
        "target": str(folder / "out"),
        "record": str(folder / "runs"),
        "run": run,
        "epoch_bytes": file_bytes(source),
        **more,
    }


def _committed(path: Path) -> int:
    log = path / "log.jsonl"
    return log.read_bytes().count(b'"fact":"epoch"') if log.exists() else 0


def _check_whole(folder: Path, run: str, undisturbed: dict[str, Any]) -> None:
    past = sv.open(folder / "runs" / run)
    assert everything(past, folder / "out") == undisturbed
    counted = {past._recording.epoch_folder(e).name for e in past.history.epochs}
    assert {p.name for p in (past.path / "epochs").iterdir()} == counted
    facts = [f.epoch for f in past._recording.facts() if isinstance(f, EpochCommitted)]
    assert facts == list(range(FILES + 1))


def _killed_at_random(
    seed: int, folder: Path, source: Path, spark: SparkSession, expected: dict[str, Any]
) -> None:
    """Kill after some epoch and some part of the next one; resume here."""
    instant = random.Random(seed)
    after, part, group = instant.randrange(FILES + 1), instant.random(), instant.random() < 0.5
    run = f"r{seed}"
    child = Child(folder, _spec(folder, source, run))
    wait_until(lambda: _committed(folder / "runs" / run) >= after, child)
    if after == 0:
        wait_until(lambda: any((folder / "runs" / run).glob("epochs/*/*")), child)
    until = time.monotonic() + 2.5 * part
    while time.monotonic() < until and child.process.poll() is None:
        time.sleep(0.005)
    child.kill(group=group)
    child.end()
    sv.open(folder / "runs" / run).resume(spark).wait(progress=False)
    _check_whole(folder, run, expected)


@pytest.mark.slow
def test_killed_in_mid_epoch_and_resumed_the_run_ends_as_if_undisturbed(
    tmp_path: Path, source: Path, spark: SparkSession, undisturbed: dict[str, Any]
) -> None:
    _killed_at_random(2, tmp_path, source, spark, undisturbed)


def test_killed_while_a_commit_is_written_the_epoch_is_done_again(
    tmp_path: Path, source: Path, spark: SparkSession, undisturbed: dict[str, Any]
) -> None:
    kill = {"at": "commit", "nth": 2, "when": "torn"}
    child = Child(tmp_path, _spec(tmp_path, source, "torn", kill=kill))
    assert child.end() == -9, child.said()
    past = sv.open(tmp_path / "runs" / "torn")
    assert past.status == "interrupted"
    assert len(past.history.epochs) == 1
    past.resume(spark).wait(progress=False)
    _check_whole(tmp_path, "torn", undisturbed)


@pytest.mark.slow
def test_killed_while_files_are_published_a_resume_in_a_new_process_publishes_the_rest_once(
    tmp_path: Path, source: Path, undisturbed: dict[str, Any]
) -> None:
    kill = {"at": "publish", "nth": 3, "when": "after"}
    child = Child(tmp_path, _spec(tmp_path, source, "half", kill=kill))
    assert child.end() == -9, child.said()
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == 3
    again = Child(tmp_path, {"record": str(tmp_path / "runs"), "run": "half"})
    assert again.end() == 0, again.said()
    _check_whole(tmp_path, "half", undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("at", "nth"), [("commit", 1), ("commit", FILES + 1), ("publish", 1)])
def test_killed_on_either_side_of_a_commit_or_a_move_nothing_counts_twice(
    at: str,
    nth: int,
    when: str,
    tmp_path: Path,
    source: Path,
    spark: SparkSession,
    undisturbed: dict[str, Any],
) -> None:
    child = Child(tmp_path, _spec(tmp_path, source, "r", kill={"at": at, "nth": nth, "when": when}))
    assert child.end() == -9, child.said()
    sv.open(tmp_path / "runs" / "r").resume(spark).wait(progress=False)
    _check_whole(tmp_path, "r", undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_killed_at_a_random_instant_and_resumed_the_run_ends_as_if_undisturbed(
    seed: int, tmp_path: Path, source: Path, spark: SparkSession, undisturbed: dict[str, Any]
) -> None:
    _killed_at_random(seed, tmp_path, source, spark, undisturbed)
