"""Counts of tuples by chunk: what the files tell against what a job counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv
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
