"""The next epochs, begun while the present one runs: what does not depend on the present one is done already.

An epoch of Spark's own operators depends on no other epoch of its level, so all its jobs run ahead. Python operators
need the state that the present epoch leaves: of such an epoch the input runs ahead (scan, filters, shuffle, sort).
Where cores are left over, its Python workers are started too and wait for its turn with the first rows in hand
(exchange/late_task.py); elsewhere the driver waits, as it does before any question that only committed epochs answer.

Guarantees: an epoch ahead writes into the folder of its attempt alone and is committed only in its turn. It is dropped,
and the epoch done as if nothing had been ahead, when it failed before its turn, or when other code or another range of
units is wanted by then. Not promised: that nothing of it runs while the run is paused at the end of an epoch.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass

from samovar.compile.plan import Plan
from samovar.compile.strategy import EpochRange
from samovar.graph import operators as ops
from samovar.ids import new_attempt
from samovar.runtime.epochs.attempt import Attempt, EpochDropped, Turn
from samovar.runtime.epochs.epoch import Epoch, EpochOutcome
from samovar.runtime.epochs.run_context import RunContext
from samovar.runtime.spark.job_tags import cancel_tagged

__all__ = ["DEPTH", "EpochAhead", "NextEpoch", "Pipeline", "may_run_ahead"]

log = logging.getLogger("samovar.engine")

DEPTH = 2
"""Epochs of Spark's own operators ahead at most. While the one before them ends, a core has something to do and another
epoch is planned; more than that would only take memory."""
_AGAIN = 0.05
"""Seconds after which the jobs of a dropped epoch are cancelled again: another may have begun in between."""


def may_run_ahead(plan: Plan, level: int) -> bool:
    """Whether an epoch of a level can begin before the one before it has ended.

    Not behind a limit: how many rows it still lets through is known when the epochs before have ended, so that nothing
    could be done ahead, and most often nothing is left to do at all.
    """
    working = (n for n in plan.graph.ops if plan.placement.works(n, level))
    return not any(isinstance(plan.graph.ops[n], ops.Limit) for n in working)


@dataclass(frozen=True)
class NextEpoch:
    """What an epoch will cover, and its size in bytes. `whole`: it has to take all that is left of its level."""

    covers: EpochRange
    size: int
    whole: bool = False


class EpochAhead:
    """An attempt at the next epoch on a thread of its own; it begins when `before` has given its first job to Spark."""

    def __init__(
        self,
        context: RunContext,
        number: int,
        chosen: NextEpoch,
        before: Epoch,
    ) -> None:
        name = new_attempt()
        folder = context.recording.attempt_folder(number, name)
        control = context.steering.control if context.steering is not None else None
        self.chosen = chosen
        self.attempt = Attempt(context, number, chosen.covers, name, folder, control, turn=Turn())
        self.plan = self.attempt.plan
        self.epoch = Epoch(self.attempt)
        self.epoch.before = self._before = before
        self._error: BaseException | None = None
        self._early = False
        """Whether it failed before its turn."""
        self._lock = threading.Lock()
        """Held while that is decided: it may fail at the instant its turn comes."""
        self._thread = threading.Thread(target=self._compute, name=f"samovar-ahead-{name}", daemon=True)
        self._thread.start()

    def _compute(self) -> None:
        self._before.submitted.wait()  # Spark runs jobs in the order in which it gets them
        turn = self._turn
        try:
            if not turn.dropped:
                self.epoch.compute()
        except BaseException as error:
            with self._lock:
                self._early = not turn.has_come
                self._error = error
            if self._early and not isinstance(error, EpochDropped):
                log.debug("epoch %d failed before its turn", self.attempt.number, exc_info=True)

    @property
    def _turn(self) -> Turn:
        assert self.attempt.turn is not None
        return self.attempt.turn

    def begin(self) -> bool:
        """It is its turn: every epoch before it is committed. False: it has failed already, and must be dropped."""
        with self._lock:
            self._turn.come()
            self.epoch.restart_clock()
            if self._early:
                return False
        self.epoch.inputs.hand_out_tasks()
        return True

    def finish(self) -> EpochOutcome:
        """Wait for its jobs; raises what they raised."""
        self._thread.join()
        shutil.rmtree(self.attempt.turn_folder, ignore_errors=True)
        if self._error is not None:
            raise self._error
        return self.epoch.outcome()

    def drop(self) -> None:
        """Give it up; returns when nothing of it runs any more and its files are gone."""
        self._turn.drop()
        spark = self.attempt.context.spark
        while self._thread.is_alive():
            shutil.rmtree(self.attempt.turn_folder, ignore_errors=True)  # workers do not wait any longer
            try:
                cancel_tagged(spark, self.attempt.name)
            except Exception:  # a session that died ends the jobs as well
                log.debug("jobs of a dropped epoch could not be cancelled", exc_info=True)
            self._before.end()  # it may still wait for an epoch that failed before its first job
            self._thread.join(_AGAIN)
        shutil.rmtree(self.attempt.folder, ignore_errors=True)


class Pipeline:
    """The epochs ahead of a level, `depth` at most. `choose`: the epoch behind a range, if it may begin.

    Its methods are for the thread of the run. An epoch that has been computed begins another one, on its own thread.
    """

    def __init__(
        self, context: RunContext, choose: Callable[[EpochRange], NextEpoch | None], depth: int = DEPTH
    ) -> None:
        self._context = context
        self._choose = choose
        self._depth = depth
        self._ahead: list[EpochAhead] = []
        """In the order of their turns."""
        self._present: EpochAhead | None = None
        """The one whose turn it is, until it has ended."""
        self._last: Epoch | None = None
        """The epoch that the next one ahead follows; None: none may begin."""
        self._lock = threading.Lock()
        """Held while an epoch is added or taken."""

    def start_next(self, present: Epoch) -> None:
        """Begin the epoch after the last one, if that can be; another one when an epoch has been computed."""
        with self._lock:
            self._last = self._ahead[-1].epoch if self._ahead else present
        present.behind = self._start_behind
        self._start_behind()

    def _start_behind(self) -> None:
        with self._lock:
            if self._last is None or len(self._ahead) >= self._depth:
                return
            chosen = self._choose(self._last.attempt.covers)
            if chosen is not None:
                ahead = EpochAhead(self._context, self._last.number + 1, chosen, self._last)
                ahead.epoch.behind = self._start_behind
                self._ahead.append(ahead)
                self._last = ahead.epoch

    def waiting(self) -> EpochAhead | None:
        """The first epoch ahead, if it can be the present one now; otherwise all are dropped."""
        ahead = self._ahead[0] if self._ahead else None
        if ahead is None:
            return None
        history, covers = self._context.history, ahead.chosen.covers
        fits = ahead.attempt.number == len(history.epochs) and ahead.plan is self._context.plan
        if not fits or any(units[0] != history.taken(covers.low, n) for n, units in covers.units.items()):
            self.drop()
            return None
        return ahead

    def take(self, covers: EpochRange) -> EpochAhead | None:
        """The first epoch ahead, if it covers just that: it is the present one from now on, until `finish`."""
        with self._lock:
            if not self._ahead or self._ahead[0].chosen.covers is not covers:
                return None
            self._present = self._ahead.pop(0)
            return self._present

    def finish(self, present: EpochAhead) -> EpochOutcome:
        """Wait for the jobs of an epoch that was ahead; raises what they raised."""
        try:
            return present.finish()
        finally:
            self._present = None

    def drop(self) -> None:
        """Give up what is ahead, and what was and has not ended."""
        with self._lock:
            present = [self._present] if self._present is not None else []
            dropped = [*present, *self._ahead]
            self._ahead, self._present, self._last = [], None, None
        for epoch in reversed(dropped):
            epoch.drop()
