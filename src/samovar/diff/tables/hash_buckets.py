"""Two tables compared by Spark: hashes of rows, added up in buckets; a closer look only at buckets that differ.

First every row is reduced to two hashes (96 bits), and these are added up in 4,096 buckets a side: one scan of each
side, no row is moved. Equal sums mean equal tables, up to a chance of about 2^-80 that hashes of different rows add up
to the same. Where buckets differ, their hashes are counted, and rows are looked up only for the hashes that are left
over (`samovar.diff.tables.unordered_tables` where no order matters).

A table is computed up to three times if it differs. A table with other rows each time is detected, and raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.diff.comparison_errors import SideProblem
from samovar.diff.dependence import Dependence
from samovar.diff.event_values import SIDES, Side, rows_of
from samovar.diff.tables.order_columns import AT, LINE, PLACE, augmented
from samovar.diff.tables.row_hash import row_hashes, row_struct

__all__ = [
    "BUCKET",
    "GROUP",
    "SIDE",
    "A",
    "B",
    "Buckets",
    "Leftovers",
    "among",
    "find_leftovers",
    "fingerprints",
    "first_of_lines",
    "is_in",
    "numbers",
    "prepare",
    "rows_at_places",
    "under_each_other",
    "unstable",
]

_BUCKETS_BITS = 12
"""4,096 buckets: few enough for the driver, many enough that one row that differs has few others in its bucket."""
SIDE, A, B, BUCKET = "__samovar_side", "__samovar_a", "__samovar_b", "__samovar_bucket"
GROUP = "__samovar_ga", "__samovar_gb"
_LOW = (1 << 31) - 1
"""Hashes are added up 31 bits at a time, so that the sum of two thousand million rows still fits in a long."""
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Buckets:
    """How many rows each side has, and the buckets that differ."""

    rows: dict[Side, int]
    differ: list[int]
    sizes: list[int]
    """How many rows each of the buckets that differ holds, of both sides."""
    check: int
    """The sum of their hashes, left minus right: a second look has to find the same."""

    @property
    def held(self) -> int:
        """How many rows are in the buckets that differ."""
        return sum(self.sizes)

    def found_again(self, side: Numbers, a: Numbers) -> bool:
        """Whether a second look has found the rows of the buckets that differ, as sides and first hashes."""
        total = np.where(side == 0, a & _LOW, -(a & _LOW)).sum()
        return len(a) == self.held and int(total) == self.check

    @staticmethod
    def of(hashes: Numbers) -> Numbers:
        """The number of the bucket that each hash falls into."""
        return (hashes.view(np.uint64) >> np.uint64(64 - _BUCKETS_BITS)).astype(np.int64)

    @staticmethod
    def flags(some: Sequence[int]) -> npt.NDArray[np.bool_]:
        """For each of all buckets, whether it is one of these."""
        flags = np.zeros(1 << _BUCKETS_BITS, np.bool_)
        flags[list(some)] = True
        return flags


@dataclass(frozen=True)
class Leftovers:
    """Rows without a partner: how many, and where the first ones are."""

    counts: dict[Side, int]
    lines: int = 0
    """How many lines (keys, or all that is synchronised together) part somewhere."""
    places: list[dict[Side, int | None]] = field(default_factory=list)
    """For the first lines, the place on each side where they part; None where a side has ended."""


def prepare(
    sides: Mapping[Side, DataFrame],
    depends: Dependence,
    schema: StructType,
    *,
    group: tuple[Column, Column] | None = None,
    cells: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Both sides, one under the other, as hashes of the rows and of the numbers that stand for their order.

    Rows of one bucket share the hash of the row, or of its `group` where one is given, which is then kept as `GROUP`;
    so are these `cells` of each row. With an order, `LINE`, `AT` and `PLACE` follow.
    """
    hashes = dict(zip((A, B), row_hashes(schema.fields), strict=True))
    if group is not None:
        hashes |= dict(zip(GROUP, group, strict=True))
    frames = []
    for number, side in enumerate(SIDES):
        df, numbers = augmented(sides[side], depends, schema, {**hashes, **(cells or {})})
        # xxhash64 for the first of two hashes, hash for the second
        kinds = zip(hashes, ("xxhash64", "hash") * 2, strict=False)
        texts = {name: f"{kind}({', '.join((name, *numbers))})" if numbers else name for name, kind in kinds}
        bucket = texts[A if group is None else GROUP[0]]
        columns = [f"{text} AS {name}" for name, text in texts.items()]
        order = (LINE, AT, PLACE) if numbers else ()
        frames.append(
            df.selectExpr(f"{number} AS {SIDE}", *columns, f"{bucket} AS {BUCKET}", *(cells or ()), *order)
        )
    return under_each_other(frames)


