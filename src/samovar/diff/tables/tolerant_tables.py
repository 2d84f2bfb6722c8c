"""Two tables compared by Spark with a tolerance for floats.

Rows that agree in everything but the floats are a group. Groups are hashed into buckets, and buckets whose rows are
exactly equal need no further look. In the others the floats of each group are put in order on both sides and compared
one by one, in SQL. For one float column that decides. For several it may fail though a pairing exists; those groups go
through the matcher, which finds it.

Not promised: speed where no column is compared exactly, since then all rows are one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, NullType, StructField, StructType

from samovar.diff.comparison_errors import EqualityProblem
from samovar.diff.dependence import Dependence
from samovar.diff.equality import Equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.tables.hash_buckets import (
    BUCKET,
    GROUP,
    SIDE,
    Buckets,
    Leftovers,
    first_of_lines,
    is_in,
    prepare,
)
from samovar.diff.tables.order_columns import AT, LINE, PLACE
from samovar.diff.tables.row_hash import is_float, quoted, row_hashes
from samovar.text import quote_name

__all__ = ["Tolerant", "failing_groups", "groups_in_order", "prepare_tolerant", "rows_of_groups"]

_NEAR = "__samovar_near"


@dataclass(frozen=True)
class Tolerant:
    """Both sides as hashes and floats, one under the other."""

    rows: DataFrame
    exact: list[StructField]
    near: list[StructField]


def prepare_tolerant(
    sides: Mapping[Side, DataFrame], depends: Dependence, schema: StructType, equal: Equality
) -> Tolerant:
    """Reduce both sides to hashes and the columns with a tolerance."""
    near = [f for f in schema.fields if _has_tolerance(f, equal)]
    exact = [f for f in schema.fields if f not in near]
    cells = {_name(i): quoted(f.name).cast("double") for i, f in enumerate(near)}
    rows = prepare(sides, depends, schema, group=_group_hashes(exact, near), cells=cells)
    return Tolerant(rows, exact, near)


def failing_groups(prepared: Tolerant, buckets: Buckets, equal: Equality) -> DataFrame:
    """The groups whose floats, put in order, are not near each other one by one."""
    rows = prepared.rows.filter(is_in(buckets.differ, BUCKET))
    cells = [c for c in rows.columns if c.startswith(_NEAR) or c == PLACE]
    lists = [
        F.sort_array(F.collect_list(F.when(F.col(SIDE) == i, F.struct(*cells)))).alias(s)
        for i, s in enumerate(SIDES)
    ]
    order = [F.any_value(c).alias(n) for c, n in ((LINE, "line"), (AT, "at")) if c in rows.columns]
    grouped = rows.groupBy(*GROUP).agg(*lists, *order)
    fits = F.size("left") == F.size("right")
    near = F.zip_with("left", "right", lambda a, b: _near(a, b, prepared.near, equal))
    return grouped.filter(~(fits & F.forall(near, lambda x: F.coalesce(x, F.lit(False)))))


def groups_in_order(failing: DataFrame, limit: int) -> Leftovers:
    """With an order: where the lines part."""
    sizes = ["CAST(size(`left`) AS BIGINT) AS l", "CAST(size(`right`) AS BIGINT) AS r"]
    places = [f"get(`{s}`, 0).{PLACE} AS `{s}`" for s in SIDES]
    return first_of_lines(failing.selectExpr("line", "at", *sizes, *places), limit)


def rows_of_groups(df: DataFrame, prepared: Tolerant, failing: DataFrame) -> DataFrame:
    """Without an order: the rows of a table that are in one of these groups."""
    a, b = _group_hashes(prepared.exact, prepared.near)
    named = df.withColumns({GROUP[0]: a, GROUP[1]: b})
    return named.join(failing.select(*GROUP), on=list(GROUP), how="left_semi").drop(*GROUP)


def _has_tolerance(field: StructField, equal: Equality) -> bool:
    tolerance = equal.tolerance
    if tolerance is None or tolerance.of(field.name) is None:
        return False
    if tolerance.columns is None or is_float(field.dataType):
        return is_float(field.dataType)
    if isinstance(field.dataType, (IntegralType, NullType)):
        return True
    raise EqualityProblem(
        f"Expected a column of numbers for a tolerance, got '{field.name}', which holds "
        f"{field.dataType.simpleString()}."
    )


def _group_hashes(exact: list[StructField], near: list[StructField]) -> tuple[Column, Column]:
    return row_hashes(exact, [f"{quote_name(f.name)} IS NULL" for f in near])


def _name(i: int) -> str:
    return f"{_NEAR}{i}"


def _near(a: Column, b: Column, near: list[StructField], equal: Equality) -> Column:
    tolerance = equal.tolerance
    assert tolerance is not None
    agree = F.lit(True)
    for i, field in enumerate(near):
        x, y = a[_name(i)], b[_name(i)]
        finite = (F.abs(x) < float("inf")) & (F.abs(y) < float("inf"))  # NaN is above all in Spark
        bound = F.lit(tolerance.of(field.name)) + F.lit(tolerance.relative) * F.greatest(F.abs(x), F.abs(y))
        agree = agree & (x.eqNullSafe(y) | (finite & (F.abs(x - y) <= bound)))
    return agree
