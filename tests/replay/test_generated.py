"""Time travel before and behind generators: tuples of one input tuple, told apart by position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv
from samovar.replay.state.windows import Windows
from samovar.replay.trace.leaves import Leaves


class Total(sv.Operator):
    output = "n bigint"
    total = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        self.total += row["n"]  # type: ignore[operator, assignment]
        yield {"n": row["n"]}


COUNTS = (3, 0, 6, 2)
COPIES = [n for n in COUNTS for _ in range(n)]


def recorded(spark: SparkSession, folder: Path, *, text: bool) -> Any:
    """Python operators before and behind a generator, and an aggregate behind both."""
    flow = sv.Workflow("copies")
    if text:
        (folder / "in.csv").write_text("\n".join(["n", *map(str, COUNTS)]))
        source = flow.read.schema("n bigint").option("header", True).csv(str(folder / "in.csv"), name="in")
    else:
        pq.write_table(pa.table({"n": pa.array(COUNTS, pa.int64())}), folder / "in.parquet")
        source = flow.read.parquet(str(folder / "in.parquet"), name="in")
    copies = source.selectExpr("explode(array_repeat(n, int(n))) AS n", name="copies")
    copies.apply(Total(), name="behind").sink("S")
    again = source.apply(Total(), name="before").selectExpr(
        "explode(array_repeat(n, int(n))) AS n", name="more"
    )
    again.filter("n > 2", name="large").groupBy("n").agg("count(*) AS c", name="groups").sink("G")
    return flow.run(spark=spark, record=folder / "runs", progress=False)


@pytest.mark.parametrize("text", [False, True], ids=["parquet", "csv"])
def test_a_jump_finds_each_of_the_tuples_that_one_row_gave(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bool
) -> None:
    monkeypatch.setattr(Windows, "size", 2)  # fewer than one row gives
    monkeypatch.setattr(Windows, "margin", 1)
    monkeypatch.setattr(Leaves, "smallest", 0)
    with sv.open(recorded(spark, tmp_path, text=text).recording, spark=spark) as past:
        for count in (5, len(COPIES)):
            moment = past.jump("behind", tuples=count)
            assert moment.counters["behind"].taken == (count,)
            assert moment.state("behind")["total"] == sum(COPIES[:count])
        moment = past.jump("before", tuples=3)
        assert moment.state("groups")["groups"] == {3: {"c": 3, "rows": 3}, 6: {"c": 6, "rows": 6}}
        start = past.jump("behind", tuples=4)
        for count in (3, 2, 1, 0):  # through several windows
            start = start.step_back()
            assert start.state("behind")["total"] == sum(COPIES[:count])
        with pytest.raises(sv.errors.TimeTravelError, match="beginning of the run"):
            start.step_back()


def test_text_beside_parquet_is_told_apart_row_by_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions of text have more parts than those of Parquet: windows of both must not end inside of a block."""
    monkeypatch.setattr(Windows, "size", 2)
    monkeypatch.setattr(Windows, "margin", 1)
    (tmp_path / "a.csv").write_text("\n".join(["n", *map(str, range(7))]))
    pq.write_table(pa.table({"n": pa.array(range(10, 13), pa.int64())}), tmp_path / "b.parquet")
    flow = sv.Workflow("two sources")
    a = flow.read.schema("n bigint").option("header", True).csv(str(tmp_path / "a.csv"), name="a")
    b = flow.read.parquet(str(tmp_path / "b.parquet"), name="b")
    a.filter("n <> 1", name="most").union(b, name="both").apply(Total(), name="total").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    taken = [0, 2, 3, 4, 5, 6, 10, 11, 12]
    with sv.open(run.recording, spark=spark) as past:
        for count in (1, 4, 6, 8, 9):
            moment = past.jump("total", tuples=count)
            assert moment.state("total")["total"] == sum(taken[:count])
        moment = past.jump("most", tuples=4)
        assert moment.pending("most")[0].row == {"n": 4}
        assert len(moment._traced.steps("most")) < 7  # the window is not the whole block
        assert moment.step_over("most").state("total")["total"] == sum(taken[:4])


def test_a_tuple_that_came_before_its_turn_waits(spark: SparkSession, tmp_path: Path) -> None:
    """Tuples straight from the source are there; the operator takes them in the order of the run, though."""

    class Both(Total):
        def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
            self.total += row["n"] * 10**port  # type: ignore[operator, assignment]
            yield {"n": row["n"]}

    pq.write_table(pa.table({"n": pa.array([1, 2, 3], pa.int64())}), tmp_path / "in.parquet")
    flow = sv.Workflow("turns")
    source = flow.read.parquet(str(tmp_path / "in.parquet"), name="in")
    same = source.withColumn("n", "n", name="same")
    source.apply(Both(), same, name="both").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    with sv.open(run.recording, spark=spark) as past:
        moment = past.jump("same", tuples=1).step_into("both")  # the second tuple of the source
        assert moment.state("both")["total"] == 1 + 10 + 2
        assert [t.row["n"] for t in moment.pending("both")] == [3]
        with pytest.raises(
            sv.errors.TimeTravelError, match="comes from 'same' and is not there yet"
        ) as raised:
            moment.step_into("both")
        assert "wait at: same, S" in str(raised.value.hint)
        assert "not there yet" in (moment.why_not("both") or "")
        assert moment.step_into("same").step_into("both").state("both")["total"] == 1 + 10 + 2 + 20
