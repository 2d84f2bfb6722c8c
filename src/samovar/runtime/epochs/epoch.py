"""One epoch: frames in, jobs run, files in the attempt's folder, counters out. Commits nothing itself.

An epoch is idempotent: it reads what committed epochs left and writes only into its own attempt's folder, so it can be
abandoned at any instant and done again.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from samovar.compile.counters import Measured, add_up, counted_apart, needs_counter, tallying
from samovar.compile.frames import Frames
from samovar.compile.plan import ROWS, Plan
from samovar.graph import operators as ops
from samovar.positions import Position
from samovar.record.log import Counters, EpochCommitted, EpochFailed, StateFile
from samovar.record.state_files import is_mark, read_header
from samovar.record.store import LOG, History, Recording, slug_unique
from samovar.runtime.epochs.checkpoint_policy import Policy
from samovar.runtime.epochs.variant_storage import whole_variants
from samovar.runtime.exchange.decisions import RecordedDecision
from samovar.runtime.exchange.task import MARK_SHARE, Control, Stage, Task, Version
from samovar.runtime.exchange.user_errors import Failure
from samovar.runtime.failures.failed_epoch import raise_carried, raise_failures
from samovar.runtime.failures.spark_errors import SPARK_ERRORS
from samovar.runtime.live.row_repair import mend
from samovar.runtime.live.run_control import Steering
from samovar.runtime.parquet_files import CHECKED, rows_in, stored_as
from samovar.runtime.sources.input_files import check_files
from samovar.runtime.sources.rejected_rows import bad_rows
from samovar.runtime.sources.units import CORRUPT, Source, Unit, is_bad, read_units
from samovar.runtime.spark.job_tags import tagged
from samovar.runtime.spark.shared_storage import SharedStorage
from samovar.runtime.worker.entry import batches_function, chain_function
from samovar.text import quote_name

__all__ = ["Epoch", "EpochRange", "Outcome", "RunContext"]

log = logging.getLogger("samovar.epoch")


@dataclass(frozen=True)
class EpochRange:
    """What an epoch covers: levels, the units its sources read, and whether it is its level's first or last."""

    low: int
    high: int
    units: dict[str, tuple[int, int]]
    first: bool
    last: bool
    marks: tuple[Position, ...] = ()
    """Positions at which the state of Python operators is kept on the way."""


