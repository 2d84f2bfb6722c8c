"""Where a row came from: its own way back to the sources, what it was joined with, what went into its groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from samovar.compile.native import hidden, visible
from samovar.errors import TimeTravelError
from samovar.graph import operators as ops
from samovar.replay.queries import in_group, matching_inputs
from samovar.replay.state.windows import Stretch, Travel
from samovar.replay.trace.model import Position, Tuple, Window
from samovar.replay.trace.segments import Segment
from samovar.text import quote_name

__all__ = ["Origin", "find_origins"]


@dataclass(frozen=True)
class Origin:
    """A tuple that led to another one: who gave it, the row, and the epoch it flowed in."""

    operator: str
    row: Mapping[str, Any]
    epoch: int
    position: Position = field(repr=False, default=())


def find_origins(travel: Travel, sink: str, row: Mapping[str, Any] | int, limit: int = 20) -> list[Origin]:
    """The tuples that led to a row of a sink, from its own input back to the sources."""
    travel.check(sink)
    tracer = travel.tracer
    if tracer.plan.shape(sink) != "sink":
        known = [n for n in travel.operators if tracer.plan.shape(n) == "sink"]
        raise TimeTravelError(
            f"Expected a sink, got '{sink}'.", operator=sink, hint=f"Sinks: {', '.join(known)}."
        )
    up = tracer.plan.graph.ops[sink].inputs[0]
    for number, segment in enumerate(travel.segments):
        if not travel.taken_in(segment, sink):
            continue
        place = _find_row(travel, segment, up, row)
        if place is not None:
            stretch, _, key = travel.around(number, sink, place)
            assert key is not None
            made: list[Origin] = []
            _walk(travel, stretch, stretch.traced.trace.step(key).taken, made, limit)
            return made
        if isinstance(row, int):
            row -= travel.taken_in(segment, sink)
    raise TimeTravelError(f"'{sink}' holds no such row.", operator=sink, hint=f"Got {row!r}.")


def _find_row(travel: Travel, segment: Segment, up: str, row: Mapping[str, Any] | int) -> Position | None:
    tracer = travel.tracer
    epoch = tracer.windowed(segment, Window())
    with tracer.tagged(f"search in epoch {segment.epoch}", epoch):
        df = epoch.frames.stream(up, segment.level)
        if isinstance(row, int):
            if row < 0:
                return None
            chosen = df.select(F.array(*hidden(df)).alias("at")).orderBy("at").offset(row).limit(1)
        else:
            chosen = _matching(df, row).select(F.array(*hidden(df)).alias("at")).orderBy("at").limit(1)
        found = chosen.toArrow().column("at").to_pylist()
    return tuple(found[0]) if found else None


def _matching(df: DataFrame, row: Mapping[str, Any]) -> DataFrame:
    unknown = [c for c in row if c not in visible(df)]
    if unknown:
        raise TimeTravelError(
            f"Expected columns {', '.join(visible(df))}, got {', '.join(unknown)}.",
            hint="Give some of the row's columns: {'customer': 'Bob'}.",
        )
    for name, value in row.items():
        df = df.filter(F.col(quote_name(name)).eqNullSafe(F.lit(value)))
    return df


def _walk(travel: Travel, stretch: Stretch, given: Tuple | None, made: list[Origin], limit: int) -> None:
    """From a tuple back to the leaves of its level, what it was joined with, and what ended on the levels below."""
    trace, ways = stretch.traced.trace, travel.tracer.tracing
    joined: list[tuple[ops.Join, Tuple]] = []
    while given is not None and len(made) < limit:
        made.append(Origin(given.operator, given.row, stretch.segment.epoch, given.position))
        key = trace.producer_of(given)
        if key is None:
            break
        op = ways.graph.ops[key[0]]
        if isinstance(op, ops.Join) and ways.shape(op.name) == "join":
            joined.append((op, given))
        given = trace.step(key).taken
    for op, out in joined:
        _build_side(travel, stretch, op, out, made, limit)
    if given is not None and len(made) < limit:
        _below(travel, stretch, given.operator, given.row, made, limit)


def _below(
    travel: Travel, stretch: Stretch, operator: str, row: Mapping[str, Any], made: list[Origin], limit: int
) -> None:
    """What led to a row that an operator of a lower level gave at its end."""
    if stretch.segment.level <= travel.tracer.plan.placement.level[operator]:
        return
    wanted = _came_from(travel, operator, row)
    if wanted is None:
        return
    chosen, count = wanted
    for number, segment in enumerate(travel.segments[: stretch.number]):
        left = min(count, limit - len(made))
        if not travel.taken_in(segment, operator) or left <= 0:
            continue
        places = matching_inputs(travel, segment, operator, chosen, left)
        count -= len(places)
        for _, at in places:
            lower, _, step = travel.around(number, operator, at)
            if step is not None:
                _walk(travel, lower, lower.traced.trace.step(step).taken, made, limit)


# --- what a tuple was joined with -----------------------------------------------------------------------------------


def _build_side(
    travel: Travel, stretch: Stretch, op: ops.Join, out: Tuple, made: list[Origin], limit: int
) -> None:
    """The tuple of a join's build side that an output was made with, and where that came from."""
    plan = travel.tracer.tracing
    side = 0 if plan.placement.build[op.name] == "left" else 1
    name, probe = op.inputs[side], op.inputs[1 - side]
    if op.how in ("semi", "anti"):
        return
    at = out.position[plan.width[probe] : plan.width[probe] + plan.width[name]]
    _whole_way(travel, stretch, name, at, out.row, made, limit)


