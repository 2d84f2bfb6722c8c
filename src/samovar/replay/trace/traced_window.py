"""A window of the past, computed again with every step, and a cursor in it: what all of time travel works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samovar.positions import Position, Window, same_place
from samovar.record.log import Counters
from samovar.replay.trace.model import Step, StepKey, Trace
from samovar.replay.trace.segments import Segment
from samovar.replay.trace.stepper import advanced, everything
from samovar.replay.trace.traced_chain import Record
from samovar.runtime.exchange.task import Version

if TYPE_CHECKING:
    from samovar.replay.state.state_changes import Timeline

__all__ = ["Cursor", "TracedWindow"]


@dataclass(eq=False)
class TracedWindow:
    """The steps of all operators in a window of a segment, and what the workers reported of their states."""

    segment: Segment
    window: Window
    trace: Trace
    bases: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    """For each Python operator and key partition: what changed between the state in `versions` and the window."""
    records: dict[str, dict[tuple[int, Position] | None, Record]] = field(default_factory=dict)
    """For each Python operator: its records by (port, position); None is the end of the input."""
    ended: dict[str, list[Record]] = field(default_factory=dict)
    """For each Python operator: the ends of its input, one for each key partition."""
    given: dict[str, int] = field(default_factory=dict)
    """For each Python operator: how many tuples it produced between the epoch's start and the window."""
    failures: list[tuple[str, Record]] = field(default_factory=list)
    """The operators that raised (one in each key partition may), and their steps."""
    size: int = 0
    """Bytes of what the workers reported."""
    versions: dict[str, dict[int, Version]] = field(default_factory=dict)
    """For each Python operator and key partition: the state its part of the trace starts from."""
    timelines: dict[str, Timeline] = field(default_factory=dict)
    """Operators' states over the window, computed when somebody asks."""
    counters: dict[str, Counters | None] = field(default_factory=dict)
    """How many tuples operators had taken and produced at the window's start, computed when somebody asks."""
    looked_ahead: bool = False
    """Whether the window behind this one is being traced."""

    @property
    def place(self) -> tuple[int, Window]:
        """The window's place in the run."""
        return self.segment.number, self.window

    def steps(self, operator: str) -> tuple[Step, ...]:
        """An operator's steps in the window; none where it does not work."""
        return self.trace.steps.get(operator, ())

    def record(self, step: Step) -> Record | None:
        """What a worker reported of a step of a Python operator."""
        key = None if step.taken is None else (step.port, step.taken.position)
        return self.records.get(step.operator, {}).get(key)

    def step_at(self, operator: str, at: Position) -> int | None:
        """The number of the step in which an operator took the tuple at a position."""
        steps = self.steps(operator)
        return next((s.number for s in steps if s.taken and same_place(s.taken.position, at)), None)


@dataclass(frozen=True)
class Cursor:
    """A point in the past: a window, and how many steps each operator has done in it."""

    traced: TracedWindow
    counts: Mapping[str, int]
    last: StepKey | None = None
    """The step that led here; None at a window's start, and at an end that no operator was looked at."""
    operator: str | None = None
    """The operator that is looked at."""

    @classmethod
    def start(cls, traced: TracedWindow, operator: str | None = None) -> Cursor:
        """Before all steps of a window."""
        return cls(traced, dict.fromkeys(traced.trace.steps, 0), operator=operator)

    @classmethod
    def end(cls, traced: TracedWindow, operator: str | None = None) -> Cursor:
        """Behind all steps of a window; an operator's last step there counts as the step that led here."""
        number = len(traced.steps(operator)) if operator is not None else 0
        last = (operator, number - 1) if operator is not None and number else None
        return cls(traced, everything(traced.trace), last, operator)

    @classmethod
    def after(cls, traced: TracedWindow, operator: str, steps: int) -> Cursor:
        """Where an operator has done some steps of a window, and all tuples that follow from theirs are processed."""
        done = [(operator, number) for number in range(steps)]
        counts = advanced(traced.trace, {}, traced.trace.scope(done))
        return cls(traced, counts, (operator, steps - 1) if steps else None, operator)

    def done(self, operator: str) -> int:
        """How many steps an operator has done in the window."""
        return self.counts.get(operator, 0)