@dataclass
class RunContext:
    """What all epochs of a run share. `shared` holds build sides kept for the level that is being run."""

    spark: SparkSession
    plan: Plan
    sources: dict[str, Source]
    recording: Recording
    history: History
    code: dict[str, bytes]
    tag: str
    shared: dict[str, DataFrame] = field(default_factory=dict)
    whole_inputs: dict[str, Source] = field(default_factory=dict)
    """Sources that the level reads whole."""
    range: EpochRange | None = None
    """The epoch that is being run."""
    working: str | None = None
    """The operator whose rows are being written."""
    failed: tuple[str, Failure] | None = None
    """The attempt at it in which user code failed, and the failure."""
    recorded: list[EpochCommitted] = field(default_factory=list)
    """In a replay: all epochs of the run, also those after the one that is computed again."""
    stopped: EpochFailed | None = None
    """In a replay: the epoch the run failed in."""
    steering: Steering | None = None
    """Who pauses the run, looks into its workers and decides; None: nobody."""
    mended: list[RecordedDecision] = field(default_factory=list)
    """Rows of the present epoch that Spark failed on, with what was decided about them."""
    decided: tuple[RecordedDecision, ...] = ()
    """When part of a past epoch is done again: tuples that were left out or replaced in it."""
    expressions: dict[str, bytes] = field(default_factory=dict)
    """Native operators whose expressions were modified on the way."""
    code_versions: dict[str, int] = field(default_factory=dict)
    """Versions of operators' code that was modified on the way, as workers and the desk count them."""
    storage: SharedStorage | None = None
    """Whether all workers see the run's folders; None: nobody has asked yet."""

    @property
    def tau(self) -> float:
        """Seconds within which a jump shall be answered."""
        return float(self._options.get("tau", 2.0))

    @property
    def marks_policy(self) -> Policy:
        """When the state is kept inside an epoch."""
        chosen: Policy = self._options.get("marks") or self._options.get("checkpoints", "tau")
        return chosen

    @property
    def holds(self) -> bool:
        """Whether a tuple that raises waits for a decision."""
        return self._options.get("on_error") == "hold"

    @property
    def _options(self) -> dict[str, Any]:
        return self.history.started.options if self.history.started is not None else {}

    def describe(self, text: str) -> None:
        """What the Spark UI shows for the jobs that follow, on this thread."""
        context = getattr(self.spark, "sparkContext", None)
        if context is not None:
            context.setJobDescription(f"{self.plan.graph.name}: {text}")

    def group(self, name: str | None) -> None:
        """The job group of the jobs that follow, on this thread: an attempt's, so that it can be asked about."""
        context = getattr(self.spark, "sparkContext", None)
        if context is not None:
            context.setLocalProperty("spark.jobGroup.id", name)

    def check_storage(self) -> None:
        """Raise StorageNotShared when workers do not see the run's folders; quick while the cluster is as it was."""
        if self.storage is None:
            python = any(self.plan.shape(n) in ("python", "batches") for n in self.plan.graph.ops)
            self.storage = SharedStorage(self.spark, self.recording.path, python=python)
            self.storage.check()
            self.storage.check_sources(self.sources.values())
        else:
            self.storage.check()

    def forget_shared(self) -> None:
        """Give back what was kept for a level."""
        for df in self.shared.values():
            df.unpersist()
        self.shared.clear()
        self.whole_inputs.clear()


@dataclass(frozen=True)
class Outcome:
    """What an epoch did, ready to be committed."""

    counters: dict[str, Counters]
    state: dict[str, tuple[StateFile, ...]]
    rejected: dict[str, int]
    seconds: float


