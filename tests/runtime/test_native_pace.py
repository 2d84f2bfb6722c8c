"""Epochs that Spark runs by itself, over rows whose expression is slow for their bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runtime.steered import WAIT, numbers

import samovar as sv
from samovar.control.events import StageTasks
from samovar.runtime.epochs import pacer
from samovar.runtime.live import task_tracker
from samovar.runtime.live.task_tracker import running_stages

FILES, ROWS = 60, 16
SLOW = "aggregate(sequence(1L, 8000L + x), 0L, (a, b) -> (a * 31 + b) % 1000003)"
"""Some milliseconds a row in a session for tests, which compiles nothing."""


def flow_over(folder: Path) -> sv.Workflow:
    flow = sv.Workflow("slow-expression")
    rows = flow.read.parquet(numbers(folder, rows=ROWS, files=FILES), name="numbers")
    rows.selectExpr("x", f"{SLOW} AS y").sink("S")
    return flow


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch in which no task finishes is given up after a third of a second."""
    monkeypatch.setattr(pacer, "FIRST_TASK", 0.3)
    monkeypatch.setattr(pacer, "COLD", 0.3)
    monkeypatch.setattr(task_tracker, "EVERY", 0.1)


@pytest.mark.starts_spark
@pytest.mark.usefixtures("impatient")
def test_many_small_files_with_a_slow_expression_are_several_epochs_and_a_pause_meets_a_short_one(
    spark: Any, tmp_path: Path
) -> None:
    """All of the input has fewer bytes than a first epoch, in two tasks of which neither finishes soon."""
    run = flow_over(tmp_path).start(spark=spark, record=tmp_path / "runs")
    while not run.history.epochs and not run.wait_ended(0.005):
        pass
    assert "epoch 0 was given up" in run.progress.note
    run.pause()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    assert not run.history.epochs[-1].last
    run.resume()
    assert sorted(run.result("S").column("x").to_pylist()) == list(range(FILES * ROWS))
    first = run.history.epochs[0].units["numbers"]
    assert first[1] - first[0] <= 3  # one for each core
    assert len(run.history.epochs) >= 4
    assert sum(epoch.counters["numbers"].given for epoch in run.history.epochs) == FILES * ROWS


class Tracker:
    """Spark's status of jobs: two of a group, of which one has ended, and one of another group."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def getJobIdsForGroup(self, group: str) -> list[int]:
        return [1, 2] if group == "a" else []

    def getJobInfo(self, number: int) -> Any:
        self.asked.append(number)
        return Info(status="SUCCEEDED" if number == 1 else "RUNNING", stageIds=[10 * number, 10 * number + 1])

    def getActiveStageIds(self) -> list[int]:
        return [21, 30]

    def getStageInfo(self, number: int) -> Any:
        return Info(stageId=number, numTasks=9, numCompletedTasks=8, numActiveTasks=0)


class Info:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def test_running_stages_are_those_of_the_attempts_running_jobs() -> None:
    tracker, ended = Tracker(), set[int]()
    for _ in range(2):
        assert running_stages(tracker, "a", ended, 2) == {21: StageTasks(8, 1, 9)}
    assert tracker.asked == [1, 2, 2]
    assert running_stages(tracker, "b", ended, 2) == {}
