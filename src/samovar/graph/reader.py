"""`flow.read`: sources, with the names of PySpark's DataFrameReader."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from samovar.errors import WorkflowError
from samovar.graph import operators as ops
from samovar.graph.arguments import TakesOptions, ddl, flat, option_text
from samovar.graph.frame import Frame
from samovar.graph.pyspark_names import READER, RefusesOtherNames

if TYPE_CHECKING:
    from samovar.graph.workflow import Workflow

__all__ = ["Reader"]


class Reader(TakesOptions, RefusesOtherNames):
    """Sources, with the names of PySpark's DataFrameReader."""

    _subject = "A workflow's reader has"
    _instead = READER
    _otherwise = "flow.read.format(name).load(path) reads what any data source of Spark's gives."

    def __init__(self, flow: Workflow) -> None:
        self._flow = flow
        self._format = "parquet"
        self._schema: str | None = None
        super().__init__()

    def format(self, source: str) -> Reader:
        """Any data source Spark knows."""
        self._format = source
        return self

    def schema(self, schema: Any) -> Reader:
        """The schema, as DDL or StructType, instead of the one found in the files."""
        self._schema = ddl(schema)
        return self

    def load(
        self,
        path: Any = None,
        format: str | None = None,
        schema: Any = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Frame:
        """Read from a path (or several) in the chosen format."""
        if format is not None:
            self._format = format
        if schema is not None:
            self._schema = ddl(schema)
        self.options(**options)
        paths = () if path is None else (path,) if isinstance(path, str | os.PathLike) else tuple(path)
        source = ops.Read(
            name=name or self._flow.fresh(f"read_{self._format}"),
            format=self._format,
            path=tuple(os.fspath(p) for p in paths),
            schema=self._schema,
            options=dict(self._options),
        )
        return self._flow.add(source)

    def parquet(self, *paths: Any, name: str | None = None, **options: Any) -> Frame:
        """Parquet files or folders."""
        return self.load(flat(paths), "parquet", name=name, **options)

    def csv(self, path: Any, schema: Any = None, *, name: str | None = None, **options: Any) -> Frame:
        """CSV files or folders; options as in PySpark (`header=True`, `sep=";"`, `inferSchema=True`)."""
        return self.load(path, "csv", schema, name=name, **options)

    def json(self, path: Any, schema: Any = None, *, name: str | None = None, **options: Any) -> Frame:
        """JSON lines files or folders."""
        return self.load(path, "json", schema, name=name, **options)

    def text(self, paths: Any, *, name: str | None = None, **options: Any) -> Frame:
        """Text files: one row per line, in column `value`."""
        return self.load(paths, "text", name=name, **options)

    def orc(self, path: Any, *, name: str | None = None, **options: Any) -> Frame:
        """ORC files or folders."""
        return self.load(path, "orc", name=name, **options)

    def table(self, tableName: str, *, name: str | None = None) -> Frame:
        """A table or view of Spark's catalog."""
        return self._flow.add(ops.Table(name=name or self._flow.fresh("table"), table=tableName))

    def sql(
        self,
        query: str,
        database: Any = None,
        *,
        url: str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Frame:
        """The rows of a query over a SQLite file, or over any database by JDBC (`url`, with options as in PySpark)."""
        source = ops.Query(
            name=name or self._flow.fresh("query"),
            sql=query,
            database=None if database is None else os.fspath(database),
            url=url,
            options={k: option_text(v) for k, v in options.items() if v is not None},
        )
        return self._flow.add(source)

    def frame(self, df: Any, *, name: str | None = None) -> Frame:
        """A live PySpark DataFrame."""
        if isinstance(df, Frame) or not hasattr(df, "schema"):
            hint = "A Frame can be used as it is." if isinstance(df, Frame) else None
            raise WorkflowError(f"Expected a PySpark DataFrame, got {type(df).__name__}.", hint=hint)
        return self._flow.add(ops.FrameSource(name=name or self._flow.fresh("frame")), live=df)
