"""How long the epoch under way has worked and will take, and what pauses have cost. Pure data for `machine.py`.

How far it is is told by Python workers, who report the tuples they have taken, and where only Spark works by the tasks
that have finished.

Time is that in which the epoch goes on: while all its workers stand still it does not count. What a pause costs is
bounded in two ways: no pause cancels an epoch that has worked longer than `LOSS`, and all together they cancel at most
`SHARE` of the work that was committed, beside `LOSS`. A run that is paused and resumed all the time gets on.
"""

from __future__ import annotations

from collections.abc import Mapping

from samovar.control import events as e
from samovar.control.state.stage_progress import StageProgress

__all__ = ["EpochClock"]

LOSS = 2.0
"""Seconds of work that a pause may cancel at most: the length that epochs aim at."""
SHARE = 0.3
"""Of the seconds of committed epochs, how many pauses may cancel in all. Pauses a second apart cost about a quarter,
so that they need not wait; with more frequent ones a run takes a third longer beside waiting, and ends."""
IN_A_ROW = 2
"""Times that pauses may cancel an epoch before it is let finish, however short it is."""
OVERRUN = 3.0
"""An epoch is given up when it takes longer than so many times its aim."""
SOONEST = 4
"""An attempt is judged after this part of its aim at the soonest: half a second, by two reports."""
REPORTS = 0.5
"""Seconds between two reports of a worker: how old the first one may be."""


class EpochClock:
    """The clock of the attempt that is under way. Times are those the desk hands in."""

    def __init__(self) -> None:
        self.interrupted = 0
        """How often in a row pauses have cancelled the epoch."""
        self._kept = 0.0
        self._lost = 0.0
        self._begin = 0.0
        self._still = 0.0
        self._since: float | None = None
        self._aim: float | None = None
        self._rows: Mapping[str, int] = {}
        self._first: dict[str, tuple[float, int]] = {}
        """When each operator was first seen to have taken tuples, and how many."""
        self._taken: dict[str, int] = {}
        self._fed = False
        self._expected: float | None = None
        self._task_seconds: float | None = None
        self._stages = StageProgress()

    # --- the attempt ------------------------------------------------------------------------------------------------

    def begin(self, begun: e.EpochBegun, at: float) -> None:
        """An attempt begins."""
        self._begin, self._still, self._since = at, 0.0, None
        self._aim, self._rows = begun.aim, begun.rows
        self._first, self._taken, self._fed = {}, {}, False
        self._expected, self._task_seconds = begun.expected, begun.task_seconds
        self._stages = StageProgress()

    def stand(self, at: float, stands: bool) -> None:
        """Whether all workers of the epoch stand still from now on."""
        if stands and self._since is None:
            self._since = at
        elif not stands and self._since is not None:
            self._still += at - self._since
            self._since = None

    def still(self, at: float) -> float:
        """Seconds of the attempt in which its workers stood still."""
        return self._still + (at - self._since if self._since is not None else 0.0)

    def worked(self, at: float) -> float:
        """Seconds that the attempt has worked."""
        return max(0.0, at - self._begin - self.still(at))

    def committed(self, at: float) -> None:
        """The attempt counts."""
        self._kept += self.worked(at)
        self.interrupted = 0

    # --- pauses -----------------------------------------------------------------------------------------------------

    def may_lose(self, at: float) -> bool:
        """Whether a pause may cancel the attempt now."""
        worked = self.worked(at)
        allowed = LOSS + SHARE * self._kept - self._lost
        return self.interrupted < IN_A_ROW and worked <= min(LOSS, allowed)

    def lose(self, at: float) -> None:
        """A pause cancels the attempt."""
        self._lost += self.worked(at)
        self.interrupted += 1

    # --- how long it will take --------------------------------------------------------------------------------------

    def count(self, at: float, taken: Mapping[str, int]) -> None:
        """Operators have taken so many tuples in the attempt."""
        worked = self.worked(at)
        for name, n in taken.items():
            if n > 0:
                self._first.setdefault(name, (worked, n))
        self._fed = any(n > self._taken.get(name, 0) for name, n in taken.items())
        # a worker that has vanished takes what it counted with it
        self._taken |= {name: max(n, self._taken.get(name, 0)) for name, n in taken.items()}

    def overrun(self, at: float) -> tuple[float, float | None] | None:
        """Seconds that the attempt has worked and will take in all (None: nobody knows), if that is far too long.

        Judged when Python operators have worked as long as a whole epoch aims at, and the sooner the longer it would
        take: a quarter of that time is enough for twelve times the aim. Where the rows of an operator are not known,
        only what has passed counts. An attempt that has done half of its work is not far too long.
        """
        if self._aim is None or not self._first:
            return None
        worked = self.worked(at)
        python = worked - min(first for first, _ in self._first.values())
        if python < self._aim / SOONEST:
            return None
        totals = [worked + self._left(name, worked) for name in self._first if self._is_known(name)]
        if totals:
            total, early = max(totals), max(1.0, self._aim / python)
            return (worked, total) if total > early * OVERRUN * self._aim and total > 2 * worked else None
        return (worked, None) if python > OVERRUN * self._aim and self._fed else None

    def count_tasks(self, at: float, stages: Mapping[int, e.StageTasks]) -> None:
        """Spark runs these stages of the attempt, and no Python worker is at work."""
        self._stages.count(self.worked(at), stages)

    def left(self, at: float) -> float | None:
        """Seconds until the attempt will be over, by the stages that Spark runs; None: they do not tell."""
        return self._stages.left(self.worked(at))

    def native_overrun(self, at: float) -> tuple[float, float | None] | None:
        """The same as `overrun` for an attempt in which only Spark works, by the tasks that have finished.

        While none has, nobody knows: the attempt has `task_seconds` then, which are few where there are few bytes.
        Before anything was measured nothing is judged sooner, since the first tasks of a process are slow.
        """
        if self._aim is None or self._task_seconds is None:
            return None
        worked = self.worked(at)
        left = self._stages.left(worked)
        if left is None:
            return (worked, None) if self._stages.waited(worked) > self._task_seconds else None
        spent, total = self._stages.at_work(worked), worked + left
        if spent < (self._task_seconds if self._expected is None else self._aim):
            return None
        early = max(1.0, self._aim / spent)
        return (worked, total) if total > early * OVERRUN * self._aim and left > worked else None

    def _is_known(self, name: str) -> bool:
        """Whether an operator has tuples to come, and it is known how many."""
        return self._taken.get(name, 0) < self._rows.get(name, 0)

    def _left(self, name: str, worked: float) -> float:
        """Seconds that an operator will take for its other tuples."""
        first, before = self._first[name]
        taken = self._taken[name]
        # an operator that is at its first tuples since then: it began at most one report earlier
        since, tuples = (
            (worked - first, taken - before) if taken > before else (worked - first + REPORTS, taken)
        )
        return (self._rows[name] - taken) * since / tuples
