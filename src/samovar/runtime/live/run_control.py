"""The engine's side of the desk: carries out its instructions, and reports how each epoch went.

An attempt that was cancelled never counts: whether it may be committed is decided once, under a lock, and a
cancellation that comes later is too late. Spark cancels only jobs that run at that instant, so the cancelling is
repeated until the attempt is over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.desk import Desk
from samovar.errors import EnvironmentProblem
from samovar.record.log import Counters
from samovar.runtime.exchange.task import Control
from samovar.runtime.live.task_tracker import TaskTracker
from samovar.runtime.spark.job_tags import cancel_tagged

__all__ = ["Note", "Steering"]

log = logging.getLogger("samovar.steering")

AGAIN = 0.05
"""Seconds after which jobs are cancelled again, because another job may have begun in between."""
Note = i.NoteHeld | i.NoteDecision | i.NoteSwitched


class Steering:
    """One run under control. Commands go to its `desk`; the engine asks before each epoch and reports how it went."""

    def __init__(
        self,
        run: str,
        spark: SparkSession,
        *,
        stop: Callable[[], object] = lambda: None,
        note: Callable[[Note], None] = lambda _: None,
        totals: Mapping[str, Counters] | None = None,
    ) -> None:
        """`stop` is called when the run is to end, `note` with what is to be recorded; `totals`: of past epochs."""
        self._spark = spark
        self._tag = run
        self._stop = stop
        self._note = note
        self._lock = threading.Lock()
        self._cancelled: i.CancelEpoch | None = None
        self._deciding = False
        self._over = threading.Event()
        self._epoch = 0
        self._still = 0.0
        self._code: i.UseCode | None = None
        self._counts = {n: (sum(c.taken), c.given) for n, c in (totals or {}).items()}
        self.desk, self.control = self._open(run)
        self._tasks = TaskTracker(spark, self.desk)

    def _open(self, run: str) -> tuple[Desk, Control | None]:
        """The desk, and where workers find it: on loopback on one machine, else at the driver's address."""
        context = getattr(self._spark, "sparkContext", None)
        if context is None:  # Spark Connect: it is not known where the workers are
            return Desk(run, self), None
        conf = context.getConf()
        if context.master.startswith("local"):
            desk = Desk(run, self)
            return desk, (desk.coordinator.address, run, desk.coordinator.secret)
        host = conf.get("spark.driver.host", "127.0.0.1")
        try:
            desk = Desk(run, self, host=conf.get("spark.driver.bindAddress", host))
        except EnvironmentProblem as problem:
            log.warning("run %s goes on without control over its workers: %s", run, problem)
            return Desk(run, self), None
        return desk, ((host, desk.coordinator.address[1]), run, desk.coordinator.secret)

    # --- for the engine ---------------------------------------------------------------------------------------------

    def begin(self, epoch: int, attempt: str, forecast: e.Forecast) -> bool:
        """Wait until an attempt may begin, and begin it; False when the run is to end instead."""
        with self._lock:
            self._epoch, self._cancelled, self._deciding = epoch, None, False
            self._over = threading.Event()
        if forecast.task_seconds is not None:
            self._tasks.begin(self._tag, forecast.task_seconds)
        return self.desk.begin_epoch(epoch, attempt, forecast, self._counts)

    def may_commit(self) -> bool:
        """Whether an attempt that went well counts. If so, it can no longer be cancelled."""
        with self._lock:
            self._deciding = self._cancelled is None
            return self._deciding

    @property
    def cancelled(self) -> i.CancelEpoch | None:
        """Why the attempt was cancelled; None: it was not."""
        with self._lock:
            return self._cancelled

    @property
    def still(self) -> float:
        """Seconds in which the workers of the attempt that was under way last stood still."""
        return self._still

    @property
    def pausing(self) -> bool:
        """Whether somebody pauses the run, or has it paused."""
        return self.desk.machine.mode is not None

    def repeated(self) -> bool:
        """Whether a part of the attempt under way was computed twice."""
        return self.desk.machine.repeated

    def committed(self, counters: Mapping[str, Counters]) -> None:
        """The attempt under way counts, with these counters."""
        counts = dict(self._counts)
        for name, epoch in counters.items():
            taken, given = counts.get(name, (0, 0))
            counts[name] = (taken + sum(epoch.taken), given + epoch.given)
        self._counts = counts
        self._end_attempt(e.EpochDone(epoch=self._epoch, counts=counts))

    def failed(self) -> bool:
        """The attempt is over and does not count; returns whether it was cancelled. May be called twice."""
        with self._lock:
            reported, cancelled = self._over.is_set(), self._cancelled is not None
        if not reported:
            self._end_attempt(
                e.EpochGivenUp(epoch=self._epoch, why="cancelled" if cancelled else "it failed")
            )
        return cancelled

    def _end_attempt(self, event: e.EpochDone | e.EpochGivenUp) -> None:
        self._over.set()
        self._still = self.desk.still
        self.desk.report(event)

    def hold(self, event: e.RowHeld) -> m.Decision | None:
        """Hold a row found after its epoch was given up; returns the decision, None when the run is to end."""
        self.desk.report(event)
        name = event.held.hold
        self.desk.wait_for(lambda: self.desk.decision(name) is not None or self.desk.over)
        return self.desk.decision(name)

    def wait_open(self) -> bool:
        """Wait while the run is paused after its last epoch; False when it is to end."""
        return self.desk.wait_open()

    def close(self, error: str = "") -> None:
        """The run has ended."""
        self._over.set()
        self._tasks.close()
        try:
            self.desk.report(e.RunOver(error=error))
        finally:
            self.desk.close()

    # --- for the desk -----------------------------------------------------------------------------------------------

    def cancel(self, order: i.CancelEpoch) -> None:
        """Cancel the epoch's jobs; returns at once."""
        with self._lock:
            if self._deciding:
                return
            self._cancelled = order
            over = self._over
        log.info("run %s: epoch %d is cancelled: %s", self._tag, order.epoch, order.why)
        threading.Thread(
            target=self._keep_cancelling, args=(over,), name=f"samovar-cancel-{self._tag}", daemon=True
        ).start()

    def _keep_cancelling(self, over: threading.Event) -> None:
        while not over.is_set():
            try:
                cancel_tagged(self._spark, self._tag)
            except Exception:  # a session that died ends the epoch as well
                log.debug("run %s: jobs could not be cancelled", self._tag, exc_info=True)
            over.wait(AGAIN)

    def use_code(self, used: i.UseCode) -> None:
        """Use this code in epochs that begin from now on."""
        with self._lock:
            self._code = used

    def take_code(self) -> i.UseCode | None:
        """Code to put into force before the attempt that has just begun; None: nothing has changed."""
        with self._lock:
            used, self._code = self._code, None
            return used

    def note(self, note: Note) -> None:
        """Record this."""
        self._note(note)

    def end(self, why: str) -> None:
        """End the run."""
        self._stop()

    # --- looking ----------------------------------------------------------------------------------------------------

    def answer(self, make: Callable[[str], e.RunCommand], patience: float | None = None) -> i.CommandAnswer:
        """Carry out a command and wait for the answer; `patience`: see `Desk.ask`. Raises CommandRefused."""
        return self.desk.ask(make, patience).result()
