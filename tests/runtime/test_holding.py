"""A chain that holds, without Spark: whatever a tuple did before it raised is undone, in all operators behind it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.control.support import WAIT

import samovar as sv
from samovar import testing
from samovar.record.state_files import read_state
from samovar.runtime.exchange.decisions import read_decisions
from samovar.runtime.exchange.task import Stage, Task
from samovar.runtime.pickles import by_value
from samovar.runtime.worker import undoable_chain
from samovar.runtime.worker.entry import chain_function
from samovar.testing import local_jobs

Row = dict[str, Any]
Decide = Callable[[Any], tuple[str, Row | None]]
FIRST = pa.schema([("x", pa.int64()), ("n", pa.int64())])


class Fussy(sv.Operator):
    """Changes every kind of state, gives rows and asks for results, then raises on some."""

    output = "x bigint, n bigint"
    seen = sv.MapState()
    last = sv.ListState()

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.n = 0

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        self.n += 1
        self.last.append(row["x"])
        self.seen.setdefault(row["x"] % 3, []).append(row["x"])
        yield {"x": row["x"], "n": sv.log_result(lambda: 10 * self.n)}
        given = row.pop("x")  # what an operator does to its row is its own affair
        yield None
        if given in self.bad:
            raise ValueError(f"not {given}")
        yield {"x": given, "n": self.n}


class Total(sv.Operator):
    """Behind Fussy; raises on a total of its own."""

    output = "x bigint, total bigint"

    def __init__(self, bad: int = -1) -> None:
        self.total = 0
        self.bad = bad

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        self.total += row["n"]
        yield {"x": row["x"], "total": self.total}
        if row["x"] == self.bad:
            raise ArithmeticError("total")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers come in several batches."""
    monkeypatch.setattr(local_jobs, "BATCH", 5)


def held(tmp_path: Path, decide: Decide, *operators: sv.Operator) -> sv.Run:
    """Run a chain over the numbers from 0 on; `decide` is asked about each tuple that is held."""
    flow = sv.Workflow("held")
    frame = flow.values("x bigint", [(x,) for x in range(12)], name="numbers")
    for name, operator in zip("FT", operators, strict=False):
        frame = frame.apply(operator, name=name)
    frame.sink("S")
    run = testing.start(flow, on_error="hold", record=tmp_path)
    while run.wait_until("holding", timeout=WAIT) == "holding":
        kind, row = decide(run.desk.held[0])
        if kind == "retry":
            run.retry(row)
        else:
            run.skip(all_like_it=kind == "skip-all")
    return run


def rows_of(run: sv.Run) -> list[tuple[int, int]]:
    """What came out; raises what ended the run."""
    return [tuple(row.values()) for row in run.result("S").to_pylist()]  # type: ignore[misc]


def plain(xs: list[int]) -> list[tuple[int, int]]:
    made, total = [], 0
    for n, x in enumerate(xs, 1):
        for given in (10 * n, n):
            total += given
            made.append((x, total))
    return made


def epoch_folder(run: sv.Run) -> Path:
    return run.store.epoch_folder(run.history.epochs[0])


def results(run: sv.Run) -> list[int]:
    """What calls of log_result gave, as the epoch keeps it."""
    found: list[int] = read_state(epoch_folder(run) / "state" / "F" / "0000.delta")[1]["results"]
    return found


def test_a_skipped_tuple_leaves_no_trace(tmp_path: Path) -> None:
    run = held(tmp_path, lambda _: ("skip", None), Fussy(7), Total())
    rest = [x for x in range(12) if x != 7]
    assert rows_of(run) == plain(rest)
    assert run.inspect("F").state["last"] == rest
    assert run.inspect("T").state["total"] == rows_of(run)[-1][1]
    assert [(d.operator, d.number, d.row) for d in read_decisions(epoch_folder(run))] == [("F", 7, {"x": 7})]
    assert results(run) == [10 * n for n in range(1, 12)]


def test_an_edited_tuple_takes_the_place_of_the_other(tmp_path: Path) -> None:
    run = held(tmp_path, lambda _: ("retry", {"x": 70}), Fussy(7), Total())
    assert rows_of(run) == plain([70 if x == 7 else x for x in range(12)])


def test_a_second_failure_far_behind_is_undone_from_a_later_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undoable_chain, "EVERY", 0.0)
    monkeypatch.setattr(undoable_chain, "SHARE", 1e9)  # a base before every tuple
    run = held(tmp_path, lambda _: ("skip", None), Fussy(3, 4, 9), Total())
    rest = [x for x in range(12) if x not in (3, 4, 9)]
    assert rows_of(run) == plain(rest)
    seen = run.inspect("F").state
    assert seen["last"] == rest
    assert seen["seen"] == {k: [x for x in rest if x % 3 == k] for k in range(3)}


def test_several_are_undone_from_the_epochs_start(tmp_path: Path) -> None:
    asked: list[int] = []

    def decide(one: Any) -> tuple[str, Row | None]:
        asked.append(one.place.number)
        return ("retry", None) if asked.count(one.place.number) < 3 else ("skip", None)

    run = held(tmp_path, decide, Fussy(3, 4, 9), Total())
    assert rows_of(run) == plain([x for x in range(12) if x not in (3, 4, 9)])
    assert asked == [3, 3, 3, 4, 4, 4, 9, 9, 9]


