"""Frames that Spark keeps in memory: for one epoch, or for all epochs of a level."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from samovar.compile.strategy import EpochRange
from samovar.runtime.sources.units import Source
from samovar.text import quote_name

__all__ = ["BuildSides", "KeptFrames"]


class KeptFrames:
    """Frames that are read several times in an epoch, each computed once."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def keep(self, df: DataFrame) -> DataFrame:
        """Have a frame computed once, until `release`."""
        self._frames.append(df.persist(StorageLevel.MEMORY_AND_DISK_DESER))
        return self._frames[-1]

    def release(self) -> None:
        """Give the memory back."""
        for df in self._frames:
            df.unpersist()


class BuildSides:
    """Build sides of joins, computed in the first epoch of a level and kept for the others."""

    def __init__(self) -> None:
        self.frames: dict[str, DataFrame] = {}
        self.sources: dict[str, Source] = {}
        """Sources that the level reads whole."""
        self._lock = threading.RLock()
        """Held while a build side is planned: an epoch and the one ahead of it may ask for it at once."""

    def keep(
        self, covers: EpochRange, key: str, make: Callable[[], DataFrame], by: Sequence[str] | None
    ) -> DataFrame:
        """A build side; not kept when the level is a single epoch.

        Laid out by the columns it is joined by, so that an epoch neither shuffles nor sorts it again.
        """
        with self._lock:
            return self._kept(covers, key, make, by)

    def _kept(
        self, covers: EpochRange, key: str, make: Callable[[], DataFrame], by: Sequence[str] | None
    ) -> DataFrame:
        if key not in self.frames:
            df = make()
            if covers.first and covers.last:
                return df
            if by:
                columns = [quote_name(c) for c in by]
                conf = df.sparkSession.conf
                partitions = int(conf.get("spark.sql.shuffle.partitions", "200") or 200)
                df = df.repartition(partitions, *columns).sortWithinPartitions(*columns)
            self.frames[key] = df.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        return self.frames[key]

    def forget(self) -> None:
        """Give the memory back: the level is over, or its build sides were made with an old expression."""
        for df in self.frames.values():
            df.unpersist()
        self.frames.clear()
        self.sources.clear()
