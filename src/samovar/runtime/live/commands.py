"""What a person can do to a run that goes on: pause it, look into it, go on. The part of `Run` that steers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.errors import CommandRefused, RunError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.operator import Operator
from samovar.record.log import Fact, TupleHeld
from samovar.record.state_files import dumps
from samovar.runtime.exchange.console import ConsoleLine
from samovar.runtime.exchange.decisions import decision_fact
from samovar.runtime.live.expression_change import checked_expressions
from samovar.runtime.live.inspection import (
    HeldTuple,
    InFlight,
    Inspection,
    WorkerFigures,
    check_python,
    figures_of,
    held_tuple,
    in_flight,
    inspection,
    present_epoch,
)
from samovar.runtime.live.modification import Transfer, checked_bodies, may_switch
from samovar.runtime.live.run_control import Note, Steering
from samovar.runtime.progress import GOING, Status

if TYPE_CHECKING:
    from samovar.runtime.epochs.epoch import RunContext

__all__ = ["Commands"]


def _inspect(name: str, *, operator: str) -> e.RunCommand:
    return e.InspectRequested(command=name, operator=operator)


class Commands:
    """Commands of a run. Each one is carried out or refused (CommandRefused) within seconds, from any thread."""

    _context: RunContext | None
    _steering: Steering | None
    _status: Status

    @property
    def status(self) -> Status:
        """starting, running, pausing, paused, holding, completed, failed or stopped."""
        status, steering = self._status, self._steering
        if status == "running" and steering is not None:
            now = steering.desk.state
            if now in ("pausing", "paused", "holding"):
                return cast(Status, now)
        return status

    def pause(self, mode: e.PauseMode = "direct") -> None:
        """Stop the run, to look at it. Returns when all has stopped.

        `direct`: Python operators stop at their next tuple or mini-step, with tuples in flight; an epoch that Spark
        runs by itself is cancelled and done again on `resume`, or waited for if it is nearly over. `aligned`: the
        present epoch is finished first; if that takes more than 3 seconds, the run is `pausing` meanwhile.
        """
        if mode not in get_args(e.PauseMode):
            raise RunError(f"Expected mode 'direct' or 'aligned', got {mode!r}.")
        self._ask(lambda name: e.PauseRequested(command=name, mode=mode, at=time.monotonic()))

    def resume(self) -> None:
        """Go on after a pause."""
        self._ask(lambda name: e.ResumeRequested(command=name))

    def inspect(self, operator: str) -> Inspection:
        """The state of a Python operator now: of each worker at its own instant, without waiting for the others.

        Key partitions that no worker is at have their state of the last epoch's end.
        """
        context = self._going_context()
        check_python(context, operator)
        answer = None
        if self._status == "running":
            with contextlib.suppress(
                CommandRefused
            ):  # it has just ended: then its last epoch's end is what there is
                answer = self._ask(lambda name: e.InspectRequested(command=name, operator=operator))
        return inspection(context, operator, answer)

    def snapshot(self, *operators: str) -> dict[str, Inspection]:
        """The states of Python operators (none named: of all) at one moment inside the epoch: consistent, at once.

        All workers stand still while they are asked, for some milliseconds; what each has taken in by then, the
        operators before it have given. Refused when a worker works more than 3 seconds on one tuple.
        """
        context = self._going_context()
        chosen = operators or tuple(
            n for n, op in context.plan.graph.ops.items() if isinstance(op, ops.Python)
        )
        for operator in chosen:
            check_python(context, operator)
        steering = self._steering
        if self._status != "running" or steering is None:
            return {operator: inspection(context, operator, None) for operator in chosen}
        frozen = self._ask(lambda name: e.FreezeRequested(command=name)).command
        try:
            asked = [steering.desk.ask(partial(_inspect, operator=operator)) for operator in chosen]
            present = present_epoch(context, steering.desk)
            return {
                operator: inspection(context, operator, answer.result(), present)
                for operator, answer in zip(chosen, asked, strict=True)
            }
        finally:
            steering.desk.report(e.FreezeEnded(command=frozen))

    def in_flight(self, operator: str, limit: int = 100) -> InFlight:
        """The tuples that workers have taken in for a Python operator and not finished."""
        check_python(self._going_context(), operator)
        return in_flight(
            operator,
            self._ask(lambda name: e.InFlightRequested(command=name, operator=operator, limit=limit)),
        )

    def modify(
        self,
        changes: Mapping[str, Any],
        *,
        consistency: e.Consistency = "strict",
        transfer: Transfer | Mapping[str, Transfer] | None = None,
    ) -> None:
        """Give operators other logic: `run.modify({"FE": NewFE()})`. Checked before anything changes.

        A Python operator takes an `sv.Operator`, or the source text of one; a native one that keeps nothing (a filter,
        a select) SQL text (several: a list) or a mapping of its fields, and changes between two epochs, whichever
        consistency is asked for.

        `strict`: in force from the next epoch on, for all operators at once: no tuple meets old and new logic. While
        the run is paused with tuples in flight, or a tuple is held, the present epoch is done again with the new logic.
        `backward`: all workers stop, switch, and go on: a tuple in flight may have met old logic before and meets new
        logic behind, never the other way round. `none`: each worker switches at its next tuple. A stateless operator
        without anything behind it that needs the order of tuples changes between epochs, whichever is asked for.

        `transfer` is a function from the old state (a mapping) to values to set on the new operator, or a mapping of
        such functions by operator; without one, the new operator gets what the old one had changed. Returns when the
        logic is in force, or after 3 seconds: then it will be when the epoch is over.
        """
        if consistency not in get_args(e.Consistency):
            raise RunError(f"Expected consistency 'strict', 'backward' or 'none', got {consistency!r}.")
        if not changes:
            raise RunError('Expected operators to modify, got none: run.modify({"FE": NewFE()}).')
        context = self._going_context()
        known = context.plan.graph.ops
        python = {
            n: new
            for n, new in changes.items()
            if isinstance(new, Operator) or isinstance(known.get(n), ops.Python)
        }
        bodies = checked_bodies(context, python, transfer)
        native = checked_expressions(context, {n: new for n, new in changes.items() if n not in python})
        inside = not native and all(may_switch(context, name) for name in bodies)
        level: e.Consistency = consistency if inside else "strict"
        every = {**bodies, **{n: (body, b"") for n, body in native.items()}}
        self._ask(
            lambda name: e.ModifyRequested(
                command=name, bodies=every, native=tuple(native), consistency=level
            )
        )

    @property
    def figures(self) -> tuple[WorkerFigures, ...]:
        """What each Python operator does in each worker now, twice a second: tuples, seconds of work, queue, state."""
        return () if self._steering is None else figures_of(self._steering.desk)

    @property
    def console(self) -> tuple[ConsoleLine, ...]:
        """What Python operators have printed, line by line: the last 2,000 lines."""
        if self._steering is None:
            return ()
        told = tuple(self._steering.desk.printed)
        return tuple(ConsoleLine(at, p.operator, p.epoch, p.text) for at, p in told)

    # --- tuples that raised -----------------------------------------------------------------------------------------

    @property
    def held(self) -> HeldTuple | None:
        """The tuple that waits for a decision (with `on_error="hold"`); None: there is none."""
        return next(iter(self.holds), None)

    @property
    def holds(self) -> tuple[HeldTuple, ...]:
        """All tuples that wait for a decision: several workers may hold one at once."""
        if self._steering is None or self._status != "running":
            return ()
        return tuple(held_tuple(h) for h in self._steering.desk.held)

    def retry(self, row: Mapping[str, Any] | None = None, *, operator: str | None = None) -> None:
        """Process the held tuple again, from where the state was before it. `row`: columns to change in it first.

        `operator` says whose tuple, if several are held; otherwise it is the first.
        """
        held = self._held(operator)
        if row is None:
            self._ask(lambda name: e.DecisionMade(command=name, hold=held.hold, kind="retry"))
            return
        unknown = [c for c in row if c not in held.row]
        if unknown:
            raise UnknownName(unknown[0], held.row, what=f"a column of the tuple '{held.operator}' holds")
        body = dumps({**held.row, **row})
        self._ask(lambda name: e.DecisionMade(command=name, hold=held.hold, kind="edit", row=body))

    def skip(self, *, all_like_it: bool = False, operator: str | None = None) -> None:
        """Leave the held tuple out; it is kept among the `rejected`. `all_like_it`: and all others that raise the
        same kind of error at the same place, from now on.
        """
        held = self._held(operator)
        kind: m.DecisionKind = "skip-all" if all_like_it else "skip"
        self._ask(lambda name: e.DecisionMade(command=name, hold=held.hold, kind=kind))

    def _held(self, operator: str | None) -> HeldTuple:
        known = [h for h in self.holds if operator in (None, h.operator)]
        if not known:
            about = f" by '{operator}'" if operator else ""
            raise CommandRefused(
                f"Expected a tuple that is held{about}, got none: the run is {self.status}.",
                state=self.status,
                hint='Start the run with on_error="hold" to have tuples held that raise.',
            )
        return known[0]

    # --- waiting ----------------------------------------------------------------------------------------------------

    def wait_until(self, *states: Status, timeout: float | None = None) -> Status:
        """Wait until the run is in one of some states, or has ended; returns the state. Raises TimeoutError."""
        steering = self._steering

        def there() -> bool:
            return self.status in states or self.status not in GOING

        if steering is not None and not steering.desk.wait_for(there, timeout):
            raise TimeoutError(f"the run is {self.status} after {timeout} s, not {' or '.join(states)}")
        return self.status

    def _record(self, note: Note) -> None:
        """Keep what the desk has to tell."""
        context = self._context
        if context is None or context.recording.log is None:
            return
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
        context.recording.log.append(fact)

    def _going_context(self) -> RunContext:
        if self._context is None:
            raise RunError("The run has not started yet.")
        return self._context

    def _ask(self, make: Callable[[str], e.RunCommand]) -> i.CommandAnswer:
        if self._steering is None:
            raise CommandRefused("The run has not started, or cannot be steered.", state=self._status)
        return self._steering.answer(make)
