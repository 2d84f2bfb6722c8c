"""Files that epochs leave: what is written beside the rows, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from samovar.runtime.parquet_files import rows_in, writer_into


def test_only_files_with_rows_are_left(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    writer_into(folder, spark.range(0, 10, 1, 2).write).parquet(str(folder))
    assert [path.suffix for path in folder.iterdir()] == [".parquet", ".parquet"]
    assert rows_in([folder]) == 10


def test_the_users_own_writes_are_as_they_were(spark: Any, tmp_path: Path) -> None:
    writer_into(tmp_path / "ours", spark.range(3).write).parquet(str(tmp_path / "ours"))
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / "own"))
    assert (tmp_path / "own" / "_SUCCESS").exists()
    assert any(path.suffix == ".crc" for path in (tmp_path / "own").iterdir())


def test_a_write_that_fails_leaves_no_rows(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    failing = spark.range(0, 10, 1, 2).selectExpr("raise_error('no') AS x")
    with pytest.raises(PySparkException):
        writer_into(folder, failing.write).parquet(str(folder))
    assert list(folder.rglob("*.parquet")) == []