def test_a_tuple_of_an_operator_behind_is_undone_alone(tmp_path: Path) -> None:
    """Total raises on both tuples that Fussy makes of 5; Fussy itself stays in the middle of 5 meanwhile."""
    run = held(tmp_path, lambda _: ("skip", None), Fussy(), Total(5))
    made, total = [], 0
    for n, x in enumerate(range(12), 1):
        for given in (10 * n, n):
            if x != 5:
                total += given
                made.append((x, total))
    assert rows_of(run) == made
    assert results(run) == [10 * n for n in range(1, 13)]


def test_all_like_it_are_asked_about_once(tmp_path: Path) -> None:
    asked: list[int] = []

    def decide(one: Any) -> tuple[str, Row | None]:
        asked.append(one.place.number)
        return "skip-all", None

    run = held(tmp_path, decide, Fussy(3, 4, 9), Total())
    assert rows_of(run) == plain([x for x in range(12) if x not in (3, 4, 9)])
    assert asked == [3]
    assert [d.number for d in read_decisions(epoch_folder(run))] == [3, 4, 9]


class Batched(sv.Operator):
    """In batch form: numbers the rows; raises on batches with a bad one, after it has changed its state."""

    output = "x bigint, n bigint"

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.n = 0

    def process_batch(self, batch: pa.RecordBatch, port: int = 0) -> Iterator[pa.RecordBatch]:
        xs = batch.column(0).to_pylist()
        first, self.n = self.n + 1, self.n + len(xs)
        yield pa.record_batch({"x": xs, "n": list(range(first, self.n + 1))})
        if any(x in self.bad for x in xs):
            raise ValueError("not this batch")


def test_a_batch_is_split_until_the_row_is_found(tmp_path: Path) -> None:
    asked: list[Any] = []

    def decide(one: Any) -> tuple[str, Row | None]:
        asked.append(pickle.loads(one.row))
        return ("retry", {"x": 70}) if asked[-1]["x"] == 7 else ("skip", None)

    run = held(tmp_path, decide, Batched(3, 7))
    assert asked == [{"x": 3}, {"x": 7}]
    wanted = [x if x != 7 else 70 for x in range(12) if x != 3]
    assert rows_of(run) == [(x, n) for n, x in enumerate(wanted, 1)]
    assert run.inspect("F").state["n"] == 11
    kept = read_decisions(epoch_folder(run))
    assert [(d.number, d.kind, d.row["x"]) for d in kept] == [(3, "skip", 3), (7, "edit", 7)]


def test_a_batch_follows_recorded_decisions(tmp_path: Path) -> None:
    run = held(tmp_path, lambda one: ("skip", None), Batched(3, 7))
    stages = (Stage("F", by_value(Batched(3, 7)), FIRST, str(tmp_path / "again"), {}),)
    decided = read_decisions(epoch_folder(run))
    task = Task("again", 0, "a", stages, 0, True, str(tmp_path / "other" / "errors"), decided=decided)
    batches = [pa.record_batch({"x": range(12)})]
    rows = [tuple(r.values()) for b in chain_function(task)(iter(batches)) for r in b.to_pylist()]
    assert rows == [(x, n) for n, x in enumerate((x for x in range(12) if x not in (3, 7)), 1)]


class Ends(Fussy):
    """Gives some rows at its end, changes its state, and raises."""

    def finish(self, port: int = 0) -> Iterator[Row]:
        for i in range(3):
            self.n += 1
            yield {"x": 100 + i, "n": 1}
        if not Path(self.sign).exists():
            raise RuntimeError("not yet")


def test_an_end_that_raises_is_held_and_tried_again(tmp_path: Path) -> None:
    operator = Ends()
    operator.sign = str(tmp_path / "sign")
    asked: list[Any] = []

    def decide(one: Any) -> tuple[str, Row | None]:
        asked.append((one.place.operator, one.shown))
        if len(asked) == 2:
            (tmp_path / "sign").touch()
        return "retry", None

    run = held(tmp_path, decide, operator, Total())
    assert asked == [("F", "the end of its input")] * 2
    before = plain(list(range(12)))
    total = before[-1][1]
    assert rows_of(run) == [*before, *((100 + i, total + i + 1) for i in range(3))]
    assert run.inspect("F").state["n"] == 15
    assert run.inspect("T").state["total"] == total + 3


def test_an_end_that_raises_is_skipped_as_a_whole(tmp_path: Path) -> None:
    operator = Ends()
    operator.sign = str(tmp_path / "sign")
    run = held(tmp_path, lambda _: ("skip", None), operator, Total())
    assert rows_of(run) == plain(list(range(12)))
    assert run.inspect("F").state["n"] == 12


def test_a_tuple_given_at_an_end_is_held_as_any_other(tmp_path: Path) -> None:
    operator = Ends()
    operator.sign = str(tmp_path / "sign")
    (tmp_path / "sign").touch()
    run = held(tmp_path, lambda _: ("skip", None), operator, Total(bad=101))
    before = plain(list(range(12)))
    total = before[-1][1]
    assert rows_of(run) == [*before, (100, total + 1), (102, total + 2)]
