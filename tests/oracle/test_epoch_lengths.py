"""What Spark fixes once a query does not depend on how a run is cut into epochs, nor on whether somebody watches."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from tests.choice import by_default
from tests.conftest import ALL_SIZES
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE

import samovar as sv
from samovar.errors import OperatorFailed

ROWS = 40
EVERY = bool(os.environ.get(ALL_SIZES))
LENGTHS: dict[str, dict[str, Any]] = {
    "one file an epoch": {"epoch_bytes": ONE_FILE, "interactive": not EVERY},
    "one epoch": {"epoch_bytes": ALL_AT_ONCE},
    **({"watched": {"interactive": True}} if EVERY else {}),
}
"""By default the run of several epochs is the watched one."""
EACH: dict[str, tuple[str, Callable[[], Any]]] = {
    "id": ("monotonically_increasing_id()", F.monotonically_increasing_id),
    "even": ("rand()", F.rand),
    "even_7": ("rand(7)", lambda: F.rand(7)),
    "normal": ("randn(7)", lambda: F.randn(7)),
    "uuid": ("uuid()", F.uuid),
    "letters": ("randstr(12)", lambda: F.randstr(F.lit(12))),
    "between": ("uniform(0, 2000000000, 3)", lambda: F.uniform(F.lit(0), F.lit(2_000_000_000), F.lit(3))),
}
"""A value of its own for each row."""
ONCE: dict[str, tuple[str, Callable[[], Any]]] = {
    "at": ("current_timestamp()", F.current_timestamp),
    "bare": ("current_timestamp", lambda: F.expr("current_timestamp")),
    "now": ("now()", F.now),
    "local": ("localtimestamp()", F.localtimestamp),
    "unix": ("unix_timestamp()", F.unix_timestamp),
    "day": ("current_date()", F.current_date),
}
"""One value for all rows of a run."""
SEEDED = ("even_7", "normal", "between")


@pytest.fixture(scope="module")
def files(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lengths")
    rows = spark.range(ROWS).selectExpr("id AS n", "array(id, id + 1, id + 2) AS a").coalesce(1)
    rows.write.option("maxRecordsPerFile", 20).parquet(str(folder / "parquet"))
    rows.select("n").write.option("maxRecordsPerFile", 20).csv(str(folder / "csv"), header=True)
    return folder


LOOKS = ["text of parquet", "text of csv", "columns of parquet", "columns of csv"]
BY_DEFAULT = ["text of csv", "columns of parquet"]
NAMED: list[Callable[[], Any]] = [
    F.current_timestamp,
    lambda: F.rand(7),
    lambda: F.expr("round(rand(3) * 10)"),
    F.monotonically_increasing_id,
]
ORDERED: list[Callable[[], Any]] = [
    lambda: F.collect_list("n"),
    lambda: F.listagg(F.col("n").cast("string")),
    lambda: F.first("n"),
    lambda: F.last("n"),
]


def look(case: str, rows: sv.Frame) -> None:
    """The rows with a column of each, and the rows behind a generator with ids of their own."""
    columns = {**EACH, **ONCE}
    if case.startswith("text"):
        drawn = rows.selectExpr("n", *(f"{text} AS {name}" for name, (text, _) in columns.items()))
    else:
        drawn = rows.withColumns({name: column() for name, (_, column) in columns.items()})
    drawn.select("n", *columns).sink(f"{case} S")
    several = rows.selectExpr("n", "explode(array(1, 2, 3)) AS e")
    drawn = several.select("n", "e", F.monotonically_increasing_id().alias("id"), F.rand(7).alias("r"))
    drawn.sink(f"{case} T")


@pytest.fixture(scope="module")
def runs(spark: Any, files: Path) -> Callable[[str], dict[str, Any]]:
    """A workflow over files of one kind with all that is looked at there, run at each length; by the kind."""

    @functools.cache
    def made(kind: str) -> dict[str, Any]:
        done = {}
        for name, length in LENGTHS.items():
            if kind == "csv" and done and not EVERY:
                break  # nothing is compared between its lengths
            flow = sv.Workflow("lengths")
            options = {"header": True, "inferSchema": True} if kind == "csv" else {}
            rows = getattr(flow.read, kind)(str(files / kind), **options)
            for case in LOOKS if EVERY else BY_DEFAULT:
                if case.endswith(kind):
                    look(case, rows)
            if kind == "parquet":
                rows.select(*(column().alias(f"c{i}") for i, column in enumerate(ORDERED))).sink("ordered")
                rows.select(*(column() for column in NAMED)).sink("named")
            done[name] = flow.run(spark=spark, record=False, progress=False, **length)
        return done

    return made


@pytest.mark.parametrize("case", by_default(LOOKS, BY_DEFAULT))
def test_looking_changes_nothing(case: str, runs: Callable[[str], dict[str, Any]]) -> None:
    found = {}
    kind = case.split(" of ")[1]
    for name, run in runs(kind).items():
        rows, several = (run.result(f"{case} {sink}").to_pylist() for sink in "ST")
        assert len(rows) == ROWS
        for column in EACH:
            assert len({row[column] for row in rows}) == ROWS, (name, column)
        for column in ONCE:
            assert len({row[column] for row in rows}) == 1, (name, column)
        assert len({row["id"] for row in several}) == len({row["r"] for row in several}) == 3 * ROWS
        ordered = sorted(rows, key=lambda row: row["n"])
        if kind == "parquet":  # Spark reads text files in an order of its own
            assert [row["id"] for row in ordered] == sorted(row["id"] for row in rows)
        found[name] = [tuple(row[c] for c in ("n", "id", *SEEDED)) for row in ordered]
    if kind == "parquet":  # the rows of text files have no numbers: draws follow how the files are split
        assert len(found) == len(LENGTHS)
        assert all(rows == found["one epoch"] for rows in found.values())


@pytest.mark.parametrize("length", LENGTHS)
def test_aggregates_that_are_selected_take_rows_in_their_order(
    length: str, runs: Callable[[str], dict[str, Any]]
) -> None:
    ordered = list(range(ROWS))
    assert [list(row.values()) for row in runs("parquet")[length].result("ordered").to_pylist()] == [
        [ordered, "".join(map(str, ordered)), 0, ROWS - 1]
    ]


def test_columns_keep_the_names_that_spark_gives_them(
    spark: Any, runs: Callable[[str], dict[str, Any]]
) -> None:
    expected = spark.range(1).select(*(column() for column in NAMED)).columns
    for run in runs("parquet").values():
        assert run.result("named").column_names == expected


class FailsOnce(sv.Operator):
    output = "*"

    def __init__(self, mended: str) -> None:
        self.mended = mended

    def process(self, row: Any, port: int = 0) -> Any:
        if row["n"] == 25 and not Path(self.mended).exists():
            raise ValueError("not mended yet")
        yield row


def test_a_resumed_run_has_the_present_and_the_draws_it_started_with(
    spark: Any, files: Path, tmp_path: Path
) -> None:
    flow = sv.Workflow("resumed")
    rows = flow.read.parquet(str(files / "parquet"))
    mended = tmp_path / "mended"
    passed = rows.select("n").apply(FailsOnce(str(mended)))
    passed.selectExpr("n", "current_timestamp() AS at").sink("S")
    passed.selectExpr("n", "rand() AS r", "monotonically_increasing_id() AS id").sink("T")
    run = flow.start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    with pytest.raises(OperatorFailed):
        run.wait(progress=False)
    past = sv.open(run.recording, spark=spark)
    before = past.result("S").to_pylist()
    assert 0 < len(before) < ROWS  # otherwise nothing of the first process could be contradicted
    mended.touch()
    again = past.resume()
    again.wait(progress=False)
    found = again.result("S").to_pylist()
    assert found[: len(before)] == before
    assert len(found) == ROWS
    assert len({row["at"] for row in found}) == 1
    drawn = again.result("T").to_pylist()
    assert len({row["r"] for row in drawn}) == len({row["id"] for row in drawn}) == ROWS
