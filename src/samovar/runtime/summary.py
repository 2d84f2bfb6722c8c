"""What a recording holds, read without Spark: its status, counters and results. Takes no lock, runs no code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq

from samovar.errors import RunError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Graph
from samovar.record.store import History, Recording
from samovar.runtime.progress import OperatorProgress, Progress, Status
from samovar.runtime.workflow_file import read_graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["past_progress", "read_result", "recorded_progress", "result_frame", "status_of"]


def read_result(recording: Recording, history: History, graph: Graph, sink: str) -> pa.Table:
    """A sink's rows over the committed epochs, in epoch order."""
    folders = _result_folders(recording, history, graph, sink)
    files = [f for folder in folders for f in sorted(folder.glob("*.parquet"))]
    if not files:
        return pa.table({})
    tables = [_as_spark_has_it(pq.read_table(f, coerce_int96_timestamp_unit="us")) for f in files]
    filled = [t for t in tables if t.num_rows] or tables[:1]
    return pa.concat_tables(filled)


def result_frame(
    spark: SparkSession, recording: Recording, history: History, graph: Graph, sink: str
) -> DataFrame:
    """A sink's rows over the committed epochs as a DataFrame that reads the recording's files."""
    folders = [str(folder) for folder in _result_folders(recording, history, graph, sink)]
    return spark.read.parquet(*folders) if folders else spark.createDataFrame([], "")


def _result_folders(recording: Recording, history: History, graph: Graph, sink: str) -> list[Path]:
    """The folders of the rows that a sink kept. Raises for a sink that keeps none."""
    names = [o.name for o in graph.sinks]
    if sink not in names:
        raise UnknownName(sink, names, what="a sink")
    op = graph.ops[sink]
    if isinstance(op, ops.Write):
        raise RunError(
            f"'{sink}' writes {op.format} files to {op.path}: read them there.",
            operator=sink,
            hint="Use .sink(name) to keep rows in the recording.",
        )
    return recording.parts("results", sink, history.epochs)


def _as_spark_has_it(table: pa.Table) -> pa.Table:
    """The table with the types of `DataFrame.toArrow`: in Parquet files instants and local times look the same."""
    written = (table.schema.metadata or {}).get(b"org.apache.spark.sql.parquet.row.metadata")
    if written is None:
        return table
    # imported here: `samovar show` needs no pyspark
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    from samovar.compile.kept_types import SPATIAL, relaxed

    kinds = relaxed(StructType.fromJson(json.loads(written)))
    assert isinstance(kinds, StructType)
    schema = to_arrow_schema(kinds, timezone="UTC")
    if schema.names != table.schema.names:
        return table
    schema = pa.schema([pa.field(f.name, _nullable(f.type), metadata=f.metadata) for f in schema])
    arrays = []
    for column, field, kind in zip(table.columns, schema, kinds.fields, strict=True):
        _check_whole(column.type, field.name)
        srid = kind.dataType.srid if isinstance(kind.dataType, SPATIAL) else None
        arrays.append(column.cast(field.type) if srid is None else _located(column, field, srid))
    return pa.table(arrays, schema=schema)


def _check_whole(kind: pa.DataType, name: str) -> None:
    """Raise for a VARIANT that is stored in several columns: reading one of them would lose values."""
    if pa.types.is_struct(kind):
        names = [f.name for f in kind]
        if "metadata" in names and "typed_value" in names:
            raise RunError(
                f"Column '{name}' holds VARIANT values as an older version stored them, which only Spark can read.",
                hint="Run the workflow again, or read the files below `epochs/*/results` with spark.read.parquet.",
            )
        for field in kind:
            _check_whole(field.type, name)


def _located(column: pa.ChunkedArray, field: pa.Field, srid: int) -> pa.ChunkedArray:
    """Geometries as Spark has them: the bytes of the file, and the SRID of their type."""
    chunks = [
        pa.StructArray.from_arrays(
            [pa.array([srid] * len(chunk), pa.int32()), chunk.cast(pa.binary())],
            fields=list(field.type),
            mask=chunk.is_null(),
        )
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, field.type)


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type with nulls allowed in all of its parts: whether they occur may differ from epoch to epoch."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _nullable(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _nullable(f.type), metadata=f.metadata) for f in kind])
    return kind


def status_of(recording: Recording) -> Status:
    """The status of a recording, from its log and its lock."""
    ended = recording.history().ended
    if recording.is_written():
        return "running"
    return cast(Status, ended.status) if ended is not None else "interrupted"


def past_progress(recording: Recording) -> Progress:
    """A recording's progress from its log."""
    history = recording.history()
    operators = read_graph(recording).ops.values()
    at = [f.at for f in recording.facts()]
    status = status_of(recording)
    seconds = at[-1] - at[0] if at else 0.0
    progress = recorded_progress(recording, history, operators, status, seconds)
    return replace(progress, fraction=1.0 if status == "completed" else 0.0)


def recorded_progress(
    recording: Recording, history: History, operators: Iterable[Op], status: Status, seconds: float
) -> Progress:
    """Counters of the committed epochs; rates of the last one."""
    totals = history.totals()
    last = history.epochs[-1] if history.epochs else None
    entries: dict[str, dict[int, int]] = {}
    state_bytes: dict[str, int] = {}
    for epoch in history.epochs:
        for name, files in epoch.state.items():
            for f in files:
                entries.setdefault(name, {})[f.bucket] = f.entries
                state_bytes[name] = f.size if f.full else state_bytes.get(name, 0) + f.size
    figures = []
    for op in operators:
        counted = totals.get(op.name)
        recent = last.counters.get(op.name) if last is not None else None
        rate = 0.0
        if last is not None and recent is not None and last.seconds > 0:
            rate = (sum(recent.taken) or recent.given) / last.seconds
        figures.append(
            OperatorProgress(
                op.name,
                op.kind,
                sum(counted.taken) if counted else 0,
                counted.given if counted else 0,
                rate,
                sum(entries.get(op.name, {}).values()),
                state_bytes.get(op.name, 0),
            )
        )
    workflow = history.started.workflow if history.started else ""
    return Progress(
        recording.run_id,
        workflow,
        status,
        len(history.epochs),
        0.0,
        seconds,
        tuple(figures),
        history.rejected(),
    )
