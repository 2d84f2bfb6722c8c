"""A Python worker of Spark's that dies in mid-epoch: the epoch is done again, results and counters count once."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tests.e2e.flows import build, everything, file_bytes, payments

import samovar as sv
from samovar.errors import OperatorFailed, RunError
from samovar.runtime.epochs.epoch_runner import ATTEMPTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 150


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return payments(tmp_path_factory.mktemp("kill-worker") / "in", files=3, rows=ROWS)


def _wait_for(path: Path, run: sv.Run, timeout: float = 120) -> int:
    """The process id a gate has written."""
    tick = threading.Event()
    for _ in range(int(timeout / 0.01)):
        if path.exists() and (text := path.read_text()):
            return int(text)
        assert run.status in ("starting", "running"), run.error
        tick.wait(0.01)
    raise AssertionError(f"{path} did not appear")


def test_a_worker_killed_in_mid_epoch_costs_an_attempt_and_nothing_else(
    tmp_path: Path, source: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    gates = tmp_path / "gates"
    gates.mkdir()
    flow = build(source, tmp_path / "out", gates=gates, at=ROWS + 70)  # in the second epoch
    with caplog.at_level(logging.WARNING, "samovar"):
        run = flow.start(
            spark=spark, record=tmp_path / "runs", run_id="killed", epoch_bytes=file_bytes(source)
        )
        worker = psutil.Process(_wait_for(gates / "second.waits", run))
        assert "pyspark" in " ".join(worker.cmdline())
        assert len(sv.open(tmp_path / "runs" / "killed").history.epochs) == 1
        worker.send_signal(signal.SIGKILL)
        (gates / "passed").touch()
        run.wait(progress=False)
    said = [r.getMessage() for r in caplog.records if "attempt" in r.getMessage()]
    assert said == ["run killed: epoch 1, attempt 1 of 3: a Python worker died"]
    build(source, tmp_path / "out2", gates=gates).run(
        spark=spark, record=tmp_path / "runs", run_id="whole", epoch_bytes=file_bytes(source)
    )
    killed = sv.open(tmp_path / "runs" / "killed")
    whole = everything(sv.open(tmp_path / "runs" / "whole"), tmp_path / "out2")
    assert everything(killed, tmp_path / "out") == whole
    assert len(list((killed.path / "epochs").iterdir())) == len(killed.history.epochs)


class Suicidal(sv.Operator):
    """Ends its own process, as a crash in a C library would, on a payment; says how often it did."""

    output = "id bigint"
    seen: Any = sv.ValueState(0)

    def __init__(self, folder: str, at: int, how: str) -> None:
        self.folder = folder
        self.at = at
        self.how = how

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.seen += 1
        if row["id"] == self.at and not os.path.exists(os.path.join(self.folder, "mended")):
            count = len(os.listdir(self.folder))
            with open(os.path.join(self.folder, f"{count}"), "w"):
                pass
            if self.how == "raise":
                raise ValueError("not a crash")
            os.kill(os.getpid(), signal.SIGKILL)
        yield {"id": self.seen}


def _start(how: str, folder: Path, source: Path, spark: SparkSession) -> sv.Run:
    (folder / "marks").mkdir()
    flow = sv.Workflow("crash")
    paid = flow.read.parquet(str(source), name="paid")
    paid.apply(Suicidal(str(folder / "marks"), ROWS + 5, how), name="bad").sink("S")
    run: sv.Run = flow.start(spark=spark, record=folder / "runs", run_id="r", epoch_bytes=file_bytes(source))
    return run


def test_a_worker_that_dies_every_time_ends_the_run_after_three_attempts_and_can_be_resumed(
    tmp_path: Path, source: Path, spark: SparkSession
) -> None:
    run = _start("kill", tmp_path, source, spark)
    with pytest.raises(RunError, match=f"{ATTEMPTS} times in a row: a Python worker died"):
        run.wait(progress=False)
    assert len(list((tmp_path / "marks").iterdir())) == ATTEMPTS
    assert len(sv.open(tmp_path / "runs" / "r").history.epochs) == 1
    (tmp_path / "marks" / "mended").touch()
    again = sv.open(tmp_path / "runs" / "r").resume(spark)
    assert again.result("S").column("id").to_pylist() == list(range(1, 3 * ROWS + 1))


def test_an_error_of_user_code_is_not_tried_again(tmp_path: Path, source: Path, spark: SparkSession) -> None:
    run = _start("raise", tmp_path, source, spark)
    with pytest.raises(OperatorFailed, match="not a crash"):
        run.wait(progress=False)
    assert len(list((tmp_path / "marks").iterdir())) == 1
