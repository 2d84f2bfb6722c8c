"""Results by page: some rows of what a sink kept, without loading the others.

A plain page reads the row groups it lies in, by the counts in Parquet footers. A page of filtered or sorted rows is
computed by Spark, which returns the page alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from samovar.errors import SchemaProblem, UnknownName, WorkspaceError, nearest
from samovar.graph import operators as ops
from samovar.replay.past import Past
from samovar.runtime.failures.spark_errors import SparkError
from samovar.server.documents.sql_reach import check_sql
from samovar.server.json_values import row_data
from samovar.text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Page", "check_column", "page_of", "result_frame", "spark_errors"]

MOST = 1000
"""Rows of a page."""


@dataclass(frozen=True)
class Page:
    """Rows of a sink: those from `start` on, of `total` that meet the filter (None: not counted)."""

    columns: list[dict[str, str]]
    rows: list[dict[str, Any] | None]
    start: int
    total: int | None


def page_of(
    past: Past,
    sink: str,
    *,
    start: int = 0,
    count: int = 100,
    where: str | None = None,
    sort: str | None = None,
    descending: bool = False,
    session: Callable[[], SparkSession],
) -> Page:
    """A page of a sink's rows, in the order they were kept; `where` is SQL, `sort` a column."""
    if start < 0 or not 1 <= count <= MOST:
        raise WorkspaceError(
            f"Expected a page from 0 on of 1 to {MOST} rows, got start={start}, count={count}."
        )
    files = _files(past, sink)
    if not files:
        return Page([], [], 0, 0)
    schema = pq.read_schema(files[0])
    columns = [{"name": f.name, "type": str(f.type)} for f in schema]
    if sort is not None:
        check_column(sort, schema.names)
    frame = result_frame(past, sink, where, session) if where or sort else None
    if frame is None:
        table, total = _read_rows(files, start, count)
    else:
        with spark_errors(where, schema.names):
            total = frame.count() if where else sum(pq.read_metadata(file).num_rows for file in files)
            frame = frame if sort is None else frame.orderBy(_sort_key(sort, descending))
            table = frame.offset(start).limit(count).toArrow()
    return Page(columns, [row_data(r) for r in table.to_pylist()], start, total)


def _sort_key(column: str, descending: bool) -> Column:
    from pyspark.sql import functions as F

    key = F.col(quote_name(column))
    return key.desc_nulls_last() if descending else key.asc_nulls_last()


def _files(past: Past, sink: str) -> list[Path]:
    sinks = {op.name: op for op in past.workflow.graph().sinks}
    if sink not in sinks:
        raise UnknownName(sink, sinks, what="a sink")
    op = sinks[sink]
    if isinstance(op, ops.Write):
        raise WorkspaceError(
            f"'{sink}' writes {op.format} files to {op.path}: they are not kept in the recording.",
            hint="End the workflow with a 'sink' to look at rows here.",
            operator=sink,
        )
    folders = past._recording.parts("results", sink, past.history.epochs)
    return [f for folder in folders for f in sorted(folder.glob("*.parquet"))]


def _read_rows(files: list[Path], start: int, count: int) -> tuple[pa.Table, int]:
    """The rows from `start` on, from the row groups they lie in; and how many rows there are in all."""
    parts: list[pa.Table] = []
    total, wanted = 0, count
    for file in files:
        with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
            parts = parts or [opened.schema_arrow.empty_table()]
            for group in range(opened.metadata.num_row_groups):
                rows = opened.metadata.row_group(group).num_rows
                if wanted > 0 and total + rows > start:
                    part = opened.read_row_group(group).slice(max(0, start - total), wanted)
                    wanted -= part.num_rows
                    parts.append(part)
                total += rows
    return pa.concat_tables(parts, promote_options="permissive"), total


def result_frame(
    past: Past, sink: str, where: str | None, session: Callable[[], SparkSession]
) -> DataFrame | None:
    """The rows of a sink that meet a condition, as a DataFrame; None when nothing was kept."""
    check_sql(where)
    files = _files(past, sink)
    if not files:
        return None
    frame = session().read.parquet(*map(str, files))
    with spark_errors(where, frame.columns):
        return frame.filter(where) if where else frame


def check_column(name: str, names: list[str]) -> None:
    """Raise when a result has no such column."""
    if name not in names:
        close = nearest(name, names)
        raise SchemaProblem(
            f"No column '{name}' in the result.",
            hint=f"Did you mean '{close}'?" if close else f"Columns: {', '.join(names)}.",
        )


@contextmanager
def spark_errors(where: str | None, names: list[str]) -> Iterator[None]:
    """Raise what Spark raises about a condition as a SchemaProblem."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise SchemaProblem(
            f"Expected a SQL condition over {', '.join(names[:12])}, got {where!r}: {SparkError.of(error).line}",
            hint="For example: amount > 100 AND customer = 'Bob'.",
        ) from None
