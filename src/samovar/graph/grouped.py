"""Groups of a frame, waiting for their aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from samovar.errors import WorkflowError
from samovar.graph import operators as ops
from samovar.graph.arguments import call, flat
from samovar.graph.operators.base import expr
from samovar.graph.pyspark_names import GROUPED, missing

if TYPE_CHECKING:
    from samovar.graph.frame import Frame

__all__ = ["GroupedFrame"]


class GroupedFrame:
    """Groups of a frame, as PySpark's GroupedData."""

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
            texts = tuple(call(f, c) for c, f in exprs[0].items())
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
        """Values of a column as columns."""
        chosen = None if values is None else tuple(values)
        return GroupedFrame(self._frame, self._keys, self._grouping, (pivot_col, chosen))

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

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        raise missing(
            "Groups of a Frame have",
            attribute,
            GROUPED,
            [m for m in dir(type(self)) if not m.startswith("_")],
            'Use .agg("...") with any aggregate Spark has.',
        )

    def _shortcut(self, function: str, cols: tuple[Any, ...], name: str | None) -> Frame:
        chosen = flat(cols)
        if not chosen:
            keys = set(self._keys)
            numeric = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
            chosen = [
                c
                for c, t in self._frame.dtypes
                if t.startswith(numeric) and c not in keys and f"`{c}`" not in keys
            ]
        return self._aggregate(tuple(call(function, c) for c in chosen), name)

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
