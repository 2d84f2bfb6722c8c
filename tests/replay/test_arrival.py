"""Operators that take tuples as they arrive: the logged order is followed, and overlapping scopes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.replay.state.windows import Windows
from samovar.replay.trace.leaves import Leaves
from samovar.runtime.epochs import checkpoint_policy


class Diary(sv.Operator):
    """Gives each tuple the number under which it came."""

    output = "x bigint, branch string, number bigint"
    seen = sv.ListState()

    def process(self, row: Any, port: int = 0) -> Any:
        self.seen.append((row["branch"], row["x"]))
        yield {**row, "number": len(self.seen)}


@pytest.mark.parametrize("epoch_bytes", [pytest.param(None, marks=pytest.mark.slow), 1])
def test_a_replay_takes_tuples_in_the_order_in_which_they_arrived(
    epoch_bytes: int | None, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leaves, "smallest", 1)
    monkeypatch.setattr(Windows, "size", 3)
    monkeypatch.setattr(Windows, "margin", 1)
    # Marks would come often, but an order of arrival has no places for them.
    monkeypatch.setattr(checkpoint_policy, "EVERY", 5)
    (tmp_path / "in").mkdir()
    for i in range(4):
        pq.write_table(pa.table({"x": range(5 * i, 5 * i + 5)}), tmp_path / "in" / f"{i}.parquet")
    flow = sv.Workflow("arrivals")
    numbers = flow.read.parquet(str(tmp_path / "in"), name="numbers")
    left = numbers.selectExpr("x", "'left' AS branch", name="left")
    right = numbers.selectExpr("x", "'right' AS branch", name="right")
    both = left.union(right)
    flow.apply(Diary(), both, name="D", order="arrival").sink("S")
    run = flow.run(
        spark=spark,
        record=tmp_path / "runs",
        progress=False,
        epoch_bytes=epoch_bytes,
        marks="every",
    )
    came = sorted(run.result("S").to_pylist(), key=lambda row: row["number"])
    order = [(row["branch"], row["x"]) for row in came]
    past = sv.open(run.recording, spark=spark)
    assert not any(fact.marks for fact in past.history.epochs)
    assert past.jump().state("D")["seen"] == order
    for tuples in (1, 7, 23, 40):
        assert past.jump("D", tuples=tuples).state("D")["seen"] == order[:tuples]
    found = past.first("D", "len(seen) == 13")
    assert found is not None
    assert found.state("D")["seen"] == order[:13]
