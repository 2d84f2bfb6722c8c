"""Traces from Spark: one segment, one window of positions, every operator's tuples in a single job.

Native operators run as they ran, with positions on every edge; Python operators run the recorded code under trace (see
worker.py). A window is a range of the leaves' positions. Where an operator on the level needs what came before the
window (a stateful Python operator, a limit), the rows from the epoch's start on flow through it too, untraced.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, LongType, MapType, StructField, StructType

from samovar.compile.frames import Frames
from samovar.compile.native import hidden, positioned, visible
from samovar.compile.plan import Plan
from samovar.graph import operators as ops
from samovar.ids import position_columns
from samovar.record.log import Counters, EpochCommitted
from samovar.record.state_files import read_state
from samovar.record.store import History, Recording, add_counters, slug_unique
from samovar.replay.segments import Segment, edges_of, gives_here, leaves_of
from samovar.replay.trace import Edges, Position, Trace, Tuple, Window
from samovar.replay.worker import (
    NEVER,
    TRACE,
    Probe,
    Record,
    probing_function,
    read_records,
    tracing_function,
)
from samovar.runtime.epoch import Epoch, EpochRange, RunContext
from samovar.runtime.sources import ROW_BITS, Source, check_unchanged, file_ordinal
from samovar.runtime.tags import tagged
from samovar.runtime.worker import Task

__all__ = ["Replayed", "Traced", "Tracer"]


@dataclass
class Traced:
    """A window's trace, and what the workers told about their states."""

    segment: Segment
    window: Window
    trace: Trace
    bases: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    """For each Python operator and bucket: what changed between the epoch's start and the window."""
    records: dict[str, dict[tuple[int, Position] | None, Record]] = field(default_factory=dict)
    """For each Python operator: its records by (port, position); None is the end of the input."""
    ended: dict[str, list[Record]] = field(default_factory=dict)
    """For each Python operator: the ends of its input, one for each bucket."""
    given: dict[str, int] = field(default_factory=dict)
    """For each Python operator: how many tuples it gave between the epoch's start and the window."""
    failure: tuple[str, Record] | None = None
    """The operator that raised, and its step."""


class Replayed(Epoch):
    """An epoch of the past, computed again into a scratch folder. Counts nothing, commits nothing."""

    def __init__(self, context: RunContext, segment: Segment, scratch: Path) -> None:
        covers = EpochRange(segment.low, segment.high, dict(segment.units), segment.first, segment.last)
        super().__init__(context, segment.epoch, covers, attempt="replay")
        self.folder = scratch / f"{segment.epoch:06d}"

    def counted(self, name: str, level: int | None, df: DataFrame) -> DataFrame:
        return df

    def _without_bad(self, name: str, df: DataFrame, units: Any, counts: bool) -> DataFrame:
        return super()._without_bad(name, df, units, False)

    def task(self, chain: tuple[str, ...]) -> Task:
        """The same with what calls of `log_result` gave: they are not made again."""
        made = super().task(chain)
        facts = self.context.recorded
        if self.number >= len(facts):
            return made
        fact = facts[self.number]
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
        return replace(made, stages=stages, arrivals=str(logged) if logged is not None else "")


