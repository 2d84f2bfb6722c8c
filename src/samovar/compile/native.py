"""Relational operators on DataFrames, with or without the hidden columns that carry positions.

Every function here only builds plans. Visible columns are exactly what plain PySpark gives; hidden ones (their names
start with `__sv_`) come after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from samovar.compile.chance import by_position, draws
from samovar.compile.columns import sort_column as sort_order
from samovar.compile.generators import numbers_by_order, with_number
from samovar.compile.sqltext import split_alias, stars, tokenise
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op, column_of, expr
from samovar.ids import HIDDEN
from samovar.positions import (
    ROW_WIDTH,
    Position,
    is_position_column,
    padded_columns,
    position_columns,
    reaches_sql,
)
from samovar.text import quote_name

__all__ = [
    "apply_native",
    "as_column",
    "empty",
    "hidden",
    "join",
    "key_types",
    "numbered",
    "plain_aggregate",
    "positioned",
    "positions_last",
    "sort_column",
    "starless",
    "visible",
]


def visible(df: DataFrame) -> list[str]:
    """The columns that are not hidden."""
    return [c for c in df.columns if not c.startswith(HIDDEN)]


def hidden(df: DataFrame) -> list[str]:
    """The position columns, in order."""
    return [c for c in df.columns if is_position_column(c)]


def at_or_behind(df: DataFrame, edge: Position) -> Column:
    """Whether a row comes from the leaf tuple at an edge, or from one behind it."""
    return F.expr(reaches_sql(hidden(df), edge))


def as_column(text: str) -> Column:
    """SQL text, or the Column an `Expr` carries."""
    column = column_of(text)
    return cast(Column, column) if column is not None else F.expr(text)


def key_types(by: Sequence[str], inputs: Sequence[DataFrame]) -> list[DataType]:
    """The types in which keys of several inputs are compared: equal keys are equal whatever port they come by."""
    if not by:
        return []
    keys = [df.select(*(as_column(k).alias(f"k{i}") for i, k in enumerate(by))) for df in inputs]
    return [f.dataType for f in reduce(lambda a, b: a.union(b), keys).schema.fields]


def sort_column(text: str) -> Column:
    """A sort key: SQL text may end in ASC/DESC and NULLS FIRST/LAST, which an expression may not."""
    column = column_of(text)
    return cast(Column, column) if column is not None else sort_order(text)


def starless(text: str, df: DataFrame) -> str:
    """The SQL text with hidden columns excluded from each `*`: `select("*")` and `struct(*)` must not show them."""
    if not hidden(df) or "*" not in text or column_of(text) is not None:
        return text
    written, place = "", 0
    for star in stars(text):
        below = df.select(F.expr(f"{star.prefix}.*")).columns if star.prefix else hidden(df)
        listed = ", ".join(c for c in below if c.startswith(HIDDEN))
        if listed and star.excluded is None:
            written, place = f"{written}{text[place : star.end]} EXCEPT ({listed})", star.end
        elif listed and star.excluded is not None:
            written, place = f"{written}{text[place : star.excluded]}{listed}, ", star.excluded
    return written + text[place:]


def positioned(
    df: DataFrame, names: Sequence[str], columns: Sequence[Column | str], *, instead: Sequence[str] = ()
) -> DataFrame:
    """The frame with these position columns instead of the ones it has, and of `instead`; `columns` may refer to them.

    A column as SQL text costs one trip to Java, a Column a handful.
    """
    places = [_as_place(c, n) for n, c in zip(names, columns, strict=True)]
    gone = {*hidden(df), *instead}
    if not gone:
        return df.select("*", *places)
    left = [c for c in df.columns if c not in gone]
    if len({c.lower() for c in left}) == len(left):
        return df.select(*map(quote_name, left), *places)
    waiting = [f"{n}_" for n in names]
    both = df.select("*", *(_as_place(c, n) for n, c in zip(waiting, columns, strict=True)))
    return both.drop(*gone).withColumnsRenamed(dict(zip(waiting, names, strict=True)))


def _as_place(column: Column | str, name: str) -> Column:
    if isinstance(column, str):
        return F.expr(f"CAST({column} AS BIGINT) AS {name}")
    return column.cast("bigint").alias(name)


def numbered(df: DataFrame, keys: Sequence[Column], group: int) -> DataFrame:
    """The frame with positions by the order of the keys; a negative `group` puts them before rows of sources."""
    number = F.row_number().over(Window.orderBy(*keys)) if keys else F.monotonically_increasing_id()
    return positioned(df, position_columns(ROW_WIDTH), [str(group), number])


def positions_last(df: DataFrame) -> DataFrame:
    """The frame with its position columns after all others, in order; names of the others need not be unique."""
    positions = hidden(df)
    last = df.columns[len(df.columns) - len(positions) :]
    if last == sorted(positions, key=lambda c: int(c[len(HIDDEN) + 1 :])):
        return df
    names = position_columns(len(positions))
    return positioned(df, names, names)


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame without rows that Spark knows to be empty: Spark drops from its plans what is computed from it.

    It drops counters (`observe`) on it as well, so use it only for looking.
    """
    row = F.lit(None).cast(schema).alias("row")
    return spark.range(1).limit(0).select(row).select("row.*")


