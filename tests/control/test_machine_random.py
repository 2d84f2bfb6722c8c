"""The state machine against random people, workers and engines: nothing deadlocks, every command is answered once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.machine import Machine

NAMES = ("A", "B", "C")
OPERATORS = ("X", "Y")
STATES = {"running", "pausing", "paused", "resuming", "holding", "modifying", "stopping", "ended", "failed"}


@dataclass
class Worker:
    """A worker as `agent.py` has it, without threads and sockets."""

    name: str
    connected: bool = True
    inbox: deque[m.ToWorker] = field(default_factory=deque)
    outbox: deque[m.FromWorker] = field(default_factory=deque)
    """What it said and the machine has not heard yet."""
    task: m.TaskBegun | None = None
    has_orders: bool = False
    order: int | None = None
    held: m.Held | None = None
    versions: dict[str, int] = field(default_factory=dict)
    switches: tuple[m.SwitchPoint, ...] = ()
    applied: list[tuple[str, int]] = field(default_factory=list)
    number: int = 0

    @property
    def can_work(self) -> bool:
        return self.task is not None and self.has_orders and self.order is None and self.held is None

    def begin(self, task: m.TaskBegun) -> m.TaskBegun:
        self.end()
        self.task, self.versions = task, dict(task.versions)
        return task

    def end(self) -> None:
        self.task, self.order, self.held, self.switches, self.has_orders = None, None, None, (), False
        self.versions, self.applied = {}, []

    def hello(self) -> m.Hello:
        return m.Hello(
            worker=self.name,
            pid=1,
            task=self.task,
            stopped=self.order,
            held=self.held,
            switches=self.switches,
        )

    def read(self, fails: bool) -> list[m.FromWorker]:
        """Obey one message; gives what the worker says to it."""
        message = self.inbox.popleft()
        said: list[m.FromWorker] = []
        if self.task is None:
            return said
        if isinstance(message, m.PauseOrder):
            self.order = message.order
            said.append(m.Stopped(order=message.order))
        elif isinstance(message, m.ResumeOrder):
            self.order = None
            said.append(m.WentOn(order=message.order))
        elif isinstance(message, m.Orders) and message.task == self.task.task:
            self.has_orders = True
            for version in sorted({c.version for codes in message.codes.values() for c in codes}):
                each = {n: c for n, codes in message.codes.items() for c in codes if c.version == version}
                said += self.switch(version, each, fails)
            if message.stop is not None:
                self.order = message.stop
                said.append(m.Stopped(order=message.stop))
            elif self.order is not None:
                said.append(m.WentOn(order=self.order))
                self.order = None
        elif isinstance(message, m.SwitchOrder):
            said += self.switch(message.version, message.codes, fails)
        elif isinstance(message, m.Decision) and self.held is not None and self.held.hold == message.hold:
            self.held = None
        elif isinstance(message, m.StateWanted):
            said.append(m.StateGiven(request=message.request, operator=message.operator))
        elif isinstance(message, m.InFlightWanted):
            said.append(m.InFlightGiven(request=message.request, operator=message.operator))
        elif isinstance(message, m.Abandon) and message.task == self.task.task:
            said.append(m.TaskEnded(task=self.task.task))
            self.end()
        return said

    def switch(self, version: int, codes: dict[str, m.CodeVersion], fails: bool) -> list[m.FromWorker]:
        new = {n: c for n, c in codes.items() if c.version > self.versions.get(n, 0)}
        if not new:
            return []
        if fails:
            return [m.Switched(version=version, error="KeyError")]
        for name, code in new.items():
            assert (name, code.version) not in self.applied, "a version was applied twice"
            self.applied.append((name, code.version))
            self.versions[name] = code.version
        switches = tuple(m.SwitchPoint(version, m.TuplePlace(n, 0, 0, 0, self.number)) for n in new)
        self.switches += switches
        return [m.Switched(version=version, switches=switches)]


SELDOM = st.integers(0, 4).map(lambda n: n == 4)


class Runs(RuleBasedStateMachine):
    """People, workers and an engine that do anything they could do, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine()
        self.workers = {n: Worker(n, connected=False) for n in NAMES}
        self.epoch: e.EpochBegun | None = None
        self.number = 0
        self.attempt = 0
        self.gate = True
        self.cancelled = False
        self.ending = False
        self.codes: dict[str, tuple[m.CodeVersion, ...]] = {}
        self.open: set[str] = set()
        self.count = 0
        self.looks: list[str] = []
        self.over = False
        self.time = 1.0
        self.counted = 0
        self.cuts = 0

    # --- the machine's side -----------------------------------------------------------------------------------------

    def feed(self, event: e.Event) -> None:
        wishes = (
            self.machine.mode or self.machine.holds.open or self.machine.state == "modifying" or self.looks
        )
        for order in self.machine.handle(event, self.time):
            if isinstance(order, i.Send):
                goes = isinstance(order.message, m.ResumeOrder) or (
                    isinstance(order.message, m.Orders) and order.message.stop is None
                )
                frozen = any(look not in self.open for look in self.looks) and not self.ending
                must_stop = self.machine.mode == "direct" or bool(self.machine.holds.open) or frozen
                assert not (goes and must_stop), "told to go on while paused or held"
                for worker in self.workers.values():
                    if worker.name == order.worker and worker.connected:
                        worker.inbox.append(order.message)
            elif isinstance(order, i.Gate):
                self.gate = order.open
            elif isinstance(order, i.CommandAnswer | i.Refuse):
                assert order.command in self.open, "answered twice, or never asked"
                self.open.discard(order.command)
                if isinstance(order, i.Refuse) and order.command in self.looks:
                    self.looks.remove(order.command)
            elif isinstance(order, i.CancelEpoch):
                assert self.epoch is not None
                self.cancelled = True
                assert not order.shorter or (self.epoch.aim is not None and order.cause != "other")
                if order.cause == "overrun":
                    self.cuts += 1
                    assert self.cuts <= 2, "cut once more"
                    assert not wishes, "cut while somebody has a hand in it"
            elif isinstance(order, i.UseCode):
                self.codes = dict(order.codes)
            elif isinstance(order, i.EndRun):
                self.ending = True

    def ask(self, kind: type[e.RunCommand], /, **arguments: Any) -> None:
        self.count += 1
        name = f"c{self.count}"
        self.open.add(name)
        self.feed(kind(command=name, **arguments))

    def say(self, worker: Worker, message: m.FromWorker) -> None:
        if worker.connected:
            worker.outbox.append(message)

    def hear(self, worker: Worker) -> None:
        if worker.outbox:
            self.feed(e.Reported(worker=worker.name, message=worker.outbox.popleft()))

    # --- the engine -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.gate and self.epoch is None and not self.over and not self.ending)
    @rule(expected=st.sampled_from([None, 0.1, 9.0]), aim=st.sampled_from([None, 2.0]))
    def epoch_begins(self, expected: float | None, aim: float | None = 2.0) -> None:
        self.attempt += 1
        rows = {"X": 1000} if self.attempt % 2 else {}
        self.counted = 0
        self.epoch = e.EpochBegun(
            epoch=self.number, attempt=f"t{self.attempt}", expected=expected, aim=aim, rows=rows
        )
        self.feed(self.epoch)

    @rule(seconds=st.sampled_from([0.01, 0.5, 2.0, 5.0]))
    def time_passes(self, seconds: float) -> None:
        self.time += seconds

    @precondition(lambda self: self.epoch and any(w.can_work for w in self.workers.values()))
    @rule(tuples=st.sampled_from([1, 1, 100]), reports=st.integers(1, 9))
    def operators_are_counted(self, tuples: int, reports: int) -> None:
        for _ in range(reports):
            self.time += 1.0
            self.counted += tuples
            self.feed(e.OperatorsCounted(taken={"X": self.counted}))

    def _epoch_over(self) -> None:
        self.epoch, self.cancelled = None, False

    @precondition(lambda self: self.epoch and not any(w.task for w in self.workers.values()))
    @rule()
    def epoch_commits(self) -> None:
        number, self.number = self.number, self.number + 1
        self._epoch_over()
        self.feed(e.EpochDone(epoch=number))

    @precondition(lambda self: self.epoch and self.cancelled)
    @rule()
    def epoch_is_cancelled(self) -> None:
        self._epoch_over()
        self.feed(e.EpochGivenUp(epoch=self.number, why="cancelled"))

    @precondition(lambda self: self.epoch)
    @rule(really=SELDOM, row=st.booleans())
    def epoch_is_lost(self, really: bool, row: bool) -> None:
        if not really:
            return
        self._epoch_over()
        self.feed(e.EpochGivenUp(epoch=self.number, why="lost"))
        if row:
            self.count += 1
            self.feed(e.RowHeld(held=self._held(f"row{self.count}")))

    @precondition(lambda self: self.ending and not self.over and self.epoch is None)
    @rule(error=st.sampled_from(["", "broken"]))
    def run_ends(self, error: str) -> None:
        self.over = True
        self.feed(e.RunOver(error=error))

    # --- workers ----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.epoch)
    @rule(
        name=st.sampled_from(NAMES),
        operators=st.sampled_from([("X",), ("X", "Y"), ("Y",)]),
        late=st.booleans(),
    )
    def a_task_begins(self, name: str, operators: tuple[str, ...], late: bool) -> None:
        worker = self.workers[name]
        if worker.task is not None or self.epoch is None:
            return
        versions = {n: c[-1].version for n, c in self.codes.items() if not late and c}
        self.count += 1
        task = m.TaskBegun(
            task=f"task{self.count}",
            run="r",
            epoch=self.number,
            attempt=self.epoch.attempt,
            operators=operators,
            versions=versions,
        )
        worker.begin(task)
        if not worker.connected:
            worker.connected = True
            self.say(worker, worker.hello())
        self.say(worker, task)

    @initialize(operators=st.sampled_from([("X",), ("X", "Y")]))
    def everything_works(self, operators: tuple[str, ...]) -> None:
        self.the_engine_goes_on(operators)
        self.everybody_reads()

    @rule(operators=st.sampled_from([("X",), ("X", "Y"), ("Y",)]))
    def the_engine_goes_on(self, operators: tuple[str, ...]) -> None:
        """An epoch with a task in every worker, as far as it may begin."""
        if self.gate and self.epoch is None and not self.over and not self.ending:
            self.epoch_begins(None)
        if self.epoch is not None:
            for name in NAMES:
                self.a_task_begins(name, operators, late=False)

    @rule()
    def everybody_reads(self) -> None:
        for slot, worker in self.workers.items():
            while worker.inbox or worker.outbox:
                self.hear(worker)
                self.a_worker_reads(slot, 1)

    @rule(slot=st.sampled_from(NAMES))
    def a_word_arrives(self, slot: str) -> None:
        self.hear(self.workers[slot])

    @rule(name=st.sampled_from(NAMES), fails=st.integers(0, 9))
    def a_worker_reads(self, name: str, fails: int) -> None:
        worker = self.workers[name]
        if worker.inbox and worker.connected:
            for said in worker.read(fails == 0):
                self.say(worker, said)

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(["tuple", "raise", "end"]))
    def a_worker_works(self, name: str, what: str) -> None:
        worker = self.workers[name]
        if not worker.can_work or worker.task is None:
            return
        worker.number += 1
        if what == "raise":
            self.count += 1
            worker.held = self._held(f"h{self.count}", worker.task.operators[0], worker.number)
            self.say(worker, worker.held)
        elif what == "end":
            task = worker.task.task
            worker.end()
            self.say(worker, m.TaskEnded(task=task))

    @precondition(lambda self: any(w.can_work for w in self.workers.values()))
    @rule()
    def some_workers_raise(self) -> None:
        """Two at most, before either knows of the other."""
        for slot in [n for n, w in self.workers.items() if w.can_work][:2]:
            self.a_worker_works(slot, "raise")

    def _held(self, hold: str, operator: str = "F", number: int = 0) -> m.Held:
        place = m.TuplePlace(operator, self.number, 0, 0, number)
        return m.Held(hold=hold, place=place, error="E", like=f"like{number % 2}")

    @rule(name=st.sampled_from(NAMES))
    def a_connection_breaks(self, name: str) -> None:
        worker = self.workers[name]
        if worker.connected and worker.task is not None:
            worker.connected = False
            worker.inbox.clear()
            worker.outbox.clear()
            self.feed(e.WorkerDropped(worker=worker.name))

    @rule(name=st.sampled_from(NAMES))
    def a_worker_is_back(self, name: str) -> None:
        worker = self.workers[name]
        if not worker.connected:
            worker.connected = True
            self.say(worker, worker.hello())

    @rule(name=st.sampled_from(NAMES), really=SELDOM)
    def a_worker_dies(self, name: str, really: bool) -> None:
        if not really:
            return
        self.count += 1
        worker, self.workers[name] = self.workers[name], Worker(f"{name}{self.count}", connected=False)
        if worker.connected:
            self.feed(e.WorkerDropped(worker=worker.name))
        self.feed(e.WorkerVanished(worker=worker.name))

    # --- people -----------------------------------------------------------------------------------------------------

    @rule(mode=st.sampled_from(["direct", "direct", "aligned"]))
    def somebody_pauses(self, mode: e.PauseMode) -> None:
        self.ask(e.PauseRequested, mode=mode)

    @precondition(lambda self: self.machine.mode is not None)
    @rule()
    def somebody_resumes(self) -> None:
        self.ask(e.ResumeRequested)

    @rule(
        operator=st.sampled_from(OPERATORS), kind=st.sampled_from([e.InspectRequested, e.InFlightRequested])
    )
    def somebody_looks(self, operator: str, kind: type[e.RunCommand]) -> None:
        self.ask(kind, operator=operator)

    @rule(
        names=st.sampled_from([("X",), ("Y",), ("X", "Y"), ()]),
        native=st.sampled_from([(), (), ("F",)]),
        consistency=st.sampled_from(["strict", "backward", "none"]),
    )
    def somebody_modifies(self, names: tuple[str, ...], native: tuple[str, ...], consistency: str) -> None:
        bodies = dict.fromkeys(names, (b"code", b""))
        self.ask(e.ModifyRequested, bodies=bodies, native=native, consistency=consistency)

    @rule()
    def somebody_wants_a_moment(self) -> None:
        self.looks.append(f"c{self.count + 1}")
        self.ask(e.FreezeRequested)

    @rule()
    def looks_are_over(self) -> None:
        for look in [x for x in self.looks if x not in self.open]:
            self.looks.remove(look)
            self.feed(e.FreezeEnded(command=look))

    @rule(really=SELDOM)
    def somebody_asks_for_what_cannot_be(self, really: bool) -> None:
        if really:
            self.ask(e.ResumeRequested)
            self.ask(e.DecisionMade, hold="nothing", kind="skip")

    @precondition(lambda self: self.machine.holds.open)
    @rule(kind=st.sampled_from(["retry", "edit", "skip", "skip-all"]), row=st.sampled_from([b"", b"row"]))
    def somebody_decides(self, kind: m.DecisionKind, row: bytes) -> None:
        hold = next(iter(self.machine.holds.open))
        self.ask(e.DecisionMade, hold=hold, kind=kind, row=row)

    @rule(really=st.integers(0, 19))
    def somebody_stops(self, really: int) -> None:
        if really == 19:
            self.ask(e.StopRequested)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def patience_ends(self, data: st.DataObject) -> None:
        self.feed(e.PatienceEnded(command=data.draw(st.sampled_from(sorted(self.open)))))

    # --- what holds -------------------------------------------------------------------------------------------------

    @invariant()
    def every_open_command_is_pending(self) -> None:
        assert set(self.machine.pending) == self.open
        assert self.machine.state in STATES

    @invariant()
    def paused_means_nobody_goes_on(self) -> None:
        if self.machine.state == "paused" and self.machine.mode == "direct":
            for worker in self.workers.values():
                known = worker.connected and worker.task is not None and self._is_current(worker)
                told = any(isinstance(x, m.PauseOrder | m.Orders | m.Abandon) for x in worker.inbox)
                comes = any(isinstance(x, m.TaskBegun | m.Hello) for x in worker.outbox)
                assert not (known and worker.can_work) or told or comes

    def _is_current(self, worker: Worker) -> bool:
        return (
            self.epoch is not None and worker.task is not None and worker.task.attempt == self.epoch.attempt
        )

    def settle(self) -> None:
        """Everybody does what he was told, until there is nothing left to do."""
        for name in NAMES:
            self.a_worker_is_back(name)
        for _ in range(1000):
            self.everybody_reads()
            if self.cancelled and self.epoch is not None:
                self.epoch_is_cancelled()
            elif not any(w.inbox or w.outbox for w in self.workers.values()):
                return
        raise AssertionError("workers and machine never come to rest")

    def teardown(self) -> None:
        """From wherever the run is, it can be brought to go on, and no command is left without an answer."""
        self.settle()
        if not self.over and not self.ending:
            if self.machine.mode is not None:
                self.ask(e.ResumeRequested)
            self.settle()
            self.looks_are_over()
            self.settle()
            while self.machine.holds.open:
                self.somebody_decides("skip", b"")
                self.settle()
            late = self.machine.state == "modifying"  # waits for the epoch's end, with at most one command
            assert len(self.open) <= late, (self.open, self.machine.state, self.machine.story)
            for slot, worker in self.workers.items():
                if worker.task is not None:
                    assert worker.can_work, (worker, self.machine.state, self.machine.story)
                    self.a_worker_works(slot, "end")
            self.settle()
            if self.epoch is not None:
                self.epoch_commits()
            assert self.machine.state == "running", (self.machine.state, self.machine.story)
            assert self.gate
            assert not self.open
            self.ask(e.StopRequested)
        if not self.over:
            if self.epoch is not None:
                self.epoch_is_cancelled()
            self.run_ends("")
        assert not self.open
        assert self.machine.state in ("ended", "failed")


Runs.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestRuns = Runs.TestCase
