"""Expressions that give something else each time: computed once, and a replay reads what they gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv


class Seen(sv.Operator):
    output = "x bigint, r double, id string"
    count = sv.ValueState(0)

    def process(self, row: Any, port: int = 0) -> Any:
        self.count += 1
        yield {"x": row["x"], "r": row["r"], "id": row["id"]}


@pytest.mark.parametrize("epoch_bytes", [pytest.param(None, marks=pytest.mark.slow), 1])
def test_values_are_made_once_for_all_who_read_them_and_for_every_replay(
    epoch_bytes: int | None, spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for i in range(2):
        pq.write_table(pa.table({"x": range(20 * i, 20 * i + 20)}), tmp_path / "in" / f"{i}.parquet")
    flow = sv.Workflow("dice")
    rows = flow.read.parquet(str(tmp_path / "in"), name="n").filter("x % 2 = 0", name="even")
    dice = rows.selectExpr("x", "rand() AS r", "uuid() AS id", "current_timestamp AS at", name="dice")
    dice.filter("r < 0.5", name="low").sink("L")
    dice.filter("r >= 0.5", name="high").sink("H")
    dice.apply(Seen(), name="P").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, epoch_bytes=epoch_bytes)
    both = run.result("L").to_pylist() + run.result("H").to_pylist()
    assert sorted(row["x"] for row in both) == list(range(0, 40, 2))
    ids = {row["x"]: row["id"] for row in both}
    seen = run.result("S").to_pylist()
    assert {row["x"]: row["id"] for row in seen} == ids

    past = sv.open(run.recording, spark=spark)
    moment = past.jump("P", tuples=13)
    assert moment.last is not None
    assert moment.last.row["id"] == ids[24]
    first = past.jump("dice", tuples=1)
    for x in (2, 4):  # the operator itself, on the level where its values were made
        first = first.step_over("dice")
        assert first.last is not None
        assert [out["id"] for out in first.last.outputs] == [ids[x]]
    found = past.first("P", lambda state: state["count"] == 20)
    assert found is not None
    assert found.last.row["id"] == ids[38]
