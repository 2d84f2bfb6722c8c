"""Sources: operators without inputs."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from samovar.graph.operators.base import Op

__all__ = ["FILE_FORMATS", "FrameSource", "Read", "Table", "Values"]

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


class FrameSource(Op, tag="frame", frozen=True, kw_only=True):
    """Reads a live PySpark DataFrame; its rows are copied into the recording as they come in."""

    schema: str | None = None

    ports: ClassVar[tuple[int, int | None]] = (0, 0)
    summary: ClassVar[str] = "reads a DataFrame of the session"
