"""Questions over time: when did this become true, what changed this last, where did this row come from.

Every epoch's start is known, so epochs are searched independently, several at a time; only the epoch that holds the
answer is traced, and of it only a window around the tuple.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from samovar.compile.native import hidden
from samovar.compile.sqltext import split_alias
from samovar.errors import TimeTravelError, nearest
from samovar.graph.state import declared
from samovar.ids import new_attempt
from samovar.positions import AT_END, END, START, Position, Window
from samovar.record.state_files import dumps, read_state
from samovar.record.store import slug_unique
from samovar.replay.conditions import ConditionRows, condition_rows
from samovar.replay.jumps import after_tuple
from samovar.replay.replay_session import ReplaySession
from samovar.replay.state.group_states import first_group
from samovar.replay.state.state_changes import attributes
from samovar.replay.trace.model import parent_of
from samovar.replay.trace.segments import Segment
from samovar.replay.trace.traced_chain import Probe, Record, touches
from samovar.replay.trace.traced_window import Cursor
from samovar.replay.trace.tracer import positions_in
from samovar.runtime.failures.spark_errors import SparkError

__all__ = [
    "Predicate",
    "find_first",
    "find_last_change",
    "in_group",
    "log_rows",
    "matching_inputs",
    "matching_tuples",
]

AHEAD = 2
"""Epochs, or pieces of one, that are searched at the same time: more would compute what an answer makes needless."""
_Place = tuple[Segment, Window]
"""A segment, and a piece of it."""

Predicate = str | Callable[[Mapping[str, Any]], bool]


# --- the first moment where something holds -------------------------------------------------------------------------


def find_first(session: ReplaySession, operator: str, predicate: Predicate) -> Cursor | None:
    """The moment after the first tuple for which a predicate holds.

    For a Python operator: a Python expression over its states' names (and `row`, the tuple just processed), or a
    callable of its state. For others: SQL over the rows they take or produce (`conditions.py`). A row that an operator
    produces at the end of its input (a window, a full join) counts from there on.
    """
    tracer, python = session.tracer, session.is_python(operator)
    segments = [s for s in session.segments if session.taken_in(s, operator)]
    if python:
        probe = _probe(session, operator, predicate, tracer.scratch / f"over-{new_attempt()}")
        places = [(segment, piece) for segment in segments for piece in tracer.pieces(segment)]

        def search(segment: Segment, piece: Window) -> Position | None:
            records = tracer.probe(segment, operator, replace(probe, before=piece.high), low=piece.low)
            return min(_places(records), default=None)
    else:
        text = _sql(operator, predicate)
        asked = condition_rows(tracer.spark, tracer.plan, operator, text)
        _check_flows(session, operator)
        probe, places = None, [(segment, Window()) for segment in segments]
        ends = asked.rows == "given" and tracer.plan.shape(operator) == "keep"
        if ends:
            places = places[-1:] if _gave_at_end(session, operator, text) else []

        def search(segment: Segment, piece: Window) -> Position | None:
            if ends:
                return AT_END
            if asked.rows == "given" and tracer.plan.shape(operator) == "accumulate":
                return first_group(tracer, segment, operator, text)
            return next((at for _, at in matching_tuples(session, segment, operator, text, asked, 1)), None)

    with _as_our_error(operator, predicate):
        for (segment, _), at in _in_order(places, lambda place: search(*place)):
            if at is not None:
                if probe is not None:
                    Path(probe.over).touch()  # pieces behind it need not be searched to their ends
                return _landed(session, segment, operator, at)
    return None


def _landed(session: ReplaySession, segment: Segment, operator: str, at: Position) -> Cursor:
    if at == AT_END:
        return Cursor.end(session.windows.last(segment), operator)
    return after_tuple(session, segment, operator, at)


def _in_order(
    places: Iterable[_Place], search: Callable[[_Place], Position | None]
) -> Iterable[tuple[_Place, Position | None]]:
    """The answers for some places in their order; a few searches run ahead."""
    waiting = list(places)
    with ThreadPoolExecutor(AHEAD, thread_name_prefix="samovar-search") as pool:
        try:
            running = [(place, pool.submit(search, place)) for place in waiting[:AHEAD]]
            rest = waiting[AHEAD:]
            while running:
                place, future = running.pop(0)
                at = future.result()
                if rest and at is None and not any(_settled(ahead) for _, ahead in running):
                    following = rest.pop(0)
                    running.append((following, pool.submit(search, following)))
                yield place, at
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _settled(search: Future[Position | None]) -> bool:
    """Whether a search has ended with an answer or an error: then nothing behind it needs to be searched."""
    return search.done() and (search.exception() is not None or search.result() is not None)


def _places(records: list[Record]) -> list[Position]:
    return [AT_END if record.ended else record.at or START for record in records]


def _probe(session: ReplaySession, operator: str, predicate: Predicate, over: Path) -> Probe:
    if not isinstance(predicate, str):
        return Probe(0, function=dumps(predicate), over=str(over))
    try:
        tree = ast.parse(predicate, mode="eval")
    except SyntaxError as error:
        raise TimeTravelError(
            f"The predicate {predicate!r} does not parse: {error.msg}.",
            operator=operator,
            hint="Write a Python expression over the state's names: \"'Bob' in blacklist\".",
        ) from None
    instance = session.timelines.instance(operator)
    known = {*declared(type(instance)), *attributes(instance), "row"}
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {a.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for a in n.args.args}
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Name)):
        named = isinstance(node.ctx, ast.Load)
        if named and node.id not in known | bound and not hasattr(builtins, node.id):
            close = nearest(node.id, known)
            raise TimeTravelError(
                f"Expected names of states of '{operator}', got '{node.id}'.",
                operator=operator,
                hint=f"Did you mean '{close}'?" if close else f"Known: {', '.join(sorted(known))}.",
            )
    return Probe(0, expression=predicate, over=str(over))


def _sql(operator: str, predicate: Predicate) -> str:
    if isinstance(predicate, str):
        return predicate
    raise TimeTravelError(
        f"'{operator}' runs inside Spark: expected a condition as SQL text, got a function.",
        operator=operator,
        hint='Write it over the operator\'s columns: "total > 100".',
    )


@contextmanager
def _as_our_error(operator: str, predicate: Predicate) -> Iterator[None]:
    """Raise Spark's errors about a condition as a TimeTravelError."""
    try:
        yield
    except PySparkException as error:
        if not isinstance(predicate, str):
            raise
        raise TimeTravelError(
            f"The condition {predicate!r} cannot be evaluated: {SparkError.of(error).message}",
            operator=operator,
        ) from None


