"""Sinks: where results stay."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from samovar.graph.operators.base import Op

__all__ = ["CHARTS", "Chart", "Sink", "Write"]

CHARTS = ("bar", "line", "scatter", "histogram", "box", "heatmap", "pie", "wordcloud", "table")
"""The pictures a `Chart` knows."""


class Sink(Op, tag="sink", frozen=True, kw_only=True):
    """Keeps the rows in the recording, to be read with `run.result(name)`."""

    summary: ClassVar[str] = "keeps the result in the recording"


class Chart(Sink, tag="chart", frozen=True, kw_only=True):
    """A sink that is shown as a picture, drawn from the rows that have come so far.

    Rows are kept as a `sink` keeps them. `x`, `y` and `by` are columns:

    - `bar`, `pie`, `line`: for each `x` the `measure` of `y` (without `y`: how many rows), one series for each `by`
    - `heatmap`: the same for each pair of `x` and `by`
    - `scatter`: a point for each row; `histogram`: how many rows in each of `bins` ranges of `x`
    - `box`: median, quartiles and extremes of `y`, for each `x`
    - `wordcloud`: the words of the text `x`, or the words `x` with their weights `y`
    - `table`: the first rows
    """

    chart: Literal["bar", "line", "scatter", "histogram", "box", "heatmap", "pie", "wordcloud", "table"]
    x: str | None = None
    y: str | None = None
    by: str | None = None
    measure: Literal["count", "sum", "avg", "min", "max"] | None = None
    bins: int = 20
    top: int = 30
    title: str = ""
    summary: ClassVar[str] = "draws its rows"

    @property
    def used(self) -> dict[str, str]:
        """The columns it draws, by the field that names them."""
        return {f: c for f, c in (("x", self.x), ("y", self.y), ("by", self.by)) if c}

    @property
    def missing(self) -> tuple[str, ...]:
        """Fields that this kind of chart needs and that are not set."""
        needed = {"scatter": ("x", "y"), "box": ("y",), "heatmap": ("x", "by"), "table": ()}
        return tuple(f for f in needed.get(self.chart, ("x",)) if f not in self.used)


class Write(Op, tag="write", frozen=True, kw_only=True):
    """Writes files to `path`; they appear there when the run has ended well, never half-written."""

    format: str
    path: str
    mode: Literal["error", "overwrite", "append", "ignore"] = "error"
    options: dict[str, str] = msgspec.field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    summary: ClassVar[str] = "writes files"
