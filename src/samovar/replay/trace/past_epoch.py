"""Past epochs computed again: as they ran, or with positions on every edge and cut to a window.

A window starts where the state of its Python operators is known: at the epoch's start, or at the last mark before it
(see runtime/epochs/checkpoint_policy.py). Operators whose values cannot be computed again give what they gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from samovar.compile.frames import Frames
from samovar.compile.native import at_or_behind, empty, hidden, positioned
from samovar.graph import operators as ops
from samovar.positions import NEVER, STASH, Position, Window, packed_sql, padded_columns, position_columns
from samovar.record.log import EpochCommitted, EpochFailed
from samovar.record.state_files import Header, mark_name, mark_of, read_header
from samovar.record.store import slug_unique
from samovar.replay.trace.leaf_rows import excerpt
from samovar.replay.trace.segments import Segment, edges_of
from samovar.replay.trace.traced_chain import (
    TRACE,
    Probe,
    probing_function,
    tracing_function,
)
from samovar.runtime.epochs.epoch import Epoch, EpochRange, RunContext
from samovar.runtime.exchange.code_switch import read_switches
from samovar.runtime.exchange.decisions import read_decisions
from samovar.runtime.exchange.task import Task, Version
from samovar.runtime.parquet_files import CHECKED
from samovar.runtime.sources.units import file_ordinal
from samovar.text import quote_name

__all__ = ["Replayed", "Windowed"]

_ALL = 1 << 32
"""More marks than there are."""


class Replayed(Epoch):
    """An epoch of the past, computed again into a scratch folder. Counts nothing, commits nothing."""

    _looks = True

    def __init__(self, context: RunContext, segment: Segment, scratch: Path) -> None:
        covers = EpochRange(segment.low, segment.high, dict(segment.units), segment.first, segment.last)
        super().__init__(context, segment.epoch, covers, attempt="replay")
        self.folder = scratch / f"{segment.epoch:06d}"
        self.frames = _ReplayFrames(self.plan, self, segment.low, segment.high)
        if self.number < len(context.recorded):
            self.fixes = read_decisions(
                context.recording.checked_folder(context.recorded[self.number], "decisions")
            )

    def counted(self, name: str, level: int | None, df: DataFrame) -> DataFrame:
        return df

    def _without_bad(self, name: str, df: DataFrame, units: Any, counts: bool) -> DataFrame:
        return super()._without_bad(name, df, units, False)

    def materialised(self, name: str) -> DataFrame | None:
        """What an operator that cannot be computed again gave in this epoch; None when the epoch failed."""
        facts = self.context.recorded
        if self.number >= len(facts):
            return None
        return self._read_parts("stash", name, self.frames._empty(name).schema, [facts[self.number]])

    def task(self, chain: tuple[str, ...]) -> Task:
        """The same with what calls of `log_result` gave, what was decided about tuples, and where code changed."""
        made = super().task(chain)
        facts = self.context.recorded
        if self.number >= len(facts):
            return made
        fact = facts[self.number]
        for kept in ("decisions", "switches", "state"):  # the order of arrival lies beside states
            self.context.recording.checked_folder(fact, kept)
        folder = self.context.recording.epoch_folder(fact) / "state"
        stages = tuple(
            replace(
                stage,
                results={
                    f.bucket: str(folder / slug_unique(stage.name) / f"{f.bucket:04d}.delta")
                    for f in fact.state.get(stage.name, ())
                    if not f.full
                },
            )
            for stage in made.stages
        )
        logged = folder / slug_unique(chain[0]) if made.arrival else None
        return replace(
            made,
            stages=stages,
            arrivals=str(logged) if logged is not None else "",
            decided=read_decisions(folder.parent, chain),
            switches=read_switches(folder.parent, chain),
        )


class _ReplayFrames(Frames):
    """Frames of a past epoch: operators that would give something else now give what they gave then."""

    inputs: Replayed

    def _nothing(self, schema: StructType) -> DataFrame:
        return empty(self.inputs.spark, schema)

    def _stream(self, name: str, level: int) -> DataFrame:
        placement = self.plan.placement
        if name in placement.fixed and level == placement.level[name]:
            stored = self.inputs.materialised(name)
            if stored is not None:
                return stored
        return super()._stream(name, level)


class Windowed(Replayed):
    """The same with positions everywhere, cut to a window; Python operators record their steps if that is wanted."""

    def __init__(
        self,
        context: RunContext,
        original: Replayed,
        segment: Segment,
        window: Window,
        scratch: Path,
        *,
        steps: bool,
        near: bool = False,
        builds: dict[str, DataFrame] | None = None,
    ) -> None:
        super().__init__(context, segment, scratch)
        self.steps = steps
        self.near = near
        """Whether only the rows of the window flow: for operators that need nothing of what was before."""
        self.builds = builds if builds is not None else {}
        self.prunes = True
        """Whether build sides lack the columns that nobody needs: a question may name them."""
        """Build sides of this segment's joins: the same for all windows."""
        self.segment = segment
        self.window = window
        self.original = original
        self.low = self.high = segment.level
        self.frames = _TraceFrames(self.plan, self, segment.level, segment.level)
        self.traced: dict[str, DataFrame] = {}
        self.probe: tuple[tuple[str, ...], Probe] | None = None
        self.checks = False
        """Whether everything before the window flows, and what Python operators give there is looked at, too."""

    @cached_property
    def prefix(self) -> bool:
        """Whether rows before the window must flow too."""
        plan, level = self.plan, self.segment.level
        return not self.near and any(
            plan.shape(n) in ("python", "limit") and plan.placement.works(n, level) for n in plan.graph.ops
        )

    @cached_property
    def mark(self) -> int:
        """The last mark before the window at which all Python operators of the level kept their state; 0: none."""
        low = self.window.low
        if low is None or not self.prefix:
            return 0
        return next((n for n, at in reversed(self.usable_marks) if at[: len(low)] <= low), 0)

    @cached_property
    def usable_marks(self) -> list[tuple[int, Position]]:
        """The marks of the epoch at which all Python operators of the level kept their state, and where they lie."""
        fact = self._fact
        if fact is None or not fact.marks or self.segment.level != fact.level:
            return []
        headers = [h for name in self.stateful for h in self._headers(name).values()]
        return [
            (number, at)
            for number, at in enumerate(fact.marks, 1)
            if all(number > h.passed or number in h.marks for h in headers)
        ]

    @property
    def start(self) -> Position | None:
        """Where the rows begin that must flow; None: at the epoch's start."""
        if self.checks:
            return None
        if not self.prefix:
            return self.window.low
        return self._fact.marks[self.mark - 1] if self._fact is not None and self.mark else None

    @property
    def _fact(self) -> EpochCommitted | EpochFailed | None:
        """What the log says of this epoch."""
        facts, stopped = self.context.recorded, self.context.stopped
        if self.number < len(facts):
            return facts[self.number]
        return stopped if stopped is not None and stopped.epoch == self.number else None

    @cached_property
    def stateful(self) -> list[str]:
        """The Python operators at work here whose states the epoch changed."""
        fact, shapes = self._fact, self.plan.placement.shapes
        names = (
            fact.state if isinstance(fact, EpochCommitted) else [n for n in shapes if shapes[n] == "python"]
        )
        return [n for n in names if self.plan.placement.works(n, self.segment.level)]

    def _states(self, name: str) -> Path:
        """The folder of the run's state files of this epoch."""
        fact = self._fact
        assert fact is not None
        return self.context.recording.attempt_folder(fact.epoch, fact.attempt) / "state" / slug_unique(name)

    def _headers(self, name: str) -> dict[int, Header]:
        """What the run's state files of this epoch say, by bucket."""
        fact, folder = self._fact, self._states(name)
        if not isinstance(fact, EpochCommitted):
            return self._headers_at_marks(folder, self.plan.buckets[name])
        return {
            f.bucket: read_header(folder / f"{f.bucket:04d}.delta") for f in fact.state[name] if not f.full
        }

    def _headers_at_marks(self, folder: Path, buckets: int) -> dict[int, Header]:
        """The same in an epoch that failed, of which only marks are left.

        A bucket without a mark may have had rows before it that never reached it, or were never begun with.
        """
        found: dict[int, list[int]] = {bucket: [] for bucket in range(buckets)}
        for bucket, number in map(mark_of, sorted(folder.glob("*.mark*"))):
            found.setdefault(bucket, []).append(number)
        return {
            bucket: Header(operator="", bucket=bucket, epoch=self.number, passed=_ALL, marks=tuple(numbers))
            for bucket, numbers in found.items()
        }

    def _versions(self, name: str) -> dict[int, Version]:
        """The state at the epoch's start, or at the mark before the window."""
        made = super()._versions(name)
        fact = self._fact
        if fact is None or not self.mark or name not in self.stateful:
            return made
        for bucket, (files, _) in self._kept(name).items():
            before = made.get(bucket, Version())
            tokens = [f"{fact.attempt}/{Path(f).name}" for f in files]
            made[bucket] = Version((*before.files, *files), (*before.tokens, *tokens))
        return made

    def _kept(self, name: str) -> dict[int, tuple[list[str], Header]]:
        """For each bucket: the files that lead from the epoch's start to the mark, and the header of the last.

        A bucket whose rows all lie before the mark is at its state of the epoch's end by then.
        """
        folder = self._states(name)
        made: dict[int, tuple[list[str], Header]] = {}
        for bucket, header in self._headers(name).items():
            if self.mark > header.passed:
                made[bucket] = ([str(folder / f"{bucket:04d}.delta")], header)
            else:
                files = [folder / mark_name(bucket, n) for n in header.marks if n <= self.mark]
                made[bucket] = ([str(f) for f in files], read_header(files[-1]))
        return made

    def given_before(self) -> dict[str, dict[int, int]]:
        """For each Python operator and bucket: how many tuples it gave from the epoch's start to the mark."""
        if not self.mark:
            return {}
        return {n: {b: header.given for b, (_, header) in self._kept(n).items()} for n in self.stateful}

    def taken_before(self, name: str) -> int:
        """How many tuples a Python operator took from the epoch's start to the mark."""
        return sum(sum(header.taken) for _, header in self._kept(name).values()) if self.mark else 0

    def task(self, chain: tuple[str, ...]) -> Task:
        made = super().task(chain)
        given = self.given_before()
        return replace(made, stages=tuple(replace(s, given=given.get(s.name, {})) for s in made.stages))

    def slice(self, name: str) -> DataFrame:
        source = self.context.sources.get(name)
        start, stop = self.segment.units.get(name, (0, 0))
        if source is None or start == stop:
            return self._cut(self._stashed(name) if start != stop else super().slice(name))
        units = source.units[start:stop]
        if source.format == "parquet":
            touched = Window(self.start, self.window.high).units(source.number, start, stop)
            units, start = source.units[touched.start : touched.stop], touched.start
        if not units:
            return self.frames._empty(name)
        if self.near:
            few = excerpt(self.spark, source, self.window, start, start + len(units))
            if few is not None:
                return few
        df = self._cut(self.read(source, units, start))
        return self.reused(df) if self.near else df  # every operator's rows are made from these

    def materialised(self, name: str) -> DataFrame | None:
        stored = super().materialised(name)
        return None if stored is None else self._cut(stored)

    def _stashed(self, name: str) -> DataFrame:
        """A stash as the run left it; without positions it gets those of its files' rows."""
        plan = self.original.plan
        start, stop = self.segment.units[name]
        epochs = self._stash_epochs(name)[start:stop]
        schema = self.original.frames._empty(name).schema
        stored = self._read_parts("stash", name, schema, epochs)
        if plan.width[name]:
            return stored
        folders = self.context.recording.parts("stash", name, epochs)
        files = [str(f) for folder in folders for f in sorted(folder.glob("*.parquet"))]
        group = STASH + list(plan.graph.ops).index(name)
        file = file_ordinal({f: i for i, f in enumerate(files)})
        raw = self.spark.read.schema(_plain(schema)).options(**CHECKED).parquet(*files)
        parts = [str(group), packed_sql(file, "_metadata.row_index")]
        width = self.plan.width[name]
        made = positioned(raw, position_columns(width), padded_columns(parts, width))
        return made.toDF(*schema.names, *hidden(made))

    def _cut(self, df: DataFrame) -> DataFrame:
        if self.window.high is not None:
            df = df.filter(~at_or_behind(df, self.window.high))
        if self.start is not None:
            df = df.filter(at_or_behind(df, self.start))
        return df

    def python(self, chain: tuple[str, ...]) -> Callable[..., Any]:
        head = self.plan.graph.ops[chain[0]]
        if isinstance(head, ops.Batches):
            return super().python(chain)
        if self.probe is not None and self.probe[0] == chain:
            return probing_function(self.task(chain), self.probe[1])
        if not self.steps:
            return tracing_function(self.task(chain), NEVER)
        passes = not (self.checks or self._fills(chain))
        return tracing_function(self.task(chain), self.window.low, passes=passes)

    def _behind(self, chain: tuple[str, ...]) -> set[str]:
        """The operators of this level behind a chain of Python operators."""
        return edges_of(self.plan, self.segment.level).downstream(chain[-1]) - set(chain)

    def _fills(self, chain: tuple[str, ...]) -> bool:
        """Whether what a chain gives before the window matters: to a state behind it, or to a limit."""
        return any(self.plan.shape(n) in ("python", "batches", "limit") for n in self._behind(chain))

    def read_twice(self, chain: tuple[str, ...]) -> bool:
        """Whether the rows of a chain are wanted besides its records."""
        if self.probe is not None and self.probe[0] == chain:
            return False
        if self.checks:
            return self._fills(chain)
        placement = self.plan.placement
        flows = any(not placement.is_sink(n) and not placement.ends(n) for n in self._behind(chain))
        return flows or not self.steps

    @property
    def ends(self) -> bool:
        """Whether operators see the end of their input in this window."""
        return self.segment.last and self.window.high is None

    def shared(self, key: str, make: Callable[[], DataFrame], by: Sequence[str] | None = None) -> DataFrame:
        if key not in self.builds:
            self.builds[key] = make()
        return self.builds[key]


