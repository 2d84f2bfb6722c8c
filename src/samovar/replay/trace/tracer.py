"""Traces from Spark: one segment, one window of positions, every operator's tuples in a single job.

Native operators run as they ran, with positions on every edge; Python operators run the recorded code under trace (see
chain.py). A window is a range of the leaves' positions. Where an operator on the level needs what came before the
window (a stateful Python operator, a limit), the rows from the epoch's start on flow through it too, untraced.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType, VariantType

from samovar.compile.kept_types import has_variant, shown_types
from samovar.compile.native import at_or_behind, hidden, visible
from samovar.compile.plan import Plan
from samovar.graph import operators as ops
from samovar.positions import AT_END, END, Position, Window, padded_columns
from samovar.record.log import Counters, EpochCommitted
from samovar.record.state_files import read_state
from samovar.record.store import History, Recording, add_counters
from samovar.replay.trace.leaf_counts import Tally
from samovar.replay.trace.leaves import Leaves
from samovar.replay.trace.model import Edges, Trace, Tuple
from samovar.replay.trace.past_epoch import Replayed, Windowed
from samovar.replay.trace.segments import Segment, edges_of, gives_here, leaves_of, only_native
from samovar.replay.trace.traced_chain import (
    TRACE,
    Probe,
    Record,
    read_records,
)
from samovar.replay.trace.traced_window import TracedWindow
from samovar.runtime.epochs.epoch import Epoch, RunContext
from samovar.runtime.exchange.code_switch import CodeSwitch, read_switches
from samovar.runtime.exchange.decisions import read_decisions
from samovar.runtime.exchange.fingerprints import difference_in
from samovar.runtime.failures.explanation import damage_in
from samovar.runtime.failures.spark_errors import SPARK_ERRORS
from samovar.runtime.live.modification import code_at, expressions_at, plan_with
from samovar.runtime.plans import Plans
from samovar.runtime.sources.input_files import check_unchanged
from samovar.runtime.spark.job_tags import tagged

__all__ = ["Tracer", "positions_in"]

Streams = Callable[[str], DataFrame]
"""From an operator to the rows it gives."""
ALL = Window()
PIECE = 0.5
"""Seconds of a run that are worth a search of their own."""


class Tracer:
    """Traces the segments of one recording. Keeps the session, two plans, and what was computed again."""

    def __init__(self, spark: SparkSession, plans: Plans, recording: Recording, history: History) -> None:
        self.spark = spark
        self.plan = plans.plan
        self.tracing = plans.tracing
        self.sources = plans.sources
        self.recording = recording
        self.history = history
        self.code = plans.code
        self.scratch = Path(tempfile.mkdtemp(prefix="samovar-replay-"))
        self.leaves = Leaves(self.tracing, self.sources, self.leaf_positions, self.mended)
        self.tally = Tally(self.tracing, self.leaves, partial(self._count, window=ALL))
        self._held: list[DataFrame] = []
        self._plans: dict[Any, Plan] = {}
        self._builds: dict[Segment, dict[str, DataFrame]] = {}
        self._mended: dict[int, frozenset[str]] = {}
        self._edges: dict[int, Edges] = {}
        self._remove = weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)

    @property
    def tag(self) -> str:
        """Marks the Spark jobs of replays of this recording."""
        return f"{self.recording.run_id}-replay"

    def keep(self, df: DataFrame) -> DataFrame:
        """Have a frame computed once, until this is closed."""
        self._held.append(df.persist())
        return self._held[-1]

    def close(self) -> None:
        """Remove what was computed again."""
        for df in self._held:
            df.unpersist()
        self._held.clear()
        self._remove()

    def original(self, segment: Segment) -> Replayed:
        """The segment's epoch as it ran."""
        return Replayed(self._context(self.plan_at(segment.epoch), segment), segment, self.scratch)

    def windowed(
        self, segment: Segment, window: Window, *, steps: bool = False, near: bool = False
    ) -> Windowed:
        """The segment with positions, cut to a window. `steps`: whether Python operators record their steps.

        `near`: for operators that need nothing of what was before the window.
        """
        context = self._context(self.plan_at(segment.epoch, tracing=True), segment)
        original = self.original(segment)
        builds = self._builds.setdefault(segment, {})
        return Windowed(
            context, original, segment, window, self.scratch, steps=steps, near=near, builds=builds
        )

    def edges(self, level: int) -> Edges:
        """The operators at work on a level."""
        if level not in self._edges:
            self._edges[level] = edges_of(self.tracing, level)
        return self._edges[level]

    def code_at(self, epoch: int) -> dict[str, bytes]:
        """The code of Python operators in an epoch: a run may have been modified on the way."""
        return code_at(self.recording, self.history, self.code, epoch)

    def plan_at(self, epoch: int, *, tracing: bool = False) -> Plan:
        """The plan of an epoch, with the expressions it ran with; `tracing`: with positions on every edge."""
        plan = self.tracing if tracing else self.plan
        own = expressions_at(self.recording, self.history, self.code, epoch)
        key = (tuple(sorted(own.items())), tracing)
        if key not in self._plans:
            self._plans[key] = plan_with(self.spark, plan, self.sources, own, positions=tracing)
        return self._plans[key]

    def switches(self, epoch: int, operator: str) -> tuple[CodeSwitch, ...]:
        """Where an operator switched to other code inside an epoch."""
        if epoch >= len(self.history.epochs):
            return ()
        return read_switches(
            self.recording.checked_folder(self.history.epochs[epoch], "switches"), [operator]
        )

    def mended(self, segment: Segment) -> frozenset[str]:
        """Native operators whose input lost rows in a segment, because Spark failed on these rows."""
        if segment.epoch >= len(self.history.epochs):
            return frozenset()
        if segment.epoch not in self._mended:
            decisions = read_decisions(
                self.recording.checked_folder(self.history.epochs[segment.epoch], "decisions")
            )
            self._mended[segment.epoch] = frozenset(d.operator for d in decisions if d.edited is None)
        return self._mended[segment.epoch]

    def _context(self, plan: Plan, segment: Segment) -> RunContext:
        past: list[EpochCommitted] = self.history.epochs[: segment.epoch]
        history = History(started=self.history.started, epochs=list(past))
        code = self.code_at(segment.epoch)
        context = RunContext(self.spark, plan, self.sources, self.recording, history, code, self.tag)
        context.recorded, context.stopped = self.history.epochs, self.history.failed
        return context

    # --- traces -----------------------------------------------------------------------------------------------------

    def trace(self, segment: Segment, window: Window) -> TracedWindow:
        """All operators' tuples in a window, by one job."""
        edges = self.edges(segment.level)
        epoch = self.windowed(segment, window, steps=True)
        with self.tagged(f"trace of epoch {segment.epoch}", epoch):
            parts, names = self._parts(epoch, segment, window)
            chains = list(epoch.traced)
            versions = {n: epoch._versions(n) for tail in chains for n in self.tracing.chains[tail]}
            table = _united(self.spark, parts).toArrow() if parts else None
        traced = TracedWindow(segment, window, Trace(edges, {}), versions=versions)
        given: dict[str, list[Tuple]] = {}
        ends: dict[str, list[Tuple]] = {}
        if table is not None:
            self._read_native(table, names, given)
            self._read_python(table, chains, traced, given, ends)
            for name, before in epoch.given_before().items():  # key partitions without tuples from there on
                own = traced.bases.get(name, {})
                traced.given[name] = traced.given.get(name, 0) + sum(
                    n for b, n in before.items() if b not in own
                )
        for tuples in given.values():
            tuples.sort(key=lambda t: t.position)
        traced.trace = Trace.of(edges, given, ends=ends, arrivals=self._arrivals(edges, traced))
        return traced

    def _parts(
        self, epoch: Windowed, segment: Segment, window: Window
    ) -> tuple[list[DataFrame], list[tuple[str, list[str]]]]:
        plan, level = self.tracing, segment.level
        edges = self.edges(level)
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
        near = self.windowed(segment, window, near=True)
        parts: list[DataFrame] = []
        names: list[tuple[str, list[str]]] = []
        for name in wanted:
            stored = not edges.inputs[name]
            if name in fused and not stored and not isinstance(plan.graph.ops[name], ops.Batches):
                continue
            alone = only_native(plan, level, name)
            df = (near if alone else epoch).frames.stream(name, level)
            if window.low is not None and epoch.prefix and not alone:
                df = df.filter(at_or_behind(df, window.low))
            own, shown = hidden(df), visible(df)
            plain = df.toDF(*(c if c in own else f"c{i}" for i, c in enumerate(df.columns)))
            fields = [f for f in plain.schema.fields if f.name not in own]
            places = padded_columns(own, wide)
            row = _row_of(fields)
            parts.append(
                plain.select(
                    F.expr(f"{len(names)} AS op"),
                    F.expr(f"array({', '.join(places)}) AS at"),
                    row.alias(f"v{len(names)}"),
                )
            )
            names.append((name, shown))
        epoch.take_over(near)
        return [*parts, *self._reports(epoch)], names

    def _reports(self, epoch: Windowed) -> list[DataFrame]:
        """The records that the workers of each chain of Python operators wrote."""
        return [
            chain.filter(F.col(TRACE).isNotNull()).select(F.lit(-1 - i).alias("op"), F.col(TRACE))
            for i, chain in enumerate(epoch.traced.values())
        ]

    def _read_native(
        self, table: pa.Table, names: list[tuple[str, list[str]]], given: dict[str, list[Tuple]]
    ) -> None:
        kinds = table.column("op").to_pylist()
        for i, (name, shown) in enumerate(names):
            chosen = table.filter(pa.array([k == i for k in kinds], pa.bool_()))
            width = self.tracing.width[name]
            places = chosen.column("at").to_pylist()
            values = chosen.column(f"v{i}").to_pylist(maps_as_pydicts="strict")
            read = _reader(self.tracing.schemas[name])
            given[name] = [
                Tuple(name, tuple(at[:width]), dict(zip(shown, read(value), strict=True)))
                for at, value in zip(places, values, strict=True)
            ]

    def _read_python(
        self,
        table: pa.Table,
        chains: list[str],
        traced: TracedWindow,
        given: dict[str, list[Tuple]],
        ends: dict[str, list[Tuple]],
    ) -> None:
        kinds = table.column("op").to_pylist()
        for i, tail in enumerate(chains):
            chain = self.tracing.chains[tail]
            chosen = table.filter(pa.array([k == -1 - i for k in kinds], pa.bool_()))
            for record in read_records(chosen.column(TRACE)):
                name = chain[record.stage]
                traced.size += sum(
                    len(v) for v in record.changes.get("values", {}).values() if isinstance(v, bytes)
                )
                names = self.tracing.schemas[name].names
                outputs = [Tuple(name, at, dict(zip(names, row, strict=True))) for at, row in record.outputs]
                given.setdefault(name, []).extend(outputs)
                if record.error is not None:
                    traced.failures.append((name, record))
                if record.ended:
                    ends.setdefault(name, []).extend(outputs)
                    traced.records.setdefault(name, {})[None] = record
                    traced.ended.setdefault(name, []).append(record)
                elif record.at is None:
                    traced.bases.setdefault(name, {})[record.bucket] = record.changes
                    traced.given[name] = traced.given.get(name, 0) + record.given
                else:
                    width = len(record.at)
                    ups = self.tracing.graph.ops[name].inputs
                    place = record.at[: self.tracing.width[ups[record.port]]] if width else ()
                    traced.records.setdefault(name, {})[record.port, place] = record

    def _arrivals(self, edges: Edges, traced: TracedWindow) -> dict[str, dict[tuple[int, Position], int]]:
        """For operators that took tuples as they arrived: each tuple's place in that order, as they took them now."""
        arrivals: dict[str, dict[tuple[int, Position], int]] = {}
        for name, order in edges.order.items():
            if order == "arrival" and edges.inputs[name]:
                own = [key for key in traced.records.get(name, {}) if key is not None]
                arrivals[name] = {key: place for place, key in enumerate(own)}
        return arrivals

    def probe(
        self, segment: Segment, operator: str, probe: Probe, *, low: Position | None = None
    ) -> list[Record]:
        """What a probe finds in a Python operator's states over a segment (from a mark on)."""
        tail, chain = next((t, c) for t, c in self.tracing.chains.items() if operator in c)
        epoch = self.windowed(segment, Window(low, probe.before))
        epoch.probe = (chain, replace(probe, stage=chain.index(operator)))
        with self.tagged(f"search in epoch {segment.epoch}", epoch):
            epoch.frames.stream(tail, segment.level)
            table = epoch.traced[tail].filter(F.col(TRACE).isNotNull()).select(TRACE).toArrow()
        return read_records(table.column(TRACE))

    def pieces(self, segment: Segment) -> list[Window]:
        """Stretches of a segment that can be searched each by itself: states are known where they begin."""
        epoch = self.windowed(segment, Window())
        places = [at for _, at in epoch.usable_marks] if epoch.prefix else []
        fact = self.history.epochs[segment.epoch]
        several = max(1, math.ceil(PIECE * (len(places) + 1) / max(fact.seconds, 1e-3)))
        edges = [None, *places[several - 1 :: several], None]
        return [Window(low, high) for low, high in pairwise(edges)]

    def failed_step(self, segment: Segment) -> tuple[str, Record] | None:
        """The operator that raised in a segment, and its step (the first, if several tasks did so).

        Goes through the segment up to there.
        """
        edges = self.edges(segment.level)
        epoch = self.windowed(segment, Window(AT_END), steps=True)
        epoch.checks = True
        with self.tagged(f"search in epoch {segment.epoch}", epoch):
            for tail in self.tracing.chains:
                if edges.inputs.get(tail):
                    epoch.frames.stream(tail, segment.level)
            if not epoch.traced:
                return None
            table = _united(self.spark, self._reports(epoch)).toArrow()
        traced = TracedWindow(segment, epoch.window, Trace(edges, {}))
        self._read_python(table, list(epoch.traced), traced, {}, {})
        return min(traced.failures, key=lambda f: f[1].at or (), default=None)

    # --- where tuples are -------------------------------------------------------------------------------------------

    def marked(self, segment: Segment, name: str, tuples: int) -> tuple[Position | None, int]:
        """The last mark at which a Python operator had taken at most `tuples` tuples, and how many it had."""
        if segment.epoch >= len(self.history.epochs):
            return None, 0
        fact = self.history.epochs[segment.epoch]
        if name not in fact.state or segment.level != fact.level:
            return None, 0

        def taken(at: Position) -> int:
            return self.windowed(segment, Window(at)).taken_before(name)

        kept = [at for _, at in self.windowed(segment, Window()).usable_marks]
        behind = bisect_right(kept, tuples, key=taken)
        return (kept[behind - 1], taken(kept[behind - 1])) if behind else (None, 0)

    def positions(
        self, segment: Segment, name: str, *, skip: int, count: int, low: Position | None = None
    ) -> list[Position]:
        """Positions of an operator's input tuples in a segment (from `low` on), in canonical order, some of them."""
        if name in self.inside:
            return self._places_inside(segment, name, skip, count, low)
        edges = self.edges(segment.level)
        ups = [edges.inputs[name][port] for port in edges.ports(name)]
        wide = max(self.tracing.width[up] for up in ups)
        with self.streams(segment, Window(low), what="places") as stream:
            frames = []
            for port, up in enumerate(ups):
                df = stream(up)
                df = df.filter(at_or_behind(df, low)) if low is not None else df
                places = map(F.expr, padded_columns(hidden(df), wide))
                frames.append(df.select(F.array(*places).alias("at"), F.lit(port).alias("port")))
            every = reduce(lambda a, b: a.union(b), frames)
            return positions_in(every.orderBy("at", "port").offset(skip).limit(count))

    @cached_property
    def inside(self) -> frozenset[str]:
        """Operators that take their tuples from another one in the same worker pass."""
        return frozenset(n for chain in self.tracing.chains.values() for n in chain[1:])

    def _places_inside(
        self, segment: Segment, name: str, skip: int, count: int, low: Position | None
    ) -> list[Position]:
        alone = self.tracing.shape(name) == "python"  # one worker has them all, in order
        probe = Probe(0, places=(skip, count) if alone else (0, END))
        places = sorted(r.at for r in self.probe(segment, name, probe, low=low) if r.at is not None)
        return places if alone else places[skip : skip + count]

    def leaf_positions(self, segment: Segment, low: Position | None, count: int | None) -> list[Position]:
        """Positions of the leaves' tuples from one on, in order; for leaves whose files have no row numbers."""
        leaves = leaves_of(self.tracing, segment.level)
        width = min(self.tracing.width[n] for n in leaves)
        with self.streams(segment, what="places") as stream:
            frames = []
            for name in leaves:
                df = stream(name)
                df = df.filter(at_or_behind(df, low)) if low is not None else df
                frames.append(df.select(F.array(*hidden(df)[:width]).alias("at")))
            every = reduce(lambda a, b: a.union(b), frames).orderBy("at")
            return positions_in(every if count is None else every.limit(count))

    def counted_before(
        self, traced: TracedWindow, before: Mapping[str, Counters], wanted: Sequence[str]
    ) -> dict[str, Counters]:
        """What operators had taken and given when a window began, from what they had when its epoch began."""
        segment, window = traced.segment, traced.window
        totals = {n: before[n] for n in wanted if n in before}
        logged = {n: c.given for n, c in self._logged(segment).items()}
        for level in range(segment.low, segment.level):  # levels of the same epoch that went before
            below = replace(segment, level=level, units=self._units(segment))
            totals = _added(totals, self._built(below, wanted))
            totals = _added(totals, self._counts(below, Window(), logged, wanted))
        totals = _added(totals, self._built(segment, wanted))
        if window.low is not None:
            totals = _added(totals, self._counts(segment, Window(None, window.low), traced.given, wanted))
        return totals

    def _logged(self, segment: Segment) -> Mapping[str, Counters]:
        """The counters of a segment's epoch; none for the epoch that failed."""
        committed = segment.epoch < len(self.history.epochs)
        return self.history.epochs[segment.epoch].counters if committed else {}

    def _units(self, segment: Segment) -> dict[str, tuple[int, int]]:
        if segment.epoch >= len(self.history.epochs):  # the one that failed
            return dict(segment.units)
        return self.history.epochs[segment.epoch].units

    def _built(self, segment: Segment, wanted: Sequence[str]) -> dict[str, Counters]:
        """What the build sides of a level's joins took and gave, by the log: all of it before the first step."""
        placement, level = self.tracing.placement, segment.level
        working = self.edges(level).inputs
        counters: dict[str, Counters] = {}
        for name, counted in self._logged(segment).items():
            if name not in wanted:
                continue
            if not placement.streams[name] and level == min(placement.whole[name], default=-1):
                counters[name] = counted
            elif name in placement.build and working.get(name):
                port = 0 if placement.build[name] == "left" else 1
                counters[name] = Counters(
                    tuple(n if p == port else 0 for p, n in enumerate(counted.taken)), 0
                )
        return counters

    def _counts(
        self, segment: Segment, window: Window, inside: Mapping[str, int], wanted: Sequence[str]
    ) -> dict[str, Counters]:
        """Operators' counters over a window; `inside` are the tuples given inside of chains of Python operators."""
        edges = self.edges(segment.level)
        leaves = leaves_of(self.tracing, segment.level)
        here = {n: edges.inputs[n] for n in edges.inputs if n in wanted}
        feeding = {up for ups in edges.inputs.values() for up in ups if up in edges.inputs}
        needed = {n for name, ups in here.items() for n in (name, *ups) if n in feeding}
        given = self._given(segment, window, [n for n in edges.inputs if n in needed - self.tracing.fused])
        given |= {n: inside.get(n, 0) for n in edges.inputs if n in self.tracing.fused}
        counters: dict[str, Counters] = {}
        for name, ups in here.items():
            steps = edges.ports(name) if ups else ()
            taken = tuple(given.get(up, 0) if p in steps else 0 for p, up in enumerate(ups))
            if name not in leaves or gives_here(self.tracing, name, segment.level):
                kept = edges.shapes[name] == "sink"  # a sink gives what it keeps
                counters[name] = Counters(taken, sum(taken) if kept else given.get(name, 0))
        return counters

    def _given(self, segment: Segment, window: Window, names: Sequence[str]) -> dict[str, int]:
        """How many tuples operators gave in a window: from the chunks where these are counted, else by a job."""
        known: dict[str, int] = {}
        if window.low is None and window.high is not None and self.tally.edge(segment, window.high):
            known = self.tally.before(segment, [n for n in names if self.tally.can(segment, n)], window.high)
        left = [n for n in names if n not in known]
        if not left:
            return known

        def counts(stream: Streams) -> DataFrame:
            parts = [
                stream(n).agg(F.count(F.lit(1)).alias("n")).select(F.lit(n).alias("op"), "n") for n in left
            ]
            return reduce(lambda a, b: a.union(b), parts)

        rows = self._count(segment, window, counts).to_pylist()
        return known | {r["op"]: int(r["n"]) for r in rows}

    def _count(self, segment: Segment, window: Window, make: Callable[[Streams], DataFrame]) -> pa.Table:
        """What a frame made from the streams of a segment holds."""
        with self.streams(segment, window, what="counts") as stream:
            return make(stream).toArrow()

    @contextlib.contextmanager
    def streams(
        self, segment: Segment, window: Window = ALL, *, what: str = "search", unpruned: bool = False
    ) -> Iterator[Streams]:
        """The rows that operators give in a window, with their positions.

        `unpruned`: with all columns of build sides, for questions that may name any of them.
        """
        epoch = self.windowed(segment, window)
        if unpruned:
            epoch.builds, epoch.prunes = {}, False
        with self.tagged(f"{what} in epoch {segment.epoch}", epoch):
            yield lambda name: epoch.frames.stream(name, segment.level)

    @contextlib.contextmanager
    def tagged(self, what: str, epoch: Epoch) -> Iterator[None]:
        """Name the jobs that follow, and give back what they kept."""
        context = getattr(self.spark, "sparkContext", None)
        if context is not None:
            context.setJobDescription(f"{self.plan.graph.name}: {what}")
        try:
            with tagged(self.spark, self.tag):
                yield
        except SPARK_ERRORS as error:
            self._check(epoch)
            if (damage := damage_in(str(error), self.recording.path)) is not None:
                raise damage from None
            if (differs := difference_in(str(error))) is not None:
                raise differs from None
            raise
        finally:
            if context is not None:
                context.setJobDescription(None)
            epoch.release()

    def _check(self, epoch: Epoch) -> None:
        """Raise when what a replay starts from is not as it was: inputs, and the states of Python operators."""
        for source in self.sources.values():
            check_unchanged(source, self.spark)
        known = len(epoch.context.history.epochs)
        for name in self.code:
            own = self.history.epochs[known : known + 1]  # it holds the logged results of calls
            kept = [str(f) for files in self.recording.state_files(name, own).values() for f, _ in files]
            for file in (*(f for v in epoch._versions(name).values() for f in v.files), *kept):
                read_state(Path(file))


