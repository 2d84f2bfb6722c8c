"""Trying an operator on a few rows: a small run of its own, over the first rows of each source.

The rows are the first that result from the first `sample` rows of each source (of the first of its files), so that a
trial is quick however large the sources are. A join or a filter may leave fewer rows, or none. Nothing is kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from samovar.errors import SamovarError, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Workflow
from samovar.runtime.folders import new_scratch
from samovar.runtime.plans import made_live
from samovar.runtime.sources.units import first_file, source_frame, source_schema
from samovar.text import quote_name

__all__ = ["Trial", "try_operator"]


@dataclass(frozen=True)
class Trial:
    """The rows an operator got on each port (`given`), its output, and the error that ended it."""

    given: list[pa.Table] = field(default_factory=list)
    result: pa.Table | None = None
    error: SamovarError | None = None


def try_operator(
    flow: Workflow,
    name: str,
    *,
    spark: SparkSession,
    rows: int = 10,
    sample: int = 1000,
    seconds: float = 60,
    scratch: Path | None = None,
) -> Trial:
    """Run an operator on at most `rows` rows a port. Raises errors of the operators before it.

    `scratch`: the folder to work in, which all hosts of a cluster must see (default: see `new_scratch`).
    """
    graph = made_live(flow.up_to(name).graph())
    if name not in graph.ops or isinstance(graph.ops[name], ops.SINKS):
        raise WorkflowError(
            f"Expected an operator that is enabled and gives rows, got '{name}'.",
            hint="Enable it, or try the operator before it.",
            operator=name,
        )
    live: dict[str, Any] = dict(graph.live)
    before: dict[str, Op] = {}
    for op in graph.ops.values():
        if isinstance(op, ops.SOURCES):
            live[op.name] = _start(spark, op, graph.live.get(op.name)).limit(sample)
            before[op.name] = ops.FrameSource(name=op.name)
        elif not isinstance(op, ops.SINKS):
            before[op.name] = op
    tried = before.pop(name)

    def run(operators: dict[str, Op], sinks: dict[str, str], rows: int) -> dict[str, pa.Table]:
        small = _with_sinks(flow.name, operators, live, sinks, rows)
        return _results(small, sinks, spark, seconds, scratch)

    if not tried.inputs:
        return Trial(result=run({name: tried}, {"result": name}, rows)["result"])
    firsts = [_fresh(f"{up} first", graph.ops, before) for up in tried.inputs]
    given = run(before, dict(zip(firsts, tried.inputs, strict=True)), rows)
    alone: dict[str, Op] = {first: ops.FrameSource(name=first) for first in firsts}
    alone[name] = msgspec.structs.replace(tried, inputs=tuple(firsts))
    live.update({first: spark.createDataFrame(given[first]) for first in firsts})
    tables = [given[first] for first in firsts]
    try:
        return Trial(tables, run(alone, {"result": name}, rows * 10)["result"])
    except SamovarError as error:
        return Trial(tables, None, error)


def _start(spark: SparkSession, op: Op, live: Any) -> DataFrame:
    """Rows of a source, the first ones first: of files, those of the first file (Spark begins with the largest)."""
    if not isinstance(op, ops.Read) or op.format not in ops.FILE_FORMATS:
        return source_frame(spark, op, live)
    first = first_file(spark, op)
    schema = op.schema
    if op.format != "text":
        fields = source_schema(spark, op).fields
        schema = ", ".join(f"{quote_name(f.name)} {f.dataType.simpleString()}" for f in fields)
    options = dict(op.options)
    if "=" in first and len(op.path) == 1:
        options.setdefault("basePath", op.path[0])
    return source_frame(spark, msgspec.structs.replace(op, path=(first,), schema=schema, options=options))


def _fresh(name: str, *taken: Any) -> str:
    """A name that is not taken."""
    while any(name in names for names in taken):
        name += "_"
    return name


def _with_sinks(
    name: str, operators: dict[str, Op], live: dict[str, Any], sinks: dict[str, str], rows: int
) -> Workflow:
    """A workflow that keeps the first rows of some operators; `sinks`: the names they are kept by."""
    every = dict(operators)
    for number, (sink, of) in enumerate(sinks.items()):
        limit = _fresh(f"limit {number}", every, sinks)
        every[limit] = ops.Limit(name=limit, inputs=(of,), n=rows)
        every[sink] = ops.Sink(name=sink, inputs=(limit,))
    return Workflow.of(name, every.values(), {n: v for n, v in live.items() if n in every})


def _results(
    flow: Workflow, sinks: Iterable[str], spark: SparkSession, seconds: float, scratch: Path | None
) -> dict[str, pa.Table]:
    """The rows of some sinks, from a run that leaves nothing behind."""
    folder = new_scratch("trial-", scratch)
    try:
        run = flow.start(spark=spark, record=folder, interactive=False)
        try:
            run.wait(seconds, progress=False)
        except TimeoutError:
            run.stop()
            raise WorkflowError(
                f"The trial had not ended after {seconds:.0f} seconds, and was stopped.",
                hint="Does the code wait for something, or loop without an end?",
            ) from None
        return {sink: run.result(sink) for sink in sinks}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
