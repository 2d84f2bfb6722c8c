"""Samples with a seed are the rows that plain Spark draws, however the run is cut into epochs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv
from tests.choice import by_default
from tests.conftest import ALL_SIZES
from tests.oracle.support import write_files

import samovar as sv
from samovar.errors import WorkflowError


class Same(sv.Operator):
    output = "*"

    def process(self, row: Any, port: int = 0) -> Any:
        yield row


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    ids = range(120)
    rows = pa.table({"id": ids, "k": [i % 7 for i in ids], "name": [f"n{i}" for i in ids]})
    write_files(folder / "parquet", rows, 2)
    (folder / "csv").mkdir()
    for i in range(2):
        csv.write_csv(rows.slice(i * 60, 60), folder / "csv" / f"part-{i}.csv")
    return folder


def sources(spark: Any, files: Path) -> dict[str, tuple[Callable[[sv.Workflow], Any], Callable[[], Any]]]:
    """Each as a Frame of a workflow, and as a plain DataFrame."""
    df = spark.range(0, 50, 1, 4).selectExpr("id", "id % 7 AS k")
    options = {"header": True, "inferSchema": True}
    return {
        "frame": (lambda flow: flow.read.frame(df), lambda: df),
        "parquet": (
            lambda flow: flow.read.parquet(str(files / "parquet")),
            lambda: spark.read.parquet(str(files / "parquet")),
        ),
        "csv": (
            lambda flow: flow.read.csv(str(files / "csv"), **options),
            lambda: spark.read.csv(str(files / "csv"), **options),
        ),
    }


DRAWS: dict[str, Callable[[Any], list[Any]]] = {
    "sample": lambda df: [df.sample(0.4, 7)],
    "behind a filter": lambda df: [
        df.filter("k <> 3").withColumn("d", df["k"] * 2).sample(fraction=0.5, seed=3)
    ],
    "with replacement": lambda df: [df.sample(True, 1.5, 11)],
    "of a sample": lambda df: [df.sample(0.8, 1).filter("id > 5").sample(0.5, 1)],
    "of a union": lambda df: [df.union(df.filter("k = 1")).sample(0.3, 5)],
    "split": lambda df: df.randomSplit([1.0, 2.0, 0.5], 24),
}


@pytest.mark.parametrize("kind", by_default(["frame", "parquet", "csv"], ["parquet"]))
def test_a_seed_draws_what_spark_draws(kind: str, spark: Any, files: Path) -> None:
    # a draw reads the files by itself: in an epoch of three files a draw ends and the next one is cut in two
    three = 3 * max(f.stat().st_size for f in (files / "parquet").iterdir())
    build, read = sources(spark, files)[kind]
    plain = read()
    for epoch_bytes in (1, None) if os.environ.get(ALL_SIZES) else (three,):
        flow = sv.Workflow("draws")
        frame = build(flow)
        expected: dict[str, Any] = {}
        for number, draw in enumerate(DRAWS.values()):
            for part, (mine, theirs) in enumerate(zip(draw(frame), draw(plain), strict=True)):
                mine.sink(f"S{number}_{part}")
                expected[f"S{number}_{part}"] = sorted(map(tuple, theirs.collect()))
        run = flow.run(spark=spark, record=False, progress=False, epoch_bytes=epoch_bytes)
        got = {n: rows_of(run, n) for n in expected}
        assert got == expected
        assert sum(map(len, got.values())) > 100


def rows_of(run: Any, sink: str) -> list[Any]:
    return sorted(tuple(row.values()) for row in run.result(sink).to_pylist())


def unseeded(flow: sv.Workflow, files: Path) -> Any:
    rows = flow.read.parquet(str(files / "parquet"), name="src")
    rows.groupBy("k").count().sample(0.5).sink("T")
    rows.sample(0.3).sink("S")
    return rows


@pytest.fixture(scope="module")
def recorded(spark: Any, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A recording of samples with and without a seed, with an epoch a file."""
    flow = sv.Workflow("kept")
    few = unseeded(flow, files).filter("k < 6", name="few")
    few.sample(0.5, 3, name="drawn").apply(Same(), name="P").sink("kept")
    return flow.run(spark=spark, record=tmp_path_factory.mktemp("runs"), progress=False, epoch_bytes=1)


def test_what_was_drawn_is_kept_and_travelled_in(recorded: Any, spark: Any, files: Path) -> None:
    plain = spark.read.parquet(str(files / "parquet")).filter("k < 6").sample(0.5, 3)
    ids = [row["id"] for row in recorded.result("kept").to_pylist()]
    assert sorted(ids) == sorted(r[0] for r in plain.collect())
    past = sv.open(recorded.recording, spark=spark)
    assert {"src", "few", "drawn"} <= past.workflow.graph().ops.keys()
    assert past.jump("P", tuples=5).last.row["id"] == ids[4]


@pytest.mark.parametrize(
    ("build", "behind"),
    [
        (lambda f: f.groupBy("k").count().sample(0.5, 3), "aggregate"),
        (lambda f: f.join(f.select("k").distinct(), on="k").sample(0.5, 3), "join"),
        (lambda f: f.apply(Same(), name="P").randomSplit([0.5, 0.5], 3)[0], "P"),
    ],
)
def test_elsewhere_a_seed_is_refused(build: Any, behind: str, spark: Any, files: Path) -> None:
    flow = sv.Workflow("refused")
    build(flow.read.parquet(str(files / "parquet"))).sink("S")
    with pytest.raises(
        WorkflowError, match=f"(?s)sample with a seed behind a source.*{behind}.*leave the seed out"
    ):
        flow.run(spark=spark, record=False, progress=False)


def test_without_a_seed_rows_are_the_same_for_any_length_of_epochs(
    recorded: Any, spark: Any, files: Path
) -> None:
    flow = sv.Workflow("unseeded")
    unseeded(flow, files)
    at_once = flow.run(spark=spark, record=False, progress=False)
    assert (recorded.progress.epoch > 1, at_once.progress.epoch) == (True, 1)
    found = [[rows_of(run, sink) for sink in ("S", "T")] for run in (recorded, at_once)]
    assert found[0] == found[1]
    assert 15 < len(found[0][0]) < 60
