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

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.diff.augment import PLACE, Augmented, augmented
from samovar.diff.dependence import Dependence
from samovar.diff.events import SIDES, Side, rows_of
from samovar.diff.problems import SideProblem
from samovar.diff.rowhash import quoted, row_hashes

__all__ = [
    "BUCKET",
    "SIDE",
    "A",
    "B",
    "Buckets",
    "Leftovers",
    "Prepared",
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
        rows.groupBy(SIDE, F.shiftrightunsigned(BUCKET, 64 - _BUCKETS_BITS).alias("k"))
        .agg(
            F.count("*").alias("n"),
            F.sum(F.col(A).bitwiseAND(F.lit(_LOW))).alias("s"),
            F.sum(F.shiftrightunsigned(A, 31).bitwiseAND(F.lit(_LOW))).alias("t"),
            F.sum(F.col(B).cast("long")).alias("u"),
        )
        .toArrow()
        .to_pylist()
    )
    found: list[dict[int, tuple[int, ...]]] = [{}, {}]
    for row in sums:
        found[row[SIDE]][row["k"]] = (row["n"], row["s"], row["t"], row["u"])
    differ = sorted(k for k in found[0].keys() | found[1].keys() if found[0].get(k) != found[1].get(k))
    counts = {s: sum(v[0] for v in found[i].values()) for i, s in enumerate(SIDES)}
    there = [side[k] for side in found for k in differ if k in side]
    return Buckets(counts, differ, sum(v[0] for v in there), sum(v[1] for v in there))


def in_buckets(rows: DataFrame, differ: Sequence[int], by: str = BUCKET) -> DataFrame:
    """The rows of some buckets."""
    if len(differ) == 1 << _BUCKETS_BITS:
        return rows
    return rows.filter(F.shiftrightunsigned(by, 64 - _BUCKETS_BITS).isin(list(differ)))


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
    a, b = F.col(A), F.col(B)
    if side.numbers:
        a, b = F.xxhash64(a, *side.numbers), F.hash(b, *side.numbers)
    more: list[str] = [c for c in (side.line, side.at, PLACE) if side.line is not None and c is not None]
    return side.df.select(F.lit(number).alias(SIDE), a.alias(A), b.alias(B), a.alias(BUCKET), *more)


def under_each_other(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)


def rows_with_hashes(
    df: DataFrame, schema: StructType, hashes: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    """For each of these hashes one row of the table that has it, if there is one."""
    if not hashes:
        return []
    a, b = row_hashes(schema.fields)
    found = (
        df.filter(a.isin([x for x, _ in hashes]))
        .groupBy(a.alias(A), b.alias(B))
        .agg(F.any_value(_row(schema)).alias("row"))
        .toArrow()
    )
    wanted = set(hashes)
    rows = [((r[A], r[B]), r["row"]) for r in rows_of(found)]
    return [(h, row) for h, row in rows if h in wanted]


def rows_left_over(
    sides: Mapping[Side, DataFrame], schema: StructType, buckets: Buckets
) -> dict[Side, list[dict[str, Any]]]:
    """The rows without a partner, by one job, where the buckets that differ hold few rows: these come to the driver."""
    a, b = row_hashes(schema.fields)
    parts = [
        in_buckets(
            sides[s].select(F.lit(i).alias(SIDE), a.alias(A), b.alias(B), _row(schema).alias("row")),
            buckets.differ,
            A,
        )
        for i, s in enumerate(SIDES)
    ]
    found: dict[tuple[int, int], list[list[dict[str, Any]]]] = {}
    lines = rows_of(under_each_other(parts).toArrow())
    if len(lines) != buckets.held or sum(line[A] & _LOW for line in lines) != buckets.check:
        raise unstable()
    for line in lines:
        found.setdefault((line[A], line[B]), [[], []])[line[SIDE]].append(line["row"])
    made: dict[Side, list[dict[str, Any]]] = {s: [] for s in SIDES}
    for left, right in found.values():
        made["left"] += left[len(right) :]
        made["right"] += right[len(left) :]
    return made


def rows_at_places(df: DataFrame, schema: StructType, places: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The rows at these places."""
    if not places:
        return {}
    placed = df.select(F.monotonically_increasing_id().alias(PLACE), _row(schema).alias("row"))
    return {r[PLACE]: r["row"] for r in rows_of(placed.filter(F.col(PLACE).isin(list(places))).toArrow())}


def _row(schema: StructType) -> Column:
    return F.struct(*[quoted(f.name).cast(f.dataType).alias(f.name) for f in schema.fields])
