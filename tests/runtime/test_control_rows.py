"""A row that an expression fails on inside Spark is held as a tuple of a Python operator is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runtime.stamping import replayed_rows
from tests.runtime.steered import WAIT

import samovar as sv
from samovar.replay.state.windows import Windows
from samovar.replay.trace.leaves import Leaves


def texts(tmp_path: Path, *values: str) -> sv.Workflow:
    (tmp_path / "in").mkdir()
    half = len(values) // 2
    for i, part in enumerate((values[:half], values[half:])):
        table = pa.table({"x": range(i * half, i * half + len(part)), "t": list(part)})
        pq.write_table(table, tmp_path / "in" / f"{i}.parquet")
    flow = sv.Workflow("texts")
    rows = flow.read.parquet(str(tmp_path / "in"), name="texts")
    rows.selectExpr("x", "cast(t AS int) AS n", name="P").filter("100 / n > 1", name="F").sink("S")
    return flow


def held(run: Any) -> Any:
    assert run.wait_until("holding", timeout=WAIT) == "holding", run.error
    return run.held


def numbers(run: Any) -> list[tuple[int, int]]:
    return sorted((r["x"], r["n"]) for r in run.result("S").to_pylist())


def test_rows_are_edited_and_skipped_and_a_replay_does_the_same(spark: Any, tmp_path: Path) -> None:
    flow = texts(tmp_path, "5", "6", "seven", "8", "9", "0", "1")
    run = flow.start(spark=spark, record=tmp_path / "runs", on_error="hold", epoch_bytes=1)
    found = held(run)
    assert (found.operator, found.row, found.epoch) == ("P", {"x": 2, "t": "seven"}, 0)
    assert "cast" in found.error.lower()
    run.retry(row={"t": "7"})
    found = held(run)
    assert (found.operator, found.row) == ("F", {"x": 5, "n": 0})
    run.skip()
    assert numbers(run) == [(0, 5), (1, 6), (2, 7), (3, 8), (4, 9), (6, 1)]
    rejected = run.rejected("F").to_pylist()
    assert [r["row"] for r in rejected] == [{"x": 5, "n": 0}]
    past = sv.open(str(run.recording), spark=spark)
    totals = past.history.totals()
    assert (totals["P"].taken, totals["P"].given) == ((7,), 7)
    assert (totals["F"].taken, totals["F"].given) == ((7,), 6)
    assert sorted((r["x"], r["n"]) for r in replayed_rows(past, "F")) == numbers(run)


def test_all_rows_like_it_are_skipped(spark: Any, tmp_path: Path) -> None:
    flow = texts(tmp_path, "5", "six", "7", "eight")
    run = flow.start(spark=spark, record=tmp_path / "runs", on_error="hold", epoch_bytes=1)
    held(run)
    run.skip(all_like_it=True)
    assert numbers(run) == [(0, 5), (2, 7)]
    assert [r["row"]["t"] for r in run.rejected("P").to_pylist()] == ["six", "eight"]


def test_a_jump_behind_a_skipped_row_does_not_count_it(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leaves, "smallest", 0)
    monkeypatch.setattr(Windows, "size", 1)
    monkeypatch.setattr(Windows, "margin", 1)
    flow = texts(tmp_path, "5", "six", "7", "8", "9", "10", "11", "12")
    run = flow.start(spark=spark, record=tmp_path / "runs", on_error="hold")
    held(run)
    run.skip()
    assert len(numbers(run)) == 7
    with sv.open(str(run.recording), spark=spark) as past:
        for tuples, n in ((1, 5), (2, 7), (7, 12)):
            assert past.jump("F", tuples=tuples).last.row["n"] == n


def test_an_expression_is_mended_and_the_row_tried_again(spark: Any, tmp_path: Path) -> None:
    run = texts(tmp_path, "5", "six", "7", "0").start(
        spark=spark, record=tmp_path / "runs", on_error="hold", epoch_bytes=1
    )
    assert held(run).operator == "P"
    run.modify({"P": ["x", "coalesce(try_cast(t AS int), -1) AS n"]})
    run.retry()
    assert held(run).row == {"x": 3, "n": 0}
    run.stop()
    again = sv.open(str(run.recording)).resume(spark=spark)
    assert held(again).row == {"x": 3, "n": 0}  # with the mended expression
    again.modify({"F": "n <> 0 AND 100 / n > 1"})
    again.retry()
    assert numbers(again) == [(0, 5), (2, 7)]
