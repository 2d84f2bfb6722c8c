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
from samovar.graph import operators as ops
from samovar.graph.state import declared
from samovar.ids import new_attempt
from samovar.record.state_files import dumps, read_state
from samovar.record.store import slug_unique
from samovar.replay.conditions import Asked, rows_asked
from samovar.replay.state.group_states import first_group
from samovar.replay.state.state_changes import attributes
from samovar.replay.state.windows import Stretch, Travel
from samovar.replay.trace.model import END, Position, StepKey, Window, parent_of
from samovar.replay.trace.segments import Segment
from samovar.replay.trace.traced_chain import Probe, Record
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
"""Epochs, or pieces of one, searched at a time."""
_Place = tuple[int, Window]
"""The number of a segment, and a piece of it."""

Predicate = str | Callable[[Mapping[str, Any]], bool]
Found = tuple[Stretch, dict[str, int], StepKey | None]


# --- the first moment where something holds -------------------------------------------------------------------------


def find_first(travel: Travel, operator: str, predicate: Predicate) -> Found | None:
    """The moment after the first tuple for which a predicate holds.

    For a Python operator: a Python expression over its states' names (and `row`, the tuple just processed), or a
    callable of its state. For others: SQL over the rows they take or give (`conditions.py`). What an operator gives at
    its end (a window, a full join) holds from there on.
    """
    travel.check(operator)
    tracer = travel.tracer
    op = tracer.plan.graph.ops[operator]
    numbers = [n for n, s in enumerate(travel.segments) if travel.taken_in(s, operator)]
    if isinstance(op, ops.Python):
        probe = _probe(travel, operator, predicate, tracer.scratch / f"over-{new_attempt()}")
        places = [(n, piece) for n in numbers for piece in tracer.pieces(travel.segments[n])]

        def search(segment: Segment, piece: Window) -> Position | None:
            own = replace(probe, before=piece.high)
            return _earliest(tracer.probe(segment, operator, own, low=piece.low))
    else:
        text = _sql(operator, predicate)
        asked = rows_asked(tracer.spark, tracer.plan, operator, text)
        _check_flows(travel, operator)
        probe, places = None, [(n, Window()) for n in numbers]
        ends = asked.rows == "given" and tracer.plan.shape(operator) == "keep"
        if ends:
            places = places[-1:] if _gave_at_end(travel, operator, text) else []

        def search(segment: Segment, piece: Window) -> Position | None:
            if ends:
                return (END,)
            if asked.rows == "given" and tracer.plan.shape(operator) == "accumulate":
                return first_group(tracer, segment, operator, text)
            return next((at for _, at in matching_tuples(travel, segment, operator, text, asked, 1)), None)

    with _said(operator, predicate):
        for (number, _), at in _in_order(places, lambda place: search(travel.segments[place[0]], place[1])):
            if at is not None:
                if probe is not None:
                    Path(probe.over).touch()  # pieces behind it need not be searched to their ends
                return _landed(travel, number, operator, at)
    return None


def _landed(travel: Travel, number: int, operator: str, at: Position) -> Found:
    if at[0] >= END and len(at) == 1:  # it came true at the end of the operator's input
        stretch = travel.last_of(number)
        trace = stretch.traced.trace
        own = len(trace.steps[operator])
        counts = {op: len(steps) for op, steps in trace.steps.items()}
        return stretch, counts, (operator, own - 1) if own else None
    return travel.around(number, operator, at)


def _in_order(
    places: Iterable[_Place], search: Callable[[_Place], Position | None]
) -> Iterable[tuple[_Place, Position | None]]:
    """Answers in the order of time, a few searches ahead."""
    waiting = list(places)
    with ThreadPoolExecutor(AHEAD, thread_name_prefix="samovar-search") as pool:
        try:
            running = [(place, pool.submit(search, place)) for place in waiting[:AHEAD]]
            rest = waiting[AHEAD:]
            while running:
                place, future = running.pop(0)
                found = future.result()
                if rest and found is None and not any(_settled(ahead) for _, ahead in running):
                    following = rest.pop(0)
                    running.append((following, pool.submit(search, following)))
                yield place, found
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _settled(search: Future[Position | None]) -> bool:
    """Whether a search under way has ended with an answer or an error: nothing behind it needs to be looked at."""
    return search.done() and (search.exception() is not None or search.result() is not None)