class _Windowed(Replayed):
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
    ) -> None:
        super().__init__(context, segment, scratch)
        self.steps = steps
        self.segment = segment
        self.window = window
        self.original = original
        self.low = self.high = segment.level
        self.frames = _TraceFrames(self.plan, self, segment.level, segment.level)
        self.traced: dict[str, DataFrame] = {}
        self.probe: tuple[tuple[str, ...], Probe] | None = None

    @cached_property
    def prefix(self) -> bool:
        """Whether rows before the window must flow too."""
        plan, level = self.plan, self.segment.level
        return any(
            plan.shape(n) in ("python", "limit") and plan.placement.works(n, level) for n in plan.graph.ops
        )

    def slice(self, name: str) -> DataFrame:
        source = self.context.sources.get(name)
        start, stop = self.segment.units.get(name, (0, 0))
        if source is None or start == stop:
            return self._cut(self._stashed(name) if start != stop else super().slice(name))
        units = source.units[start:stop]
        if source.format == "parquet":
            skip, end = self._units(source, start, stop)
            units, start = units[skip:end], start + skip
        if not units:
            return self.frames._empty(name)
        df = self.read(source, units, start)
        return self._cut(df)

    def _units(self, source: Source, start: int, stop: int) -> tuple[int, int]:
        """Which of the units a window can touch: the others need not be opened."""
        low, high = self.window.low, self.window.high
        first, last = start, stop
        if low is not None and not self.prefix:
            if source.number < low[0]:
                return 0, 0
            first = max(start, low[1] >> ROW_BITS) if source.number == low[0] else start
        if high is not None:
            if source.number > high[0]:
                return 0, 0
            last = min(stop, (high[1] >> ROW_BITS) + 1) if source.number == high[0] else stop
        return first - start, max(last, first) - start

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
        group = list(plan.graph.ops).index(name) - 2_000_000
        place = file_ordinal({f: i for i, f in enumerate(files)}) * F.lit(1 << ROW_BITS)
        raw = self.spark.read.schema(_plain(schema)).parquet(*files)
        parts = [F.lit(group), place + F.col("_metadata.row_index")]
        names = position_columns(self.plan.width[name])
        fill = [F.lit(-1)] * (len(names) - 2)
        made = positioned(raw, names, [*parts, *fill])
        return made.toDF(*schema.names, *hidden(made))

    def _cut(self, df: DataFrame) -> DataFrame:
        if self.window.high is not None:
            df = df.filter(~_from(df, self.window.high))
        if self.window.low is not None and not self.prefix:
            df = df.filter(_from(df, self.window.low))
        return df

    def python(self, chain: tuple[str, ...]) -> Callable[..., Any]:
        head = self.plan.graph.ops[chain[0]]
        if isinstance(head, ops.Batches):
            return super().python(chain)
        if self.probe is not None and self.probe[0] == chain:
            return probing_function(self.task(chain), self.probe[1])
        return tracing_function(self.task(chain), self.window.low if self.steps else NEVER)

    @property
    def ends(self) -> bool:
        """Whether operators see the end of their input in this window."""
        return self.segment.last and self.window.high is None

    def shared(self, key: str, make: Callable[[], DataFrame], by: Sequence[str] | None = None) -> DataFrame:
        return make()


class _TraceFrames(Frames):
    """Frames of a segment under trace: blocking operators of lower levels give what they gave."""

    inputs: _Windowed

    def ended(self, name: str, *, whole: bool = False) -> DataFrame:
        if not self.inputs.first and not whole:
            return self._empty(name)
        df = self.inputs.original.frames.ended(name, whole=whole)
        if not hidden(df):
            df = self._number(name, df)
        return self.inputs._cut(df) if not whole else df

    def _python(self, chain: tuple[str, ...], level: int) -> DataFrame:
        head = self.plan.graph.ops[chain[0]]
        assert isinstance(head, ops.Python)
        made = super()._python(chain, level).persist()
        self.inputs._reused.append(made)
        self.inputs.traced[chain[-1]] = made
        return made.filter(F.col(TRACE).isNull()).drop(TRACE)

    def _python_schema(self, tail: str) -> StructType:
        fields = [StructField(f.name, f.dataType, True) for f in self.plan.schemas[tail].fields]
        fields += [StructField(c, LongType(), True) for c in position_columns(self.plan.width[tail])]
        return StructType([*fields, StructField(TRACE, BinaryType(), True)])

    def _python_ends(self) -> bool:
        return self.inputs.ends


