"""Sources without files: generated rows, and the rows of a database query."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from samovar.errors import SourceError, nearest
from samovar.graph import operators as ops
from samovar.runtime.failures.spark_errors import SparkError
from samovar.text import quote_name

__all__ = ["generated", "queried"]

_ROWS_A_PART = 2_500
_PARTS = 64
"""Generated rows are cut into parts of this size, at most so many, so that a run over them has several epochs."""
_DRAWN = ("u", "z")
_BITS = 1 << 52
"""Draws have 52 bits: as many as a double between 0 and 1 keeps."""


def generated(spark: SparkSession, op: ops.Generate) -> DataFrame:
    """The rows of a `generate`: the same for the same seed, whatever the machine."""
    if op.rows < 0 or not op.columns:
        got = f"{op.rows} rows" if op.columns else "no columns"
        raise SourceError(f"Expected 0 or more rows of one or more columns, got {got}.", operator=op.name)
    taken = [c for c in op.columns if c.lower() in _DRAWN]
    if taken:
        raise SourceError(
            f"Expected another name for the column '{taken[0]}': it is drawn for each row and column.",
            operator=op.name,
        )
    parts = max(1, min(_PARTS, op.rows // _ROWS_A_PART))
    frame = spark.range(0, op.rows, 1, parts)
    for number, (name, text) in enumerate(op.columns.items()):
        draws = [
            F.pmod(F.xxhash64(F.lit(op.seed), F.lit(number * 4 + k), F.col("id")), F.lit(_BITS))
            / F.lit(_BITS)
            for k in range(4)
        ]
        bell = (draws[1] + draws[2] + draws[3] - F.lit(1.5)) * F.lit(2.0)  # deviation 1, from -3 to 3
        frame = frame.withColumns({"u": draws[0], "z": bell})
        try:
            frame = (
                frame.withColumn(name, F.expr(text)) if name.lower() != "id" else _checked_id(frame, op, text)
            )
        except PySparkException as error:
            raise SourceError(
                f"Expected SQL over id, u, z and the columns before it for '{name}', got {text!r}: "
                f"{SparkError.of(error).line}",
                operator=op.name,
                hint="For example: round(10 + u * 90, 2), or element_at(array('Ann', 'Bob'), 1 + int(u * 2)).",
            ) from None
    return frame.select(*(F.col(quote_name(c)) for c in op.columns))


def _checked_id(frame: DataFrame, op: ops.Generate, text: str) -> DataFrame:
    if text.strip().lower() != "id":
        raise SourceError(
            f"Expected 'id' to be the row's number, got the expression {text!r} for it.",
            operator=op.name,
            hint="Give the column another name.",
        )
    return frame


def queried(spark: SparkSession, op: ops.Query) -> DataFrame:
    """The rows of a `query`."""
    if (op.database is None) == (op.url is None):
        got = "neither" if op.database is None else "both"
        raise SourceError(
            f"Expected a SQLite file in 'database' or a JDBC address in 'url', got {got}.", operator=op.name
        )
    if op.url is not None:
        return spark.read.format("jdbc").options(**{**op.options, "url": op.url, "query": op.sql}).load()
    assert op.database is not None
    return spark.createDataFrame(_sqlite(op, os.path.expanduser(op.database)))


def _sqlite(op: ops.Query, path: str) -> pa.Table:
    """The rows of a query to a SQLite file, which is opened read-only; the query cannot attach other files."""
    if not os.path.isfile(path):
        folder = os.path.dirname(os.path.abspath(path))
        there = os.listdir(folder) if os.path.isdir(folder) else []
        close = nearest(os.path.basename(path), there)
        raise SourceError(
            f"Expected a SQLite file at {path}, found nothing.",
            operator=op.name,
            hint=f"Did you mean {os.path.join(os.path.dirname(path), close)}?" if close else None,
        )
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.set_authorizer(_reading_only)
            cursor = database.execute(op.sql)
            if cursor.description is None:
                raise SourceError(f"Expected a SELECT, got {op.sql!r}.", operator=op.name)
            names = [d[0] for d in cursor.description]
            rows = cursor.fetchall()
    except sqlite3.Error as error:
        raise SourceError(
            f"SQLite cannot answer {op.sql!r}: {error}.", operator=op.name, hint=_tables(path)
        ) from None
    columns = [_column([row[i] for row in rows]) for i in range(len(names))]
    return pa.table(columns, names=names)


def _reading_only(action: int, *_: Any) -> int:
    allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY


def _tables(path: str) -> str | None:
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            ).fetchall()
    except sqlite3.Error:
        return None
    return f"Its tables: {', '.join(str(name) for (name,) in rows)}." if rows else "It has no tables."


def _column(values: list[Any]) -> pa.Array:
    """A column of the narrowest type that holds all values: SQLite's columns have no types."""
    kinds = {type(v) for v in values if v is not None}
    if kinds <= {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if kinds == {bytes}:
        return pa.array(values, pa.binary())
    texts = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values]
    return pa.array([None if v is None else str(v) for v in texts], pa.string())
