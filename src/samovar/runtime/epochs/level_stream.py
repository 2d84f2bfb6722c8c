"""What the next epoch of a level takes: units, source after source, up to a wanted size. Pure.

An epoch that ends inside a file leaves the rest to the next one, which scans the whole file again to get it. So an
epoch ends where a file does if that is about the wanted size, and inside a file only where the file is clearly too
large.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LevelStream", "take"]

ABOUT = 1.5
"""An epoch may be larger or smaller than wanted by this factor in order to end where a file ends.

A second scan of a file costs less than the work of a third of an epoch; epochs of a fixed time must not grow further.
"""


@dataclass(frozen=True)
class LevelStream:
    """A source of a level, and how many of its units are taken already."""

    name: str
    ends: Sequence[int]
    """The bytes before each unit, and before the end."""
    taken: int
    edges: Sequence[int] | None = None
    """The units that begin a file, and the number of units; None: each unit is a file."""

    @property
    def units(self) -> int:
        return len(self.ends) - 1

    @property
    def size(self) -> int:
        return self.ends[-1]

    @property
    def done(self) -> int:
        """Bytes that are taken already."""
        return self.ends[self.taken]

    @property
    def remaining(self) -> int:
        return self.size - self.done

    def stop(self, wanted: int, before: int) -> int:
        """The unit behind the last that an epoch takes; `before`: the bytes of other sources that it has already."""
        start = self.done - before
        stop = bisect_right(self.ends, start + wanted, self.taken) - 1
        if before == 0 and stop <= self.taken:
            stop = self.taken + 1
        stop = min(max(stop, self.taken), self.units)
        if self.edges is None:
            return stop
        i = bisect_left(self.edges, stop)
        if self.edges[i] == stop:
            return stop
        low, high = max(self.edges[i - 1], self.taken), self.edges[i]
        if (before or low > self.taken) and (self.ends[low] - start) * ABOUT >= wanted:
            return low
        return high if self.ends[high] - start <= wanted * ABOUT else stop


def take(streams: Sequence[LevelStream], wanted: int) -> tuple[dict[str, tuple[int, int]], int]:
    """The next units, source after source, up to about the wanted size; at least one."""
    units: dict[str, tuple[int, int]] = {}
    total, ended = 0, False
    for stream in streams:
        stop = stream.taken
        if not ended and stop < stream.units:
            stop = stream.stop(wanted, total)
            total += stream.ends[stop] - stream.done
            ended = stop < stream.units
        units[stream.name] = (stream.taken, stop)
    return units, total
