"""Jumps that start from a mark inside an epoch see what those that start from the epoch's beginning see."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from tests.replay.conftest import Record, Recordings

import samovar as sv
from samovar.positions import Window
from samovar.record.log import Interaction
from samovar.replay.trace.epoch_marks import EpochMarks
from samovar.replay.trace.leaves import Leaves
from samovar.runtime.epochs import checkpoint_policy

ROWS = 600


class Running(sv.Operator):
    output = "x bigint, key string, total bigint, luck double"
    total = sv.ValueState(0)
    seen = sv.ListState()
    last = sv.MapState()

    def process(self, row: Any, port: int = 0) -> Any:
        self.total += row["x"]
        self.last[row["key"]] = row["x"]
        if row["x"] % 50 == 0:
            self.seen.append(row["x"])
        if row["x"] % 97 == 0:
            self.last.pop("k0", None)
        luck = sv.log_result(random.random) if row["x"] % 10 == 0 else 0.0
        if row["x"] % 3:
            yield {"x": row["x"], "key": row["key"], "total": self.total, "luck": luck}


class PerKey(sv.Operator):
    output = "key string, n bigint, luck double"
    counts = sv.MapState()

    def __init__(self) -> None:
        self.history: list[int] = []

    def process(self, row: Any, port: int = 0) -> Any:
        self.counts[row["key"]] = self.counts.get(row["key"], 0) + 1
        self.history = [*self.history[-3:], row["x"]]
        yield {"key": row["key"], "n": self.counts[row["key"]], "luck": row["luck"]}


def expected(tuples: int) -> dict[str, Any]:
    last: dict[str, int] = {}
    for x in range(tuples):
        last[f"k{x % 5}"] = x
        if x % 97 == 0:
            last.pop("k0", None)
    return {"total": sum(range(tuples)), "seen": list(range(0, tuples, 50)), "last": last}


@pytest.fixture
def record(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.setattr(checkpoint_policy, "EVERY", 100)
    monkeypatch.setattr(Leaves, "smallest", 3)

    def made(folder: Path) -> None:
        (folder / "in").mkdir()
        for i in range(2):
            xs = range(i * ROWS // 2, (i + 1) * ROWS // 2)
            table = pa.table({"x": xs, "key": [f"k{x % 5}" for x in xs]})
            pq.write_table(table, folder / "in" / f"{i}.parquet")
        flow = sv.Workflow("marks")
        rows = flow.read.parquet(str(folder / "in"), name="n")
        totals = rows.apply(Running(), name="R").filter("x % 2 = 1", name="odd")
        totals.apply(PerKey(), name="K", by="key").sink("S")
        flow.run(spark=spark, record=folder / "runs", progress=False, marks="every")

    return made


@pytest.fixture
def past(spark: Any, recordings: Recordings, record: Record) -> Iterator[sv.Past]:
    with sv.open(recordings.shared("marks", record), spark=spark) as opened:
        yield opened


def test_a_jump_starts_at_the_mark_before_it(past: sv.Past) -> None:
    fact = past.history.epochs[0]
    assert len(fact.marks) == ROWS // 100
    tracer = past._session.tracer
    segment = past._session.segments[0]
    for tuples in (20, 250, 599):
        moment = past.jump("R", tuples=tuples)
        assert moment.state("R") == expected(tuples)
        low = moment._traced.window.low
        if low is not None:
            mark = tracer.marks(segment, Window(low, None)).mark
            assert mark == sum(1 for m in fact.marks if m <= low)
        assert moment.counters["R"].taken == (tuples,)
        assert moment.counters["R"].given == sum(1 for x in range(tuples) if x % 3)
    assert tracer.marks(segment, moment._traced.window).mark >= 4


def test_keyed_operators_behind_another_one_and_logged_results_too(past: sv.Past) -> None:
    rows = past.result("S").to_pylist()
    taken = [x for x in range(ROWS) if x % 3 and x % 2]
    for tuples in (3, len(taken)):
        moment = past.jump("K", tuples=tuples)
        counts: dict[str, int] = {}
        for x in taken[:tuples]:
            counts[f"k{x % 5}"] = counts.get(f"k{x % 5}", 0) + 1
        assert moment.state("K")["counts"] == counts
        assert moment.last is not None
        assert moment.last.outputs[0] in rows
    moment = past.jump("R", tuples=588)
    lucky = [moment.step_over("R")]
    while lucky[-1].last.row["x"] < 592:
        lucky.append(lucky[-1].step_over("R"))
    made = {m.last.row["x"]: m.last.outputs for m in lucky}
    assert made[590][0]["luck"] > 0


def test_the_cost_of_a_jump_is_known_from_the_log(past: sv.Past) -> None:
    seconds = past.history.epochs[0].seconds

    def to(tuples: int) -> Interaction:
        return Interaction(id="I1", at=0.0, operator="R", epoch=0, tuples=tuples)

    early, late = past.jump_cost(to(1)), past.jump_cost(to(590))
    assert early.bytes == 0
    assert late.bytes > 1000
    assert checkpoint_policy.JUMP <= late.seconds <= checkpoint_policy.JUMP + seconds / 6
    with pytest.raises(sv.errors.UnknownName):
        past.jump_cost("I9")


def test_a_damaged_mark_is_named_and_other_moments_stay_usable(
    spark: Any, recordings: Recordings, record: Record, tmp_path: Path
) -> None:
    past = sv.open(recordings.copy("marks", record, tmp_path), spark=spark)
    folder = past.path / "epochs"
    for file in folder.glob("*/state/R/0000.mark0004"):
        file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(sv.SamovarError, match="mark0004"):
        past.jump("R", tuples=560).state("R")
    assert past.jump("R", tuples=120).state("R") == expected(120)
    tracer, segment = past._session.tracer, past._session.segments[0]
    behind = tracer.windowed(segment, Window(past.history.epochs[0].marks[4]))
    with pytest.raises(sv.SamovarError, match="mark0004"), tracer.tagged("a trace", behind):
        raise Py4JError("what PySpark raises when several stages fail at once")


def test_the_mark_before_a_tuple_is_found_by_halving(past: sv.Past, monkeypatch: pytest.MonkeyPatch) -> None:
    tracer, segment = past._session.tracer, past._session.segments[0]
    fact = past.history.epochs[0]
    taken = [tracer.marks(segment, Window(at)).taken_before("K") for at in fact.marks]
    assert taken == sorted(taken)
    assert taken[0] > 0
    asked: list[Any] = []
    before = EpochMarks.taken_before
    monkeypatch.setattr(
        EpochMarks, "taken_before", lambda self, name: asked.append(self.mark) or before(self, name)
    )
    for tuples in (0, taken[0] - 1, taken[0], taken[2] + 1, taken[-1] - 1, taken[-1], ROWS):
        asked.clear()
        passed = sum(n <= tuples for n in taken)
        expected = (fact.marks[passed - 1], taken[passed - 1]) if passed else (None, 0)
        assert tracer.marked(segment, "K", tuples) == expected
        assert len(asked) <= 4
