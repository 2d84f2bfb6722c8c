"""Pausing and looking into a run on real Spark: what is stopped stays stopped, and nothing is lost or done twice."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Start
from tests.runtime.steered import WAIT, Gated, numbers, wait_for

import samovar as sv
from samovar.errors import CommandRefused, RunError, UnknownName

SLOW = "aggregate(sequence(1L, 300000L + x), 0L, (a, b) -> (a * 31 + b) % 1000003)"


def gated(tmp_path: Path, **options: Any) -> sv.Workflow:
    flow = sv.Workflow("gated")
    rows = flow.read.parquet(numbers(tmp_path, **options), name="numbers")
    rows.apply(Gated(str(tmp_path)), name="G").sink("S")
    return flow


def test_a_python_operator_stops_at_a_mini_step_and_goes_on_from_there(start: Start, tmp_path: Path) -> None:
    run = start(gated(tmp_path), record=tmp_path / "runs")
    wait_for(tmp_path / "arrived")
    run.pause()
    assert run.status == "paused"
    (tmp_path / "go").touch()  # it would go on now
    seen = run.inspect("G")
    assert not seen.consistent
    assert seen.state["n"] == 6
    assert seen.state["seen"] == {x: x + 1 for x in range(6)}
    assert seen.parts[0].tuples == 5
    flying = run.in_flight("G", limit=3)
    assert [r["x"] for r in flying.rows] == [5, 6, 7]
    assert flying.more == 12
    assert run.inspect("G").state == seen.state  # nothing moved
    until = time.monotonic() + WAIT
    while not run.figures and time.monotonic() < until:  # they come twice a second
        time.sleep(0.01)
    assert [(f.operator, f.taken, f.queue) for f in run.figures] == [("G", 6, 14)]
    run.resume()
    run.wait(progress=False)
    assert run.result("S").to_pydict() == {"x": list(range(20)), "n": list(range(1, 21))}
    assert len(sv.open(str(run.recording)).history.epochs) == 1
    with pytest.raises(CommandRefused, match="has ended"):
        run.pause()
    ended = run.inspect("G")
    assert ended.consistent
    assert ended.state["n"] == 20


def test_tuples_in_flight_are_those_of_the_whole_batch(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("samovar.runtime.worker.chain.PIECE", 8)
    run = start(gated(tmp_path), record=tmp_path / "runs")
    wait_for(tmp_path / "arrived")
    run.pause()
    flying = run.in_flight("G", limit=10)
    assert [r["x"] for r in flying.rows] == list(range(5, 15))
    assert flying.more == 5
    assert run.in_flight("G").more == 0
    (tmp_path / "go").touch()
    run.resume()
    run.wait(progress=False)
    assert run.result("S").to_pydict() == {"x": list(range(20)), "n": list(range(1, 21))}


def test_a_paused_run_can_be_stopped_and_resumed_from_its_recording(spark: Any, tmp_path: Path) -> None:
    run = gated(tmp_path).start(spark=spark, record=tmp_path / "runs")
    wait_for(tmp_path / "arrived")
    run.pause()
    run.stop()
    assert run.status == "stopped"
    (tmp_path / "go").touch()
    again = sv.open(str(run.recording)).resume(spark=spark)
    assert again.result("S").to_pydict()["n"] == list(range(1, 21))


def test_an_aligned_pause_has_nothing_in_flight(start: Start, tmp_path: Path) -> None:
    flow = gated(tmp_path, files=3)
    run = start(flow, record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    (tmp_path / "go").touch()
    run.pause(mode="aligned")
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    done = len(sv.open(str(run.recording)).history.epochs)
    seen = run.inspect("G")
    assert seen.consistent
    assert seen.state["n"] == 20 * done
    assert run.in_flight("G").rows == ()
    run.resume()
    assert run.result("S").to_pydict()["n"] == list(range(1, 61))


def test_an_epoch_that_spark_runs_by_itself_is_cancelled_and_done_again(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("native")
    flow.read.parquet(numbers(tmp_path, rows=40), name="n").selectExpr("x", f"{SLOW} AS y").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs")
    tracker = spark.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds() and run.status == "running":
        pass
    for _ in range(4):  # more often than an epoch may fail
        run.pause()
        assert run.status == "paused"
        assert not tracker.getActiveJobsIds()
        run.resume()
    assert sorted(run.result("S").to_pydict()["x"]) == list(range(40))
    assert len(sv.open(str(run.recording)).history.epochs) == 1


def test_a_pause_between_python_operators_waits_for_none_that_has_nothing_to_do(
    spark: Any, tmp_path: Path
) -> None:
    """The second operator has no rows yet: it waits for Spark, and counts as stopped."""
    flow = sv.Workflow("two")
    rows = flow.read.parquet(numbers(tmp_path), name="numbers")
    first = rows.apply(Gated(str(tmp_path)), name="G").filter("x >= 0", name="F")
    first.apply(Second(), name="H").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs")
    wait_for(tmp_path / "arrived")
    run.pause()
    assert run.status == "paused"
    assert run.inspect("G").state["n"] == 6
    run.resume()
    (tmp_path / "go").touch()
    assert run.result("S").to_pydict()["x"] == list(range(20))
    assert len(sv.open(str(run.recording)).history.epochs) == 1


class Second(sv.Operator):
    output = "x bigint"
    stateless = True

    def process(self, row: Any, port: int = 0) -> Any:
        yield {"x": row["x"]}


def test_what_cannot_be_done_is_refused_and_changes_nothing(start: Start, tmp_path: Path) -> None:
    run = start(gated(tmp_path), record=tmp_path / "runs")
    wait_for(tmp_path / "arrived")
    with pytest.raises(CommandRefused, match="Expected a paused run"):
        run.resume()
    with pytest.raises(RunError, match="'direct' or 'aligned'"):
        run.pause(mode="gently")  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        run.inspect("nobody")
    with pytest.raises(RunError, match="Expected a Python operator"):
        run.in_flight("S")
    assert run.status == "running"
    (tmp_path / "go").touch()
    assert run.result("S").num_rows == 20
