"""How a worker carries out the coordinator's orders, whatever it processes.

The tuple loop looks at `client.news` between tuples and at mini-steps, and calls `check` when it is set. Everything
then happens on the processing thread, between two tuples: stopping and waiting, sending states, switching to other
code. What depends on the loop is asked of its `LoopHooks`.

While the loop waits for Spark (for its next input batch, or until Spark takes an output batch), it is between two
tuples as well: between `leave` and `enter` the client's thread obeys in its place, so that an idle worker answers at
once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from samovar.control import messages as m
from samovar.control.client import Client
from samovar.errors import ChannelProblem, ControlError

__all__ = ["Agent", "LoopHooks", "TaskAbandoned"]

log = logging.getLogger("samovar.control")


class TaskAbandoned(ControlError):
    """The coordinator gave the task up: its epoch does not count."""


class LoopHooks(Protocol):
    """What the agent asks of the tuple loop, between tuples. All but `figures` are called on the processing thread, or
    on the client's while the loop waits for Spark.
    """

    def place(self) -> m.TuplePlace | None:
        """The tuple being processed, or the next one."""

    def state(self, operator: str) -> tuple[int, bytes]:
        """The bucket and the state of an operator; the state as bytes, which only the one who asked decodes."""

    def in_flight(self, operator: str, limit: int) -> tuple[list[bytes], int]:
        """The tuples that wait at an operator, at most `limit`; and how many there are beyond."""

    def switch(self, codes: Mapping[str, m.CodeVersion]) -> tuple[m.SwitchPoint, ...]:
        """Switch operators to other code, with their state: all of them or, raising, none. Returns the first tuples."""

    def breakpoints(self, standing: tuple[m.Breakpoint, ...]) -> None:
        """Set the breakpoints that stand from now on. Credit for earlier ones is void."""

    def counted(self) -> list[m.TuplesCounted]:
        """The tuples counted so far, for each breakpoint that counts."""

    def credit(self, breakpoint: str, upto: int) -> None:
        """Let up to `upto` tuples be counted for a breakpoint."""

    def counts(self) -> dict[str, tuple[int, int]]:
        """The tuples that each operator has taken and given in this task."""

    def figures(self) -> dict[str, m.Figures]:
        """Figures of each operator. Called on the client's thread: only reads."""


