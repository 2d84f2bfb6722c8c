"""A worker waits for the task of an epoch ahead: it comes, or the epoch is given up, or nobody comes."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from samovar.runtime.exchange import late_task
from samovar.runtime.exchange.late_task import LateTask
from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.task_signs import has_sign


def task(tmp_path: Path, token: str) -> Task:
    return Task("r", 1, token, (), positions=0, stateful=True, errors=str(tmp_path / "errors"))


@pytest.fixture
def late(tmp_path: Path) -> LateTask:
    (tmp_path / "turn").mkdir()
    return LateTask(str(tmp_path / "turn" / "W"), task(tmp_path, "early"))


def test_a_worker_goes_on_with_the_task_that_is_handed_out(late: LateTask, tmp_path: Path) -> None:
    got: list[Task | None] = []

    def work() -> None:
        late.arrive()
        got.append(late.wait())

    worker = threading.Thread(target=work)
    assert not late.arrived()
    worker.start()
    while not late.arrived():
        assert worker.is_alive()
    assert not got
    late.hand_out(task(tmp_path, "in its turn"))
    worker.join(10)
    assert [one and one.token for one in got] == ["in its turn"]


def test_an_epoch_that_is_dropped_lets_its_workers_go(late: LateTask, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "turn")
    late.arrive()
    assert late.wait() is None
    assert not has_sign(tmp_path / "errors", "abandoned")


def test_a_worker_does_not_hold_a_core_for_ever(
    late: LateTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_task, "PATIENCE", 0.02)
    assert late.wait() is None
    assert has_sign(tmp_path / "errors", "abandoned")
