"""What happens to a run: commands of people, reports of workers, reports of the engine. What goes into `machine.py`.

Each event has a sentence about itself; the sentences of the last few make up the story in a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import msgspec

from samovar.control import messages as m

__all__ = [
    "BreakReached",
    "BreakRequested",
    "BreakTakenBack",
    "Consistency",
    "DecisionMade",
    "DriverRestarted",
    "EpochBegun",
    "EpochDone",
    "EpochGivenUp",
    "Event",
    "Forecast",
    "FreezeEnded",
    "FreezeRequested",
    "InFlightRequested",
    "InspectRequested",
    "ModifyRequested",
    "OperatorsCounted",
    "PatienceEnded",
    "PauseMode",
    "PauseRequested",
    "Reported",
    "ResumeRequested",
    "RowHeld",
    "RunCommand",
    "RunOver",
    "StageTasks",
    "StopRequested",
    "TasksCounted",
    "WorkerDropped",
    "WorkerVanished",
]

PauseMode = Literal["direct", "aligned"]
Consistency = Literal["strict", "backward", "none"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all events. `template`: the sentence about it, with fields of the event as `{0.field}`."""

    template: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """The sentence about this event."""
        return self.template.format(self)


# --- commands of people ---------------------------------------------------------------------------------------------


class RunCommand(Event, frozen=True, kw_only=True):
    """Somebody asks for something. `command` is its name; every command is answered or refused, once.

    The template of a command is what follows "somebody asked to".
    """

    command: str
    by: str = ""

    @property
    def asks(self) -> str:
        """What was asked for, after "to"."""
        return self.template.format(self)

    @property
    def words(self) -> str:
        """What was asked for, and by whom."""
        return f"{self.by or 'somebody'} asked to {self.asks}"


class PauseRequested(RunCommand, frozen=True, kw_only=True):
    """Stop: now, with tuples in flight (direct), or at the epoch's end (aligned). Answered when all has stopped."""

    template = "pause ({0.mode})"
    mode: PauseMode = "direct"
    at: float = 0.0


class ResumeRequested(RunCommand, frozen=True, kw_only=True):
    """End a pause. Answered when every worker goes on, or is held by something else."""

    template = "resume"


class InspectRequested(RunCommand, frozen=True, kw_only=True):
    """An operator's state in each worker that runs it, now. Answered when all have sent theirs."""

    template = "inspect '{0.operator}'"
    operator: str


class InFlightRequested(RunCommand, frozen=True, kw_only=True):
    """The tuples that wait at an operator, from each worker that runs it."""

    template = "list tuples in flight at '{0.operator}'"
    operator: str
    limit: int = 100


class FreezeRequested(RunCommand, frozen=True, kw_only=True):
    """Stop all workers for a look at all of them at one moment. Answered when nothing moves; then `FreezeEnded`."""

    template = "look at all workers at one moment"


class FreezeEnded(Event, frozen=True, kw_only=True):
    """The look that a command asked for is over."""

    template = "the look of command {0.command} was over"
    command: str


class ModifyRequested(RunCommand, frozen=True, kw_only=True):
    """Other logic, validated before. Answered when it is in force everywhere.

    `bodies` has code and state transfer for each Python operator; `native` names operators that live in Spark's plan,
    which changes between epochs only.
    """

    bodies: Mapping[str, tuple[bytes, bytes]] = {}
    native: tuple[str, ...] = ()
    consistency: Consistency = "strict"
    at: float = 0.0

    @property
    def asks(self) -> str:
        named = ", ".join(f"'{n}'" for n in (*self.bodies, *self.native))
        return f"modify {named} ({self.consistency})"


class DecisionMade(RunCommand, frozen=True, kw_only=True):
    """What to do with a held tuple."""

    template = "{0.kind} the tuple of hold {0.hold}"
    hold: str
    kind: m.DecisionKind
    row: bytes = b""


class BreakRequested(RunCommand, frozen=True, kw_only=True):
    """Pause at a breakpoint; `limit` is for a breakpoint that counts. Answered when all workers have it."""

    template = "set breakpoint {0.breakpoint.name} at '{0.breakpoint.operator}'"
    breakpoint: m.Breakpoint
    limit: int = 0


class BreakTakenBack(RunCommand, frozen=True, kw_only=True):
    """Remove a breakpoint."""

    template = "remove breakpoint {0.name}"
    name: str


class StopRequested(RunCommand, frozen=True, kw_only=True):
    """End the run. Answered when it has ended."""

    template = "stop the run"


class PatienceEnded(Event, frozen=True, kw_only=True):
    """A command has waited long enough: what is missing is done without, or by doing the epoch again."""

    template = "command {0.command} had waited long enough"
    command: str


# --- reports of workers ---------------------------------------------------------------------------------------------


