"""What happens to a run: commands of people, reports of workers, reports of the engine. What goes into `machine.py`.

Each event can say itself in words; the last few make up the story that a refusal tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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


# --- events: commands of people -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RunCommand:
    """Somebody asks for something. `command` is its name; every command is answered or refused, once."""

    command: str
    by: str = ""

    @property
    def words(self) -> str:
        """What was asked, and by whom."""
        return f"{self.by or 'somebody'} asked to {self.asks}"

    @property
    def asks(self) -> str:
        """What was asked for, after "to"."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PauseRequested(RunCommand):
    """Stop: now, with tuples in flight (direct), or at the epoch's end (aligned). Answered when all has stopped."""

    mode: PauseMode = "direct"
    at: float = 0.0

    @property
    def asks(self) -> str:
        return "pause" if self.mode == "direct" else "pause at the epoch's end"


@dataclass(frozen=True, kw_only=True)
class ResumeRequested(RunCommand):
    """Take a pause back. Answered when every worker goes on, or is held by something else."""

    @property
    def asks(self) -> str:
        return "resume"


@dataclass(frozen=True, kw_only=True)
class InspectRequested(RunCommand):
    """An operator's state in each worker that runs it, now. Answered when all have given theirs."""

    operator: str

    @property
    def asks(self) -> str:
        return f"inspect '{self.operator}'"


@dataclass(frozen=True, kw_only=True)
class InFlightRequested(RunCommand):
    """The tuples that wait at an operator, from each worker that runs it."""

    operator: str
    limit: int = 100

    @property
    def asks(self) -> str:
        return f"list tuples in flight at '{self.operator}'"


@dataclass(frozen=True, kw_only=True)
class FreezeRequested(RunCommand):
    """Stop all workers for a look at all of them at one moment. Answered when nothing moves; then `FreezeEnded`."""

    @property
    def asks(self) -> str:
        return "look at all workers at one moment"


@dataclass(frozen=True, kw_only=True)
class FreezeEnded:
    """The look that a command asked for is over."""

    command: str

    @property
    def words(self) -> str:
        return f"the look of command {self.command} was over"


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

    hold: str
    kind: m.DecisionKind
    row: bytes = b""

    @property
    def asks(self) -> str:
        return f"{self.kind} the tuple of hold {self.hold}"


@dataclass(frozen=True, kw_only=True)
class BreakRequested(RunCommand):
    """Pause where a breakpoint says; `limit` is for one that counts. Answered when all workers know."""

    breakpoint: m.Breakpoint
    limit: int = 0

    @property
    def asks(self) -> str:
        return f"set breakpoint {self.breakpoint.name} at '{self.breakpoint.operator}'"


@dataclass(frozen=True, kw_only=True)
class BreakTakenBack(RunCommand):
    """A breakpoint stands no more."""

    name: str

    @property
    def asks(self) -> str:
        return f"take back breakpoint {self.name}"


@dataclass(frozen=True, kw_only=True)
class StopRequested(RunCommand):
    """End the run. Answered when it has ended."""

    @property
    def asks(self) -> str:
        return "stop the run"


@dataclass(frozen=True, kw_only=True)
class PatienceEnded:
    """A command has waited long enough: what is missing is done without, or by doing the epoch again."""

    command: str

    @property
    def words(self) -> str:
        return f"command {self.command} had waited long enough"


