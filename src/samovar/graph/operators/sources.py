"""Sources: operators without inputs."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from samovar.graph.operators.base import Op

__all__ = ["FILE_FORMATS", "FrameSource", "Generate", "Query", "Read", "Table", "Values"]

FILE_FORMATS = ("parquet", "csv", "json", "text", "orc")


class Read(Op, tag="read", frozen=True, kw_only=True):
    """Reads files with a Spark data source: parquet, csv, json, text, orc, or any other format Spark knows."""

    format: str
    path: tuple[str, ...] = ()
    schema: str | None = None
    options: dict[str, str] = msgspec.field(default_factory=dict)

    ports: ClassVar[tuple[int, int | None]] = (0, 0)
    summary: ClassVar[str] = "reads files"


class Table(Op, tag="table", frozen=True, kw_only=True):
    """Reads a table or view of Spark's catalog; its rows are copied into the recording as they come in."""

    table: str

    ports: ClassVar[tuple[int, int | None]] = (0, 0)
    summary: ClassVar[str] = "reads a catalog table"


class Values(Op, tag="values", frozen=True, kw_only=True):
    """Rows written in the workflow itself: small lookup tables and examples."""

    schema: str
    rows: tuple[tuple[Any, ...], ...] = ()

    ports: ClassVar[tuple[int, int | None]] = (0, 0)
    summary: ClassVar[str] = "holds rows given in the workflow"


class Generate(Op, tag="generate", frozen=True, kw_only=True):
    """Makes up rows: the same for the same seed, on any machine.

    Each column is a SQL expression over `id` (the row's number, from 0), `u` (a number from 0 to 1, even), `z` (a
    number around 0, bell-shaped) and the columns before it. `u` and `z` are drawn anew for each row and column.
    """

    rows: int
    columns: dict[str, str]
    seed: int = 0

    ports: ClassVar[tuple[int, int | None]] = (0, 0)
    summary: ClassVar[str] = "makes up sample data"


class Query(Op, tag="query", frozen=True, kw_only=True):
    """The rows of a SQL query, over a SQLite file or over any database by JDBC (its driver must be on Spark's path).

    The rows are copied into the recording when the run starts. A SQLite file is read by the driver, and never written.
    """

    sql: str
    database: str | None = None
    url: str | None = None
    options: dict[str, str] = msgspec.field(default_factory=dict)

    ports: ClassVar[tuple[int, int | None]] = (0, 0)
    summary: ClassVar[str] = "asks a database in SQL"


class FrameSource(Op, tag="frame", frozen=True, kw_only=True):
    """Reads a live PySpark DataFrame; its rows are copied into the recording as they come in."""

    schema: str | None = None

    ports: ClassVar[tuple[int, int | None]] = (0, 0)
    summary: ClassVar[str] = "reads a DataFrame of the session"
