"""The thread of a run: epoch after epoch, from the first to the end that the log gets."""

from __future__ import annotations

import logging
import shutil
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from samovar.control import instructions as i
from samovar.errors import RecordingInUse, RunStopped, StorageProblem
from samovar.graph import operators as ops
from samovar.graph.operators.base import column_of
from samovar.record.log import EpochCommitted, Fact, InteractionsMade, RunEnded, TupleHeld
from samovar.runtime.epochs.attempt import Attempt
from samovar.runtime.epochs.epoch import Epoch
from samovar.runtime.epochs.epoch_runner import run_levels, streams_of
from samovar.runtime.epochs.pacer import Pacer
from samovar.runtime.epochs.run_context import RunContext
from samovar.runtime.exchange.decisions import decision_fact, standing_decisions
from samovar.runtime.failures.explanation import explain_failure
from samovar.runtime.failures.failed_epoch import failed_fact
from samovar.runtime.live.interactions import Interactions
from samovar.runtime.live.run_control import Note, Steering
from samovar.runtime.live.watches import Watches, Watching
from samovar.runtime.progress import Progress, Status
from samovar.runtime.publication import publish
from samovar.runtime.summary import recorded_progress

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["PreparedRun", "RunThread", "Services"]

log = logging.getLogger("samovar")


class Closable(Protocol):
    """What is closed when a run has ended."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Services:
    """What a run gets from the layers around it."""

    watch: Watching
    """Makes a watch over committed epochs, which are searched by replaying them."""
    door: Callable[[Run, Path], Closable | None]
    """Opens the run to other processes; None where that is not possible."""


@dataclass(frozen=True)
class PreparedRun:
    """A run that is ready to begin."""

    context: RunContext
    scratch: Path | None = None
    """The folder of a run that leaves no recording: it is removed with the run."""
    notice: str = ""
    """The first `progress.note`."""
    before: Callable[[Callable[[], bool]], None] | None = None
    """Called before the first epoch, on the run's thread; its argument returns whether the run is to stop."""
    publishes: bool = True
    """Whether the results of `write` operators go to their paths when the run is complete."""
    make: Callable[[Attempt], Epoch] = Epoch
    """Prepares an attempt at an epoch: see `commit_epoch`."""


