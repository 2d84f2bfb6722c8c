"""The values that can be a side of a comparison, as DataFrames: nothing is computed, no row comes to the driver.

A side is a PySpark DataFrame, a pyarrow table or batch, a list of rows, the path of files (Parquet, CSV, JSON, ORC,
text) or of a recording, the name of a catalog table, a run, or a recording opened with `sv.open`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from samovar.diff.comparison_errors import SideProblem, repeated
from samovar.diff.event_values import Side
from samovar.errors import UnknownName
from samovar.graph import operators as ops
from samovar.record.store import LOG, Recording
from samovar.replay.past import Past
from samovar.runtime.failures.spark_errors import SparkError
from samovar.runtime.run import Run
from samovar.runtime.spark.session import spark_session
from samovar.runtime.workflow_file import read_graph
from samovar.text import shown

__all__ = ["Given", "as_side", "chosen_sink", "is_table", "session_of"]

_ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".txt": "text",
}


@dataclass(frozen=True)
class Given:
    """A side: its rows, and for a recording the past and the sink they come from."""

    df: DataFrame
    past: Past | None = None
    sink: str | None = None


def session_of(*values: Any, spark: SparkSession | None = None) -> SparkSession:
    """The session that computes: `spark`, the session of a DataFrame among the values, or the live one."""
    if spark is not None:
        return spark
    frame = next((v for v in values if isinstance(v, DataFrame)), None)
    return frame.sparkSession if frame is not None else spark_session()


def as_side(value: Any, side: Side, spark: SparkSession, *, sink: str | None = None) -> Given:
    """Turn a value into a side of a comparison; nothing is computed."""
    if isinstance(value, DataFrame):
        if value.isStreaming:
            raise SideProblem(
                f"Expected a table on the {side} side, got a stream, which may never end.",
                hint="Write it to a table first, or push its batches into a Matcher.",
            )
        return Given(value)
    if isinstance(value, pa.RecordBatch):
        value = pa.Table.from_batches([value])
    if isinstance(value, pa.Table):
        return Given(_from_arrow(spark, value, side))
    if isinstance(value, (str, os.PathLike)):
        return _from_path(spark, os.fspath(value), side, sink)
    if isinstance(value, Run):
        return _from_run(spark, value, side, sink)
    if isinstance(value, Past):
        return _from_recording(spark, value, side, sink)
    if isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
        return Given(_from_arrow(spark, pa.Table.from_pylist(list(value)), side))
    if type(value).__module__.startswith("pandas."):
        return Given(_from_arrow(spark, pa.Table.from_pandas(value, preserve_index=False), side))
    hint = "Run the workflow first: compare(flow.run(), ...)." if hasattr(value, "sink") else None
    if isinstance(value, list) and not value:
        hint = "An empty list has no columns. Use an empty table: spark.createDataFrame([], 'id int, ...')."
    raise SideProblem(
        f"Expected a DataFrame, a pyarrow table, a path, a run or a recording on the {side} side, got {shown(value)}.",
        hint=hint,
    )


def is_table(name: str, spark: SparkSession) -> bool:
    """Whether Spark's catalog has a table or view of this name."""
    return re.fullmatch(r"\w+(\.\w+){0,2}", name) is not None and spark.catalog.tableExists(name)


def chosen_sink(names: Sequence[str], wanted: str | None, side: str) -> str:
    """The sink whose rows are compared: the one asked for, or the only one."""
    if wanted is not None:
        if wanted not in names:
            raise UnknownName(wanted, names, what=f"a sink of the {side} side")
        return wanted
    if len(names) == 1:
        return names[0]
    raise SideProblem(
        f"Expected one sink on the {side} side, got {len(names)}: {', '.join(names) or 'none'}.",
        hint=f"Choose one: sink={names[0]!r}." if names else None,
    )


def _from_arrow(spark: SparkSession, table: pa.Table, side: Side) -> DataFrame:
    if not table.num_columns:
        raise SideProblem(f"Expected a table with columns on the {side} side, got one without any.")
    if (twice := repeated(table.column_names)) is not None:
        raise SideProblem(
            f"Expected columns with different names, got '{twice}' twice on the {side} side.",
            hint="Rename them with table.rename_columns([...]).",
        )
    return spark.createDataFrame(table)


def _from_path(spark: SparkSession, path: str, side: Side, sink: str | None) -> Given:
    place = Path(path)
    if (place / LOG).is_file():
        return _from_recording(spark, Past(place, spark=spark), side, sink)
    if not place.exists() and "://" not in path:
        if is_table(path, spark):
            return Given(spark.table(path))
        raise SideProblem(
            f"Expected files, a recording or a catalog table on the {side} side, found nothing at '{path}'.",
            hint=None if place.parent.is_dir() else f"The folder {place.parent} does not exist either.",
        )
    kind = _format(place)
    if "://" not in path:
        path = str(place.absolute())  # Java may have been started in another folder
    reader = spark.read
    if kind == "csv":
        reader = reader.options(
            header=True, inferSchema=True, sep="\t" if place.suffix.lower() == ".tsv" else ","
        )
    try:
        return Given(reader.format(kind).load(path))
    except PySparkException as error:
        raise SideProblem(
            f"The {side} side, {path}, cannot be read as {kind}: {SparkError.of(error).line}"
        ) from error


def _format(place: Path) -> str:
    """The format by the ending of the path or of the first data file below it; Parquet for an unknown ending."""
    if place.is_dir():
        files = (p for p in sorted(place.rglob("*")) if p.is_file() and not p.name.startswith((".", "_")))
        place = next(files, Path())
    endings = [ending.lower() for ending in reversed(place.suffixes[-2:])]  # of `x.csv.gz`, csv
    return next((_ENDINGS[e] for e in endings if e in _ENDINGS), "parquet")


def _from_run(spark: SparkSession, run: Run, side: Side, sink: str | None) -> Given:
    run.wait(progress=False)
    if run.recording is None:
        return Given(_from_arrow(spark, run.result(sink or "S"), side))
    return _from_recording(spark, Past(run.recording, spark=spark), side, sink)


def _from_recording(spark: SparkSession, past: Past, side: Side, sink: str | None) -> Given:
    recording = Recording(past.path)
    graph = read_graph(recording)
    name = chosen_sink([op.name for op in graph.sinks], sink, side)
    op = graph.ops[name]
    history = recording.history()
    if isinstance(op, ops.Write):
        return Given(_from_path(spark, op.path, side, None).df, past, name)
    folders = [str(p) for p in recording.parts("results", name, history.epochs) if any(p.glob("*.parquet"))]
    if not folders:
        raise SideProblem(
            f"Expected rows of '{name}' in the recording {recording.path} ({side} side), found no file.",
            hint="The run kept nothing: it failed, or was stopped before its first epoch was committed.",
        )
    frames = [spark.read.parquet(folder) for folder in folders]
    return Given(reduce(DataFrame.unionByName, frames), past, name)
