"""The first moment at which something holds: the search goes no further than it must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv

ROWS = 400


class Sum(sv.Operator):
    """Adds up; notes in a file how far it came, and refuses to end before its last row."""

    output = "x bigint, total bigint"
    total = sv.ValueState(0)

    def __init__(self, seen: str) -> None:
        self.seen = seen

    def process(self, row: Any, port: int = 0) -> Any:
        with Path(self.seen).open("a") as file:
            file.write(f"{row['x']}\n")
        self.total += row["x"]
        yield {"x": row["x"], "total": self.total}

    def finish(self, port: int = 0) -> Any:
        if self.total != sum(range(ROWS)):
            raise ValueError("ended too soon")
        yield {"x": -1, "total": self.total}


@pytest.fixture
def past(spark: SparkSession, tmp_path: Path) -> Any:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": pa.array(range(ROWS), pa.int64())}), tmp_path / "in" / "0.parquet")
    flow = sv.Workflow("sums")
    flow.read.parquet(str(tmp_path / "in"), name="n").apply(Sum(str(tmp_path / "seen")), name="A").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    with sv.open(run.recording, spark=spark) as opened:
        yield opened


@pytest.mark.parametrize("asked", ["total > 4000", lambda state: state["total"] > 4000])
def test_the_search_ends_at_the_tuple(past: sv.Past, tmp_path: Path, asked: Any) -> None:
    seen = tmp_path / "seen"
    seen.unlink()
    moment = past.first("A", asked)
    assert moment.last.row["x"] == 89
    assert moment.state("A")["total"] == sum(range(90))
    again = [int(x) for x in seen.read_text().split()]
    search = again[: again.index(0, 1)] if 0 in again[1:] else again
    assert search == list(range(90))


def test_what_holds_only_at_the_end_is_found_there(past: sv.Past) -> None:
    moment = past.first("A", f"total == {sum(range(ROWS))} and row is None")
    assert moment.state("A")["total"] == sum(range(ROWS))


def test_what_never_holds_is_not_found(past: sv.Past) -> None:
    assert past.first("A", "total < 0") is None


class Batches(sv.Operator):
    """Adds up batch by batch."""

    output = "x bigint"
    total = sv.ValueState(0)

    def process_batch(self, batch: pa.RecordBatch, port: int = 0) -> Any:
        self.total += sum(batch.column("x").to_pylist())
        yield batch


def test_batch_forms_are_searched_row_by_row(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": pa.array(range(ROWS), pa.int64())}), tmp_path / "in" / "0.parquet")
    flow = sv.Workflow("batches")
    flow.read.parquet(str(tmp_path / "in"), name="n").apply(Batches(), name="A").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    with sv.open(run.recording, spark=spark) as past:
        moment = past.first("A", "total > 4000 and row['x'] > 0")
        assert moment.last.row["x"] == 89
        assert moment.state("A")["total"] == sum(range(90))
        assert past.first("A", "total < 0") is None
