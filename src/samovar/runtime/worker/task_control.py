"""A task under control of the coordinator: it announces itself, obeys orders to stop, and answers questions.

The tuple loop of a chain looks at `client.news` between tuples and at mini-steps; while a task waits for Spark (for a
batch, or for Spark to take one), the client's thread obeys orders in its place. A task that is abandoned drains its
input, saves no state and leaves a sign, so that the attempt it belongs to never counts.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from samovar.control import messages as m
from samovar.control.agent import Agent, TaskAbandoned
from samovar.control.client import client_for
from samovar.record.state_files import dumps
from samovar.runtime.exchange.code_switch import ChainSwitches, CodeSwitch
from samovar.runtime.exchange.console import Console
from samovar.runtime.exchange.partition import partition_number
from samovar.runtime.exchange.plain_states import attributes
from samovar.runtime.exchange.task_signs import leave_sign
from samovar.runtime.worker.breakpoints import TaskBreakpoints

if TYPE_CHECKING:
    from samovar.runtime.exchange.task import Control, Task
    from samovar.runtime.worker.chain import Chain

__all__ = ["DUE", "QUIET", "Due", "Quiet", "RowFeed", "Step", "TaskControl", "attend"]

_unreachable: set[tuple[str, int]] = set()
"""Coordinators that did not answer this process: their tasks run unattended, without waiting again."""
PATIENCE = 2.0
"""Seconds to wait for the coordinator's answer: a busy driver answers in milliseconds, a dead one never."""

Step = tuple[int, int, int]
"""A tuple in a chain: the number of the operator, the port, and the number of the tuple on that port."""


class Quiet:
    """In place of a client, in tasks that nobody steers: there is never an order."""

    news = False


class Due:
    """In place of a client, before a tuple at which the loop must look for switches of code, orders or not."""

    news = True


QUIET = Quiet()
DUE = Due()


class RowFeed:
    """Rows on their way through the tuple loop. The loop's progress is read off the iterator: the loop pays nothing."""

    def __init__(
        self, rows: Sequence[Any], before: int = 0, *, kept: int | None = None, behind: int = 0
    ) -> None:
        """`kept`: for a loop that keeps no other count, how many of the rows in its output were counted before.

        `behind`: how many rows of the same batch come after these.
        """
        self.rows = rows
        self.before = before
        self.kept = kept
        self.behind = behind
        self.waiting = iter(rows)

    @property
    def left(self) -> int:
        """How many rows the loop has not begun."""
        return int(self.waiting.__length_hint__())  # type: ignore[attr-defined]

    @property
    def taken(self) -> int:
        """How many rows the loop has begun."""
        return len(self.rows) - self.left


def attend(task: Task, chain: Chain | None) -> TaskControl | None:
    """Put a task under control; None when nobody steers its run."""
    if task.control is None:
        return None
    control = TaskControl(task, task.control, chain)
    if chain is not None:
        chain.client, chain.control = control.client, control
    control.console = Console(control.client.send, task.epoch, control.instances)
    return control