class _TraceFrames(_ReplayFrames):
    """Frames of a segment under trace: blocking operators of lower levels give what they gave."""

    inputs: Windowed

    def _pruned(self, name: str) -> DataFrame:
        return super()._pruned(name) if self.inputs.prunes else self.whole(name)

    def ended(self, name: str, *, whole: bool = False) -> DataFrame:
        if not self.inputs.first and not whole:
            return self._empty(name)
        df = self.inputs.original.frames.ended(name, whole=whole)
        if not hidden(df):
            df = self._number(name, df)
        return self.inputs._cut(df) if not whole else df

    def _join_stream(self, op: ops.Join, probe: DataFrame, build: DataFrame) -> DataFrame:
        """The few rows of a window go to where the build side is, not the other way round."""
        if not self.inputs.near or op.on is None:
            return self._join(op, probe, build)
        if op.how == "inner":
            return self.inputs.reused(self._join(op, F.broadcast(probe), build))
        keys = F.broadcast(probe.select(*map(quote_name, op.on)))
        matching = self.inputs.reused(build.join(keys, on=list(op.on), how="left_semi"))
        return self._join(op, probe, matching)

    def _python(self, chain: tuple[str, ...], level: int) -> DataFrame:
        head = self.plan.graph.ops[chain[0]]
        assert isinstance(head, ops.Python)
        made = super()._python(chain, level)
        if self.inputs.read_twice(chain):
            made = made.persist()
            self.inputs._reused.append(made)
        self.inputs.traced[chain[-1]] = made
        return made.filter(F.col(TRACE).isNull()).drop(TRACE)

    def _python_schema(self, tail: str) -> StructType:
        fields = [StructField(f.name, f.dataType, True) for f in self.plan.schemas[tail].fields]
        fields += [StructField(c, LongType(), True) for c in position_columns(self.plan.width[tail])]
        return StructType([*fields, StructField(TRACE, BinaryType(), True)])

    def _python_ends(self) -> bool:
        return self.inputs.ends


def _plain(schema: StructType) -> StructType:
    return StructType([StructField(f"c{i}", f.dataType, True) for i, f in enumerate(schema.fields)])
