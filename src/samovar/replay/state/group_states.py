"""States of native operators, computed by Spark: an aggregate's groups at a window's start and after each tuple of it.

The accumulators are those of the running form (compile/aggregates.py), merged by window functions in the order of
positions: a group after a tuple has the values that a run over just the tuples up to there would have produced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from samovar.compile.aggregates import final_frame, merge_frame, partial_frame
from samovar.compile.native import hidden
from samovar.compile.plan import ROWS
from samovar.compile.sqltext import aggregate_calls, split_alias
from samovar.positions import BEFORE_ALL, Position, Window, position_columns, reaches_sql
from samovar.replay.trace.model import ABSENT, StateChange
from samovar.replay.trace.past_epoch import PastWindow, WindowView
from samovar.replay.trace.segments import Segment, only_native
from samovar.text import quote_name

if TYPE_CHECKING:
    from samovar.replay.trace.tracer import Tracer

__all__ = ["FewGroups", "StoredGroups", "first_group", "group_changes", "groups_at_start", "has_values"]

FEW = 5_000
"""Groups that are collected in the driver; if there are more, they stay in Spark and each is fetched when needed."""
Group = dict[str, Any]


class StoredGroups(Mapping[Any, Group]):
    """Groups that stay in Spark, because there are many: a group is fetched when somebody looks at it."""

    def __init__(self, df: DataFrame, keys: int) -> None:
        self.df = df
        self.parts = keys
        """How many columns make a key."""
        self.known: dict[Any, Group] = {}
        """Groups that were fetched already."""

    def __getitem__(self, key: Any) -> Group:
        if key not in self.known:
            groups = self.page(0, 1, self._is(key))
            if not groups:
                raise KeyError(key)
            self.known[key] = groups[0][1]
        return self.known[key]

    def __iter__(self) -> Iterator[Any]:
        for row in self.df.select(*self.df.columns[: self.parts]).toLocalIterator():
            yield _key(list(row))

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return self.df.count()

    def page(self, start: int, count: int, where: Column | str | None = None) -> list[tuple[Any, Group]]:
        """Some groups, in the order of their keys."""
        df = self.df if where is None else self.df.filter(where)
        keys = [F.col(quote_name(c)) for c in df.columns[: self.parts]]
        rows = df.orderBy(*keys).offset(start).limit(count).toArrow()
        return list(_groups(rows.to_pylist(maps_as_pydicts="strict"), rows.column_names, self.parts))

    def over(self, changed: Mapping[Any, Any]) -> StoredGroups:
        """These groups with some of them changed or removed (ABSENT)."""
        rows = [
            (
                *(key if self.parts > 1 else (key,)),
                *(value[_shown_name(c)] for c in self.df.columns[self.parts :]),
            )
            for key, value in changed.items()
            if value is not ABSENT
        ]
        untouched = reduce(lambda df, key: df.filter(~self._is(key)), changed, self.df)
        return StoredGroups(
            untouched.union(self.df.sparkSession.createDataFrame(rows, self.df.schema)), self.parts
        )

    def _is(self, key: Any) -> Column:
        parts = key if self.parts > 1 else (key,)
        return has_values(dict(zip(self.df.columns[: self.parts], parts, strict=True)))


def has_values(row: Mapping[str, Any]) -> Column:
    """Whether columns have some values; a null equals a null."""
    equal = (F.col(quote_name(name)).eqNullSafe(F.lit(value)) for name, value in row.items())
    return reduce(lambda a, b: a & b, equal, F.lit(True))


class FewGroups(dict[Any, Group]):
    """Groups in the driver, with the frame they come from, for Spark to select from."""

    def __init__(self, groups: Iterable[tuple[Any, Group]], stored: StoredGroups) -> None:
        super().__init__(groups)
        self.stored = stored


def groups_at_start(tracer: Tracer, segment: Segment, name: str, window: Window) -> Mapping[Any, Group]:
    """The groups of an aggregate at the start of a window: from the earlier epochs, and from this one up to there."""
    epoch = tracer.windowed(segment, Window(None, window.low))
    frames = epoch.frames
    cut = frames.plan.accumulators[name]
    parts = _earlier(tracer, segment, name)
    if window.low is not None:
        parts = parts.unionByName(frames.stored_partial(name), allowMissingColumns=True)
    keys = len(frames.plan.keys(name))
    shown = _shown(parts, cut)
    if window.low is not None and _surely_many(tracer, segment, name, window.low):
        return StoredGroups(tracer.keep(shown), keys)
    with tracer.tagged(f"groups of {name}", epoch):
        rows = shown.limit(FEW + 1).toArrow()
    if rows.num_rows > FEW:
        return StoredGroups(tracer.keep(shown), keys)
    groups = _groups(rows.to_pylist(maps_as_pydicts="strict"), rows.column_names, keys)
    return FewGroups(groups, StoredGroups(shown, keys))


def _surely_many(tracer: Tracer, segment: Segment, name: str, low: Position) -> bool:
    """Whether the first tuples of the segment alone have more groups than the driver collects: a cheap test."""
    if tracer.leaves.runs(segment) is None:
        return False
    stop = tracer.leaves.edge_after(segment, None, 4 * FEW)
    if stop is None or stop > low:
        return False
    epoch = tracer.windowed(segment, Window(None, stop))
    with tracer.tagged(f"groups of {name}", epoch):
        return epoch.frames.stored_partial(name).count() > FEW


def group_changes(
    tracer: Tracer,
    segment: Segment,
    name: str,
    window: Window,
    base: Mapping[Any, Group],
    inputs: Mapping[Position, Mapping[str, Any]],
) -> dict[Position, list[StateChange]]:
    """For each input tuple of a window (`inputs` are their rows), how its group changed."""
    stored = isinstance(base, StoredGroups)
    shown, keys, epoch = _running(tracer, segment, name, window, before=stored)
    given = tracer.tracing.keys(name)
    plain = all(key in next(iter(inputs.values()), ()) for key in given)
    if plain:  # the driver has the tuples, and their keys with them: Spark need not send these
        first = F.element_at("__sv_at", 1) == F.lit(BEFORE_ALL)
        shown = shown.select(
            *(F.when(first, F.col(quote_name(k))).alias(k) for k in keys),
            *map(quote_name, shown.columns[len(keys) :]),
        )
    with tracer.tagged(f"changes of {name}", epoch):
        table = shown.toArrow()
    names = table.column_names[:-1]
    rows = table.to_pylist(maps_as_pydicts="strict")
    rows.sort(key=lambda r: r["__sv_at"])
    now: dict[Any, Any] = {}
    changes: dict[Position, list[StateChange]] = {}
    for row in rows:
        at = tuple(row["__sv_at"])
        ((key, value),) = _groups([row], names, len(keys))
        if plain and at[0] != BEFORE_ALL:
            key = _key([inputs[at][k] for k in given])
        if isinstance(base, StoredGroups) and at[0] == BEFORE_ALL:
            # a running sum over several deltas: the row with the most tuples is the sum of all of them
            if value["rows"] >= base.known.get(key, value)["rows"]:
                base.known[key] = value
            continue
        known = base.known if isinstance(base, StoredGroups) else base
        before_value = now.get(key, known.get(key, ABSENT))
        now[key] = value
        changes[at] = (
            [] if value == before_value else [StateChange(name, "groups", key, before_value, value, True)]
        )
    return changes


def first_group(tracer: Tracer, segment: Segment, name: str, condition: str) -> Position | None:
    """The position of the first input tuple of a segment after which a group meets a condition on its columns."""
    shown, _, epoch = _running(tracer, segment, name, Window())
    with tracer.tagged(f"search in epoch {segment.epoch}", epoch):
        first = shown.filter(condition).orderBy("__sv_at").limit(1).select("__sv_at").toArrow()
    places = first.column("__sv_at").to_pylist()
    return tuple(places[0]) if places else None


def _running(
    tracer: Tracer, segment: Segment, name: str, window: Window, *, before: bool = False
) -> tuple[DataFrame, list[str], PastWindow]:
    """For each input tuple of a window, its group right after it; the names of the keys; and the window.

    `before`: also the groups of these tuples right before the window, at the position `BEFORE_ALL`.
    """
    plan = tracer.tracing
    cut = plan.accumulators[name]
    up = plan.graph.ops[name].inputs[0]
    near = window != Window() and only_native(plan, segment.level, up)
    epoch = tracer.windowed(segment, window, WindowView(near=near))
    df = epoch.frames.stream(up, segment.level)
    positions = hidden(df)
    places = position_columns(len(positions), "w")
    stamped = df.select("*", *(F.col(c).alias(p) for c, p in zip(positions, places, strict=True)))
    counting = type(cut)((*cut.partial, f"count(1) AS {ROWS}"), cut.merge, cut.final)
    each = partial_frame(stamped, [*plan.keys(name), *places], counting)
    if window.low is not None:
        each = each.filter(reaches_sql(places, window.low))
    keys = [c for c in each.columns if c not in places and not _internal(c)]
    prior = _earlier(tracer, segment, name)
    if window.low is not None:
        earlier = tracer.windowed(segment, Window(None, window.low), kept=epoch.kept)
        partial = earlier.frames.stored_partial(name)
        prior = prior.unionByName(partial, allowMissingColumns=True)
    if keys and window != Window():
        prior = _of_same_keys(prior, each, keys)
    first = prior.select("*", *(F.lit(BEFORE_ALL).alias(p) for p in places))
    every = each.unionByName(first, allowMissingColumns=True)
    by = ", ".join(map(quote_name, keys)) or "1"
    over = f"(PARTITION BY {by} ORDER BY {', '.join(places)} {_ROWS})"
    running = every.select(
        *map(quote_name, keys),
        *places,
        *(F.expr(_windowed(text, over)) for text in (*cut.merge, f"sum({ROWS}) AS {ROWS}")),
        F.expr(f"max({places[0]}) OVER (PARTITION BY {by}) AS __sv_last"),
    )
    wanted = F.col("__sv_last") if before else F.col(places[0])
    shown = running.filter(wanted > BEFORE_ALL).select(
        *map(quote_name, keys),
        *map(F.expr, cut.final),
        F.col(ROWS),
        F.array(*places).alias("__sv_at"),
    )
    return shown, keys, epoch


def _of_same_keys(prior: DataFrame, each: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Only the groups that the tuples of a window belong to: Spark selects by key before it aggregates."""
    names = [f"__sv_k{i}" for i in range(len(keys))]
    few = F.broadcast(each.select(*map(quote_name, keys)).toDF(*names))
    same = (F.col(quote_name(k)).eqNullSafe(F.col(n)) for k, n in zip(keys, names, strict=True))
    return prior.join(few, reduce(lambda a, b: a & b, same), "left_semi")


