"""What an experiment is: parts that are measured one by one, and the figures of a paper that are drawn from them.

An `Experiment` measures; what it returns is plain data, kept as it is. A `Figure` is a view of that data: rows of a
table, and a chart. So a figure can be drawn again, or otherwise, without measuring again, and one measurement can
serve several figures.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.papers.charts import Chart

if TYPE_CHECKING:
    from benchmarks.papers.context import Context

__all__ = ["Experiment", "Figure", "Raw", "Row", "Size", "Spread", "spread_of"]

Size: TypeAlias = Mapping[str, Any]
"""The numbers that make an experiment small or large; `parts` among them, by name."""
Raw: TypeAlias = Mapping[str, Any]
"""What was measured, by part; parts that were not measured are not there."""


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of single rounds."""

    median: float
    q1: float
    q3: float
    rounds: int

    @property
    def share(self) -> float:
        """The distance of the quartiles as a share of the median."""
        return (self.q3 - self.q1) / self.median if self.median else 0.0

    @property
    def sway(self) -> float:
        """How far the median of another run of as many rounds may lie from this one, as a share of it.

        The notch of a box plot (McGill, Tukey, Larsen 1978): 1.57 times the distance of the quartiles, by the root of
        the rounds.
        """
        return 1.57 * self.share / math.sqrt(self.rounds)


def spread_of(samples: Sequence[float]) -> Spread | None:
    """Of two samples or more; one alone says nothing about others."""
    if len(samples) < 2:
        return None
    q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
    return Spread(median, q1, q3, len(samples))


@dataclass(frozen=True)
class Row:
    """A line of a figure's table: what the paper has, what Samovar takes, and what a user would pick instead."""

    what: str
    paper: str = ""
    """The paper's number as it stands there; empty where it has none."""
    ours: float | None = None
    unit: str = "s"
    other: float | None = None
    """The same of the alternative, measured in the same run."""
    instead: str = ""
    """The alternative's name."""
    ratios: Sequence[float] = ()
    """Ours against the alternative in each round, where rounds are neighbours in time."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further columns."""

    @property
    def ratio(self) -> float | None:
        """Ours against the alternative: the median of the rounds, or the ratio of the two numbers."""
        if self.ratios:
            return statistics.median(self.ratios)
        return self.ours / self.other if self.ours is not None and self.other else None


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper, drawn from an experiment's measurements."""

    id: str
    """Such as `icedtea.fig16`."""
    title: str
    paper: str
    """What the paper measured and found, with its numbers."""
    here: str
    """What is measured here, and what differs."""
    rows: Callable[[Raw, Size], list[Row]]
    chart: Callable[[Raw, Size], Chart | None] | None = None


@dataclass(frozen=True)
class Experiment:
    """A measurement in parts. Every part can be measured alone, and is kept as soon as it is."""

    name: str
    measure: Callable[[Context, str], Any]
    """Gives what JSON can hold."""
    figures: tuple[Figure, ...]
    quick: Size
    full: Size

    def size(self, name: str) -> Size:
        """`quick` or `full`."""
        return self.quick if name == "quick" else self.full

    def parts(self, name: str) -> tuple[str, ...]:
        """Those measured at a size."""
        return tuple(self.size(name).get("parts", ()))

    def part_size(self, name: str, part: str) -> Size:
        """The numbers of one part: a mapping by part stands for the part's own number."""
        chosen = {}
        for key, value in self.size(name).items():
            if key != "parts":
                chosen[key] = value[part] if isinstance(value, Mapping) and part in value else value
        return chosen
