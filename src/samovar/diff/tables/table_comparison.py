"""A comparison of two tables by Spark, in one of four ways: the dependence and the equality decide which.

Guarantee: no table is collected; to the driver come sums of hashes, and the first rows that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from samovar.diff.dependence import Dependence, Key
from samovar.diff.equality import Equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.report import Pair
from samovar.diff.tables.executor_matcher import match_on_executors
from samovar.diff.tables.hash_buckets import (
    A,
    Buckets,
    Leftovers,
    find_leftovers,
    fingerprints,
    prepare,
    rows_at_places,
    unstable,
)
from samovar.diff.tables.order_columns import can_augment, offsets_of, position
from samovar.diff.tables.table_inputs import Given
from samovar.diff.tables.table_verdict import TableVerdict
from samovar.diff.tables.tolerant_tables import (
    failing_groups,
    groups_in_order,
    prepare_tolerant,
    rows_of_groups,
)
from samovar.diff.tables.unordered_tables import count_left_over, hashed, left_over
from samovar.diff.verdict import Rest

__all__ = ["TableComparison"]

_FEW = 200_000
"""Cells of rows that are brought to the driver before it is known which of them differ."""
_HASHES = 1_000_000
"""Hashes of rows in buckets that differ which are brought to the driver; beyond this Spark counts them first."""


@dataclass(frozen=True)
class TableComparison:
    """Two tables, and how to compare them."""

    frames: Mapping[Side, DataFrame]
    schema: StructType
    depends: Dependence
    equal: Equality
    origins: Mapping[Side, Given]
    limit: int
    """Rows a side that are brought to the driver to be shown."""

    def verdict(self) -> TableVerdict:
        """Compare the tables in the way that fits the dependence and the equality."""
        clauses = self.depends.clauses
        if not self.equal.in_columns or not can_augment(self.depends):
            return self._by_matcher()
        if self.equal.tolerance is None:
            return self._by_hashes() if clauses else self._unordered()
        if not clauses or any(isinstance(c, Key) for c in clauses):
            return self._by_groups()
        return self._by_matcher()

    def _unordered(self) -> TableVerdict:
        """No order matters, cells are compared exactly."""
        rows = hashed(self.frames, self.schema)
        buckets = fingerprints(rows, A)
        if not buckets.differ:
            return self._same(buckets.rows)
        if buckets.held <= _HASHES:
            left = left_over(rows, buckets, limit=self.limit, along=_FEW // max(1, len(self.schema)))
        else:
            left = count_left_over(rows, buckets, limit=self.limit)
        return self._different(buckets, left.counts, left.some)

    def _by_hashes(self) -> TableVerdict:
        """Structured dependences, cells compared exactly."""
        rows = prepare(self.frames, self.depends, self.schema)
        buckets = fingerprints(rows)
        if not buckets.differ:
            return self._same(buckets.rows)
        leftovers = find_leftovers(rows, buckets, self.limit)
        if not any(leftovers.counts.values()):
            raise unstable()
        return self._parting(buckets, leftovers)

    def _by_groups(self) -> TableVerdict:
        """Structured dependences, floats compared with a tolerance."""
        prepared = prepare_tolerant(self.frames, self.depends, self.schema, self.equal)
        buckets = fingerprints(prepared.rows)
        if not buckets.differ:
            return self._same(buckets.rows)
        failing = failing_groups(prepared, buckets, self.equal)
        if self.depends.clauses:
            leftovers = groups_in_order(failing, self.limit)
            if not any(leftovers.counts.values()):
                return self._same(buckets.rows)
            return self._parting(buckets, leftovers)
        failing = failing.persist()
        try:
            if failing.isEmpty():
                return self._same(buckets.rows)
            chosen = {s: rows_of_groups(df, prepared, failing) for s, df in self.frames.items()}
            exact = [f.name for f in prepared.exact]
            verdict, counts = match_on_executors(
                chosen, self.schema, self.depends, self.equal, limit=self.limit, by=exact
            )
        finally:
            failing.unpersist()
        if verdict.equivalent:
            if len(prepared.near) == 1:  # where Spark alone decides, and found a difference
                raise unstable()
            return self._same(buckets.rows)
        return self._different(buckets, counts, {s: verdict.unmatched(s) for s in SIDES})

    def _by_matcher(self) -> TableVerdict:
        """All others: functions, punctuations, synchronisation with a tolerance."""
        verdict, counts = match_on_executors(
            self.frames, self.schema, self.depends, self.equal, limit=self.limit
        )
        if verdict.equivalent:
            return self._same({})
        pairs = [verdict.pair] if verdict.pair is not None else []
        return TableVerdict(
            **vars(verdict), counts=counts, pairs=pairs, lines=len(pairs), origins=self.origins
        )

    def _same(self, totals: Mapping[Side, int]) -> TableVerdict:
        return TableVerdict(True, depends=self.depends.describe(), totals=totals, origins=self.origins)

    def _different(
        self, buckets: Buckets, counts: Mapping[Side, int], rows: Mapping[Side, Sequence[Any]]
    ) -> TableVerdict:
        """Rows are left over, and no order matters."""
        side: Side = "left" if rows["left"] else "right"
        return TableVerdict(
            False,
            side=side,
            event=rows[side][0],
            depends=self.depends.describe(),
            rest={s: Rest([], list(rows[s])) for s in SIDES},
            totals=buckets.rows,
            counts=counts,
            origins=self.origins,
        )

    def _parting(self, buckets: Buckets, leftovers: Leftovers) -> TableVerdict:
        """Lines part at some places: the first of them decides."""
        placed: dict[Side, dict[int, tuple[int, Any]]] = {}
        for side in SIDES:
            places = [p for line in leftovers.places if (p := line[side]) is not None]
            rows = rows_at_places(self.frames[side], self.schema, places)
            if len(rows) < len(places):
                raise unstable()
            offsets = offsets_of(self.frames[side]) if places else []
            placed[side] = {p: (position(p, offsets), row) for p, row in rows.items()}
        pairs: list[Pair] = []
        for line in leftovers.places:
            left, right = (None if (p := line[s]) is None else placed[s][p] for s in SIDES)
            pairs.append((left, right))
        pairs.sort(key=lambda pair: min(p[0] or 0 for p in pair if p is not None))
        first, other = pairs[0]
        at, event = first or other or (None, None)
        against_position, against = (first and other) or (None, None)
        return TableVerdict(
            False,
            side="left" if first else "right",
            position=at,
            event=event,
            against=against,
            against_position=against_position,
            depends=self.depends.describe(),
            rest={s: Rest.of(pair[i] for pair in pairs) for i, s in enumerate(SIDES)},
            totals=buckets.rows,
            counts=leftovers.counts,
            pairs=pairs,
            lines=leftovers.lines,
            origins=self.origins,
        )
