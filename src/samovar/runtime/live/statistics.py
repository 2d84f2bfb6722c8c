"""What the operators of a run do now: figures of its workers put together, at an instant and since the one before."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from samovar.runtime.live.inspection import WorkerFigures
from samovar.runtime.progress import Status

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["Meter", "OperatorStatistics", "Statistics"]


@dataclass(frozen=True)
class OperatorStatistics:
    """One operator. `taken` and `given`: tuples of the whole run, with those of the present epoch where workers tell.

    `rate`: tuples taken (for a source: given) a second since the figures before. `busy`: of that time, what its
    workers were at work. `queue`: tuples that wait in workers. `skew`: what the worker with most tuples in this epoch
    has taken, against the mean; 1.0 is even.
    """

    name: str
    kind: str
    taken: int
    given: int
    rate: float = 0.0
    busy: float = 0.0
    workers: int = 0
    queue: int = 0
    state_entries: int = 0
    state_bytes: int = 0
    skew: float = 1.0


@dataclass(frozen=True)
class Statistics:
    """A run at an instant."""

    run: str
    at: float
    status: Status
    epoch: int
    seconds: float
    operators: tuple[OperatorStatistics, ...] = ()

    def __getitem__(self, operator: str) -> OperatorStatistics:
        return next(o for o in self.operators if o.name == operator)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made


class Meter:
    """Reads a run again and again. For one thread."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._at: float | None = None
        self._before: dict[str, int] = {}
        self._busy: dict[tuple[str, str, int], float] = {}

    def read(self) -> Statistics:
        """The figures now; rates and shares since the last call."""
        run = self._run
        progress = run.progress
        now = time.monotonic()
        passed = now - self._at if self._at is not None else 0.0
        counts = run.desk.counts
        figures: dict[str, list[WorkerFigures]] = {}
        for one in run.figures if not run.ended else ():
            figures.setdefault(one.operator, []).append(one)
        made = []
        totals = {}
        for op in progress.operators:
            own = figures.get(op.name, [])
            before = counts.get(op.name, (0, 0))
            taken = max(op.taken, before[0] + sum(f.taken for f in own))
            given = max(op.given, before[1] + sum(f.given for f in own))
            totals[op.name] = taken or given
            rate = max(0, totals[op.name] - self._before.get(op.name, 0)) / passed if passed else 0.0
            mean = sum(f.taken for f in own) / len(own) if own else 0.0
            made.append(
                OperatorStatistics(
                    op.name,
                    op.kind,
                    taken,
                    given,
                    rate=rate,
                    busy=self._share(own, passed),
                    workers=len(own),
                    queue=sum(f.queue for f in own),
                    state_entries=max(op.state_entries, sum(f.state_entries for f in own)),
                    state_bytes=max(op.state_bytes, sum(f.state_bytes for f in own)),
                    skew=max(f.taken for f in own) / mean if mean else 1.0,
                )
            )
        self._busy = {(f.operator, f.worker, f.epoch): f.seconds for own in figures.values() for f in own}
        self._at, self._before = now, totals
        return Statistics(run.id, time.time(), progress.status, progress.epoch, progress.seconds, tuple(made))

    def _share(self, own: list[WorkerFigures], passed: float) -> float:
        if not own or not passed:
            return 0.0
        worked = sum(max(0.0, f.seconds - self._busy.get((f.operator, f.worker, f.epoch), 0.0)) for f in own)
        return min(1.0, worked / passed / len(own))
