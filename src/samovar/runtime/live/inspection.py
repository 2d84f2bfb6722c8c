"""Operators seen while their run goes on: states in workers now, tuples in flight, states of epoch ends."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.desk import Desk
from samovar.errors import CommandRefused, RunError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.operator import Operator
from samovar.record.log import EpochCommitted, StateFile
from samovar.record.state_files import is_mark, read_header, read_state, restore
from samovar.record.store import slug_unique
from samovar.runtime.exchange.code_switch import read_switch_records
from samovar.runtime.exchange.plain_states import attributes, merged
from samovar.runtime.live.run_control import Steering

if TYPE_CHECKING:
    from samovar.runtime.epochs.run_context import RunContext

__all__ = [
    "HeldTuple",
    "InFlight",
    "Inspection",
    "Part",
    "Present",
    "WorkerFigures",
    "check_python",
    "figures_of",
    "held_tuple",
    "in_flight",
    "inspection",
    "present_epoch",
    "snapshot",
]


@dataclass(frozen=True)
class Part:
    """The state of an operator in one key partition. `worker` is empty when it is that of the last epoch's end."""

    bucket: int
    state: dict[str, Any]
    worker: str = ""
    tuples: int | None = None
    """Tuples of the epoch that the operator has begun in this partition, if that is known."""


@dataclass(frozen=True)
class Inspection:
    """The state of an operator: of one moment if `consistent`, else each part is of another instant."""

    operator: str
    epoch: int
    """The number of committed epochs."""
    parts: tuple[Part, ...]
    note: str = ""
    still: bool = False
    """Whether all workers stood still while it was taken."""

    @property
    def consistent(self) -> bool:
        """Whether all parts are of one moment: the end of the last epoch, or one at which nothing moved."""
        return self.still or not any(p.worker for p in self.parts)

    @property
    def state(self) -> dict[str, Any]:
        """All parts in one: maps together, other values by key partition."""
        return merged({p.bucket: p.state for p in self.parts}) if self.parts else {}


@dataclass(frozen=True)
class InFlight:
    """Tuples that workers have taken in for an operator and not finished; `more`: the number that is not listed."""

    operator: str
    rows: tuple[dict[str, Any], ...]
    more: int = 0


@dataclass(frozen=True)
class WorkerFigures:
    """One operator in one worker, since its task began. `seconds`: of work, of the whole chain the operator is in."""

    operator: str
    worker: str
    epoch: int
    taken: int
    given: int
    seconds: float
    queue: int
    state_entries: int
    state_bytes: int = 0


def figures_of(desk: Desk) -> tuple[WorkerFigures, ...]:
    """The last figures of workers that have a task, by operator."""
    figures = [
        WorkerFigures(name, worker, task.epoch, f.taken, f.given, f.busy, f.queue, f.entries, f.size)
        for worker, task, operators in desk.figures
        for name, f in operators.items()
    ]
    return tuple(sorted(figures, key=lambda one: (one.operator, one.worker)))


@dataclass(frozen=True)
class HeldTuple:
    """A tuple an operator raised on, which waits for a decision: retry, skip or stop."""

    hold: str
    operator: str
    epoch: int
    row: dict[str, Any]
    error: str
    traceback: str
    locals: dict[str, str]
    """Names where it raised, with their values as text."""
    state: str
    """The operator's state as text, including the changes of the held tuple so far."""

    def __str__(self) -> str:
        shown = "{" + ", ".join(f"{k}: {v!r}" for k, v in self.row.items()) + "}" if self.row else "its end"
        return f"Operator '{self.operator}' raised {self.error}\nwhile it processed {shown} (epoch {self.epoch})."


def held_tuple(held: m.Held) -> HeldTuple:
    """A held tuple as people see it, from the worker's report."""
    lines = ["Traceback (most recent call last):"] if held.frames else []
    for frame in held.frames:
        lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
        if frame.text:
            lines.append(f"    {frame.text}")
    return HeldTuple(
        hold=held.hold,
        operator=held.place.operator,
        epoch=held.place.epoch,
        row=pickle.loads(held.row),
        error=held.error,
        traceback="\n".join([*lines, held.error]),
        locals=dict(held.frames[-1].variables) if held.frames else {},
        state=held.state,
    )


