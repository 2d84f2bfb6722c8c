"""What the operators of a run do now: its progress together with the figures of its workers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samovar.runtime.live.inspection import WorkerFigures
from samovar.runtime.progress import OperatorProgress, Progress

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["Meter", "OperatorStatistics", "Statistics"]

WorkerTask = tuple[str, str, int]
"""An operator in a worker in an epoch: seconds of work are counted from its beginning."""


@dataclass(frozen=True)
class OperatorStatistics(OperatorProgress):
    """One operator now: its progress, with the tuples of the present epoch that workers have reported.

    `rate`: tuples taken (for a source: given) a second since the statistics before. `busy`: the share of that time in
    which its workers were at work. `queue`: tuples that wait in workers. `skew`: the tuples of the worker that has
    taken most in this epoch, divided by the mean; 1.0 is even.
    """

    busy: float = 0.0
    workers: int = 0
    queue: int = 0
    skew: float = 1.0


@dataclass(frozen=True)
class Statistics(Progress):
    """A run at an instant: its progress, with what its workers do now."""

    at: float = 0.0
    operators: tuple[OperatorStatistics, ...] = ()

    def __getitem__(self, operator: str) -> OperatorStatistics:
        return next(o for o in self.operators if o.name == operator)


class Meter:
    """Reads the statistics of a run again and again. For one thread."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._at: float | None = None
        self._totals: dict[str, int] = {}
        self._worked: dict[WorkerTask, float] = {}

    def read(self) -> Statistics:
        """The statistics now; rates and shares since the last call."""
        progress, counts = self._run.progress, self._run.desk.counts
        now = time.monotonic()
        passed = now - self._at if self._at is not None else 0.0
        figures: dict[str, list[WorkerFigures]] = {}
        for one in self._run.figures if not self._run.ended else ():
            figures.setdefault(one.operator, []).append(one)
        operators = tuple(
            self._operator(op, figures.get(op.name, []), counts.get(op.name, (0, 0)), passed)
            for op in progress.operators
        )
        self._at = now
        self._totals = {op.name: op.taken or op.given for op in operators}
        self._worked = {_task(f): f.seconds for workers in figures.values() for f in workers}
        return Statistics(**{**vars(progress), "operators": operators}, at=time.time())

    def _operator(
        self, op: OperatorProgress, workers: list[WorkerFigures], counts: tuple[int, int], passed: float
    ) -> OperatorStatistics:
        """One operator. `counts`: tuples of tasks that have ended; `passed`: seconds since the last call."""
        in_workers = sum(f.taken for f in workers)
        taken = max(op.taken, counts[0] + in_workers)
        given = max(op.given, counts[1] + sum(f.given for f in workers))
        added = max(0, (taken or given) - self._totals.get(op.name, 0))
        worked = sum(max(0.0, f.seconds - self._worked.get(_task(f), 0.0)) for f in workers)
        return OperatorStatistics(
            op.name,
            op.kind,
            taken,
            given,
            rate=added / passed if passed else 0.0,
            busy=min(1.0, worked / passed / len(workers)) if workers and passed else 0.0,
            workers=len(workers),
            queue=sum(f.queue for f in workers),
            state_entries=max(op.state_entries, sum(f.state_entries for f in workers)),
            state_bytes=max(op.state_bytes, sum(f.state_bytes for f in workers)),
            skew=max(f.taken for f in workers) * len(workers) / in_workers if in_workers else 1.0,
        )


def _task(figures: WorkerFigures) -> WorkerTask:
    return figures.operator, figures.worker, figures.epoch
