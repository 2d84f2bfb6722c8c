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

from samovar.positions import ROW_WIDTH, Window, position_columns
from samovar.runtime.sources.unit_list import Unit
from samovar.runtime.sources.units import Source

__all__ = ["excerpt"]

MOST = 4096
"""Rows that are read this way: they become part of Spark's plan, which must stay small."""

_PLAIN = {
    pa.string_view(): pa.string(),
    pa.large_string(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.large_binary(): pa.binary(),
}
"""How Arrow may hold text and bytes in memory, as the writer noted it in the file: the stored values are the same."""

Range = tuple[int, Unit, range]
"""Units of one file: the number of the first of them, what they consist of, and which of these rows are wanted."""


def excerpt(spark: SparkSession, source: Source, window: Window, units: range) -> DataFrame | None:
    """The rows of some units of a source in a window, with positions; None: too many, or Spark must read them."""
    ranges = _ranges(source, window, units)
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


def _ranges(source: Source, window: Window, units: range) -> list[Range] | None:
    """The rows of each file that lie in a window; None when they are too many, or their number is not known."""
    if any(edge is not None and len(edge) != ROW_WIDTH for edge in (window.low, window.high)):
        return None
    ranges: list[Range] = []
    touched = window.units(source.number, units.start, units.stop)
    for number, span in source.units.spans_of(touched):
        if span.rows is None:
            return None
        # the window can begin in the first unit, and end in the last
        grain = source.grain or span.rows
        last = max(0, -(-span.rows // grain) - 1) if grain else 0
        first = window.rows(source.number, number, min(grain, span.rows)).start
        behind = last * grain + window.rows(source.number, number + last, span.rows - last * grain).stop
        if rows := range(first, behind):
            ranges.append((number, span, rows))
    return ranges if sum(len(rows) for _, _, rows in ranges) <= MOST else None


def _readable(spark: SparkSession, source: Source) -> bool:
    """Whether Spark's reader would return the values of a source's files unchanged."""
    here = all(urlparse(span.path).scheme == "" for span in source.spans)
    plain = source.format == "parquet" and not source.options and source.base is None
    mode = str(spark.conf.get("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED"))
    return here and plain and mode.upper() != "LEGACY"


def _rows(source: Source, wanted: pa.Schema, number: int, span: Unit, rows: range) -> pa.Table | None:
    """Rows of one file with their positions; None when its columns are not those of the source."""
    if os.stat(span.path).st_size != span.size:
        return None
    first, behind = span.first + rows.start, span.first + rows.stop
    with pq.ParquetFile(span.path, memory_map=True) as file:
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
    places = pa.array(source.units.places(number, rows), pa.int64())
    numbers = pa.array([source.number] * table.num_rows, pa.int64())
    columns = [_plain(table.column(name)) for name in wanted.names]
    return pa.table([*columns, numbers, places], names=[*wanted.names, *position_columns(ROW_WIDTH)])


def _same_columns(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a file has all wanted columns once, in the same types; it may have more."""

    def same(field: pa.Field) -> bool:
        kind = stored.field(field.name).type
        return _same(_PLAIN.get(kind, kind), field.type)

    return all(stored.names.count(field.name) == 1 and same(field) for field in wanted)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as Spark takes it."""
    kind = _PLAIN.get(column.type)
    return column if kind is None else column.cast(kind)


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
