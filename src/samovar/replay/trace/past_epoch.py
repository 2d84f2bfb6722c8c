"""Past epochs computed again: as they ran, or with positions on every edge and cut to a window.

A window starts where the state of its Python operators is known: at the epoch's start, or at the last mark before it
(see epoch_marks.py). Operators whose values cannot be computed again give what they gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from samovar.compile.frames import EpochFrames
from samovar.compile.native import at_or_behind, empty, hidden, positioned
from samovar.compile.strategy import EpochRange, Strategy
from samovar.graph import operators as ops
from samovar.positions import (
    NEVER,
    ROW_WIDTH,
    STASH,
    Position,
    Window,
    pack,
    packed_sql,
    padded_columns,
    position_columns,
)
from samovar.record.log import EpochCommitted, EpochFailed
from samovar.record.store import Recording, slug_unique
from samovar.replay.trace.epoch_marks import EpochMarks
from samovar.replay.trace.leaf_rows import excerpt
from samovar.replay.trace.past_builds import PastBuilds
from samovar.replay.trace.segments import Segment, edges_of
from samovar.replay.trace.traced_chain import TRACE, Probe, probing_function, tracing_function
from samovar.runtime.epochs.attempt import Attempt, state_versions
from samovar.runtime.epochs.epoch import mends_of
from samovar.runtime.epochs.epoch_inputs import EpochInputs
from samovar.runtime.epochs.kept_frames import KeptFrames
from samovar.runtime.epochs.run_context import RunContext
from samovar.runtime.exchange.code_switch import read_switches
from samovar.runtime.exchange.decisions import RecordedDecision, read_decisions
from samovar.runtime.exchange.task import Task, Version
from samovar.runtime.parquet_files import CHECKED
from samovar.runtime.sources.units import Source, number_by_file

__all__ = ["PastEpoch", "PastWindow", "RecordedEpoch", "WindowView"]


class RecordedEpoch:
    """What a recording knows of a past epoch. `fact`: what its log says; None: nothing."""

    def __init__(
        self, recording: Recording, number: int, fact: EpochCommitted | EpochFailed | None, scratch: Path
    ) -> None:
        self.recording = recording
        self.number = number
        self.fact = fact
        self.committed = fact if isinstance(fact, EpochCommitted) else None
        self.scratch = scratch / f"{number:06d}"
        """Where Python operators write when the epoch is computed again."""

    @cached_property
    def decisions(self) -> Sequence[RecordedDecision]:
        """What was decided about rows and tuples of the epoch."""
        if self.committed is None:
            return ()
        return read_decisions(self.recording.checked_folder(self.committed, "decisions"))

    def inputs(
        self, context: RunContext, covers: EpochRange, complete: Callable[[Task], Task]
    ) -> EpochInputs:
        """The inputs of the epoch as it ran, for the plan of a context."""
        attempt = Attempt(context, self.number, covers, "replay", self.scratch, looks=True)
        return EpochInputs(attempt, complete=complete, empty=partial(empty, context.spark))

    def fixed_rows(self, inputs: EpochInputs, name: str, level: int | None) -> DataFrame | None:
        """What an operator that cannot be computed again gave on its level; None: it can be, or the epoch failed."""
        placement = inputs.plan.placement
        if name not in placement.fixed or level != placement.level[name] or self.committed is None:
            return None
        return inputs.read_parts("stash", name, inputs.nothing(name).schema, [self.committed])

    def task(self, task: Task) -> Task:
        """A task with what calls of `log_result` gave, what was decided about tuples, and where code changed."""
        fact, recording = self.committed, self.recording
        if fact is None:
            return task
        for kept in ("decisions", "switches", "state"):  # the order of arrival lies beside states
            recording.checked_folder(fact, kept)
        folder = recording.epoch_folder(fact) / "state"
        chain = [stage.name for stage in task.stages]
        return replace(
            task,
            stages=tuple(replace(stage, results=self._results(fact, stage.name)) for stage in task.stages),
            arrivals=str(folder / slug_unique(chain[0])) if task.arrival else "",
            decided=tuple(d for d in self.decisions if d.operator in chain),
            switches=read_switches(folder.parent, chain),
        )

    def task_anew(self, task: Task) -> Task:
        """A task that does the epoch again, or part of it, to be committed; with decisions and logged results."""
        fact = self.committed
        if fact is None:
            return task
        for kept in ("decisions", "state"):
            self.recording.checked_folder(fact, kept)
        chain = [stage.name for stage in task.stages]
        task = replace(task, decided=tuple(d for d in self.decisions if d.operator in chain))
        if not task.stateful:
            return task
        stages = (replace(s, results=self._results(fact, s.name), anew=True) for s in task.stages)
        return replace(task, stages=tuple(stages))

    def _results(self, fact: EpochCommitted, operator: str) -> dict[int, str]:
        """The files that hold what an operator's calls of `log_result` gave, by key partition."""
        folder = self.recording.epoch_folder(fact) / "state" / slug_unique(operator)
        files = fact.state.get(operator, ())
        return {f.bucket: str(folder / f"{f.bucket:04d}.delta") for f in files if not f.full}