def apply_native(op: Op, inputs: Sequence[DataFrame], shape: str, epoch: int | None = None) -> DataFrame:
    """The operator's output frame for input frames; joins and unions included, Python operators not.

    `epoch`: the number of the epoch whose rows these are; None for rows of all epochs.
    """
    df = inputs[0]
    positions = hidden(df)
    if isinstance(op, ops.Select | ops.WithColumns | ops.Filter) and any(map(draws, op.expressions())):
        drawn = [
            t if column_of(t) is not None else by_position(t, positions, epoch) for t in op.expressions()
        ]
        op = op.with_expressions(tuple(drawn))
    match op:
        case ops.Select():
            if shape == "many" and positions:
                return _generated(df, op.columns, positions)
            columns = [as_column(starless(text, df)) for text in op.columns]
            return df.select(*columns, *positions)
        case ops.Filter():
            return df.filter(as_column(op.condition))
        case ops.WithColumns():
            if shape == "many" and positions:
                return _generated_beside(df, op.columns, positions)
            wider = df.withColumns({k: as_column(starless(v, df)) for k, v in op.columns.items()})
            return positions_last(wider) if positions else wider
        case ops.Rename():
            return df.withColumnsRenamed(op.columns)
        case ops.ToDF():
            return df.toDF(*op.names, *positions)
        case ops.Drop():
            return reduce(_without, op.columns, df)
        case ops.DropNa():
            return df.dropna(how=op.how, thresh=op.thresh, subset=_subset(op.subset, df))
        case ops.FillNa():
            if isinstance(op.value, dict):
                return df.fillna(op.value)
            return df.fillna(op.value, subset=_subset(op.subset, df))
        case ops.Replace():
            return df.replace(dict(op.pairs), subset=_subset(op.subset, df))
        case ops.Alias():
            return df.alias(op.alias)
        case ops.Sample():
            draw = F.pmod(F.xxhash64(F.lit(0), *positions), F.lit(1 << 40))
            ends = (op.start, op.start + op.fraction)
            first, last = (int(round(end * (1 << 40), 3)) for end in ends)  # 0.1 + 0.7 ends where 0.8 begins
            below = draw < F.lit(last)
            return df.filter(below & (draw >= F.lit(first)) if first else below)
        case ops.Union():
            return _union(op, inputs)
        case ops.Sort():
            return df.orderBy(*(sort_column(k) for k in op.keys))
        case ops.Distinct():
            return df.distinct()
        case ops.DropDuplicates():
            return df.dropDuplicates(list(op.subset)) if op.subset is not None else df.dropDuplicates()
        case ops.SetOperation():
            return cast(DataFrame, getattr(df, op.kind_of_set)(inputs[1]))
        case ops.Aggregate():
            return plain_aggregate(op, df)
        case ops.Limit():
            rest = df.offset(op.offset) if op.offset else df
            return rest if op.n is None else rest.limit(op.n)
        case ops.Join():
            return join(op, inputs[0], inputs[1])
    raise AssertionError(f"{op.kind} is not a relational operator")


