"""Epochs ahead: the next epoch begins while the present one runs, and nobody sees it in results, counters or files.

What an epoch ahead does before its turn is seen by the folder of its attempt. Operators and functions wait for files
that a test makes, so that the epoch before is surely still running.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from tests.runtime.conftest import spark_start
from tests.runtime.steered import WAIT, Gated, numbers, wait_for
from tests.runtime.test_control_modify import Stamped, stamped

import samovar as sv
from samovar.compile.plan import Plan
from samovar.compile.strategy import EpochRange
from samovar.graph import operators as ops
from samovar.runtime.epochs.attempt import EpochDropped, Turn
from samovar.runtime.epochs.epoch_ahead import EpochAhead, Pipeline, may_run_ahead
from samovar.runtime.epochs.run_context import RunContext

EACH_FILE = 1
"""An epoch of one byte holds one file: an epoch takes at least one."""
ALL_FILES = 1 << 40


@pytest.fixture(scope="module", autouse=True)
def adaptive(request: pytest.FixtureRequest) -> Iterator[None]:
    """Adaptive execution, as users have it: with it Spark can run what comes before a shuffle, and no more."""
    if not any("spark" in getattr(item, "fixturenames", ()) for item in request.session.items):
        yield
        return
    spark = request.getfixturevalue("spark")
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    yield
    spark.conf.set("spark.sql.adaptive.enabled", before)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """No epoch ahead outlives its run."""
    yield
    assert [t.name for t in threading.enumerate() if t.name.startswith("samovar-ahead-")] == []


class Count(sv.Operator):
    """Counts the tuples of its key partition."""

    output = "x bigint, n bigint"
    n: Any = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        self.n += 1
        yield {"x": row["x"], "n": self.n}


class RaisesAt(Count):
    """Raises at one tuple."""

    def __init__(self, x: int) -> None:
        self.x = x

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        if row["x"] == self.x:
            raise ValueError("no such number")
        yield from super().process(row, port)


def stops_at(folder: Path, *stops: int, fails: bool = False) -> Column:
    """`x`, by a function that waits at these numbers for a file `go-<x>`; `fails`: at the last of them it then raises,
    but only once."""
    place = str(folder)

    def wait(x: int) -> int:
        if x in stops:  # the search for a failing row calls it again
            Path(place, f"arrived-{x}").touch()
            until = time.monotonic() + 60
            while not Path(place, f"go-{x}").exists() and time.monotonic() < until:
                time.sleep(0.002)
            if fails and x == stops[-1] and not Path(place, "failed").exists():
                Path(place, "failed").touch()
                raise ValueError("once only")
        return x

    column: Column = F.udf(wait, "bigint", useArrow=False)("x")
    return column


def until(run: sv.Run, there: Callable[[], Any], what: str) -> Any:
    """Wait until something is there while a run goes on, and return it."""
    limit = time.monotonic() + WAIT
    while not (found := there()):
        assert not run.error, run.error
        assert time.monotonic() < limit, f"{what} did not come"
        time.sleep(0.002)
    return found


def at_stop(run: sv.Run, folder: Path, x: int) -> None:
    """Wait until `stops_at` waits at a number."""
    until(run, (folder / f"arrived-{x}").exists, f"number {x}")


def begun(run: sv.Run, epoch: int) -> Path:
    """Wait until an attempt at an epoch has begun; returns its folder."""
    folders = until(run, lambda: [*Path(run.recording, "epochs").glob(f"{epoch:06d}-*")], f"epoch {epoch}")
    return cast(Path, folders[0])


def attempts(run: sv.Run) -> list[str]:
    """The folders of committed epochs."""
    return [f"{e.epoch:06d}-{e.attempt}" for e in run.history.epochs]


def left_over(run: sv.Run) -> list[str]:
    """Folders of attempts that do not count."""
    return sorted({p.name for p in Path(run.recording, "epochs").iterdir()} - set(attempts(run)))


def totals(run: sv.Run) -> dict[str, tuple[tuple[int, ...], int]]:
    """What each operator took and gave in all."""
    return {name: (tuple(c.taken), c.given) for name, c in run.history.totals().items()}


# --- the same results -------------------------------------------------------------------------------------------------


def native(rows: sv.Frame, tmp_path: Path) -> None:
    few = rows.filter("x % 7 = length(string(x))", name="F")
    few.sink("S")
    few.groupBy("k").agg("sum(x) AS s", name="A").orderBy("k", name="O").sink("T")


def one_instance(rows: sv.Frame, tmp_path: Path) -> None:
    rows.filter("x % 2 = length(string(x)) % 2", name="F").apply(Count(), name="P").sink("S")


def keyed_then_aggregate(rows: sv.Frame, tmp_path: Path) -> None:
    counted = rows.apply(Count(), by="k", name="P")
    counted.groupBy("n").agg("count(1) AS c", "sum(x) AS s", name="A").orderBy("n", name="O").sink("S")


def two_in_sequence(rows: sv.Frame, tmp_path: Path) -> None:
    evens = rows.apply(Count(), by="k", name="P").filter("n % 2 = 0", name="F")
    evens.apply(Count(), by="x % 5", name="Q").sink("S")


def stateless(rows: sv.Frame, tmp_path: Path) -> None:
    """Nothing is shuffled before such an operator, and the filter's rows are counted on the way."""
    few = rows.filter("x % 2 = length(string(x)) % 2", name="F")
    few.mapInPandas(lambda frames: (df[["x"]] for df in frames), "x bigint", name="P").sink("S")


