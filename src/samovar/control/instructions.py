"""What is to be done about an event: what comes out of `machine.py`, to be carried out in the order given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from samovar.control import messages as m
from samovar.errors import CommandRefused

__all__ = [
    "CancelCause",
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


CancelCause = Literal["pause", "overrun", "other"]
"""A pause, or the time the epoch would take; `other`: the next attempt is as long as this one."""


class Send(msgspec.Struct, frozen=True):
    """Send a worker a message."""

    worker: str
    message: m.ToWorker


class CancelEpoch(msgspec.Struct, frozen=True):
    """Cancel the epoch's Spark jobs; report `EpochGivenUp`, or `EpochDone` if it came too late."""

    epoch: int
    why: str
    cause: CancelCause = "other"
    shorter: bool = False
    """Whether the next attempt is to take less of the input."""
    worked: float = 0.0
    """Seconds the attempt has worked."""
    expected: float | None = None
    """Seconds it would have taken in all, where that is known; for an overrun."""


class Gate(msgspec.Struct, frozen=True):
    """Whether an attempt at an epoch may begin. In force until the next `Gate`."""

    open: bool


class UseCode(msgspec.Struct, frozen=True):
    """Code in force from here on, in epochs begun later; operators not named have what the run started with.

    `native` names operators of Spark's plan that change with it.
    """

    version: int
    codes: Mapping[str, tuple[m.CodeVersion, ...]]
    """All versions of each operator, in order: the state of an older version is transferred step by step."""
    native: tuple[str, ...] = ()


class CommandAnswer(msgspec.Struct, frozen=True):
    """A command has been carried out. `given`: the answers of workers; `missing`: workers that sent none.

    Of a modification: `epoch` and `taken` are the first epoch with the new logic and the tuples that its operators had
    taken in committed epochs before that; None and empty where the desk does not know. `late`: no tuple will meet it.
    """

    command: str
    state: str
    note: str = ""
    given: tuple[tuple[str, m.StateGiven | m.InFlightGiven], ...] = ()
    missing: tuple[str, ...] = ()
    epoch: int | None = None
    taken: Mapping[str, int] = {}
    late: bool = False


class Refuse(msgspec.Struct, frozen=True):
    """A command is not carried out; nothing has changed by it."""

    command: str
    error: CommandRefused


class NoteHeld(msgspec.Struct, frozen=True):
    """For the record: a tuple is held."""

    held: m.Held


class NoteDecision(msgspec.Struct, frozen=True):
    """For the record: the decision about a held tuple, and what stands because of it."""

    hold: str
    kind: m.DecisionKind
    decision: m.TupleDecision | None = None
    skip_all: m.SkipAllDecision | None = None


class NoteSwitched(msgspec.Struct, frozen=True):
    """For the record: where operators in a worker switched to other code. Counts if the attempt it happened in does."""

    epoch: int
    attempt: str
    worker: str
    version: int
    switches: tuple[m.SwitchPoint, ...]


class EndRun(msgspec.Struct, frozen=True):
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
