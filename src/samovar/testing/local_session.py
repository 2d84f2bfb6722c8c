"""What stands for a Spark session in a local run: settings, tags of jobs, and schemas. It computes nothing."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from pyspark.sql import types as t

from samovar.errors import RunError, SchemaProblem
from samovar.graph.values import Type, columns

__all__ = ["LocalSession"]

_SIMPLE: dict[str, t.DataType] = {
    word: kind
    for words, kind in {
        ("boolean",): t.BooleanType(),
        ("tinyint", "byte"): t.ByteType(),
        ("smallint", "short"): t.ShortType(),
        ("int", "integer"): t.IntegerType(),
        ("bigint", "long"): t.LongType(),
        ("float", "real"): t.FloatType(),
        ("double",): t.DoubleType(),
        ("string",): t.StringType(),
        ("binary",): t.BinaryType(),
        ("date",): t.DateType(),
        ("timestamp", "timestamp_ltz"): t.TimestampType(),
        ("timestamp_ntz",): t.TimestampNTZType(),
    }.items()
    for word in words
}
_DECIMALS = ("decimal", "dec", "numeric")


class LocalSession:
    """As much of a `SparkSession` as a run asks for apart from its jobs."""

    def __init__(self, workers: int) -> None:
        self.sparkContext = _Context(workers)
        self.conf = _Conf({"spark.sql.session.timeZone": "UTC"})

    def createDataFrame(self, rows: list[Any], schema: str) -> Any:
        """An empty frame, of which nothing but the schema can be asked."""
        if rows:
            raise self._missing("createDataFrame")
        return SimpleNamespace(schema=struct_of(schema))

    def __getattr__(self, name: str) -> Any:
        raise self._missing(name)

    def _missing(self, name: str) -> RunError:
        return RunError(
            f"Expected a Spark session for `{name}`, got a local run, which has none.",
            hint="Run the workflow with flow.start(spark=...).",
        )


class _Conf(dict[str, str]):
    """Spark's settings."""


class _Context:
    """The jobs of the session, by tag: one at a time for each."""

    _jsc = "no Java"  # None would say that the session has ended

    def __init__(self, workers: int) -> None:
        self.master = f"local[{workers}]"
        self.defaultParallelism = workers
        self.cancelled: dict[str, Future[None]] = {}
        """For each tag a future that is done when its job is cancelled."""

    def getConf(self) -> _Conf:
        return _Conf()

    def addJobTag(self, tag: str) -> None:
        self.cancelled[tag] = Future()

    def removeJobTag(self, tag: str) -> None:
        self.cancelled.pop(tag, None)

    def cancelJobsWithTag(self, tag: str) -> None:
        cancelled = self.cancelled.get(tag)
        if cancelled is not None and not cancelled.done():
            cancelled.set_result(None)

    def setJobDescription(self, text: str) -> None:
        """Nobody looks at it."""

    def setLocalProperty(self, key: str, value: str | None) -> None:
        """Nobody looks at it."""


def struct_of(ddl: str) -> t.StructType:
    """A schema in DDL form as Spark's type. Raises SchemaProblem for a type that a local run does not know."""
    return t.StructType([t.StructField(name, _type_of(kind)) for name, kind in columns(ddl)])


def _type_of(kind: Type) -> t.DataType:
    if kind.name == "array":
        return t.ArrayType(_type_of(kind.inner[0]))
    if kind.name == "map":
        return t.MapType(_type_of(kind.inner[0]), _type_of(kind.inner[1]))
    if kind.name == "struct":
        members = zip(kind.fields, kind.inner, strict=True)
        return t.StructType([t.StructField(name, _type_of(inner)) for name, inner in members])
    if kind.name in _DECIMALS:
        numbers = kind.text.partition("(")[2].rstrip(") ").split(",")
        return t.DecimalType(*(int(n) for n in numbers if n.strip()))
    if kind.name not in _SIMPLE:
        raise SchemaProblem(
            f"Expected a type such as 'bigint' or 'array<string>', got {kind.text!r}.",
            hint="A local run knows Spark's common types; run the workflow with flow.start(spark=...).",
        )
    return _SIMPLE[kind.name]
