"""Runs whose epochs begin and end inside Parquet files: results, time travel, forks and resuming at the cuts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.oracle.support import assert_same, write_files

import samovar as sv
from samovar.errors import ExpressionFailed, OperatorFailed, SourceChanged
from samovar.record.log import FORMAT, WHOLE_FILES
from samovar.replay.trace import leaf_rows
from samovar.runtime.sources import unit_list

GRAIN = 4
FILES = (10, 3, 7)
ROWS = sum(FILES)
UNITS = 3 + 1 + 2


@pytest.fixture(autouse=True, scope="module")
def small_grain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_list, "SMALLEST_GRAIN", GRAIN)
        yield


class Sum(sv.Operator):
    """The running sum of n, times a weight."""

    output = "n bigint, total bigint"
    total: Any = sv.ValueState(0)

    def __init__(self, weight: int = 1) -> None:
        self.weight = weight

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.total += self.weight * row["n"]
        yield {"n": row["n"], "total": self.total}


def totals(cut: int = ROWS, weight: int = 1) -> list[dict[str, int]]:
    """The rows of a run that has another weight from a row on."""
    total, rows = 0, []
    for n in range(ROWS):
        total += n * (1 if n < cut else weight)
        rows.append({"n": n, "total": total})
    return rows


def flow_over(source: str) -> sv.Workflow:
    flow = sv.Workflow("sums")
    rows = flow.read.parquet(source, name="rows")
    rows.apply(Sum(), name="sum").sink("S")
    rows.filter("n % 3 = 1", name="thirds").groupBy().agg("sum(n) AS s", "count(*) AS c", name="all").sink(
        "A"
    )
    return flow


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = pa.table({"n": range(ROWS), "noise": [str(n) * 20 for n in range(ROWS)]})
    return write_files(tmp_path_factory.mktemp("ranges") / "in", table, FILES)


@pytest.fixture(scope="module")
def run(spark: SparkSession, source: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run of which each epoch is one unit."""
    folder = tmp_path_factory.mktemp("runs")
    return flow_over(source).run(spark=spark, record=folder, progress=False, epoch_bytes=1)


@pytest.fixture(scope="module")
def past(spark: SparkSession, run: Any) -> Iterator[sv.Past]:
    with sv.open(run.recording, spark=spark) as past:
        yield past


def test_an_epoch_is_as_small_as_a_unit_and_results_are_those_of_spark(
    run: Any, past: sv.Past, source: str, spark: SparkSession
) -> None:
    assert [epoch.units for epoch in past.history.epochs if epoch.units] == [
        {"rows": (n, n + 1)} for n in range(UNITS)
    ]
    assert [epoch.counters["rows"].given for epoch in past.history.epochs if epoch.units] == [
        4,
        4,
        2,
        3,
        4,
        3,
    ]
    assert run.result("S").to_pylist() == totals()
    plain = spark.read.parquet(source).filter("n % 3 = 1").selectExpr("sum(n) AS s", "count(*) AS c")
    assert_same(plain, run.result("A"))


@pytest.mark.parametrize("epochs", [2, 3])
def test_epochs_over_the_end_of_a_file_have_each_row_once(
    epochs: int, source: str, spark: SparkSession, tmp_path: Path
) -> None:
    size = sum(file.stat().st_size for file in Path(source).iterdir()) // epochs
    run = flow_over(source).run(spark=spark, record=tmp_path, progress=False, epoch_bytes=size)
    assert run.result("S").to_pylist() == totals()
    assert run.result("A").to_pylist() == [{"s": sum(range(1, ROWS, 3)), "c": len(range(1, ROWS, 3))}]


def test_a_recording_with_cut_files_needs_a_reader_that_knows_them(
    run: Any, source: str, spark: SparkSession, tmp_path: Path
) -> None:
    def reader(recording: Any) -> int:
        first = Path(recording, "log.jsonl").read_text().splitlines()[0]
        return int(json.loads(first[9:])["reader"])

    assert reader(run.recording) == FORMAT
    listed = json.loads(Path(run.recording, "sources.json").read_text())["rows"]
    assert (len(listed["units"]), listed["grain"]) == (len(FILES), GRAIN)
    native = sv.Workflow("native")
    native.read.parquet(source, name="rows").filter("n > 3").sink("S")
    whole = native.run(spark=spark, record=tmp_path, progress=False, epoch_bytes=1)
    assert reader(whole.recording) == WHOLE_FILES
    with sv.open(whole.recording) as past:
        assert [epoch.units for epoch in past.history.epochs] == [
            {"rows": (n, n + 1)} for n in range(len(FILES))
        ]