def joined(rows: sv.Frame, tmp_path: Path) -> None:
    """The build side is computed in the first epoch and kept for the others."""
    other = rows._flow.read.parquet(numbers(tmp_path / "other", rows=3, files=1), name="other")
    build = other.selectExpr("x AS k", "x * 100 AS y", name="B")
    rows.join(build, on="k", name="J").apply(Count(), by="y", name="P").sink("S")


def limited(rows: sv.Frame, tmp_path: Path) -> None:
    rows.apply(Count(), name="P").limit(25, name="L").sink("S")


BUILDS = [native, one_instance, keyed_then_aggregate, two_in_sequence, stateless, joined, limited]


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_results_and_counters_are_those_of_one_epoch(
    spark: Any, tmp_path: Path, build: Callable[[sv.Frame, Path], None]
) -> None:
    flow = sv.Workflow("flow")
    build(flow.read.parquet(numbers(tmp_path, files=3, keys=3), name="R"), tmp_path)
    many, one = (
        flow.run(spark=spark, record=tmp_path / "runs", epoch_bytes=size, progress=False)
        for size in (EACH_FILE, ALL_FILES)
    )
    assert len(many.history.epochs) > len(one.history.epochs)
    assert totals(many) == totals(one)
    for sink in (op.name for op in flow.graph().sinks):
        rows = many.result(sink).to_pylist()
        assert sorted(map(str, rows)) == sorted(map(str, one.result(sink).to_pylist()))
    assert left_over(many) == []


