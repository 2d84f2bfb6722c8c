"""Where everything about a running job comes together: commands, the workers' reports, the engine's, and what to do.

The desk owns the state machine and the coordinator. Events are handled one at a time, in the order they come;
messages to workers leave while their event is handled, so they are told in the same order. What only the engine can
do is asked of its `EngineHooks`, one call at a time, too; these calls must not block for long nor call the desk.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import Any, Protocol

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.coordinator import Coordinator
from samovar.control.machine import Machine
from samovar.control.state.breakpoint_registry import ActiveBreakpoint

__all__ = ["Desk", "EngineHooks"]

log = logging.getLogger("samovar.control")

PRINTED = 2000
"""Printed lines that are kept."""


class EngineHooks(Protocol):
    """What the desk asks of the engine."""

    def cancel(self, epoch: int, why: str) -> None:
        """Cancel the epoch's Spark jobs; returns at once."""

    def use_code(self, used: i.UseCode) -> None:
        """Code of epochs that begin from now on."""

    def note(self, note: i.NoteHeld | i.NoteDecision | i.NoteSwitched) -> None:
        """Something for the record."""

    def end(self, why: str) -> None:
        """The run is to end: `begin_epoch` gives False from now on."""


class Desk:
    """Controls one run. All methods are for any thread."""

    def __init__(
        self,
        run: str,
        engine: EngineHooks,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        patience: float = 3.0,
        grace: float = 2.0,
        progress: Callable[[str, m.TaskProgress], None] | None = None,
        **options: Any,
    ) -> None:
        """`patience`: seconds a command may wait for workers; `grace`: seconds a worker has to connect anew."""
        self.machine = Machine()
        self.progress: dict[str, m.TaskProgress] = {}
        """The last figures of each worker."""
        self.printed: deque[tuple[float, m.Printed]] = deque(maxlen=PRINTED)
        """The last lines that operators printed, each with the time it came."""
        self._engine = engine
        self._patience = patience
        self._grace = grace
        self._listener = progress
        self._lock = threading.RLock()
        self._gate = threading.Condition(self._lock)
        self._open = True
        self._over = False
        self._names = count(1)
        self._waiting: dict[str, Future[i.CommandAnswer]] = {}
        self._clock = _Clock()
        self.coordinator = Coordinator(run, self._heard, self._lost, host=host, port=port, **options)

    # --- people -----------------------------------------------------------------------------------------------------

    def ask(self, make: Callable[[str], e.RunCommand]) -> Future[i.CommandAnswer]:
        """Hand a command in; `make` gets its name. The future has the answer, or CommandRefused."""
        with self._lock:
            name = f"c{next(self._names)}"
            answer: Future[i.CommandAnswer] = Future()
            self._waiting[name] = answer
            self._handle(make(name))
            if not answer.done():
                self._clock.after(self._patience, lambda: self._out_of_patience(name))
        return answer

    def wait_for(self, there: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until something is so that may change with any event; False after `timeout`."""
        with self._lock:
            return self._gate.wait_for(there, timeout)

    def stir(self) -> None:
        """Have those who wait look again."""
        with self._lock:
            self._gate.notify_all()

    @property
    def held(self) -> tuple[m.Held, ...]:
        """Tuples that wait for a decision."""
        with self._lock:
            return tuple(self.machine.holds.open.values())

    def decision(self, hold: str) -> m.Decision | None:
        """What was decided about a held tuple; None: nothing yet."""
        with self._lock:
            return self.machine.holds.decision(hold)

    @property
    def over(self) -> bool:
        """Whether the run is to end."""
        return self._over

    @property
    def breakpoints(self) -> tuple[ActiveBreakpoint, ...]:
        """Breakpoints that stand: a copy."""
        with self._lock:
            return tuple(replace(s) for s in self.machine.breaks.active.values())

    @property
    def reached(self) -> tuple[m.Reached, ...]:
        """Breakpoints that were reached since the run went on last."""
        with self._lock:
            return tuple(self.machine.breaks.at)

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """What operators have taken and given, in committed epochs and in tasks of this one that have ended."""
        with self._lock:
            return self.machine.breaks.counts

    @property
    def busy(self) -> tuple[tuple[str, m.TaskBegun], ...]:
        """Workers that have a task, and the task."""
        with self._lock:
            return tuple((w.name, w.task) for w in self.machine.workers.busy if w.task is not None)

    @property
    def state(self) -> str:
        """The state of the run."""
        return self.machine.state

    def _out_of_patience(self, name: str) -> None:
        with self._lock:
            if name not in self._waiting:
                return
            self._handle(e.PatienceEnded(command=name))
            if name in self._waiting:
                self._clock.after(self._patience, lambda: self._out_of_patience(name))

    # --- the engine -------------------------------------------------------------------------------------------------

    def begin_epoch(
        self,
        epoch: int,
        attempt: str,
        expected: float | None = None,
        counts: Mapping[str, tuple[int, int]] | None = None,
    ) -> bool:
        """Wait until an attempt may begin, and begin it; False when the run is to end instead. `counts`: what operators
        have taken and given in committed epochs."""
        with self._lock:
            self._gate.wait_for(lambda: self._open or self._over)
            if self._over:
                return False
            begun = e.EpochBegun(
                epoch=epoch, attempt=attempt, at=time.monotonic(), expected=expected, counts=counts or {}
            )
            self._handle(begun)
            return True

    def wait_open(self) -> bool:
        """Wait until the run may go on where no epoch begins; False when it is to end instead."""
        with self._lock:
            self._gate.wait_for(lambda: self._open or self._over)
            return not self._over

    def report(self, event: e.Event) -> None:
        """Tell what happened to the engine: epochs committed or failed, rows held, the end of the run."""
        with self._lock:
            self._handle(event)

    def close(self) -> None:
        """Close the channel, after `RunEnded` was reported. Workers are told not to come back."""
        self._clock.close()
        self.coordinator.close()

    # --- workers ----------------------------------------------------------------------------------------------------

    def _heard(self, worker: str, message: m.FromWorker) -> None:
        if isinstance(message, m.TaskProgress):
            self.progress[worker] = message
            if self._listener is not None:
                self._listener(worker, message)
            return
        if isinstance(message, m.Printed):
            self.printed.append((time.time(), message))
            return
        with self._lock:
            self._handle(e.Reported(worker=worker, message=message))

    def _lost(self, worker: str, why: str) -> None:
        with self._lock:
            self._handle(e.WorkerDropped(worker=worker))
            self._clock.after(self._grace, lambda: self._gone(worker, why))

    def _gone(self, worker: str, why: str) -> None:
        with self._lock:
            if worker in self.machine.workers and not self.machine.workers.get(worker).connected:
                self.progress.pop(worker, None)
                self._handle(e.WorkerVanished(worker=worker, why=why))

    # --- carrying out -----------------------------------------------------------------------------------------------

    def _handle(self, event: e.Event) -> None:
        """The caller holds the lock."""
        for order in self.machine.handle(event):
            try:
                self._carry_out(order)
            except Exception:  # one instruction that fails must not keep the rest from being carried out
                log.exception("control: %s could not be carried out", type(order).__name__)
        self._gate.notify_all()

    def _carry_out(self, order: i.Instruction) -> None:
        if isinstance(order, i.Tell):
            self.coordinator.send(order.worker, order.message)
        elif isinstance(order, i.Gate):
            self._open = order.open
            self._gate.notify_all()
        elif isinstance(order, i.CommandAnswer):
            self._waiting.pop(order.command).set_result(order)
        elif isinstance(order, i.Refuse):
            self._waiting.pop(order.command).set_exception(order.error)
        elif isinstance(order, i.CancelEpoch):
            self._engine.cancel(order.epoch, order.why)
        elif isinstance(order, i.UseCode):
            self._engine.use_code(order)
        elif isinstance(order, i.EndRun):
            self._over = True
            self._gate.notify_all()
            self._engine.end(order.why)
        else:
            self._engine.note(order)


class _Clock:
    """Calls functions later, on one thread of its own."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        with self._changed:
            if self._closed:
                return
            self._due.append((time.monotonic() + seconds, next(self._numbers), call))
            self._due.sort()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="samovar-clock", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (not self._due or self._due[0][0] > time.monotonic()):
                    self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
                if self._closed:
                    return
                call = self._due.pop(0)[2]
            try:
                call()
            except Exception:
                log.exception("control: a timer failed")
