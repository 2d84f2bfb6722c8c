"""Groups of a frame, waiting for their aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from samovar.errors import WorkflowError
from samovar.graph import operators as ops
from samovar.graph.arguments import aggregate_call, flat
from samovar.graph.operators.base import expr
from samovar.graph.pyspark_names import GROUPED, RefusesOtherNames

if TYPE_CHECKING:
    from samovar.graph.frame import Frame

__all__ = ["GroupedFrame"]

_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
"""How the names of numeric types begin."""


class GroupedFrame(RefusesOtherNames):
    """Groups of a frame, as PySpark's GroupedData."""

    _subject = "Groups of a Frame have"
    _instead = GROUPED
    _otherwise = 'Use .agg("...") with any aggregate Spark has.'

    def __init__(
        self,
        frame: Frame,
        keys: tuple[str, ...],
        grouping: str = "groupBy",
        pivot: tuple[str, tuple[Any, ...] | None] | None = None,
    ) -> None:
        self._frame = frame
        self._keys = keys
        self._grouping = grouping
        self._pivot = pivot

    def agg(self, *exprs: Any, name: str | None = None) -> Frame:
        """Aggregates: Columns, SQL strings (`"sum(x) AS s"`), or a dict of column to function."""
        if len(exprs) == 1 and isinstance(exprs[0], Mapping):
            texts = tuple(aggregate_call(f, c) for c, f in exprs[0].items())
        else:
            texts = tuple(expr(e) for e in flat(exprs))
        if not texts:
            raise WorkflowError(
                "Expected at least one aggregate, got none.", hint='For example .agg("count(*) AS n").'
            )
        return self._aggregate(texts, name)

    def count(self, *, name: str | None = None) -> Frame:
        """The number of rows of each group, as column `count`."""
        return self._aggregate(("count(1) AS count",), name)

    def pivot(self, pivot_col: str, values: Sequence[Any] | None = None) -> GroupedFrame:
        """One column for each value of a column; `values` names them, by default all that occur."""
        pivot = (pivot_col, None if values is None else tuple(values))
        return GroupedFrame(self._frame, self._keys, self._grouping, pivot)

    def sum(self, *cols: str, name: str | None = None) -> Frame:
        """Sums of the given (default: all numeric) columns."""
        return self._shortcut("sum", cols, name)

    def avg(self, *cols: str, name: str | None = None) -> Frame:
        """Averages of the given (default: all numeric) columns."""
        return self._shortcut("avg", cols, name)

    mean = avg

    def min(self, *cols: str, name: str | None = None) -> Frame:
        """Minima of the given (default: all numeric) columns."""
        return self._shortcut("min", cols, name)

    def max(self, *cols: str, name: str | None = None) -> Frame:
        """Maxima of the given (default: all numeric) columns."""
        return self._shortcut("max", cols, name)

    def _shortcut(self, function: str, cols: tuple[Any, ...], name: str | None) -> Frame:
        columns = flat(cols) or [
            column
            for column, kind in self._frame.dtypes
            if kind.startswith(_NUMERIC) and column not in self._keys and f"`{column}`" not in self._keys
        ]
        return self._aggregate(tuple(aggregate_call(function, column) for column in columns), name)

    def _aggregate(self, texts: tuple[str, ...], name: str | None) -> Frame:
        pivot, values = self._pivot or (None, None)
        return self._frame._add(
            ops.Aggregate,
            name,
            keys=self._keys,
            aggregates=texts,
            grouping=self._grouping,
            pivot=pivot,
            pivot_values=values,
        )
