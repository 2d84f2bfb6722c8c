"""Shorthands and sources that are no files, against what plain Spark and plain Python say."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.oracle.support import assert_same, run_flow, write_files

import samovar as sv
from samovar.errors import SamovarError, SourceError, WorkflowError

TEXTS = [
    "The Samovar is on the table",
    "a samovars' market; tea (green), 50% off!",
    "TEA: not good, really BAD",
    "very good tea",
    "  many   blanks\tand <b>tags</b> 12 ",
    "",
    "Чай с лимоном",
    "it's a path C:\\tea\\new",
    None,
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = pa.table({"n": list(range(len(TEXTS))), "text": pa.array(TEXTS, pa.string())})
    return write_files(tmp_path_factory.mktemp("texts") / "t", table, 3)


def found(rows: Any) -> list[int]:
    return sorted(rows.column("n").to_pylist())


def test_search_finds_what_python_finds(spark: SparkSession, texts: str, tmp_path: Path) -> None:
    flow = sv.Workflow("search")
    read = flow.read.parquet(texts, name="read")
    read.search("text", "SAMOVAR", name="anywhere").sink("A")
    read.search("text", ["samovar", "it's"], how="words", name="words").sink("W")
    read.search("text", [r"\d+%?", r"\\tea"], how="regex", name="regex").sink("R")
    read.search("text", ["tea", "good"], require="all", name="all").sink("B")
    read.search("text", "tea", case_sensitive=True, name="case").sink("C")
    read.search("text", ["ЧАЙ"], how="words", name="cyrillic").sink("U")
    read.search("text", "tea", invert=True, name="others").sink("O")
    run = run_flow(spark, flow, tmp_path)

    def where(meets: Any) -> list[int]:
        return [n for n, text in enumerate(TEXTS) if text is not None and meets(text)]

    assert found(run.result("A")) == where(lambda t: "samovar" in t.lower())
    assert found(run.result("W")) == where(lambda t: re.search(r"(?i)\b(samovar|it's)\b", t)) == [0, 7]
    assert found(run.result("R")) == where(lambda t: re.search(r"\d+%?|\\tea", t)) == [1, 4, 7]
    assert found(run.result("B")) == where(lambda t: "tea" in t.lower() and "good" in t.lower())
    assert found(run.result("C")) == where(lambda t: "tea" in t)
    assert found(run.result("U")) == [6]
    assert found(run.result("O")) == sorted([*where(lambda t: "tea" not in t.lower()), 8])


def test_clean_does_its_steps_in_order(spark: SparkSession, texts: str, tmp_path: Path) -> None:
    flow = sv.Workflow("clean")
    read = flow.read.parquet(texts, name="read")
    read.clean("text", ["tags", "digits", "spaces", "title", "empty_to_null"], name="tidy").sink("T")
    read.filter("n in (4)").clean("text", ["tags", "punctuation"]).selectExpr("n", "text").sink("P")
    read.withColumn("text", "concat(' ', n, '.50 ')").clean("text", "trim", as_type="decimal(6,2)").sink("D")
    run = run_flow(spark, flow, tmp_path)
    tidy = dict(zip(*run.result("T").select(["n", "text"]).to_pydict().values(), strict=True))
    assert tidy[4] == "Many Blanks And Tags"
    assert tidy[5] is None
    assert tidy[8] is None
    assert tidy[0] == "The Samovar Is On The Table"
    assert "<" not in run.result("P").column("text")[0].as_py()
    assert run.result("D").column("text").type == pa.decimal128(6, 2)
    assert [float(v) for v in run.result("D").column("text").to_pylist()] == [n + 0.5 for n in range(9)]


def test_sentiment_tells_praise_from_blame_and_heeds_negations(spark: SparkSession, tmp_path: Path) -> None:
    said = [
        "I love this wonderful teapot",
        "This is the worst, most horrible tea",
        "The parcel came on Monday",
        "not good",
        "good",
        "very good",
        "I would never recommend it",
        None,
        "don't waste your money",
    ]
    flow = sv.Workflow("mood")
    flow.values("n int, t string", list(enumerate(said)), name="v").sentiment("t", "mood", name="s").sink("S")
    rows = sorted(run_flow(spark, flow, tmp_path).result("S").to_pylist(), key=lambda r: r["n"])
    assert [r["mood_label"] for r in rows] == [
        "positive",
        "negative",
        "neutral",
        "negative",
        "positive",
        "positive",
        "negative",
        None,
        "positive",
    ]
    scores = [r["mood"] for r in rows]
    assert scores[7] is None
    assert all(-1 <= s <= 1 for s in scores if s is not None)
    assert scores[3] < 0 < scores[4] < scores[5] < scores[0]


def test_the_parts_of_a_split_share_no_row_and_have_all(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("split")
    rows = flow.generate(5_000, {"id": "id"}, name="rows")
    for i, part in enumerate(rows.randomSplit([0.1, 0.7, 0.2], seed=4, name="part")):
        part.sink(f"S{i}")
    run = run_flow(spark, flow, tmp_path)
    parts = [run.result(f"S{i}").column("id").to_pylist() for i in range(3)]
    assert sorted(n for part in parts for n in part) == list(range(5_000))
    for part, share in zip(parts, (0.1, 0.7, 0.2), strict=True):
        assert abs(len(part) / 5_000 - share) < 0.03


def test_made_up_rows_are_the_same_each_time_and_as_they_were_drawn(
    spark: SparkSession, tmp_path: Path
) -> None:
    def build(seed: int) -> sv.Workflow:
        flow = sv.Workflow("made")
        columns = {"id": "id", "even": "u", "bell": "z", "who": "element_at(array('a', 'b'), 1 + int(u * 2))"}
        flow.generate(20_000, {**columns, "twice": "even * 2"}, seed=seed, name="made").sink("S")
        return flow

    first = run_flow(spark, build(1), tmp_path / "1").result("S")
    again = run_flow(spark, build(1), tmp_path / "2").result("S")
    other = run_flow(spark, build(2), tmp_path / "3").result("S")
    assert first.equals(again)
    assert first.column("even").to_pylist() != other.column("even").to_pylist()
    even, bell = first.column("even").to_numpy(), first.column("bell").to_numpy()
    assert even.min() >= 0
    assert even.max() < 1
    assert abs(even.mean() - 0.5) < 0.01
    assert abs(bell.mean()) < 0.03
    assert abs(bell.std() - 1) < 0.03
    assert first.column("twice").to_numpy() == pytest.approx(even * 2)
    assert abs(first.column("who").to_pylist().count("a") / 20_000 - 0.5) < 0.02


def test_a_query_gives_what_sqlite_answers(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (id INTEGER, amount REAL, who TEXT, raw BLOB, odd)")
        rows = [(1, 2.5, "Ann", b"x", 1), (2, None, "Bob", None, "two"), (3, 4, None, b"", None)]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
    database.close()
    flow = sv.Workflow("query")
    asked = flow.read.sql("SELECT *, id * 2 AS twice FROM orders ORDER BY id", path, name="orders")
    asked.filter("id < 3").sink("S")
    got = run_flow(spark, flow, tmp_path / "runs").result("S")
    wanted = spark.createDataFrame(
        [(1, 2.5, "Ann", bytearray(b"x"), "1", 2), (2, None, "Bob", None, "two", 4)],
        "id bigint, amount double, who string, raw binary, odd string, twice bigint",
    )
    assert_same(wanted, got)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM order", "syntax"),
        ("SELECT * FROM missing", "(?s)no such table.*orders"),
        ("DELETE FROM orders", "not authorized"),
        ("ATTACH DATABASE '/tmp/other.db' AS o", "not authorized"),
        ("PRAGMA journal_mode", "not authorized"),
    ],
)
def test_a_query_reads_and_does_nothing_else(
    spark: SparkSession, tmp_path: Path, sql: str, message: str
) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (id INTEGER)")
    database.close()
    flow = sv.Workflow("query")
    frame = flow.read.sql(sql, path, name="orders")
    with pytest.raises(SourceError, match=message):
        _ = frame.schema


def test_mistakes_are_told_with_the_operator(spark: SparkSession) -> None:
    flow = sv.Workflow("wrong")
    rows = flow.generate(10, {"a": "id"}, name="rows")
    with pytest.raises(WorkflowError, match="one of contains"):
        rows.search("a", "x", how="contain")
    for frame, message in (
        (rows.search("b", "x", name="search"), "b"),
        (rows.clean("a", "trim", as_type="date); DROP", name="clean"), "type of Spark's"),
        (rows.randomSplit([0.0, 0.0])[0], "weights"),
        (flow.generate(10, {"u": "1"}, name="taken"), "another name"),
        (flow.generate(10, {"a": "nope + 1"}, name="unknown"), "nope"),
        (flow.read.sql("SELECT 1", name="nowhere"), "neither"),
    ):
        with pytest.raises(SamovarError, match=message):
            _ = frame.schema
