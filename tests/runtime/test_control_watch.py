"""Breakpoints and figures of a run on real Spark: it stops where it was told to, and nothing changes by it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Start
from tests.runtime.steered import WAIT, Gated, numbers, wait_for

import samovar as sv
from samovar.errors import RunError, TimeTravelError, UnknownName, WorkflowError


class Tally(sv.Operator):
    """Counts the tuples of its key partition; gives a tuple twice when its number is even."""

    output = "x bigint, n bigint"
    seen = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.seen += 1
        for _ in range(2 - row["x"] % 2):
            yield {"x": row["x"], "n": self.seen}


@pytest.fixture
def run(start: Start, tmp_path: Path) -> Iterator[Any]:
    """A run that waits at tuple 5 of 'G' until it may go; behind it 'T', one instance a key partition."""
    flow = sv.Workflow("watched")
    rows = flow.read.parquet(numbers(tmp_path, rows=60), name="numbers").apply(Gated(str(tmp_path)), name="G")
    rows.apply(Tally(), by="x", name="T").sink("S")
    made = start(flow, record=tmp_path / "runs", key_partitions=4)
    wait_for(tmp_path / "arrived")
    yield made
    (tmp_path / "go").touch()
    made.stop()


def inspected(run: Any) -> Mapping[str, Any]:
    """The state of 'G' as its worker answers; on a busy machine the answer may come after the question has ended."""
    until = time.monotonic() + WAIT
    while not (state := run.inspect("G").state) and time.monotonic() < until:
        continue
    return state  # type: ignore[no-any-return]


def expect_whole(run: Any) -> None:
    """It goes on, and gives what an undisturbed run gives."""
    run.resume()
    found = run.result("S").to_pydict()
    assert sorted(found["x"]) == sorted(x for x in range(60) for _ in range(2 - x % 2))
    assert len(sv.open(str(run.recording)).history.epochs) == 1


def test_a_condition_stops_before_the_tuple_and_one_on_the_state_after_it(run: Any, tmp_path: Path) -> None:
    name = run.break_at("G", "x % 20 == 11 and row['x'] > 5")
    other = run.break_at("G", "n == 25")
    assert [b.name for b in run.breakpoints] == [name, other]
    (tmp_path / "go").touch()
    for at in (11, 24, 31, 51):
        assert run.wait_until("paused", timeout=WAIT) == "paused"
        (hit,) = run.reached
        assert (hit.operator, hit.epoch, hit.row) == ("G", 0, {"x": at})
        if hit.name == name:
            assert run.inspect("G").state["n"] == at
            assert run.in_flight("G", limit=1).rows == ({"x": at},)
        else:
            assert run.inspect("G").state["n"] == at + 1
            assert run.in_flight("G", limit=1).rows == ({"x": at + 1},)
            run.unwatch(other)
        if at < 51:
            run.resume()
    assert [(b.name, b.hits) for b in run.breakpoints] == [(name, 3)]
    expect_whole(run)


@pytest.mark.parametrize("limit", [1, 37])
def test_a_number_of_tuples_is_exact_over_all_key_partitions(run: Any, tmp_path: Path, limit: int) -> None:
    run.break_at("T", tuples=limit)
    (tmp_path / "go").touch()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    assert [(h.operator, h.note) for h in run.reached] == [("T", f"{limit} tuples")]
    assert run.breakpoints == ()
    tallies = run.snapshot("T")["T"].parts  # also of tasks that are done
    assert sum(part.state["seen"] for part in tallies) == limit
    expect_whole(run)


def test_a_number_of_outputs_stops_behind_the_tuple_that_gave_the_last(run: Any, tmp_path: Path) -> None:
    run.break_at("G", outputs=20)
    (tmp_path / "go").touch()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    assert inspected(run)["n"] == 20
    assert run.in_flight("G", limit=1).rows == ({"x": 20},)
    run.resume()
    assert run.result("S").num_rows == 90


def test_what_cannot_be_watched_is_said(run: Any) -> None:
    with pytest.raises(RunError, match="Expected a Python expression"):
        run.break_at("G", "x = 3")
    with pytest.raises(RunError, match="got 'y'"):
        run.break_at("G", "y > 3")
    with pytest.raises(RunError, match="got several"):
        run.break_at("G", "x > 3", tuples=4)
    with pytest.raises(RunError, match="got none"):
        run.break_at("G")
    with pytest.raises(RunError, match="above 0"):
        run.break_at("G", tuples=0)
    with pytest.raises(UnknownName):
        run.break_at("nobody", "x > 3")
    with pytest.raises(WorkflowError, match="no argument 'pause'"):
        run.watch("G", "x > 3", pause=True)
    with pytest.raises(UnknownName):
        run.unwatch("B99")
    assert run.breakpoints == ()
    assert run.status == "running"


def test_operators_of_spark_stop_at_the_end_of_the_epoch_with_the_tuple_marked(
    spark: Any, tmp_path: Path
) -> None:
    flow = sv.Workflow("native")
    rows = flow.read.parquet(numbers(tmp_path, rows=10, files=4), name="numbers")
    rows.apply(Gated(str(tmp_path)), name="G").filter("x >= 0", name="F").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    with pytest.raises(TimeTravelError, match=r"Expected columns that 'F' takes .*got 'y'"):
        run.break_at("F", "y > 3")
    run.break_at("F", "x = 13")
    run.break_at("F", tuples=25)
    (tmp_path / "go").touch()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    (hit,) = run.reached
    assert (hit.operator, hit.epoch, hit.note) == ("F", 1, "marked as I1 in this epoch")
    past = sv.open(str(run.recording), spark=spark)
    assert past.jump("I1").last.row["x"] == 13
    past.close()
    run.resume()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    assert [(h.epoch, h.note) for h in run.reached] == [(3, "30 tuples")]
    run.resume()
    assert run.result("S").num_rows == 40


def test_figures_come_while_an_epoch_goes_on_and_add_up_at_its_end(run: Any, tmp_path: Path) -> None:
    stream = run.statistics(every=0.05)
    seen = next(s for s in stream if s["G"].workers)
    assert (seen["G"].taken, seen["G"].queue, seen["G"].skew) == (6, 54, 1.0)
    assert seen["G"].state_entries > 0
    again = next(s for s in stream if s["G"].busy > 0)  # it makes mini-steps
    assert 0 < again["G"].busy <= 1
    assert again.as_dict()["operators"][1]["name"] == "G"
    (tmp_path / "go").touch()
    last = list(stream)[-1]
    assert last.status == "completed"
    assert [(o.name, o.taken, o.given) for o in last.operators if o.name in "GT"] == [
        ("G", 60, 60),
        ("T", 60, 90),
    ]