_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def _earlier(tracer: Tracer, segment: Segment, name: str) -> DataFrame:
    """The deltas of the epochs before; an empty frame in the first epoch."""
    return tracer.original(segment).frames.deltas(name)


def _shown(partials: DataFrame, cut: Any) -> DataFrame:
    """Groups as people see them: keys, the aggregates' values so far, and how many tuples each has."""
    counted = type(cut)((*cut.partial, ROWS), (*cut.merge, f"sum({ROWS}) AS {ROWS}"), (*cut.final, ROWS))
    return final_frame(merge_frame(partials, counted), counted)


def _groups(rows: list[dict[str, Any]], names: list[str], keys: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    for row in rows:
        yield _key([row[n] for n in names[:keys]]), {_shown_name(n): row[n] for n in names[keys:]}


def _key(values: Sequence[Any]) -> Any:
    key = tuple(map(_frozen, values))
    return key[0] if len(key) == 1 else key


def _shown_name(column: str) -> str:
    return "rows" if column == ROWS else column


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _windowed(text: str, over: str) -> str:
    """An aggregate expression with a window at each aggregate call, so that it is computed row by row."""
    expression, alias = split_alias(text, "")
    out, place = [], 0
    for call in aggregate_calls(expression):
        out += [expression[place : call.end], f" OVER {over}"]
        place = call.end
    return "".join(out) + expression[place:] + f" AS {quote_name(alias or '')}"


def _internal(name: str) -> bool:
    return name == ROWS or name.startswith("__a")
