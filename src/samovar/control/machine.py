"""The run's state machine: an event in, instructions out. No clock, no threads, no input or output.

Handling an event changes what is wanted; `run_state.py` then returns the instructions that make up the difference
between what is wanted and what workers were ordered and did. So any number of wishes can stand at once: a pause while a
tuple is held, a modification while paused, a worker that vanishes in between.

Guarantees:

- Every command is answered or refused exactly once, given that the engine reports each epoch's end, that workers
  answer or vanish, and that `PatienceEnded` comes for a command that waits too long.
- No worker is ordered to go on while a pause, a held tuple or a barrier of a modification stands.
- A worker is sent a version of an operator's code at most once per connection and task, and ignores a version it has.
- What does not fit the state is refused with the story that led there; a refused command changes nothing.

Not promised: that a worker whose connection broke stops. It keeps to its last order until it is back or vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.state.breakpoint_registry import ActiveBreakpoint
from samovar.control.state.code_versions import Modification
from samovar.control.state.run_state import OTHER_CODE, RunState
from samovar.control.state.worker_roster import KnownWorker

__all__ = ["LET_ALIGN", "LET_END", "LET_FINISH", "Machine"]

LET_FINISH = 0.1
"""Seconds. An epoch without Python tasks that is expected to end within them is not cancelled by a direct pause: doing
it again would take longer than waiting, and nobody notices a wait of that length."""
LET_ALIGN = 2.0
"""Seconds that a pause at the epoch's end waits for it: the length that epochs aim at. One that has just begun and will
take longer is given up."""
CUTS = 2
"""Epochs that are given up in a run because they take too long: the third estimate would be no better."""
LET_END = 1.0
"""Seconds. An epoch that is expected to end within them is waited for by what comes into force between epochs; a longer
one is given up and done again, so that a modification is in force soon however long epochs are."""


class Machine(RunState):
    """The state machine of one run. For one thread at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers: dict[type, Callable[[Any], None]] = {
            e.PauseRequested: self._on_pause,
            e.ResumeRequested: self._on_resume,
            e.InspectRequested: self._on_question,
            e.InFlightRequested: self._on_question,
            e.FreezeRequested: lambda event: self._freezing.append(event.command),
            e.FreezeEnded: lambda event: self._frozen.discard(event.command),
            e.ModifyRequested: self._on_modify,
            e.DecisionMade: self._on_decision,
            e.BreakRequested: self._on_break,
            e.BreakTakenBack: self._on_break_taken_back,
            e.StopRequested: self._on_stop,
            e.PatienceEnded: self._on_patience_ended,
            e.Reported: self._on_report,
            e.WorkerDropped: self._on_dropped,
            e.WorkerVanished: lambda event: self._forget(event.worker),
            e.OperatorsCounted: self._on_counted,
            e.TasksCounted: self._on_tasks_counted,
            e.EpochBegun: self._on_begun,
            e.EpochDone: self._on_epoch_over,
            e.EpochGivenUp: self._on_epoch_over,
            e.RowHeld: self._on_row_held,
            e.BreakReached: self._on_break_reached,
            e.RunOver: self._on_ended,
            e.DriverRestarted: self._on_restarted,
        }
        self._reports: dict[type, Callable[[KnownWorker, Any], None]] = {
            m.Hello: self._hello,
            m.TaskBegun: self._task_begun,
            m.TaskEnded: self._task_ended,
            m.Stopped: self._did,
            m.WentOn: self._did,
            m.StateGiven: lambda member, given: self._asks.given(member.name, given),
            m.InFlightGiven: lambda member, given: self._asks.given(member.name, given),
            m.Switched: self._switched,
            m.Held: self._held,
            m.Reached: self._reached,
            m.Armed: lambda member, armed: self.breaks.armed(member.name, armed.breakpoints),
            m.TuplesCounted: lambda member, counted: self.breaks.count(member.name, counted),
            m.Bye: lambda member, _: self._forget(member.name),
        }

    # --- events -----------------------------------------------------------------------------------------------------

    def handle(self, event: e.Event, at: float | None = None) -> list[i.Instruction]:
        """What to do about an event, in this order. Raises CommandRefused for a report of the engine that contradicts
        the state.

        `at`: when it happened, in seconds of a clock that never goes back; without it the event's own time counts, if
        it has one.
        """
        self._out = []
        self._now = at if at is not None else getattr(event, "at", 0.0) or self._now
        if isinstance(event, e.RunCommand) and (self._ended or self._ending):
            self._late(event)
        else:
            self._handlers[type(event)](event)
            self._settle()  # after each event, whatever it changed: handlers only say what is wanted
        self.clock.stand(self._now, self._stands)
        # figures and signs of life come twice a second: the story would hold nothing else
        alive = isinstance(event, e.Reported) and isinstance(event.message, m.TaskProgress | m.Alive)
        if not alive and not isinstance(event, e.OperatorsCounted | e.TasksCounted):
            self._story.append(event.words)
        return self._out

    def _late(self, command: e.RunCommand) -> None:
        if isinstance(command, e.StopRequested):
            if self._ended:
                self._answer(command.command, "the run had ended")
            else:
                self._stopping.append(command.command)
        else:
            state = f"has {self._ended}" if self._ended else "is being stopped"
            self._refuse(command.command, f"Expected a run that goes on to {command.asks}; this one {state}.")

    # --- commands ---------------------------------------------------------------------------------------------------

    def _on_pause(self, event: e.PauseRequested) -> None:
        if self._pause == "direct" and event.mode == "aligned":
            self._refuse(
                event.command,
                "A pause at the epoch's end was asked for, but tuples in flight are stopped already.",
                "Resume first, or look at the last epoch's end, which is there at once.",
            )
            return
        if self._pause == "aligned" and event.mode == "direct" and not self._paused:
            for command in self._pausing:
                self._refuse(command, "A direct pause took the place of the one at the epoch's end.")
            self._pausing = []
        for command in self._resuming:
            self._answer(command, "paused again before everything went on")
        self._resuming = []
        if not (self._paused and self._pause):
            self._pause = event.mode
            self._paused = False
            left, may_lose = self._left, self.clock.may_lose(self._now)
            self._letting = (left is not None and left <= LET_FINISH) or not may_lose
            self._cut_native()  # it would be given up soon anyhow
            if event.mode == "aligned" and may_lose and left is not None and left > LET_ALIGN:
                self._cancel("a pause at its end would wait for long", "pause")
        self._pausing.append(event.command)

    @property
    def _left(self) -> float | None:
        """Seconds until the epoch will probably be over."""
        if self._epoch is None:
            return None
        by_tasks = None if self.workers.busy else self.clock.left(self._now)
        if self._epoch.expected is None:
            return by_tasks
        return max(self._epoch.expected - self.clock.worked(self._now), by_tasks or 0.0)

    def _on_resume(self, event: e.ResumeRequested) -> None:
        if self._pause is None:
            held = ", ".join(self.holds.open)
            self._refuse(
                event.command,
                f"Expected a paused run to resume, got one that is {self.state}.",
                f"Decide about what is held ({held}): retry, edit, skip or stop." if held else None,
            )
            return
        for command in self._pausing:
            self._refuse(command, "The pause was taken back before everything had stopped.")
        self._pause, self._paused, self._pausing, self._letting = None, False, [], False
        self.breaks.at.clear()
        self._resuming.append(event.command)

    def _on_question(self, event: e.InspectRequested | e.InFlightRequested) -> None:
        members = self.workers.running(event.operator)
        for worker, message in self._asks.ask(event, [w.name for w in members]):
            if self.workers.get(worker).connected:
                self._send(worker, message)

    def _on_modify(self, event: e.ModifyRequested) -> None:
        if self._modification is not None:
            self._refuse(
                event.command, "Another modification is not yet in force.", "Wait for it, then ask again."
            )
        elif not event.bodies and not event.native:
            self._refuse(event.command, "Expected operators to modify, got none.")
        elif self._complete:
            self._answer_late(event.command)
        else:
            modification = self._modification = Modification(event, self.codes)
            self._touched = True
            left, last = self._left, self._epoch is not None and self._epoch.last
            if last and not any(self.workers.running(name) for name in modification.codes):
                modification.put_off()  # no tuple would meet it, unless the epoch begins again
            if modification.at_epoch_end and (last or left is None or left > LET_END):
                self._cancel(OTHER_CODE)

    def _on_decision(self, event: e.DecisionMade) -> None:
        if event.hold not in self.holds.open:
            known = ", ".join(self.holds.open) or "none"
            self._refuse(event.command, f"No held tuple {event.hold!r}. Held tuples: {known}.")
            return
        if event.kind == "edit" and not event.row:
            self._refuse(
                event.command, "Expected the tuple to go on with, got none.", "Give row=..., or skip it."
            )
            return
        for effect in self.holds.decide(event.hold, event.kind, event.row):
            self._out.append(
                i.NoteDecision(effect.decision.hold, event.kind, effect.standing, effect.skip_all)
            )
            if effect.worker is not None and self.workers.get(effect.worker).connected:
                self._send(effect.worker, effect.decision)
            if effect.skip_all is not None:
                for member in self.workers.running(effect.skip_all.operator):
                    if member.connected:
                        self._send(member.name, effect.skip_all)
        self._answer(event.command, "takes effect on resume" if self._pause == "direct" else "")

    def _on_break(self, event: e.BreakRequested) -> None:
        breakpoint = event.breakpoint
        active = ActiveBreakpoint(breakpoint, event.limit, command=event.command)
        if breakpoint.counts and self.breaks.counted(active) >= event.limit:
            self._refuse(
                event.command,
                f"Expected a number of tuples still to come, got {event.limit:,}: '{breakpoint.operator}' has "
                f"{breakpoint.counts} {self.breaks.counted(active):,}.",
                "Go back to that moment instead: sv.open(run.recording).jump(...).",
            )
            return
        self.breaks.active[breakpoint.name] = active
        if not breakpoint.at_end:
            active.unarmed = {w.name for w in self.workers.running(breakpoint.operator)}
        self._send_breakpoints()

    def _on_break_taken_back(self, event: e.BreakTakenBack) -> None:
        if not self.breaks.remove(event.name):
            known = ", ".join(self.breaks.active) or "none"
            self._refuse(event.command, f"No breakpoint {event.name!r}. Breakpoints: {known}.")
            return
        self._send_breakpoints()
        self._answer(event.command)

    def _on_stop(self, event: e.StopRequested) -> None:
        self._drop_pending("The run is being stopped.")
        self._stopping.append(event.command)
        self._ending = True
        self._cancel(event.asks)
        self._out.append(i.EndRun(event.words))

    def _on_patience_ended(self, event: e.PatienceEnded) -> None:
        name = event.command
        if name in self._pausing:
            at_once = self._pause == "direct" and not self._letting
            if at_once and self._epoch is not None and not self._cancelling:
                self._cancel("a worker did not stop in time", "pause")
            else:
                self._pausing.remove(name)
                self._answer(name, "it will be paused when the epoch is over")
        elif name in self._freezing:
            self._freezing.remove(name)
            self._refuse(name, "Not every worker stopped in time for a look at all of them.")
        elif name in self._resuming:
            self._resuming.remove(name)
            self._answer(name, "not every worker has confirmed that it goes on")
        elif self._modification is not None and self._modification.command == name:
            if self._epoch is not None and self._epoch.last and (self._cancelling or not self._at_work):
                pass  # whether it comes too late is known when the epoch is over
            elif self._cancelling or (self._modification.at_epoch_end and self._epoch is None):
                self._modification.command = ""
                self._answer(name, "it will be in force in the next epoch")
            elif self._modification.at_epoch_end:
                self._cancel(OTHER_CODE)
            elif not self._modification.barrier:
                self._modification.command = ""
                self._answer(name, "some workers will switch at their next tuple")
            else:
                self._modification.at_epoch_end = True
                self._cancel("a worker did not take other code in time")
        elif name in self.breaks.commands():
            self.breaks.answered(name)
            self._answer(name, "not every worker has confirmed the breakpoint")
        elif name in self._stopping:
            self._stopping.remove(name)
            self._answer(name, "it is being stopped")
        else:
            self._out += self._asks.give_up(name, self.state)

    @property
    def _at_work(self) -> bool:
        """Whether the modification can still be met by a tuple of the epoch under way: it waits for workers."""
        pending = self._modification
        return pending is not None and (bool(pending.waiting) or pending.phase == "asked")

    # --- workers ----------------------------------------------------------------------------------------------------

    def _on_report(self, event: e.Reported) -> None:
        handler = self._reports.get(type(event.message))
        if handler is not None:
            handler(self.workers.get(event.worker), event.message)

    def _on_dropped(self, event: e.WorkerDropped) -> None:
        if event.worker in self.workers:
            self.workers.get(event.worker).connected = False

    def _forget(self, worker: str) -> None:
        self.workers.drop(worker)
        self.holds.forget_worker(worker)
        self.breaks.forget(worker)
        self._asks.without(worker)
        if self._modification is not None:
            self._modification.waiting.discard(worker)

    def _hello(self, member: KnownWorker, hello: m.Hello) -> None:
        member.connected = True
        if self._ended:
            self._send(member.name, m.Bye(why="the run has ended"))
        elif hello.task is None:
            self._task_over(member)
        else:
            if hello.held is not None and self._counts(hello.task):
                self._take_hold(member, hello.held)  # first: the orders depend on it
            if self._admit(member, hello.task, hello.switches):
                self._catch_up(member, hello)

    def _catch_up(self, member: KnownWorker, hello: m.Hello) -> None:
        """Take from a Hello what happened while there was no connection, and repeat the questions of that time."""
        member.done = member.done or hello.stopped is not None
        for version in sorted({s.version for s in hello.switches}):
            switches = tuple(s for s in hello.switches if s.version == version)
            self._switched(member, m.Switched(version=version, switches=switches))
        for message in self._asks.again(member.name):
            self._send(member.name, message)

    def _task_begun(self, member: KnownWorker, task: m.TaskBegun) -> None:
        if member.task is not None:
            if member.task.task == task.task:
                return  # the Hello of the worker had it already
            self._task_over(member)
        self._admit(member, task, ())

    def _admit(self, member: KnownWorker, task: m.TaskBegun, switches: tuple[m.SwitchPoint, ...]) -> bool:
        """Send the orders that stand to a worker that begins a task or is back; False: its task does not count."""
        if not self._counts(task):
            self._task_over(member)
            self._send(member.name, m.Abandon(task=task.task, why="this attempt at the epoch does not count"))
            return False
        member.begin(task, switches)
        if self._seen.setdefault((task.operators, task.partition), task.task) != task.task:
            self.repeated = True
        codes = self.codes.newer(member)
        for operator, newer in codes.items():
            member.versions[operator] = newer[-1].version
        member.stop = self._wants_stop
        member.done = not member.stop
        if member.stop:
            self._order += 1
            member.order = self._order
        skip_all, decisions = self.holds.standing(task.operators, task.epoch)
        stop = member.order if member.stop else None
        breakpoints = self.breaks.of(task.operators)
        self.breaks.expect(member.name, task.operators)
        self._send(
            member.name,
            m.Orders(
                task=task.task,
                stop=stop,
                codes=codes,
                skip_all=skip_all,
                decisions=decisions,
                breakpoints=breakpoints,
            ),
        )
        return True

    def _counts(self, task: m.TaskBegun) -> bool:
        """Whether a task is part of the attempt that is under way."""
        going = self._epoch is not None and not self._cancelling and not self._ending
        return going and self._epoch is not None and task.attempt == self._epoch.attempt

    def _task_ended(self, member: KnownWorker, ended: m.TaskEnded) -> None:
        if member.task is not None and member.task.task == ended.task:
            self.breaks.ended(ended.counts)
            self._task_over(member)

    def _did(self, member: KnownWorker, report: m.Stopped | m.WentOn) -> None:
        is_current = member.task is not None and report.order == member.order
        if is_current and member.stop == isinstance(report, m.Stopped):
            member.done = True

    def _switched(self, member: KnownWorker, report: m.Switched) -> None:
        if member.task is None or self._epoch is None or self._cancelling:
            return
        if report.error:
            self._withdraw(report)
            return
        if report.version not in member.noted:
            member.noted.add(report.version)
            at = self._epoch
            self._out.append(
                i.NoteSwitched(at.epoch, at.attempt, member.name, report.version, report.switches)
            )
        self._touched = True
        if self._modification is not None and self._modification.version == report.version:
            self._modification.switched = True
            self._modification.waiting.discard(member.name)

    def _withdraw(self, report: m.Switched) -> None:
        """A worker could not switch: the epoch is done again without that version."""
        self._use(self.codes.before(report.version))
        modification, self._modification = self._modification, None
        if modification is not None and modification.command:
            self._refuse(
                modification.command,
                f"A worker could not switch to the new code, and the old code is in force again: {report.error}",
            )
        self._cancel(f"version {report.version} could not be put into force")

    def _held(self, member: KnownWorker, held: m.Held) -> None:
        if member.task is not None:
            self._take_hold(member, held)

    def _take_hold(self, member: KnownWorker, held: m.Held) -> None:
        known = held.hold in self.holds.open
        decision = self.holds.add(held, member.name)
        if decision is not None:
            self._send(member.name, decision)
        elif not known:
            self._out.append(i.NoteHeld(held))

    def _reached(self, member: KnownWorker, report: m.Reached) -> None:
        if member.task is not None and self.breaks.reach(report):
            self._break_off()
        self._send(member.name, m.ReachedNoted(breakpoint=report.breakpoint))

    # --- the engine -------------------------------------------------------------------------------------------------

    def _on_begun(self, event: e.EpochBegun) -> None:
        if self._epoch is not None:
            self._impossible(
                f"Epoch {event.epoch} cannot begin while epoch {self._epoch.epoch} is under way."
            )
        if not self._gate or self._ended:
            self._impossible(f"Epoch {event.epoch} cannot begin now: the run is {self.state}.")
        self._epoch = event
        self._number = event.epoch
        self._touched = False
        self.clock.begin(event, self._now)
        self.breaks.begin(event.counts or self.breaks.totals)
        self._seen, self.repeated = {}, False

    def _on_epoch_over(self, event: e.EpochDone | e.EpochGivenUp) -> None:
        if self._epoch is None or self._epoch.epoch != event.epoch:
            now = "none" if self._epoch is None else f"epoch {self._epoch.epoch}"
            self._impossible(f"Epoch {event.epoch} cannot be over: {now} is under way.")
        last = self._epoch.last
        if isinstance(event, e.EpochDone):
            self._number = event.epoch + 1
            self.clock.committed(self._now)
        self._leave_epoch("the epoch is over")
        committed = isinstance(event, e.EpochDone) and event.counts
        self.breaks.begin(committed or self.breaks.totals)
        if isinstance(event, e.EpochDone) and last:
            self._complete = True
            modification = self._modification
            if modification is not None and not modification.switched:
                self._modification = None
                if modification.command:
                    self._answer_late(modification.command)

    def _on_counted(self, event: e.OperatorsCounted) -> None:
        self.clock.count(self._now, event.taken)
        if self._pause is None:
            self._cut(self.clock.overrun(self._now))

    def _on_tasks_counted(self, event: e.TasksCounted) -> None:
        if event.attempt == self.counted_by_tasks:
            self.clock.count_tasks(self._now, event.stages)
            self._cut_native()

    @property
    def counted_by_tasks(self) -> str | None:
        """The attempt under way, if only Spark's tasks tell how far it is, and it could be given up."""
        epoch = self._epoch
        if epoch is None or epoch.aim is None or epoch.task_seconds is None:
            return None
        return None if self._cancelling or self.workers.busy else epoch.attempt

    def _cut_native(self) -> None:
        """Give up an epoch in which only Spark works if it takes too long: also where a pause waits for its end."""
        if self.counted_by_tasks is not None:
            self._cut(self.clock.native_overrun(self._now))

    def _cut(self, overrun: tuple[float, float | None] | None) -> None:
        """Give up the epoch under way; for `overrun` see `EpochClock`. Not while somebody has a hand in it."""
        wishes = self.holds.open or self._freezing or self._frozen or self._modification
        if overrun is None or self._epoch is None or wishes or self._touched or self._cuts == CUTS:
            return
        if not self._cancelling:
            self._cuts += 1
            self._cancel("it takes too long", "overrun", overrun[1])

    def _on_row_held(self, event: e.RowHeld) -> None:
        if self._epoch is not None:
            self._impossible("A row can be held only after its epoch was given up.")
        if self.holds.add(event.held, None) is None:
            self._out.append(i.NoteHeld(event.held))

    def _on_break_reached(self, event: e.BreakReached) -> None:
        if self.breaks.reach(event.reached):
            self._break_off()

    def _on_ended(self, event: e.RunOver) -> None:
        stops, self._stopping = self._stopping, []
        self._drop_pending("The run has ended.")
        self._leave_epoch("the run has ended")
        self.holds.forget_worker(None)
        self._ended = "failed" if event.error else "ended"
        for command in stops:
            self._answer(command)
        for member in self.workers:
            if member.connected:
                self._send(member.name, m.Bye(why="the run has ended"))

    def _on_restarted(self, event: e.DriverRestarted) -> None:
        if self._epoch is not None or len(self._story):
            self._impossible("A run can be continued only before anything else happens in this process.")
        self.holds.skip_all.extend(event.skip_all)
        self.holds.decisions.update({d.place: d for d in event.decisions})
