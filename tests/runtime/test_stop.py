"""A stopped run gives up what Spark is computing for it at once, and can be resumed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv

SLOW = "aggregate(sequence(1L, 3000000L + x), 0L, (a, b) -> (a * 31 + b) % 1000003)"


def test_stop_cancels_the_job_that_runs(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": range(2_000)}), tmp_path / "in" / "0.parquet")  # minutes of work
    flow = sv.Workflow("slow")
    flow.read.parquet(str(tmp_path / "in"), name="n").selectExpr("x", f"{SLOW} AS y").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs")
    tracker = spark.sparkContext.statusTracker()
    limit = time.monotonic() + 60
    while not tracker.getActiveJobsIds() and time.monotonic() < limit:
        time.sleep(0.02)
    began = time.monotonic()
    run.stop()
    assert time.monotonic() - began < 20
    assert run.status == "stopped"
    assert not tracker.getActiveJobsIds()
    with pytest.raises(sv.errors.RunStopped):
        run.wait(progress=False)
