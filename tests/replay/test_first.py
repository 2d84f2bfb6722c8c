"""The first moment at which something holds: the search goes no further than it must."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.choice import by_default
from tests.replay.conftest import Recordings

import samovar as sv
from samovar.errors import SamovarError
from samovar.replay import queries
from samovar.replay.trace import tracer
from samovar.runtime.epochs import checkpoint_policy

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


class Batches(sv.Operator):
    """Adds up batch by batch."""

    output = "x bigint"
    total = sv.ValueState(0)

    def process_batch(self, batch: pa.RecordBatch, port: int = 0) -> Any:
        self.total += sum(batch.column("x").to_pylist())
        yield batch


class Big(sv.Operator):
    output = "x bigint, pad string"
    stateless = True

    def process(self, row: Any, port: int = 0) -> Any:
        yield {"x": row["x"], "pad": row["pad"]}


@pytest.fixture
def past(spark: SparkSession, recordings: Recordings) -> Iterator[sv.Past]:
    def record(folder: Path) -> None:
        (folder / "in").mkdir()
        pq.write_table(pa.table({"x": pa.array(range(ROWS), pa.int64())}), folder / "in" / "0.parquet")
        (folder / "larger").mkdir()
        for i in range(3):  # Spark reads larger files first
            xs = range(i * 50, i * 50 + 50)
            table = pa.table({"x": xs, "pad": [f"{x * 7919 % 10007}" * (1 + 40 * i) for x in xs]})
            file = folder / "larger" / f"{i}.parquet"
            pq.write_table(table, file, compression="none", use_dictionary=False)
        flow = sv.Workflow("sums")
        rows = flow.read.parquet(str(folder / "in"), name="n")
        rows.apply(Sum(str(folder / "seen")), name="A").sink("S")
        rows.apply(Batches(), name="B").sink("T")
        flow.read.parquet(str(folder / "larger"), name="larger").apply(Big(), name="C").sink("U")
        flow.run(spark=spark, record=folder / "runs", progress=False)

    with sv.open(recordings.shared("first", record), spark=spark) as opened:
        yield opened


@pytest.mark.parametrize("asked", ["total > 4000", lambda state: state["total"] > 4000])
def test_the_search_ends_at_the_tuple(past: sv.Past, asked: Any) -> None:
    seen = past.path.parents[1] / "seen"
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


ROWS_ONLY = ["row['x'] > 1000", "row.get('x') < 0", "total < 0 and row['x'] > 3"]


@pytest.mark.parametrize("asked", by_default(ROWS_ONLY, ROWS_ONLY[:2]))
def test_a_row_is_not_asked_for_at_an_end(past: sv.Past, asked: str) -> None:
    assert past.first("A", asked) is None


def test_a_predicate_that_fails_at_a_row_is_an_error(past: sv.Past) -> None:
    with pytest.raises(SamovarError, match="unsupported operand"):
        past.first("A", "row['x'] + None > 3")


def test_batch_forms_are_searched_row_by_row(past: sv.Past) -> None:
    moment = past.first("B", "total > 4000 and row['x'] > 0")
    assert moment.last.row["x"] == 89
    assert moment.state("B")["total"] == sum(range(90))
    assert past.first("B", "total < 0") is None


class Totals(sv.Operator):
    output = "x bigint, key string, total bigint"
    total = sv.ValueState(0)

    def process(self, row: Any, port: int = 0) -> Any:
        self.total += row["x"]
        if row["x"] % 3:
            yield {"x": row["x"], "key": row["key"], "total": self.total}


class PerKey(sv.Operator):
    output = "key string, n bigint"
    counts = sv.MapState()

    def __init__(self) -> None:
        self.history: list[int] = []

    def process(self, row: Any, port: int = 0) -> Any:
        self.counts[row["key"]] = self.counts.get(row["key"], 0) + 1
        self.history = [*self.history[-3:], row["x"]]
        yield {"key": row["key"], "n": self.counts[row["key"]]}


def test_pieces_between_marks_are_searched_in_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_policy, "EVERY", ROWS // 2)
    monkeypatch.setattr(tracer, "PIECE", 0.0)
    (tmp_path / "in").mkdir()
    for i in range(2):
        xs = range(i * ROWS // 2, (i + 1) * ROWS // 2)
        table = pa.table({"x": xs, "key": [f"k{x % 5}" for x in xs]})
        pq.write_table(table, tmp_path / "in" / f"{i}.parquet")
    flow = sv.Workflow("pieces")
    rows = flow.read.parquet(str(tmp_path / "in"), name="n").apply(Totals(), name="T")
    rows.filter("x % 2 = 1", name="odd").apply(PerKey(), name="K", by="key").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, marks="every", key_partitions=2)
    with sv.open(run.recording, spark=spark) as past:
        session = past._session
        pieces = session.tracer.pieces(session.segments[0])
        assert len(pieces) == 3
        assert pieces[0].low is None
        assert pieces[-1].high is None
        edge = ROWS // 3
        for x in (edge - 1, edge):
            moment = past.first("T", f"total >= {sum(range(x + 1))}")
            assert moment.last.row["x"] == x
            assert moment.state("T")["total"] == sum(range(x + 1))
        assert past.first("T", "total < 0") is None
        taken = [x for x in range(ROWS) if x % 3 and x % 2 and x % 5 == 2]
        moment = past.first("K", f"counts.get('k2', 0) == {len(taken)} and row['key'] == 'k2'")
        assert moment.last.row["x"] == taken[-1] > ROWS * 2 // 3  # in the last piece
        asked = past.first("K", lambda state: 307 in state["history"])
        assert asked.last.row["x"] == 307


def test_nothing_is_searched_behind_a_piece_that_has_the_answer() -> None:
    under_way, nothing, answer, error = (Future[Any]() for _ in range(4))
    nothing.set_result(None)
    answer.set_result((0, 7))
    error.set_exception(ValueError("the question"))
    assert [queries._settled(f) for f in (under_way, nothing, answer, error)] == [False, False, True, True]


def test_the_first_tuple_of_a_stateless_operator_is_the_first_of_all(past: sv.Past) -> None:
    for x in (30, 120):
        assert past.first("C", f"row['x'] >= {x}").last.row["x"] == x