class Agent:
    """Carries out the coordinator's orders for one task. For the processing thread."""

    def __init__(self, client: Client, hooks: LoopHooks) -> None:
        self.client = client
        self.skip_all: set[tuple[str, str]] = set()
        """Tuples to skip: the operator, and how it raises on them."""
        self.decisions: dict[m.TuplePlace, m.TupleDecision] = {}
        """Decisions about tuples, made in an earlier attempt at the epoch."""
        self._hooks = hooks
        self._task: m.TaskBegun | None = None
        self._order: int | None = None
        self._versions: dict[str, int] = {}
        self._answers: dict[str, m.Decision] = {}
        self._orders = False
        self._holds = 0
        self._lock = threading.Lock()
        self._outside = False
        self._abandoned: TaskAbandoned | None = None
        self._reached: m.Reached | None = None

    # --- the life of a task -----------------------------------------------------------------------------------------

    def begin(self, task: m.TaskBegun, *, patience: float = 2.0) -> bool:
        """Announce a task, get its orders and obey them. False without a coordinator: the task then runs unattended."""
        self._task = task
        self._versions = dict(task.versions)
        status = self.client.status
        status.task, status.stopped, status.held, status.switches = task, None, None, ()
        self.client.gauge, self.client.on_news = self._progress, self._obey_outside
        until = time.monotonic() + patience
        if not self.client.wait_connected(patience) or not self.client.send(task):
            return False
        while not self._orders and (left := until - time.monotonic()) > 0:
            try:
                self.client.wait(left)
            except ChannelProblem:
                return False
            self._obey_all()
        self._stay_stopped()
        return self._orders

    def end(self) -> None:
        """The task is over, in whatever way."""
        task, self._task = self._task, None
        status = self.client.status
        status.task, status.stopped, status.held, status.switches = None, None, None, ()
        self.client.gauge = self.client.on_news = None
        if task is not None:
            self.client.send(m.TaskEnded(task=task.task, counts=self._hooks.counts()))

    def check(self) -> None:
        """Carry out the orders that have arrived; returns when the worker may go on. Raises TaskAbandoned."""
        self._obey_all()
        self._stay_stopped()

    def leave(self) -> None:
        """The loop waits for Spark from now on: the client's thread obeys in its place."""
        with self._lock:
            self._outside = True
        if self.client.news:
            self._obey_outside()

    def enter(self) -> None:
        """The loop is back. Returns when the worker may go on; raises TaskAbandoned when the task is given up."""
        with self._lock:
            self._outside = False
        if self._abandoned is not None:
            raise self._abandoned
        if self._order is not None or self.client.news:
            self.check()

    def _obey_outside(self) -> None:
        with self._lock:
            if not self._outside or self._task is None:
                return
            try:
                self._obey_all()
            except TaskAbandoned as abandoned:
                self._abandoned = abandoned
            except Exception:  # the client's thread must live
                log.exception("control: an order could not be obeyed")

    def hold(self, held: m.Held) -> m.Decision:
        """Report a tuple that raised and wait for a decision, and until the worker may go on."""
        self.client.status.held = held
        self.client.send(held)
        try:
            while held.hold not in self._answers:
                self._await()
            self._stay_stopped()
        finally:
            self.client.status.held = None
        return self._answers.pop(held.hold)

    def reach(self, reached: m.Reached) -> None:
        """Report a tuple that meets a breakpoint's condition; returns when the worker may go on."""
        self._reached = reached
        self.client.send(reached)
        while self._is_unconfirmed():
            self._await()
        self._stay_stopped()

    def _is_unconfirmed(
        self,
    ) -> bool:  # a method, since type checkers do not see that `_await` changes the attribute
        return self._reached is not None

    def wait_for_credit(self, counted: m.TuplesCounted, there: Callable[[], bool]) -> None:
        """Report that no credit is left for a breakpoint; returns when there is some and the worker may go on."""
        self.client.send(counted)
        while not there():
            self._await()
        self._stay_stopped()

    def new_hold(self) -> str:
        """A name that no other hold has."""
        self._holds += 1
        task = self._task.task if self._task is not None else ""
        return f"{self.client.worker}/{task}/{self._holds}"

    # --- orders -----------------------------------------------------------------------------------------------------

    def _await(self) -> None:
        try:
            self.client.wait()
        except ChannelProblem as problem:
            raise TaskAbandoned(problem.message) from None
        self._obey_all()

    def _stay_stopped(self) -> None:
        while self._order is not None:
            self._await()

    def _obey_all(self) -> None:
        for message in self.client.take():
            self._obey(message)

    def _obey(self, message: m.ToWorker) -> None:
        task = self._task.task if self._task is not None else ""
        if isinstance(message, m.PauseOrder):
            self._stop(message.order)
        elif isinstance(message, m.ResumeOrder):
            self._go(message.order)
        elif isinstance(message, m.Orders):
            if message.task == task:
                self._take_orders(message)
        elif isinstance(message, m.SwitchOrder):
            self._switch(message.version, message.codes)
        elif isinstance(message, m.Decision):
            self._answers[message.hold] = message
        elif isinstance(message, m.SkipAllDecision):
            self.skip_all.add((message.operator, message.like))
        elif isinstance(message, m.StateWanted):
            self._give_state(message)
        elif isinstance(message, m.InFlightWanted):
            self._give_in_flight(message)
        elif isinstance(message, m.Breakpoints):
            self._set_breakpoints(message.breakpoints)
        elif isinstance(message, m.Credit):
            self._hooks.credit(message.breakpoint, message.upto)
        elif isinstance(message, m.ReachedNoted):
            self._reached = None
        elif isinstance(message, m.Abandon) and message.task == task:
            raise TaskAbandoned(f"The task ends early: {message.why}.")

    def _take_orders(self, orders: m.Orders) -> None:
        self._orders = True
        self.skip_all |= {(d.operator, d.like) for d in orders.skip_all}
        self.decisions.update({d.place: d for d in orders.decisions})
        for version in sorted({c.version for codes in orders.codes.values() for c in codes}):
            each = {n: c for n, codes in orders.codes.items() for c in codes if c.version == version}
            self._switch(version, each)
        self._set_breakpoints(orders.breakpoints)
        if self._reached is not None:  # the report may have been lost with the connection
            self.client.send(self._reached)
        if orders.stop is not None:
            self._stop(orders.stop)
        elif self._order is not None:
            self._go(self._order)

    def _set_breakpoints(self, standing: tuple[m.Breakpoint, ...]) -> None:
        self._hooks.breakpoints(standing)
        for counted in self._hooks.counted():
            self.client.send(counted)
        if standing:
            self.client.send(m.Armed(breakpoints=tuple(b.name for b in standing)))

    def _stop(self, order: int) -> None:
        if self._task is not None:
            self._order = self.client.status.stopped = order
            self.client.report()  # first: when all workers have stopped, their figures are of this moment
            self.client.send(m.Stopped(order=order, place=self._hooks.place()))

    def _go(self, order: int) -> None:
        self._order = self.client.status.stopped = None
        self.client.send(m.WentOn(order=order))

    def _switch(self, version: int, codes: Mapping[str, m.CodeVersion]) -> None:
        new = {n: c for n, c in codes.items() if c.version > self._versions.get(n, 0)}
        if not new:
            return
        try:
            switches = self._hooks.switch(new)
        except Exception as error:
            self.client.send(m.Switched(version=version, error=f"{type(error).__name__}: {error}"))
            return
        self._versions.update({n: c.version for n, c in new.items()})
        self.client.status.switches += switches
        self.client.send(m.Switched(version=version, switches=switches))

    def _give_state(self, wanted: m.StateWanted) -> None:
        given = m.StateGiven(request=wanted.request, operator=wanted.operator, place=self._hooks.place())
        try:
            bucket, body = self._hooks.state(wanted.operator)
            self.client.send(replace(given, bucket=bucket, body=body))
        except Exception as error:  # a state that cannot be pickled, or is too large, must not end the run
            self.client.send(replace(given, error=f"{type(error).__name__}: {error}"))

    def _give_in_flight(self, wanted: m.InFlightWanted) -> None:
        given = m.InFlightGiven(request=wanted.request, operator=wanted.operator)
        try:
            rows, more = self._hooks.in_flight(wanted.operator, wanted.limit)
            self.client.send(replace(given, rows=tuple(rows), more=more))
        except Exception as error:
            self.client.send(replace(given, error=f"{type(error).__name__}: {error}"))

    def _progress(self) -> m.TaskProgress | None:
        task = self._task
        if task is None:
            return None
        return m.TaskProgress(task=task.task, at=time.time(), operators=self._hooks.figures())
