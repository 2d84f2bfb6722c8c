"""Forks that begin inside an epoch: what came before the moment is done again as it was, and committed as an epoch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.replay.conftest import Recordings

import samovar as sv
from samovar.record.store import Recording
from samovar.replay.trace.leaves import Leaves
from samovar.runtime.epochs import checkpoint_policy

ROWS, CUT = 600, 350


class Running(sv.Operator):
    output = "x bigint, key string, total bigint, luck double"
    total = sv.ValueState(0)
    last = sv.MapState()

    def __init__(self, weight: int = 1) -> None:
        self.weight = weight
        self.history: list[int] = []

    def process(self, row: Any, port: int = 0) -> Any:
        self.total += self.weight * row["x"]
        self.last[row["key"]] = row["x"]
        self.history = [*self.history[-3:], row["x"]]
        luck = sv.log_result(random.random) if row["x"] % 10 == 0 else 0.0
        for _ in range(row["x"] % 3):
            yield {"x": row["x"], "key": row["key"], "total": self.total, "luck": luck}


class PerKey(sv.Operator):
    output = "x bigint, key string, total bigint, n bigint, luck double"
    counts = sv.MapState()

    def process(self, row: Any, port: int = 0) -> Any:
        self.counts[row["key"]] = self.counts.get(row["key"], 0) + 1
        yield {**row, "n": self.counts[row["key"]]}


def expected(cut: int, weight: int) -> list[tuple[int, str, int, int]]:
    """The rows of the result without luck, with tuples from `cut` on counted by their weight."""
    total, counts, rows = 0, Counter[str](), []
    for x in range(ROWS):
        total += x * (weight if x >= cut else 1)
        key = f"k{x % 5}" if x < 300 else "late"
        for _ in range(x % 3 if x % 2 else 0):
            counts[key] += 1
            rows.append((x, key, total, counts[key]))
    return sorted(rows)


def shown(run: sv.Run) -> list[tuple[int, str, int, int]]:
    return sorted((r["x"], r["key"], r["total"], r["n"]) for r in run.result("S").to_pylist())


def luck(rows: pa.Table, cut: int) -> dict[tuple[int, int], float]:
    return {(r["x"], r["n"]): r["luck"] for r in rows.to_pylist() if r["x"] < cut}


@pytest.fixture
def past(
    spark: Any, recordings: Recordings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[sv.Past]:
    """A run of one epoch with marks: one operator behind another, with a shuffle and a filter between them."""
    monkeypatch.setattr(checkpoint_policy, "EVERY", 100)
    monkeypatch.setattr(Leaves, "smallest", 3)

    def record(root: Path) -> None:
        (root / "in").mkdir()
        for i in range(2):
            xs = range(i * ROWS // 2, (i + 1) * ROWS // 2)
            pq.write_table(
                pa.table({"x": xs, "key": [f"k{x % 5}" for x in xs]}), root / "in" / f"{i}.parquet"
            )
        flow = sv.Workflow("inside")
        totals = flow.read.parquet(str(root / "in"), name="in").apply(Running(), name="R")
        early = "CASE WHEN x < 300 THEN key ELSE 'late' END AS key"
        odd = totals.selectExpr("x", early, "total", "luck").filter("x % 2 = 1", name="odd")
        odd.apply(PerKey(), name="K", by="key", key_partitions=2).sink("S")
        flow.run(spark=spark, record=root / "runs", progress=False, marks="every", epoch_bytes=1 << 30)

    made = sv.open(recordings.copy("inside", record, tmp_path), spark=spark)
    yield made
    made.close()


def test_what_came_before_a_forks_moment_is_as_it_was(past: sv.Past) -> None:
    assert len(past.history.epochs) == 1
    fork = past.jump("R", tuples=CUT).fork({"R": Running(weight=100)})
    assert shown(fork) == expected(CUT, 100)
    assert luck(fork.result("S"), CUT) == luck(past.result("S"), CUT)
    epochs = Recording.open(fork.recording).history().epochs
    assert sum(epochs[0].counters["R"].taken) == CUT
    assert epochs[0].state.keys() == {"R", "K"}


def test_a_fork_of_a_fork_is_a_fork(past: sv.Past, spark: Any) -> None:
    fork = past.jump("R", tuples=470).fork({"R": Running(weight=100)})
    fork.wait(progress=False)
    with sv.open(fork.recording, spark=spark) as within:
        assert (
            len(within.history.epochs[0].marks) == 5
        )  # jumps into the part before the moment are short, too
        assert within.jump("R", tuples=450).state("R")["total"] == sum(range(450))
        again = within.jump("R", tuples=CUT).fork({"R": Running(weight=100)})
        assert shown(again) == expected(CUT, 100)
        assert luck(again.result("S"), CUT) == luck(past.result("S"), CUT)
