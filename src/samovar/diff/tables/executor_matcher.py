"""The matcher on executors: for dependences and equalities that are functions, and others that SQL cannot express.

Rows go, in the order of their tables, to a matcher for each partition. The columns of a partition are those that every
clause of the dependence groups by; without such columns all rows go through one matcher, on one executor. Only events
without a partner come back. The executors need this package.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.diff.comparison_errors import DiffError
from samovar.diff.dependence import Dependence, Key, Synchronising
from samovar.diff.equality import Equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.tables.order_columns import indexed
from samovar.diff.tables.row_hash import cast_columns, row_hashes
from samovar.diff.verdict import Verdict, joined

__all__ = ["common_columns", "match_on_executors", "reports_of"]

_SIDE, _AT = "__samovar_side", "__samovar_at"


def common_columns(depends: Dependence) -> tuple[str, ...]:
    """Columns by which rows can be divided: dependent rows agree in them, and so do partners."""
    groups: list[tuple[str, ...]] = []
    for clause in depends.clauses:
        if isinstance(clause, Key) and clause.by is None:
            groups.append(clause.columns)
        elif isinstance(clause, Synchronising):
            groups.append(clause.within)
        else:
            return ()
    return tuple(c for c in groups[0] if all(c in g for g in groups)) if groups else ()


def match_on_executors(
    sides: Mapping[Side, DataFrame],
    schema: StructType,
    depends: Dependence,
    equal: Equality,
    *,
    limit: int,
    by: Sequence[str] | None = None,
) -> tuple[Verdict, dict[Side, int]]:
    """The verdict, and how many rows of each side have no partner. Positions count from the start of each table.

    `by` are columns by which partners agree, where more is known than the dependence states.
    """
    left, right = (
        indexed(sides[s], _AT).select(F.lit(i).alias(_SIDE), _AT, *cast_columns(schema))
        for i, s in enumerate(SIDES)
    )
    columns = common_columns(depends) if by is None else by
    both = left.unionAll(right)
    both = both.repartition(row_hashes([schema[c] for c in columns])[0]) if columns else both.repartition(1)
    rows = both.sortWithinPartitions(_AT, _SIDE)

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Verdict, dict[Side, int]]]:
        matcher = Matcher(depends=depends, equal=equal)
        for batch in batches:
            for number, side in enumerate(SIDES):
                part = batch.filter(pc.equal(batch.column(_SIDE), number))
                at = part.column(_AT).to_numpy()
                matcher.push_batch(side, part.drop_columns([_SIDE, _AT]), positions=at)
        verdict = matcher.close()
        if not verdict.equivalent:
            counts = {s: len(verdict.rest[s].positions) for s in SIDES}
            yield replace(verdict, rest={s: verdict.rest[s].first(limit) for s in SIDES}), counts

    reports = reports_of(rows, match)
    counts = {s: sum(count[s] for _, count in reports) for s in SIDES}
    if not reports:
        return Verdict(True, depends=depends.describe()), counts
    # the event that comes first in its table decides
    verdict = min((v for v, _ in reports), key=lambda v: (v.position or 0, v.side or ""))
    return replace(verdict, rest={s: joined(v.rest[s] for v, _ in reports) for s in SIDES}), counts


def reports_of(rows: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterable[Any]]) -> list[Any]:
    """Run a task on each partition: the values it yields. A `DiffError` comes to the driver as one of them and is
    raised here, since Spark would wrap it into a stack of others."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for report in task(batches):
                yield pa.record_batch({"report": [pickle.dumps(report)]})
        except DiffError as error:
            yield pa.record_batch({"report": [pickle.dumps(error)]})

    packed = rows.mapInArrow(run, "report binary").toArrow().column("report").to_pylist()
    reports = [pickle.loads(report) for report in packed]
    if (error := next((r for r in reports if isinstance(r, DiffError)), None)) is not None:
        raise error
    return reports
