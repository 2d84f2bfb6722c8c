"""Generators (`explode` and the like), and which of the rows that one input row gave a row is: its child number.

A child number is a part of the row's position, so it follows from the tuple alone: a run, a replay of its epoch and a
window of a few rows agree on it. Spark's own numbers would not do, since they follow partitions and what else is there.

`explode` tells the number as `posexplode` and costs the same. For other generators, for several in one operator and for
Columns that have no text, rows are numbered behind the generator, which costs a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from samovar.compile.sqltext import (
    GENERATORS,
    SqlTextError,
    function_names,
    is_call,
    matching_bracket,
    split_top_level,
    tokenise,
)
from samovar.graph.operators.base import column_of
from samovar.positions import position_columns
from samovar.text import quote_name

__all__ = ["numbers_by_order", "with_number"]

_NUMBERED = {"explode": "posexplode", "explode_outer": "posexplode_outer"}
"""Generators, and those that give the same and the number before it."""


def with_number(texts: Sequence[str], child: str, names: Callable[[str], Sequence[str]]) -> list[str] | None:
    """The expressions with one more column, `child`, for the numbers that their generator gives.

    None when it is not a single one that could. `names`: the names that Spark gives the columns of a text.
    """
    places = [i for i, text in enumerate(texts) if function_names(text) & GENERATORS]
    if len(places) != 1 or column_of(texts[places[0]]) is not None:
        return None
    written = _numbered(texts[places[0]], child, names)
    return None if written is None else [written if i == places[0] else t for i, t in enumerate(texts)]


def _numbered(text: str, child: str, names: Callable[[str], Sequence[str]]) -> str | None:
    try:
        tokens = tokenise(text)
    except SqlTextError:
        return None
    name = tokens[0].name.lower()
    closing = matching_bracket(tokens, 1) if is_call(tokens, 0) else None
    if name not in _NUMBERED or closing is None:
        return None
    alias = tokens[closing + 1 :]
    if alias and alias[0].lower == "as":
        alias = alias[1:]
    if not alias:
        shown = [quote_name(n) for n in names(text)]
    elif alias[0].text == "(" and alias[-1].text == ")":
        shown = [part[0].text for part in split_top_level(alias[1:-1])]
    elif len(alias) == 1:
        shown = [alias[0].text]
    else:
        return None
    call = text[tokens[1].start : tokens[closing].end]
    return f"{_NUMBERED[name]}{call} AS ({', '.join([child, *shown])})"


def numbers_by_order(df: DataFrame, positions: Sequence[str]) -> DataFrame:
    """The frame, straight from its generators, with child numbers by the order of its rows."""
    child = position_columns(len(positions) + 1)[-1]
    among = Window.partitionBy(*positions).orderBy(child)
    ordered = df.withColumn(child, F.monotonically_increasing_id())
    return ordered.withColumn(child, (F.row_number().over(among) - 1).cast("bigint"))
