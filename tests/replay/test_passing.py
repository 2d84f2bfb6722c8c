"""Rows before a window: the same states and counts as when each is looked at, and nothing of them is sent on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import samovar as sv
from samovar.replay.trace.traced_chain import (
    TRACE,
    Probe,
    Record,
    probing_function,
    read_records,
    tracing_function,
)
from samovar.runtime.exchange.task import Stage, Task
from samovar.runtime.pickles import by_value

SCHEMA = pa.schema([pa.field("v", pa.int64()), pa.field("total", pa.int64())])


class Sum(sv.Operator):
    """A running sum of odd values; fails at 13 when it is told to."""

    output = "v bigint, total bigint"
    total = sv.ValueState(0)
    seen = sv.MapState()

    def __init__(self, bad: int = -1, lacks: int = -1) -> None:
        self.bad, self.lacks = bad, lacks

    def process(self, row: Any, port: int = 0) -> Any:
        if row["v"] == self.bad:
            raise ValueError("bad")
        self.total += row["v"]
        self.seen[row["v"] % 4] = row["v"]
        yield None
        if row["v"] % 2:
            yield {"v": row["v"], "total": self.total} if row["v"] != self.lacks else {"v": row["v"]}


class Same(Sum):
    def process(self, row: Any, port: int = 0) -> Any:
        self.total += row["total"]
        yield row


def _task(*operators: sv.Operator) -> Task:
    stages = tuple(
        Stage(name=f"S{i}", code=by_value(op, f"S{i}"), schema=SCHEMA, folder="", versions={}, rank=i)
        for i, op in enumerate(operators)
    )
    return Task("run", 0, "try", stages, 2 + len(operators), True, "")


def _batches(rows: int, size: int = 7) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, size):
        vs = list(range(first, min(first + size, rows)))
        yield pa.RecordBatch.from_pydict({"v": vs, "__sv_p0": [0] * len(vs), "__sv_p1": vs})


def _traced(task: Task, start: Any, *, passes: bool) -> tuple[int, list[Record]]:
    """How many rows were sent on, and what was written down."""
    made = list(tracing_function(task, start, passes=passes)(_batches(30)))
    rows = sum(b.num_rows for b in made if b.column(TRACE).null_count)
    told = [b.column(TRACE) for b in made if not b.column(TRACE).null_count]
    return rows, read_records(pa.chunked_array(told, pa.binary()))


@pytest.mark.parametrize("operators", [(Sum(),), (Sum(), Same())])
@pytest.mark.parametrize("start", [None, (0, 0), (0, 5), (0, 7), (0, 20), (0, 29), (0, 99)])
def test_nothing_is_sent_on_before_the_window_and_all_else_is_the_same(operators: Any, start: Any) -> None:
    first = start[1] if start else 0
    sent, told = _traced(_task(*operators), start, passes=True)
    every, same = _traced(_task(*operators), start, passes=False)
    assert told == same
    assert sent == sum(1 for v in range(first, 30) if v % 2)
    assert every == 15
    base = next(r for r in told if r.at is None)
    assert base.given == sum(1 for v in range(min(first, 30)) if v % 2)


@pytest.mark.parametrize("operator", [Sum(bad=13), Sum(lacks=13)])
@pytest.mark.parametrize("start", [(0, 5), (0, 13), (0, 99)])
def test_a_tuple_that_fails_is_told_by_its_place(operator: Any, start: Any) -> None:
    records = [_traced(_task(operator), start, passes=passes)[1][-1] for passes in (True, False)]
    assert [r.at for r in records] == [(0, 13), (0, 13)]
    assert records[0].error.row == records[1].error.row == {"v": 13}
    assert records[0].error.error == records[1].error.error
    assert records[0].error.mismatch == records[1].error.mismatch


@pytest.mark.parametrize(
    "asked", ["total > 100", "any(seen.get(k, 0) > 14 for k in (2, 3))", "row['v'] == 9"]
)
def test_a_search_of_an_operator_alone_finds_what_one_in_a_chain_finds(asked: str) -> None:
    found = []
    for task in (_task(Sum()), _task(Sum(), Same())):
        made = list(probing_function(task, Probe(0, expression=asked))(_batches(30)))
        told = [b.column(TRACE) for b in made if not b.column(TRACE).null_count]
        found.append([r.at for r in read_records(pa.chunked_array(told, pa.binary()))])
    assert found[0] == found[1]
    assert len(found[0]) == 1


def test_an_error_of_the_question_is_not_the_operators() -> None:
    with pytest.raises(ZeroDivisionError):
        list(probing_function(_task(Sum()), Probe(0, expression="1 / (5 - row['v']) > 9"))(_batches(30)))