class TaskControl:
    """One task under control. `check` is for the tuple loop."""

    def __init__(self, task: Task, control: Control, chain: Chain | None) -> None:
        self.task = task
        self.chain = chain
        self.client = client_for(*control)
        self.agent = Agent(self.client, self)
        self._address = control[0]
        self._names = [s.name for s in task.stages]
        self._step: Step | None = None
        self._behind = False
        """Whether the tuple of `_step` is processed already."""
        self._began = time.perf_counter()
        self._idle = 0.0
        self.console: Console | None = None
        self.heard = False
        """Whether the coordinator has answered."""

    def run(self, batches: Iterator[Any], work: Any) -> Iterator[Any]:
        """The output of `work` over the batches, under control."""
        self._begin()
        for batch in work(self._taken_in(batches)):
            self._leave()
            yield batch
            self._enter()

    def _begin(self) -> None:
        partition = partition_number()
        begun = m.TaskBegun(
            task=f"{self.task.epoch}/{partition}/{token_hex(4)}",
            run=self.task.run,
            epoch=self.task.epoch,
            attempt=self.task.token,
            operators=tuple(self._names),
            partition=partition,
            versions=dict(self.task.code_versions),
        )
        key = (self._address[0], self._address[1])
        self.heard = self.agent.begin(begun, patience=0.0 if key in _unreachable else PATIENCE)
        if self.heard:
            _unreachable.discard(key)
        elif not self.client.connected:
            _unreachable.add(key)
        if not self.heard:
            leave_sign(self.task, "unattended")

    def _taken_in(self, batches: Iterator[Any]) -> Iterator[Any]:
        rest = iter(batches)
        while True:
            self._leave()
            pa.array(())  # in a new process PyArrow looks for pandas here, for half a second or more
            batch = next(rest, None)
            self._enter()
            if batch is None:
                return
            yield batch

    def _leave(self) -> None:
        self._step, self._behind = None, False
        self._idle -= time.perf_counter()
        self.agent.leave()

    def _enter(self) -> None:
        try:
            self.agent.enter()
        finally:
            self._idle += time.perf_counter()

    def check(self, stage: int, port: int, number: int) -> None:
        """Obey orders, at a tuple of an operator; returns when the loop may go on."""
        with self._stopped_at((stage, port, number)):
            self.agent.check()

    def hold(self, held: m.Held, step: Step) -> m.Decision:
        """Report a tuple that raised, and wait for a decision."""
        with self._stopped_at(step):
            return self.agent.hold(held)

    def reach(self, reached: m.Reached, step: Step, behind: bool) -> None:
        """Report a tuple that meets a breakpoint; returns when the loop may go on. `behind`: it is processed."""
        with self._stopped_at(step, behind):
            self.agent.reach(reached)

    def wait_for_credit(
        self, counted: m.TuplesCounted, there: Callable[[], bool], step: Step, behind: bool
    ) -> None:
        """Wait until more tuples may be processed."""
        with self._stopped_at(step, behind):
            self.agent.wait_for_credit(counted, there)

    @contextmanager
    def _stopped_at(self, step: Step, behind: bool = False) -> Iterator[None]:
        """The loop stands still at a tuple; the time does not count as the operators' work."""
        self._step, self._behind = step, behind
        began = time.perf_counter()
        try:
            yield
        finally:
            self._idle += time.perf_counter() - began
            self._behind = False

    def end(self) -> None:
        """End control, however the task has ended."""
        if self.console is not None:
            self.console.close()
        self.agent.end()

    def instances(self) -> dict[int, str]:
        """The operators by the ids of their instances."""
        loaded = self.chain.loaded if self.chain is not None else []
        return {id(one.instance): name for one, name in zip(loaded, self._names, strict=False)}

    # --- what the agent asks ----------------------------------------------------------------------------------------

    def place(self) -> m.TuplePlace | None:
        """The tuple being processed, or the next one; None between batches."""
        if self._step is None or self.chain is None:
            return None
        stage, port, number = self._step
        number += int(self._behind)
        return m.TuplePlace(self._names[stage], self.task.epoch, self.chain.bucket or 0, port, number)

    def state(self, operator: str) -> tuple[int, bytes]:
        """The bucket and the state of an operator, pickled."""
        chain = self.chain
        if chain is None or chain.bucket is None:
            raise LookupError("no tuple has come yet")
        instance = chain.loaded[self._names.index(operator)].instance
        return chain.bucket, dumps(attributes(instance))

    def in_flight(self, operator: str, limit: int) -> tuple[list[bytes], int]:
        """Tuples of the current batch that the first operator has not processed; at the others none can wait."""
        chain = self.chain
        feed = chain.feed if chain is not None else None
        if chain is None or feed is None or operator != self._names[0]:
            return [], 0
        inside = self._step is not None and not self._behind and feed.taken > 0
        first = feed.taken - int(inside)
        rows = chain.rows_at([feed.rows[i] for i in range(first, min(first + limit, len(feed.rows)))])
        if feed.behind and chain.at_hand is not None:
            view, start = chain.at_hand
            start += len(feed.rows)
            rows = [*rows, *view.rows(start, start + min(limit - len(rows), feed.behind))]
        return [dumps(dict(r)) for r in rows], len(feed.rows) + feed.behind - first - len(rows)

    def switch(self, codes: Mapping[str, m.CodeVersion]) -> tuple[m.SwitchPoint, ...]:
        """Have operators switch to other code, each at its next tuple. Returns which tuple that is."""
        chain = self.chain
        if chain is None:
            raise LookupError("a function over batches of rows has no tuples to switch at")
        for code in codes.values():
            pickle.loads(code.body)  # raises here, before anything is ordered, if this worker cannot load it
        if chain.switches is None:
            chain.switches = ChainSwitches(self._names, self.task.stateful)
        points = []
        for name, code in codes.items():
            stage = self._names.index(name)
            chain.switches.order(stage, CodeSwitch(name, code.version, code.body, code.transfer))
            place = m.TuplePlace(name, self.task.epoch, chain.bucket or 0, 0, self._taken(stage))
            points.append(m.SwitchPoint(code.version, place))
        return tuple(points)

    def _taken(self, stage: int) -> int:
        chain = self.chain
        if chain is None or chain.bucket is None:
            return 0
        taken = sum(chain.taken[stage])
        if self._step is not None and self._step[0] == stage == 0:
            taken = max(taken, self._step[2])
        return taken

    def cannot(self, version: int, error: BaseException) -> NoReturn:
        """Report that an operator could not switch after all: the epoch is done again without that code."""
        self.client.send(m.Switched(version=version, error=f"{type(error).__name__}: {error}"))
        raise TaskAbandoned(f"An operator could not switch to other code: {error}")

    def breakpoints(self, standing: tuple[m.Breakpoint, ...]) -> None:
        """Set the breakpoints that are in force from now on."""
        if self.chain is not None and (standing or self.chain.breakpoints):
            if self.chain.breakpoints is None:
                self.chain.breakpoints = TaskBreakpoints(self, self.chain)
            self.chain.breakpoints.set(standing, self._names)

    def counted(self) -> list[m.TuplesCounted]:
        """The counts of breakpoints."""
        breakpoints = self.chain.breakpoints if self.chain is not None else None
        return [] if breakpoints is None else breakpoints.counted()

    def credit(self, breakpoint: str, upto: int) -> None:
        """Let a breakpoint count up to a number."""
        if self.chain is not None and self.chain.breakpoints is not None:
            self.chain.breakpoints.credit(breakpoint, upto)

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many tuples each operator has taken and produced in this task."""
        chain = self.chain
        return {} if chain is None else {n: chain.counts(i) for i, n in enumerate(self._names)}

    def figures(self) -> dict[str, m.Figures]:
        """Figures of each operator. Called on the client's thread, so it only reads."""
        chain = self.chain
        if chain is None or chain.bucket is None:
            return {}
        feed = chain.feed
        busy = time.perf_counter() - self._began - max(self._idle, 0.0)
        figures = {}
        for i, name in enumerate(self._names):
            taken, produced = chain.counts(i)
            queue = 0
            if i == 0 and feed is not None:
                taken = max(taken, chain.passed[i][0] + feed.before + feed.taken)
                queue = feed.left + feed.behind
            loaded = chain.loaded[i]
            size = loaded.full_bytes + loaded.delta_bytes
            figures[name] = m.Figures(taken, produced, busy, queue, loaded.capture.entries(), size)
        return figures
