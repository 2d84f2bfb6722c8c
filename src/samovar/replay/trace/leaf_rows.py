"""The leaf rows of a window, read by the driver: only the row groups of Parquet files that hold them.

Spark's reader goes through whole files to find some hundred rows by their numbers. Read here, the rows are part of the
plan: Spark evaluates filters and expressions on them while it plans, and looks for them in a join's other side without
a job before it. Rows must be exactly those of Spark's reader; where that is not certain, there is no excerpt, and Spark
reads the files: columns of other types than the files have (the user's schema), times in old formats, options of the
reader, files that are not on this machine.
"""

from __future__ import annotations

import os
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from samovar.positions import ROW_WIDTH, Window, pack, position_columns
from samovar.runtime.sources.units import Source

__all__ = ["excerpt"]

MOST = 4096
"""Rows that are read this way: they become part of Spark's plan, which must stay small."""

Range = tuple[int, int, int]
"""A unit's number, its first row, and the row behind the last."""


def excerpt(spark: SparkSession, source: Source, window: Window, start: int, stop: int) -> DataFrame | None:
    """The rows of some units of a source in a window, with positions; None: too many, or Spark must read them."""
    ranges = _ranges(source, window, start, stop)
    if ranges is None or not _readable(spark, source):
        return None
    try:
        wanted = to_arrow_schema(source.struct, timezone="UTC")
        tables = [_rows(source, wanted, *rows) for rows in ranges]
    except Exception:  # whatever is wrong with a file or a type, Spark's error is better
        return None
    if not tables or any(table is None for table in tables):
        return None
    fields = [StructField(name, LongType(), True) for name in position_columns(ROW_WIDTH)]
    return spark.createDataFrame(pa.concat_tables(tables), StructType([*source.struct.fields, *fields]))


def _ranges(source: Source, window: Window, start: int, stop: int) -> list[Range] | None:
    """The rows of each unit that lie in a window; None when they are too many, or their number is not known."""
    if any(edge is not None and len(edge) != ROW_WIDTH for edge in (window.low, window.high)):
        return None
    ranges: list[Range] = []
    for number in range(start, stop):
        count = source.units[number].rows
        if count is None:
            return None
        if rows := window.rows(source.number, number, count):
            ranges.append((number, rows.start, rows.stop))
    return ranges if sum(behind - first for _, first, behind in ranges) <= MOST else None


def _readable(spark: SparkSession, source: Source) -> bool:
    """Whether Spark's reader would return the values of a source's files unchanged."""
    here = all(urlparse(unit.path).scheme == "" for unit in source.units)
    plain = source.format == "parquet" and not source.options and source.base is None
    mode = str(spark.conf.get("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED"))
    return here and plain and mode.upper() != "LEGACY"


def _rows(source: Source, wanted: pa.Schema, number: int, first: int, behind: int) -> pa.Table | None:
    """Rows of one unit with their positions; None when its columns are not those of the source."""
    unit = source.units[number]
    if os.stat(unit.path).st_size != unit.size:
        return None
    with pq.ParquetFile(unit.path, memory_map=True) as file:
        metadata = file.metadata.metadata or {}
        if any(key.startswith(b"org.apache.spark.legacy") for key in metadata) or not _same_columns(
            file.schema_arrow, wanted
        ):
            return None
        groups: list[int] = []
        before = skipped = 0
        for group in range(file.metadata.num_row_groups):
            after = before + file.metadata.row_group(group).num_rows
            if after > first and before < behind:
                skipped = skipped if groups else before
                groups.append(group)
            before = after
        table = file.read_row_groups(groups, columns=wanted.names).slice(first - skipped, behind - first)
    if table.num_rows != behind - first:
        return None
    places = pa.array(range(pack(number, first), pack(number, behind)), pa.int64())
    numbers = pa.array([source.number] * table.num_rows, pa.int64())
    columns = [table.column(name) for name in wanted.names]
    return pa.table([*columns, numbers, places], names=[*wanted.names, *position_columns(ROW_WIDTH)])


def _same_columns(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a file has all wanted columns once, in the same types; it may have more."""
    return all(stored.names.count(f.name) == 1 and _same(stored.field(f.name).type, f.type) for f in wanted)


def _same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of two types are the same; the names of a list's items and a map's entries do not count."""
    if stored.id != wanted.id:
        return False
    if pa.types.is_struct(wanted):
        same_names = [f.name for f in stored] == [f.name for f in wanted]
        return same_names and all(_same(a.type, b.type) for a, b in zip(stored, wanted, strict=True))
    if pa.types.is_map(wanted):
        return _same(stored.key_type, wanted.key_type) and _same(stored.item_type, wanted.item_type)
    if pa.types.is_list(wanted):
        return _same(stored.value_type, wanted.value_type)
    return bool(stored.equals(wanted))