class Tracer:
    """Traces the segments of one recording. Keeps the session, two plans, and what was computed again."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        tracing: Plan,
        sources: dict[str, Source],
        recording: Recording,
        history: History,
        code: dict[str, bytes],
    ) -> None:
        self.spark = spark
        self.plan = plan
        self.tracing = tracing
        self.sources = sources
        self.recording = recording
        self.history = history
        self.code = code
        self.scratch = Path(tempfile.mkdtemp(prefix="samovar-replay-"))

    @property
    def tag(self) -> str:
        """Marks the Spark jobs of replays of this recording."""
        return f"{self.recording.run_id}-replay"

    def close(self) -> None:
        """Remove what was computed again."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def original(self, segment: Segment) -> Replayed:
        """The segment's epoch as it ran."""
        return Replayed(self._context(self.plan, segment), segment, self.scratch)

    def windowed(self, segment: Segment, window: Window, *, steps: bool = False) -> _Windowed:
        """The segment with positions, cut to a window. `steps`: whether Python operators record their steps."""
        context = self._context(self.tracing, segment)
        return _Windowed(context, self.original(segment), segment, window, self.scratch, steps=steps)

    def _context(self, plan: Plan, segment: Segment) -> RunContext:
        past: list[EpochCommitted] = self.history.epochs[: segment.epoch]
        history = History(started=self.history.started, epochs=list(past))
        made = RunContext(self.spark, plan, self.sources, self.recording, history, self.code, self.tag)
        made.recorded = self.history.epochs
        return made

    # --- traces -----------------------------------------------------------------------------------------------------

    def trace(self, segment: Segment, window: Window) -> Traced:
        """All operators' tuples in a window, by one job."""
        edges = edges_of(self.tracing, segment.level)
        epoch = self.windowed(segment, window, steps=True)
        with self.tagged(f"trace of epoch {segment.epoch}", epoch):
            parts, names = self._parts(epoch, segment, window)
            chains = list(epoch.traced)
            table = _united(self.spark, parts).toArrow() if parts else None
        made = Traced(segment, window, Trace(edges, {}))
        given: dict[str, list[Tuple]] = {}
        ends: dict[str, list[Tuple]] = {}
        if table is not None:
            self._read_native(table, names, given)
            self._read_python(table, chains, made, given, ends)
        for tuples in given.values():
            tuples.sort(key=lambda t: t.position)
        made.trace = Trace.of(edges, given, ends=ends, arrivals=self._arrivals(edges, made))
        return made

    def _parts(
        self, epoch: _Windowed, segment: Segment, window: Window
    ) -> tuple[list[DataFrame], list[tuple[str, list[str]]]]:
        plan, level = self.tracing, segment.level
        edges = edges_of(plan, level)
        wanted = [
            n
            for n in edges.inputs
            if not plan.placement.is_sink(n)
            and not (plan.placement.ends(n) and n not in leaves_of(plan, level))
            and (edges.consumers(n) or n in plan.placement.stashed)
        ]
        fused = {n for chain in plan.chains.values() for n in chain}
        for tail in plan.chains:
            if edges.inputs.get(tail):
                epoch.frames.stream(tail, level)
        wide = max((plan.width[n] for n in wanted), default=0)
        parts: list[DataFrame] = []
        names: list[tuple[str, list[str]]] = []
        for name in wanted:
            stored = not edges.inputs[name]
            if name in fused and not stored and not isinstance(plan.graph.ops[name], ops.Batches):
                continue
            df = epoch.frames.stream(name, level)
            if window.low is not None and epoch.prefix:
                df = df.filter(_from(df, window.low))
            own, shown = hidden(df), visible(df)
            plain = df.toDF(*(c if c in own else f"c{i}" for i, c in enumerate(df.columns)))
            values = [c for c in plain.columns if c not in own]
            places: list[Column] = [F.col(c) for c in own]
            parts.append(
                plain.select(
                    F.lit(len(names)).alias("op"),
                    F.array(*places, *([F.lit(-1).cast("bigint")] * (wide - len(own)))).alias("at"),
                    F.struct(*values).cast(_relaxed(plain.select(*values).schema)).alias(f"v{len(names)}"),
                )
            )
            names.append((name, shown))
        for i, made in enumerate(epoch.traced.values()):
            parts.append(
                made.filter(F.col(TRACE).isNotNull()).select(F.lit(-1 - i).alias("op"), F.col(TRACE))
            )
        return parts, names

    def _read_native(
        self, table: pa.Table, names: list[tuple[str, list[str]]], given: dict[str, list[Tuple]]
    ) -> None:
        kinds = table.column("op").to_pylist()
        for i, (name, shown) in enumerate(names):
            chosen = table.filter(pa.array([k == i for k in kinds], pa.bool_()))
            width = self.tracing.width[name]
            places = chosen.column("at").to_pylist()
            values = chosen.column(f"v{i}").to_pylist(maps_as_pydicts="strict")
            given[name] = [
                Tuple(name, tuple(at[:width]), dict(zip(shown, value.values(), strict=True)))
                for at, value in zip(places, values, strict=True)
            ]

    def _read_python(
        self,
        table: pa.Table,
        chains: list[str],
        made: Traced,
        given: dict[str, list[Tuple]],
        ends: dict[str, list[Tuple]],
    ) -> None:
        kinds = table.column("op").to_pylist()
        for i, tail in enumerate(chains):
            chain = self.tracing.chains[tail]
            chosen = table.filter(pa.array([k == -1 - i for k in kinds], pa.bool_()))
            for record in read_records(chosen.column(TRACE)):
                name = chain[record.stage]
                names = self.tracing.schemas[name].names
                outputs = [Tuple(name, at, dict(zip(names, row, strict=True))) for at, row in record.outputs]
                given.setdefault(name, []).extend(outputs)
                if record.error is not None:
                    made.failure = (name, record)
                if record.ended:
                    ends.setdefault(name, []).extend(outputs)
                    made.records.setdefault(name, {})[None] = record
                    made.ended.setdefault(name, []).append(record)
                elif record.at is None:
                    made.bases.setdefault(name, {})[record.bucket] = record.changes
                    made.given[name] = made.given.get(name, 0) + record.given
                else:
                    width = len(record.at)
                    ups = self.tracing.graph.ops[name].inputs
                    place = record.at[: self.tracing.width[ups[record.port]]] if width else ()
                    made.records.setdefault(name, {})[record.port, place] = record

    def _arrivals(self, edges: Edges, made: Traced) -> dict[str, dict[tuple[int, Position], int]]:
        """For operators that took tuples as they arrived: each tuple's place in that order, as they took them now."""
        found: dict[str, dict[tuple[int, Position], int]] = {}
        for name, order in edges.order.items():
            if order == "arrival" and edges.inputs[name]:
                own = [key for key in made.records.get(name, {}) if key is not None]
                found[name] = {key: place for place, key in enumerate(own)}
        return found

    def probe(self, segment: Segment, operator: str, probe: Probe) -> list[Record]:
        """What a probe finds in a Python operator's states over a segment, one record a key partition at most."""
        tail, chain = next((t, c) for t, c in self.tracing.chains.items() if operator in c)
        epoch = self.windowed(segment, Window(None, probe.before))
        epoch.probe = (chain, replace(probe, stage=chain.index(operator)))
        with self.tagged(f"search in epoch {segment.epoch}", epoch):
            epoch.frames.stream(tail, segment.level)
            found = epoch.traced[tail].filter(F.col(TRACE).isNotNull()).select(TRACE).toArrow()
        return read_records(found.column(TRACE))

    # --- where tuples are -------------------------------------------------------------------------------------------

    def positions(self, segment: Segment, name: str, *, skip: int, count: int) -> list[Position]:
        """Positions of an operator's input tuples in a segment, in canonical order, some of them."""
        epoch = self.windowed(segment, Window())
        edges = edges_of(self.tracing, segment.level)
        ups = [edges.inputs[name][port] for port in edges.ports(name)]
        wide = max(self.tracing.width[up] for up in ups)
        with self.tagged(f"places in epoch {segment.epoch}", epoch):
            frames = []
            for port, up in enumerate(ups):
                df = epoch.frames.stream(up, segment.level)
                own = hidden(df)
                fill = [F.lit(-1).cast("bigint")] * (wide - len(own))
                frames.append(df.select(F.array(*own, *fill).alias("at"), F.lit(port).alias("port")))
            every = reduce(lambda a, b: a.union(b), frames)
            found = every.orderBy("at", "port").offset(skip).limit(count).toArrow()
        return [tuple(at) for at in found.column("at").to_pylist()]

    def leaf_positions(self, segment: Segment, low: Position | None, count: int | None) -> list[Position]:
        """Positions of the leaves' tuples from one on, in order; for leaves whose files do not tell them."""
        epoch = self.windowed(segment, Window())
        leaves = leaves_of(self.tracing, segment.level)
        width = min(self.tracing.width[n] for n in leaves)
        with self.tagged(f"places in epoch {segment.epoch}", epoch):
            frames = []
            for name in leaves:
                df = epoch.frames.stream(name, segment.level)
                df = df.filter(_from(df, low)) if low is not None else df
                frames.append(df.select(F.array(*hidden(df)[:width]).alias("at")))
            every = reduce(lambda a, b: a.union(b), frames).orderBy("at")
            found = (every if count is None else every.limit(count)).toArrow()
        return [tuple(at) for at in found.column("at").to_pylist()]

    def counted_before(self, traced: Traced, before: Mapping[str, Counters]) -> dict[str, Counters]:
        """What each operator had taken and given when a window began, from what it had when its epoch began."""
        segment, window = traced.segment, traced.window
        totals = dict(before)
        logged = {n: c.given for n, c in self._logged(segment).items()}
        for level in range(segment.low, segment.level):  # levels of the same epoch that went before
            below = replace(segment, level=level, units=self._units(segment))
            totals = _added(_added(totals, self._built(below)), self._counts(below, Window(), logged))
        totals = _added(totals, self._built(segment))
        if window.low is not None:
            totals = _added(totals, self._counts(segment, Window(None, window.low), traced.given))
        return totals

    def _logged(self, segment: Segment) -> Mapping[str, Counters]:
        """The counters of a segment's epoch; none for the one that failed."""
        committed = segment.epoch < len(self.history.epochs)
        return self.history.epochs[segment.epoch].counters if committed else {}

    def _units(self, segment: Segment) -> dict[str, tuple[int, int]]:
        if segment.epoch >= len(self.history.epochs):  # the one that failed
            return dict(segment.units)
        return self.history.epochs[segment.epoch].units

    def _built(self, segment: Segment) -> dict[str, Counters]:
        """What the build sides of a level's joins took and gave, by the log: all of it before the first step."""
        placement, level = self.tracing.placement, segment.level
        working = edges_of(self.tracing, level).inputs
        made: dict[str, Counters] = {}
        for name, counted in self._logged(segment).items():
            if not placement.streams[name] and level == min(placement.whole[name], default=-1):
                made[name] = counted
            elif name in placement.build and working.get(name):
                port = 0 if placement.build[name] == "left" else 1
                made[name] = Counters(tuple(n if p == port else 0 for p, n in enumerate(counted.taken)), 0)
        return made

    def _counts(self, segment: Segment, window: Window, inside: Mapping[str, int]) -> dict[str, Counters]:
        """Counters over a window; `inside` are the tuples given inside of chains of Python operators."""
        epoch = self.windowed(segment, window)
        edges = edges_of(self.tracing, segment.level)
        leaves = leaves_of(self.tracing, segment.level)
        feeding = {up for n in edges.inputs for up in edges.inputs[n] if up in edges.inputs}
        with self.tagged(f"counts in epoch {segment.epoch}", epoch):
            parts = [
                epoch.frames.stream(n, segment.level)
                .agg(F.count(F.lit(1)).alias("n"))
                .select(F.lit(n).alias("op"), "n")
                for n in edges.inputs
                if n in feeding and n not in self.tracing.fused
            ]
            rows = reduce(lambda a, b: a.union(b), parts).collect() if parts else []
        given = {r["op"]: int(r["n"]) for r in rows}
        given |= {n: inside.get(n, 0) for n in edges.inputs if n in self.tracing.fused}
        made: dict[str, Counters] = {}
        for name, ups in edges.inputs.items():
            steps = edges.ports(name) if ups else ()
            taken = tuple(given.get(up, 0) if p in steps else 0 for p, up in enumerate(ups))
            if name not in leaves or gives_here(self.tracing, name, segment.level):
                kept = edges.shapes[name] == "sink"  # a sink gives what it keeps
                made[name] = Counters(taken, sum(taken) if kept else given.get(name, 0))
        return made

    @contextlib.contextmanager
    def tagged(self, what: str, epoch: Epoch) -> Iterator[None]:
        """Name the jobs that follow, and give back what they kept."""
        context = getattr(self.spark, "sparkContext", None)
        if context is not None:
            context.setJobDescription(f"{self.plan.graph.name}: {what}")
        try:
            with tagged(self.spark, self.tag):
                yield
        except PySparkException:
            self._check(epoch)
            raise
        finally:
            if context is not None:
                context.setJobDescription(None)
            epoch.release()

    def _check(self, epoch: Epoch) -> None:
        """Raise when what a replay starts from is not as it was: inputs, and the states of Python operators."""
        for source in self.sources.values():
            check_unchanged(source)
        known = len(epoch.context.history.epochs)
        for fact in self.history.epochs[: known + 1]:  # its own too: it holds the logged results of calls
            for name, states in fact.state.items():
                folder = self.recording.epoch_folder(fact) / "state" / slug_unique(name)
                for state in states:
                    read_state(folder / f"{state.bucket:04d}.{'full' if state.full else 'delta'}")


def _from(df: DataFrame, at: Position) -> Column:
    """Whether a row's position is not before another, compared part by part."""
    own = hidden(df)[: len(at)]
    return F.struct(*own) >= F.struct(
        *(F.lit(v).cast("bigint").alias(c) for c, v in zip(own, at, strict=False))
    )


def _added(a: Mapping[str, Counters], b: Mapping[str, Counters]) -> dict[str, Counters]:
    return {n: add_counters(a.get(n), b[n]) if n in b else a[n] for n in (*a, *(n for n in b if n not in a))}


def _united(spark: SparkSession, parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def _relaxed(kind: Any) -> Any:
    """The type with nulls allowed in all its parts: beside other operators' rows, a row's columns are null."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _relaxed(f.dataType), True) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_relaxed(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(_relaxed(kind.keyType), _relaxed(kind.valueType), True)
    return kind


def _plain(schema: StructType) -> StructType:
    return StructType([StructField(f"c{i}", f.dataType, True) for i, f in enumerate(schema.fields)])
