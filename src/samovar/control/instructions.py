"""What is to be done about an event: what comes out of `machine.py`, to be carried out in the order given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from samovar.control import messages as m
from samovar.errors import CommandRefused

__all__ = [
    "CancelEpoch",
    "CommandAnswer",
    "EndRun",
    "Gate",
    "Instruction",
    "NoteDecision",
    "NoteHeld",
    "NoteSwitched",
    "Refuse",
    "Send",
    "UseCode",
]


@dataclass(frozen=True)
class Send:
    """Send a worker a message."""

    worker: str
    message: m.ToWorker


@dataclass(frozen=True)
class CancelEpoch:
    """Cancel the epoch's Spark jobs; report `EpochGivenUp`, or `EpochDone` if it came too late."""

    epoch: int
    why: str


@dataclass(frozen=True)
class Gate:
    """Whether an attempt at an epoch may begin. In force until the next `Gate`."""

    open: bool


@dataclass(frozen=True)
class UseCode:
    """Code in force from here on, in epochs begun later; operators not named have what the run started with.

    `native` names operators of Spark's plan that change with it.
    """

    version: int
    codes: Mapping[str, tuple[m.CodeVersion, ...]]
    """All versions of each operator, in order: the state of an older version is transferred step by step."""
    native: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommandAnswer:
    """A command has been carried out. `given`: the answers of workers; `missing`: workers that sent none."""

    command: str
    state: str
    note: str = ""
    given: tuple[tuple[str, m.StateGiven | m.InFlightGiven], ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refuse:
    """A command is not carried out; nothing has changed by it."""

    command: str
    error: CommandRefused


@dataclass(frozen=True)
class NoteHeld:
    """For the record: a tuple is held."""

    held: m.Held


@dataclass(frozen=True)
class NoteDecision:
    """For the record: the decision about a held tuple, and what stands because of it."""

    hold: str
    kind: m.DecisionKind
    decision: m.TupleDecision | None = None
    skip_all: m.SkipAllDecision | None = None


@dataclass(frozen=True)
class NoteSwitched:
    """For the record: where operators in a worker switched to other code. Counts if the attempt it happened in does."""

    epoch: int
    attempt: str
    worker: str
    version: int
    switches: tuple[m.SwitchPoint, ...]


@dataclass(frozen=True)
class EndRun:
    """Leave the loop over epochs and report `RunOver`."""

    why: str


Instruction = (
    Send
    | CancelEpoch
    | Gate
    | UseCode
    | CommandAnswer
    | Refuse
    | NoteHeld
    | NoteDecision
    | NoteSwitched
    | EndRun
)
