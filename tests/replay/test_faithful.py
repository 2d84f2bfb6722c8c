"""Hidden non-determinism is found when an epoch is computed again, and the operator is named."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv

ROWS = 3000


class Steady(sv.Operator):
    output = "x bigint, y double"

    def process(self, row: Any, port: int = 0) -> Any:
        yield {"x": row["x"], "y": 2.0 * row["x"]}


class Fickle(sv.Operator):
    output = "x bigint, y double"

    def process(self, row: Any, port: int = 0) -> Any:
        yield {"x": row["x"], "y": random.random()}


class Logged(sv.Operator):
    output = "x bigint, y double"

    def process(self, row: Any, port: int = 0) -> Any:
        yield {"x": row["x"], "y": sv.log_result(random.random)}


class FickleBatches(sv.Operator):
    output = "x bigint, y double"

    def process_batch(self, batch: pa.RecordBatch, port: int = 0) -> Any:
        noise = pa.array([random.random() for _ in range(batch.num_rows)])
        yield pa.RecordBatch.from_arrays([batch.column("x"), noise], ["x", "y"])


def recorded(spark: Any, tmp_path: Path, *chain: tuple[str, sv.Operator]) -> sv.Past:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": range(ROWS)}), tmp_path / "in" / "0.parquet")
    flow = sv.Workflow("fickle")
    frame = flow.read.parquet(str(tmp_path / "in"), name="n")
    for name, operator in chain:
        frame = frame.apply(operator, name=name)
    frame.filter("x >= 0", name="all").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    return sv.open(run.recording, spark=spark)


@pytest.mark.parametrize("kind", [Fickle, FickleBatches])
def test_an_operator_that_gives_something_else_is_named(kind: Any, spark: Any, tmp_path: Path) -> None:
    past = recorded(spark, tmp_path, ("first", Steady()), ("second", kind()), ("third", Steady()))
    with pytest.raises(sv.errors.ReplayDiffers, match="'second' gives something else") as found:
        past.jump("third", tuples=1500)
    assert found.value.operator == "second"
    assert "log_result" in str(found.value.hint)


def test_a_logged_call_is_faithful(spark: Any, tmp_path: Path) -> None:
    past = recorded(spark, tmp_path, ("first", Steady()), ("second", Logged()))
    moment = past.jump("second", tuples=2900)
    rows = past.result("S").to_pylist()
    assert moment.last is not None
    assert moment.last.outputs[0] == rows[2899]
    assert past.first("second", "row['x'] == 2999") is not None
