"""The messages between coordinator and workers, as msgspec structs.

A message is data. Code, states and tuples travel as opaque bytes that this layer never unpickles; the layers that sent
and asked for them know what they are. Each direction has its decoder, so a worker cannot send what only the coordinator
may send. Unknown fields are skipped on reading, so that fields can be added; a change of meaning raises `PROTOCOL`,
which both sides compare in the handshake, before anything is decoded (`channel.py`).

An *order* is a number that grows with each pause and resume sent to a worker: an answer that names an older order is
late, and does not describe the present.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "FRAME_LIMIT",
    "PROTOCOL",
    "Abandon",
    "Alive",
    "Armed",
    "Breakpoint",
    "Breakpoints",
    "Bye",
    "CodeVersion",
    "Credit",
    "Decision",
    "DecisionKind",
    "Figures",
    "FromWorker",
    "Held",
    "Hello",
    "InFlightGiven",
    "InFlightWanted",
    "Message",
    "Orders",
    "PauseOrder",
    "Printed",
    "Reached",
    "ReachedNoted",
    "ResumeOrder",
    "SkipAllDecision",
    "StateGiven",
    "StateWanted",
    "Stopped",
    "SwitchOrder",
    "SwitchPoint",
    "Switched",
    "TaskBegun",
    "TaskEnded",
    "TaskProgress",
    "ToWorker",
    "TracebackFrame",
    "TupleDecision",
    "TuplePlace",
    "TuplesCounted",
    "WentOn",
]

PROTOCOL = 1
"""The version both sides must share."""
FRAME_LIMIT = 64 << 20
"""Bytes of a message at most: room for the state of an operator, and a bound for what a peer can make us allocate."""

DecisionKind = Literal["retry", "edit", "skip", "skip-all"]
"""What is done with a held tuple: process it again, process another one instead, skip it, skip all like it."""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="m", omit_defaults=True):
    """Base of all messages."""


class FromWorker(Message, frozen=True, kw_only=True):
    """Base of the messages that a worker may send."""


class ToWorker(Message, frozen=True, kw_only=True):
    """Base of the messages that the coordinator may send."""


# --- parts of messages ----------------------------------------------------------------------------------------------


class TuplePlace(msgspec.Struct, frozen=True, array_like=True):
    """A tuple by its place: the `number`-th (from 0) that an operator takes on a port, in one bucket of one epoch.

    The order within a bucket is canonical, so a redone epoch has the same tuple at the same place.
    """

    operator: str
    epoch: int
    bucket: int = 0
    port: int = 0
    number: int = 0


class CodeVersion(msgspec.Struct, frozen=True, array_like=True):
    """A version of an operator's code. `transfer` turns the old state into the new one; both are opaque bytes here."""

    version: int
    body: bytes
    transfer: bytes = b""


class Figures(msgspec.Struct, frozen=True, array_like=True):
    """One operator in one task: tuples in and out, seconds of work, tuples waiting, entries and bytes of its state."""

    taken: int = 0
    given: int = 0
    busy: float = 0.0
    queue: int = 0
    entries: int = 0
    size: int = 0


class TracebackFrame(msgspec.Struct, frozen=True, array_like=True):
    """A frame of a traceback, with its locals as text."""

    file: str
    line: int
    function: str
    text: str = ""
    variables: dict[str, str] = {}


class SwitchPoint(msgspec.Struct, frozen=True, array_like=True):
    """The first tuple an operator processes with the code of a version."""

    version: int
    place: TuplePlace


class SkipAllDecision(ToWorker, tag="skip-all", frozen=True, kw_only=True):
    """Skip every tuple on which an operator raises in this way; `like` is the worker's name for the way."""

    operator: str
    like: str


class Breakpoint(msgspec.Struct, frozen=True, array_like=True):
    """Where a run is to pause: at a tuple that meets a condition, or at a number of tuples taken or given."""

    name: str
    operator: str
    condition: str = ""
    """A Python expression over the tuple's columns, the operator's states, `row` and `port`."""
    late: bool = False
    """Whether the condition is evaluated after a tuple, because it is about the state."""
    counts: Literal["", "taken", "given"] = ""
    """What is counted. Workers then take or give no more than they have credit for."""
    at_end: bool = False
    """Whether the engine evaluates it when an epoch is over, and workers do not."""


class TupleDecision(msgspec.Struct, frozen=True, array_like=True):
    """A decision about one tuple that stands when its epoch is done again."""

    place: TuplePlace
    kind: DecisionKind
    row: bytes = b""


# --- from a worker --------------------------------------------------------------------------------------------------


class TaskBegun(FromWorker, tag="task-begun", frozen=True, kw_only=True):
    """A worker is about to process a partition. It waits for `Orders` before the first tuple."""

    task: str
    run: str
    epoch: int
    attempt: str
    operators: tuple[str, ...]
    partition: int = 0
    versions: dict[str, int] = {}
    """Versions of the code the task came with; an operator not named has the run's first."""


class TaskEnded(FromWorker, tag="task-ended", frozen=True, kw_only=True):
    """A worker has ended a partition, complete or not. `counts`: the tuples that each operator took and gave in it."""

    task: str
    counts: dict[str, tuple[int, int]] = {}


class Held(FromWorker, tag="held", frozen=True, kw_only=True):
    """An operator raised; the worker waits for a decision."""

    hold: str
    place: TuplePlace
    error: str
    like: str
    """What tuples that raise alike have in common: the kind of error and where it was raised."""
    row: bytes = b""
    shown: str = ""
    """The tuple as text."""
    frames: tuple[TracebackFrame, ...] = ()
    state: str = ""
    """The operator's state as text, cut short."""


