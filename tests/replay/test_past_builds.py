"""Build sides of joins in the past: made once for all windows of a level, small ones computed once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import samovar as sv
from samovar.replay.trace import past_builds
from samovar.replay.trace.past_builds import PastBuilds


@pytest.mark.parametrize(("rows", "stays"), [(10, True), (past_builds.MOST // 8 + 1, False), (None, False)])
def test_a_small_build_side_is_computed_once(spark: SparkSession, rows: int | None, stays: bool) -> None:
    kept: list[DataFrame] = []

    def keep(df: DataFrame) -> DataFrame:
        kept.append(df)
        return df

    made: list[DataFrame] = []

    def make() -> DataFrame:
        made.append(spark.range(3))
        return made[-1]

    builds = PastBuilds(keep, {"build": rows}.get)
    assert builds.side("join", "build", make) is builds.side("join", "build", make)
    assert len(made) == 1
    assert bool(kept) == stays


def test_epochs_of_a_level_share_their_build_sides(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, sizes in {"few": (8,), "many": (20, 20, 20)}.items():
        (tmp_path / name).mkdir()
        for number, rows in enumerate(sizes):
            keys = pa.array([n % 12 for n in range(rows)], pa.int64())
            values = pa.array([number * 100 + n for n in range(rows)], pa.int64())
            pq.write_table(pa.table({"k": keys, name: values}), tmp_path / name / f"{number}.parquet")
    flow = sv.Workflow("joined")
    few, many = (flow.read.parquet(str(tmp_path / name), name=name) for name in ("few", "many"))
    joined = many.join(few.filter("few <> 3", name="chosen"), on="k", name="joined")
    joined.groupBy("k").agg("count(1) AS n", name="groups").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, epoch_bytes=1)
    expected = [n for part in range(3) for n in range(part * 100, part * 100 + 20)]
    met = [n for n in expected if n % 100 % 12 in (0, 1, 2, 4, 5, 6, 7)]
    with sv.open(run.recording, spark=spark) as past:
        assert len({segment.epoch for segment in past._session.segments if segment.level == 0}) == 3
        for tuples in (45, 7, 60, 21):
            moment = past.jump("joined", tuples=tuples)
            assert moment.last is not None
            assert moment.last.row["many"] == expected[tuples - 1]
            given = sum(n <= expected[tuples - 1] for n in met)
            assert moment.state("joined") == {"taken": tuples + 7, "given": given}  # with the build side
        tracer = past._session.tracer
        assert len(tracer._builds) == 1
        assert len(tracer._held) == 1
