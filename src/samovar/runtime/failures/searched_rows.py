"""Rows among which a failing one is searched: parts of files, cut in halves, read by the driver when few are left."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from samovar.compile.plan import Plan

__all__ = ["FEW", "SearchedRows"]

log = logging.getLogger("samovar.failures")

FEW = 4096
"""So many rows are held by the driver in the last steps of the search, where a Spark job for each would cost more."""


@dataclass(frozen=True)
class SearchedRows:
    """Rows `start` to `stop` of files with the columns of the frame `like`, which operator `name` gave."""

    spark: SparkSession
    plan: Plan
    name: str
    like: DataFrame
    files: tuple[tuple[Path, int], ...]
    start: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.start

    def halves(self) -> tuple[SearchedRows, SearchedRows]:
        middle = (self.start + self.stop) // 2
        ends = 0
        for _, rows in self.files:  # cut between files while there are several
            ends += rows
            if self.start < ends < self.stop and abs(ends - middle) <= self.count // 4:
                middle = ends
                break
        return replace(self, stop=middle), replace(self, start=middle)

    def other(self, row: SearchedRows) -> SearchedRows:
        """Another row, if there is any: the last, or the first."""
        last = replace(self, start=self.stop - 1)
        return last if last != row else replace(self, stop=self.start + 1)

    def frame(self) -> DataFrame:
        """The rows as a frame: a few of them held by the driver, where Spark needs no job to evaluate expressions."""
        few = self._few() if self.count <= FEW else None
        return self.plan.named(self.name, few if few is not None else self._read())

    def _inside(self) -> list[tuple[Path, int, int, int]]:
        """Files that hold some of the rows: first, last and number of rows of each."""
        inside = []
        at = 0
        for path, rows in self.files:
            low, high = max(self.start - at, 0), min(self.stop - at, rows)
            if low < high:
                inside.append((path, low, high, rows))
            at += rows
        return inside

    def _few(self) -> DataFrame | None:
        inside = self._inside()
        if not inside:
            return None
        try:
            table = pa.concat_tables(pq.read_table(p).slice(low, high - low) for p, low, high, _ in inside)
            schema = StructType(
                [StructField(f"c{i}", f.dataType) for i, f in enumerate(self.like.schema.fields)]
            )
            return self.spark.createDataFrame(table, schema).toDF(*self.like.columns)
        except Exception:  # a type that Arrow and Spark see differently: read the files
            log.debug("rows could not be held by the driver", exc_info=True)
            return None

    def _read(self) -> DataFrame:
        inside = self._inside()
        if not inside:
            return self.spark.createDataFrame([], self.like.schema)
        read = self.spark.read.parquet(*(str(p) for p, _, _, _ in inside))
        name, index = F.col("_metadata.file_name"), F.col("_metadata.row_index")
        for path, low, high, rows in inside:
            if low:
                read = read.filter((name != path.name) | (index >= low))
            if high < rows:
                read = read.filter((name != path.name) | (index < high))
        return read.toDF(*self.like.columns)

    def row(self) -> dict[str, Any] | None:
        """The first of the rows."""
        rows = self._read().limit(1).collect()
        return dict(zip(self.like.columns, rows[0], strict=True)) if rows else None