def _check_flows(session: ReplaySession, operator: str) -> None:
    """Raise when an operator's tuples belong to no epoch: the build side of a join is read as a whole."""
    plan = session.plan
    if plan.placement.streams[operator] or plan.placement.is_sink(operator) or plan.placement.ends(operator):
        return
    joins = [n for n in plan.placement.inline if operator in {u.name for u in plan.graph.upstream(n)}]
    raise TimeTravelError(
        f"'{operator}' is read whole as the build side of '{joins[0]}': its tuples have no moments of their own."
        if joins
        else f"The tuples of '{operator}' have no moments of their own.",
        operator=operator,
        hint=f"Ask '{joins[0]}', whose rows have its columns." if joins else None,
    )


def _gave_at_end(session: ReplaySession, operator: str, text: str) -> bool:
    """Whether an operator that produces its rows at the end of its input produced a row that meets a condition."""
    level = min(session.plan.placement.streams[operator], default=None)
    segment = next((s for s in session.segments if s.level == level and s.first), None)
    if segment is None or level is None:
        return False
    with session.tracer.streams(segment) as stream:
        return not stream(operator).alias(operator).filter(text).limit(1).isEmpty()


def matching_tuples(
    session: ReplaySession,
    segment: Segment,
    operator: str,
    text: str | Column,
    asked: ConditionRows,
    count: int | None,
) -> list[tuple[int, Position]]:
    """Ports and positions, in order, of the tuples of an operator that meet a condition or produce a row that does."""
    if asked.rows == "taken":
        return matching_inputs(session, segment, operator, text, count, asked.ports)
    edges = session.tracer.edges(segment.level)
    with session.tracer.streams(segment, unpruned=True) as stream:
        df = stream(operator).alias(operator)
        ports, places = edges.ports(operator), hidden(df)
        if len(ports) == 1:  # a tuple may produce many rows: its position is the first part of theirs
            places = places[: edges.width[edges.inputs[operator][ports[0]]]]
        rows = df.filter(text).select(F.array(*places).alias("at")).distinct().orderBy("at")
        outputs = positions_in(rows if count is None else rows.limit(count))
    outputs = [
        at for at in outputs if at[0] < END
    ]  # rows produced at the end of the input come from no tuple
    if len(ports) == 1:
        return [(ports[0], at) for at in outputs]
    inputs = (parent_of(edges, operator, at) for at in outputs)
    return sorted((pair for pair in inputs if pair is not None), key=lambda pair: (pair[1], pair[0]))


def matching_inputs(
    session: ReplaySession,
    segment: Segment,
    operator: str,
    text: str | Column | None,
    count: int | None,
    ports: Sequence[int] | None = None,
) -> list[tuple[int, Position]]:
    """Ports and positions of an operator's input tuples that meet a condition, in order."""
    edges = session.tracer.edges(segment.level)
    inputs: list[tuple[int, Position]] = []
    with session.tracer.streams(segment) as stream:
        for port in edges.ports(operator) if ports is None else ports:
            up = edges.inputs[operator][port]
            df = stream(up).alias(up)
            df = df.filter(text) if text is not None else df
            rows = df.select(F.array(*hidden(df)).alias("at")).orderBy("at")
            inputs += [(port, at) for at in positions_in(rows if count is None else rows.limit(count))]
    return sorted(inputs, key=lambda pair: (pair[1], pair[0]))[:count]


