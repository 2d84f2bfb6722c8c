"""Parquet files that epochs leave: how many rows they hold, and under which names columns are stored."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql.types import StructType

__all__ = ["CHECKED", "rows_in", "stored_as"]

CHECKED = {"parquet.page.verify-checksum.enabled": "true"}
"""Read option: Spark compares each page with the checksum it wrote, so that a bit that flips later is found too."""


def rows_in(folders: Iterable[Path]) -> int:
    """Rows of Parquet files, from their footers."""
    return sum(pq.read_metadata(p).num_rows for f in folders for p in f.iterdir() if p.suffix == ".parquet")


def stored_as(schema: StructType) -> StructType:
    """The same types under the names c0, c1, ...: an operator's column names need not be unique, or valid in a file.

    Spark's own metadata stays: `window_time` takes only columns that Spark has marked as time windows.
    """
    stored = StructType()
    for i, f in enumerate(schema.fields):
        metadata = {k: v for k, v in (f.metadata or {}).items() if k.startswith("spark.")}
        stored = stored.add(f"c{i}", f.dataType, True, metadata)
    return stored