class Hello(FromWorker, tag="hello", frozen=True, kw_only=True):
    """The first message of a worker on each connection, also when it reconnects."""

    worker: str
    pid: int
    host: str = ""
    samovar: str = ""
    task: TaskBegun | None = None
    stopped: int | None = None
    """The order by which it is stopped now."""
    held: Held | None = None
    switches: tuple[SwitchPoint, ...] = ()
    """Where its operators have switched to other code in this task."""


class TaskProgress(FromWorker, tag="progress", frozen=True, kw_only=True):
    """Figures of a task, at least twice a second while one runs."""

    task: str
    at: float
    operators: dict[str, Figures]


class Printed(FromWorker, tag="printed", frozen=True, kw_only=True):
    """A line that an operator printed; `operator` is empty when it is not known which."""

    operator: str
    epoch: int
    text: str


class Stopped(FromWorker, tag="stopped", frozen=True, kw_only=True):
    """A worker has stopped, until it is ordered to go on. `place`: the tuple it stands at."""

    order: int
    place: TuplePlace | None = None


class WentOn(FromWorker, tag="went-on", frozen=True, kw_only=True):
    """A worker goes on."""

    order: int


class StateGiven(FromWorker, tag="state", frozen=True, kw_only=True):
    """An operator's state in one worker, taken between two tuples (or at a mini-step of the tuple at `place`)."""

    request: str
    operator: str
    bucket: int = 0
    place: TuplePlace | None = None
    body: bytes = b""
    error: str = ""


class InFlightGiven(FromWorker, tag="in-flight", frozen=True, kw_only=True):
    """Tuples a worker has taken in for an operator and not processed. `more`: how many are not among those given."""

    request: str
    operator: str
    rows: tuple[bytes, ...] = ()
    more: int = 0
    error: str = ""


class Switched(FromWorker, tag="switched", frozen=True, kw_only=True):
    """Operators in a worker have switched to other code; with an `error`, they could not and keep the code they had."""

    version: int
    switches: tuple[SwitchPoint, ...] = ()
    error: str = ""


class Reached(FromWorker, tag="reached", frozen=True, kw_only=True):
    """A tuple meets a breakpoint's condition; the worker stands before it (or behind it) until it gets
    `ReachedNoted`."""

    breakpoint: str
    place: TuplePlace
    shown: str = ""
    """The tuple as text."""
    row: bytes = b""


class Armed(FromWorker, tag="armed", frozen=True, kw_only=True):
    """The breakpoints that stand with a worker, from its next tuple on."""

    breakpoints: tuple[str, ...] = ()


class TuplesCounted(FromWorker, tag="counted", frozen=True, kw_only=True):
    """How many tuples the operator of a breakpoint has taken (or given) in this task. `wants`: no credit is left."""

    breakpoint: str
    used: int
    wants: bool = False


class Alive(FromWorker, ToWorker, tag="alive", frozen=True, kw_only=True):
    """A sign of life, from both sides, where there is nothing else to send."""


class Bye(FromWorker, ToWorker, tag="bye", frozen=True, kw_only=True):
    """The connection ends on purpose: do not connect again."""

    why: str = ""


# --- from the coordinator -------------------------------------------------------------------------------------------


class Orders(ToWorker, tag="orders", frozen=True, kw_only=True):
    """Everything that stands, for a worker that begins a task or is back. It obeys before its next tuple."""

    task: str
    stop: int | None = None
    """The order by which everything is stopped; None: go."""
    codes: dict[str, tuple[CodeVersion, ...]] = {}
    """Code newer than what the task came with, version by version: each has a transfer of state."""
    skip_all: tuple[SkipAllDecision, ...] = ()
    decisions: tuple[TupleDecision, ...] = ()
    breakpoints: tuple[Breakpoint, ...] = ()


class PauseOrder(ToWorker, tag="pause", frozen=True, kw_only=True):
    """Stop at the next tuple or mini-step."""

    order: int


class ResumeOrder(ToWorker, tag="resume", frozen=True, kw_only=True):
    """Go on."""

    order: int


class StateWanted(ToWorker, tag="state-wanted", frozen=True, kw_only=True):
    """Send an operator's state, taken between two tuples."""

    request: str
    operator: str


class InFlightWanted(ToWorker, tag="in-flight-wanted", frozen=True, kw_only=True):
    """Send the tuples that wait at an operator, the first `limit` of them."""

    request: str
    operator: str
    limit: int = 100


class SwitchOrder(ToWorker, tag="switch", frozen=True, kw_only=True):
    """Switch to other code, all operators named between the same two tuples."""

    version: int
    codes: dict[str, CodeVersion]


class Decision(ToWorker, tag="decision", frozen=True, kw_only=True):
    """What to do with a held tuple, as soon as the worker may go on. `row` takes the tuple's place ("edit")."""

    hold: str
    kind: DecisionKind
    row: bytes = b""


class Breakpoints(ToWorker, tag="breakpoints", frozen=True, kw_only=True):
    """The breakpoints that stand from now on, all of them."""

    breakpoints: tuple[Breakpoint, ...] = ()


class Credit(ToWorker, tag="credit", frozen=True, kw_only=True):
    """The worker may take (or give) `upto` tuples of this task in all before it asks again."""

    breakpoint: str
    upto: int


class ReachedNoted(ToWorker, tag="reached-noted", frozen=True, kw_only=True):
    """The coordinator knows that a breakpoint was reached; the orders that follow from it were sent before this."""

    breakpoint: str


class Abandon(ToWorker, tag="abandon", frozen=True, kw_only=True):
    """End the task at the next tuple or mini-step: its epoch does not count."""

    task: str
    why: str = ""