# --- events: workers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A worker said something."""

    worker: str
    message: m.FromWorker

    @property
    def words(self) -> str:
        said = self.message
        about = {
            m.Hello: "presented itself",
            m.TaskEnded: "ended its task",
            m.Stopped: "stopped",
            m.WentOn: "went on",
            m.StateGiven: "gave a state",
            m.InFlightGiven: "gave tuples in flight",
            m.Bye: "said goodbye",
        }.get(type(said), type(said).__name__)
        if isinstance(said, m.TaskBegun):
            about = f"began a task of epoch {said.epoch} ({', '.join(said.operators)})"
        elif isinstance(said, m.Held):
            about = f"held a tuple at '{said.place.operator}': {said.error}"
        elif isinstance(said, m.Reached):
            about = f"reached breakpoint {said.breakpoint} at '{said.place.operator}'"
        elif isinstance(said, m.Armed):
            about = f"knows of breakpoints {', '.join(said.breakpoints)}"
        elif isinstance(said, m.TuplesCounted):
            about = f"counted {said.used:,} tuples for breakpoint {said.breakpoint}"
        elif isinstance(said, m.Switched):
            about = f"could not take version {said.version}" if said.error else f"took version {said.version}"
        return f"worker {self.worker} {about}"


@dataclass(frozen=True, kw_only=True)
class WorkerDropped:
    """A worker's connection broke; it may be back in a moment."""

    worker: str

    @property
    def words(self) -> str:
        return f"the connection to worker {self.worker} broke"


@dataclass(frozen=True, kw_only=True)
class WorkerVanished:
    """A worker is gone, and its task with it."""

    worker: str
    why: str = ""

    @property
    def words(self) -> str:
        return f"worker {self.worker} vanished{f' ({self.why})' if self.why else ''}"


# --- events: the engine ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EpochBegun:
    """An attempt at an epoch starts. `expected`: seconds it will probably take, if known."""

    epoch: int
    attempt: str
    at: float = 0.0
    expected: float | None = None
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """What operators have taken and given in the epochs committed so far."""

    @property
    def words(self) -> str:
        return f"epoch {self.epoch} began"


@dataclass(frozen=True, kw_only=True)
class EpochDone:
    """The epoch counts. `counts`: what operators have taken and given up to its end."""

    epoch: int
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return f"epoch {self.epoch} was committed"


@dataclass(frozen=True, kw_only=True)
class EpochGivenUp:
    """The attempt is over and does not count: cancelled, or lost by Spark. The engine will try again."""

    epoch: int
    why: str = ""

    @property
    def words(self) -> str:
        return f"epoch {self.epoch} was given up{f' ({self.why})' if self.why else ''}"


@dataclass(frozen=True, kw_only=True)
class RowHeld:
    """A row on which an expression failed inside Spark, found after its epoch was given up."""

    held: m.Held

    @property
    def words(self) -> str:
        return f"'{self.held.place.operator}' failed on a row inside Spark: {self.held.error}"


@dataclass(frozen=True, kw_only=True)
class BreakReached:
    """A tuple of the last epoch meets a condition that only its end shows: pause before the next one."""

    reached: m.Reached

    @property
    def words(self) -> str:
        return f"breakpoint {self.reached.breakpoint} was reached at '{self.reached.place.operator}'"


@dataclass(frozen=True, kw_only=True)
class RunOver:
    """The engine is done. With `error`: it failed."""

    error: str = ""

    @property
    def words(self) -> str:
        return f"the run failed: {self.error}" if self.error else "the run ended"


@dataclass(frozen=True, kw_only=True)
class DriverRestarted:
    """A recorded run is taken up by a new process, as it was left: paused, with tuples held, with modified code.

    No worker is left, and nothing is in flight: what was not committed is done again.
    """

    paused: bool = False
    held: tuple[m.Held, ...] = ()
    codes: Mapping[str, tuple[m.CodeVersion, ...]] = field(default_factory=dict)
    skip_all: tuple[m.SkipAllDecision, ...] = ()
    decisions: tuple[m.TupleDecision, ...] = ()

    @property
    def words(self) -> str:
        return "a new process took the run up"


Event = (
    RunCommand
    | FreezeEnded
    | PatienceEnded
    | Reported
    | WorkerDropped
    | WorkerVanished
    | EpochBegun
    | EpochDone
    | EpochGivenUp
    | RowHeld
    | BreakReached
    | RunOver
    | DriverRestarted
)
