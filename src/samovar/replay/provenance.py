"""Where a row came from: the way back to the sources, the tuples it was joined with, the tuples of its groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from samovar.compile.native import hidden, visible
from samovar.errors import TimeTravelError
from samovar.graph import operators as ops
from samovar.positions import PAD, Position, Window
from samovar.replay.jumps import after_tuple
from samovar.replay.queries import in_group, matching_inputs
from samovar.replay.replay_session import ReplaySession
from samovar.replay.state.group_states import has_values
from samovar.replay.trace.model import Tuple
from samovar.replay.trace.segments import Segment
from samovar.replay.trace.traced_window import TracedWindow
from samovar.replay.trace.tracer import positions_in

__all__ = ["Origin", "find_origins"]


@dataclass(frozen=True)
class Origin:
    """A tuple that led to another one: the operator that produced it, its row, and its epoch."""

    operator: str
    row: Mapping[str, Any]
    epoch: int
    position: Position = field(repr=False, default=())


def find_origins(
    session: ReplaySession, sink: str, row: Mapping[str, Any] | int, limit: int = 20
) -> list[Origin]:
    """The tuples that led to a row of a sink, from the sink's input back to the sources; `limit` of them at most."""
    op = session.op(sink)
    if session.plan.shape(sink) != "sink":
        known = [n for n in session.operators if session.plan.shape(n) == "sink"]
        raise TimeTravelError(
            f"Expected a sink, got '{sink}'.", operator=sink, hint=f"Sinks: {', '.join(known)}."
        )
    for segment in session.segments:
        if not session.taken_in(segment, sink):
            continue
        at = _find_row(session, segment, op.inputs[0], row)
        if at is not None:
            walk = _Walk(session, limit)
            walk.from_input(segment, sink, at)
            return walk.origins
        if isinstance(row, int):
            row -= session.taken_in(segment, sink)
    raise TimeTravelError(f"'{sink}' holds no such row.", operator=sink, hint=f"Got {row!r}.")


def _find_row(
    session: ReplaySession, segment: Segment, up: str, row: Mapping[str, Any] | int
) -> Position | None:
    """The position of the first row that matches, or of the row of that number."""
    if isinstance(row, int) and row < 0:
        return None
    with session.tracer.streams(segment) as stream:
        df = stream(up)
        skip, chosen = (row, df) if isinstance(row, int) else (0, _matching(df, row))
        places = chosen.select(F.array(*hidden(df)).alias("at")).orderBy("at").offset(skip).limit(1)
        return next(iter(positions_in(places)), None)


def _matching(df: DataFrame, row: Mapping[str, Any]) -> DataFrame:
    unknown = [c for c in row if c not in visible(df)]
    if unknown:
        raise TimeTravelError(
            f"Expected columns {', '.join(visible(df))}, got {', '.join(unknown)}.",
            hint="Give some of the row's columns: {'customer': 'Bob'}.",
        )
    return df.filter(has_values(row))


