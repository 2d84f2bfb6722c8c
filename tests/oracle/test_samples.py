"""Samples with a seed are the rows that plain Spark draws, however the run is cut into epochs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.choice import by_default
from tests.oracle.support import epoch_sizes

import samovar as sv
from samovar.errors import WorkflowError


class Same(sv.Operator):
    output = "*"

    def process(self, row: Any, port: int = 0) -> Any:
        yield row


@pytest.fixture(scope="module")
def files(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    rows = spark.range(0, 120, 1, 3).selectExpr("id", "id % 7 AS k", "concat('n', id) AS name")
    rows.write.parquet(str(folder / "parquet"))
    rows.write.csv(str(folder / "csv"), header=True)
    return folder


def sources(spark: Any, files: Path) -> dict[str, tuple[Callable[[sv.Workflow], Any], Any]]:
    """Each as a Frame of a workflow, and as a plain DataFrame."""
    df = spark.range(0, 50, 1, 4).selectExpr("id", "id % 7 AS k")
    csv = {"header": True, "inferSchema": True}
    return {
        "frame": (lambda flow: flow.read.frame(df), df),
        "parquet": (
            lambda flow: flow.read.parquet(str(files / "parquet")),
            spark.read.parquet(str(files / "parquet")),
        ),
        "csv": (
            lambda flow: flow.read.csv(str(files / "csv"), **csv),
            spark.read.csv(str(files / "csv"), **csv),
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
    build, plain = sources(spark, files)[kind]
    for epoch_bytes in epoch_sizes(1, None):
        flow = sv.Workflow("draws")
        frame = build(flow)
        expected: dict[str, Any] = {}
        for number, draw in enumerate(DRAWS.values()):
            for part, (mine, theirs) in enumerate(zip(draw(frame), draw(plain), strict=True)):
                mine.sink(f"S{number}_{part}")
                expected[f"S{number}_{part}"] = sorted(map(tuple, theirs.collect()))
        run = flow.run(spark=spark, record=False, progress=False, epoch_bytes=epoch_bytes)
        got = {n: sorted(tuple(r.values()) for r in run.result(n).to_pylist()) for n in expected}
        assert got == expected
        assert sum(map(len, got.values())) > 100


def test_what_was_drawn_is_kept_and_travelled_in(spark: Any, files: Path, tmp_path: Path) -> None:
    flow = sv.Workflow("kept")
    rows = flow.read.parquet(str(files / "parquet"), name="src").filter("k < 6", name="few")
    rows.sample(0.5, 3, name="drawn").apply(Same(), name="P").sink("S")
    run = flow.run(spark=spark, record=tmp_path, progress=False, epoch_bytes=1)
    plain = spark.read.parquet(str(files / "parquet")).filter("k < 6").sample(0.5, 3)
    ids = [row["id"] for row in run.result("S").to_pylist()]
    assert sorted(ids) == sorted(r[0] for r in plain.collect())
    past = sv.open(run.recording, spark=spark)
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


def test_without_a_seed_rows_are_the_same_for_any_length_of_epochs(spark: Any, files: Path) -> None:
    found = []
    for epoch_bytes in (1, None):
        flow = sv.Workflow("unseeded")
        rows = flow.read.parquet(str(files / "parquet"))
        rows.groupBy("k").count().sample(0.5).sink("T")
        rows.sample(0.3).sink("S")
        run = flow.run(spark=spark, record=False, progress=False, epoch_bytes=epoch_bytes)
        found.append([sorted(tuple(r.values()) for r in run.result(n).to_pylist()) for n in ("S", "T")])
    assert found[0] == found[1]
    assert 15 < len(found[0][0]) < 60
