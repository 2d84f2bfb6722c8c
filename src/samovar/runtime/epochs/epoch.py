"""One epoch: frames in, jobs run, files in the attempt's folder, counters out. Commits nothing itself.

An epoch is idempotent: it reads what committed epochs left and writes only into its own attempt's folder, so it can be
abandoned at any instant and done again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from samovar.compile.counters import Measured, may_skip_rows
from samovar.compile.frames import EpochFrames
from samovar.compile.plan import ROWS
from samovar.compile.strategy import Change, Strategy
from samovar.graph import operators as ops
from samovar.record.log import Counters, StateFile
from samovar.record.state_files import is_mark, read_header
from samovar.record.store import slug_unique
from samovar.runtime.epochs.attempt import Attempt
from samovar.runtime.epochs.epoch_inputs import EpochInputs
from samovar.runtime.epochs.kept_frames import KeptFrames
from samovar.runtime.epochs.row_counts import RowCounts, observed
from samovar.runtime.epochs.variant_storage import whole_variants
from samovar.runtime.exchange.decisions import RecordedDecision
from samovar.runtime.exchange.task import Task
from samovar.runtime.failures.failed_epoch import raise_carried, raise_failures
from samovar.runtime.failures.spark_errors import SPARK_ERRORS
from samovar.runtime.live.row_repair import mend
from samovar.runtime.parquet_files import rows_in, stored_as, writer_into
from samovar.runtime.spark.job_tags import tagged

__all__ = ["Epoch", "EpochOutcome", "mends_of"]

_LOOK = 0.005
"""Seconds between two looks whether workers have begun."""


@dataclass(frozen=True)
class EpochOutcome:
    """What an epoch did, ready to be committed."""

    counters: dict[str, Counters]
    state: dict[str, tuple[StateFile, ...]]
    rejected: dict[str, int]
    seconds: float


def mends_of(decisions: Iterable[RecordedDecision], counts: RowCounts | None = None) -> dict[str, Change]:
    """For each operator whose input lost or replaced rows, what does so; the rows are counted before."""
    by_operator: dict[str, list[RecordedDecision]] = {}
    for decision in decisions:
        by_operator.setdefault(decision.operator, []).append(decision)

    def mended(name: str, df: DataFrame) -> DataFrame:
        if counts is not None:
            df = counts.observe((name, 0), df, F.count(F.lit(1)))
        return mend(df, by_operator[name])

    return {name: partial(mended, name) for name in by_operator}


class Epoch:
    """An attempt at an epoch, ready to run.

    `complete`: what workers are sent beyond what the run itself knows. `jobs`: what computes the attempt instead of
    Spark; returns what it counted.
    """

    def __init__(
        self,
        attempt: Attempt,
        *,
        complete: Callable[[Task], Task] | None = None,
        jobs: Callable[[Attempt], Measured] | None = None,
    ) -> None:
        self._jobs = jobs
        context = attempt.context
        mended = attempt.mended
        self.attempt = attempt
        self.context = context
        self.plan = attempt.plan
        self.number = attempt.number
        self.folder = attempt.folder
        self.counts = RowCounts(attempt, {d.operator for d in mended})
        self.inputs = EpochInputs(attempt, self.counts, complete=complete)
        self.kept = KeptFrames()
        strategy = Strategy(
            counted=self.counts.counted,
            tallying={name: partial(self.counts.tallied, name) for name in self.counts.tallying},
            mends=mends_of(mended, self.counts),
            keep=self.kept.keep,
            build_side=partial(context.progress.build_sides.keep, attempt.covers),
        )
        self.frames = EpochFrames(self.plan, attempt.number, attempt.covers, self.inputs, strategy)
        self._written: dict[str, tuple[Observation, int]] = {}
        """Of aggregates: what counts the rows of its delta, and the rows its files hold."""
        self.submitted = threading.Event()
        """Set when the epoch gives its first job to Spark in its turn, or has failed before."""
        self._ended = threading.Event()
        """Set when its jobs are done, or will not be done."""
        self.before: Epoch | None = None
        """The epoch before it, while that one runs."""
        self.behind: Callable[[], None] = lambda: None
        """Called when its jobs are done: another epoch may begin."""
        self.working: str | None = None
        """The operator whose rows are being written."""
        self._began = time.perf_counter()

    def run(self) -> EpochOutcome:
        """Run the epoch's jobs. Raises when one fails; the attempt's folder then does not count."""
        self.compute()
        return self.outcome()

    def restart_clock(self) -> None:
        """Count the epoch's seconds from now on: an epoch before it ended just now."""
        self._began = time.perf_counter()

    def compute(self) -> None:
        """Run the epoch's jobs, on any thread."""
        self.restart_clock()
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.attempt.turn is not None:
            self.attempt.turn_folder.mkdir(exist_ok=True)
        try:
            with tagged(self.context.spark, self.context.tag), tagged(self.context.spark, self.attempt.name):
                if self._jobs is None:
                    self._run_jobs()
                else:
                    self.counts.measured.update(self._jobs(self.attempt))
            self.behind()
        finally:
            self.end()
            self.counts.close()
            self.kept.release()

    def wait_for_room(self) -> None:
        """Return when the epoch behind this one may give jobs to Spark.

        Spark runs jobs in the order in which it gets them. Where Python workers wait for rows, these come by a job
        before the workers' own: the epoch behind comes when the first worker has begun. It takes the other cores while
        that one still reads and sorts.
        """
        while not self._ended.wait(_LOOK):
            if self.submitted.is_set() and (not self.inputs.late or self.inputs.arrived()):
                return

    def end(self) -> None:
        """Let go who waits for this epoch: its jobs are done, or will not be done."""
        self.submitted.set()
        self._ended.set()

    def outcome(self) -> EpochOutcome:
        """What the epoch did, when its jobs are done and the epochs before it are committed."""
        with tagged(self.context.spark, self.context.tag):
            rejected = self.inputs.write_rejected()
        state = self._collect_state()
        return EpochOutcome(self.counts.totals(), state, rejected, time.perf_counter() - self._began)

    def _run_jobs(self) -> None:
        self.context.group(self.attempt.name)
        try:
            for name in self.plan.graph.ops:
                self._run_terminal(name)
                raise_failures(self.attempt)  # a job whose user code failed ends well: see worker/entry.py
            self._run_skipped_rows()
            raise_failures(self.attempt)
            self.counts.measure()
        except SPARK_ERRORS as error:
            raise_carried(self.attempt, error)
            with contextlib.suppress(*SPARK_ERRORS):  # the session may be gone
                self.inputs.check_files()
            raise
        finally:
            self.context.group(None)

    # --- writing ----------------------------------------------------------------------------------------------------

    def _works_on(self, level: int) -> bool:
        return self.attempt.covers.low <= level <= self.attempt.covers.high

    def _run_terminal(self, name: str) -> None:
        placement, measured = self.plan.placement, self.counts.measured
        at = placement.level[name]
        if not self._works_on(at):
            return
        op = self.plan.graph.ops[name]
        self.working = name
        if placement.ends(name) and name in self.attempt.stored:
            if self.plan.shape(name) == "accumulate":
                stored = F.count(F.lit(1)).alias("stored")
                df = self.counts.observe((name, 0), self.frames.stored_partial(name), F.sum(ROWS), stored)
                rows = self._write("deltas", name, df)
                self._written[name] = (self.counts.observations[name, 0][0], rows)
            else:
                for port in range(len(op.inputs)):
                    df = self.frames.kept(name, port)
                    measured[name, port] = self._write("deltas", f"{name}.{port}", df)
        elif placement.is_sink(name):
            df = self.frames.stream(name, at)
            if isinstance(op, ops.Write):
                self._write_result(op, df)
            else:
                measured[name, 0] = self._write("results", name, df, physical=False)
        if name in placement.stashed and placement.works(name, at):
            measured[name, None] = self._write("stash", name, self.frames.stream(name, at))

    def _submit(self) -> None:
        """Called before a job is given to Spark."""
        if self.before is not None:
            self.before.wait_for_room()
            self.before = None
        self.submitted.set()

    def _write(self, kind: str, name: str, df: DataFrame, *, physical: bool = True) -> int:
        """Write a frame as Parquet and return how many rows that were."""
        self.context.describe(f"epoch {self.number}, {name}")
        folder = self.folder / kind / slug_unique(name)
        if physical:
            df = df.toDF(*stored_as(df.schema).names)
        with nullcontext() if physical else whole_variants(self.context.spark, df.schema):
            self._submit()
            writer_into(folder, df.write).parquet(str(folder))
        return rows_in([folder])

    def _write_result(self, op: ops.Write, df: DataFrame) -> None:
        self.context.describe(f"epoch {self.number}, {op.name}")
        df = self.counts.observe((op.name, 0), df, F.count(F.lit(1)))
        folder = self.folder / "results" / slug_unique(op.name)
        writer = df.write.format(op.format).options(**op.options)
        writer = writer.partitionBy(*op.partition_by) if op.partition_by else writer
        writer = writer_into(folder, writer) if op.format in ops.FILE_FORMATS else writer
        self._submit()
        writer.save(str(folder))

    def _run_skipped_rows(self) -> None:
        """A state must have seen all tuples of the epoch, also those whose outputs nothing asked for."""
        for tail, chain in self.plan.chains.items():
            at = self.plan.placement.level[tail]
            working = self._works_on(at) and self.plan.placement.works(tail, at)
            if not working or not may_skip_rows(self.plan, tail, self.attempt.stored):
                continue
            folder = self.folder / "state" / slug_unique(chain[0])
            if sum(1 for _ in folder.glob("ran-*")) < self.plan.partitions(chain[0]):
                self.context.describe(f"epoch {self.number}, {tail}")
                self.frames.stream(tail, at).write.format("noop").mode("overwrite").save()

    def _collect_state(self) -> dict[str, tuple[StateFile, ...]]:
        """The state files that workers wrote; their headers count what Python operators took and gave."""
        state: dict[str, tuple[StateFile, ...]] = {}
        for name, op in self.plan.graph.ops.items():
            folder = self.folder / "state" / slug_unique(name)
            if not isinstance(op, ops.Python) or not (folder.is_dir() or self._is_due(name)):
                continue
            files = []
            taken = [0] * len(op.inputs)
            given = 0
            for path in sorted(p for p in folder.glob("[0-9]*.*") if not is_mark(p)):
                header = read_header(path, check=False)  # it was written just now
                files.append(StateFile(header.bucket, header.full, path.stat().st_size, header.entries))
                if not header.full:  # a full one repeats what the deltas count
                    taken = [a + b for a, b in zip(taken, header.taken, strict=True)]
                    given += header.given
            if files:
                state[name] = tuple(sorted(files, key=lambda f: (f.bucket, f.full)))
            for port, n in enumerate(taken):
                self.counts.measured[name, port] = n
            self.counts.measured[name, None] = given
        return state

    def _is_due(self, name: str) -> bool:
        """Whether a Python operator leaves state files in this epoch, if it takes any rows."""
        covers = self.attempt.covers
        works = any(self.plan.placement.works(name, at) for at in range(covers.low, covers.high + 1))
        return self.plan.shape(name) == "python" and works

    # --- checks before a commit -------------------------------------------------------------------------------------

    def recomputed(self) -> bool:
        """Whether Spark computed part of the epoch twice because an executor died; asked after `run`.

        Results and state files count once all the same, but a counter in the plan of a shuffle's map side counts each
        time. Spark shows it as a stage with a second attempt or more completed tasks than it has, or, with adaptive
        execution (which runs each stage as a job), as a job in which more than one stage did work.
        """
        spark = getattr(self.context.spark, "sparkContext", None)
        counts = bool(self.counts.observations or self.inputs.corrupt)
        if spark is None or spark.master.startswith("local") or not counts:
            return False
        tracker = spark.statusTracker()
        adaptive = self.context.spark.conf.get("spark.sql.adaptive.enabled", "true") == "true"
        for number in tracker.getJobIdsForGroup(self.attempt.name):
            job = tracker.getJobInfo(number)
            stages = [tracker.getStageInfo(s) for s in job.stageIds] if job is not None else []
            ran = [s for s in stages if s is not None and s.numCompletedTasks + s.numFailedTasks]
            if any(s.currentAttemptId > 0 or s.numCompletedTasks > s.numTasks for s in ran):
                return True
            if adaptive and len(ran) > 1:
                return True
        return False

    def files_written(self) -> dict[str, tuple[int, int]]:
        """For aggregates and written results, how many rows Spark wrote, and how many their files hold.

        Results in formats whose files do not tell are skipped, unless there is no file at all.
        """
        written: dict[str, tuple[int, int]] = {}
        for name, (observation, held) in self._written.items():
            stored = observed(observation, "stored")
            if stored is not None:
                written[name] = (stored, held)
        for name, op in self.plan.graph.ops.items():
            rows = self.counts.measured.get((name, 0))
            if not isinstance(op, ops.Write) or not rows:
                continue
            folder = self.folder / "results" / slug_unique(name)
            files = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(("_", "."))]
            if op.format == "parquet":
                written[name] = (rows, rows_in({p.parent for p in files}))
            elif not files:
                written[name] = (rows, 0)
        return written
