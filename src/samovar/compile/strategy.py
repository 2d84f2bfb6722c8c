"""What an epoch covers, where its rows come from, and how they are computed: all that its frames are built from.

A run, a replay, a fork and the search for a failing row build the same frames (see frames.py) from other inputs and
with another strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from samovar.positions import Position

__all__ = ["Change", "EpochRange", "Inputs", "Strategy"]

Change = Callable[[DataFrame], DataFrame]
BuildSide = Callable[[str, Callable[[], DataFrame], Sequence[str] | None], DataFrame]
"""From the name of a build side, what computes it, and the columns it is joined by, to its rows."""


@dataclass(frozen=True)
class EpochRange:
    """What an epoch covers: levels, the units its sources read, and whether it is its level's first or last."""

    low: int
    high: int
    units: Mapping[str, tuple[int, int]]
    first: bool
    last: bool
    """Whether the level's sources end with this epoch."""
    marks: tuple[Position, ...] = ()
    """Positions at which the state of Python operators is kept on the way."""


class Inputs(Protocol):
    """Where the rows of an epoch come from: the questions that its frames ask."""

    def empty(self, schema: StructType, /) -> DataFrame:
        """A frame without rows."""

    def rows(self, name: str, level: int | None, /) -> DataFrame | None:
        """The rows of an operator's output that are read, not computed; None: they are computed.

        Those that flow on a level in this epoch; all of them where `level` is None.
        """

    def stored(self, kind: str, name: str, schema: StructType, /) -> DataFrame:
        """What committed epochs stored for an operator."""

    def passed(self, name: str, /) -> tuple[int, int]:
        """How many rows an operator took and gave in committed epochs."""

    def python(self, chain: tuple[str, ...], df: DataFrame, schema: StructType, /) -> DataFrame:
        """What a chain of Python operators, or a function over batches, makes of rows."""


def _unchanged(df: DataFrame) -> DataFrame:
    return df


def _uncounted(name: str, level: int | None, df: DataFrame) -> DataFrame:
    return df


def _computed(key: str, make: Callable[[], DataFrame], by: Sequence[str] | None) -> DataFrame:
    return make()


@dataclass(frozen=True)
class Strategy:
    """How the rows of an epoch are counted, mended, kept in memory and joined."""

    counted: Callable[[str, int | None, DataFrame], DataFrame] = _uncounted
    """Adds a counter to an operator's output on a level (None: to all of it), if nothing else tells its rows."""
    tallying: Mapping[str, Change] = field(default_factory=dict)
    """Aggregates that count the rows of each group; what adds these numbers up on the way, and drops them."""
    mends: Mapping[str, Change] = field(default_factory=dict)
    """For operators that failed on single rows: what skips or replaces these rows in their input."""
    keep: Change = _unchanged
    """Keeps a frame in memory that is read several times in this epoch."""
    build_side: BuildSide = _computed
    """Keeps a build side over the epochs of a level."""
    few: bool = False
    """Whether few rows flow: they are sent to where a join's build side is."""
    prunes: bool = True
    """Whether build sides lack the columns that no operator needs."""
