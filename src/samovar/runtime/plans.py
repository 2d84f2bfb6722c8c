"""From a workflow, live or recorded, to its plans: code is loaded, sources are listed, expressions are analysed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from samovar.compile.analysis import Analysis, analyse, referenced
from samovar.compile.native import apply_native
from samovar.compile.plan import Plan, make_plan
from samovar.compile.samples import drawn_as_sources, is_drawn
from samovar.errors import RecordingError
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Graph, Workflow
from samovar.record.log import RunStarted
from samovar.record.store import History, Recording
from samovar.runtime import pickles
from samovar.runtime.sources.chunks import restore_chunks
from samovar.runtime.sources.input_files import check_unchanged
from samovar.runtime.sources.units import Source, list_source, source_frame, source_schema
from samovar.runtime.spark.session import spark_session
from samovar.runtime.spark.shared_storage import cores
from samovar.runtime.workflow_file import is_code, read_code, read_graph, read_sources

__all__ = [
    "LOCAL",
    "Plans",
    "as_sql",
    "check_start",
    "list_sources",
    "made_live",
    "plans_of",
    "schema",
    "with_draws",
]

log = logging.getLogger("samovar")

LOCAL = "local"
"""In place of Spark's version in the recording of a run without it (samovar.testing)."""


@dataclass(frozen=True)
class Plans:
    """All that computing a recorded run again needs: its plan, and the same plan with positions on every edge."""

    plan: Plan
    tracing: Plan
    sources: dict[str, Source]
    code: dict[str, bytes]


def check_start(history: History) -> RunStarted:
    """How the run started; raises RecordingError if Spark cannot compute it again. Needs no Spark."""
    if history.started is None:
        raise RecordingError("The recording holds no start of a run.", hint="Start the workflow again.")
    if history.started.spark == LOCAL:
        raise RecordingError(
            "Expected a recording of a run on Spark, got one of a local run, which Spark would cut otherwise.",
            hint="Run the workflow with flow.start(spark=...) to go back in time, to resume it or to fork it.",
        )
    return history.started


def plans_of(
    recording: Recording,
    history: History,
    session: SparkSession,
    *,
    flow: Workflow | None = None,
    graph: Graph | None = None,
) -> Plans:
    """Plans of a recorded run, or of the same run with another workflow or graph (live code included).

    Raises SourceChanged when an input is not as it was.
    """
    started = check_start(history)
    sources = read_sources(recording)
    for source in sources.values():
        check_unchanged(source, session)
    recording.check_start("inputs")
    if graph is None and flow is not None:
        graph = made_live(flow.graph())
    if graph is not None:
        pickled = {n: pickles.by_value(live, n) for n, live in graph.live.items() if is_code(graph.ops[n])}
    else:
        graph, pickled = read_code(recording, read_graph(recording), history)
    for source in sources.values():
        restore_chunks(session, source, log.info)
    graph = drawn_as_sources(graph)
    analysis = analyse(session, graph, {n: s.struct for n, s in sources.items()})
    settings = {"now": int(started.at * 1_000_000), **started.options}
    plan, tracing = (
        make_plan(
            session,
            analysis,
            {n: s.size for n, s in sources.items()},
            buckets=int(settings["buckets"]),
            settings={**settings, "parallelism": max(2, cores(session))},
            positions=positions,
        )
        for positions in (False, True)
    )
    return Plans(plan, tracing, sources, pickled)


def with_draws(session: SparkSession, graph: Graph) -> Graph:
    """The graph of a run, in which samples that Spark draws are sources, with the frames that draw them."""
    names = referenced(graph)
    frames: dict[str, DataFrame] = {}

    def frame(name: str) -> DataFrame:
        if name not in frames:
            op = graph.ops[name]
            if op.inputs:
                df = drawn(op, [frame(up) for up in op.inputs])
            else:
                df = source_frame(session, op, graph.live.get(name))
            frames[name] = df.alias(name) if name in names else df
        return frames[name]

    def drawn(op: Op, inputs: list[DataFrame]) -> DataFrame:
        match op:
            case ops.Sample():
                return inputs[0].sample(op.replacement, op.fraction, op.seed)
            case ops.Split():
                return inputs[0].randomSplit(list(op.weights), op.seed)[op.part]
        return apply_native(op, inputs, "one")

    result = drawn_as_sources(graph)
    live = {n: frame(n) for n, op in result.ops.items() if is_drawn(op)}
    return Graph(result.name, result.ops, {**result.live, **live})


def schema(flow: Workflow, name: str) -> Any:
    """The schema of an operator's output, by Spark's analysis: jobs run only where a file's schema must be inferred."""
    whole = Graph("", flow._ops)
    wanted = {name, *(op.name for op in whole.upstream(name))}
    graph = Graph(flow.name, {n: op for n, op in flow._ops.items() if n in wanted}, flow._live)
    return _analysed(graph).schemas[name]


def as_sql(graph: Graph) -> Graph:
    """The graph with PySpark Columns as SQL text, where Spark confirms that both mean the same."""
    return _analysed(graph).graph


def _analysed(graph: Graph) -> Analysis:
    session = SparkSession.getActiveSession() or spark_session()
    graph = made_live(graph)
    schemas = {op.name: source_schema(session, op, graph.live.get(op.name)) for op in graph.sources}
    return analyse(session, graph, schemas)


def made_live(graph: Graph) -> Graph:
    """The graph with shorthands written out, and with Python operators loaded from their text."""
    from samovar.graph.code import function_from_code, operator_from_code

    live = dict(graph.live)
    plain = {name: op.plain() for name, op in graph.ops.items()}
    for name, op in plain.items():
        if isinstance(op, ops.Python) and name not in live:
            live[name] = operator_from_code(op)
        elif isinstance(op, ops.Batches) and name not in live:
            live[name] = function_from_code(op)
    return Graph(graph.name, plain, live)


def list_sources(
    session: SparkSession, graph: Graph, recording: Recording, note: Callable[[str], None]
) -> dict[str, Source]:
    """The sources of a run with their units; rows that cannot be read again are copied into the recording."""
    folder = recording.path / "inputs"
    fine = any(map(is_code, graph.ops.values()))
    texts = (str(text).lower() for op in graph.ops.values() for text in op.expressions())
    cuts = not any("input_file" in text for text in texts)  # a chunk has another name than its file

    def listed(number: int, op: Op) -> Source:
        live = graph.live.get(op.name)
        return list_source(session, op, number, live=live, keep_in=folder, note=note, fine=fine, cuts=cuts)

    with ThreadPoolExecutor(4) as pool:  # finding a schema is mostly waiting
        return {source.name: source for source in pool.map(listed, range(len(graph.sources)), graph.sources)}
