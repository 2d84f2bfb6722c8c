"""Where everything about a running job comes together: commands, the workers' reports, the engine's, and what to do.

The desk owns the state machine and the coordinator. Events are handled one at a time, in the order they come;
messages to workers leave while their event is handled, so they arrive in the same order. What only the engine can do is
asked of its `EngineHooks`, one call at a time as well; these calls must not block for long nor call the desk.
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

NOTHING_KNOWN = e.Forecast()
PRINTED = 2000
"""Printed lines that are kept: a screenful many times over, and bounded for operators that print each tuple."""


class EngineHooks(Protocol):
    """What the desk asks of the engine."""

    def cancel(self, order: i.CancelEpoch) -> None:
        """Cancel the epoch's Spark jobs; returns at once."""

    def use_code(self, used: i.UseCode) -> None:
        """Use this code in epochs that begin from now on."""

    def note(self, note: i.NoteHeld | i.NoteDecision | i.NoteSwitched) -> None:
        """Record this."""

    def end(self, why: str) -> None:
        """End the run: `begin_epoch` returns False from now on."""


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
        """`patience`: seconds a command may wait for workers; `grace`: seconds a worker has to reconnect."""
        self.machine = Machine()
        self.progress: dict[str, m.TaskProgress] = {}
        """The last figures of each worker."""
        self.printed: deque[tuple[float, m.Printed]] = deque(maxlen=PRINTED)
        """The last lines that operators printed, each with the time it arrived."""
        self._engine = engine
        self._patience = patience
        self._grace = grace
        self._listener = progress
        self._lock = threading.RLock()
        self._gate = threading.Condition(self._lock)
        self._open = True
        self._over = False
        self._closed = False
        self._names = count(1)
        self._waiting: dict[str, Future[i.CommandAnswer]] = {}
        self.coordinator = Coordinator(run, self._heard, self._lost, host=host, port=port, **options)

    # --- people -----------------------------------------------------------------------------------------------------

    def ask(
        self, make: Callable[[str], e.RunCommand], patience: float | None = None
    ) -> Future[i.CommandAnswer]:
        """Start a command; `make` is called with its name. The future has the answer, or CommandRefused.

        `patience`: seconds it may wait before something is done about it, if not the desk's.
        """
        with self._lock:
            name = f"c{next(self._names)}"
            answer: Future[i.CommandAnswer] = Future()
            self._waiting[name] = answer
            self._handle(make(name))
            if not answer.done():
                timer = _after(patience or self._patience, self._out_of_patience, name)
                answer.add_done_callback(lambda _: timer.cancel())
        return answer

    def wait_for(self, there: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until `there` returns True; it is called after each event. Returns False after `timeout` seconds."""
        with self._lock:
            return self._gate.wait_for(there, timeout)

    def stir(self) -> None:
        """Have `wait_for` look again, after something outside the desk has changed."""
        with self._lock:
            self._gate.notify_all()

    @property
    def held(self) -> tuple[m.Held, ...]:
        """Tuples that wait for a decision."""
        with self._lock:
            return tuple(self.machine.holds.open.values())

    def decision(self, hold: str) -> m.Decision | None:
        """The decision about a held tuple; None: there is none yet."""
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
        """Tuples that operators have taken and given, in committed epochs and in tasks of this one that have ended."""
        with self._lock:
            return self.machine.breaks.counts

    @property
    def figures(self) -> tuple[tuple[str, m.TaskBegun, dict[str, m.Figures]], ...]:
        """The last figures of each task under way: its worker, the task, and the figures by operator."""
        with self._lock:
            reports = [(worker, task, self.progress.get(worker)) for worker, task in self.busy]
            return tuple((w, t, r.operators) for w, t, r in reports if r is not None and r.task == t.task)

    def taken(self, operator: str) -> int:
        """Tuples that an operator has taken in the run: in committed epochs, in tasks of this epoch that have ended,
        and in tasks under way as their workers reported last."""
        with self._lock:
            running = sum(figures[operator].taken for _, _, figures in self.figures if operator in figures)
            return self.counts.get(operator, (0, 0))[0] + running

    @property
    def busy(self) -> tuple[tuple[str, m.TaskBegun], ...]:
        """Workers that have a task, and the task."""
        with self._lock:
            return tuple((w.name, w.task) for w in self.machine.workers.busy if w.task is not None)

    @property
    def still(self) -> float:
        """Seconds in which all workers of the epoch under way have stood still: a pause, a held tuple."""
        with self._lock:
            return self.machine.clock.still(time.monotonic())

    @property
    def counted_by_tasks(self) -> str | None:
        """The attempt of which Spark's tasks are to be counted, if there is one: see `TasksCounted`."""
        with self._lock:
            return self.machine.counted_by_tasks

    @property
    def state(self) -> str:
        """The state of the run."""
        return self.machine.state

    def _out_of_patience(self, name: str) -> None:
        with self._lock:
            if name not in self._waiting or self._closed:
                return
            self._handle(e.PatienceEnded(command=name))
            if name in self._waiting:
                _after(self._patience, self._out_of_patience, name)

    # --- the engine -------------------------------------------------------------------------------------------------

    def begin_epoch(
        self,
        epoch: int,
        attempt: str,
        forecast: e.Forecast = NOTHING_KNOWN,
        counts: Mapping[str, tuple[int, int]] | None = None,
    ) -> bool:
        """Wait until an attempt may begin, and begin it; False when the run is to end instead.

        `counts`: the tuples that operators have taken and given in committed epochs.
        """
        with self._lock:
            self._gate.wait_for(lambda: self._open or self._over)
            if self._over:
                return False
            begun = e.EpochBegun(
                epoch=epoch,
                attempt=attempt,
                at=time.monotonic(),
                expected=forecast.expected,
                aim=forecast.aim,
                rows=forecast.rows,
                last=forecast.last,
                task_seconds=forecast.task_seconds,
                counts=counts or {},
            )
            self._handle(begun)
            return True

    def hear_out(self) -> None:
        """Wait for what workers sent before a task of theirs gave up: why it did may be among it.

        That the task has ended is known to the engine by Spark, on a shorter way than the messages take.
        """
        workers = self.machine.workers
        self.wait_for(lambda: not any(w.connected for w in workers.busy), self._grace)

    def wait_open(self) -> bool:
        """Wait until the run may go on where no epoch begins; False when it is to end instead."""
        with self._lock:
            self._gate.wait_for(lambda: self._open or self._over)
            return not self._over

    def report(self, event: e.Event) -> None:
        """Report an event of the engine: an epoch committed or failed, a row held, the end of the run."""
        with self._lock:
            self._handle(event)

    def close(self) -> None:
        """Close the channel, after `RunOver` was reported. Workers do not reconnect."""
        self._closed = True
        self.coordinator.close()

    # --- workers ----------------------------------------------------------------------------------------------------

    def _heard(self, worker: str, message: m.FromWorker) -> None:
        if isinstance(message, m.TaskProgress):
            self.progress[worker] = message
            if self._listener is not None:
                self._listener(worker, message)
            self._count()
            return
        if isinstance(message, m.Printed):
            self.printed.append((time.time(), message))
            return
        with self._lock:
            self._handle(e.Reported(worker=worker, message=message))

    def _count(self) -> None:
        """Hand on what operators have taken in the epoch under way."""
        with self._lock:
            epoch = self.machine.epoch
            if epoch is None or epoch.aim is None or not self.machine.workers.busy:
                return
            taken = {name: counts[0] for name, counts in self.machine.breaks.done.items()}
            for _, _, figures in self.figures:
                for name, one in figures.items():
                    taken[name] = taken.get(name, 0) + one.taken
            self._handle(e.OperatorsCounted(taken=taken))

    def _lost(self, worker: str, why: str) -> None:
        with self._lock:
            self._handle(e.WorkerDropped(worker=worker))
            _after(self._grace, self._gone, worker, why)

    def _gone(self, worker: str, why: str) -> None:
        with self._lock:
            if worker in self.machine.workers and not self.machine.workers.get(worker).connected:
                self.progress.pop(worker, None)
                self._handle(e.WorkerVanished(worker=worker, why=why))

    # --- carrying out -----------------------------------------------------------------------------------------------

    def _handle(self, event: e.Event) -> None:
        """Handle an event. The caller holds the lock."""
        for order in self.machine.handle(event, time.monotonic()):
            try:
                self._carry_out(order)
            except Exception:  # one instruction that fails must not keep the rest from being carried out
                log.exception("control: %s could not be carried out", type(order).__name__)
        self._gate.notify_all()

    def _carry_out(self, order: i.Instruction) -> None:
        if isinstance(order, i.Send):
            self.coordinator.send(order.worker, order.message)
        elif isinstance(order, i.Gate):
            self._open = order.open
            self._gate.notify_all()
        elif isinstance(order, i.CommandAnswer):
            self._waiting.pop(order.command).set_result(order)
        elif isinstance(order, i.Refuse):
            self._waiting.pop(order.command).set_exception(order.error)
        elif isinstance(order, i.CancelEpoch):
            self._engine.cancel(order)
        elif isinstance(order, i.UseCode):
            self._engine.use_code(order)
        elif isinstance(order, i.EndRun):
            self._over = True
            self._gate.notify_all()
            self._engine.end(order.why)
        else:
            self._engine.note(order)


def _after(seconds: float, call: Callable[..., None], *arguments: str) -> threading.Timer:
    """Call a function later, on a thread that does not keep the process alive."""
    timer = threading.Timer(seconds, call, arguments)
    timer.daemon = True
    timer.start()
    return timer
