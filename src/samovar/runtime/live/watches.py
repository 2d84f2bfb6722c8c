"""Watching a run: moments marked by conditions, breakpoints, figures. The part of `Run` that looks on."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from samovar.control import events as e
from samovar.control import messages as m
from samovar.errors import RunError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.arguments import checked_arguments
from samovar.graph.operator import is_batch_form
from samovar.runtime.live.break_conditions import breakpoint_on
from samovar.runtime.live.interactions import Interactions
from samovar.runtime.live.run_control import Steering
from samovar.runtime.live.statistics import Meter, Statistics

if TYPE_CHECKING:
    from samovar.record.log import EpochCommitted
    from samovar.runtime.epochs.epoch import RunContext

__all__ = ["BreakpointReached", "BreakpointSet", "Watching"]


@dataclass(frozen=True)
class BreakpointSet:
    """A breakpoint that stands. `hits`: how often its condition was met; `tuples` or `outputs`: what it counts."""

    name: str
    operator: str
    condition: str = ""
    tuples: int | None = None
    outputs: int | None = None
    hits: int = 0


@dataclass(frozen=True)
class BreakpointReached:
    """Where a run is paused. `row`: the tuple that met a condition. `note`: what else is to say."""

    name: str
    operator: str
    epoch: int
    row: dict[str, Any] | None = None
    note: str = ""


class Watching:
    """What a run shows of itself, and where it stops by itself. For any thread."""

    _context: RunContext | None
    _steering: Steering | None
    _interactions: Interactions
    _ended: threading.Event

    def __init__(self) -> None:
        self._watches: dict[str, Any] = {}
        self._watch_names = count(1)

    watcher: ClassVar[Any] = None
    """Makes a watch over committed epochs; set by the package, since it needs the layer above."""

    @checked_arguments(pause="break_at(...)", tuples="break_at(tuples=...)", outputs="break_at(outputs=...)")
    def watch(self, operator: str, condition: str, *, limit: int = 100) -> str:
        """Mark a moment for every tuple an operator takes that meets a condition in SQL. The run does not stop.

        The condition is over the tuple; if it names columns that only the output has (the other side of a join), over
        the rows made from it. The moment is the one after all that came of the tuple; at most `limit` an epoch are
        marked. Returns a name for `unwatch`.
        """
        context = self._watched_context(operator)
        name = f"W{next(self._watch_names)}"
        self._watches[name] = type(self).watcher(
            context, self._interactions, operator, condition, limit, None
        )
        return name

    def break_at(
        self,
        operator: str,
        condition: str | None = None,
        *,
        tuples: int | None = None,
        outputs: int | None = None,
    ) -> str:
        """Set a breakpoint: the run pauses at a tuple that meets a condition, or after so many tuples.

        For a Python operator the condition is a Python expression over the tuple's columns, the operator's states,
        `row` and `port`; the run stops before the tuple, or after it if a state is named. For other operators and those
        in batch form it is SQL as for `watch`, and the run stops at the end of the epoch that has such a tuple, whose
        moment is marked. `tuples=n` pauses when the operator has taken n tuples in all, `outputs=n` when it has given
        n: all workers together, exactly, or at the epoch's end for operators of Spark. Returns a name for `unwatch`.
        """
        context = self._watched_context(operator)
        conditions = [x for x in (condition, tuples, outputs) if x is not None]
        if len(conditions) != 1:
            raise RunError(
                "Expected a condition, or a number of tuples or outputs; got "
                + ("several." if conditions else "none."),
                operator=operator,
                hint='run.break_at("FE", "amount > 1000") or run.break_at("FE", tuples=1000).',
            )
        name = f"B{next(self._watch_names)}"
        if condition is None:
            self._break_at_count(name, operator, tuples, outputs)
        elif (columns := self._tuple_wise(context, operator)) is not None:
            instance = pickle.loads(context.code[operator])
            python = breakpoint_on(name, operator, condition, columns, instance)
            self._command(lambda command: e.BreakRequested(command=command, breakpoint=python))
        else:
            reached = self._reached_at_end(name)
            # at most 100 moments an epoch are marked, as by `watch`: the run stops at its end whatever their number
            watch = type(self).watcher(context, self._interactions, operator, condition, 100, reached)
            native = m.Breakpoint(name, operator, condition, at_end=True)
            self._command(lambda command: e.BreakRequested(command=command, breakpoint=native))
            self._watches[name] = watch
        return name

    def unwatch(self, name: str) -> None:
        """Remove a watch or a breakpoint."""
        watch = self._watches.pop(name, None)
        breakpoints = [b.name for b in self.breakpoints]
        if name in breakpoints:
            self._command(lambda command: e.BreakTakenBack(command=command, name=name))
        elif watch is None:
            raise UnknownName(name, [*breakpoints, *self._watches], what="a watch or a breakpoint of the run")

    @property
    def breakpoints(self) -> tuple[BreakpointSet, ...]:
        """The breakpoints that stand. One that counts is gone when it was reached."""
        if self._steering is None:
            return ()
        made = []
        for one in self._steering.desk.breakpoints:
            b = one.breakpoint
            tuples = one.limit if b.counts == "taken" else None
            outputs = one.limit if b.counts == "given" else None
            made.append(BreakpointSet(b.name, b.operator, b.condition, tuples, outputs, one.hits))
        return tuple(made)

    @property
    def reached(self) -> tuple[BreakpointReached, ...]:
        """The breakpoints at which the run is paused; empty when it is not, or for another reason."""
        if self._steering is None or self._ended.is_set():
            return ()
        made = []
        for r in self._steering.desk.reached:
            epoch = r.place.epoch
            note = r.shown if not r.row else ""
            if epoch < 0:
                assert self._context is not None
                epoch, note = len(self._context.history.epochs), f"{r.place.number:,} tuples"
            row = pickle.loads(r.row) if r.row else None
            made.append(BreakpointReached(r.breakpoint, r.place.operator, epoch, row, note))
        return tuple(made)

    def statistics(self, every: float = 0.5) -> Iterator[Statistics]:
        """Figures of every operator, at once and then every so many seconds until the run has ended.

        Tuples, rates, the share of the time its workers are at work, state, queue and skew between workers. Python
        operators tell while they work, twice a second; what Spark runs by itself is known when its epoch is over.
        """
        if every <= 0:
            raise RunError(f"Expected a time above 0 seconds, got {every}.")
        meter = Meter(self)
        while True:
            over = self._ended.is_set()
            yield meter.read()
            if over:
                return
            self._ended.wait(every)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _break_at_count(self, name: str, operator: str, tuples: int | None, outputs: int | None) -> None:
        limit = tuples if tuples is not None else outputs
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise RunError(f"Expected a number of tuples above 0, got {limit!r}.", operator=operator)
        made = m.Breakpoint(name, operator, counts="taken" if tuples is not None else "given")
        self._command(lambda command: e.BreakRequested(command=command, breakpoint=made, limit=limit))

    def _tuple_wise(self, context: RunContext, operator: str) -> dict[str, None] | None:
        """The input columns of a Python operator that takes tuple by tuple; None for all others."""
        op = context.plan.graph.ops[operator]
        if not isinstance(op, ops.Python) or is_batch_form(type(pickle.loads(context.code[operator]))):
            return None
        return {f.name: None for up in op.inputs for f in context.plan.schemas[up].fields}

    def _reached_at_end(self, name: str) -> Any:
        """What a watch calls when an epoch has such tuples."""

        def reached(operator: str, epoch: int, marked: str, several: int) -> None:
            more = f" and {several - 1:,} more" if several > 1 else ""
            said = m.Reached(
                breakpoint=name,
                place=m.TuplePlace(operator, epoch),
                shown=f"marked as {marked}{more} in this epoch",
            )
            if self._steering is not None:
                self._steering.desk.report(e.BreakReached(reached=said))

        return reached

    def _look_through(self, fact: EpochCommitted) -> None:
        for watch in list(self._watches.values()):
            watch.committed(fact)

    def _watched_context(self, operator: str) -> RunContext:
        """The context of a run that goes on and has the operator."""
        if self._context is None:
            raise RunError("The run has not started yet.")
        if self._ended.is_set():
            raise RunError("The run has ended.", hint="Use sv.open(run.recording).first(...) or .log(...).")
        if operator not in self._context.plan.graph.ops:
            raise UnknownName(operator, self._context.plan.graph.ops, what="an operator of the run")
        return self._context

    def _command(self, make: Any) -> None:
        if self._steering is None:
            raise RunError("The run has not started, or cannot be steered.")
        self._steering.answer(make)
