"""`compare`: are two tables the same, up to the order that matters? Computed by Spark, where the rows are.

Guarantee: no table is collected; to the driver come sums of hashes, and the first rows that differ. The verdict is that
of a `Matcher` fed with both tables, up to a chance of about 2^-80 that different rows have the same hashes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samovar.diff.comparison_errors import DiffError
from samovar.diff.dependence import Dependence, Key, as_dependence, independent
from samovar.diff.equality import Equality, as_equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher.axioms import check_columns
from samovar.diff.tables.table_verdict import Tables, TableVerdict
from samovar.diff.verdict import Rest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from samovar.diff.tables.hash_buckets import Buckets, Leftovers
    from samovar.diff.tables.schemas import Strictness

__all__ = ["compare"]

_FEW = 200_000
"""Cells of rows that are brought to the driver before it is known which of them differ."""
_HASHES = 1_000_000
"""Hashes of rows in buckets that differ which are brought to the driver; beyond this Spark counts them first."""


def compare(
    left: Any,
    right: Any,
    *,
    depends: Any = independent,
    equal: Any = None,
    schema: Strictness = "types",
    sink: str | None = None,
    rows: int = 200,
    cache: bool = False,
    spark: SparkSession | None = None,
) -> TableVerdict:
    """Compare two tables: DataFrames, pyarrow tables, paths of files or recordings, catalog tables, runs.

    `depends` and `equal` are those of `Matcher`. The order of a table is that of its partitions and of the rows within
    each. `schema` says what has to agree beforehand: `types` (names and types), `kinds` (integers of any width are
    one), or `exact` (order and nullability, too). `sink` chooses the result of a run that has several. At most `rows`
    rows a side are brought here to be shown. `cache` keeps both tables while they are compared: for tables that are not
    deterministic, or dear to compute.
    """
    from samovar.diff.tables.schemas import agreed_columns
    from samovar.diff.tables.table_inputs import as_side, session_of

    if rows < 1:
        raise DiffError(f"Expected at least one row to show, got rows={rows}.")
    depending, equality = as_dependence(depends), as_equality(equal)
    check_columns(depending, equality)
    equality = equality.exact_in(depending.columns)
    session = session_of(left, right, spark=spark)
    given = {
        "left": as_side(left, "left", session, sink=sink),
        "right": as_side(right, "right", session, sink=sink),
    }
    frames: dict[Side, DataFrame] = {s: given[s].df for s in SIDES}
    agreed = agreed_columns(
        frames["left"].schema,
        frames["right"].schema,
        columns=equality.columns,
        needed=(*depending.columns, *equality.tolerant_columns),
        strictness=schema,
    )
    tables = Tables(depending.describe(), {s: given[s] for s in SIDES})
    if cache:
        frames = {s: df.persist() for s, df in frames.items()}
    try:
        return _way(depending, equality)(_Asked(frames, agreed, depending, equality, tables, rows))
    finally:
        if cache:
            for df in frames.values():
                df.unpersist()


@dataclass(frozen=True)
class _Asked:
    """A comparison that was asked for."""

    frames: dict[Side, DataFrame]
    schema: StructType
    depends: Dependence
    equal: Equality
    tables: Tables
    limit: int
    """Rows a side that are brought here."""


def _way(depends: Dependence, equal: Equality) -> Callable[[_Asked], TableVerdict]:
    from samovar.diff.tables.order_columns import can_augment

    if not equal.in_columns or not can_augment(depends):
        return _by_matcher
    if equal.tolerance is None:
        return _by_hashes if depends.clauses else _unordered
    if not depends.clauses or any(isinstance(c, Key) for c in depends.clauses):
        return _by_groups
    return _by_matcher


def _unordered(asked: _Asked) -> TableVerdict:
    """No order matters, cells are compared exactly."""
    from samovar.diff.tables.hash_buckets import A, fingerprints
    from samovar.diff.tables.unordered_tables import count_left_over, hashed, left_over

    rows = hashed(asked.frames, asked.schema)
    buckets = fingerprints(rows, A)
    if not buckets.differ:
        return asked.tables.same(buckets.rows)
    if buckets.held <= _HASHES:
        found = left_over(rows, buckets, limit=asked.limit, along=_FEW // max(1, len(asked.schema)))
    else:
        found = count_left_over(rows, buckets, limit=asked.limit)
    rest = {s: Rest([], events) for s, events in found.some.items()}
    return asked.tables.different(buckets.rows, found.counts, rest)


def _by_hashes(asked: _Asked) -> TableVerdict:
    """Structured dependences, cells compared exactly."""
    from samovar.diff.tables.hash_buckets import find_leftovers, fingerprints, prepare, unstable

    rows = prepare(asked.frames, asked.depends, asked.schema)
    buckets = fingerprints(rows)
    if not buckets.differ:
        return asked.tables.same(buckets.rows)
    leftovers = find_leftovers(rows, buckets, asked.limit)
    if not any(leftovers.counts.values()):
        raise unstable()
    return _at_places(asked, buckets, leftovers)


def _at_places(asked: _Asked, buckets: Buckets, found: Leftovers) -> TableVerdict:
    from samovar.diff.tables.hash_buckets import rows_at_places, unstable
    from samovar.diff.tables.order_columns import offsets_of, position

    placed: dict[Side, dict[int, tuple[int, Any]]] = {}
    for side in SIDES:
        places = [p for line in found.places if (p := line[side]) is not None]
        rows = rows_at_places(asked.frames[side], asked.schema, places)
        if len(rows) < len(places):
            raise unstable()
        offsets = offsets_of(asked.frames[side]) if places else []
        placed[side] = {p: (position(p, offsets), row) for p, row in rows.items()}
    pairs = [tuple(None if (p := line[s]) is None else placed[s][p] for s in SIDES) for line in found.places]
    pairs.sort(key=lambda pair: min(p[0] for p in pair if p is not None))
    return asked.tables.parting(buckets.rows, found.counts, [(a, b) for a, b in pairs], found.lines)


def _by_groups(asked: _Asked) -> TableVerdict:
    """Structured dependences, floats compared with a tolerance."""
    from samovar.diff.tables.executor_matcher import match_on_executors
    from samovar.diff.tables.hash_buckets import fingerprints, unstable
    from samovar.diff.tables.tolerant_tables import (
        failing_groups,
        groups_in_order,
        prepare_tolerant,
        rows_of_groups,
    )

    prepared = prepare_tolerant(asked.frames, asked.depends, asked.schema, asked.equal)
    buckets = fingerprints(prepared.rows)
    if not buckets.differ:
        return asked.tables.same(buckets.rows)
    failing = failing_groups(prepared, buckets, asked.equal)
    if asked.depends.clauses:
        found = groups_in_order(failing, asked.limit)
        if not any(found.counts.values()):
            return asked.tables.same(buckets.rows)
        return _at_places(asked, buckets, found)
    failing = failing.persist()
    try:
        if failing.isEmpty():
            return asked.tables.same(buckets.rows)
        chosen = {s: rows_of_groups(df, prepared, failing) for s, df in asked.frames.items()}
        exact = [f.name for f in prepared.exact]
        verdict, counts = match_on_executors(
            chosen, asked.schema, asked.depends, asked.equal, limit=asked.limit, by=exact
        )
    finally:
        failing.unpersist()
    if verdict.equivalent:
        if len(prepared.near) == 1:
            raise unstable()
        return asked.tables.same(buckets.rows)
    rest: dict[Side, Rest] = {s: Rest([], verdict.rest[s].events) for s in SIDES}
    return asked.tables.different(buckets.rows, counts, rest)


def _by_matcher(asked: _Asked) -> TableVerdict:
    """All else: functions, punctuations, synchronisation with a tolerance."""
    from samovar.diff.tables.executor_matcher import match_on_executors

    verdict, counts = match_on_executors(
        asked.frames, asked.schema, asked.depends, asked.equal, limit=asked.limit
    )
    return asked.tables.matched(verdict, counts)
