"""Comparisons of two recordings: the verdict as data, rows that differ side by side, and the way to their cause."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from samovar.diff import Dependence, compare, equality, independent, keyed, ordered
from samovar.diff.report import most_alike
from samovar.diff.tables.table_verdict import TableVerdict
from samovar.errors import NotInWorkspace, WorkspaceError
from samovar.server.json_values import row_data
from samovar.server.runs.journeys import Journey

__all__ = ["Comparisons", "Order", "depends_of"]

Order = Literal["any", "all", "keys"]
_KEPT = 20
_SHOWN = 100
"""Pairs of rows that are shown."""


def depends_of(order: Order, keys: Sequence[str]) -> Dependence:
    """The dependence that an order stands for: none, of all rows, or of rows with the same keys."""
    if order == "keys" and not keys:
        raise WorkspaceError(
            "Expected columns as keys, got none.", hint="Name the columns, or compare in any order."
        )
    return keyed(*keys) if order == "keys" else ordered if order == "all" else independent


class Comparisons:
    """The last comparisons, each with its verdict, which leads to the cause. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[TableVerdict, Mapping[str, Journey]]] = OrderedDict()

    def make(
        self,
        left: Journey,
        right: Journey,
        *,
        columns: Sequence[str] | None,
        tolerance: float | None,
        **options: Any,
    ) -> dict[str, Any]:
        """Compare what two recordings kept, with options of `samovar.diff.compare`; `cause` is asked afterwards."""
        equal = equality(columns=list(columns) if columns else None, tolerance=tolerance)
        for journey in (left, right):
            with journey.lock:
                journey.refresh()
        verdict = compare(left.past, right.past, equal=equal, rows=_SHOWN, **options)
        id = secrets.token_hex(6)
        with self._lock:
            self._kept[id] = (verdict, {"left": left, "right": right})
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return {"comparison": id, **verdict_data(verdict)}

    def cause(self, id: str, side: Literal["left", "right"]) -> dict[str, Any]:
        """The moment just before the first row that differs was computed, in the recording of a side."""
        with self._lock:
            comparison = self._kept.get(id)
        if comparison is None:
            raise NotInWorkspace(f"No comparison {id!r}.", hint="It was forgotten: compare again.")
        verdict, journeys = comparison
        journey = journeys[side]
        with journey.lock:
            at = verdict.moment(side)
            return {
                "run": journey.past.path.name,
                "operator": at.operator,
                "moment": journey.arrive(at, at.operator),
            }


def verdict_data(verdict: TableVerdict) -> dict[str, Any]:
    """A verdict as plain data, rows that differ in pairs."""
    pairs = _pairs(verdict)
    return {
        "equivalent": verdict.equivalent,
        "depends": verdict.depends,
        "rows": dict(verdict.totals),
        "without_partner": dict(verdict.counts),
        "explanation": verdict.explain(rows=5),
        "pairs": [
            {"left": row_data(a), "right": row_data(b), "differ": _differing(a, b)} for a, b in pairs[:_SHOWN]
        ],
    }


_Row = Mapping[str, Any] | None


def _pairs(verdict: TableVerdict) -> list[tuple[_Row, _Row]]:
    if verdict.pairs:
        return [(a[1] if a is not None else None, b[1] if b is not None else None) for a, b in verdict.pairs]
    rest = list(verdict.unmatched("right"))[:_SHOWN]
    pairs: list[tuple[_Row, _Row]] = []
    for row in list(verdict.unmatched("left"))[:_SHOWN]:
        partner = most_alike(row, rest)
        if partner is not None:
            rest.remove(partner)
        pairs.append((row, partner))
    return pairs + [(None, row) for row in rest]


def _differing(a: _Row, b: _Row) -> list[str]:
    if a is None or b is None:
        return list(a or b or {})
    return [name for name in a if name not in b or a[name] != b[name]]
