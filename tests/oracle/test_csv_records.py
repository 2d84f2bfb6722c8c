"""CSV as spreadsheets, pandas and Python's csv module write it, against plain Spark: quotes, commas, line breaks.

Files are cut into chunks of some dozen bytes and run in epochs of one chunk, so that every line break in quotes lies
at a place where a careless cut would tear its record apart.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import samovar as sv

AS_WRITTEN = {"header": True, "multiLine": True, "escape": '"'}
"""What reads CSV that follows RFC 4180; also what the workbench's `csv files` starts with."""

D1 = 'id,note,n\n1,"say ""hi"", ok",10\n2,"plain, comma",20\n3,"multi\nline",30\n4,"x",40\n'

PIECES = ["a", "b c", '"', '""', ",", "\n", "\n\n", '",', '"\n', ';"', "\\", "é", "#", "  "]
"""Cells are made of these: whatever may end a field or a record early stands beside quotes."""


def rows_of(run: Any) -> list[tuple[Any, ...]]:
    return [tuple(r.values()) for r in run.result("S").to_pylist()]


def by_samovar(
    path: Path, spark: SparkSession, folder: Path, **options: Any
) -> tuple[list[tuple[Any, ...]], int]:
    """The rows in the order in which they come, and how many were rejected."""
    flow = sv.Workflow("w")
    flow.read.csv(str(path), name="src", **options).sink("S")
    run = flow.run(spark=spark, record=folder, progress=False, epoch_bytes=1)
    return rows_of(run), sum(run.progress.rejected.values())


def by_spark(path: Path, spark: SparkSession, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in spark.read.options(**options).csv(str(path)).collect()]


def chunks_of(cache: Path) -> list[Path]:
    return sorted(p for p in cache.glob("chunks/*/*") if p.name != "units.json")


@pytest.fixture
def small_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAMOVAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SAMOVAR_LARGE_FILE", "24")
    return tmp_path / "cache"


def test_a_file_of_a_spreadsheet_loses_no_row(
    spark: SparkSession, tmp_path: Path, small_chunks: Path
) -> None:
    path = tmp_path / "d1.csv"
    path.write_text(D1)
    got, rejected = by_samovar(path, spark, tmp_path / "runs", **AS_WRITTEN, inferSchema=True)
    assert got == [(1, 'say "hi", ok', 10), (2, "plain, comma", 20), (3, "multi\nline", 30), (4, "x", 40)]
    assert rejected == 0
    assert len(chunks_of(small_chunks)) > 1, "records of several lines are cut as well"


cells = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
tables = st.lists(st.tuples(cells, cells, st.integers(0, 99)), min_size=3, max_size=8)


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=tables, writer=st.sampled_from(["csv", "pandas", "excel"]), quote_all=st.booleans())
@pytest.mark.slow
def test_random_records_are_those_of_spark_and_of_the_writer(
    spark: SparkSession,
    tmp_path: Path,
    small_chunks: Path,
    rows: list[tuple[str, str, int]],
    writer: str,
    quote_all: bool,
) -> None:
    folder = tmp_path / os.urandom(4).hex()
    folder.mkdir()
    path = folder / "in.csv"
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    if writer == "pandas":
        pd.DataFrame(rows, columns=["a", "b", "n"]).to_csv(path, index=False, quoting=quoting)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            ends = "\r\n" if writer == "excel" else "\n"
            csv.writer(file, quoting=quoting, lineterminator=ends).writerows([("a", "b", "n"), *rows])
    got, rejected = by_samovar(path, spark, folder / "runs", **AS_WRITTEN)
    assert rejected == 0
    assert got == by_spark(path, spark, **AS_WRITTEN)
    assert [tuple(v or "" for v in r) for r in got] == [(a, b, str(n)) for a, b, n in rows]


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ('a,b\n1,5" disk\n2,6" disk\n3,"x\ny"\n4,7" disk\n5,z\n', AS_WRITTEN),
        ('a,b\n1,"x" y\n2,"p\nq"\n3,"r" "s"\n4,"t\nu"\n5,v\n', AS_WRITTEN),
        ('1,"a\nb"\r\n2,"c"\r\n3,"d\ne"\r\n4,f\r\n5,g\r\n6,h\r\n', {**AS_WRITTEN, "header": False}),
        ("\n\na,b\n1,first\n2,second\n3,third\n4,fourth\n5,fifth\n", {"header": True}),
        ("#no\n#no\na,b\n1,first\n2,second\n3,third\n4,fourth\n", {"header": True, "comment": "#"}),
        ("a,b\n1,first\n2,second\n3,third\n4,fourth\n5,fifth\n", {"HEADER": True}),
        ("a,b\r1,first\r2,second\r3,third\r4,fourth\r5,fifth\r", {"header": True}),
        ("a,b\r1,\"x\r\ny\"\r2,second\r3,third\r4,fourth\r", AS_WRITTEN),
        ('a;b\n1;"x;\n""y"\n2;second\n3;"th\nird"\n4;fourth\n', {**AS_WRITTEN, "sep": ";"}),
        ("a,b\n1,'x\n''y'\n2,second\n3,'th\nird'\n4,fourth\n", {**AS_WRITTEN, "quote": "'", "escape": "'"}),
        ('a,b\n1,"x\\"\n,y"\n2,second\n3,"th\nird"\n4,fourth\n', {"header": True, "multiLine": True}),
        ('"a\nA",b\n1,first\n2,"sec\nond"\n3,third\n4,fourth\n', AS_WRITTEN),
    ],
    ids=[
        "quotes in plain fields", "text behind a closing quote", "line ends told from the first record",
        "blank lines before the header", "comments before the header", "an option in capitals", "old Mac line ends",
        "old Mac line ends and quotes", "semicolons", "single quotes", "backslashes", "a header of two lines",
    ],
)  # fmt: skip
def test_odd_files_give_the_rows_of_spark_when_they_are_large(
    spark: SparkSession, tmp_path: Path, small_chunks: Path, body: str, options: dict[str, Any]
) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(body.encode())
    assert len(body) > 24
    got, rejected = by_samovar(path, spark, tmp_path / "runs", **options)
    expected = by_spark(path, spark, **options)
    assert len(got) + rejected == len(expected)
    assert got == expected if not rejected else set(got) <= set(expected)