def _earliest(records: list[Record]) -> Position | None:
    places = [(END,) if r.ended else tuple(r.at or ()) for r in records]
    return min(places, default=None)


def _latest(records: list[Record]) -> Position | None:
    places = [(END,) if r.ended else tuple(r.at or ()) for r in records]
    return max(places, default=None)


def _probe(travel: Travel, operator: str, predicate: Predicate, over: Path) -> Probe:
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
    instance = travel.instance(operator)
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
def _said(operator: str, predicate: Predicate) -> Iterator[None]:
    """Spark's complaint about a condition as our own error."""
    try:
        yield
    except PySparkException as error:
        if not isinstance(predicate, str):
            raise
        raise TimeTravelError(
            f"The condition {predicate!r} cannot be evaluated: {SparkError.of(error).message}",
            operator=operator,
        ) from None


def _check_flows(travel: Travel, operator: str) -> None:
    """Raise when an operator's tuples are in no epoch: what is read whole for a join has no moments of its own."""
    plan = travel.tracer.plan
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


def _gave_at_end(travel: Travel, operator: str, text: str) -> bool:
    """Whether an operator that gives its rows at its end gave one that meets a condition."""
    level = min(travel.tracer.plan.placement.streams[operator], default=None)
    segment = next((s for s in travel.segments if s.level == level and s.first), None)
    if segment is None or level is None:
        return False
    epoch = travel.tracer.windowed(segment, Window())
    with travel.tracer.tagged(f"search in epoch {segment.epoch}", epoch):
        return not epoch.frames.stream(operator, level).alias(operator).filter(text).limit(1).isEmpty()


def matching_tuples(
    travel: Travel, segment: Segment, operator: str, text: str | Column, asked: Asked, count: int | None
) -> list[tuple[int, Position]]:
    """Ports and positions of tuples an operator takes that meet a condition, or gives a row for that does, in order."""
    if asked.rows == "taken":
        return matching_inputs(travel, segment, operator, text, count, asked.ports)
    tracer, edges = travel.tracer, travel.edges[segment.level]
    epoch = tracer.unpruned(segment)
    with tracer.tagged(f"search in epoch {segment.epoch}", epoch):
        df = epoch.frames.stream(operator, segment.level).alias(operator)
        ports, places = edges.ports(operator), hidden(df)
        if len(ports) == 1:  # many rows may come of one tuple: its place is the first part of theirs
            places = places[: edges.width[edges.inputs[operator][ports[0]]]]
        rows = df.filter(text).select(F.array(*places).alias("at")).distinct().orderBy("at")
        found = (rows if count is None else rows.limit(count)).toArrow().column("at").to_pylist()
    found = [at for at in found if at[0] < END]  # what is given at an end comes of no tuple
    if len(ports) == 1:
        return [(ports[0], tuple(at)) for at in found]
    made = (parent_of(edges, operator, tuple(at)) for at in found)
    return sorted((pair for pair in made if pair is not None), key=lambda pair: (pair[1], pair[0]))


def matching_inputs(
    travel: Travel,
    segment: Segment,
    operator: str,
    text: str | Column | None,
    count: int | None,
    ports: Sequence[int] | None = None,
) -> list[tuple[int, Position]]:
    """Ports and positions of an operator's input tuples that meet a condition, in order."""
    tracer = travel.tracer
    edges = travel.edges[segment.level]
    epoch = tracer.windowed(segment, Window())
    found: list[tuple[int, Position]] = []
    with tracer.tagged(f"search in epoch {segment.epoch}", epoch):
        for port in edges.ports(operator) if ports is None else ports:
            up = edges.inputs[operator][port]
            df = epoch.frames.stream(up, segment.level).alias(up)
            df = df.filter(text) if text is not None else df
            df = df.select(F.array(*hidden(df)).alias("at")).orderBy("at")
            rows = (df if count is None else df.limit(count)).toArrow()
            found += [(port, tuple(at)) for at in rows.column("at").to_pylist()]
    return sorted(found, key=lambda pair: (pair[1], pair[0]))[:count]


# --- the last change ------------------------------------------------------------------------------------------------


