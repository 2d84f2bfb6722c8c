"""What operators had taken and given when a window began: from the log, from counted chunks, else by a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from samovar.positions import Window
from samovar.record.log import Counters
from samovar.record.store import add_counters
from samovar.replay.trace.segments import Segment, gives_here, leaves_of
from samovar.replay.trace.traced_window import TracedWindow

if TYPE_CHECKING:
    from samovar.replay.trace.tracer import Streams, Tracer

__all__ = ["counted_before"]


def counted_before(
    tracer: Tracer, traced: TracedWindow, before: Mapping[str, Counters], wanted: Sequence[str]
) -> dict[str, Counters]:
    """What operators had taken and given when a window began, from what they had when its epoch began."""
    segment, window = traced.segment, traced.window
    totals = {n: before[n] for n in wanted if n in before}
    logged = {n: c.given for n, c in _logged(tracer, segment).items()}
    for level in range(segment.low, segment.level):  # levels of the same epoch that went before
        below = replace(segment, level=level, units=_units(tracer, segment))
        totals = _added(totals, _built(tracer, below, wanted))
        totals = _added(totals, _counts(tracer, below, Window(), logged, wanted))
    totals = _added(totals, _built(tracer, segment, wanted))
    if window.low is not None:
        totals = _added(totals, _counts(tracer, segment, Window(None, window.low), traced.given, wanted))
    return totals


def _logged(tracer: Tracer, segment: Segment) -> Mapping[str, Counters]:
    """The counters of a segment's epoch; none for the epoch that failed."""
    committed = segment.epoch < len(tracer.history.epochs)
    return tracer.history.epochs[segment.epoch].counters if committed else {}


def _units(tracer: Tracer, segment: Segment) -> dict[str, tuple[int, int]]:
    if segment.epoch >= len(tracer.history.epochs):  # the one that failed
        return dict(segment.units)
    return tracer.history.epochs[segment.epoch].units


def _built(tracer: Tracer, segment: Segment, wanted: Sequence[str]) -> dict[str, Counters]:
    """What the build sides of a level's joins took and gave, by the log: all of it before the first step."""
    placement, level = tracer.tracing.placement, segment.level
    working = tracer.edges(level).inputs
    counters: dict[str, Counters] = {}
    for name, counted in _logged(tracer, segment).items():
        if name not in wanted:
            continue
        if not placement.streams[name] and level == min(placement.whole[name], default=-1):
            counters[name] = counted
        elif name in placement.build and working.get(name):
            port = placement.build_port(name)
            counters[name] = Counters(tuple(n if p == port else 0 for p, n in enumerate(counted.taken)), 0)
    return counters


def _counts(
    tracer: Tracer, segment: Segment, window: Window, inside: Mapping[str, int], wanted: Sequence[str]
) -> dict[str, Counters]:
    """Operators' counters over a window; `inside` are the tuples given inside of chains of Python operators."""
    edges = tracer.edges(segment.level)
    leaves = leaves_of(tracer.tracing, segment.level)
    here = {n: edges.inputs[n] for n in edges.inputs if n in wanted}
    feeding = {up for ups in edges.inputs.values() for up in ups if up in edges.inputs}
    needed = {n for name, ups in here.items() for n in (name, *ups) if n in feeding}
    given = _given(tracer, segment, window, [n for n in edges.inputs if n in needed - tracer.tracing.fused])
    given |= {n: inside.get(n, 0) for n in edges.inputs if n in tracer.tracing.fused}
    counters: dict[str, Counters] = {}
    for name, ups in here.items():
        steps = edges.ports(name) if ups else ()
        taken = tuple(given.get(up, 0) if p in steps else 0 for p, up in enumerate(ups))
        if name not in leaves or gives_here(tracer.tracing, name, segment.level):
            kept = edges.shapes[name] == "sink"  # a sink gives what it keeps
            counters[name] = Counters(taken, sum(taken) if kept else given.get(name, 0))
    return counters


def _given(tracer: Tracer, segment: Segment, window: Window, names: Sequence[str]) -> dict[str, int]:
    """How many tuples operators gave in a window: from the chunks where these are counted, else by a job."""
    known: dict[str, int] = {}
    if window.low is None and window.high is not None and tracer.tally.edge(segment, window.high):
        known = tracer.tally.before(segment, [n for n in names if tracer.tally.can(segment, n)], window.high)
    left = [n for n in names if n not in known]
    if not left:
        return known

    def counts(stream: Streams) -> DataFrame:
        parts = [stream(n).agg(F.count(F.lit(1)).alias("n")).select(F.lit(n).alias("op"), "n") for n in left]
        return reduce(lambda a, b: a.union(b), parts)

    rows = tracer.count(segment, window, counts).to_pylist()
    return known | {r["op"]: int(r["n"]) for r in rows}


def _added(a: Mapping[str, Counters], b: Mapping[str, Counters]) -> dict[str, Counters]:
    return {n: add_counters(a.get(n), b[n]) if n in b else a[n] for n in (*a, *(n for n in b if n not in a))}