class _Walk:
    """A walk back from a tuple; collects the origins on its way, up to a limit."""

    def __init__(self, session: ReplaySession, limit: int) -> None:
        self.session = session
        self.plan = session.tracer.tracing
        self.limit = limit
        self.origins: list[Origin] = []

    def from_input(self, segment: Segment, operator: str, at: Position) -> None:
        """Walk back from the tuple at a position of an operator's input."""
        cursor = after_tuple(self.session, segment, operator, at)
        assert cursor.last is not None
        self._back(cursor.traced, cursor.traced.trace.step(cursor.last).taken)

    def _back(self, traced: TracedWindow, given: Tuple | None) -> None:
        """Walk to the leaves of a tuple's level, to the tuples it was joined with, and on to the levels below."""
        segment, trace = traced.segment, traced.trace
        joined: list[tuple[ops.Join, Tuple]] = []
        while given is not None and len(self.origins) < self.limit:
            self.origins.append(Origin(given.operator, given.row, segment.epoch, given.position))
            key = trace.producer_of(given)
            if key is None:
                break
            op = self.plan.graph.ops[key[0]]
            if isinstance(op, ops.Join) and self.plan.shape(op.name) == "join":
                joined.append((op, given))
            given = trace.step(key).taken
        for op, output in joined:
            probe, build = (self.plan.width[name] for name in self._sides(op))
            if op.how not in ("semi", "anti"):
                at = output.position[probe : probe + build]
                self._whole(segment, self._sides(op)[1], at, output.row)
        if given is not None and len(self.origins) < self.limit:
            self._below(segment, given.operator, given.row)

    def _sides(self, op: ops.Join) -> tuple[str, str]:
        """The operators of a join's probe side and of its build side."""
        build = 0 if self.plan.placement.build[op.name] == "left" else 1
        return op.inputs[1 - build], op.inputs[build]

    def _below(self, segment: Segment, operator: str, row: Mapping[str, Any]) -> None:
        """Walk to the tuples behind a row that an operator of a lower level produced at the end of its input."""
        if segment.level <= self.plan.placement.level[operator]:
            return
        condition, count = _came_from(self.session, operator, row)
        for lower in self.session.segments[: segment.number]:
            left = min(count, self.limit - len(self.origins))
            if left <= 0 or not self.session.taken_in(lower, operator):
                continue
            places = matching_inputs(self.session, lower, operator, condition, left)
            count -= len(places)
            for _, at in places:
                self.from_input(lower, operator, at)

    def _whole(self, segment: Segment, name: str, at: Position, like: Mapping[str, Any]) -> None:
        """Walk to a tuple of an operator whose output is read as a whole, and to the tuples before it, to storage."""
        plan = self.plan
        if len(self.origins) >= self.limit or (at and at[0] == PAD):
            return  # a row of an outer join without a match
        row = self._whole_row(segment, name, at, like)
        if row is None:
            return
        self.origins.append(Origin(name, row, segment.epoch, at))
        op = plan.graph.ops[name]
        if plan.placement.ends(name) or name in plan.placement.stashed or not op.inputs:
            self._below(segment, name, row)
        elif isinstance(op, ops.Join) and plan.shape(name) == "join":
            probe, build = self._sides(op)
            self._whole(segment, probe, at[: plan.width[probe]], row)
            if op.how not in ("semi", "anti"):
                self._whole(segment, build, at[plan.width[probe] :], row)
        elif len(op.inputs) == 1 and at:
            self._whole(segment, op.inputs[0], at[: plan.width[op.inputs[0]]], row)

    def _whole_row(
        self, segment: Segment, name: str, at: Position, like: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """The row at a position; where rows have none, the first row with the same values in the same columns."""
        tracer = self.session.tracer
        epoch = tracer.windowed(segment, Window())
        with tracer.tagged(f"build side of epoch {segment.epoch}", epoch):
            stashed = name in epoch.plan.placement.stashed
            df = epoch.frames.stash(name) if stashed else epoch.frames.whole(name)
            positions, columns = hidden(df), visible(df)
            if at and positions:
                values: Mapping[str, Any] = dict(zip(positions, at, strict=False))
            else:
                values = {column: like[column] for column in columns if column in like}
            table = df.filter(has_values(values)).drop(*positions).limit(1).toArrow()
            rows: list[Mapping[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
        return rows[0] if rows else None


def _came_from(session: ReplaySession, operator: str, row: Mapping[str, Any]) -> tuple[Column, int]:
    """For a row produced at the end of the input: a condition on the tuples it came from, and how many at most."""
    plan = session.plan
    op = plan.graph.ops[operator]
    if plan.shape(operator) == "accumulate":
        subset = op.subset if isinstance(op, ops.DropDuplicates) else None
        names = subset or plan.schemas[operator].names[: len(plan.keys(operator))]
        values = tuple(row[n] for n in names)
        return in_group(session, operator, values[0] if len(values) == 1 else values), 1 << 30
    return (has_values(row), 1) if isinstance(op, ops.Sort) else (F.lit(False), 0)
