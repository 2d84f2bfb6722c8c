"""Traces from Spark: one segment, one window of positions, every operator's tuples in a single job.

Native operators run as they ran, with positions on every edge; Python operators run the recorded code under trace (see
traced_chain.py). A window is a range of the leaves' positions. Where an operator on the level needs what came before
the window (a stateful Python operator, a limit), the rows from the epoch's start on flow through it too, untraced.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from samovar.compile.native import at_or_behind, hidden
from samovar.compile.plan import Plan
from samovar.positions import AT_END, END, Position, Window, padded_columns
from samovar.record.log import EpochCommitted, EpochFailed
from samovar.record.state_files import read_state
from samovar.record.store import History, Recording
from samovar.replay.trace.epoch_marks import EpochMarks
from samovar.replay.trace.leaf_counts import Tally
from samovar.replay.trace.leaves import Leaves
from samovar.replay.trace.model import Edges, Trace, Tuple
from samovar.replay.trace.past_builds import PastBuilds
from samovar.replay.trace.past_epoch import PastEpoch, PastWindow, RecordedEpoch, WindowView
from samovar.replay.trace.segments import Segment, edges_of
from samovar.replay.trace.trace_table import (
    arrivals_of,
    read_native,
    read_python,
    reports,
    window_parts,
)
from samovar.replay.trace.traced_chain import (
    TRACE,
    Probe,
    Record,
    read_records,
)
from samovar.replay.trace.traced_window import TracedWindow
from samovar.runtime.epochs.kept_frames import KeptFrames
from samovar.runtime.epochs.run_context import Logic, RunContext, RunProgress
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
PLAIN = WindowView()
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
        self.tally = Tally(self.tracing, self.leaves, partial(self.count, native=True), self.given_in)
        self._held: list[DataFrame] = []
        self._plans: dict[Any, Plan] = {}
        self._builds: dict[Any, PastBuilds] = {}
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

    def original(self, segment: Segment, kept: KeptFrames | None = None) -> PastEpoch:
        """The segment's epoch as it ran; what it keeps in memory is released with `kept`."""
        context = self._context(self.plan_at(segment.epoch), segment)
        return PastEpoch(context, self.recorded(segment), segment, kept or KeptFrames())

    def windowed(
        self, segment: Segment, window: Window, view: WindowView = PLAIN, *, kept: KeptFrames | None = None
    ) -> PastWindow:
        """The segment with positions, cut to a window. `kept`: of another window, with which it is released."""
        plan, recorded = self.plan_at(segment.epoch, tracing=True), self.recorded(segment)
        return PastWindow(
            self._context(plan, segment),
            recorded,
            segment,
            window,
            view,
            original=partial(self.original, segment),
            kept=kept or KeptFrames(),
            builds=self._builds_of(plan, recorded, segment) if view.prunes else None,
        )

    def _builds_of(self, plan: Plan, recorded: RecordedEpoch, segment: Segment) -> PastBuilds:
        """The build sides of a segment's joins: those of its level, unless something was decided about its rows."""
        place = segment if recorded.decisions else (segment.low, segment.level, id(plan))
        return self._builds.setdefault(place, PastBuilds(self.keep, self._rows_of))

    def _rows_of(self, name: str) -> int | None:
        """How many rows an operator gave in the run."""
        total = self.history.totals(len(self.history.epochs)).get(name)
        return None if total is None else total.given

    def marks(self, segment: Segment, window: Window = ALL) -> EpochMarks:
        """The marks of a segment's epoch, seen from a window."""
        plan = self.plan_at(segment.epoch, tracing=True)
        return EpochMarks(plan, self.recording, self.recorded(segment).fact, segment, window)

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
        return RunContext(
            self.spark, self.sources, self.recording, self.tag, Logic(plan, code), RunProgress(history)
        )

    def recorded(self, segment: Segment) -> RecordedEpoch:
        """What the recording knows of a segment's epoch."""
        number, epochs, failed = segment.epoch, self.history.epochs, self.history.failed
        fact: EpochCommitted | EpochFailed | None = failed
        if number < len(epochs):
            fact = epochs[number]
        elif failed is not None and failed.epoch != number:
            fact = None
        return RecordedEpoch(self.recording, number, fact, self.scratch)

    # --- traces -----------------------------------------------------------------------------------------------------

    def trace(self, segment: Segment, window: Window) -> TracedWindow:
        """All operators' tuples in a window, by one job."""
        edges = self.edges(segment.level)
        epoch = self.windowed(segment, window, WindowView(steps=True))
        with self.tagged(f"trace of epoch {segment.epoch}", epoch):
            near = self.windowed(segment, window, WindowView(near=True), kept=epoch.kept)
            parts, names = window_parts(edges, epoch, near)
            chains = list(epoch.traced)
            versions = {n: epoch.versions(n) for tail in chains for n in self.tracing.chains[tail]}
            table = _united(parts).toArrow() if parts else None
        traced = TracedWindow(segment, window, Trace(edges, {}), versions=versions)
        given: dict[str, list[Tuple]] = {}
        ends: dict[str, list[Tuple]] = {}
        if table is not None:
            given = read_native(self.tracing, table, names)
            read_python(self.tracing, table, chains, traced, given, ends)
            # key partitions without tuples from there on
            for name, before in epoch.marks.given_before().items():
                own = traced.bases.get(name, {})
                traced.given[name] = traced.given.get(name, 0) + sum(
                    n for b, n in before.items() if b not in own
                )
        for tuples in given.values():
            tuples.sort(key=lambda t: t.position)
        traced.trace = Trace.of(edges, given, ends=ends, arrivals=arrivals_of(edges, traced))
        return traced

    def probe(
        self, segment: Segment, operator: str, probe: Probe, *, low: Position | None = None
    ) -> list[Record]:
        """What a probe finds in a Python operator's states over a segment (from a mark on)."""
        tail, chain = next((t, c) for t, c in self.tracing.chains.items() if operator in c)
        probing = (chain, replace(probe, stage=chain.index(operator)))
        epoch = self.windowed(segment, Window(low, probe.before), WindowView(probe=probing))
        with self.tagged(f"search in epoch {segment.epoch}", epoch):
            epoch.frames.stream(tail, segment.level)
            table = epoch.traced[tail].filter(F.col(TRACE).isNotNull()).select(TRACE).toArrow()
        return read_records(table.column(TRACE))

    def pieces(self, segment: Segment) -> list[Window]:
        """Stretches of a segment that can be searched each by itself: states are known where they begin."""
        marks = self.marks(segment)
        places = [at for _, at in marks.usable] if marks.prefix else []
        fact = self.history.epochs[segment.epoch]
        several = max(1, math.ceil(PIECE * (len(places) + 1) / max(fact.seconds, 1e-3)))
        edges = [None, *places[several - 1 :: several], None]
        return [Window(low, high) for low, high in pairwise(edges)]

    def failed_step(self, segment: Segment) -> tuple[str, Record] | None:
        """The operator that raised in a segment, and its step (the first, if several tasks did so).

        Goes through the segment up to there.
        """
        edges = self.edges(segment.level)
        epoch = self.windowed(segment, Window(AT_END), WindowView(steps=True, checks=True))
        with self.tagged(f"search in epoch {segment.epoch}", epoch):
            for tail in self.tracing.chains:
                if edges.inputs.get(tail):
                    epoch.frames.stream(tail, segment.level)
            if not epoch.traced:
                return None
            table = _united(reports(epoch)).toArrow()
        traced = TracedWindow(segment, epoch.window, Trace(edges, {}))
        read_python(self.tracing, table, list(epoch.traced), traced, {}, {})
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
            return self.marks(segment, Window(at)).taken_before(name)

        kept = [at for _, at in self.marks(segment).usable]
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
        sources = self.sources
        with self.streams(segment, what="places") as stream:
            frames = []
            for name in self.leaves.flowing(segment):
                df = stream(name)
                df = df.filter(at_or_behind(df, low)) if low is not None else df
                width = self.leaves.width(segment, sources[name].number if name in sources else 0)
                frames.append(df.select(F.array(*hidden(df)[:width]).alias("at")))
            if not frames:
                return []
            every = reduce(lambda a, b: a.union(b), frames).orderBy("at")
            return positions_in(every if count is None else every.limit(count))

    def count(
        self, segment: Segment, window: Window, make: Callable[[Streams], DataFrame], *, native: bool = False
    ) -> pa.Table:
        """What a frame made from the streams of a segment holds. `native`: streams of native operators only."""
        with self.streams(segment, window, what="counts", native=native) as stream:
            return make(stream).toArrow()

    def given_in(self, segment: Segment, name: str) -> int | None:
        """How many tuples an operator gave in a segment, by the log; None where the log has no number for it alone.

        Spark may stop before a limit has all its input, and a function over batches need not take all of it: what the
        log counted before these is less than what an operator gives when the segment is computed again.
        """
        placement = self.tracing.placement
        alone = placement.streams[name] == {segment.level} and not placement.whole[name]
        shapes = {placement.shapes[n] for n in self.edges(segment.level).inputs}
        alone = alone and not shapes & {"limit", "batches"}
        if not alone or segment.epoch >= len(self.history.epochs) or self.mended(segment):
            return None
        counted = self.history.epochs[segment.epoch].counters.get(name)
        return None if counted is None else counted.given

    @contextlib.contextmanager
    def streams(
        self,
        segment: Segment,
        window: Window = ALL,
        *,
        what: str = "search",
        unpruned: bool = False,
        native: bool = False,
    ) -> Iterator[Streams]:
        """The rows that operators give in a window, with their positions.

        `unpruned`: with all columns of build sides, for questions that may name any of them. `native`: of operators
        that need no rows before the window.
        """
        epoch = self.windowed(segment, window, WindowView(native=native, prunes=not unpruned))
        with self.tagged(f"{what} in epoch {segment.epoch}", epoch):
            yield lambda name: epoch.frames.stream(name, segment.level)

    @contextlib.contextmanager
    def tagged(self, what: str, epoch: PastWindow) -> Iterator[None]:
        """Name the jobs that follow, and give back what they kept."""
        epoch.context.describe(what)
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
            epoch.context.describe(None)
            epoch.kept.release()

    def _check(self, epoch: PastWindow) -> None:
        """Raise when what a replay starts from is not as it was: inputs, and the states of Python operators."""
        for source in self.sources.values():
            check_unchanged(source, self.spark)
        known = len(epoch.context.history.epochs)
        for name in self.code:
            own = self.history.epochs[known : known + 1]  # it holds the logged results of calls
            kept = [str(f) for files in self.recording.state_files(name, own).values() for f, _ in files]
            for file in (*(f for v in epoch.versions(name).values() for f in v.files), *kept):
                read_state(Path(file))


def positions_in(df: DataFrame) -> list[Position]:
    """The positions that a frame has in its column `at`."""
    return [tuple(at) for at in df.toArrow().column("at").to_pylist()]


def _united(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