@pytest.mark.parametrize("spark_reads", [False, True])
def test_jumps_and_steps_cross_the_cuts(
    spark_reads: bool, past: sv.Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spark_reads:
        monkeypatch.setattr(leaf_rows, "MOST", 0)
    wanted = [0, *(row["total"] for row in totals())]
    for tuples in (1, 4, 5, 10, 13, 17, ROWS):
        moment = past.jump("sum", tuples=tuples)
        assert moment.state("sum")["total"] == wanted[tuples]
        if tuples < ROWS:
            assert moment.step_over("sum").state("sum")["total"] == wanted[tuples + 1]
        assert moment.step_back().state("sum")["total"] <= wanted[tuples]


@pytest.mark.parametrize("size", [1, None])
def test_a_fork_goes_on_from_any_tuple_and_can_be_forked(
    size: int | None, run: Any, past: sv.Past, source: str, spark: SparkSession, tmp_path: Path
) -> None:
    if size is None:
        run = flow_over(source).run(spark=spark, record=tmp_path / "runs", progress=False)
        past = sv.open(run.recording, spark=spark)
    fork = past.jump("sum", tuples=6).fork({"sum": Sum(weight=100)}, record=tmp_path)
    assert fork.result("S").to_pylist() == totals(6, 100)
    assert fork.result("A").to_pylist() == run.result("A").to_pylist()
    sources = json.loads(Path(fork.recording, "sources.json").read_text())["rows"]
    assert (
        len(sources["units"]) == len(FILES) + 3
    )  # what is before the unit, its two parts, and what is behind
    with sv.open(fork.recording, spark=spark) as within:
        for tuples in (3, 6, 7, 9, 12, ROWS):
            assert (
                within.jump("sum", tuples=tuples).state("sum")["total"] == totals(6, 100)[tuples - 1]["total"]
            )
        again = within.jump("sum", tuples=9).fork({"sum": Sum(weight=1)}, record=tmp_path)
        rows = totals(6, 100)[:9]
        rows += [{"n": n, "total": rows[-1]["total"] + sum(range(9, n + 1))} for n in range(9, ROWS)]
        assert again.result("S").to_pylist() == rows
        assert again.result("A").to_pylist() == run.result("A").to_pylist()
    with sv.open(again.recording, spark=spark) as within:
        assert within.jump("sum", tuples=ROWS).state("sum")["total"] == rows[-1]["total"]
    corrected = past.jump("sum", tuples=7).fork(row={"n": 0}, record=tmp_path)
    assert corrected.result("S").to_pylist()[-1]["total"] == totals()[-1]["total"] - 7
    if size is None:
        past.close()


def test_a_stopped_run_goes_on_inside_a_file(source: str, spark: SparkSession, tmp_path: Path) -> None:
    run = flow_over(source).start(spark=spark, record=tmp_path, epoch_bytes=1)
    run.on_progress(lambda _: run.stop(wait=False))
    run.wait_ended(60)
    with sv.open(run.recording) as past:
        assert len(past.history.epochs) < UNITS
        again = past.resume(spark)
        again.wait(60, progress=False)
    assert again.result("S").to_pylist() == totals()
    with sv.open(run.recording, spark=spark) as past:
        assert past.jump("sum", tuples=9).state("sum")["total"] == totals()[8]["total"]


def test_a_file_that_changes_between_its_epochs_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = write_files(tmp_path / "in", pa.table({"n": range(ROWS)}), [ROWS])
    run = flow_over(source).start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    run.on_progress(lambda _: run.stop(wait=False))
    run.wait_ended(60)
    pq.write_table(pa.table({"n": range(1, ROWS + 2)}), Path(source) / "part-000.parquet")
    with sv.open(run.recording) as past, pytest.raises(SourceChanged, match="has changed"):
        past.resume(spark)


def test_live_rows_are_cut_as_files_are(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("live")
    live = spark.range(ROWS).selectExpr("id AS n").coalesce(1)
    flow.read.frame(live, name="rows").apply(Sum(), name="sum").sink("S")
    run = flow.run(spark=spark, record=tmp_path, progress=False, epoch_bytes=1)
    assert run.result("S").to_pylist() == totals()
    with sv.open(run.recording, spark=spark) as past:
        assert len(past.history.epochs) == ROWS // GRAIN
        assert past.jump("sum", tuples=6).state("sum")["total"] == totals()[5]["total"]


def test_files_in_folders_named_by_values_are_cut(spark: SparkSession, tmp_path: Path) -> None:
    for day in (1, 2):
        rows = pa.table({"n": range(ROWS * (day - 1) // 2, ROWS * day // 2)})
        write_files(tmp_path / "in" / f"day={day}", rows, 1)
    flow = sv.Workflow("days")
    rows = flow.read.parquet(str(tmp_path / "in"), name="rows")
    rows.apply(Sum(), name="sum").sink("S")
    rows.select("n", "day").sink("D")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, epoch_bytes=1)
    assert run.result("S").to_pylist() == totals()
    assert_same(spark.read.parquet(str(tmp_path / "in")).select("n", "day"), run.result("D"))


def test_a_file_that_is_named_twice_is_read_twice(source: str, spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("twice")
    flow.read.parquet(source, source, name="rows").apply(Sum(), name="sum").sink("S")
    run = flow.run(spark=spark, record=tmp_path, progress=False)
    assert [row["n"] for row in run.result("S").to_pylist()] == [*range(ROWS), *range(ROWS)]


def test_a_build_side_is_read_whole_however_its_source_is_cut(
    source: str, spark: SparkSession, tmp_path: Path
) -> None:
    flow = sv.Workflow("self")
    rows = flow.read.parquet(source, name="rows")
    summed = rows.apply(Sum(), name="sum")
    summed.join(rows.selectExpr("n", "noise"), on="n", build="right", name="J").sink("S")
    run = flow.run(spark=spark, record=tmp_path, progress=False, epoch_bytes=1)
    assert sorted(row["n"] for row in run.result("S").to_pylist()) == list(range(ROWS))
    with sv.open(run.recording, spark=spark) as past:
        fork = past.jump("sum", tuples=6).fork({"sum": Sum(weight=100)}, record=tmp_path)
    found = sorted((row["n"], row["total"], row["noise"]) for row in fork.result("S").to_pylist())
    assert found == [(row["n"], row["total"], str(row["n"]) * 20) for row in totals(6, 100)]


class Where(sv.Operator):
    """The number of the task that a row is in."""

    output = "n bigint, task int"
    stateless = True

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        context = TaskContext.get()
        yield {"n": row["n"], "task": context.partitionId() if context is not None else -1}


def test_the_rows_of_a_part_of_a_file_go_to_all_tasks_of_a_stateless_operator_in_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = write_files(tmp_path / "in", pa.table({"n": range(ROWS)}), [ROWS])
    flow = sv.Workflow("tasks")
    flow.read.parquet(source, name="rows").apply(Where(), name="where").sink("S")
    size = Path(source, "part-000.parquet").stat().st_size * 2 * GRAIN // ROWS + 1
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, epoch_bytes=size)
    rows = run.result("S").to_pylist()
    assert [row["n"] for row in rows] == list(range(ROWS))
    assert [row["task"] for row in rows[: 2 * GRAIN]] == [0] * GRAIN + [1] * GRAIN
    with sv.open(run.recording, spark=spark) as past:
        assert past.jump("where", tuples=10).last is not None


class Refuse(Sum):
    """Sums up to a row that it refuses."""

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        if row["n"] == 9:
            raise ValueError("no nines")
        yield from super().process(row, port)


@pytest.mark.parametrize("size", [1, None])
def test_a_failure_inside_a_file_is_found_at_its_tuple(
    size: int | None, source: str, spark: SparkSession, tmp_path: Path
) -> None:
    flow = sv.Workflow("refuses")
    flow.read.parquet(source, name="rows").apply(Refuse(), name="sum").sink("S")
    with pytest.raises(OperatorFailed, match="no nines"):
        flow.run(spark=spark, record=tmp_path, progress=False, epoch_bytes=size, run_id="failed")
    with sv.open(tmp_path / "failed", spark=spark) as past:
        assert past.failure().state("sum")["total"] == totals()[8]["total"]


@pytest.mark.parametrize("size", [1, None])
def test_the_row_on_which_an_expression_fails_is_found_inside_a_file(
    size: int | None, source: str, spark: SparkSession, tmp_path: Path
) -> None:
    flow = sv.Workflow("divides")
    rows = flow.read.parquet(source, name="rows").selectExpr("n", "100 div (n - 9) AS d", name="divide")
    rows.apply(Sum(), name="sum").sink("S")
    with pytest.raises(ExpressionFailed) as caught:
        flow.run(spark=spark, record=tmp_path, progress=False, epoch_bytes=size)
    assert caught.value.row["n"] == 9
