"""The wanted and the actual state of a run: the data of `machine.py`, and how the actual state follows the wanted one.

`_settle` compares what is wanted with what was ordered and done, and adds the instructions that make up the difference.
It is called after each event; each wish stands for itself, so any number of them can stand at once.
"""

from __future__ import annotations

from collections import deque
from typing import NoReturn

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.state.breakpoint_registry import BreakpointRegistry
from samovar.control.state.code_versions import CodeVersions, Modification
from samovar.control.state.epoch_clock import EpochClock
from samovar.control.state.held_tuples import HeldTuples
from samovar.control.state.open_questions import OpenQuestions
from samovar.control.state.worker_roster import KnownWorker, WorkerRoster
from samovar.errors import CommandRefused

__all__ = ["OTHER_CODE", "RunState"]

OTHER_CODE = "other code from the epoch's start on"
"""Why an epoch is given up for a modification."""
STORY = 8
"""Events that make up a story: enough to see what led to a refusal, few enough to read."""


class RunState:
    """The state of one run, without the events that change it."""

    def __init__(self) -> None:
        self.workers = WorkerRoster()
        self.holds = HeldTuples()
        self.codes = CodeVersions()
        self.breaks = BreakpointRegistry()
        self.clock = EpochClock()
        self._now = 0.0
        self._asks = OpenQuestions()
        self._epoch: e.EpochBegun | None = None
        self._number: int | None = None
        """The epoch under way, or the next one; None before the first."""
        self._complete = False
        """Whether the last epoch of the run is committed."""
        self._touched = False
        """Whether somebody gave the epoch under way other code, so that what was told of it would change with it."""
        self._cuts = 0
        self._seen: dict[tuple[tuple[str, ...], int], str] = {}
        self.repeated = False
        """Whether part of the epoch under way was computed twice, by a task for the same operators and partition."""
        self._cancelling = False
        self._letting = False
        self._pause: e.PauseMode | None = None
        self._paused = False
        self._pausing: list[str] = []
        self._resuming: list[str] = []
        self._freezing: list[str] = []
        self._frozen: set[str] = set()
        self._modification: Modification | None = None
        self._stopping: list[str] = []
        self._ending = False
        self._ended = ""
        self._gate = True
        self._order = 0
        self._story: deque[str] = deque(maxlen=STORY)
        self._out: list[i.Instruction] = []

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """running, pausing, paused, resuming, holding, modifying, stopping, ended or failed: what matters most now."""
        if self._ended or self._ending:
            return self._ended or "stopping"
        if self._pause and self._paused:
            return "paused"
        if self._modification is not None and self._modification.barrier:
            return "modifying"
        if self.holds.open:
            return "holding"
        if self._pause:
            return "pausing"
        if self._resuming:
            return "resuming"
        return "modifying" if self._modification is not None else "running"

    @property
    def mode(self) -> e.PauseMode | None:
        """The kind of pause that stands or is asked for."""
        return self._pause

    @property
    def epoch(self) -> e.EpochBegun | None:
        """The attempt that is under way."""
        return self._epoch

    @property
    def story(self) -> tuple[str, ...]:
        """The last events in words."""
        return tuple(self._story)

    @property
    def pending(self) -> tuple[str, ...]:
        """Commands that have not been answered."""
        modifying = self._modification.command if self._modification is not None else ""
        arming = self.breaks.commands()
        asked = (*self._pausing, *self._resuming, *self._freezing, *self._asks.commands)
        return (*asked, *arming, *([modifying] if modifying else ()), *self._stopping)

    # --- what comes out ---------------------------------------------------------------------------------------------

    def _refuse(self, command: str, message: str, hint: str | None = None) -> None:
        error = CommandRefused(message, state=self.state, story=self._story, hint=hint)
        self._out.append(i.Refuse(command, error))

    def _answer(self, command: str, note: str = "") -> None:
        self._out.append(i.CommandAnswer(command, self.state, note))

    def _answer_late(self, command: str) -> None:
        note = "the last epoch was committed before"
        self._out.append(i.CommandAnswer(command, self.state, note, late=True))

    def _answer_modified(self, modification: Modification) -> None:
        """A modification is in force: since the next epoch, or inside the one under way."""
        answer = i.CommandAnswer(
            modification.command, self.state, epoch=modification.epoch, taken=modification.taken
        )
        self._out.append(answer)

    def _impossible(self, message: str) -> NoReturn:
        raise CommandRefused(message, state=self.state, story=self._story)

    def _send(self, worker: str, message: m.ToWorker) -> None:
        self._out.append(i.Send(worker, message))

    def _drop_pending(self, why: str) -> None:
        for command in self.pending:
            if command not in self._stopping:
                self._refuse(command, why)
        for command in self.breaks.commands():
            self.breaks.answered(command)
        self._pausing, self._resuming, self._modification = [], [], None
        self._freezing, self._frozen = [], set()
        self._asks = OpenQuestions()
        self._pause, self._paused, self._letting = None, False, False

    # --- ends of tasks and epochs -----------------------------------------------------------------------------------

    def _task_over(self, member: KnownWorker) -> None:
        member.end()
        self.holds.forget_worker(member.name)
        self.breaks.forget(member.name)
        self._asks.without(member.name)
        if self._modification is not None:
            self._modification.waiting.discard(member.name)

    def _leave_epoch(self, why: str) -> None:
        self._epoch, self._cancelling, self._letting = None, False, False
        self._abandon_tasks(why)
        self.holds.forget_attempt()

    def _cancel(self, why: str, cause: i.CancelCause = "other", expected: float | None = None) -> None:
        """Give up the epoch that is under way; its tasks end at their next tuple."""
        if self._epoch is None or self._cancelling:
            return
        self._cancelling = True
        self._abandon_tasks(why)
        worked = self.clock.worked(self._now)
        if cause == "pause":
            self.clock.lose(self._now)
        # a decision about a tuple names its place in this epoch: in a shorter one it may lie behind the end
        decided = any(place.epoch == self._epoch.epoch for place in self.holds.decisions)
        shorter = cause != "other" and self._epoch.aim is not None and not decided
        self._out.append(i.CancelEpoch(self._epoch.epoch, why, cause, shorter, worked, expected))

    def _abandon_tasks(self, why: str) -> None:
        for member in self.workers.busy:
            if member.connected and member.task is not None:
                self._send(member.name, m.Abandon(task=member.task.task, why=why))
            self._task_over(member)

    # --- from the actual state to the wanted one --------------------------------------------------------------------

    @property
    def _wants_stop(self) -> bool:
        barrier = self._modification is not None and self._modification.barrier
        frozen = bool(self._freezing or self._frozen)
        return self._pause == "direct" or bool(self.holds.open) or barrier or frozen

    @property
    def _stands(self) -> bool:
        """Whether the epoch under way stands still: workers have it, and all of them have stopped."""
        return self._wants_stop and bool(self.workers.busy) and self.workers.all_stopped

    def _settle(self) -> None:
        if self._ended or self._ending:
            self._set_gate(False)
            return
        while self._settle_modification():
            pass
        self._settle_counts()
        self._settle_workers()
        self._settle_pause()
        if self._freezing and self.workers.all_stopped:
            self._frozen.update(self._freezing)
            for command in self._take("_freezing"):
                self._answer(command)
        if self._resuming and (self._wants_stop or self.workers.all_going):
            for command in self._take("_resuming"):
                self._answer(command)
        for command in self.breaks.commands(waiting=False):
            self.breaks.answered(command)
            self._answer(command)
        self._out += self._asks.settled(self.state)
        self._set_gate(self._pause is None and not (self.holds.open or self._freezing or self._frozen))

    def _set_gate(self, is_open: bool) -> None:
        if is_open != self._gate:
            self._gate = is_open
            self._out.append(i.Gate(is_open))

    def _take(self, name: str) -> list[str]:
        """The commands of a list, which is empty afterwards: the state an answer names is the one without them."""
        commands: list[str] = getattr(self, name)
        setattr(self, name, [])
        return commands

    def _settle_counts(self) -> None:
        for worker, credit in self.breaks.grants():
            self._send(worker, credit)
        reached = self.breaks.full()
        if reached:
            self._break_off()
            self._send_breakpoints()

    def _break_off(self) -> None:
        """Pause, since a breakpoint was reached; workers get their orders at once."""
        for command in self._take("_resuming"):
            self._answer(command, "paused again before everything went on")
        if not (self._pause and self._paused):
            self._pause = "direct" if self._epoch is not None else "aligned"
            self._paused = self._letting = False
        self._settle_workers()

    def _send_breakpoints(self) -> None:
        for member in self.workers.busy:
            if member.connected and member.task is not None:
                self.breaks.expect(member.name, member.task.operators)
                breakpoints = self.breaks.of(member.task.operators)
                self._send(member.name, m.Breakpoints(breakpoints=breakpoints))

    def _settle_workers(self) -> None:
        stop = self._wants_stop
        for member in self.workers.busy:
            if member.connected and member.stop != stop:
                self._order += 1
                member.order, member.stop, member.done = self._order, stop, False
                kind = m.PauseOrder if stop else m.ResumeOrder
                self._send(member.name, kind(order=self._order))

    def _settle_pause(self) -> None:
        if self._pause is None:
            return
        only_spark = self._epoch is not None and not self.workers.busy
        if self._pause == "direct" and only_spark and not self._letting:
            self._cancel("paused while only Spark worked", "pause")
        if not self._paused:
            in_flight = self._pause == "direct" and bool(self.workers.busy) and self.workers.all_stopped
            self._paused = in_flight or self._epoch is None
        if self._paused:
            for command in self._take("_pausing"):
                self._answer(command)

    def _settle_modification(self) -> bool:
        """Bring a modification a step further; False when it has to wait, or there is none."""
        modification = self._modification
        if modification is None:
            return False
        if modification.phase == "asked":
            if modification.at_epoch_end:
                if self._epoch is not None:
                    if self._pause == "direct" or self.holds.open:
                        self._cancel(OTHER_CODE)
                    return False
            elif modification.barrier and not self.workers.all_stopped:
                self._settle_workers()
                return False
            modification.phase = "spreading"
            modification.epoch = self._number
            if self._epoch is None:
                names, totals = (*modification.codes, *modification.native), self.breaks.totals
                modification.taken = {name: totals.get(name, (0, 0))[0] for name in names}
            self._use(self.codes.with_modification(modification))
            for member in self.workers.busy:
                if codes := modification.for_member(member):
                    modification.waiting.add(member.name)
                    if member.connected:
                        member.versions.update(dict.fromkeys(codes, modification.version))
                        self._send(member.name, m.SwitchOrder(version=modification.version, codes=codes))
            return True
        if modification.waiting:
            return False
        if self._epoch is not None and self._epoch.last and not modification.switched:
            return (
                False  # workers ended their tasks before they switched: the next task does, if there is one
            )
        self._modification = None
        if modification.command:
            self._answer_modified(modification)
        return False

    def _use(self, codes: CodeVersions) -> None:
        self.codes = codes
        self._out.append(i.UseCode(codes.version, codes.all, codes.native))