# --- the last change ------------------------------------------------------------------------------------------------


def find_last_change(
    session: ReplaySession, here: Cursor, operator: str, key: Any, name: str | None
) -> Cursor | None:
    """The moment after the last step, at or before a cursor, that changed a key of an operator's state."""
    session.op(operator)
    traced = here.traced
    works = session.works_in(traced.segment, operator)
    if works:
        changes = session.timelines.timeline(traced, operator).changes
        for number in range(here.done(operator) - 1, -1, -1):
            touched = any(c.key == key and name in (None, c.name) for c in changes[number])
            if touched and traced.steps(operator)[number].taken is not None:
                return Cursor.after(traced, operator, number + 1)
    for segment in reversed(session.segments[: traced.segment.number + 1]):
        if not session.taken_in(segment, operator):
            continue
        here_too = segment.number == traced.segment.number
        before = traced.window.low if here_too else None
        if here_too and (before is None or not works):
            continue
        if not here_too and not _may_touch(session, segment, operator, key, name):
            continue
        at = _last_touch(session, segment, operator, key, name, before)
        if at is not None:
            return _landed(session, segment, operator, at)
    return None


def _may_touch(session: ReplaySession, segment: Segment, operator: str, key: Any, name: str | None) -> bool:
    """Whether a key may have changed in an epoch, by its deltas."""
    tracer = session.tracer
    fact = tracer.history.epochs[segment.epoch]
    files = fact.state.get(operator)
    if files is None or (key is None and name is None):
        return True
    folder = tracer.recording.epoch_folder(fact) / "state"
    for state in files:
        if state.full:
            continue
        path = folder / slug_unique(operator) / f"{state.bucket:04d}.delta"
        if not path.exists():
            return True
        if touches(read_state(path)[1], name, key):
            return True
    return False


def _last_touch(
    session: ReplaySession,
    segment: Segment,
    operator: str,
    key: Any,
    name: str | None,
    before: Position | None,
) -> Position | None:
    tracer = session.tracer
    if session.is_python(operator):
        records = tracer.probe(segment, operator, Probe(0, key=(name, key), before=before))
        return max(_places(records), default=None)
    if tracer.plan.shape(operator) != "accumulate":
        return None
    with tracer.streams(segment, Window(None, before)) as stream:
        df = stream(session.op(operator).inputs[0])
        rows = df.filter(in_group(session, operator, key)).select(F.array(*hidden(df)).alias("at"))
        return next(iter(positions_in(rows.orderBy(F.desc("at")).limit(1))), None)


def in_group(session: ReplaySession, operator: str, key: Any) -> Column:
    """Whether an input tuple of an aggregate belongs to the group of a key."""
    keys = session.plan.keys(operator)
    values = key if isinstance(key, tuple) and len(keys) > 1 else (key,)
    condition = F.lit(True)
    for text, value in zip(keys, values, strict=True):
        condition = condition & F.expr(split_alias(text)[0]).eqNullSafe(F.lit(value))
    return condition


# --- logging afterwards ---------------------------------------------------------------------------------------------


def log_rows(session: ReplaySession, operator: str, expression: str, where: str | None) -> pa.Table:
    """An expression over every tuple an operator takes, or over its output, as if it had been logged."""
    session.op(operator)
    tracer = session.tracer
    tables: list[pa.Table] = []
    asked = condition_rows(tracer.spark, tracer.plan, operator, expression, *([where] if where else []))
    _check_flows(session, operator)
    if asked.rows == "given" and tracer.plan.placement.ends(operator):
        raise TimeTravelError(
            f"'{operator}' gives its rows when its input has ended: expected an expression over what it takes.",
            operator=operator,
            hint="Ask the operator behind it.",
        )
    with _as_our_error(operator, expression):
        for segment in session.segments:
            if not session.taken_in(segment, operator):
                continue
            edges = session.tracer.edges(segment.level)
            given = asked.rows == "given"
            with tracer.streams(segment, what="log", unpruned=given) as stream:
                for port in edges.ports(operator)[:1] if given else asked.ports:
                    name = operator if given else edges.inputs[operator][port]
                    df = stream(name).alias(name)
                    chosen = df.filter(where) if where else df
                    order = hidden(df)
                    tables.append(
                        chosen.select(
                            F.lit(segment.epoch).alias("epoch"),
                            F.lit(port).alias("port"),
                            F.expr(expression).alias("value"),
                            *order,
                        )
                        .orderBy(*order)
                        .drop(*order)
                        .toArrow()
                    )
    filled = [t for t in tables if t.num_rows] or tables[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})