class Epoch:
    """An attempt at one epoch. `_looks`: it is computed to look into only, and counts nothing."""

    _looks = False

    def __init__(
        self,
        context: RunContext,
        number: int,
        covers: EpochRange,
        *,
        attempt: str,
        jobs: Callable[[Epoch], Measured] | None = None,
    ) -> None:
        """`jobs`: what computes the epoch instead of Spark; returns what it counted."""
        self._jobs = jobs
        self.context = context
        self.spark = context.spark
        self.plan = context.plan
        self.number = number
        self.low = covers.low
        self.high = covers.high
        self.units = covers.units
        self.first = covers.first
        self.last = covers.last
        self.marks = covers.marks
        self.attempt = attempt
        self.control: Control | None = None
        self.fixes: Sequence[RecordedDecision] = context.mended
        self.folder = context.recording.attempt_folder(number, attempt)
        self.frames = Frames(self.plan, self, covers.low, covers.high)
        self._observations: dict[tuple[str, int | None], tuple[Observation, DataFrame, Column]] = {}
        self._corrupt: dict[str, tuple[Observation, tuple[Unit, ...]]] = {}
        self._measured: dict[tuple[str, int | None], int] = {}
        self._inputs: list[tuple[Source, tuple[Unit, ...]]] = []
        """Input files that this epoch reads."""
        self._written: dict[str, tuple[Observation, int]] = {}
        """Of aggregates: what counts the rows of its delta, and the rows its files hold."""
        self._apart: dict[str, Future[int]] = {}
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="samovar-count")
        self._reused: list[DataFrame] = []
        self._stored = self._what_is_stored()
        self.tallying: frozenset[str] = frozenset()
        if not self._looks:
            fixed = {d.operator for d in self.fixes}
            self.tallying = tallying(self.plan, self.low, self.high, self._stored) - fixed

    # --- what the frames ask for -----------------------------------------------------------------------------------

    def slice(self, name: str) -> DataFrame:
        """The rows of a source's units that belong to this epoch, or of a stash."""
        start, stop = self.units.get(name, (0, 0))
        if start == stop:
            return self.frames._empty(name)
        source = self.context.sources.get(name)
        if source is None:
            epochs = self._stash_epochs(name)[start:stop]
            self._measured[name, None] = rows_in(self.context.recording.parts("stash", name, epochs))
            return self._read_parts("stash", name, self.frames._empty(name).schema, epochs)
        chosen = source.units[start:stop]
        if all(u.rows is not None for u in chosen) and not source.passes_over:
            self._measured[name, None] = sum(u.rows or 0 for u in chosen)
        return self.read(source, chosen, start)

    def read(self, source: Source, units: tuple[Unit, ...], first: int) -> DataFrame:
        """The rows of some units that parsed; `first` is the number of the first of them."""
        name = source.name
        self._will_read(source, units)
        df = read_units(
            self.spark, source, units, first, positions=self.plan.width[name] > 0, corrupt=source.parses
        )
        if source.parses:
            # a source may be read again on a higher level: its bad rows count once
            df = self._without_bad(name, df, units, self.low == min(self.plan.placement.streams[name]))
        return df

    def _will_read(self, source: Source, units: tuple[Unit, ...]) -> None:
        """Note what is read, and see that it is as it was listed. (A replay has looked when it was opened.)"""
        if not self._looks:
            self._inputs.append((source, units))
            check_files(source, units, None)

    def check_inputs(self) -> None:
        """Raise SourceChanged when a file that this epoch read is not as it was listed; asked after `run`."""
        read: dict[str, tuple[Source, dict[str, Unit]]] = {}
        whole = self.context.whole_inputs.values()  # also of epochs before: Spark may have read them again
        for source, units in [*self._inputs, *((s, s.units) for s in whole)]:
            read.setdefault(source.name, (source, {}))[1].update({u.path: u for u in units})
        for source, by_path in read.values():
            check_files(source, by_path.values(), self.spark)

    def _without_bad(self, name: str, df: DataFrame, units: tuple[Unit, ...], counts: bool) -> DataFrame:
        """The rows that parsed; the others are counted on the way, and fetched after the epoch if there are any."""
        bad = is_bad(df)
        if counts and name not in self._corrupt:
            observation = Observation()
            self._corrupt[name] = (observation, units)
            df = df.observe(observation, F.count_if(bad).alias("bad"))
        return df.filter(~bad).drop(CORRUPT)

    def whole(self, name: str) -> DataFrame:
        """All rows of a source or of a stash."""
        source = self.context.sources.get(name)
        if source is None:
            return self._read_parts("stash", name, self.frames._empty(name).schema, self._stash_epochs(name))
        self._will_read(source, source.units)
        self.context.whole_inputs[name] = source
        df = read_units(
            self.spark, source, source.units, 0, positions=self.plan.width[name] > 0, corrupt=source.parses
        )
        alone = self.first and not self.plan.placement.streams[name]
        if source.parses:
            here = bool(self.plan.placement.whole[name]) and min(self.plan.placement.whole[name]) >= self.low
            df = self._without_bad(name, df, source.units, alone and here)
        if alone and all(u.rows is not None for u in source.units) and not source.passes_over:
            self._measured[name, None] = sum(u.rows or 0 for u in source.units)
        return df

    def parts(self, kind: str, name: str, schema: StructType) -> DataFrame:
        """What committed epochs stored for an operator."""
        return self._read_parts(kind, name, schema, self.context.history.epochs)

    def _read_parts(
        self, kind: str, name: str, schema: StructType, epochs: Iterable[EpochCommitted]
    ) -> DataFrame:
        folders = [str(p) for p in self.context.recording.parts(kind, name, epochs)]
        if not folders:
            return self.frames._nothing(schema)
        stored = self.spark.read.schema(stored_as(schema)).options(**CHECKED).parquet(*folders)
        return stored.toDF(*schema.names)

    def _stash_epochs(self, name: str) -> list[EpochCommitted]:
        return self.context.history.epochs_on(self.plan.placement.level[name])

    def passed(self, name: str) -> tuple[int, int]:
        """How many rows an operator has taken and given in committed epochs."""
        totals = self.context.history.totals().get(name, Counters())
        return sum(totals.taken), totals.given

    def python(self, chain: tuple[str, ...]) -> Callable[..., Any]:
        """The function a Python operator (or a chain of them) runs in the workers."""
        task = self.task(chain)
        head = self.plan.graph.ops[chain[0]]
        return batches_function(task) if isinstance(head, ops.Batches) else chain_function(task)

    def task(self, chain: tuple[str, ...]) -> Task:
        """What the workers need to know of a chain."""
        context = self.context
        stages = []
        for name in chain:
            op = self.plan.graph.ops[name]
            stages.append(
                Stage(
                    name=name,
                    code=context.code[name],
                    schema=to_arrow_schema(self.plan.schemas[name], timezone=self._zone()),
                    folder=str(self.folder / "state" / slug_unique(name)),
                    versions=self._versions(name),
                    ports=len(op.inputs),
                    rank=list(self.plan.graph.ops).index(name),
                )
            )
        head = self.plan.graph.ops[chain[0]]
        arrival = isinstance(head, ops.Python) and head.order == "arrival"
        return Task(
            run=context.recording.run_id,
            epoch=self.number,
            token=self.attempt,
            stages=tuple(stages),
            positions=self.plan.width[chain[-1]],
            stateful=self.plan.shape(chain[0]) == "python",
            errors=str(self.folder / "errors"),
            sign="" if self._looks else str(context.recording.path / LOG),
            arrival=arrival,
            signs=self._may_be_left_out(chain[-1]),
            marks=self.marks if self.plan.shape(chain[0]) == "python" else (),
            mark_share=math.inf if context.marks_policy == "every" else MARK_SHARE,
            arrow=isinstance(head, ops.Batches) and head.form == "arrow",
            control=self.control,
            hold=context.holds and self.control is not None,
            decided=tuple(d for d in context.decided if d.operator in chain),
            code_versions={n: v for n, v in context.code_versions.items() if n in chain},
        )

    def _zone(self) -> str:
        """The time zone in which rows come to workers: a chain hands timestamps on in the same."""
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    def _versions(self, name: str) -> dict[int, Version]:
        """For each bucket of an operator, the files that give its state, and the names of the states on the way."""
        found = self.context.recording.state_files(name, self.context.history.epochs)
        return {
            bucket: Version(tuple(str(f) for f, _ in files), ("", *(epoch.attempt for _, epoch in files)))
            for bucket, files in found.items()
        }

    def shared(self, key: str, make: Callable[[], DataFrame], by: Sequence[str] | None = None) -> DataFrame:
        """A frame kept over the epochs of a level; not kept when the level is a single epoch.

        Laid out by the columns it is joined by, so that an epoch neither shuffles nor sorts it again.
        """
        if key not in self.context.shared:
            df = make()
            if self.first and self.last:
                return df
            if by:
                columns = [quote_name(c) for c in by]
                partitions = int(self.spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
                df = df.repartition(partitions, *columns).sortWithinPartitions(*columns)
            self.context.shared[key] = df.persist(StorageLevel.MEMORY_AND_DISK)
        return self.context.shared[key]

    def reused(self, df: DataFrame) -> DataFrame:
        """A frame read several times in this epoch, computed once."""
        kept = df.persist(StorageLevel.MEMORY_AND_DISK)
        self._reused.append(kept)
        return kept

    def counted(self, name: str, level: int | None, df: DataFrame) -> DataFrame:
        """The frame with a counter of its rows, where nothing else tells their number."""
        if level is None and not self.first:
            return df
        if isinstance(self.plan.graph.ops[name], ops.Sort) and self.plan.placement.level[name] < self.low:
            self._measured[name, None] = self.passed(name)[0]  # a sort gives what it took
            return df
        known = frozenset(n for n, port in self._measured if port is None)
        fixed = any(d.operator == name for d in self.fixes)
        if (name, None) in self._observations or not (
            fixed or needs_counter(self.plan, name, level, self._stored | self.tallying, known)
        ):
            return df
        if counted_apart(self.plan, name) and not fixed:
            if name not in self._apart:
                self._apart[name] = self._pool.submit(self._count_apart, name, df)
            return df
        return self._observe((name, None), df, F.count(F.lit(1)))

    def tallied(self, name: str, df: DataFrame) -> DataFrame:
        """An aggregate's output without the numbers of rows of its groups, which are added up on the way."""
        if (name, 0) not in self._observations:
            df = self._observe((name, 0), df, F.sum(ROWS))
        return df.drop(ROWS)

    def mended(self, name: str, df: DataFrame) -> DataFrame:
        """What an operator takes in, without rows that were left out, and with those that were replaced."""
        own = [d for d in self.fixes if d.operator == name]
        if not own:
            return df
        if not self._looks:
            df = self._observe((name, 0), df, F.count(F.lit(1)))
        return mend(df, own)

    def _observe(
        self, key: tuple[str, int | None], df: DataFrame, rows: Column, *others: Column
    ) -> DataFrame:
        observation = Observation()
        self._observations[key] = (observation, df, rows)
        return df.observe(observation, rows.alias("rows"), *others)

    def _count_apart(self, name: str, df: DataFrame) -> int:
        """Count beside the epoch's own job, on a thread of its own: its tag and group are the thread's."""
        with tagged(self.spark, self.context.tag):
            self.context.group(self.attempt)
            self.context.describe(f"epoch {self.number}, counting {name}")
            try:
                return df.count()
            finally:
                self.context.group(None)

    def _measure(self) -> None:
        """Read the counters; where Spark has optimised one away with its part of the plan, count that part apart."""
        for name, rows_of in self._apart.items():
            self._measured[name, None] = rows_of.result()
        for key, (observation, df, rows) in self._observations.items():
            found = _observed(observation, "rows")
            if found is None:
                self.context.describe(f"epoch {self.number}, counting {key[0]}")
                found = df.agg(rows).toArrow().column(0)[0].as_py() or 0
            self._measured[key] = found

    # --- running ----------------------------------------------------------------------------------------------------

    def _what_is_stored(self) -> frozenset[str]:
        stored = set()
        for name in self.plan.graph.ops:
            at = self.plan.placement.level[name]
            if not self.low <= at <= self.high:
                continue
            if self.plan.placement.ends(name):
                streaming = self.low == self.high and bool(self.plan.placement.sources(at))
                demands = self.plan.placement.streams[name] | self.plan.placement.whole[name]
                if streaming or any(level > self.high for level in demands):
                    stored.add(name)
            elif self.plan.placement.is_sink(name):
                stored.add(name)
        return frozenset(stored)

    def run(self, control: Control | None = None) -> Outcome:
        """Run the epoch's jobs. Raises when one fails; the attempt's folder then does not count.

        `control`: whom the workers announce themselves to.
        """
        self.control = control
        started = time.perf_counter()
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with tagged(self.spark, self.context.tag):
                if self._jobs is None:
                    self._run_jobs()
                else:
                    self._measured.update(self._jobs(self))
        finally:
            self.release()
        rejected = self._reject()
        state = self._collect_state()
        before = {name: c.given for name, c in self.context.history.totals().items()}
        counted = add_up(self.plan, self._measured, self.low, self.high, first=self.first, before=before)
        counters = {name: Counters(taken, given) for name, (taken, given) in counted.items()}
        return Outcome(counters, state, rejected, time.perf_counter() - started)

    def _run_jobs(self) -> None:
        self.context.group(self.attempt)
        try:
            for name in self.plan.graph.ops:
                self._run_terminal(name)
                raise_failures(self)
            self._run_what_was_left_out()
            raise_failures(self)
            self._measure()
        except SPARK_ERRORS as error:
            raise_carried(self, error)
            with contextlib.suppress(*SPARK_ERRORS):  # the session may be gone
                self.check_inputs()
            raise
        finally:
            self.context.group(None)

    def take_over(self, other: Epoch) -> None:
        """Give back what another one has kept together with one's own."""
        self._reused += other._reused

    def release(self) -> None:
        """Give back what was kept for this epoch."""
        self._pool.shutdown(cancel_futures=True)
        for df in self._reused:
            df.unpersist()

    def recomputed(self) -> bool:
        """Whether Spark computed part of the epoch twice because an executor died; asked after `run`.

        Results and state files count once all the same, but a counter in the plan of a shuffle's map side counts each
        time. Spark shows it as a stage with a second attempt or more completed tasks than it has, or, with adaptive
        execution (which runs each stage as a job), as a job in which more than one stage did work.
        """
        spark = getattr(self.spark, "sparkContext", None)
        if spark is None or spark.master.startswith("local") or not (self._observations or self._corrupt):
            return False
        tracker = spark.statusTracker()
        adaptive = self.spark.conf.get("spark.sql.adaptive.enabled", "true") == "true"
        for number in tracker.getJobIdsForGroup(self.attempt):
            job = tracker.getJobInfo(number)
            stages = [tracker.getStageInfo(s) for s in job.stageIds] if job is not None else []
            ran = [s for s in stages if s is not None and s.numCompletedTasks + s.numFailedTasks]
            if any(s.currentAttemptId > 0 or s.numCompletedTasks > s.numTasks for s in ran):
                return True
            if adaptive and len(ran) > 1:
                return True
        return False

    def _run_terminal(self, name: str) -> None:
        placement = self.plan.placement
        at = placement.level[name]
        if not self.low <= at <= self.high:
            return
        op = self.plan.graph.ops[name]
        self.context.working = name
        if placement.ends(name) and name in self._stored:
            if self.plan.shape(name) == "accumulate":
                df = self._observe(
                    (name, 0),
                    self.frames.stored_partial(name),
                    F.sum(ROWS),
                    F.count(F.lit(1)).alias("stored"),
                )
                rows = self._write("deltas", name, df)
                self._written[name] = (self._observations[name, 0][0], rows)
            else:
                for port in range(len(op.inputs)):
                    rows = self._write("deltas", f"{name}.{port}", self.frames.kept(name, port))
                    self._measured[name, port] = rows
        elif placement.is_sink(name):
            df = self.frames.stream(name, at)
            if isinstance(op, ops.Write):
                self._write_result(op, df)
            else:
                self._measured[name, 0] = self._write("results", name, df, physical=False)
        if name in placement.stashed and placement.works(name, at):
            self._measured[name, None] = self._write("stash", name, self.frames.stream(name, at))

    def _write(self, kind: str, name: str, df: DataFrame, *, physical: bool = True) -> int:
        """Write a frame as Parquet and return how many rows that were."""
        self.context.describe(f"epoch {self.number}, {name}")
        folder = self.folder / kind / slug_unique(name)
        made = df.toDF(*stored_as(df.schema).names) if physical else df
        with nullcontext() if physical else whole_variants(self.spark, made.schema):
            made.write.parquet(str(folder))
        return rows_in([folder])

    def _write_result(self, op: ops.Write, df: DataFrame) -> None:
        self.context.describe(f"epoch {self.number}, {op.name}")
        df = self._observe((op.name, 0), df, F.count(F.lit(1)))
        writer = df.write.format(op.format).options(**op.options)
        writer = writer.partitionBy(*op.partition_by) if op.partition_by else writer
        writer.save(str(self.folder / "results" / slug_unique(op.name)))

    @property
    def measured(self) -> Measured:
        """What was counted, each number in one place; asked after `run`."""
        return self._measured

    def files_written(self) -> dict[str, tuple[int, int]]:
        """For aggregates and written results, how many rows Spark wrote, and how many their files hold.

        Results in formats whose files do not tell are left out, unless there is no file at all.
        """
        found: dict[str, tuple[int, int]] = {}
        for name, (observation, held) in self._written.items():
            stored = _observed(observation, "stored")
            if stored is not None:
                found[name] = (stored, held)
        for name, op in self.plan.graph.ops.items():
            rows = self._measured.get((name, 0))
            if not isinstance(op, ops.Write) or not rows:
                continue
            folder = self.folder / "results" / slug_unique(name)
            files = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(("_", "."))]
            if op.format == "parquet":
                found[name] = (rows, rows_in({p.parent for p in files}))
            elif not files:
                found[name] = (rows, 0)
        return found

    def _may_be_left_out(self, tail: str) -> bool:
        """Whether Spark may not ask for all rows of a stateful Python operator: behind it is a join or a limit."""
        if self.plan.shape(tail) != "python":
            return False
        waiting = [tail]
        while waiting:
            for consumer, _ in self.plan.graph.consumers(waiting.pop()):
                if self.plan.shape(consumer) in ("join", "limit"):
                    return True
                if consumer not in self._stored:
                    waiting.append(consumer)
        return False

    def _run_what_was_left_out(self) -> None:
        """A state must have seen all tuples of the epoch, also those whose outputs nothing asked for."""
        for tail, chain in self.plan.chains.items():
            at = self.plan.placement.level[tail]
            working = self.low <= at <= self.high and self.plan.placement.works(tail, at)
            if not working or not self._may_be_left_out(tail):
                continue
            folder = self.folder / "state" / slug_unique(chain[0])
            wanted = self.plan.partitions(chain[0])
            if sum(1 for _ in folder.glob("ran-*")) < wanted:
                self.context.describe(f"epoch {self.number}, {tail}")
                self.frames.stream(tail, at).write.format("noop").mode("overwrite").save()

    def _reject(self) -> dict[str, int]:
        """Rows that did not parse: counted, and kept with their text and file."""
        found: dict[str, int] = {}
        for name, (observation, units) in self._corrupt.items():
            if _observed(observation, "bad") == 0:
                continue
            self.context.describe(f"epoch {self.number}, rejected rows of {name}")
            folder = self.folder / "rejected" / slug_unique(name)
            bad_rows(self.spark, self.context.sources[name], units).write.parquet(str(folder))
            found[name] = rows_in([folder])
        return {name: rows for name, rows in found.items() if rows}

    def _collect_state(self) -> dict[str, tuple[StateFile, ...]]:
        found: dict[str, tuple[StateFile, ...]] = {}
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
                if not header.full:
                    taken = [a + b for a, b in zip(taken, header.taken, strict=True)]
                    given += header.given
            if files:
                found[name] = tuple(sorted(files, key=lambda f: (f.bucket, f.full)))
            for port, n in enumerate(taken):
                self._measured[name, port] = n
            self._measured[name, None] = given
        return found

    def _is_due(self, name: str) -> bool:
        """Whether a Python operator leaves state files in this epoch, if it takes any rows."""
        works = any(self.plan.placement.works(name, at) for at in range(self.low, self.high + 1))
        return self.plan.shape(name) == "python" and works


def _observed(observation: Observation, name: str) -> int | None:
    """A counter's value; None when Spark left that part of the plan out, because nothing needed its rows."""
    try:
        return int(observation.get.get(name) or 0)
    except Exception:  # PySpark cannot read the empty row that Spark then has
        return None