class PastEpoch:
    """An epoch of the past as it ran, computed again into a scratch folder. Counts nothing, commits nothing."""

    def __init__(
        self, context: RunContext, recorded: RecordedEpoch, segment: Segment, kept: KeptFrames
    ) -> None:
        covers = EpochRange(segment.low, segment.high, segment.units, segment.first, segment.last)
        self._recorded = recorded
        self._inputs = recorded.inputs(context, covers, recorded.task)
        self.stored, self.passed, self.python = self._inputs.stored, self._inputs.passed, self._inputs.python
        self.empty = self._inputs.empty
        strategy = Strategy(mends=mends_of(recorded.decisions), keep=kept.keep)
        self.frames = EpochFrames(context.plan, segment.epoch, covers, self, strategy)

    def rows(self, name: str, level: int | None) -> DataFrame | None:
        """What frames read; operators that would give something else now give what they gave then."""
        fixed = self._recorded.fixed_rows(self._inputs, name, level)
        return fixed if fixed is not None else self._inputs.rows(name, level)


@dataclass(frozen=True)
class WindowView:
    """What is wanted of a window."""

    steps: bool = False
    """Whether Python operators record their steps."""
    near: bool = False
    """Whether only the rows of the window flow: for operators that need nothing of what was before."""
    native: bool = False
    """Whether only operators are asked for that need nothing of what was before the window; it may be large."""
    checks: bool = False
    """Whether everything before the window flows, and what Python operators give there is looked at, too."""
    probe: tuple[tuple[str, ...], Probe] | None = None
    """A chain, and what is looked for in its states."""
    prunes: bool = True
    """Whether build sides lack the columns that no operator needs: a question may name them."""


