"""Inputs that are missing, empty or damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.bad_input.support import flow_of, payments, refused

import samovar as sv
from samovar.errors import SourceError


def sunk(path: str | Path) -> sv.Workflow:
    flow, src = flow_of(str(path))
    src.filter("amount > 1", name="large").sink("S")
    return flow


def test_a_missing_path_is_answered_with_the_nearest_name(spark: SparkSession, tmp_path: Path) -> None:
    payments(tmp_path / "payments")
    error = refused(sunk(tmp_path / "paymets"), tmp_path, SourceError, spark=spark)
    assert error.operator == "src"
    assert error.hint == f"Did you mean {tmp_path / 'payments'}?"
    assert not (tmp_path / "runs").exists()


def test_a_missing_folder_on_the_way_is_answered_with_what_is_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    payments(tmp_path / "2024" / "payments")
    error = refused(sunk(tmp_path / "2042" / "payments"), tmp_path, SourceError, spark=spark)
    assert error.hint == f"Did you mean {tmp_path / '2024' / 'payments'}?"
    error = refused(sunk(tmp_path / "nothing-like-it" / "x"), tmp_path, SourceError, spark=spark)
    assert "holds 2024" in str(error.hint)


@pytest.mark.parametrize("content", [None, b""])
def test_an_empty_folder_is_refused(spark: SparkSession, tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    if content is not None:
        (folder / "0.parquet").write_bytes(content)
    error = refused(sunk(folder), tmp_path, SourceError, spark=spark)
    assert error.operator == "src"
    assert "found an empty folder" in str(error) or "1 empty file" in str(error)


def test_a_damaged_parquet_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folder = Path(payments(tmp_path / "payments"))
    (folder / "1.parquet").write_bytes(b"not a parquet file")
    error = refused(sunk(folder), tmp_path, SourceError, spark=spark)
    assert error.operator == "src"
    assert str(folder / "1.parquet") in str(error)


def test_a_parquet_file_damaged_inside_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folder = Path(payments(tmp_path / "payments"))
    body = bytearray((folder / "1.parquet").read_bytes())
    body[4 : len(body) // 4] = b"\xff" * (len(body) // 4 - 4)
    (folder / "1.parquet").write_bytes(bytes(body))
    error = refused(sunk(folder), tmp_path, SourceError, spark=spark)
    assert error.operator == "src"
    assert str(folder / "1.parquet") in str(error)


def test_a_parquet_file_of_other_types_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folder = Path(payments(tmp_path / "payments"))
    pq.write_table(pa.table({"id": ["a"], "amount": ["x"]}), folder / "2.parquet")
    error = refused(sunk(folder), tmp_path, SourceError, spark=spark)
    assert str(folder / "2.parquet") in str(error)
    assert "same columns and types" in str(error.hint)


def test_files_of_another_format_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("shop")
    flow.read.json(payments(tmp_path / "payments"), name="src").sink("S")
    assert "but no row parses" in str(refused(flow, tmp_path, SourceError, spark=spark))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folder = Path(payments(tmp_path / "payments"))
    (folder / "1.parquet").chmod(0)
    assert "no permission" in str(refused(sunk(folder), tmp_path, SourceError, spark=spark))
