"""Runs as people handle them: `start` and `Run`."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from samovar.compile.analysis import analyse
from samovar.compile.plan import make_plan
from samovar.compile.samples import is_drawn
from samovar.control.events import StopRequested
from samovar.errors import RecordingInUse, RunError, RunStopped, StorageProblem, UnknownName
from samovar.graph import operators as ops
from samovar.graph.workflow import Workflow
from samovar.ids import VERSION, new_run_id
from samovar.record.addresses import local_folder
from samovar.record.log import (
    FORMAT,
    EpochCommitted,
    InteractionsMade,
    RunEnded,
    RunStarted,
)
from samovar.record.store import Recording
from samovar.runtime import pickles
from samovar.runtime.chart_points import chart_data
from samovar.runtime.epochs.checkpoint_policy import Policy
from samovar.runtime.epochs.epoch import RunContext
from samovar.runtime.epochs.epoch_runner import run_levels, streams_of
from samovar.runtime.epochs.pacer import Pacer
from samovar.runtime.exchange.decisions import standing_decisions
from samovar.runtime.failures.explanation import explain_failure, explain_start
from samovar.runtime.failures.failed_epoch import failed_fact
from samovar.runtime.folders import new_scratch
from samovar.runtime.live.commands import Commands
from samovar.runtime.live.interactions import Interactions
from samovar.runtime.live.remote_commands import open_door
from samovar.runtime.live.run_control import Steering
from samovar.runtime.live.watches import Watching
from samovar.runtime.plans import list_sources, made_live, with_draws
from samovar.runtime.progress import Progress, Status
from samovar.runtime.publication import check_targets, publish
from samovar.runtime.run_options import check_options, remove_if_empty
from samovar.runtime.sources.rejected_rows import read_rejected, rejection
from samovar.runtime.sources.units import source_schema
from samovar.runtime.spark.job_tags import cancel_tagged
from samovar.runtime.spark.session import spark_session
from samovar.runtime.spark.shared_storage import SharedStorage, cores
from samovar.runtime.summary import read_result, recorded_progress
from samovar.runtime.workflow_file import is_code, read_graph, write_down

__all__ = ["Run", "start"]

log = logging.getLogger("samovar")


def start(
    flow: Workflow,
    *,
    spark: SparkSession | None = None,
    record: str | os.PathLike[str] | bool = "runs",
    tau: float = 2.0,
    marks: Policy = "tau",
    on_error: str = "fail",
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
    run = run_id or new_run_id(flow.name)
    scratch = record is False
    chosen = "runs" if isinstance(record, bool) else os.fspath(record)
    root = new_scratch() if scratch else local_folder(chosen)
    new = not root.exists()
    recording = Recording.create(root.absolute() / run, durable=not scratch)
    options = {
        "tau": tau,
        "marks": marks,
        "epoch_bytes": epoch_bytes,
        "on_error": on_error,
    }
    made = Run(recording, scratch=root if scratch else None)
    try:
        session = spark if spark is not None else spark_session(master=master, conf=conf)
        storage = SharedStorage(session, recording.path, python=any(map(is_code, graph.ops.values())))
        storage.check()  # first, since rows of some sources are written into the recording
        written = None
        if any(is_drawn(op) for op in graph.ops.values()):
            # what samples are drawn from is checked and written down, but is not part of the run
            schemas = {op.name: source_schema(session, op, graph.live.get(op.name)) for op in graph.sources}
            written = analyse(session, graph, schemas).graph
            made._note("draws samples")
            graph = with_draws(session, written)
        sources = list_sources(session, graph, recording, made._note)
        storage.check_sources(sources.values())
        analysis = analyse(session, graph, {n: s.struct for n, s in sources.items()})
        buckets = key_partitions or max(4, 2 * cores(session))
        now = time.time()
        settings = {"buckets": buckets, "parallelism": max(2, cores(session)), "now": int(now * 1_000_000)}
        plan = make_plan(
            session, analysis, {n: s.size for n, s in sources.items()}, buckets=buckets, settings=settings
        )
        pickled = {
            n: pickles.by_value(live, n) for n, live in plan.graph.live.items() if is_code(plan.graph.ops[n])
        }
        write_down(recording, written or analysis.graph, sources, pickled)
        assert recording.log is not None
        recording.log.append(
            RunStarted(
                at=now,
                format=FORMAT,
                run=run,
                workflow=flow.name,
                samovar=VERSION,
                spark=spark_version,
                python=platform.python_version(),
                options={**options, **settings},
                files=recording.sealed_start(),
            )
        )
    except BaseException as error:
        recording.close()
        shutil.rmtree(root if scratch else recording.path, ignore_errors=True)
        if new:
            remove_if_empty(root)
        if isinstance(error, Exception) and (known := explain_start(spark, error)) is not None:
            raise known from None
        if isinstance(error, OSError):
            raise StorageProblem(f"The recording {recording.path} could not be started: {error}.") from error
        raise
    context = RunContext(
        session, plan, sources, recording, recording.history(), pickled, run, storage=storage
    )
    made._begin(context, epoch_bytes, interactive)
    return made


class Run(Commands, Watching):
    """A run that goes on, or has ended. All methods can be called from any thread."""

    def __init__(self, recording: Recording, *, scratch: Path | None = None) -> None:
        Watching.__init__(self)
        self._recording = recording
        self._scratch = scratch
        self._status: Status = "starting"
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._stop = threading.Event()
        self._context: RunContext | None = None
        self._steering: Steering | None = None
        self._started = time.time()
        self._seconds: float | None = None
        self._last: EpochCommitted | None = None
        self._listeners: list[Callable[[Progress], None]] = []
        self._watchers = 0
        self._told_rejected = False
        self._message = ""
        self._thread: threading.Thread | None = None
        self._interactions = Interactions(len(recording.history().interactions) if recording.log else 0)

    def __repr__(self) -> str:
        return f"Run({self.id!r}, {self.status})"

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The run's name; also the name of its folder."""
        return self._recording.run_id

    @property
    def error(self) -> BaseException | None:
        """What ended the run, if it failed."""
        return self._error

    @property
    def recording(self) -> Path | None:
        """The folder of the recording; None when nothing is recorded."""
        return None if self._scratch is not None else self._recording.path

    @property
    def progress(self) -> Progress:
        """Counters of every operator, as of the last committed epoch."""
        return progress_of(self)

    def on_progress(self, listener: Callable[[Progress], None]) -> None:
        """Have a function called after each epoch, on the run's thread."""
        self._listeners.append(listener)

    def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> Run:
        """Wait for the end. Raises what made the run fail. `progress`: a bar (default: when a terminal is there)."""
        show = progress if progress is not None else sys.stderr.isatty()
        if show and not self._ended.is_set():
            from samovar.runtime.display import follow

            self._watchers += 1
            try:
                follow(self, timeout)
            finally:
                self._watchers -= 1
        elif not self._ended.wait(timeout):
            raise TimeoutError(f"run {self.id} has not ended after {timeout} s")
        self._tell_rejected(shown=show)
        if self._error is not None:
            raise self._error
        return self

    def _tell_rejected(self, *, shown: bool) -> None:
        """Warn, once, of rows that are not in the results. `shown`: the progress display has done so."""
        if self._context is None or self._told_rejected:
            return
        self._told_rejected = True
        for name, rows in {} if shown else self._context.history.rejected().items():
            log.warning(rejection(name, rows, self._context.sources.get(name)))

    def stop(self) -> None:
        """Stop the run and wait until it has stopped. Committed epochs are kept; the run can be resumed."""
        self._stop.set()
        if self._steering is not None:
            self._steering.desk.ask(lambda name: StopRequested(command=name))
        if self._context is not None:
            cancel_tagged(self._context.spark, self._context.tag)
        self._ended.wait()

    def result(self, sink: str = "S") -> pa.Table:
        """The rows a sink kept, as a pyarrow Table; waits for the end."""
        self.wait(progress=False)
        assert self._context is not None
        return read_result(self._recording, self._context.history, self._context.plan.graph, sink)

    def chart(self, name: str) -> dict[str, Any]:
        """What a `chart` operator shows of the epochs committed so far: its series and points, as plain data."""
        return chart_data(self._recording, self._recording.history(), read_graph(self._recording), name)

    def rejected(self, source: str) -> pa.Table:
        """Rows of a source that did not parse, of the epochs committed so far: file, line, text.

        For a Python operator: the tuples that were skipped, as epoch, error and row.
        """
        return read_rejected(self._recording, source)

    # --- interactions -----------------------------------------------------------------------------------------------

    def interact(self, operator: str, note: str = "", *, every: float | None = None) -> str | None:
        """Mark this moment, without pausing: the global state after the tuple the operator is at. Returns its name.

        The state itself is looked at later: `sv.open(...).jump("I1")`. `every`: mark a moment every so many seconds.
        """
        names = self._operator_names()
        if operator not in names:
            raise UnknownName(operator, names, what="an operator of the run")
        if every is not None:
            if every <= 0:
                raise RunError(f"Expected a time above 0 seconds, got {every}.", operator=operator)
            self._interactions.every(operator, every, note)
            return None
        name = self._interactions.ask(operator, note)
        if self._ended.is_set():
            raise RunError(
                "The run has ended: there is nothing to mark.",
                operator=operator,
                hint="Go to any moment of it: sv.open(run.recording).jump(...).",
            )
        return name

    def _operator_names(self) -> list[str]:
        return list(self._context.plan.graph.ops) if self._context is not None else []

    def _place_interactions(self, fact: EpochCommitted, *, end: bool = False) -> None:
        context = self._context
        assert context is not None
        made = self._interactions.placed(fact, lambda: context.history.totals(fact.epoch), end=end)
        if made and context.recording.log is not None:
            noted = InteractionsMade(at=time.time(), made=made)
            context.recording.log.append(noted)
            context.history.add(noted)

    # --- running ----------------------------------------------------------------------------------------------------

    def _note(self, text: str) -> None:
        self._message = text
        log.info(text)

    def _warn(self, text: str) -> None:
        """Have a person know: in `progress.note`, and where the program's warnings go."""
        self._message = text
        log.warning("run %s: %s", self.id, text)

    def _begin(
        self,
        context: RunContext,
        epoch_bytes: int | None,
        interactive: bool | None,
        *,
        before: Callable[[Callable[[], bool]], None] | None = None,
        publishes: bool = True,
    ) -> None:
        """Run in a thread. `before` comes first, and is told how to see whether the run is to stop."""
        self._context = context
        self._steering = context.steering = Steering(
            context.tag,
            context.spark,
            stop=self._stop.set,
            note=self._record,
            totals=context.history.totals(),
        )
        before_it = standing_decisions(context.history)
        if before_it is not None:
            self._steering.desk.report(before_it)
        door = open_door(self, context.recording.path)
        self._status = "running"

        def watching() -> bool:
            return interactive if interactive is not None else self._watchers > 0

        def work() -> None:
            try:
                if before is not None:
                    before(self._stop.is_set)
                run_levels(
                    context,
                    lambda level: _pacer(context, level, epoch_bytes),
                    watching=watching,
                    stopping=self._stop.is_set,
                    committed=self._committed,
                )
                if context.steering is not None and not context.steering.wait_open():
                    raise RunStopped("The run was stopped.")
                self._finish_interactions(context)
                if publishes:
                    publish(context)
                self._end("completed")
            except BaseException as error:
                self._fail(context, error)
            finally:
                try:
                    context.forget_shared()
                    self._recording.close()
                except Exception:  # a session that died, say: the run has ended all the same
                    log.debug("run %s: clearing up failed", self.id, exc_info=True)
                finally:
                    try:
                        if door is not None:
                            door.close()
                        if context.steering is not None:
                            context.steering.close("" if self._error is None else str(self._error)[:400])
                    finally:
                        self._ended.set()

        self._thread = threading.Thread(target=work, name=f"samovar-{self.id}", daemon=True)
        self._thread.start()

    def _finish_interactions(self, context: RunContext) -> None:
        for watch in list(self._watches.values()):
            watch.finish()
        if context.history.epochs:
            self._place_interactions(context.history.epochs[-1], end=True)

    def _committed(self, fact: EpochCommitted) -> None:
        self._last = fact
        self._place_interactions(fact)
        self._look_through(fact)
        log.info("run %s: epoch %d committed in %.2f s", self.id, fact.epoch, fact.seconds)
        for listener in self._listeners:
            listener(self.progress)

    def _fail(self, context: RunContext, error: BaseException) -> None:
        if self._stop.is_set():
            error = RunStopped(
                "The run was stopped.", hint=f"Go on with sv.open({str(self._recording.path)!r}).resume()."
            )
        try:
            self._error = explain_failure(context, error)
        except BaseException as second:  # the explanation itself failed: show the first error
            log.debug("could not explain a failure", exc_info=second)
            self._error = error
        if isinstance(error, RecordingInUse):  # what lies there is the other's by now
            self._recording.close()
        self._log_failure(context)
        log.debug("run %s failed:\n%s", self.id, "".join(traceback.format_exception(error)))
        try:
            if self._recording.log is not None:
                self._recording.sweep(failed=True)  # the rest of half an epoch is of no use to anybody
        except Exception:
            log.debug("run %s: the failed attempt could not be removed", self.id, exc_info=True)
        self._end("stopped" if isinstance(self._error, RunStopped) else "failed")

    def _log_failure(self, context: RunContext) -> None:
        """What the failed epoch covered, so that its failure can be looked at later."""
        if self._stop.is_set() or self._recording.log is None:
            return
        try:
            fact = failed_fact(context)
            if fact is None:
                return
            self._finish_interactions(context)
            self._recording.log.append(fact)
        except Exception:
            log.debug("the failed epoch could not be logged", exc_info=True)

    def _end(self, status: Status) -> None:
        error = self._error
        self._seconds = time.time() - self._started
        if self._recording.log is not None:
            try:
                self._recording.log.append(
                    RunEnded(
                        at=time.time(),
                        status=status,
                        error=None if error is None else str(error)[:4000],
                        operator=getattr(error, "operator", None),
                    )
                )
            except StorageProblem:
                log.debug("the end could not be logged", exc_info=True)
        self._status = status
        if self._scratch is not None and status != "completed":
            shutil.rmtree(self._scratch, ignore_errors=True)

    def __del__(self) -> None:
        if self._scratch is not None and self._ended.is_set():
            shutil.rmtree(self._scratch, ignore_errors=True)


