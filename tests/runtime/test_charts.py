"""The points of charts, against Spark and against numbers computed by hand."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv
from samovar.errors import RunError, SchemaProblem, UnknownName
from samovar.graph import operators as ops
from samovar.runtime.chart_points import POINTS, drawn


def files(folder: Path, table: pa.Table, cuts: int = 3) -> list[Path]:
    step = max(1, -(-table.num_rows // cuts))
    made = []
    for i in range(cuts):
        made.append(folder / f"{i}.parquet")
        pq.write_table(table.slice(i * step, step), made[-1])
    return made


def chart(kind: Any, **fields: Any) -> ops.Chart:
    return ops.Chart(name="c", inputs=("v",), chart=kind, **fields)


TABLE = pa.table(
    {
        "who": ["Ann", "Bob", "Ann", None, "Cem", "Bob", "Ann"],
        "day": [dt.date(2026, 1, d) for d in (3, 1, 1, 2, 3, 2, 2)],
        "n": [1, 2, 3, 4, 5, None, 7],
        "cost": [
            Decimal("1.50"),
            Decimal("2.00"),
            None,
            Decimal("4.00"),
            Decimal("1.00"),
            Decimal("3.00"),
            Decimal("0.50"),
        ],
    }
)


def test_bars_add_up_groups_over_files(tmp_path: Path) -> None:
    made = drawn(chart("bar", x="who", y="n"), files(tmp_path, TABLE))
    assert made["series"] == [
        {"name": None, "points": [["Ann", 11.0], ["Cem", 5.0], [None, 4.0], ["Bob", 2.0]]}
    ]
    assert made["rows"] == 7
    counted = drawn(chart("bar", x="who", top=2), files(tmp_path, TABLE))
    assert counted["series"][0]["points"] == [["Ann", 3.0], ["Bob", 2.0]]
    assert counted["left_out"] == 2
    mean = drawn(chart("pie", x="who", y="cost", measure="avg"), files(tmp_path, TABLE))
    assert dict(mean["series"][0]["points"])["Ann"] == 1.0


def test_lines_go_in_order_of_x_with_a_series_for_each_group(tmp_path: Path) -> None:
    made = drawn(chart("line", x="day", y="n", by="who", measure="max"), files(tmp_path, TABLE))
    assert made["kind"] == "time"
    assert made["xs"] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert {s["name"]: s["points"] for s in made["series"]}["Ann"] == [
        ["2026-01-01", 3.0],
        ["2026-01-02", 7.0],
        ["2026-01-03", 1.0],
    ]


def test_histogram_counts_every_number_once(tmp_path: Path) -> None:
    rng = random.Random(1)
    values = [rng.gauss(0, 1) for _ in range(1000)] + [None, float("nan"), float("inf")]
    made = drawn(chart("histogram", x="v", bins=7), files(tmp_path, pa.table({"v": values})))
    points = made["series"][0]["points"]
    assert len(points) == 7
    for low, high, count in points[:-1]:
        assert count == sum(low <= v < high for v in values[:1000])
    assert sum(p[2] for p in points) == 1000
    same = drawn(chart("histogram", x="v"), files(tmp_path, pa.table({"v": [3, 3, 3]})))
    assert sum(p[2] for p in same["series"][0]["points"]) == 3


def test_boxes_have_quartiles(tmp_path: Path) -> None:
    made = drawn(chart("box", x="who", y="n"), files(tmp_path, TABLE))
    assert made["series"][0]["points"][0] == ["Ann", 1.0, 2.0, 3.0, 5.0, 7.0]


def test_many_points_are_thinned(tmp_path: Path) -> None:
    table = pa.table({"x": list(range(10_000)), "y": [i * 2.0 for i in range(10_000)]})
    made = drawn(chart("scatter", x="x", y="y"), files(tmp_path, table))
    points = made["series"][0]["points"]
    assert len(points) == POINTS
    assert all(y == 2 * x for x, y in points)
    assert points[-1][0] > 9_990
    assert made["left_out"] == 8_000


def test_words_are_counted_without_the_dull_ones(tmp_path: Path) -> None:
    table = pa.table({"t": ["The tea and the samovar", "Tea, tea!", None], "w": [1.0, 2.5, 1.0]})
    assert drawn(chart("wordcloud", x="t"), files(tmp_path, table))["series"][0]["points"] == [
        ["tea", 3],
        ["samovar", 1],
    ]
    weighted = drawn(chart("wordcloud", x="t", y="w"), files(tmp_path, table))
    assert weighted["series"][0]["points"][0] == ["Tea, tea!", 2.5]


def test_tables_and_heat_maps(tmp_path: Path) -> None:
    table = drawn(chart("table", x="who", y="cost"), files(tmp_path, TABLE))
    assert table["columns"] == ["who", "cost"]
    assert table["table"][0] == ["Ann", 1.5]
    heat = drawn(chart("heatmap", x="who", by="day"), files(tmp_path, TABLE))
    assert ["Ann", "2026-01-01", 1.0] in heat["cells"]
    assert len(heat["cells"]) == 7


def test_what_is_no_number_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="Expected numbers in 'who'"):
        drawn(chart("bar", x="day", y="who"), files(tmp_path, TABLE))


def test_nothing_yet_is_an_empty_picture() -> None:
    assert drawn(chart("bar", x="a"), [])["series"] == []


def test_a_chart_of_a_run_agrees_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("charts")
    columns = {
        "who": "concat('p', int(u * 7))",
        "amount": "round(u * 100, 2)",
        "day": "date_add(DATE'2026-01-01', int(u * 5))",
    }
    made = flow.generate(6_000, columns, name="made")
    made.chart("bar", "who", "amount", by="day", measure="avg", name="bars")
    made.sink("S")
    run = flow.run(spark=spark, record=tmp_path, epoch_bytes=1, progress=False)
    got = {(s["name"], x): y for s in run.chart("bars")["series"] for x, y in s["points"]}
    frame = spark.createDataFrame(run.result("S"))
    wanted = {
        (str(r["day"]), r["who"]): r["m"]
        for r in frame.groupBy("day", "who")
        .agg({"amount": "avg"})
        .withColumnRenamed("avg(amount)", "m")
        .collect()
    }
    assert got.keys() == wanted.keys()
    assert all(got[k] == pytest.approx(wanted[k]) for k in wanted)
    past = sv.open(run.recording.path if hasattr(run.recording, "path") else run.recording)
    assert past.chart("bars") == run.chart("bars")
    with pytest.raises(UnknownName, match="a chart"):
        past.chart("S")


def test_a_chart_of_columns_that_are_not_there_is_refused_before_the_run(spark: SparkSession) -> None:
    flow = sv.Workflow("charts")
    made = flow.generate(10, {"who": "id"}, name="made")
    made.chart("bar", "whom", name="bars")
    with pytest.raises(SchemaProblem, match="Did you mean 'who'"):
        flow.schema_of("bars")
    made.chart("scatter", "who", name="points")
    with pytest.raises(SchemaProblem, match="'y'"):
        flow.schema_of("points")