def find_last_change(
    travel: Travel, stretch: Stretch, counts: Mapping[str, int], operator: str, key: Any, name: str | None
) -> Found | None:
    """The moment after the last step, at or before a cursor, that changed a key of an operator's state."""
    travel.check(operator)
    here = travel.works_in(stretch.segment, operator)
    if here:
        line = travel.timeline(stretch, operator)
        for number in range(counts.get(operator, 0) - 1, -1, -1):
            if any(c.key == key and name in (None, c.name) for c in line.changes[number]):
                step = stretch.traced.trace.steps[operator][number]
                if step.taken is not None:
                    return travel.behind(stretch, operator, step.taken.position)
    for number in range(stretch.number, -1, -1):
        segment = travel.segments[number]
        if not travel.taken_in(segment, operator):
            continue
        before = stretch.window.low if number == stretch.number else None
        if number == stretch.number and (before is None or not here):
            continue
        if number < stretch.number and not _may_touch(travel, segment, operator, key, name):
            continue
        at = _last_touch(travel, segment, operator, key, name, before)
        if at is not None:
            return _landed(travel, number, operator, at)
    return None


def _may_touch(travel: Travel, segment: Segment, operator: str, key: Any, name: str | None) -> bool:
    """Whether an epoch's deltas say that a key changed in it; true where they do not tell."""
    tracer = travel.tracer
    fact = tracer.history.epochs[segment.epoch]
    files = fact.state.get(operator)
    if files is None:
        return True
    folder = tracer.recording.epoch_folder(fact) / "state"
    for state in files:
        if state.full:
            continue
        path = folder / slug_unique(operator) / f"{state.bucket:04d}.delta"
        if not path.exists():
            return True
        changes = read_state(path)[1]
        for own, (replaced, changed, deleted) in changes["maps"].items():
            if name in (None, own) and (replaced or key in changed or key in deleted):
                return True
        if key is None and (name is None or name in changes["values"] or name in changes["lists"]):
            return True
    return False


def _last_touch(
    travel: Travel, segment: Segment, operator: str, key: Any, name: str | None, before: Position | None
) -> Position | None:
    tracer = travel.tracer
    if isinstance(tracer.plan.graph.ops[operator], ops.Python):
        return _latest(tracer.probe(segment, operator, Probe(0, key=(name, key), before=before)))
    if tracer.plan.shape(operator) != "accumulate":
        return None
    epoch = tracer.windowed(segment, Window(None, before))
    with tracer.tagged(f"search in epoch {segment.epoch}", epoch):
        df = epoch.frames.stream(tracer.plan.graph.ops[operator].inputs[0], segment.level)
        rows = df.filter(in_group(travel, operator, key)).select(F.array(*hidden(df)).alias("at"))
        found = rows.orderBy(F.desc("at")).limit(1).toArrow().column("at").to_pylist()
    return tuple(found[0]) if found else None


def in_group(travel: Travel, operator: str, key: Any) -> Column:
    keys = travel.tracer.plan.keys(operator)
    values = key if isinstance(key, tuple) and len(keys) > 1 else (key,)
    made = F.lit(True)
    for text, value in zip(keys, values, strict=True):
        made = made & F.expr(split_alias(text)[0]).eqNullSafe(F.lit(value))
    return made


# --- logging afterwards ---------------------------------------------------------------------------------------------


def log_rows(travel: Travel, operator: str, expression: str, where: str | None) -> pa.Table:
    """An expression over every tuple an operator takes, or over what it gives, as if it had been logged."""
    travel.check(operator)
    tracer = travel.tracer
    made: list[pa.Table] = []
    asked = rows_asked(tracer.spark, tracer.plan, operator, expression, *([where] if where else []))
    _check_flows(travel, operator)
    if asked.rows == "given" and tracer.plan.placement.ends(operator):
        raise TimeTravelError(
            f"'{operator}' gives its rows when its input has ended: expected an expression over what it takes.",
            operator=operator,
            hint="Ask the operator behind it.",
        )
    with _said(operator, expression):
        for segment in travel.segments:
            if not travel.taken_in(segment, operator):
                continue
            edges = travel.edges[segment.level]
            given = asked.rows == "given"
            epoch = tracer.unpruned(segment) if given else tracer.windowed(segment, Window())
            with tracer.tagged(f"log in epoch {segment.epoch}", epoch):
                for port in edges.ports(operator)[:1] if given else asked.ports:
                    name = operator if given else edges.inputs[operator][port]
                    df = epoch.frames.stream(name, segment.level).alias(name)
                    chosen = df.filter(where) if where else df
                    order = hidden(df)
                    made.append(
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
    filled = [t for t in made if t.num_rows] or made[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else pa.table({})
