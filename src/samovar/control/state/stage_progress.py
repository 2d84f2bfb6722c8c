"""How far Spark is with the stages of an attempt, and how long they will take, by their tasks. Pure data for
`epoch_clock.py`.

Times are seconds that the attempt has worked. A stage is judged from when it was first seen: what it had finished by
then may have been done while the epoch before it ran. Tasks at work count as half done. Stages that Spark has not
begun are not known, so that an estimate is rather too short than too long.
"""

from __future__ import annotations

from collections.abc import Mapping

from samovar.control.events import StageTasks

__all__ = ["StageProgress"]


class StageProgress:
    """The stages of the attempt that is under way."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[float, int]] = {}
        """When each stage was first seen, and how many of its tasks had finished."""
        self._running: Mapping[int, StageTasks] = {}

    def count(self, worked: float, stages: Mapping[int, StageTasks]) -> None:
        """Spark runs these stages; those that were named before and are not now have ended."""
        self._running = stages
        for number, stage in stages.items():
            self._first.setdefault(number, (worked, stage.finished))

    def at_work(self, worked: float) -> float:
        """Seconds since a stage was first seen."""
        return worked - min((since for since, _ in self._first.values()), default=worked)

    def left(self, worked: float) -> float | None:
        """Seconds until the running stages will have ended; None: no task has finished that would tell."""
        known = [n for n, stage in self._running.items() if stage.finished > self._first[n][1]]
        return max((self._left(n, worked) for n in known), default=None)

    def waited(self, worked: float) -> float:
        """Seconds in which no task of the running stages has finished, if none has; and 0 when half of them had
        finished before."""
        waiting = [
            worked - self._first[n][0]
            for n, stage in self._running.items()
            if stage.finished == self._first[n][1] and 2 * stage.finished < stage.total
        ]
        return max(waiting, default=0.0) if self.left(worked) is None else 0.0

    def _left(self, number: int, worked: float) -> float:
        stage, (since, before) = self._running[number], self._first[number]
        done = stage.finished - before + stage.active / 2
        return (stage.total - stage.finished - stage.active / 2) * (worked - since) / done
