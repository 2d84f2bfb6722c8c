"""Rows of a window read by the driver against the same rows read by Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv
from samovar.positions import Window, pack
from samovar.replay.trace import leaf_rows, past_epoch
from samovar.replay.trace.past_epoch import WindowView

ROWS = 50
WINDOWS = [(None, None), (None, (0, 7)), ((0, 30), (0, 31)), ((0, 45), (1, 12)), ((1, 49), None)]
"""Where windows begin and end: a file, and a row in it."""


def table(first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    at = [datetime(1890 + n % 200, 3, 1, 12, 30, 15, n, tzinfo=UTC) for n in numbers]
    values: dict[str, Any] = {
        "n": pa.array(numbers, pa.int64()),
        "short": pa.array([None if n % 7 == 0 else n % 100 for n in numbers], pa.int16()),
        "money": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(15, 2)),
        "x": pa.array([float("nan") if n % 11 == 0 else n / 3 for n in numbers]),
        "yes": pa.array([n % 2 == 0 for n in numbers]),
        "day": pa.array([date(1500 + n, 1, 2) for n in numbers]),
        "at": pa.array(at, pa.timestamp("us", "UTC")),
        "there": pa.array([t.replace(tzinfo=None) for t in at], pa.timestamp("us")),
        "text": pa.array([None if n % 5 == 0 else f"é{n}" for n in numbers]),
        "view": pa.array([None if n % 5 == 0 else f"v{n}" for n in numbers], pa.string_view()),
        "large": pa.array([f"ü{n}" for n in numbers], pa.large_string()),
        "raw": pa.array([bytes([n % 256, 0]) for n in numbers]),
        "bytes": pa.array([bytes([0, n % 256]) for n in numbers], pa.binary_view()),
        "list": pa.array([list(range(n % 3)) for n in numbers], pa.list_(pa.int32())),
        "both": pa.array([{"a": n, "b": [str(n)]} for n in numbers]),
        "map": pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
    }
    return pa.table(values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number in range(2):
        pq.write_table(
            table(number * ROWS, ROWS),
            tmp_path / "in" / f"{number}.parquet",
            row_group_size=20,
            version="2.6",
        )
    return tmp_path


def opened(spark: SparkSession, folder: Path, rows: Any) -> sv.Past:
    flow = sv.Workflow("excerpts")
    rows(flow.read).filter("n % 2 = 0", name="even").sink("S")
    run = flow.run(spark=spark, record=folder / "runs", progress=False)
    return sv.open(run.recording, spark=spark)


def place(at: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if at is None else (0, pack(*at))


def rows_of(past: sv.Past, window: Window, name: str) -> list[str]:
    tracer, segment = past._session.tracer, past._session.segments[0]
    epoch = tracer.windowed(segment, window, WindowView(near=True))
    with tracer.tagged("test", epoch):
        found = epoch.frames.stream(name, segment.level).toArrow()
    return [repr(row) for row in found.sort_by("n").to_pylist(maps_as_pydicts="strict")]


def test_rows_of_every_type_are_those_that_spark_reads(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(spark, folder, lambda read: read.parquet(str(folder / "in"), name="rows")) as past:
        source = past._session.tracer.sources["rows"]
        windows = [Window(place(low), place(high)) for low, high in WINDOWS]
        assert all(leaf_rows.excerpt(spark, source, w, range(2)) is not None for w in windows)
        read = {(w, name): rows_of(past, w, name) for w in windows for name in ("rows", "even")}
        assert [len(read[w, "rows"]) for w in windows] == [100, 7, 1, 17, 1]
        monkeypatch.setattr(past_epoch, "excerpt", lambda *_: None)
        for (window, name), rows in read.items():
            assert rows == rows_of(past, window, name)


def test_what_spark_reads_in_its_own_way_is_left_to_spark(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = opened(
        spark,
        folder,
        lambda read: read.schema("n bigint, short bigint").parquet(str(folder / "in"), name="rows"),
    )
    few = Window(place((0, 3)), place((0, 9)))
    with given as past:
        tracer = past._session.tracer
        assert leaf_rows.excerpt(spark, tracer.sources["rows"], few, range(2)) is None
        assert len(rows_of(past, few, "rows")) == 6
        assert past.jump("even", tuples=80).last.row["n"] == 79
    old = table(0, ROWS).drop_columns(["at"])
    old = old.append_column("at", pa.array([datetime(2020, 1, 1)] * ROWS, pa.timestamp("ns")))
    pq.write_table(old, folder / "in" / "0.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(old, folder / "in" / "1.parquet", use_deprecated_int96_timestamps=True)
    with opened(spark, folder, lambda read: read.parquet(str(folder / "in"), name="rows")) as past:
        source = past._session.tracer.sources["rows"]
        assert leaf_rows.excerpt(spark, source, few, range(2)) is None
        assert len(rows_of(past, few, "rows")) == 6
        monkeypatch.setattr(leaf_rows, "MOST", 5)
        assert leaf_rows._ranges(source, few, range(2)) is None