class Reported(Event, frozen=True, kw_only=True):
    """A worker sent a message."""

    worker: str
    message: m.FromWorker

    @property
    def words(self) -> str:
        match self.message:
            case m.TaskBegun(epoch=epoch, operators=operators):
                about = f"began a task of epoch {epoch} ({', '.join(operators)})"
            case m.Switched(version=version, error=error):
                about = f"could not take version {version}" if error else f"took version {version}"
            case message:
                about = _REPORTS.get(type(message), type(message).__name__).format(message)
        return f"worker {self.worker} {about}"


_REPORTS: Mapping[type, str] = {
    m.Hello: "connected",
    m.TaskEnded: "ended its task",
    m.Stopped: "stopped",
    m.WentOn: "went on",
    m.StateGiven: "sent a state",
    m.InFlightGiven: "sent tuples in flight",
    m.Held: "held a tuple at '{0.place.operator}': {0.error}",
    m.Reached: "reached breakpoint {0.breakpoint} at '{0.place.operator}'",
    m.Armed: "has its breakpoints",
    m.TuplesCounted: "counted {0.used:,} tuples for breakpoint {0.breakpoint}",
    m.Bye: "disconnected",
}


class WorkerDropped(Event, frozen=True, kw_only=True):
    """A worker's connection broke; it may be back in a moment."""

    template = "the connection to worker {0.worker} broke"
    worker: str


class WorkerVanished(Event, frozen=True, kw_only=True):
    """A worker is gone, and its task with it."""

    template = "worker {0.worker} vanished ({0.why})"
    worker: str
    why: str = "for an unknown reason"


class OperatorsCounted(Event, frozen=True, kw_only=True):
    """Tuples that operators have taken in the attempt under way, as workers have reported them."""

    template = "operators have taken {0.taken}"
    taken: Mapping[str, int]
    at: float = 0.0


# --- reports of the engine ------------------------------------------------------------------------------------------


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine knows of an epoch before it begins."""

    expected: float | None = None
    """Seconds it will probably take, if known."""
    aim: float | None = None
    """Seconds it should take; None: it cannot be made shorter."""
    rows: Mapping[str, int] = {}
    """The tuples that Python operators will take, of those for which that is known."""
    last: bool = False
    """Whether the run ends with it."""
    task_seconds: float | None = None
    """Seconds that Spark's tasks may work before they tell how long the epoch will take; None: they do not tell it."""


class EpochBegun(Event, frozen=True, kw_only=True):
    """An attempt at an epoch starts. For `expected`, `aim`, `rows`, `last` and `task_seconds` see `Forecast`."""

    template = "epoch {0.epoch} began"
    epoch: int
    attempt: str
    at: float = 0.0
    expected: float | None = None
    aim: float | None = None
    rows: Mapping[str, int] = {}
    last: bool = False
    task_seconds: float | None = None
    counts: Mapping[str, tuple[int, int]] = {}
    """The tuples that operators took and gave in the epochs committed so far."""


class StageTasks(msgspec.Struct, frozen=True):
    """The tasks of a stage that Spark is running."""

    finished: int
    active: int
    """At most so many are at work: Spark's own number may be seconds old."""
    total: int


class TasksCounted(Event, frozen=True, kw_only=True):
    """How far Spark is with the stages of an attempt that it is running, by their numbers."""

    template = "Spark runs stages {0.stages}"
    attempt: str
    stages: Mapping[int, StageTasks]
    at: float = 0.0


class EpochDone(Event, frozen=True, kw_only=True):
    """The epoch counts. `counts`: the tuples that operators took and gave up to its end."""

    template = "epoch {0.epoch} was committed"
    epoch: int
    counts: Mapping[str, tuple[int, int]] = {}


class EpochGivenUp(Event, frozen=True, kw_only=True):
    """The attempt is over and does not count: cancelled, or lost by Spark. The engine will try again."""

    template = "epoch {0.epoch} was given up ({0.why})"
    epoch: int
    why: str = "for an unknown reason"


class RowHeld(Event, frozen=True, kw_only=True):
    """A row on which an expression failed inside Spark, found after its epoch was given up."""

    template = "'{0.held.place.operator}' failed on a row inside Spark: {0.held.error}"
    held: m.Held


class BreakReached(Event, frozen=True, kw_only=True):
    """A tuple of the last epoch meets a condition that only its end shows: pause before the next epoch."""

    template = "breakpoint {0.reached.breakpoint} was reached at '{0.reached.place.operator}'"
    reached: m.Reached


class RunOver(Event, frozen=True, kw_only=True):
    """The engine is done. With `error`: it failed."""

    error: str = ""

    @property
    def words(self) -> str:
        return f"the run failed: {self.error}" if self.error else "the run ended"


class DriverRestarted(Event, frozen=True, kw_only=True):
    """A recorded run is continued by a new process, with the decisions about tuples that were made before."""

    template = "a new process continued the run"
    skip_all: tuple[m.SkipAllDecision, ...] = ()
    decisions: tuple[m.TupleDecision, ...] = ()
