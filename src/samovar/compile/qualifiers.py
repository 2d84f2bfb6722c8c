"""The origins of columns (`orders.id`), kept over storage: rows that are read back get their qualifiers again.

Spark distinguishes columns of one name by a qualifier that each column of a frame carries; rows in a file have none.
`column_qualifiers` finds the qualifier of each column of a frame, and `requalified` puts them on rows that have lost
them. Both only build plans. Public methods cannot put a qualifier on some columns of a frame, other than by a
join, so a lateral join with one made-up row does it; Spark's optimiser turns that into a plain projection.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from samovar.compile.columns import quiet_analysis
from samovar.compile.native import visible
from samovar.ids import HIDDEN
from samovar.text import quote_name

__all__ = ["Qualifiers", "column_qualifiers", "marked", "requalified", "with_marks"]


@dataclass(frozen=True)
class Qualifiers:
    """What qualifies the columns of an operator's output.

    `columns`: each visible column's name and its qualifier (None: it has none), in order. `natural`: whether a frame
    that was not stored has them without `requalified`.
    """

    columns: tuple[tuple[str, str | None], ...]
    natural: bool


_MARK = "__sv_mark"
"""A key in a column's metadata, which Spark keeps with the column: distinguishes it from others of its name."""


def marked(df: DataFrame, tag: str) -> DataFrame:
    """The frame with each column marked as one of its own; qualifiers are lost."""
    plain = df.toDF(*(f"c{i}" for i in range(len(df.columns))))
    columns = [
        F.col(f"c{i}").alias(name, metadata={_MARK: f"{tag}.{i}"}) for i, name in enumerate(df.columns)
    ]
    return plain.select(*columns)


def with_marks(df: DataFrame, tag: str) -> DataFrame:
    """The frame with marks on the columns that were computed and have none; they have no qualifiers either."""
    names = [name.lower() for name in df.columns]
    new = {
        field.name: F.col(quote_name(field.name)).alias(field.name, metadata={_MARK: f"{tag}.{i}"})
        for i, field in enumerate(df.schema.fields)
        if _MARK not in (field.metadata or {}) and names.count(field.name.lower()) == 1
    }
    return df.withColumns(new) if new else df


def column_qualifiers(df: DataFrame, known: Collection[str]) -> tuple[tuple[str, str | None], ...] | None:
    """Each column's name and qualifier in a frame made from `marked` ones; None when they are ambiguous.

    One analysis for each known qualifier.
    """
    keys = [_key(field) for field in df.schema.fields]
    names = [name.lower() for name in df.columns]
    qualified: dict[int, str] = {}
    for qualifier in sorted(known):
        if qualifier.lower() in names:  # `q.*` would mean the fields of the column q
            continue
        try:
            with quiet_analysis():
                fields = df.select(F.col(f"{quote_name(qualifier)}.*")).schema.fields
        except PySparkException:
            continue
        for key in map(_key, fields):
            if keys.count(key) != 1:
                return None
            qualified[keys.index(key)] = qualifier
    carried = [(name, qualified.get(i)) for i, name in enumerate(names)]
    return tuple(
        (
            name,
            qualified.get(i) if carried.count(carried[i]) == 1 else None,
        )  # two alike cannot be told apart by name
        for i, name in enumerate(df.columns)
    )


def requalified(df: DataFrame, qualifiers: Qualifiers) -> DataFrame:
    """The frame with these qualifiers instead of those it has; hidden columns stay as they are, without any."""
    names = visible(df)
    # Columns that no expression mentions may be missing; the others are in order.
    left = iter(qualifiers.columns)
    chosen = [next(q for name, q in left if name.lower() == shown.lower()) for shown in names]
    if set(chosen) == {None}:
        return df
    places = [f"{HIDDEN}q{i}" for i in range(len(names))]
    waiting = iter(places)
    result = df.toDF(*(c if c.startswith(HIDDEN) else next(waiting) for c in df.columns))
    for qualifier in sorted({q for q in chosen if q is not None}):
        columns = [
            F.col(place).outer().alias(name)
            for place, name, q in zip(places, names, chosen, strict=True)
            if q == qualifier
        ]
        # the optimiser sees through a lateral join with `SELECT 1`, not through one with `range(1)`
        result = result.lateralJoin(df.sparkSession.sql("SELECT 1").select(*columns).alias(qualifier))
    return result.select(
        *(
            F.col(f"{quote_name(q)}.{quote_name(name)}") if q is not None else F.col(place).alias(name)
            for place, name, q in zip(places, names, chosen, strict=True)
        ),
        *(c for c in df.columns if c.startswith(HIDDEN)),
    )


def _key(field: StructField) -> tuple[str, str]:
    return field.name.lower(), str((field.metadata or {}).get(_MARK))
