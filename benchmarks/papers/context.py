"""What a measurement is given: Spark, data sets, a scratch folder, the numbers of its size, and a place to say more."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import Data, default_root
from benchmarks.papers.experiment import Size, spread_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.travel.setting import Setting

__all__ = ["STEADY", "Context", "Sessions", "ratios", "steady"]

STEADY = 0.10
"""Rounds are added while a ratio of another run may differ by more than this share."""


class Sessions:
    """One Spark session at a time: another master stops the one before."""

    def __init__(self) -> None:
        self._master = ""
        self._spark: SparkSession | None = None

    def get(self, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
        """The session of a master; a running one is kept if it is of the same master."""
        from benchmarks.session import session

        if self._spark is None or self._master != master:
            self.stop()
            self._spark = session(master=master, conf=conf)
            self._master = master
        return self._spark

    def stop(self) -> None:
        """Stop the session, if there is one."""
        if self._spark is not None:
            self._spark.stop()
        self._spark = None


@dataclass
class Context:
    """The surroundings of one part of an experiment."""

    size: Size
    scratch: Path
    sessions: Sessions = field(default_factory=Sessions)
    root: Path = field(default_factory=default_root)
    tick: Callable[[str], None] = lambda _: None

    @property
    def spark(self) -> SparkSession:
        """The session that all share."""
        return self.sessions.get()

    def data(self, scale: float | None = None) -> Data:
        """The data sets of a scale, by default that of the size."""
        return Data(self.size["scale"] if scale is None else scale, self.root)

    def setting(self) -> Setting:
        """The same as the benchmarks of time travel want it."""
        from benchmarks.travel.setting import Setting

        runs = self.size.get("runs", 1)
        return Setting(self.spark, self.data(), self.scratch, runs, self.tick)

    def by_turns(
        self, ways: Mapping[str, Callable[[], Any]], *, base: str, runs: int, most: int | None = None
    ) -> dict[str, list[float]]:
        """Seconds of each way, in rounds; a first round warms up.

        After `runs` rounds, more are made until the ratios to `base` are steady, or `most` have been made.
        """
        times: dict[str, list[float]] = {name: [] for name in ways}
        most = 2 * runs if most is None else most
        number = 0
        while number <= runs or (number <= most and not steady(times, base)):
            for name, way in ways.items():
                self.tick(f"{name}, round {number}" if number else f"{name}, warming up")
                start = time.perf_counter()
                way()
                if number:
                    times[name].append(time.perf_counter() - start)
            number += 1
        return times


def steady(times: Mapping[str, Sequence[float]], base: str) -> bool:
    """Whether the ratios of all ways to a base would differ little in another run."""
    return all(
        (spread := spread_of(ratios(samples, times[base]))) is None or spread.sway <= STEADY
        for name, samples in times.items()
        if name != base
    )


def ratios(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """Round by round."""
    return [a / b for a, b in zip(ours, others, strict=True)]