def test_native_results_are_those_of_plain_spark(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("flow")
    rows = flow.read.parquet(numbers(tmp_path, files=3, keys=3), name="R")
    native(rows, tmp_path)
    run = flow.run(spark=spark, record=tmp_path / "runs", epoch_bytes=EACH_FILE, progress=False)
    few = spark.read.parquet(str(tmp_path / "in")).filter("x % 7 = length(string(x))")
    assert run.result("T") == few.groupBy("k").agg(F.expr("sum(x) AS s")).orderBy("k").toArrow()


# --- what runs ahead --------------------------------------------------------------------------------------------------


def test_native_work_of_an_epoch_is_done_before_the_epoch_before_it_ends(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("flow")
    rows = flow.read.parquet(numbers(tmp_path, files=3), name="R")
    rows.select(stops_at(tmp_path, 5).alias("x"), name="W").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    at_stop(run, tmp_path, 5)
    ahead = begun(run, 1)
    until(run, lambda: [*ahead.glob("results/S/*.parquet")], "the result of the epoch ahead")
    assert run.history.epochs == []
    (tmp_path / "go-5").touch()
    assert sorted(run.result("S").to_pydict()["x"]) == list(range(60))
    assert attempts(run)[1] == ahead.name
    assert left_over(run) == []


def test_the_input_of_python_operators_is_read_before_the_epoch_before_it_ends(
    spark: Any, tmp_path: Path
) -> None:
    """Their tuples wait: state is handed from epoch to epoch."""
    flow = sv.Workflow("flow")
    flow.read.parquet(numbers(tmp_path, files=3), name="R").apply(Gated(str(tmp_path)), name="G").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    wait_for(tmp_path / "arrived")
    ahead = begun(run, 1)
    tracker = spark.sparkContext.statusTracker()
    name = ahead.name.partition("-")[2]
    until(run, lambda: len(tracker.getJobIdsForGroup(name)), "a job of the epoch ahead")
    assert run.history.epochs == []
    assert [task.epoch for _, task in run._thread.steering.desk.busy] == [0]
    (tmp_path / "go").touch()
    assert run.result("S").to_pydict()["n"] == list(range(1, 61))
    assert attempts(run)[1] == ahead.name


def test_nothing_runs_ahead_behind_a_limit(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("flow")
    rows = flow.read.parquet(numbers(tmp_path, files=3), name="R")
    rows.select(stops_at(tmp_path, 5).alias("x"), name="W").limit(25, name="L").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    at_stop(run, tmp_path, 5)
    begun(run, 0)
    assert [p.name[:6] for p in Path(run.recording, "epochs").iterdir()] == ["000000"]
    (tmp_path / "go-5").touch()
    assert run.result("S").num_rows == 25


# --- steering while an epoch is ahead ---------------------------------------------------------------------------------


def in_second_epoch(spark: Any, tmp_path: Path) -> tuple[sv.Run, Path]:
    """A run that waits in the second epoch, and the folder of the third one."""
    run = spark_start(spark)(stamped(tmp_path), record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    wait_for(tmp_path / "arrived")
    return run, begun(run, 2)


def test_other_code_drops_the_epoch_ahead(spark: Any, tmp_path: Path) -> None:
    run, ahead = in_second_epoch(spark, tmp_path)
    modified = run.modify({"V": Stamped(2)})
    assert (modified.epoch, dict(modified.taken)) == (1, {"V": 20})
    until(run, lambda: not ahead.exists(), "the end of the epoch ahead")
    (tmp_path / "go").touch()
    table = run.result("S").to_pydict()
    assert table["version"] == [1] * 20 + [2] * 40
    assert table["n"] == list(range(1, 61))
    assert ahead.name not in attempts(run)
    assert left_over(run) == []


def test_other_code_inside_an_epoch_holds_for_the_epoch_ahead(spark: Any, tmp_path: Path) -> None:
    run, _ = in_second_epoch(spark, tmp_path)
    run.modify({"V": Stamped(2)}, consistency="none")
    (tmp_path / "go").touch()
    table = run.result("S").to_pydict()
    old = table["version"].index(2)
    assert 20 <= old <= 40
    assert table["version"] == [1] * old + [2] * (60 - old)
    assert table["n"] == list(range(1, 61))
    assert left_over(run) == []


def test_a_pause_at_the_end_of_an_epoch_keeps_the_epoch_ahead(spark: Any, tmp_path: Path) -> None:
    run, ahead = in_second_epoch(spark, tmp_path)
    run.pause(mode="aligned")
    (tmp_path / "go").touch()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    assert len(run.history.epochs) == 2
    run.resume()
    assert run.result("S").to_pydict()["n"] == list(range(1, 61))
    assert attempts(run)[2] == ahead.name


def test_another_expression_during_a_pause_computes_the_epoch_ahead_anew(spark: Any, tmp_path: Path) -> None:
    """Its attempt has another name: what the dropped one still writes does not count."""
    flow = sv.Workflow("flow")
    rows = flow.read.parquet(numbers(tmp_path, files=3), name="R")
    rows.select(stops_at(tmp_path, 5).alias("x"), name="W").selectExpr("x", "1 AS v", name="V").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    at_stop(run, tmp_path, 5)
    ahead = begun(run, 1)
    until(run, lambda: [*ahead.glob("results/S/*.parquet")], "the result of the epoch ahead")
    run.pause(mode="aligned")
    (tmp_path / "go-5").touch()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    modified = run.modify({"V": ["x", "2 AS v"]})
    assert (modified.epoch, modified.late) == (1, False)
    run.resume()
    table = run.result("S").to_pydict()
    assert sorted(zip(table["x"], table["v"], strict=True)) == [(x, 1 if x < 20 else 2) for x in range(60)]
    assert ahead.name not in attempts(run)
    assert left_over(run) == []


def test_a_run_stopped_with_an_epoch_ahead_goes_on_and_counts_each_tuple_once(
    spark: Any, tmp_path: Path
) -> None:
    run, ahead = in_second_epoch(spark, tmp_path)
    run.stop()
    assert run.status == "stopped"
    assert not ahead.exists()
    assert left_over(run) == []
    assert len(run.history.epochs) == 1
    (tmp_path / "go").touch()
    again = sv.open(str(run.recording)).resume(spark)
    assert again.result("S").to_pydict()["x"] == list(range(60))
    assert again.result("S").to_pydict()["n"] == list(range(1, 61))
    assert left_over(again) == []


# --- failures ---------------------------------------------------------------------------------------------------------


def test_user_code_that_raises_fails_its_own_epoch(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("flow")
    flow.read.parquet(numbers(tmp_path, files=3), name="R").apply(RaisesAt(45), name="P").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    with pytest.raises(sv.errors.OperatorFailed, match="no such number") as caught:
        run.wait(WAIT, progress=False)
    assert (caught.value.operator, caught.value.epoch, caught.value.row) == ("P", 2, {"x": 45})
    assert len(run.history.epochs) == 2
    assert {name[:6] for name in left_over(run)} <= {"000002"}  # states that lead to the failure


def test_an_expression_that_fails_ahead_of_its_turn_fails_in_its_turn(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("flow")
    rows = flow.read.parquet(numbers(tmp_path, files=3), name="R")
    waits = rows.select(stops_at(tmp_path, 5).alias("x"), name="W")
    waits.selectExpr("x", "100 DIV (x - 25) AS y", name="D").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    at_stop(run, tmp_path, 5)
    ahead = begun(run, 1)
    tracker = spark.sparkContext.statusTracker()
    name = ahead.name.partition("-")[2]
    until(run, lambda: tracker.getJobIdsForGroup(name) and not _active(tracker, name), "the failure")
    assert run.status == "running"
    (tmp_path / "go-5").touch()
    with pytest.raises(sv.errors.ExpressionFailed) as caught:
        run.wait(WAIT, progress=False)
    assert (caught.value.operator, caught.value.row) == ("D", {"x": 25})
    assert len(run.history.epochs) == 1
    assert left_over(run) == []


def _active(tracker: Any, group: str) -> bool:
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    return any(job is not None and job.status == "RUNNING" for job in jobs)


def test_a_failure_after_the_turn_names_the_operator_that_was_at_work_before(
    spark: Any, tmp_path: Path
) -> None:
    """Nobody finds the row: the function does not raise a second time."""
    flow = sv.Workflow("flow")
    rows = flow.read.parquet(numbers(tmp_path, files=3), name="R")
    rows.select(stops_at(tmp_path, 5, 25, fails=True).alias("x"), name="W").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    at_stop(run, tmp_path, 5)
    at_stop(run, tmp_path, 25)
    (tmp_path / "go-5").touch()
    until(run, lambda: run.history.epochs, "the first commit")
    begun(run, 2)  # after the second epoch's turn has come
    (tmp_path / "go-25").touch()
    with pytest.raises(sv.errors.RunError, match="in epoch 1") as caught:
        run.wait(WAIT, progress=False)
    assert caught.value.operator == "S"
    assert len(run.history.epochs) == 1
    assert left_over(run) == []


def test_an_input_that_changes_fails_the_epoch_that_reads_it(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("flow")
    flow.read.parquet(numbers(tmp_path, files=3), name="R").apply(Gated(str(tmp_path)), name="G").sink("S")
    run = spark_start(spark)(flow, record=tmp_path / "runs", epoch_bytes=EACH_FILE)
    wait_for(tmp_path / "arrived")  # in the first epoch: the third one has not begun
    file = tmp_path / "in" / "2.parquet"
    pq.write_table(pq.read_table(file).slice(1), file)
    (tmp_path / "go").touch()
    with pytest.raises(sv.errors.SourceChanged, match=r"2\.parquet"):
        run.wait(WAIT, progress=False)
    assert len(run.history.epochs) == 2
    assert left_over(run) == []


# --- without Spark ----------------------------------------------------------------------------------------------------


def test_a_turn_that_has_come_lets_everybody_go_on() -> None:
    turn = Turn()
    assert not turn.has_come
    passed = threading.Event()
    waiting = threading.Thread(target=lambda: (turn.wait(), passed.set()), daemon=True)
    waiting.start()
    assert not passed.is_set()
    turn.come()
    assert passed.wait(WAIT)
    assert turn.has_come
    turn.wait()


def test_a_turn_that_will_not_come_raises_and_has_not_come() -> None:
    turn = Turn()
    turn.drop()
    assert not turn.has_come
    with pytest.raises(EpochDropped):
        turn.wait()


def test_a_turn_that_has_come_can_be_dropped() -> None:
    turn = Turn()
    turn.come()
    turn.drop()
    assert not turn.has_come
    with pytest.raises(EpochDropped):
        turn.wait()


def test_a_level_runs_ahead_unless_a_limit_works_on_it() -> None:
    graph = SimpleNamespace(ops={"F": ops.Filter(name="F", inputs=("R",), condition="x > 1")})
    graph.ops["L"] = ops.Limit(name="L", inputs=("F",), n=3)
    placement = SimpleNamespace(works=lambda name, level: level == {"F": 0, "L": 1}[name])
    plan = cast(Plan, SimpleNamespace(graph=graph, placement=placement))
    assert may_run_ahead(plan, 0)
    assert not may_run_ahead(plan, 1)


class FakeAhead:
    """An epoch ahead that computes nothing."""

    def __init__(self, number: int, covers: EpochRange, plan: object) -> None:
        self.attempt = SimpleNamespace(number=number)
        self.chosen = SimpleNamespace(covers=covers)
        self.plan = plan
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True

    def finish(self) -> None:
        raise ValueError("a job failed")


def pipeline(number: int = 1, plan: object = "plan") -> tuple[Pipeline, FakeAhead]:
    """A pipeline after one committed epoch, with an epoch ahead."""
    context = SimpleNamespace(history=SimpleNamespace(epochs=["epoch 0"]), plan="plan")
    ahead = FakeAhead(number, EpochRange(0, 0, {"R": (1, 2)}, first=False, last=False), plan)
    made = Pipeline(cast(RunContext, context), lambda _: None)
    made._ahead.append(cast(EpochAhead, ahead))
    return made, ahead


def test_the_epoch_ahead_waits_for_its_number_and_its_plan() -> None:
    fits, ahead = pipeline()
    assert cast(Any, fits.waiting()) is ahead
    for other in ({"number": 2}, {"plan": "another plan"}):
        stale, ahead = pipeline(**cast(Any, other))
        assert stale.waiting() is None
        assert ahead.dropped


def test_only_the_range_that_was_chosen_ahead_is_taken() -> None:
    made, ahead = pipeline()
    covers = ahead.chosen.covers
    same = EpochRange(covers.low, covers.high, covers.units, covers.first, covers.last)
    assert made.take(same) is None
    assert cast(Any, made.take(covers)) is ahead
    assert made.take(covers) is None


def test_what_was_taken_is_dropped_unless_it_has_ended() -> None:
    made, ahead = pipeline()
    taken = made.take(ahead.chosen.covers)
    assert taken is not None
    made.drop()
    assert ahead.dropped
    made, ahead = pipeline()
    taken = made.take(ahead.chosen.covers)
    assert taken is not None
    with pytest.raises(ValueError, match="a job failed"):
        made.finish(taken)
    made.drop()
    assert not ahead.dropped