class PastWindow:
    """A segment with positions everywhere, cut to a window.

    `original`: makes the segment's epoch as it ran; what ended before gives what it gave there. `builds`: build sides
    of the level's joins, the same for all windows; None: they are made for this one.
    """

    def __init__(
        self,
        context: RunContext,
        recorded: RecordedEpoch,
        segment: Segment,
        window: Window,
        view: WindowView,
        *,
        original: Callable[[KeptFrames], PastEpoch],
        kept: KeptFrames,
        builds: PastBuilds | None,
    ) -> None:
        self.context = context
        self.plan = context.plan
        self.recorded = recorded
        self.segment = segment
        self.window = window
        self.view = view
        self.kept = kept
        alone = view.near or view.native
        self.marks = EpochMarks(self.plan, context.recording, recorded.fact, segment, window, near=alone)
        self.traced: dict[str, DataFrame] = {}
        """For each chain of Python operators, its rows and its records."""
        self._make_original = original
        ends = segment.last and window.high is None
        covers = EpochRange(segment.level, segment.level, segment.units, segment.first, ends)
        self._inputs = recorded.inputs(context, covers, self._task)
        self.stored, self.passed, self.empty = self._inputs.stored, self._inputs.passed, self._inputs.empty

        def build_side(key: str, make: Callable[[], DataFrame], by: Sequence[str] | None) -> DataFrame:
            if builds is None:
                return make()
            join = self.plan.graph.ops[key]
            return builds.side(key, join.inputs[self.plan.placement.build_port(key)], make)

        strategy = Strategy(
            mends=mends_of(recorded.decisions),
            keep=kept.keep,
            build_side=build_side,
            few=view.near,
            prunes=view.prunes,
        )
        self.frames = EpochFrames(self.plan, segment.epoch, covers, self, strategy)

    @cached_property
    def _original(self) -> PastEpoch:
        return self._make_original(self.kept)

    @property
    def start(self) -> Position | None:
        """Where the rows begin that must flow; None: at the epoch's start."""
        return None if self.view.checks else self.marks.start

    def versions(self, name: str) -> dict[int, Version]:
        """The states of an operator at the epoch's start, or at the mark before the window."""
        start = state_versions(self.context.recording, name, self.context.history.epochs)
        return self.marks.versions(name, start)

    # --- what frames ask for ----------------------------------------------------------------------------------------

    def rows(self, name: str, level: int | None) -> DataFrame | None:
        """What frames read: slices cut to the window, and what ended on lower levels or cannot be computed again."""
        placement = self.plan.placement
        if placement.ends(name):
            return self._ended(name, whole=level is None)
        fixed = self.recorded.fixed_rows(self._inputs, name, level)
        if fixed is not None:
            return self._cut(fixed)
        if level is None or not (placement.shapes[name] == "source" or placement.is_read_back(name, level)):
            return self._inputs.rows(name, level)
        return self._slice(name)

    def _ended(self, name: str, *, whole: bool) -> DataFrame:
        if not self.segment.first and not whole:
            return self.frames.empty(name)
        df = self._original.frames.ended(name, whole=whole)
        if not hidden(df):
            df = self.frames.positioned(name, df)
        return df if whole else self._cut(df)

    def _slice(self, name: str) -> DataFrame:
        source = self.context.sources.get(name)
        start, stop = self.segment.units.get(name, (0, 0))
        if start == stop:
            return self.frames.empty(name)
        if source is None:
            return self._cut(self._stashed(name, start, stop))
        units = range(start, stop)
        if source.format == "parquet":
            units = Window(self.start, self.window.high).units(source.number, start, stop)
        if not units:
            return self.frames.empty(name)
        if self.view.near:
            few = excerpt(self.context.spark, source, self.window, units)
            if few is not None:
                return few
        df = self._inputs.read(source, units)
        if not self._fits(source, units):
            df = self._cut(df)
        return self.kept.keep(df) if self.view.near else df  # every operator's rows are made from these

    def _fits(self, source: Source, units: range) -> bool:
        """Whether the window begins and ends with these units of a source: then none of their rows is cut off."""
        low, high = self.start, self.window.high
        if source.format != "parquet" or any(e is not None and len(e) != ROW_WIDTH for e in (low, high)):
            return False
        begins = low is None or low <= (source.number, pack(units.start, 0))
        return begins and (high is None or high >= (source.number, pack(units.stop, 0)))

    def _stashed(self, name: str, start: int, stop: int) -> DataFrame:
        """A stash as the run left it; without positions it gets those of its files' rows."""
        frames = self._original.frames
        epochs = self._inputs.stash_epochs(name)[start:stop]
        schema = frames.empty(name).schema
        if frames.plan.width[name]:
            return self._inputs.read_parts("stash", name, schema, epochs)
        folders = self.context.recording.parts("stash", name, epochs)
        files = [str(f) for folder in folders for f in sorted(folder.glob("*.parquet"))]
        group = STASH + list(self.plan.graph.ops).index(name)
        file = number_by_file({f: i for i, f in enumerate(files)})
        plain = StructType([StructField(f"c{i}", f.dataType, True) for i, f in enumerate(schema.fields)])
        stored = self.context.spark.read.schema(plain).options(**CHECKED).parquet(*files)
        parts = [str(group), packed_sql(file, "_metadata.row_index")]
        width = self.plan.width[name]
        df = positioned(stored, position_columns(width), padded_columns(parts, width))
        return df.toDF(*schema.names, *hidden(df))

    def _cut(self, df: DataFrame) -> DataFrame:
        if self.window.high is not None:
            df = df.filter(~at_or_behind(df, self.window.high))
        if self.start is not None:
            df = df.filter(at_or_behind(df, self.start))
        return df

    # --- Python operators -------------------------------------------------------------------------------------------

    def python(self, chain: tuple[str, ...], df: DataFrame, schema: StructType) -> DataFrame:
        """The rows that a chain gives; its records go to `traced`."""
        if isinstance(self.plan.graph.ops[chain[0]], ops.Batches):
            return self._inputs.python(chain, df, schema)
        task = self._inputs.task(chain)
        if self.view.probe is not None and self.view.probe[0] == chain:
            function = probing_function(task, self.view.probe[1])
        elif not self.view.steps:
            function = tracing_function(task, NEVER)
        else:
            passes = not (self.view.checks or self._fills(chain))
            function = tracing_function(task, self.window.low, passes=passes)
        # a row is null where a record is, and the other way round
        fields = [StructField(f.name, f.dataType, True) for f in schema.fields]
        both = df.mapInArrow(function, StructType([*fields, StructField(TRACE, BinaryType(), True)]))
        if self._read_twice(chain):
            both = self.kept.keep(both)
        self.traced[chain[-1]] = both
        return both.filter(F.col(TRACE).isNull()).drop(TRACE)

    def _task(self, task: Task) -> Task:
        """A task as it was in the run, from the mark before the window on."""
        given = self.marks.given_before()
        stages = (
            replace(s, versions=self.marks.versions(s.name, s.versions), given=given.get(s.name, {}))
            for s in task.stages
        )
        return self.recorded.task(replace(task, stages=tuple(stages)))

    def _behind(self, chain: tuple[str, ...]) -> set[str]:
        """The operators of this level behind a chain of Python operators."""
        return edges_of(self.plan, self.segment.level).downstream(chain[-1]) - set(chain)

    def _fills(self, chain: tuple[str, ...]) -> bool:
        """Whether what a chain gives before the window matters: to a state behind it, or to a limit."""
        return any(self.plan.shape(n) in ("python", "batches", "limit") for n in self._behind(chain))

    def _read_twice(self, chain: tuple[str, ...]) -> bool:
        """Whether the rows of a chain are wanted besides its records."""
        if self.view.probe is not None and self.view.probe[0] == chain:
            return False
        if self.view.checks:
            return self._fills(chain)
        placement = self.plan.placement
        flows = any(not placement.is_sink(n) and not placement.ends(n) for n in self._behind(chain))
        return flows or not self.view.steps