def fingerprints(rows: DataFrame, by: str = BUCKET) -> Buckets:
    """The sums of both sides, bucket by bucket. One job; a few thousand numbers come to the driver."""
    sign = f"(1 - 2 * {SIDE})"
    sums = (
        rows.groupBy(F.expr(f"CAST({_bucket(by)} AS INT) AS k"))
        .agg(
            F.expr("count(*) AS n"),
            F.expr(f"sum({sign}) AS d"),
            F.expr(f"sum({sign} * ({A} & {_LOW}L)) AS s"),
            F.expr(f"sum({sign} * (shiftrightunsigned({A}, 31) & {_LOW}L)) AS t"),
            F.expr(f"sum({sign} * CAST({B} AS BIGINT)) AS u"),
        )
        .toArrow()
    )
    bucket, n, d, s, t, u = (numbers(sums, c) for c in ("k", "n", "d", "s", "t", "u"))
    differ = np.flatnonzero((d != 0) | (s != 0) | (t != 0) | (u != 0))
    differ = differ[np.argsort(bucket[differ])]
    every, more = int(n.sum()), int(d.sum())
    totals: dict[Side, int] = {"left": (every + more) // 2, "right": (every - more) // 2}
    return Buckets(totals, bucket[differ].tolist(), n[differ].tolist(), int(s[differ].sum()))


def is_in(some: Sequence[int], by: str) -> str:
    """A condition as SQL text: buckets are looked up in a table of bits, and Spark's compiled code stays the same."""
    if len(some) == 1 << _BUCKETS_BITS:
        return "true"
    words = np.packbits(Buckets.flags(some), bitorder="little").view(np.int64).tolist()
    place = _bucket(by)
    table = ", ".join(f"{word}L" for word in words)
    return f"getbit(array({table})[CAST(shiftright({place}, 6) AS INT)], CAST({place} & 63 AS INT)) = 1"


def _bucket(by: str) -> str:
    return f"shiftrightunsigned({by}, {64 - _BUCKETS_BITS})"


def numbers(table: pa.Table, column: str) -> Numbers:
    """A column of numbers without nulls as an array."""
    array: Numbers = table.column(column).to_numpy()
    return array


def find_leftovers(rows: DataFrame, buckets: Buckets, limit: int) -> Leftovers:
    """Count the rows without a partner, where an order matters. At most `limit` places come to the driver."""
    grouped = rows.filter(is_in(buckets.differ, BUCKET)).groupBy(A, B)
    counted = grouped.agg(
        F.expr(f"sum(1 - 2 * {SIDE}) AS d"),
        F.expr(f"any_value({LINE}) AS line"),
        F.expr(f"any_value({AT}) AS at"),
        *[F.expr(f"min(IF({SIDE} = {i}, {PLACE}, NULL)) AS `{s}`") for i, s in enumerate(SIDES)],
    )
    counts = ["greatest(d, 0) AS l", "greatest(-d, 0) AS r"]
    places = ["IF(d > 0, `left`, NULL) AS `left`", "IF(d < 0, `right`, NULL) AS `right`"]
    return first_of_lines(counted.filter("d <> 0").selectExpr("line", "at", *counts, *places), limit)


def first_of_lines(left_over: DataFrame, limit: int) -> Leftovers:
    """Only the first difference of a line counts: a row too much moves all that come after it.

    `left_over` has for each line and number how many rows of each side lack a partner, and a place on each side.
    """
    sums = [F.sum(c).alias(c) for c in ("l", "r")]
    first = (
        left_over.groupBy("line", "at")
        .agg(*sums, F.min("left").alias("left"), F.min("right").alias("right"))
        .groupBy("line")
        .agg(F.min_by(F.struct("l", "r", "left", "right"), "at").alias("e"))
        .select("e.*")
        .persist()
    )
    try:
        total = first.agg(*sums, F.count("*").alias("n")).collect()[0]
        chosen = first.orderBy(F.least("left", "right")).limit(limit).collect()
    finally:
        first.unpersist()
    places: list[dict[Side, int | None]] = [{"left": r["left"], "right": r["right"]} for r in chosen]
    return Leftovers({"left": total["l"] or 0, "right": total["r"] or 0}, lines=total["n"], places=places)


def unstable() -> SideProblem:
    """A second look did not find what the first one had seen."""
    return SideProblem(
        "Expected two tables that hold the same rows whenever they are computed, but a second look found others.",
        hint="Something in them is not deterministic (rand(), a current time, an order after a shuffle): compare with "
        "cache=True, or write them to files first.",
    )


def under_each_other(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames as one."""
    return reduce(DataFrame.unionAll, frames)


def among(column: str, numbers: Sequence[int]) -> str:
    """A condition as SQL text: a Column costs a trip to the Java process for each number."""
    return f"{column} IN ({', '.join(f'{n}L' for n in numbers)})"


def rows_at_places(df: DataFrame, schema: StructType, places: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The rows of a table at these places, by place."""
    if not places:
        return {}
    placed = df.select(F.monotonically_increasing_id().alias(PLACE), row_struct(schema.fields).alias("row"))
    return {r[PLACE]: r["row"] for r in rows_of(placed.filter(among(PLACE, places)).toArrow())}