def check_python(context: RunContext, operator: str) -> None:
    """Raise when there is no such Python operator."""
    known = context.plan.graph.ops
    if operator not in known:
        raise UnknownName(operator, known, what="an operator of the run")
    if not isinstance(known[operator], ops.Python):
        raise RunError(
            f"Expected a Python operator, got '{operator}', which Spark runs.",
            operator=operator,
            hint="Its state after any epoch is in the recording: sv.open(run.recording).jump(epoch=...).state(...).",
        )


@dataclass(frozen=True)
class Present:
    """The epoch under way: the state files of its tasks that have ended, and the code they ended with."""

    fact: EpochCommitted
    code: dict[tuple[str, int], bytes]


def present_epoch(context: RunContext, desk: Desk) -> Present:
    """The epoch under way, while nothing moves in it."""
    begun = desk.machine.epoch
    number = len(context.history.epochs) if begun is None else begun.epoch
    fact = EpochCommitted(at=0.0, epoch=number, level=0, attempt="" if begun is None else begun.attempt)
    folder = context.recording.epoch_folder(fact)
    state: dict[str, tuple[StateFile, ...]] = {}
    for name, op in context.plan.graph.ops.items():
        states = folder / "state" / slug_unique(name)
        if isinstance(op, ops.Python) and states.is_dir():
            headers = [read_header(p, check=False) for p in sorted(states.glob("[0-9]*.*")) if not is_mark(p)]
            files = [StateFile(h.bucket, h.full, 0, h.entries) for h in headers]
            state[name] = tuple(sorted(files, key=lambda f: (f.bucket, f.full)))
    known = {(n, c.version): c.body for n, codes in desk.machine.codes.all.items() for c in codes}
    code = {(t.operator, t.bucket): known[t.operator, t.version] for t in read_switch_records(folder)}
    return Present(msgspec.structs.replace(fact, state=state), code)


def inspection(
    context: RunContext, operator: str, answer: i.CommandAnswer | None, present: Present | None = None
) -> Inspection:
    """The states that workers sent, and those of the last epoch's end for key partitions that no worker sent.

    `present`: the epoch under way, if nothing moves in it.
    """
    epochs = list(context.history.epochs)
    done = epochs
    if present is not None and present.fact.epoch == len(epochs):
        done = [*epochs, present.fact]
    parts: dict[int, Part] = {}
    troubles = []
    for worker, given in answer.given if answer is not None else ():
        if not isinstance(given, m.StateGiven) or given.error:
            troubles.append(f"{worker}: {given.error}")
            continue
        at = given.place
        tuples = at.number if at is not None and at.operator == operator else None
        parts[given.bucket] = Part(given.bucket, pickle.loads(given.body), worker, tuples)
    for bucket, files in context.recording.state_files(operator, done).items():
        if bucket not in parts:
            code = context.code[operator]
            if present is not None and files[-1][1] is present.fact:
                code = present.code.get((operator, bucket), code)
            instance: Operator = pickle.loads(code)
            restore(instance, (read_state(file)[1] for file, _ in files))
            parts[bucket] = Part(bucket, attributes(instance))
    if answer is not None and answer.missing:
        troubles.append(f"no answer from {', '.join(answer.missing)}")
    shown = tuple(parts[b] for b in sorted(parts))
    note = "; ".join(t for t in troubles if "no tuple" not in t)
    return Inspection(operator, len(epochs), shown, note, present is not None)


def snapshot(context: RunContext, steering: Steering, operators: Sequence[str]) -> dict[str, Inspection]:
    """The states of operators at one moment inside the epoch: all workers stand still while they are asked."""
    frozen = steering.answer(lambda name: e.FreezeRequested(command=name)).command

    def asked(operator: str) -> Future[Any]:
        return steering.desk.ask(lambda name: e.InspectRequested(command=name, operator=operator))

    try:
        answers = {operator: asked(operator) for operator in operators}
        present = present_epoch(context, steering.desk)
        return {
            operator: inspection(context, operator, answer.result(), present)
            for operator, answer in answers.items()
        }
    finally:
        steering.desk.report(e.FreezeEnded(command=frozen))


def in_flight(operator: str, answer: i.CommandAnswer) -> InFlight:
    """The tuples that workers sent."""
    rows: list[dict[str, Any]] = []
    more = 0
    for worker, given in answer.given:
        if isinstance(given, m.InFlightGiven):
            if given.error:
                raise CommandRefused(
                    f"Worker {worker} could not list its tuples: {given.error}.", state=answer.state
                )
            rows += [pickle.loads(r) for r in given.rows]
            more += given.more
    return InFlight(operator, tuple(rows), more)
