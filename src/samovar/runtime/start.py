"""Where a run starts: a new run, a resumed run, and (for `samovar.replay.forks`) a fork.

Each of them prepares the run differently and begins it by `launch`.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from samovar.compile.analysis import analyse
from samovar.compile.plan import make_plan
from samovar.compile.samples import is_drawn
from samovar.errors import StorageProblem
from samovar.graph.workflow import Graph, Marks, OnError, Workflow
from samovar.ids import VERSION, new_run_id
from samovar.record.addresses import local_folder
from samovar.record.log import FORMAT, WHOLE_FILES, RunStarted
from samovar.record.store import History, Recording
from samovar.runtime import pickles
from samovar.runtime.epochs.run_context import Logic, RunContext, RunProgress
from samovar.runtime.failures.explanation import explain_start
from samovar.runtime.folders import new_scratch
from samovar.runtime.live.modification import code_at, expressions_at, plan_with
from samovar.runtime.plans import check_start, list_sources, log, made_live, plans_of, with_draws
from samovar.runtime.publication import check_targets
from samovar.runtime.rollback import take_up
from samovar.runtime.run import Run
from samovar.runtime.run_options import check_options, remove_if_empty
from samovar.runtime.run_thread import PreparedRun, Services
from samovar.runtime.sources.units import Source, source_schema
from samovar.runtime.spark.session import spark_session
from samovar.runtime.spark.shared_storage import SharedStorage, cores
from samovar.runtime.workflow_file import is_code, write_down

__all__ = ["first_fact", "launch", "resume", "start"]


def launch(
    recording: Recording,
    prepare: Callable[[], PreparedRun],
    services: Services,
    *,
    interactive: bool | None = None,
    remove: Path | None = None,
) -> Run:
    """Prepare a run and begin it: the one way for new runs, resumed runs and forks.

    When it cannot be prepared, the recording is closed and, if it is new, removed (`remove`: the folder).
    """
    try:
        prepared = prepare()
    except BaseException:
        recording.close()
        if remove is not None:
            shutil.rmtree(remove, ignore_errors=True)
        raise
    return Run(prepared, services, interactive=interactive)


def first_fact(
    recording: Recording,
    workflow: str,
    options: dict[str, Any],
    sources: Iterable[Source],
    *,
    at: float,
    spark: str = spark_version,
    parent: str | None = None,
) -> RunStarted:
    """The first fact of a run's log."""
    return RunStarted(
        at=at,
        format=FORMAT,
        reader=FORMAT if any(source.grain for source in sources) else WHOLE_FILES,
        run=recording.run_id,
        workflow=workflow,
        samovar=VERSION,
        spark=spark,
        python=platform.python_version(),
        options=options,
        parent=parent,
    )


# --- a new run ------------------------------------------------------------------------------------------------------


def start(
    flow: Workflow,
    services: Services,
    *,
    spark: SparkSession | None = None,
    record: str | os.PathLike[str] | bool = "runs",
    tau: float = 2.0,
    marks: Marks = "tau",
    on_error: OnError = "fail",
    master: str | None = None,
    conf: dict[str, str] | None = None,
    epoch_bytes: int | None = None,
    interactive: bool | None = None,
    key_partitions: int | None = None,
    run_id: str | None = None,
) -> Run:
    """Start a run and return at once; see `Workflow.start`."""
    check_options(
        tau=tau,
        marks=marks,
        on_error=on_error,
        epoch_bytes=epoch_bytes,
        key_partitions=key_partitions,
        record=record,
        run_id=run_id,
    )
    graph = made_live(flow.graph())
    check_targets(graph)
    scratch = new_scratch() if record is False else None
    root = scratch or local_folder("runs" if isinstance(record, bool) else os.fspath(record))
    new = not root.exists()
    recording = Recording.create(root.absolute() / (run_id or new_run_id(flow.name)), durable=scratch is None)
    options = {"tau": tau, "marks": marks, "epoch_bytes": epoch_bytes, "on_error": on_error}

    def prepare() -> PreparedRun:
        session = spark if spark is not None else spark_session(master=master, conf=conf)
        return _new_run(recording, session, graph, options, key_partitions, scratch)

    try:
        return launch(recording, prepare, services, interactive=interactive, remove=scratch or recording.path)
    except BaseException as error:
        if new:
            remove_if_empty(root)
        if isinstance(error, Exception) and (known := explain_start(spark, error)) is not None:
            raise known from None
        if isinstance(error, OSError):
            raise StorageProblem(f"The recording {recording.path} could not be started: {error}.") from error
        raise


