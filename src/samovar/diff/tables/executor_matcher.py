"""The matcher on executors: for dependences and equalities that are functions, and what else has no form in SQL.

Rows go, in the order of their tables, to a matcher for each partition. Partitions are made by the columns that every
clause of the dependence groups by; without such columns all rows go through one matcher, on one executor. Only what has
no partner comes back. Needs this package where the executors run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.diff.comparison_errors import DiffError
from samovar.diff.dependence import Dependence, Key, Synchronising
from samovar.diff.equality import Equality
from samovar.diff.event_values import SIDES, Side, rows_of
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.tables.order_columns import indexed
from samovar.diff.tables.row_hash import quoted, row_hashes
from samovar.diff.verdict import Rest, Verdict

__all__ = ["common_columns", "match_on_executors"]

_SIDE, _AT = "__samovar_side", "__samovar_at"
_REPORT = pa.schema(
    [
        ("side", pa.int32()),
        ("at", pa.int64()),
        ("role", pa.string()),
        ("number", pa.int64()),
        ("row", pa.binary()),
    ]
)
_REPORT_SQL = "side int, at bigint, role string, number bigint, row binary"


def common_columns(depends: Dependence) -> tuple[str, ...]:
    """Columns by which rows can be divided: dependent rows agree in them, and so do partners."""
    if not depends.clauses:
        return ()
    groups: list[tuple[str, ...]] = []
    for clause in depends.clauses:
        if isinstance(clause, Key) and clause.by is None:
            groups.append(clause.columns)
        elif isinstance(clause, Synchronising):
            groups.append(clause.within)
        else:
            return ()
    return tuple(c for c in groups[0] if all(c in g for g in groups))


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

    `by` are columns by which partners agree, where more is known than the dependence says.
    """
    parts = []
    for number, side in enumerate(SIDES):
        columns = [quoted(f.name).cast(f.dataType).alias(f.name) for f in schema.fields]
        numbered = indexed(sides[side], _AT)
        parts.append(numbered.select(F.lit(number).alias(_SIDE), _AT, *columns))
    both = parts[0].unionAll(parts[1])
    columns_by = common_columns(depends) if by is None else tuple(by)
    if columns_by:
        both = both.repartition(row_hashes([schema[c] for c in columns_by])[0])
    else:
        both = both.repartition(1)
    task = _task(depends, equal, limit)
    found = both.sortWithinPartitions(_AT, _SIDE).mapInArrow(task, _REPORT_SQL).toArrow()
    return _verdict(found, depends)


def _task(depends: Dependence, equal: Equality, limit: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = Matcher(depends=depends, equal=equal)
        try:
            for batch in batches:
                for number, side in enumerate(SIDES):
                    rows = batch.filter(pc.equal(batch.column(_SIDE), number))
                    at = rows.column(_AT).to_numpy()
                    matcher.push_batch(side, rows.drop_columns([_SIDE, _AT]), positions=at)
            verdict = matcher.close()
        except DiffError as error:  # told on the driver: Spark would wrap it into a stack of others
            yield _batch([(None, None, "error", None, _packed(error))])
            return
        if not verdict.equivalent:
            yield _report(verdict, limit)

    return run


def _report(verdict: Verdict, limit: int) -> pa.RecordBatch:
    """What a partition says: the event that decided, what it was compared with, and the rest, as pickled rows."""
    lines: list[tuple[Any, ...]] = []
    for number, side in enumerate(SIDES):
        rest = verdict.rest.get(side, Rest([], []))
        lines.append((number, None, "count", len(rest.positions), None))
        events = rest.held[:limit] if isinstance(rest.held, list) else rows_of(rest.held.slice(0, limit))
        lines += [
            (number, p, "rest", None, _packed(e))
            for p, e in zip(rest.positions[:limit], events, strict=False)
        ]
    if verdict.side is not None and verdict.position is not None:
        side, other = verdict.side, SIDES[1 - SIDES.index(verdict.side)]
        lines.append((SIDES.index(side), verdict.position, "event", None, _packed(verdict.event)))
        if verdict.against_position is not None:
            at = verdict.against_position
            lines.append((SIDES.index(other), at, "against", None, _packed(verdict.against)))
    return _batch(lines)


def _packed(value: Any) -> bytes:
    import pickle

    return pickle.dumps(value)


def _batch(lines: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*lines, strict=True))
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _REPORT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_REPORT)


def _verdict(found: pa.Table, depends: Dependence) -> tuple[Verdict, dict[Side, int]]:
    """The partitions' verdicts as one: the event that comes first in its table decides."""
    import pickle

    counts = dict.fromkeys(SIDES, 0)
    rest: dict[Side, list[tuple[int, Any]]] = {s: [] for s in SIDES}
    decided: list[tuple[int, Side, Any, int | None, Any]] = []
    for batch in found.to_batches():
        against: tuple[int, Any] | None = None
        event: tuple[int, Side, Any] | None = None
        for line in batch.to_pylist():
            if line["role"] == "error":
                raise pickle.loads(line["row"])
            side = SIDES[line["side"]]
            if line["role"] == "count":
                counts[side] += line["number"]
                continue
            row = pickle.loads(line["row"])
            if line["role"] == "rest":
                rest[side].append((line["at"], row))
            elif line["role"] == "event":
                if event is not None:
                    decided.append((*event, *(against or (None, None))))
                event, against = (line["at"], side, row), None
            else:
                against = (line["at"], row)
        if event is not None:
            decided.append((*event, *(against or (None, None))))
    if not decided:
        return Verdict(True, depends=depends.describe()), counts
    at, side, event_row, other_at, other = min(decided, key=lambda d: (d[0], d[1]))
    held = {}
    for s in SIDES:
        placed = sorted(rest[s], key=lambda p: p[0])
        held[s] = Rest([p for p, _ in placed], [e for _, e in placed])
    verdict = Verdict(
        False,
        side=side,
        position=at,
        event=event_row,
        against=other,
        against_position=other_at,
        depends=depends.describe(),
        rest=held,
    )
    return verdict, counts
