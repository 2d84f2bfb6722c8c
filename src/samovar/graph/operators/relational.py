"""Relational operators: each stands for the PySpark DataFrame method of the same meaning and runs natively."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from samovar.graph.operators.base import Op

__all__ = [
    "Aggregate",
    "Alias",
    "Distinct",
    "Drop",
    "DropDuplicates",
    "DropNa",
    "FillNa",
    "Filter",
    "Join",
    "JoinType",
    "Limit",
    "Rename",
    "Replace",
    "Sample",
    "Select",
    "SetOperation",
    "Sort",
    "ToDF",
    "Union",
    "WithColumns",
]

JoinType = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]
Scalar = bool | int | float | str


class Select(Op, tag="select", frozen=True, kw_only=True):
    """Columns computed from each row; `explode(...)` gives several rows for one."""

    columns: tuple[str, ...]
    summary: ClassVar[str] = "chooses and computes columns"
    sql_fields: ClassVar[tuple[str, ...]] = ("columns",)


class Filter(Op, tag="filter", frozen=True, kw_only=True):
    """Keeps the rows for which the condition is true."""

    condition: str
    summary: ClassVar[str] = "keeps rows that meet a condition"
    sql_fields: ClassVar[tuple[str, ...]] = ("condition",)


class WithColumns(Op, tag="with_columns", frozen=True, kw_only=True):
    """Adds columns or replaces those of the same name."""

    columns: dict[str, str]
    summary: ClassVar[str] = "adds or replaces columns"
    sql_fields: ClassVar[tuple[str, ...]] = ("columns",)


class Rename(Op, tag="rename", frozen=True, kw_only=True):
    """Renames columns; names that are not there are ignored, as in PySpark."""

    columns: dict[str, str]
    summary: ClassVar[str] = "renames columns"


class ToDF(Op, tag="to_df", frozen=True, kw_only=True):
    """Renames all columns by position."""

    names: tuple[str, ...]
    summary: ClassVar[str] = "renames all columns"


class Drop(Op, tag="drop", frozen=True, kw_only=True):
    """Removes columns; names that are not there are ignored, as in PySpark."""

    columns: tuple[str, ...]
    summary: ClassVar[str] = "removes columns"
    sql_fields: ClassVar[tuple[str, ...]] = ("columns",)


class DropNa(Op, tag="drop_na", frozen=True, kw_only=True):
    """Removes rows with nulls."""

    how: Literal["any", "all"] = "any"
    thresh: int | None = None
    subset: tuple[str, ...] | None = None
    summary: ClassVar[str] = "removes rows with nulls"


class FillNa(Op, tag="fill_na", frozen=True, kw_only=True):
    """Puts values in place of nulls."""

    value: Scalar | dict[str, Scalar]
    subset: tuple[str, ...] | None = None
    summary: ClassVar[str] = "replaces nulls"


class Replace(Op, tag="replace", frozen=True, kw_only=True):
    """Puts values in place of values, as `DataFrame.replace` does; `pairs` lists old and new."""

    pairs: tuple[tuple[Any, Any], ...]
    subset: tuple[str, ...] | None = None
    summary: ClassVar[str] = "replaces values"


class Alias(Op, tag="alias", frozen=True, kw_only=True):
    """Gives the rows a name to qualify columns with (`a.id`)."""

    alias: str
    summary: ClassVar[str] = "names its input for qualified columns"


class Distinct(Op, tag="distinct", frozen=True, kw_only=True):
    """Each different row once, at the end of its input."""

    summary: ClassVar[str] = "keeps each different row once"


class DropDuplicates(Op, tag="drop_duplicates", frozen=True, kw_only=True):
    """For each different value of the subset, the first row in canonical order, at the end of its input."""

    subset: tuple[str, ...] | None = None
    summary: ClassVar[str] = "keeps the first row of each key"


class Union(Op, tag="union", frozen=True, kw_only=True):
    """All rows of its inputs; two branches of one source meet in source order."""

    by_name: bool = False
    allow_missing: bool = False
    ports: ClassVar[tuple[int, int | None]] = (2, None)
    summary: ClassVar[str] = "puts inputs together"


class SetOperation(Op, tag="set_operation", frozen=True, kw_only=True):
    """Intersection or difference of two inputs, at their end."""

    kind_of_set: Literal["intersect", "intersectAll", "subtract", "exceptAll"] = msgspec.field(name="kind")
    ports: ClassVar[tuple[int, int | None]] = (2, 2)
    summary: ClassVar[str] = "intersects or subtracts inputs"


class Join(Op, tag="join", frozen=True, kw_only=True):
    """Joins port 0 (left) with port 1 (right).

    One side, the *build* side, is read whole before the other, the *probe* side, is joined with it as it comes. Which
    side builds is chosen by size unless `build` says it. `on` is a list of column names, or a condition.
    """

    on: tuple[str, ...] | None = None
    condition: str | None = None
    how: JoinType = "inner"
    build: Literal["left", "right"] | None = None
    ports: ClassVar[tuple[int, int | None]] = (2, 2)
    summary: ClassVar[str] = "joins two inputs"
    sql_fields: ClassVar[tuple[str, ...]] = ("condition",)


class Aggregate(Op, tag="aggregate", frozen=True, kw_only=True):
    """Groups by keys (none: all rows are one group) and computes aggregates, at the end of its input."""

    keys: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    grouping: Literal["groupBy", "cube", "rollup"] = "groupBy"
    pivot: str | None = None
    pivot_values: tuple[Scalar, ...] | None = None
    summary: ClassVar[str] = "groups and aggregates"
    sql_fields: ClassVar[tuple[str, ...]] = ("keys", "aggregates")


class Sort(Op, tag="sort", frozen=True, kw_only=True):
    """Orders all rows, at the end of its input. Keys are SQL: `amount DESC NULLS LAST`."""

    keys: tuple[str, ...]
    summary: ClassVar[str] = "orders rows"
    sql_fields: ClassVar[tuple[str, ...]] = ("keys",)


class Limit(Op, tag="limit", frozen=True, kw_only=True):
    """The first n rows in canonical order, after skipping `offset`."""

    n: int | None = None
    offset: int = 0
    summary: ClassVar[str] = "keeps the first rows"


class Sample(Op, tag="sample", frozen=True, kw_only=True):
    """Keeps each row with the given probability.

    With a `seed` these are the rows that Spark draws for it: Spark draws them before the run, as one query, so what
    comes before must be a source and operators that look at one row (see `samovar.compile.samples`). Without one, a row
    is decided by its position, the same way every time: each row has a number from 0 to 1, and those from `start` to
    `start + fraction` are kept. So samples of stretches that do not overlap have no row in common.
    """

    fraction: float
    seed: int | None = None
    start: float = 0.0
    replacement: bool = False
    """Whether a row can be drawn several times; needs a seed."""
    summary: ClassVar[str] = "keeps a share of the rows"
