"""Watches and breakpoints of a run that goes on: conditions that mark moments, and those that pause the run."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from samovar.control import events as e
from samovar.control import messages as m
from samovar.errors import RunError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.operator import is_batch_form
from samovar.runtime.live.break_conditions import breakpoint_on
from samovar.runtime.live.interactions import Interactions
from samovar.runtime.live.run_control import Steering

if TYPE_CHECKING:
    from samovar.record.log import EpochCommitted
    from samovar.runtime.epochs.run_context import RunContext

__all__ = ["BreakpointReached", "BreakpointSet", "Watches", "Watching"]

LIMIT = 100
"""Moments that a breakpoint of Spark's operators marks in an epoch at most: the run pauses at its end anyway."""


@dataclass(frozen=True)
class BreakpointSet:
    """A breakpoint that stands. `hits`: how often its condition was met; `tuples` or `outputs`: the number to reach."""

    name: str
    operator: str
    condition: str = ""
    tuples: int | None = None
    outputs: int | None = None
    hits: int = 0


@dataclass(frozen=True)
class BreakpointReached:
    """Where a run is paused. `row`: the tuple that met a condition. `note`: the number reached, or what was marked."""

    name: str
    operator: str
    epoch: int
    row: dict[str, Any] | None = None
    note: str = ""


class EpochWatch(Protocol):
    """A condition that is looked for in every committed epoch."""

    def committed(self, fact: EpochCommitted) -> None: ...
    def finish(self) -> None: ...


Reached = Callable[[str, int, str, int], None]
"""Called when an epoch has tuples that meet a condition: operator, epoch, the first one's interaction, their number."""


class Watching(Protocol):
    """Makes a watch."""

    def __call__(
        self,
        context: RunContext,
        interactions: Interactions,
        operator: str,
        condition: str,
        limit: int,
        reached: Reached | None,
    ) -> EpochWatch: ...


class Watches:
    """The watches and breakpoints of one run. For any thread."""

    def __init__(
        self, context: RunContext, steering: Steering, interactions: Interactions, watching: Watching
    ) -> None:
        self._context = context
        self._steering = steering
        self._interactions = interactions
        self._watching = watching
        self._watches: dict[str, EpochWatch] = {}
        self._names = count(1)

    def watch(self, operator: str, condition: str, limit: int) -> str:
        """Mark the tuples that meet a condition; see `Run.watch`."""
        name = f"W{next(self._names)}"
        self._watches[name] = self._watching(
            self._context, self._interactions, operator, condition, limit, None
        )
        return name

    def break_at(self, operator: str, condition: str | None, tuples: int | None, outputs: int | None) -> str:
        """Set a breakpoint; see `Run.break_at`."""
        criteria = [x for x in (condition, tuples, outputs) if x is not None]
        if len(criteria) != 1:
            raise RunError(
                "Expected a condition, or a number of tuples or outputs; got "
                + ("several." if criteria else "none."),
                operator=operator,
                hint='run.break_at("FE", "amount > 1000") or run.break_at("FE", tuples=1000).',
            )
        name = f"B{next(self._names)}"
        if condition is None:
            limit = tuples if tuples is not None else outputs
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise RunError(f"Expected a number of tuples above 0, got {limit!r}.", operator=operator)
            self._set(m.Breakpoint(name, operator, counts="given" if tuples is None else "taken"), limit)
        elif (columns := self._columns_of_tuples(operator)) is not None:
            instance = pickle.loads(self._context.code[operator])
            self._set(breakpoint_on(name, operator, condition, columns, instance))
        else:
            watch = self._watching(
                self._context, self._interactions, operator, condition, LIMIT, self._reached_at_end(name)
            )
            self._set(m.Breakpoint(name, operator, condition, at_end=True))
            self._watches[name] = watch
        return name

    def remove(self, name: str) -> None:
        """Remove a watch or a breakpoint."""
        watch = self._watches.pop(name, None)
        breakpoints = [b.name for b in self.breakpoints]
        if name in breakpoints:
            self._steering.answer(lambda command: e.BreakTakenBack(command=command, name=name))
        elif watch is None:
            raise UnknownName(name, [*breakpoints, *self._watches], what="a watch or a breakpoint of the run")

    @property
    def breakpoints(self) -> tuple[BreakpointSet, ...]:
        """The breakpoints that stand."""
        return tuple(
            BreakpointSet(
                one.breakpoint.name,
                one.breakpoint.operator,
                one.breakpoint.condition,
                one.limit if one.breakpoint.counts == "taken" else None,
                one.limit if one.breakpoint.counts == "given" else None,
                one.hits,
            )
            for one in self._steering.desk.breakpoints
        )

    @property
    def reached(self) -> tuple[BreakpointReached, ...]:
        """The breakpoints at which the run is paused."""
        places = []
        for r in self._steering.desk.reached:
            epoch = r.place.epoch
            note = r.shown if not r.row else ""
            if epoch < 0:  # a number of tuples of operators that Spark runs, known at the epoch's end
                epoch, note = len(self._context.history.epochs), f"{r.place.number:,} tuples"
            row = pickle.loads(r.row) if r.row else None
            places.append(BreakpointReached(r.breakpoint, r.place.operator, epoch, row, note))
        return tuple(places)

    def committed(self, fact: EpochCommitted) -> None:
        """Have all watches look through an epoch."""
        for watch in list(self._watches.values()):
            watch.committed(fact)

    def finish(self) -> None:
        """Wait until all epochs are looked through."""
        for watch in list(self._watches.values()):
            watch.finish()

    def _set(self, breakpoint: m.Breakpoint, limit: int = 0) -> None:
        self._steering.answer(
            lambda command: e.BreakRequested(command=command, breakpoint=breakpoint, limit=limit)
        )

    def _columns_of_tuples(self, operator: str) -> dict[str, None] | None:
        """The input columns of a Python operator that takes tuple by tuple; None for all others."""
        op = self._context.plan.graph.ops[operator]
        if not isinstance(op, ops.Python) or is_batch_form(type(pickle.loads(self._context.code[operator]))):
            return None
        return {f.name: None for up in op.inputs for f in self._context.plan.schemas[up].fields}

    def _reached_at_end(self, name: str) -> Reached:
        def reached(operator: str, epoch: int, marked: str, several: int) -> None:
            more = f" and {several - 1:,} more" if several > 1 else ""
            place = m.TuplePlace(operator, epoch)
            at = m.Reached(breakpoint=name, place=place, shown=f"marked as {marked}{more} in this epoch")
            self._steering.desk.report(e.BreakReached(reached=at))

        return reached