# --- helpers ------------------------------------------------------------------------------------------------


def _pacer(context: RunContext, level: int, epoch_bytes: int | None) -> Pacer:
    plan = context.plan
    whole = plan.placement.build_weight(level, {n: s.size for n, s in context.sources.items()})
    python = [
        n for n in plan.graph.ops if plan.shape(n) in ("python", "batches") and plan.placement.works(n, level)
    ]
    filtered = all(any(isinstance(up, ops.Filter) for up in plan.graph.upstream(n)) for n in python)
    return Pacer.for_level(whole, python=bool(python), filtered=filtered, fixed_bytes=epoch_bytes)


def progress_of(run: Run) -> Progress:
    """A run's progress from its committed epochs."""
    context = run._context
    if context is None:
        return Progress(run.id, "", run.status, 0, 0.0, time.time() - run._started, note=run._message)
    seconds = run._seconds if run._seconds is not None else time.time() - run._started
    made = recorded_progress(
        context.recording, context.history, context.plan.graph.ops.values(), run.status, seconds
    )
    fraction = 1.0 if run.status == "completed" else _fraction(context)
    return replace(made, fraction=fraction, note=run._message)


def _fraction(context: RunContext) -> float:
    total = done = 0
    for level in range(context.plan.placement.levels):
        for stream in streams_of(context, level):
            if stream.name in context.sources:
                total += sum(stream.sizes)
                done += sum(stream.sizes[: stream.taken])
    return done / total if total else 0.0
