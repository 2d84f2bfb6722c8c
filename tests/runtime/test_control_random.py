"""Random commands against real runs: results are those of an undisturbed run, and every command is answered in time."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import samovar as sv
from samovar import testing
from samovar.control.door import Visit, read_address
from samovar.errors import SamovarError
from samovar.runtime.progress import GOING

PATIENCE = 5.0
"""Seconds within which every command is answered or refused."""
ROWS, FILES = 80, 3


class Steady(sv.Operator):
    """Keeps what it has seen of each key, a few milliseconds a tuple, in mini-steps."""

    output = "x bigint, k bigint, n bigint"
    seen = sv.MapState()

    def __init__(self, seconds: float = 0.002) -> None:
        self.seconds = seconds

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.seen[row["k"]] = self.seen.get(row["k"], 0) + 1
        for _ in range(2):
            time.sleep(self.seconds / 2)
            yield
        yield {"x": row["x"], "k": row["k"], "n": self.seen[row["k"]]}


def source(folder: Path) -> str:
    made = folder / "in"
    made.mkdir(parents=True, exist_ok=True)
    for i in range(FILES):
        xs = range(i * ROWS, (i + 1) * ROWS)
        pq.write_table(pa.table({"x": xs, "k": [x % 5 for x in xs]}), made / f"{i}.parquet")
    return str(made)


def workflow(folder: Path, seconds: float = 0.002) -> sv.Workflow:
    """Python by key, then native, then Python once more, over several epochs."""
    flow = sv.Workflow("random")
    rows = flow.read.parquet(source(folder), name="numbers").filter("x % 11 <> 3", name="F")
    first = rows.apply(Steady(seconds), by="k", name="A").withColumn("k", "n % 3", name="K")
    first.apply(Steady(0.0), by="k", name="B").sink("S")
    return flow


def local_workflow(folder: Path, seconds: float = 0.002) -> sv.Workflow:
    """The same of Python operators alone; another key keeps their tasks apart."""
    flow = sv.Workflow("random")
    rows = flow.read.parquet(source(folder), name="numbers")
    rows.apply(Steady(seconds), by="k", name="A").apply(Steady(0.0), by="n", name="B").sink("S")
    return flow


def rows_of(run: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r.values()) for r in run.result("S").to_pylist())


def in_time(command: Callable[[], Any]) -> Any:
    """What a command answers or how it refuses; fails when it takes too long."""
    began = time.monotonic()
    try:
        return command()
    except SamovarError as refused:
        return refused
    finally:
        took = time.monotonic() - began
        assert took < PATIENCE, f"a command took {took:.1f} s"


class Commands(RuleBasedStateMachine):
    """People and visitors at a run, in any order."""

    start: ClassVar[Callable[[str], Any]]
    """Starts a run under a name."""
    folder: Path = Path()
    expected: ClassVar[Counter[tuple[Any, ...]]] = Counter()
    started = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).started += 1
        self.run = type(self).start(f"random-{self.started}")
        self.visits: list[Visit] = []

    @property
    def going(self) -> bool:
        return self.run.status in GOING

    @rule(mode=st.sampled_from(["direct", "aligned"]))
    def pause(self, mode: Any) -> None:
        in_time(lambda: self.run.pause(mode=mode))

    @rule()
    def resume(self) -> None:
        in_time(self.run.resume)

    @rule(operator=st.sampled_from(["A", "B"]))
    def inspect(self, operator: str) -> None:
        found = in_time(lambda: self.run.inspect(operator))
        if not isinstance(found, SamovarError):
            seen = found.state.get("seen", {})
            assert sum(seen.values()) <= ROWS * FILES

    @rule(operator=st.sampled_from(["A", "B"]))
    def in_flight(self, operator: str) -> None:
        in_time(lambda: self.run.in_flight(operator))

    @rule(operator=st.sampled_from(["A", "numbers", "S"]))
    def interact(self, operator: str) -> None:
        in_time(lambda: self.run.interact(operator))

    @rule(condition=st.sampled_from(["x == 17", "x % 50 == 1", "seen.get(2, 0) == 9"]))
    def break_at(self, condition: str) -> None:
        in_time(lambda: self.run.break_at("A", condition))

    @rule(tuples=st.integers(1, ROWS * FILES))
    def break_at_count(self, tuples: int) -> None:
        in_time(lambda: self.run.break_at("B", tuples=tuples))

    @rule()
    def unwatch(self) -> None:
        for one in self.run.breakpoints[:1]:
            in_time(lambda name=one.name: self.run.unwatch(name))  # type: ignore[misc]

    @rule()
    def attach(self) -> None:
        try:
            self.visits.append(Visit(*read_address(self.run.store.path)))
        except SamovarError:
            assert not self.going

    @precondition(lambda self: self.visits)
    @rule(do=st.sampled_from(["pause", "resume", "status", "statistics", "held"]))
    def ask(self, do: str) -> None:
        in_time(lambda: self.visits[-1].ask(do))

    @precondition(lambda self: self.visits)
    @rule()
    def detach(self) -> None:
        self.visits.pop()

    @rule(seconds=st.floats(0.0, 0.05))
    def let_it_go_on(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    @invariant()
    def it_has_not_failed(self) -> None:
        assert self.run.status != "failed", self.run.error

    def teardown(self) -> None:
        until = time.monotonic() + 60
        while self.going:
            assert time.monotonic() < until, f"it does not end: {self.run.status}"
            for one in self.run.breakpoints:
                in_time(lambda name=one.name: self.run.unwatch(name))  # type: ignore[misc]
            in_time(self.run.resume)
            self.run.wait_ended(0.1)
        assert rows_of(self.run) == self.expected


def check(spark: Any, folder: Path, *, examples: int, steps: int) -> None:
    def start(name: str) -> Any:
        record = folder / "runs"
        return workflow(folder).start(spark=spark, record=record, run_id=name, epoch_bytes=1)

    expected = rows_of(workflow(folder, 0.0).run(spark=spark, record=False, progress=False))
    check_commands(start, expected, examples, steps)


def check_commands(
    start: Callable[[str], Any], expected: Counter[tuple[Any, ...]], examples: int, steps: int
) -> None:
    made = type("Made", (Commands,), {"start": staticmethod(start), "expected": expected})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        made,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        ),
    )


def test_whatever_is_asked_meanwhile_the_results_are_the_same(tmp_path: Path) -> None:
    def start(name: str) -> Any:
        return testing.start(local_workflow(tmp_path), record=tmp_path / "runs", run_id=name)

    expected = rows_of(testing.run(local_workflow(tmp_path, 0.0)))
    check_commands(start, expected, examples=5, steps=30)


def test_whatever_is_asked_meanwhile_the_results_on_spark_are_the_same(spark: Any, tmp_path: Path) -> None:
    check(spark, tmp_path, examples=1, steps=30)


@pytest.mark.slow
def test_whatever_is_asked_meanwhile_the_results_are_the_same_at_length(spark: Any, tmp_path: Path) -> None:
    check(spark, tmp_path, examples=40, steps=60)


def commands_of(run: Any, chance: random.Random) -> dict[str, Callable[[], Any]]:
    """What can be asked of a run."""
    return {
        "pause": run.pause,
        "pause aligned": lambda: run.pause(mode="aligned"),
        "resume": run.resume,
        "resume again": run.resume,
        "inspect": lambda: run.inspect(chance.choice("AB")),
        "in flight": lambda: run.in_flight(chance.choice("AB")),
        "interact": lambda: run.interact("A"),
        "break at": lambda: run.break_at("A", "x % 40 == 1"),
        "break at tuples": lambda: run.break_at(chance.choice("AB"), tuples=chance.randint(1, 240)),
        "unwatch": lambda: run.unwatch(f"B{chance.randint(1, 5)}"),
        "modify": lambda: run.modify({"A": Steady(0.003)}),
        "skip": run.skip,
        "statistics": lambda: next(run.statistics()),
    }


@pytest.mark.slow
def test_a_thousand_commands_in_a_row_are_answered_or_refused_in_time(spark: Any, tmp_path: Path) -> None:
    expected = rows_of(workflow(tmp_path, 0.0).run(spark=spark, record=False, progress=False))
    record = tmp_path / "runs"
    command_often(
        lambda: workflow(tmp_path, 0.004).start(spark=spark, record=record, epoch_bytes=1), expected, 1000
    )


def test_two_hundred_commands_in_a_row_are_answered_or_refused_in_time(tmp_path: Path) -> None:
    expected = rows_of(testing.run(local_workflow(tmp_path, 0.0)))
    command_often(lambda: testing.start(local_workflow(tmp_path, 0.004)), expected, 200)


def command_often(start: Callable[[], Any], expected: Counter[tuple[Any, ...]], often: int) -> None:
    """So many commands at random; every run gives the expected rows."""
    chance = random.Random(7)
    counts: Counter[str] = Counter()
    worst = 0.0
    run: Any = None
    n = 0
    while n < often or run.status in GOING:
        if run is None or run.status not in GOING:
            if run is not None:
                assert rows_of(run) == expected
            run = start()
        commands = commands_of(run, chance)
        name = chance.choice(list(commands)) if n < often else "resume"
        began = time.monotonic()
        answer = in_time(commands[name])
        worst = max(worst, time.monotonic() - began)
        counts["refused" if isinstance(answer, SamovarError) else "answered"] += 1
        if n >= often:
            for one in run.breakpoints:
                run.unwatch(one.name)
        n += 1
    assert rows_of(run) == expected
    assert counts["answered"] > 0.3 * often, counts
    assert worst < PATIENCE
