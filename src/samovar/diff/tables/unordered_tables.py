"""Tables whose order does not matter: which rows differ, by one job more than equal tables take.

Both tables are one DataFrame of sides, hashes and rows; a job that does not ask for the rows does not build them. The
second job brings the hashes of the buckets that differ to the driver, where arrays show which have no partner, and with
some of them the rows. Where buckets that differ hold too many rows for that, Spark counts hashes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.diff.event_values import SIDES, Side, rows_of
from samovar.diff.tables.hash_buckets import (
    SIDE,
    A,
    B,
    Buckets,
    among,
    is_in,
    numbers,
    under_each_other,
    unstable,
)
from samovar.diff.tables.row_hash import hash_texts, struct_text

__all__ = ["LeftOver", "count_left_over", "hashed", "left_over"]

_ROW = "row"
_SHOWN = 3
"""Buckets whose rows come to the driver for each row that is shown: a bucket may differ on one side only."""

Hash = tuple[int, int]


@dataclass(frozen=True)
class LeftOver:
    """Rows without a partner: how many, and some of them."""

    counts: dict[Side, int]
    some: dict[Side, list[dict[str, Any]]]


def hashed(sides: Mapping[Side, DataFrame], schema: StructType) -> DataFrame:
    """Side, hashes and row of both tables, one under the other."""
    a, b = hash_texts(schema.fields)
    row = struct_text(schema.fields)
    return under_each_other(
        [
            sides[s].selectExpr(f"{i} AS {SIDE}", f"{a} AS {A}", f"{b} AS {B}", f"{row} AS {_ROW}")
            for i, s in enumerate(SIDES)
        ]
    )


def left_over(rows: DataFrame, buckets: Buckets, *, limit: int, along: int) -> LeftOver:
    """The rows without a partner, by one job. At most `along` rows come with the hashes; if among these too few have no
    partner, a further job brings others."""
    shown = _shown(buckets, _SHOWN * limit, along)
    # in an array, since a null in the place of a row would not do where columns are never null
    row = f"array({_ROW})"
    if len(shown) < len(buckets.differ):
        row = f"IF({is_in(shown, A)}, {row}, array())"
    lines = rows.filter(is_in(buckets.differ, A)).selectExpr(SIDE, A, B, f"{row} AS {_ROW}").toArrow()
    side, a, b = (numbers(lines, c) for c in (SIDE, A, B))
    if not buckets.found_again(side, a):
        raise unstable()
    kept = _without_partner(side, a, b)
    here = buckets.flags(shown)[buckets.of(a)]
    counts: dict[Side, int] = {}
    some: dict[Side, list[dict[str, Any]]] = {}
    lacking: dict[Side, list[Hash]] = {}
    for i, s in enumerate(SIDES):
        mine = kept & (side == i)
        counts[s] = int(mine.sum())
        ids = np.flatnonzero(mine & here)[:limit]
        some[s] = [line[_ROW][0] for line in rows_of(lines.select([_ROW]).take(ids))]
        others = np.flatnonzero(mine & ~here)[: limit - len(ids)]
        lacking[s] = list(zip(a[others].tolist(), b[others].tolist(), strict=True))
    for s, by_hash in _with_hashes(rows, lacking).items():
        some[s] += [by_hash[h] for h in lacking[s]]
    return LeftOver(counts, some)


def count_left_over(rows: DataFrame, buckets: Buckets, *, limit: int) -> LeftOver:
    """The same where there are many: hashes are counted by Spark, which moves them; then rows are looked up."""
    counted = rows.filter(is_in(buckets.differ, A)).groupBy(A, B)
    surplus = counted.agg(F.expr(f"sum(1 - 2 * {SIDE}) AS d")).filter("d <> 0").persist()
    try:
        sums = surplus.selectExpr("sum(greatest(d, 0)) AS left", "sum(greatest(-d, 0)) AS right").collect()[0]
        # of each side some, so that rows that changed can be shown beside what they were
        some = under_each_other([surplus.filter(c).limit(limit) for c in ("d > 0", "d < 0")]).collect()
    finally:
        surplus.unpersist()
    counts: dict[Side, int] = {s: sums[s] or 0 for s in SIDES}
    if not any(counts.values()):
        raise unstable()
    wanted: dict[Side, dict[Hash, int]] = {
        "left": {(r[A], r[B]): r["d"] for r in some if r["d"] > 0},
        "right": {(r[A], r[B]): -r["d"] for r in some if r["d"] < 0},
    }
    by_hash = _with_hashes(rows, {s: list(wanted[s]) for s in SIDES})
    shown: dict[Side, list[dict[str, Any]]] = {
        s: [by_hash[s][h] for h, n in wanted[s].items() for _ in range(min(n, limit))][:limit] for s in SIDES
    }
    return LeftOver(counts, shown)


def _shown(buckets: Buckets, most: int, along: int) -> list[int]:
    """The first buckets that differ, at most `most`, which hold at most `along` rows."""
    within = int(np.searchsorted(np.cumsum(buckets.sizes), along, side="right"))
    return buckets.differ[: min(within, most)]


def _with_hashes(
    rows: DataFrame, hashes: Mapping[Side, Sequence[Hash]]
) -> dict[Side, dict[Hash, dict[str, Any]]]:
    """For each of these hashes of a side a row that has it. One job, or none."""
    by_hash: dict[Side, dict[Hash, dict[str, Any]]] = {s: {} for s in SIDES}
    asked = [
        f"({SIDE} = {i} AND {among(A, [a for a, _ in hashes[s]])})" for i, s in enumerate(SIDES) if hashes[s]
    ]
    if asked:
        grouped = rows.filter(" OR ".join(asked)).groupBy(SIDE, A, B)
        for line in rows_of(grouped.agg(F.expr(f"any_value({_ROW}) AS {_ROW}")).toArrow()):
            by_hash[SIDES[line[SIDE]]][line[A], line[B]] = line[_ROW]
    if any(h not in by_hash[s] for s in SIDES for h in hashes[s]):
        raise unstable()
    return by_hash


def _without_partner(
    side: npt.NDArray[Any], a: npt.NDArray[Any], b: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
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
