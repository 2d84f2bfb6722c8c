"""Moments marked while a run goes on: by a person, by a timer, by a condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runtime.steered import Gated, numbers, wait_for

import samovar as sv
from samovar.record.log import Counters, EpochCommitted
from samovar.runtime.live.interactions import Interactions


class Sum(sv.Operator):
    output = "x bigint, total bigint"
    total = sv.ValueState(0)

    def process(self, row: Any, port: int = 0) -> Any:
        self.total += row["x"]
        yield {"x": row["x"], "total": self.total}


@pytest.fixture
def flow(tmp_path: Path) -> sv.Workflow:
    (tmp_path / "in").mkdir()
    for i in range(3):
        pq.write_table(pa.table({"x": range(10 * i, 10 * i + 10)}), tmp_path / "in" / f"{i}.parquet")
    made = sv.Workflow("marks")
    sums = made.read.parquet(str(tmp_path / "in"), name="n").apply(Sum(), name="sum")
    sums.filter("total % 2 = 0", name="even").sink("S")
    return made


def test_a_condition_marks_the_moment_after_all_that_came_of_its_tuple(
    flow: sv.Workflow, spark: Any, tmp_path: Path
) -> None:
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    run.watch("sum", "x IN (7, 23)")
    name = run.interact("sum", note="here")
    run.wait(progress=False)
    past = sv.open(run.recording, spark=spark)
    by_condition = [i for i in past.interactions if i.by == "condition"]
    assert [i.epoch for i in by_condition] == [0, 2]
    for marked, x in zip(by_condition, (7, 23), strict=True):
        moment = past.jump(marked)
        total = sum(range(x + 1))
        assert moment.state("sum") == {"total": total}
        assert moment.counters["even"].taken == (x + 1,)  # the filter behind it has seen the tuple as well
    mine = next(i for i in past.interactions if i.id == name)
    assert (mine.note, mine.by) == ("here", "person")
    assert past.jump(str(name)).counters["sum"].taken == (mine.tuples,)


def test_bad_marks_are_refused(flow: sv.Workflow, spark: Any, tmp_path: Path) -> None:
    run = flow.start(spark=spark, record=tmp_path / "runs")
    with pytest.raises(sv.errors.TimeTravelError, match="nope"):
        run.watch("sum", "nope > 1")
    with pytest.raises(sv.errors.UnknownName):
        run.interact("summ")
    with pytest.raises(sv.SamovarError, match="above 0"):
        run.interact("sum", every=0)
    run.wait(progress=False)
    with pytest.raises(sv.SamovarError, match="has ended"):
        run.interact("sum")
    with pytest.raises(sv.errors.UnknownName, match="I99"):
        sv.open(run.recording, spark=spark).jump("I99")


def test_a_moment_marked_while_the_run_is_paused_is_that_of_the_tuple_the_operator_is_at(
    spark: Any, tmp_path: Path
) -> None:
    flow = sv.Workflow("paused")
    rows = flow.read.parquet(numbers(tmp_path, rows=20, files=2), name="numbers")
    rows.apply(Gated(str(tmp_path), stop=25), name="G").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    run.pause()
    name = run.interact("G")
    (tmp_path / "go").touch()
    run.resume()
    run.wait(progress=False)
    past = sv.open(run.recording, spark=spark)
    assert next(i.tuples for i in past.interactions if i.id == name) == 26
    assert past.jump(str(name)).state("G")["n"] == 26


def test_a_request_with_a_count_of_workers_is_placed_there_and_inside_its_epoch() -> None:
    asked = Interactions()
    fact = EpochCommitted(
        at=110.0, epoch=1, level=0, attempt="a", seconds=10.0, counters={"op": Counters((200,), 200)}
    )
    for tuples in (30, 77, 900):
        asked.ask("op", at=101.0, tuples=tuples)
    placed = asked.placed(fact, lambda: {"op": Counters((50,), 50)})
    assert [i.tuples for i in placed] == [50, 77, 250]


def test_a_request_without_a_count_is_placed_by_the_share_of_the_epoch_that_had_passed() -> None:
    asked = Interactions()
    fact = EpochCommitted(
        at=110.0, epoch=1, level=0, attempt="a", seconds=10.0, counters={"op": Counters((200,), 200)}
    )
    before = {"op": Counters((50,), 50)}
    first, late = asked.ask("op", at=102.5), asked.ask("op", at=120.0)
    placed = asked.placed(fact, lambda: before)
    assert [(i.id, i.tuples) for i in placed] == [(first, 100)]
    assert asked.placed(fact, lambda: pytest.fail("nothing to place")) == ()
    assert [(i.id, i.tuples) for i in asked.placed(fact, lambda: before, end=True)] == [(late, 250)]