def _whole_way(
    travel: Travel,
    stretch: Stretch,
    name: str,
    at: Position,
    like: Mapping[str, Any],
    made: list[Origin],
    limit: int,
) -> None:
    """A tuple of an operator whose output is taken whole, and the tuples before it, back to storage."""
    plan = travel.tracer.tracing
    if len(made) >= limit or (at and at[0] == -1):
        return  # an outer join that found no match
    row = _whole_row(travel, stretch.segment, name, at, like)
    if row is None:
        return
    made.append(Origin(name, row, stretch.segment.epoch, at))
    op = plan.graph.ops[name]
    if plan.placement.ends(name) or name in plan.placement.stashed or not op.inputs:
        _below(travel, stretch, name, row, made, limit)
    elif isinstance(op, ops.Join) and plan.shape(name) == "join":
        side = 0 if plan.placement.build[name] == "left" else 1
        ahead = plan.width[op.inputs[1 - side]]
        _whole_way(travel, stretch, op.inputs[1 - side], at[:ahead], row, made, limit)
        if op.how not in ("semi", "anti"):
            _whole_way(travel, stretch, op.inputs[side], at[ahead:], row, made, limit)
    elif len(op.inputs) == 1 and at:
        _whole_way(travel, stretch, op.inputs[0], at[: plan.width[op.inputs[0]]], row, made, limit)


def _whole_row(
    travel: Travel, segment: Segment, name: str, at: Position, like: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The row at a position; of what has no positions, the first row that agrees with another in their columns."""
    tracer = travel.tracer
    epoch = tracer.windowed(segment, Window())
    with tracer.tagged(f"build side of epoch {segment.epoch}", epoch):
        if name in epoch.plan.placement.stashed:
            df = epoch.whole(name)
        else:
            df = epoch.frames.whole(name)
        own, shown = hidden(df), visible(df)
        if at and own:
            for column, value in zip(own, at, strict=False):
                df = df.filter(F.col(column) == F.lit(value))
        else:
            for column in (c for c in shown if c in like):
                df = df.filter(F.col(quote_name(column)).eqNullSafe(F.lit(like[column])))
        found = df.drop(*own).limit(1).toArrow().to_pylist(maps_as_pydicts="strict")
    return found[0] if found else None


def _came_from(travel: Travel, operator: str, row: Mapping[str, Any]) -> tuple[Column, int] | None:
    """Which input tuples of an operator that gave its output at its end led to a row, and how many at most."""
    plan = travel.tracer.plan
    if plan.shape(operator) == "accumulate":
        op = plan.graph.ops[operator]
        named = op.subset if isinstance(op, ops.DropDuplicates) and op.subset is not None else None
        names = named or plan.schemas[operator].names[: len(plan.keys(operator))]
        values = tuple(row[n] for n in names)
        return in_group(travel, operator, values[0] if len(values) == 1 else values), 1 << 30
    if isinstance(plan.graph.ops[operator], ops.Sort):
        made = F.lit(True)
        for name, value in row.items():
            made = made & F.col(quote_name(name)).eqNullSafe(F.lit(value))
        return made, 1
    return None
