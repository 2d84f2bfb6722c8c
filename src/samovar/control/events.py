"""What happens to a run: commands of people, reports of workers, reports of the engine. What goes into `machine.py`.

Each event has a sentence about itself; the sentences of the last few make up the story in a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

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
    "FreezeEnded",
    "FreezeRequested",
    "InFlightRequested",
    "InspectRequested",
    "ModifyRequested",
    "PatienceEnded",
    "PauseMode",
    "PauseRequested",
    "Reported",
    "ResumeRequested",
    "RowHeld",
    "RunCommand",
    "RunOver",
    "StopRequested",
    "WorkerDropped",
    "WorkerVanished",
]

PauseMode = Literal["direct", "aligned"]
Consistency = Literal["strict", "backward", "none"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Base of all events. `template`: the sentence about it, with fields of the event as `{0.field}`."""

    template: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """The sentence about this event."""
        return self.template.format(self)


# --- commands of people ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RunCommand(Event):
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


@dataclass(frozen=True, kw_only=True)
class PauseRequested(RunCommand):
    """Stop: now, with tuples in flight (direct), or at the epoch's end (aligned). Answered when all has stopped."""

    template = "pause ({0.mode})"
    mode: PauseMode = "direct"
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ResumeRequested(RunCommand):
    """End a pause. Answered when every worker goes on, or is held by something else."""

    template = "resume"


@dataclass(frozen=True, kw_only=True)
class InspectRequested(RunCommand):
    """An operator's state in each worker that runs it, now. Answered when all have sent theirs."""

    template = "inspect '{0.operator}'"
    operator: str


@dataclass(frozen=True, kw_only=True)
class InFlightRequested(RunCommand):
    """The tuples that wait at an operator, from each worker that runs it."""

    template = "list tuples in flight at '{0.operator}'"
    operator: str
    limit: int = 100


@dataclass(frozen=True, kw_only=True)
class FreezeRequested(RunCommand):
    """Stop all workers for a look at all of them at one moment. Answered when nothing moves; then `FreezeEnded`."""

    template = "look at all workers at one moment"


@dataclass(frozen=True, kw_only=True)
class FreezeEnded(Event):
    """The look that a command asked for is over."""

    template = "the look of command {0.command} was over"
    command: str


@dataclass(frozen=True, kw_only=True)
class ModifyRequested(RunCommand):
    """Other logic, validated before. Answered when it is in force everywhere.

    `bodies` has code and state transfer for each Python operator; `native` names operators that live in Spark's plan,
    which changes between epochs only.
    """

    bodies: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict)
    native: tuple[str, ...] = ()
    consistency: Consistency = "strict"

    @property
    def asks(self) -> str:
        named = ", ".join(f"'{n}'" for n in (*self.bodies, *self.native))
        return f"modify {named} ({self.consistency})"


@dataclass(frozen=True, kw_only=True)
class DecisionMade(RunCommand):
    """What to do with a held tuple."""

    template = "{0.kind} the tuple of hold {0.hold}"
    hold: str
    kind: m.DecisionKind
    row: bytes = b""


@dataclass(frozen=True, kw_only=True)
class BreakRequested(RunCommand):
    """Pause at a breakpoint; `limit` is for a breakpoint that counts. Answered when all workers have it."""

    template = "set breakpoint {0.breakpoint.name} at '{0.breakpoint.operator}'"
    breakpoint: m.Breakpoint
    limit: int = 0


@dataclass(frozen=True, kw_only=True)
class BreakTakenBack(RunCommand):
    """Remove a breakpoint."""

    template = "remove breakpoint {0.name}"
    name: str


@dataclass(frozen=True, kw_only=True)
class StopRequested(RunCommand):
    """End the run. Answered when it has ended."""

    template = "stop the run"


@dataclass(frozen=True, kw_only=True)
class PatienceEnded(Event):
    """A command has waited long enough: what is missing is done without, or by doing the epoch again."""

    template = "command {0.command} had waited long enough"
    command: str


# --- reports of workers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Reported(Event):
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


@dataclass(frozen=True, kw_only=True)
class WorkerDropped(Event):
    """A worker's connection broke; it may be back in a moment."""

    template = "the connection to worker {0.worker} broke"
    worker: str


@dataclass(frozen=True, kw_only=True)
class WorkerVanished(Event):
    """A worker is gone, and its task with it."""

    template = "worker {0.worker} vanished ({0.why})"
    worker: str
    why: str = "for an unknown reason"


# --- reports of the engine ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EpochBegun(Event):
    """An attempt at an epoch starts. `expected`: seconds it will probably take, if known."""

    template = "epoch {0.epoch} began"
    epoch: int
    attempt: str
    at: float = 0.0
    expected: float | None = None
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The tuples that operators took and gave in the epochs committed so far."""


@dataclass(frozen=True, kw_only=True)
class EpochDone(Event):
    """The epoch counts. `counts`: the tuples that operators took and gave up to its end."""

    template = "epoch {0.epoch} was committed"
    epoch: int
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EpochGivenUp(Event):
    """The attempt is over and does not count: cancelled, or lost by Spark. The engine will try again."""

    template = "epoch {0.epoch} was given up ({0.why})"
    epoch: int
    why: str = "for an unknown reason"


@dataclass(frozen=True, kw_only=True)
class RowHeld(Event):
    """A row on which an expression failed inside Spark, found after its epoch was given up."""

    template = "'{0.held.place.operator}' failed on a row inside Spark: {0.held.error}"
    held: m.Held


@dataclass(frozen=True, kw_only=True)
class BreakReached(Event):
    """A tuple of the last epoch meets a condition that only its end shows: pause before the next epoch."""

    template = "breakpoint {0.reached.breakpoint} was reached at '{0.reached.place.operator}'"
    reached: m.Reached


@dataclass(frozen=True, kw_only=True)
class RunOver(Event):
    """The engine is done. With `error`: it failed."""

    error: str = ""

    @property
    def words(self) -> str:
        return f"the run failed: {self.error}" if self.error else "the run ended"


@dataclass(frozen=True, kw_only=True)
class DriverRestarted(Event):
    """A recorded run is continued by a new process, with the decisions about tuples that were made before."""

    template = "a new process continued the run"
    skip_all: tuple[m.SkipAllDecision, ...] = ()
    decisions: tuple[m.TupleDecision, ...] = ()