class RunThread:
    """A run on its thread, and what it shows of itself. Other threads read it and set `stop`."""

    def __init__(self, prepared: PreparedRun, services: Services, *, interactive: bool | None) -> None:
        context = prepared.context
        self.prepared = prepared
        self.recording = context.recording
        self.status: Status = "starting"
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self.stop = threading.Event()
        self.message = prepared.notice
        self.listeners: list[Callable[[Progress], None]] = []
        self.displays = 0
        """How many displays are being drawn: epochs are short meanwhile."""
        self.interactions = Interactions(len(context.history.interactions))
        self._interactive = interactive
        self._started = time.time()
        self._seconds: float | None = None
        self.steering = Steering(
            self.recording.run_id,
            context.spark,
            stop=self.stop.set,
            note=self._record,
            totals=context.history.totals(),
        )
        self.context = context = replace(context, steering=self.steering)
        self.watches = Watches(context, self.steering, self.interactions, services.watch)
        decisions = standing_decisions(context.history)
        if decisions is not None:
            self.steering.desk.report(decisions)

    def begin(self, door: Closable | None) -> None:
        """Run in a thread; `door` is closed at the end."""
        self.status = "running"
        thread = threading.Thread(
            target=self._work, args=(door,), name=f"samovar-{self.recording.run_id}", daemon=True
        )
        thread.start()

    def _work(self, door: Closable | None) -> None:
        context = self.context
        try:
            if self.prepared.before is not None:
                self.prepared.before(self.stop.is_set)
            run_levels(
                context,
                self._pacer,
                watching=lambda: self.displays > 0 if self._interactive is None else self._interactive,
                stopping=self.stop.is_set,
                committed=self._committed,
                make=self.prepared.make,
                noted=self._noted,
            )
            if not self.steering.wait_open():
                raise RunStopped("The run was stopped.")
            self._finish_interactions()
            if self.prepared.publishes:
                publish(context)
            # once more: a task that was dying when its attempt was removed may have written since
            self.recording.sweep()
            self._end("completed")
        except BaseException as error:
            self._fail(error)
        finally:
            try:
                context.progress.build_sides.forget()
                self.recording.close()
            except Exception:  # a session that died, for example: the run has ended all the same
                log.debug("run %s: clearing up failed", self.recording.run_id, exc_info=True)
            finally:
                try:
                    if door is not None:
                        door.close()
                    self.steering.close("" if self.error is None else str(self.error)[:400])
                finally:
                    self.ended.set()

    def _pacer(self, level: int) -> Pacer:
        plan, history = self.context.plan, self.context.history
        whole = plan.placement.build_weight(level, {n: s.size for n, s in self.context.sources.items()})
        python = [
            n
            for n, op in plan.graph.ops.items()
            if plan.placement.works(n, level)
            # a Column that has no SQL text calls a function of the user's
            and (
                plan.shape(n) in ("python", "batches")
                or any(column_of(text) is not None for text in op.expressions())
            )
        ]
        filtered = all(any(isinstance(up, ops.Filter) for up in plan.graph.upstream(n)) for n in python)
        fixed = history.started.options.get("epoch_bytes") if history.started is not None else None
        return Pacer.for_level(whole, python=bool(python), filtered=filtered, fixed_bytes=fixed)

    def _noted(self, text: str) -> None:
        if text:
            self.message = "; ".join(part for part in (self.prepared.notice, text) if part)

    # --- after each epoch -------------------------------------------------------------------------------------------

    def _committed(self, fact: EpochCommitted) -> None:
        self._place_interactions(fact)
        self.watches.committed(fact)
        log.info("run %s: epoch %d committed in %.2f s", self.recording.run_id, fact.epoch, fact.seconds)
        for listener in self.listeners:
            listener(self.progress())

    def _place_interactions(self, fact: EpochCommitted, *, end: bool = False) -> None:
        history = self.context.history
        placed = self.interactions.placed(fact, lambda: history.totals(fact.epoch), end=end)
        if placed and self.recording.log is not None:
            interactions = InteractionsMade(at=time.time(), made=placed)
            self.recording.log.append(interactions)
            history.add(interactions)

    def _finish_interactions(self) -> None:
        self.watches.finish()
        if self.context.history.epochs:
            self._place_interactions(self.context.history.epochs[-1], end=True)

    def _record(self, note: Note) -> None:
        """Log a held tuple or a decision."""
        fact: Fact
        if isinstance(note, i.NoteHeld):
            held = note.held
            fact = TupleHeld(
                at=time.time(),
                hold=held.hold,
                epoch=held.place.epoch,
                operator=held.place.operator,
                row=held.shown,
                error=held.error,
            )
        elif isinstance(note, i.NoteDecision):
            fact = decision_fact(note)
        else:
            return
        if self.recording.log is not None:
            self.recording.log.append(fact)

    # --- the end ----------------------------------------------------------------------------------------------------

    def _fail(self, error: BaseException) -> None:
        if self.stop.is_set():
            error = RunStopped(
                "The run was stopped.", hint=f"Go on with sv.open({str(self.recording.path)!r}).resume()."
            )
        try:
            self.error = explain_failure(self.context, error)
        except BaseException as second:  # the explanation itself failed: show the first error
            log.debug("could not explain a failure", exc_info=second)
            self.error = error
        if isinstance(error, RecordingInUse):  # another run writes the recording by now
            self.recording.close()
        self._log_failure()
        log.debug("run %s failed:\n%s", self.recording.run_id, "".join(traceback.format_exception(error)))
        try:
            if self.recording.log is not None:
                self.recording.sweep(failed=True)  # nothing reads the files of an attempt that does not count
        except Exception:
            log.debug("run %s: the failed attempt could not be removed", self.recording.run_id, exc_info=True)
        self._end("stopped" if isinstance(self.error, RunStopped) else "failed")

    def _log_failure(self) -> None:
        """Log the input of the failed epoch, so that its failure can be looked at later."""
        if self.stop.is_set() or self.recording.log is None:
            return
        try:
            fact = failed_fact(self.context)
            if fact is not None:
                self._finish_interactions()
                self.recording.log.append(fact)
        except Exception:
            log.debug("the failed epoch could not be logged", exc_info=True)

    def _end(self, status: Status) -> None:
        error = self.error
        self._seconds = time.time() - self._started
        if self.recording.log is not None:
            try:
                self.recording.log.append(
                    RunEnded(
                        at=time.time(),
                        status=status,
                        error=None if error is None else str(error)[:4000],
                        operator=getattr(error, "operator", None),
                    )
                )
            except StorageProblem:
                log.debug("the end could not be logged", exc_info=True)
        self.status = status
        if self.prepared.scratch is not None and status != "completed":
            shutil.rmtree(self.prepared.scratch, ignore_errors=True)

    # --- looking ----------------------------------------------------------------------------------------------------

    def present_status(self) -> Status:
        """The status, as the desk knows it while the run goes on."""
        if self.status == "running" and self.steering.desk.state in ("pausing", "paused", "holding"):
            return cast(Status, self.steering.desk.state)
        return self.status

    def progress(self) -> Progress:
        """Counters of every operator, from the committed epochs."""
        context, status = self.context, self.present_status()
        seconds = self._seconds if self._seconds is not None else time.time() - self._started
        progress = recorded_progress(
            context.recording, context.history, context.plan.graph.ops.values(), status, seconds
        )
        fraction = 1.0 if status == "completed" else self._fraction()
        return replace(progress, fraction=fraction, note=self.message)

    def _fraction(self) -> float:
        total = done = 0
        for level in range(self.context.plan.placement.levels):
            for stream in streams_of(self.context, level):
                if stream.name in self.context.sources:
                    total += stream.size
                    done += stream.done
        return done / total if total else 0.0