def _new_run(
    recording: Recording,
    session: SparkSession,
    graph: Graph,
    options: dict[str, Any],
    key_partitions: int | None,
    scratch: Path | None,
) -> PreparedRun:
    notices = [""]

    def note(text: str) -> None:
        notices.append(text)
        log.info(text)

    storage = SharedStorage(session, recording.path, python=any(map(is_code, graph.ops.values())))
    storage.check()  # first, since rows of some sources are written into the recording
    written = None
    if any(is_drawn(op) for op in graph.ops.values()):
        # The operators before a sample are checked and recorded, but are not part of the run.
        schemas = {op.name: source_schema(session, op, graph.live.get(op.name)) for op in graph.sources}
        written = analyse(session, graph, schemas).graph
        note("draws samples")
        graph = with_draws(session, written)
    sources = list_sources(session, graph, recording, note)
    storage.check_sources(sources.values())
    analysis = analyse(session, graph, {n: s.struct for n, s in sources.items()})
    buckets, now = key_partitions or max(4, 2 * cores(session)), time.time()
    settings = {
        "buckets": buckets,
        "parallelism": max(2, cores(session)),
        "now": int(now * 1_000_000),
        "defers": True,
    }
    sizes = {n: s.size for n, s in sources.items()}
    plan = make_plan(session, analysis, sizes, buckets=buckets, settings=settings)
    code = {n: pickles.by_value(live, n) for n, live in plan.graph.live.items() if is_code(plan.graph.ops[n])}
    write_down(recording, written or analysis.graph, sources, code)
    fact = first_fact(recording, graph.name, {**options, **settings}, sources.values(), at=now)
    assert recording.log is not None
    recording.log.append(msgspec.structs.replace(fact, files=recording.sealed_start()))
    progress = RunProgress(recording.history(), storage)
    context = RunContext(session, sources, recording, recording.run_id, Logic(plan, code), progress)
    return PreparedRun(context, scratch=scratch, notice=notices[-1])


# --- a run that is resumed ------------------------------------------------------------------------------------------


def resume(
    path: str | os.PathLike[str],
    services: Services,
    *,
    spark: SparkSession | None = None,
    flow: Workflow | None = None,
    master: str | None = None,
    conf: dict[str, str] | None = None,
    interactive: bool | None = None,
) -> Run:
    """Go on after the last committed epoch; see `Past.resume`."""
    recording = Recording.open(path, write=True)

    def prepare() -> PreparedRun:
        history = recording.history()
        check_start(history)  # before Spark is started, which takes seconds
        session = spark if spark is not None else spark_session(master=master, conf=conf)
        return _resumed_run(recording, history, session, flow)

    return launch(recording, prepare, services, interactive=interactive)


def _resumed_run(
    recording: Recording, history: History, session: SparkSession, flow: Workflow | None
) -> PreparedRun:
    plans = plans_of(recording, history, session, flow=flow)
    notice = take_up(recording, history, plans.plan.graph)
    if notice:
        log.warning("run %s: %s", recording.run_id, notice)
    code, expressions = plans.code, {}
    if flow is None:  # the user's workflow already has the code to go on with
        code = code_at(recording, history, plans.code, len(history.epochs))
        expressions = expressions_at(recording, history, code, len(history.epochs))
    plan = plan_with(session, plans.plan, plans.sources, expressions)
    logic = Logic(plan, code, expressions)
    context = RunContext(session, plans.sources, recording, recording.run_id, logic, RunProgress(history))
    return PreparedRun(context, notice=notice)