def plain_aggregate(op: ops.Aggregate, df: DataFrame) -> DataFrame:
    """The aggregate over all rows in one query."""
    grouped: Any = getattr(df, op.grouping)(*(as_column(k) for k in op.keys))
    if op.pivot is not None:
        grouped = grouped.pivot(op.pivot, list(op.pivot_values) if op.pivot_values is not None else None)
    return cast(DataFrame, grouped.agg(*(as_column(a) for a in op.aggregates)))


def join(op: ops.Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """A join as PySpark does it; position columns of both sides must have different names."""
    how = {"semi": "left_semi", "anti": "left_anti"}.get(op.how, op.how)
    if op.on is not None:
        return left.join(right, on=list(op.on), how=how)
    if op.condition is not None:
        return left.join(right, on=as_column(op.condition), how=how)
    return left.crossJoin(right) if op.how == "cross" else left.join(right, how=how)


def _subset(names: Sequence[str] | None, df: DataFrame) -> list[str] | None:
    """The columns to work on; all of them, hidden ones apart, when none are named."""
    if names is not None:
        return list(names)
    return visible(df) if hidden(df) else None


def _without(df: DataFrame, text: str) -> DataFrame:
    """The frame without a column: a Column, a name, or a qualified name (`orders.id`). Unknown ones are ignored."""
    if (column := column_of(text)) is not None:
        return df.drop(column)
    if text.lower() in (c.lower() for c in df.columns):
        return df.drop(text)
    tokens = tokenise(text)
    if len(tokens) == 1:
        return df.drop(tokens[0].name)
    is_path = len(tokens) % 2 and all(
        t.text == "." if i % 2 else t.kind in ("word", "quoted") for i, t in enumerate(tokens)
    )
    return df.drop(F.col(text)) if is_path else df.drop(text)


def _generated(df: DataFrame, texts: Sequence[str], positions: Sequence[str]) -> DataFrame:
    """What a select with a generator gives, with one more part in its positions: the child number."""
    child = position_columns(len(positions) + 1)[-1]
    plain = [starless(text, df) for text in texts]
    numbered = with_number(plain, child, lambda text: df.select(F.expr(text)).columns)
    if numbered is None:
        return numbers_by_order(df.select(*map(as_column, plain), *positions), positions)
    rows = df.select(*map(as_column, numbered), *positions)
    # an outer generator has no number for its row of nulls
    return positions_last(rows.withColumn(child, F.coalesce(F.col(child), F.lit(0)).cast("bigint")))


def _generated_beside(df: DataFrame, columns: Mapping[str, str], positions: Sequence[str]) -> DataFrame:
    """The same for columns that are added or replaced."""
    names = [c.lower() for c in visible(df)]
    if len(set(names)) < len(names):  # a select cannot name columns that are called the same
        wider = df.withColumns({k: as_column(starless(v, df)) for k, v in columns.items()})
        return numbers_by_order(positions_last(wider), positions)
    new = {name.lower(): _aliased(text, name) for name, text in columns.items()}
    kept = [new.pop(c.lower(), quote_name(c)) for c in visible(df)]
    return _generated(df, [*kept, *new.values()], positions)


def _aliased(text: str, name: str) -> str:
    """The expression under a name."""
    if (column := column_of(text)) is not None:
        return expr(column.alias(name))
    return f"{split_alias(text)[0]} AS {quote_name(name)}"


def _union(op: ops.Union, inputs: Sequence[DataFrame]) -> DataFrame:
    width = max(len(hidden(df)) for df in inputs)
    if width:
        names = position_columns(width + 1)
        inputs = [
            positioned(df, names, [*padded_columns(hidden(df), width), str(branch)])
            for branch, df in enumerate(inputs)
        ]
    if op.by_name:
        rows = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=op.allow_missing), inputs)
        return positions_last(rows) if width else rows
    return reduce(lambda a, b: a.union(b), inputs)
