"""Two live streams, compared as they go: on Structured Streaming, on batches, on runs."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.diff import (
    CheckpointProblem,
    DiffError,
    EqualityProblem,
    Matcher,
    Metrics,
    SchemasDiffer,
    SideProblem,
    Verdict,
    accepts,
    equality,
    independent,
    keyed,
    monitor,
    ordered,
)
from samovar.diff.streams.monitor_checkpoint import Store
from samovar.diff.streams.stream_comparison import Comparison

NOW = {"availableNow": True}
SOON = {"processingTime": "10 milliseconds"}
LONG = 30.0


def rides(numbers: range, **changed: int) -> list[dict[str, int]]:
    """Rides of three taxis; `changed`: other fares, by number ("n7")."""
    return [{"taxi": n % 3, "at": n, "fare": changed.get(f"n{n}", n * 2)} for n in numbers]


class Folder:
    """A folder that a stream reads, one file a micro-batch."""

    def __init__(self, path: Path, spark: Any) -> None:
        self.path = path
        self.spark = spark
        self.files = 0
        path.mkdir()

    def add(self, rows: list[dict[str, int]]) -> None:
        file = self.path / f"{self.files:04}.parquet"
        hidden = self.path / f".{file.name}"
        pq.write_table(pa.Table.from_pylist(rows), hidden)
        self.files += 1
        os.utime(hidden, (1_000_000_000 + self.files,) * 2)  # read in this order
        hidden.rename(file)

    def stream(self, schema: str = "taxi bigint, at bigint, fare bigint") -> Any:
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.path))


@pytest.fixture
def sides(spark: Any, tmp_path: Path) -> tuple[Folder, Folder]:
    return Folder(tmp_path / "a", spark), Folder(tmp_path / "b", spark)


class Seen:
    """Metrics of a monitor, and a way to wait until they are as wanted."""

    def __init__(self) -> None:
        self.all: list[Metrics] = []
        self._news = threading.Condition()

    def __call__(self, metrics: Metrics) -> None:
        with self._news:
            self.all.append(metrics)
            self._news.notify_all()

    def wait_for(self, wanted: Callable[[Metrics], bool]) -> Metrics:
        with self._news:
            assert self._news.wait_for(lambda: any(map(wanted, self.all)), LONG), self.all[-1:]
            return next(m for m in self.all if wanted(m))


def test_equal_streams_are_equivalent_however_they_are_cut(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(60)))
    right.add(rides(range(40)))
    right.add(rides(range(40, 60)))
    seen = Seen()
    with monitor(
        left.stream(), right.stream(), depends=keyed("taxi"), trigger=NOW, on_metrics=seen
    ) as watched:
        verdict = watched.wait(LONG)
    assert verdict.equivalent
    assert watched.status == "equivalent"
    metrics = watched.metrics
    assert (metrics.matched, metrics.seen, metrics.unmatched) == (
        60,
        {"left": 60, "right": 60},
        {"left": 0, "right": 0},
    )
    assert (metrics.ahead, metrics.lag_events, metrics.lag_seconds) == (None, 0, 0.0)
    assert metrics.batches == {"left": 1, "right": 2}
    assert all(s > 0 for s in metrics.latency.values())
    assert len(seen.all) == 3
    assert all(q is not None and not q.isActive for q in (watched.query("left"), watched.query("right")))


def test_one_row_that_differs_is_named_and_stops_both_queries(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(30)))
    right.add(rides(range(20), n7=-1))
    told: list[Verdict] = []
    watched = monitor(left.stream(), right.stream(), depends=keyed("taxi"), trigger=SOON, alert=told.append)
    verdict = watched.wait(LONG)
    assert not verdict.equivalent
    assert not verdict.undecided
    assert {verdict.event["fare"], verdict.against["fare"]} == {14, -1}
    assert verdict.position == verdict.against_position == 7
    assert "*-1*" in verdict.explain()
    assert told == [verdict]
    assert watched.status == "different"
    assert not any(q.isActive for q in (watched.query("left"), watched.query("right")) if q is not None)


def test_after_an_alert_the_streams_go_on(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(10)))
    right.add(rides(range(10), n3=-1))
    told: list[Verdict] = []
    seen = Seen()
    written: list[tuple[str, int, int]] = []
    with monitor(
        left.stream(),
        right.stream(),
        depends=ordered,
        trigger=SOON,
        on_difference="alert",
        alert=told.append,
        on_metrics=seen,
        write=lambda side, batch, number: written.append((side, number, batch.count())),
    ) as watched:
        seen.wait_for(lambda m: m.seen == {"left": 10, "right": 10})
        left.add(rides(range(10, 25)))
        seen.wait_for(lambda m: m.seen["left"] == 25)
        assert watched.status == "running"
    assert len(told) == 1
    assert told[0].position == 3
    assert watched.verdict is told[0]
    assert sorted(written) == [("left", 0, 10), ("left", 1, 15), ("right", 0, 10)]


def test_the_side_that_is_ahead_is_held_back(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    for start in range(0, 40, 10):
        left.add(rides(range(start, start + 10)))
    seen = Seen()
    with monitor(left.stream(), right.stream(), drift=25, trigger=SOON, on_metrics=seen) as watched:
        seen.wait_for(lambda m: m.seen["left"] == 20)
        for start in range(0, 40, 20):
            right.add(rides(range(start, start + 20)))
        seen.wait_for(lambda m: m.matched == 40)
        assert watched.metrics.waited["left"] > 0
    assert max(m.lag_events for m in seen.all) <= 25
    assert watched.status == "stopped"
    assert watched.wait().undecided


def test_a_restart_loses_and_doubles_nothing(sides: tuple[Folder, Folder], tmp_path: Path) -> None:
    left, right = sides
    for start in range(0, 30, 10):
        left.add(rides(range(start, start + 10)))
    right.add(rides(range(15)))

    def start(seen: Seen, **options: Any) -> Any:
        return monitor(
            left.stream(),
            right.stream(),
            depends=keyed("taxi"),
            checkpoint=tmp_path / "saved",
            on_metrics=seen,
            **{"trigger": SOON, **options},
        )

    seen = Seen()
    with start(seen) as watched:
        seen.wait_for(lambda m: m.seen["left"] >= 10 and m.seen["right"] == 15)
        with pytest.raises(CheckpointProblem, match="no other monitor"):
            start(seen)
    before = watched.metrics
    right.add(rides(range(15, 30)))
    left.add(rides(range(30, 40)))
    again = start(Seen(), trigger=NOW)
    verdict = again.wait(LONG)
    assert not verdict.equivalent  # right has not said all
    assert [e["at"] for e in verdict.unmatched("left")] == list(range(30, 40))
    assert again.metrics.seen == {"left": 40, "right": 30}
    # a batch that was saved while the queries were being stopped is in the checkpoint, not in the figures before
    assert 1 <= again.metrics.batches["left"] <= 4 - before.batches["left"]
    right.add(rides(range(30, 40)))
    assert start(Seen(), trigger=NOW).wait(LONG).equivalent


def test_a_micro_batch_that_spark_repeats_is_compared_once(
    sides: tuple[Folder, Folder], tmp_path: Path
) -> None:
    """As after a crash between the monitor's checkpoint and Spark's."""
    left, right = sides
    left.add(rides(range(10)))
    right.add(rides(range(10)))
    saved = tmp_path / "saved"
    for _ in range(2):
        watched = monitor(left.stream(), right.stream(), depends=ordered, checkpoint=saved, trigger=NOW)
        assert watched.wait(LONG).equivalent
        assert watched.metrics.seen == {"left": 10, "right": 10}
        for name in ("0", ".0.crc"):
            (saved / "left" / "commits" / name).unlink(missing_ok=True)


def test_a_difference_is_still_known_after_a_restart(sides: tuple[Folder, Folder], tmp_path: Path) -> None:
    left, right = sides
    left.add(rides(range(10)))
    right.add(rides(range(10), n3=-1))
    found = []
    for _ in range(2):
        watched = monitor(
            left.stream(), right.stream(), depends=ordered, checkpoint=tmp_path / "saved", trigger=NOW
        )
        found.append(watched.wait(LONG))
    assert found[0].position == found[1].position == 3
    assert found[0].explain() == found[1].explain()
    assert watched.query("left") is None  # there was nothing left to ask


def test_an_event_whose_partner_does_not_come_in_time_is_a_difference() -> None:
    over = threading.Event()

    def going(rows: list[dict[str, int]]) -> Iterator[pa.Table]:
        yield pa.Table.from_pylist(rows)
        over.wait(LONG)

    right = [r for r in rides(range(10)) if r["at"] != 4]
    watched = monitor(going(rides(range(10))), going(right), patience=1.0)
    verdict = watched.wait(LONG)
    over.set()
    assert (verdict.side, verdict.position) == ("left", 4)
    assert verdict.event["at"] == 4
    assert "Event 4 of the left side has been without a partner for 1 s" in verdict.explain()


def test_batches_against_a_stream(sides: tuple[Folder, Folder], tmp_path: Path) -> None:
    left, _ = sides
    left.add(rides(range(20)))
    reference = pa.Table.from_pylist(rides(range(20)))
    assert monitor(left.stream(), reference.to_batches(5), depends=ordered, trigger=NOW).wait(LONG)
    other = reference.slice(0, 12)
    verdict = monitor(left.stream(), other, depends=ordered, trigger=NOW).wait(LONG)
    assert (verdict.side, verdict.position) == ("left", 12)


def test_in_parts_on_executors_the_verdict_is_the_same(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(30)))
    left.add(rides(range(30, 60)))
    right.add(sorted(rides(range(40)), key=lambda r: (r["taxi"], r["at"])))
    right.add(rides(range(40, 60), n47=-1, n50=-1))
    found = {}
    for parts in (None, 2):
        watched = monitor(left.stream(), right.stream(), depends=keyed("taxi"), trigger=NOW, parts=parts)
        found[parts] = watched.wait(LONG)
        assert watched.status == "different"
    one, several = found[None], found[2]
    assert {one.event["at"], one.against["at"]} == {47}
    assert {one.position, one.against_position} == {47}
    # which side came last is chance; the events and where they are is not
    events = [{(e["at"], e["fare"]) for e in (v.event, v.against)} for v in (one, several)]
    assert events[0] == events[1] == {(47, 94), (47, -1)}
    assert {several.position, several.against_position} == {47}
    assert any(e["at"] == 47 for e in several.unmatched("right"))


def test_a_monitor_in_parts_survives_a_restart(sides: tuple[Folder, Folder], tmp_path: Path) -> None:
    left, right = sides
    saved = tmp_path / "saved"
    left.add(rides(range(20)))
    left.add(rides(range(20, 45)))
    right.add(rides(range(15)))

    def run(**options: Any) -> Any:
        return monitor(
            left.stream(),
            right.stream(),
            depends=keyed("taxi"),
            checkpoint=saved,
            **{"trigger": NOW, "parts": 2, **options},
        )

    first = run(on_difference="alert", alert=lambda verdict: None)  # goes on when one side has ended
    verdict = first.wait(LONG)
    assert [e["at"] for e in verdict.unmatched("left")] == list(range(15, 45))
    assert (verdict.side, verdict.position) == ("left", 15)
    metrics = first.metrics
    assert (metrics.matched, metrics.unmatched) == (15, {"left": 30, "right": 0})
    assert (metrics.ahead, metrics.lag_events) == ("left", 30)
    assert metrics.lag_seconds > 0
    # as after a crash: a task's folder that was never counted, and a micro-batch that Spark repeats
    (saved / "parts" / "0" / "orphan").mkdir(parents=True)
    for name in ("1", ".1.crc"):
        (saved / "left" / "commits" / name).unlink(missing_ok=True)
    with pytest.raises(CheckpointProblem, match=r"parts: 3.*got one of another \(parts: 2\)"):
        run(parts=3)
    right.add(rides(range(15, 45)))
    again = run()
    assert again.wait(LONG).equivalent
    assert again.metrics.seen == {"left": 45, "right": 45}
    assert not (saved / "parts" / "0" / "orphan").exists()
    assert all(len(list(part.iterdir())) == 1 for part in (saved / "parts").iterdir())


def test_in_parts_an_overdue_event_is_reported_once(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(2)))
    told: queue.Queue[Verdict] = queue.Queue()
    seen = Seen()
    with monitor(
        left.stream(),
        right.stream(),
        depends=keyed("taxi"),
        trigger=SOON,
        patience=0.3,
        on_difference="alert",
        alert=told.put,
        on_metrics=seen,
        parts=2,
    ):
        for first in (0, 2):  # nothing comes from the right until the alert was there
            late = told.get(timeout=LONG)
            assert (late.side, late.position, late.event["at"]) == ("left", first, first)
            assert late.overdue_after == 0.3
            right.add(rides(range(first, first + 2)))
            seen.wait_for(lambda m, pairs=first + 2: m.matched == pairs)  # type: ignore[misc]
            if first == 0:
                left.add(rides(range(2, 4)))
    assert told.empty()


def test_parts_need_two_streams_and_a_key(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    with pytest.raises(DiffError, match="groups events by columns, got: ordered"):
        monitor(left.stream(), right.stream(), depends=ordered, parts=2)
    with pytest.raises(SideProblem, match="streaming DataFrames on both sides"):
        monitor(left.stream(), [], depends=keyed("taxi"), parts=2)
    with pytest.raises(DiffError, match="Expected parts= as a number of parts, 1 or more, got 0"):
        monitor(left.stream(), right.stream(), depends=keyed("taxi"), parts=0)


def test_an_error_in_a_part_reaches_the_caller_unchanged(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(3)))
    right.add(rides(range(3)))

    def fails(reference: Any, output: Any) -> bool:
        raise ValueError("no such fare")

    watched = monitor(
        left.stream(), right.stream(), depends=keyed("taxi"), equal=accepts(fails), trigger=NOW, parts=2
    )
    with pytest.raises(EqualityProblem, match="no such fare") as raised:
        watched.wait(LONG)
    assert len(raised.value.events) == 2


def test_a_stop_while_a_side_yields_nothing_is_undecided() -> None:
    silent = threading.Event()

    def waiting() -> Iterator[pa.Table]:
        yield pa.table({"n": [1]})
        silent.wait(LONG)

    seen = Seen()
    with monitor(waiting(), [pa.table({"n": [1, 2]})], on_difference="alert", on_metrics=seen) as watched:
        seen.wait_for(lambda m: m.matched == 1)
        assert watched.wait(0.01).undecided
        assert watched.status == "running"
    silent.set()
    assert watched.status == "stopped"
    assert watched.wait().unmatched("right") == [{"n": 2}]


def test_stopping_from_within_an_alert(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(5)))
    right.add(rides(range(5), n0=9))
    box: list[Any] = []
    ready = threading.Event()

    def alert(verdict: Verdict) -> None:
        ready.wait(LONG)
        box[0].stop()

    box.append(
        monitor(
            left.stream(), right.stream(), depends=ordered, trigger=SOON, on_difference="alert", alert=alert
        )
    )
    ready.set()
    assert box[0].wait(LONG).position == 0
    assert box[0].status == "different"


def test_a_run_against_a_reference(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rides(range(30))), tmp_path / "rides.parquet")
    flow = sv.Workflow("rides")
    flow.read.parquet(str(tmp_path / "rides.parquet")).filter("fare > 10").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs")
    expected = [r for r in rides(range(30)) if r["fare"] > 10]
    watched = monitor(run, pa.Table.from_pylist(expected), depends=keyed("taxi"), patience=None)
    assert watched.wait(LONG).equivalent
    assert watched.metrics.matched == len(expected)


def test_the_error_of_a_query_names_its_side(sides: tuple[Folder, Folder]) -> None:
    left, right = sides
    left.add(rides(range(5)))
    right.add(rides(range(5)))
    broken = right.stream().selectExpr("taxi", "at", "if(at = 3, raise_error('no such ride'), fare) AS fare")
    watched = monitor(left.stream(), broken, trigger=NOW)
    with pytest.raises(Exception, match="no such ride"):
        watched.wait(LONG)
    assert watched.status == "failed"


def test_an_error_in_a_users_function_reaches_the_caller() -> None:
    def fails(_: Any) -> None:
        raise ValueError("not this way")

    batches = [pa.table({"n": [1]})]
    with pytest.raises(ValueError, match="not this way"):
        monitor(batches, batches, on_metrics=fails).wait(LONG)
    with pytest.raises(ValueError, match="not this way"):
        monitor(batches, [pa.table({"n": [2]})], alert=fails).wait(LONG)
    with pytest.raises(SideProblem, match=r"Expected Arrow batches on the left side, got \{'n': 1\}"):
        monitor([{"n": 1}], batches).wait(LONG)
    with pytest.raises(DiffError, match="column"):
        monitor([pa.table({"m": [1]})], batches).wait(LONG)


def test_what_cannot_be_monitored_is_refused(
    spark: Any, sides: tuple[Folder, Folder], tmp_path: Path
) -> None:
    left, right = sides
    with pytest.raises(SideProblem, match="streaming DataFrame on the right side, got one that is not"):
        monitor(left.stream(), spark.range(3))
    with pytest.raises(SideProblem, match="Arrow batches or a run on the left side, got 3"):
        monitor(3, right.stream())
    with pytest.raises(SchemasDiffer, match=r"\*  fare +bigint +double"):
        monitor(left.stream(), right.stream("taxi bigint, at bigint, fare double"))
    for wrong in ({"drift": 0}, {"patience": 0}, {"on_difference": "cry"}, {"mode": "complete"}):
        with pytest.raises(DiffError, match=f"Expected {next(iter(wrong))}="):
            monitor(left.stream(), right.stream(), **wrong)


def test_a_checkpoint_of_another_comparison_is_refused(sides: tuple[Folder, Folder], tmp_path: Path) -> None:
    left, right = sides
    left.add(rides(range(3)))
    right.add(rides(range(3)))
    saved = tmp_path / "saved"
    assert monitor(left.stream(), right.stream(), checkpoint=saved, trigger=NOW).wait(LONG)
    with pytest.raises(CheckpointProblem, match="depends: in order for each taxi"):
        monitor(left.stream(), right.stream(), depends=keyed("taxi"), checkpoint=saved)
    few = "taxi bigint, at bigint"
    with pytest.raises(CheckpointProblem, match="left: a stream of"):
        monitor(left.stream(few), right.stream(few), checkpoint=saved)
    (saved / "monitor.json").write_text("{}")
    with pytest.raises(CheckpointProblem, match="damaged"):
        monitor(left.stream(), right.stream(), checkpoint=saved)
    (saved / "monitor.json").unlink()
    with pytest.raises(CheckpointProblem, match=r"Expected monitor\.json"):
        monitor(left.stream(), right.stream(), checkpoint=saved)


def test_a_monitor_with_a_tolerance_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    left = [pa.table({"taxi": [n], "fare": [float(n)]}) for n in range(3)]
    right = [pa.table({"taxi": [n], "fare": [n + 0.05]}) for n in range(3)]
    near = equality(tolerance=0.1)
    for count in (2, 3):
        watched = monitor(
            left[:count], right[:count], depends=keyed("taxi"), equal=near, checkpoint=tmp_path / "saved"
        )
        assert watched.wait(LONG)
        assert watched.metrics.seen == {"left": count, "right": count}
    with pytest.raises(CheckpointProblem, match="got one of another"):
        monitor(
            left, right, depends=keyed("taxi"), equal=equality(tolerance=0.2), checkpoint=tmp_path / "saved"
        )


def table(*numbers: int) -> pa.Table:
    return pa.table({"n": list(numbers)})


def test_batches_are_taken_once_and_none_may_be_missing(tmp_path: Path) -> None:
    sides: Any = {"left": "batches", "right": "batches"}
    for _ in range(2):
        store = Store(tmp_path, sides)
        state = Comparison(Matcher(depends=independent), drift=10, store=store)
        state.take("left", 0, table(1, 2))
        state.take("left", 0, table(1, 2))
        state.take("left", 1, table())
        assert state.matcher.seen("left") == 2
        assert (state.has("left", 1), state.has("left", 2)) == (True, False)
        with pytest.raises(CheckpointProblem, match="Expected batch 2 of the left side, got 3"):
            state.take("left", 3, table(3))
        store.close()
    assert len(list(tmp_path.glob("matcher-*"))) == 1


def test_who_is_too_far_ahead() -> None:
    state = Comparison(Matcher(depends=independent), drift=10)
    assert not state.too_far("left", 50)  # one batch alone is let through
    state.take("left", 0, table(*range(8)))
    assert (state.too_far("left", 2), state.too_far("left", 3), state.too_far("right", 50)) == (
        False,
        True,
        False,
    )


def test_each_event_is_overdue_once() -> None:
    now = [0.0]
    state = Comparison(Matcher(depends=independent), drift=10, clock=lambda: now[0])
    state.take("left", 0, table(1, 2))
    assert state.until_overdue(5) == 5
    now[0] = 3.0
    state.take("left", 1, table(3))
    state.take("right", 0, table(1))
    assert (state.overdue(5), state.until_overdue(5), state.metrics().lag_seconds) == (None, 2, 3)
    now[0] = 6.0
    late = state.overdue(5)
    assert late is not None
    assert (late.side, late.position, late.event) == ("left", 1, {"n": 2})
    assert state.overdue(5) is None
    state.take("left", 2, table(4))
    now[0] = 20.0
    again = state.overdue(5)
    assert again is not None
    assert again.position == 3
    assert state.until_overdue(5) is None
