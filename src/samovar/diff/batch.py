"""Two tables compared by Spark: hashes of rows, added up in buckets; a closer look only at buckets that differ.

First every row is reduced to two hashes (96 bits), and these are added up in 4,096 buckets a side: one scan of each
side, no row is moved. Equal sums mean equal tables, up to a chance of about 2^-80 that hashes of different rows add up
to the same. Where buckets differ, their hashes are counted, and only for those that are left over are rows looked up.

A table is computed up to three times if it differs. One that gives other rows each time is found out and told.
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

from samovar.diff.augment import PLACE, Augmented, augmented
from samovar.diff.dependence import Dependence
from samovar.diff.events import SIDES, Side, rows_of
from samovar.diff.problems import SideProblem
from samovar.diff.rowhash import row_hashes, row_struct

__all__ = [
    "BUCKET",
    "SIDE",
    "A",
    "B",
    "Buckets",
    "Leftovers",
    "Prepared",
    "Rows",
    "find_leftovers",
    "fingerprints",
    "first_of_lines",
    "in_buckets",
    "prepare",
    "rows_at_places",
    "rows_left_over",
    "rows_with_hashes",
    "under_each_other",
    "unstable",
]

_BUCKETS_BITS = 12
SIDE, A, B, BUCKET = "__samovar_side", "__samovar_a", "__samovar_b", "__samovar_bucket"
_LOW = (1 << 31) - 1
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Prepared:
    """Both sides as hashes, one under the other."""

    rows: DataFrame
    sides: Mapping[Side, Augmented]


@dataclass(frozen=True)
class Buckets:
    """How many rows each side has, and the buckets that differ."""

    rows: dict[Side, int]
    differ: list[int]
    held: int
    """How many rows are in the buckets that differ."""
    check: int
    """What their hashes add up to: a second look has to find the same."""


@dataclass(frozen=True)
class Leftovers:
    """Rows without a partner: how many, and where the first ones are: by hash without an order, by place with one."""

    counts: dict[Side, int]
    hashes: dict[tuple[int, int], int] = field(default_factory=dict)
    """How often a row is there too often on the left; negative: on the right."""
    lines: int = 0
    """How many lines (keys, or all that is synchronised together) part somewhere."""
    places: list[dict[Side, int | None]] = field(default_factory=list)
    """For the first lines, the place on each side where they part; None where a side has ended."""


def prepare(sides: Mapping[Side, DataFrame], depends: Dependence, schema: StructType) -> Prepared:
    """Reduce both sides to hashes that hold what is equal and what the order demands."""
    a, b = row_hashes(schema.fields)
    made = {s: augmented(df, depends, schema, {A: a, B: b}) for s, df in sides.items()}
    return Prepared(under_each_other([_numbered(made[s], i) for i, s in enumerate(SIDES)]), made)


def fingerprints(rows: DataFrame) -> Buckets:
    """The sums of both sides, bucket by bucket. One job; a few thousand numbers come to the driver."""
    sums = (
        rows.groupBy(SIDE, F.expr(f"CAST({_bucket(BUCKET)} AS INT) AS k"))
        .agg(
            F.expr("count(*) AS n"),
            F.expr(f"sum({A} & {_LOW}L) AS s"),
            F.expr(f"sum(shiftrightunsigned({A}, 31) & {_LOW}L) AS t"),
            F.expr(f"sum(CAST({B} AS BIGINT)) AS u"),
        )
        .toArrow()
    )
    side, bucket = (_numbers(sums, c) for c in (SIDE, "k"))
    found = np.zeros((2, 1 << _BUCKETS_BITS, 4), np.int64)
    for i, name in enumerate("nstu"):
        found[side, bucket, i] = _numbers(sums, name)
    left, right = found
    differ = np.flatnonzero((left != right).any(axis=1))
    held, check = found[:, differ, :2].sum(axis=(0, 1)).tolist()
    totals = found[:, :, 0].sum(axis=1).tolist()
    return Buckets(dict(zip(SIDES, totals, strict=True)), differ.tolist(), held, check)


def in_buckets(rows: DataFrame, differ: Sequence[int], by: str = BUCKET) -> DataFrame:
    """The rows of some buckets: looked up in a table of bits, which leaves the code that Spark compiles as it was."""
    if len(differ) == 1 << _BUCKETS_BITS:
        return rows
    bits = np.zeros(1 << _BUCKETS_BITS, np.bool_)
    bits[list(differ)] = True
    words = np.packbits(bits, bitorder="little").view(np.int64).tolist()
    place = _bucket(by)
    table = ", ".join(f"{word}L" for word in words)
    return rows.filter(
        f"getbit(array({table})[CAST(shiftright({place}, 6) AS INT)], CAST({place} & 63 AS INT)) = 1"
    )


def _bucket(by: str) -> str:
    return f"shiftrightunsigned({by}, {64 - _BUCKETS_BITS})"


def _numbers(table: pa.Table, column: str) -> Numbers:
    found: Numbers = table.column(column).to_numpy()
    return found


def find_leftovers(prepared: Prepared, buckets: Buckets, limit: int) -> Leftovers:
    """Count what has no partner. At most `limit` hashes a side, or places, come to the driver."""
    rows = in_buckets(prepared.rows, buckets.differ)
    line, at = prepared.sides["left"].line, prepared.sides["left"].at
    sign = F.when(F.col(SIDE) == 0, F.lit(1)).otherwise(F.lit(-1)).cast("long")
    if line is None or at is None:
        return _without_order(rows.groupBy(A, B).agg(F.sum(sign).alias("d")).filter("d <> 0"), limit)
    each = (
        rows.groupBy(A, B)
        .agg(
            F.sum(sign).alias("d"),
            F.any_value(line).alias("line"),
            F.any_value(at).alias("at"),
            *[F.min(F.when(F.col(SIDE) == i, F.col(PLACE))).alias(s) for i, s in enumerate(SIDES)],
        )
        .filter("d <> 0")
        .select(
            "line",
            "at",
            F.greatest("d", F.lit(0)).alias("l"),
            F.greatest(-F.col("d"), F.lit(0)).alias("r"),
            F.when(F.col("d") > 0, F.col("left")).alias("left"),
            F.when(F.col("d") < 0, F.col("right")).alias("right"),
        )
    )
    return first_of_lines(each, limit)


def _without_order(left_over: DataFrame, limit: int) -> Leftovers:
    left_over = left_over.persist()
    try:
        sums = left_over.agg(*_surplus()).collect()[0]
        # of each side some, so that rows that changed can be shown beside what they were
        some = [left_over.filter(c).limit(limit) for c in ("d > 0", "d < 0")]
        hashes = {(r[A], r[B]): r["d"] for r in under_each_other(some).collect()}
    finally:
        left_over.unpersist()
    return Leftovers({"left": sums["l"] or 0, "right": sums["r"] or 0}, hashes)


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


def _surplus() -> list[Column]:
    zero = F.lit(0).cast("long")
    return [F.sum(F.greatest("d", zero)).alias("l"), F.sum(F.greatest(-F.col("d"), zero)).alias("r")]


def unstable() -> SideProblem:
    """A second look did not find what the first one had seen."""
    return SideProblem(
        "Expected two tables that hold the same rows whenever they are computed, but a second look found others.",
        hint="Something in them is not deterministic (rand(), a current time, an order after a shuffle): compare with "
        "cache=True, or write them to files first.",
    )


def _numbered(side: Augmented, number: int) -> DataFrame:
    a, b = A, B
    if side.numbers:
        numbers = ", ".join(side.numbers)
        a, b = f"xxhash64({A}, {numbers})", f"hash({B}, {numbers})"
    more: list[str] = [c for c in (side.line, side.at, PLACE) if side.line is not None and c is not None]
    return side.df.selectExpr(f"{number} AS {SIDE}", f"{a} AS {A}", f"{b} AS {B}", f"{a} AS {BUCKET}", *more)


def under_each_other(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)


def rows_with_hashes(
    sides: Mapping[Side, DataFrame], schema: StructType, hashes: Mapping[Side, Sequence[tuple[int, int]]]
) -> dict[Side, list[tuple[tuple[int, int], dict[str, Any]]]]:
    """For each of these hashes of a side one row that has it, if there is one. One job."""
    made: dict[Side, list[tuple[tuple[int, int], dict[str, Any]]]] = {s: [] for s in SIDES}
    wanted = {s: set(hashes[s]) for s in SIDES}
    parts = [
        _hashed(sides[s], i, schema).filter(_among(A, [a for a, _ in hashes[s]]))
        for i, s in enumerate(SIDES)
        if hashes[s]
    ]
    if parts:
        found = under_each_other(parts).groupBy(SIDE, A, B).agg(F.any_value("row").alias("row"))
        for line in rows_of(found.toArrow()):
            side, hash_ = SIDES[line[SIDE]], (line[A], line[B])
            if hash_ in wanted[side]:
                made[side].append((hash_, line["row"]))
    return made


@dataclass(frozen=True)
class Rows:
    """Rows without a partner: how many, and the first of them."""

    counts: dict[Side, int]
    first: dict[Side, list[dict[str, Any]]]


def rows_left_over(sides: Mapping[Side, DataFrame], schema: StructType, buckets: Buckets, limit: int) -> Rows:
    """The rows without a partner, by one job, where the buckets that differ hold few rows: these come to the driver."""
    parts = [_hashed(sides[s], i, schema) for i, s in enumerate(SIDES)]
    lines = under_each_other([in_buckets(part, buckets.differ, A) for part in parts]).toArrow()
    side, a, b = (_numbers(lines, c) for c in (SIDE, A, B))
    if len(a) != buckets.held or int((a & _LOW).sum()) != buckets.check:
        raise unstable()
    kept = _without_partner(side, a, b)
    chosen = {s: np.flatnonzero(kept & (side == i)) for i, s in enumerate(SIDES)}
    rows = lines.select(["row"])
    return Rows(
        {s: len(ids) for s, ids in chosen.items()},
        {s: [line["row"] for line in rows_of(rows.take(ids[:limit]))] for s, ids in chosen.items()},
    )


def _without_partner(side: Numbers, a: Numbers, b: Numbers) -> npt.NDArray[np.bool_]:
    """Of rows with the same hashes, those by which one side has more than the other: its last ones."""
    kept = np.zeros(len(a), np.bool_)
    if not len(a):
        return kept
    order = np.lexsort((side, b, a))
    side, a, b = side[order], a[order], b[order]
    starts = np.concatenate([[True], (a[1:] != a[:-1]) | (b[1:] != b[:-1])])
    group = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    right = np.add.reduceat(side.astype(np.int64), first)
    left = np.diff(np.append(first, len(a))) - right
    rank = np.arange(len(a)) - first[group]  # those of the left come first
    kept[order] = np.where(side == 0, rank >= right[group], rank - left[group] >= left[group])
    return kept


def _hashed(df: DataFrame, number: int, schema: StructType) -> DataFrame:
    a, b = row_hashes(schema.fields)
    return df.select(
        F.lit(number).alias(SIDE), a.alias(A), b.alias(B), row_struct(schema.fields).alias("row")
    )


def _among(column: str, numbers: Sequence[int]) -> str:
    """A condition as text: a Column costs a trip to the Java process for each number."""
    return f"{column} IN ({', '.join(f'{n}L' for n in numbers)})"


def rows_at_places(df: DataFrame, schema: StructType, places: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The rows at these places."""
    if not places:
        return {}
    placed = df.select(F.monotonically_increasing_id().alias(PLACE), row_struct(schema.fields).alias("row"))
    return {r[PLACE]: r["row"] for r in rows_of(placed.filter(_among(PLACE, places)).toArrow())}