def positions_in(df: DataFrame) -> list[Position]:
    """The positions that a frame has in its column `at`."""
    return [tuple(at) for at in df.toArrow().column("at").to_pylist()]


def _added(a: Mapping[str, Counters], b: Mapping[str, Counters]) -> dict[str, Counters]:
    return {n: add_counters(a.get(n), b[n]) if n in b else a[n] for n in (*a, *(n for n in b if n not in a))}


def _united(spark: SparkSession, parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def _row_of(fields: Sequence[StructField]) -> Column:
    """A row's columns as one: a struct, in a list of one if it holds a VARIANT.

    Spark cannot hand over a struct that is null where its parts may not be, which is what a VARIANT is beside other
    operators' rows, and where it is null itself: an empty list can stand there.
    """
    parts = [f"array_compact(array({f.name}))" if _is_variant(f) else f.name for f in fields]
    kinds = [StructField(f.name, ArrayType(f.dataType) if _is_variant(f) else f.dataType) for f in fields]
    row = F.expr(f"struct({', '.join(parts)})").cast(shown_types(StructType(kinds)))
    return F.array(row) if any(has_variant(f.dataType) for f in fields) else row


def _reader(schema: StructType) -> Callable[[Any], Iterable[Any]]:
    """What takes a row apart that `_row_of` made."""
    if not has_variant(schema):
        return lambda value: value.values()
    lists = [_is_variant(f) for f in schema.fields]

    def read(value: Any) -> list[Any]:
        parts = zip(value[0].values(), lists, strict=True)
        return [(next(iter(part), None) if listed else part) for part, listed in parts]

    return read


def _is_variant(field: StructField) -> bool:
    return isinstance(field.dataType, VariantType)
