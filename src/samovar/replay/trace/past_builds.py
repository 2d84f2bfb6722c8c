"""Build sides of joins in past epochs: the same for all windows of a level, and small ones stay in memory.

The first window that needs a small build side computes it; jumps, counts and states after that read it from memory. How
many rows a build side has is known from the log. A large one is computed for each window, which sends its few rows
there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

__all__ = ["PastBuilds"]

MOST = 64 << 20
"""Bytes of a build side that stays in memory: a few of them must fit beside the windows."""
WIDE = 32
"""Bytes of a value that has no fixed size, as a guess."""


class PastBuilds:
    """The build sides of the joins of a level.

    `keep`: has a frame computed once. `rows`: how many rows an operator gave in the run; None: not known.
    """

    def __init__(self, keep: Callable[[DataFrame], DataFrame], rows: Callable[[str], int | None]) -> None:
        self._keep = keep
        self._rows = rows
        self._frames: dict[str, DataFrame] = {}
        self._lock = threading.RLock()

    def side(self, join: str, build: str, make: Callable[[], DataFrame]) -> DataFrame:
        """The build side of a join, which is the output of the operator `build`."""
        with self._lock:
            if join not in self._frames:
                df, rows = make(), self._rows(build)
                small = rows is not None and rows * size_of(df.schema) <= MOST
                self._frames[join] = self._keep(df) if small else df
            return self._frames[join]


def size_of(kind: DataType) -> int:
    """About how many bytes a value takes."""
    if isinstance(kind, StructType):
        return sum(size_of(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType | MapType):
        return 4 * WIDE
    return WIDE if kind.typeName() in ("string", "binary", "variant") else 8
