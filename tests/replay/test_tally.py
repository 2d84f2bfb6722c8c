"""Counts of tuples by chunk: what the files tell against what a job counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv
from samovar.positions import pack
from samovar.replay.trace.leaf_counts import LAST, _Counted
from samovar.replay.trace.leaves import Leaves


def test_what_files_tell_is_what_a_job_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leaves, "smallest", 3)
    for name, sizes in {"a": (21, 8, 1), "b": (13,)}.items():
        (tmp_path / name).mkdir()
        for number, rows in enumerate(sizes):
            table = pa.table({"n": pa.array(range(rows), pa.int64())})
            pq.write_table(table, tmp_path / name / f"{number}.parquet")
    flow = sv.Workflow("chunks")
    a, b = (flow.read.parquet(str(tmp_path / name), name=name) for name in "ab")
    doubled = a.withColumn("n", "n * 2", name="doubled")
    doubled.union(b, name="both").union(a, name="again").filter("n % 3 = 0", name="thirds").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    with sv.open(run.recording, spark=spark) as past:
        tally, segment = past._session.tracer.tally, past._session.segments[0]
        told = {n: tally._from_files(segment, n) for n in ("a", "b", "doubled", "both", "again", "thirds")}
        assert {n for n, known in told.items() if known} == {"a", "b", "doubled", "both", "again"}
        for name, known in told.items():
            tally._known[segment, name] = _Counted()
            tally._count(segment, [name])
            counted = tally._known[segment, name]
            if known is not None:
                assert (known.chunks, known.sums) == (counted.chunks, counted.sums)
        assert {n: known.sums[-1] for n, known in told.items() if known} == {
            "a": 30,
            "b": 13,
            "doubled": 30,
            "both": 43,
            "again": 73,
        }
        assert len(told["a"].chunks) == 5


def numbers(folder: Path, sizes: tuple[int, ...]) -> None:
    """Files of numbers that go on from file to file."""
    folder.mkdir()
    first = 0
    for number, rows in enumerate(sizes):
        table = pa.table({"n": pa.array(range(first, first + rows), pa.int64())})
        pq.write_table(table, folder / f"{number}.parquet")
        first += rows


@pytest.mark.parametrize("logged", [True, False])
def test_a_place_is_counted_from_the_nearer_end_of_its_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: bool
) -> None:
    monkeypatch.setattr(Leaves, "smallest", 2)
    numbers(tmp_path / "in", (30, 30, 30, 30))
    flow = sv.Workflow("near")
    thirds = flow.read.parquet(str(tmp_path / "in"), name="in").filter("n % 3 = 0", name="thirds")
    thirds.filter("n % 2 = 0", name="sixths").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    with sv.open(run.recording, spark=spark) as past:
        tracer = past._session.tracer
        tally, segment = tracer.tally, past._session.segments[0]
        monkeypatch.setattr(tally, "_total", tracer.given_in if logged else lambda *_: None)
        assert tracer.given_in(segment, "thirds") == 40
        stretches: list[tuple[object, object]] = []
        count = tally._count

        def counting(segment, names, low, high):  # type: ignore[no-untyped-def]
            stretches.append((low, high))
            count(segment, names, low, high)

        monkeypatch.setattr(tally, "_count", counting)
        bits = tally._bits(segment)
        unit = [(0, pack(n, 0) >> bits) for n in range(5)]
        # the last file, then the first one, then what is between
        assert tally.before(segment, ["thirds"], (0, pack(3, 8))) == {"thirds": 33}
        assert stretches == [(unit[3], LAST) if logged else ((), unit[4])]
        assert tally.before(segment, ["thirds"], (0, pack(0, 12))) == {"thirds": 4}
        assert tally.before(segment, ["thirds"], (0, pack(3, 0))) == {"thirds": 30}
        assert stretches[1:] == ([((), unit[1])] if logged else [])
        assert tally.before(segment, ["thirds"], (0, pack(1, 4))) == {"thirds": 12}
        assert stretches[2:] == ([(unit[1], unit[2])] if logged else [])
        every = [
            tally.before(segment, ["thirds", "sixths"], (0, pack(n // 30, n % 30 // 4 * 4)))
            for n in range(120)
        ]
        starts = [n // 30 * 30 + n % 30 // 4 * 4 for n in range(120)]
        assert every == [{"thirds": -(-at // 3), "sixths": -(-at // 6)} for at in starts]


def test_the_nth_tuple_is_found_wherever_a_filter_left_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leaves, "smallest", 2)
    numbers(tmp_path / "in", (30, 30, 30, 30))
    conditions = {"even": "n % 2 = 0", "early": "n < 9", "late": "n > 110", "ends": "n < 3 OR n > 117"}
    flow = sv.Workflow("places")
    rows = flow.read.parquet(str(tmp_path / "in"), name="in")
    for name, condition in conditions.items():
        rows.filter(condition, name=name).filter("n >= 0", name=f"{name} kept").sink(f"S {name}")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    for ranks in (sorted, lambda places: sorted(places, reverse=True)):
        with sv.open(run.recording, spark=spark) as past:
            for name in conditions:
                passed = [row["n"] for row in past.result(f"S {name}").sort_by("n").to_pylist()]
                for rank in ranks({1, 2, len(passed) // 2, len(passed)} - {0}):
                    moment = past.jump(f"{name} kept", tuples=rank)
                    assert moment.last is not None
                    assert moment.last.row["n"] == passed[rank - 1]
                    assert moment.state(name)["given"] == rank
                    assert moment.counters[name].taken == (passed[rank - 1] + 1,)


def test_the_log_is_not_asked_what_came_before_a_limit(spark: SparkSession, tmp_path: Path) -> None:
    numbers(tmp_path / "in", (30, 30))
    flow = sv.Workflow("limited")
    rows = flow.read.parquet(str(tmp_path / "in"), name="in")
    rows.filter("n % 2 = 0", name="even").limit(3, name="three").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    with sv.open(run.recording, spark=spark) as past:
        assert past._session.tracer.given_in(past._session.segments[0], "even") is None
        moment = past.jump("three", tuples=2)
        assert moment.last is not None
        assert moment.last.row["n"] == 2
