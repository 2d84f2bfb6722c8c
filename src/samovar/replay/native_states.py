"""States of native operators, by Spark in bulk: an aggregate's groups at a window's start and after each tuple of it.

The accumulators are those of the running form (compile/aggregates.py), merged by window functions in the order of
positions: what a group shows after a tuple is what a run over just those tuples would have given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from samovar.compile.aggregates import final_frame, merge_frame, partial_frame
from samovar.compile.native import hidden
from samovar.compile.plan import ROWS
from samovar.compile.sqltext import aggregate_calls, quote_name, split_alias
from samovar.ids import position_columns
from samovar.replay.segments import Segment
from samovar.replay.trace import ABSENT, Change, Position, Window

if TYPE_CHECKING:
    from samovar.replay.tracing import Tracer
    from samovar.runtime.epoch import Epoch

__all__ = ["first_group", "group_changes", "groups_at_start"]

_LIMIT = 200_000
"""Groups that are taken to the driver at most."""


def groups_at_start(tracer: Tracer, segment: Segment, name: str, window: Window) -> dict[Any, dict[str, Any]]:
    """The groups of an aggregate at the start of a window: what earlier epochs left, and this one up to there."""
    epoch = tracer.windowed(segment, _before(window))
    frames = epoch.frames
    cut = frames.plan.accumulators[name]
    earlier = _earlier(tracer, segment, name)
    parts = earlier
    if window.low is not None:
        parts = parts.unionByName(frames.stored_partial(name), allowMissingColumns=True)
    with tracer.tagged(f"groups of {name}", epoch):
        rows = _shown(parts, cut).limit(_LIMIT).toArrow()
    keys = len(frames.plan.keys(name))
    return dict(_groups(rows.to_pylist(maps_as_pydicts="strict"), rows.column_names, keys))


def group_changes(
    tracer: Tracer,
    segment: Segment,
    name: str,
    window: Window,
    base: Mapping[Any, Mapping[str, Any]],
) -> dict[Position, list[Change]]:
    """For each input tuple of a window, how its group changed."""
    shown, keys, epoch = _running(tracer, segment, name, window)
    with tracer.tagged(f"changes of {name}", epoch):
        table = shown.toArrow()
    names = table.column_names[:-1]
    rows = table.to_pylist(maps_as_pydicts="strict")
    rows.sort(key=lambda r: r["__sv_at"])
    now: dict[Any, Any] = {}
    made: dict[Position, list[Change]] = {}
    for row in rows:
        at = tuple(row["__sv_at"])
        ((key, value),) = _groups([row], names, len(keys))
        before_value = now.get(key, base.get(key, ABSENT))
        now[key] = value
        made[at] = [] if value == before_value else [Change(name, "groups", key, before_value, value, True)]
    return made


def first_group(tracer: Tracer, segment: Segment, name: str, condition: str) -> Position | None:
    """The position of the first input tuple of a segment after which a group meets a condition on its columns."""
    shown, _, epoch = _running(tracer, segment, name, Window())
    with tracer.tagged(f"search in epoch {segment.epoch}", epoch):
        found = shown.filter(condition).orderBy("__sv_at").limit(1).select("__sv_at").toArrow()
    places = found.column("__sv_at").to_pylist()
    return tuple(places[0]) if places else None


def _running(
    tracer: Tracer, segment: Segment, name: str, window: Window
) -> tuple[DataFrame, list[str], Epoch]:
    """For each input tuple of a window, its group as it was after it; the names of the keys."""
    plan = tracer.tracing
    cut = plan.accumulators[name]
    up = plan.graph.ops[name].inputs[0]
    epoch = tracer.windowed(segment, window)
    df = epoch.frames.stream(up, segment.level)
    own = hidden(df)
    places = position_columns(len(own), "w")
    stamped = df.select("*", *(F.col(c).alias(p) for c, p in zip(own, places, strict=True)))
    counting = type(cut)((*cut.partial, f"count(1) AS {ROWS}"), cut.merge, cut.final)
    each = partial_frame(stamped, [*plan.keys(name), *places], counting)
    if window.low is not None:
        each = each.filter(F.struct(*places[: len(window.low)]) >= _literal(places, window.low))
    keys = [c for c in each.columns if c not in places and not _internal(c)]
    prior = _earlier(tracer, segment, name)
    if window.low is not None:
        earlier = tracer.windowed(segment, _before(window))
        before = earlier.frames.stored_partial(name)
        epoch.take_over(earlier)
        prior = prior.unionByName(before, allowMissingColumns=True)
    first = prior.select("*", *(F.lit(-(1 << 62)).alias(p) for p in places))
    every = each.unionByName(first, allowMissingColumns=True)
    over = f"(PARTITION BY {', '.join(map(quote_name, keys)) or '1'} ORDER BY {', '.join(places)} {_ROWS})"
    running = every.select(
        *map(quote_name, keys),
        *places,
        *(F.expr(_windowed(text, over)) for text in (*cut.merge, f"sum({ROWS}) AS {ROWS}")),
    )
    shown = running.filter(F.col(places[0]) > -(1 << 62)).select(
        *map(quote_name, keys),
        *map(F.expr, cut.final),
        F.col(ROWS),
        F.array(*places).alias("__sv_at"),
    )
    return shown, keys, epoch


_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def _before(window: Window) -> Window:
    return type(window)(None, window.low)


def _earlier(tracer: Tracer, segment: Segment, name: str) -> DataFrame:
    """Deltas of the epochs before; an empty frame in the first."""
    original = tracer.original(segment)
    return original.parts("deltas", name, original.frames.partial_schema(name))


def _shown(partials: DataFrame, cut: Any) -> DataFrame:
    """Groups as a person sees them: keys, the aggregates' values so far, and how many tuples went in."""
    counted = type(cut)((*cut.partial, ROWS), (*cut.merge, f"sum({ROWS}) AS {ROWS}"), (*cut.final, ROWS))
    return final_frame(merge_frame(partials, counted), counted)


def _groups(rows: list[dict[str, Any]], names: list[str], keys: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    for row in rows:
        key = tuple(_frozen(row[n]) for n in names[:keys])
        value = {("rows" if n == ROWS else n): row[n] for n in names[keys:]}
        yield (key[0] if len(key) == 1 else key), value


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _windowed(text: str, over: str) -> str:
    """An aggregate expression as a running one: each aggregate call gets the window."""
    expression, alias = split_alias(text, "")
    out, place = [], 0
    for call in aggregate_calls(expression):
        out += [expression[place : call.end], f" OVER {over}"]
        place = call.end
    return "".join(out) + expression[place:] + f" AS {quote_name(alias or '')}"


def _internal(name: str) -> bool:
    return name == ROWS or name.startswith("__a")


def _literal(places: list[str], at: Position) -> Any:
    return F.struct(*(F.lit(v).cast("bigint").alias(p) for p, v in zip(places, at, strict=False)))
