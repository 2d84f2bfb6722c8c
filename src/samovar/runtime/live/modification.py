"""Other logic for a run that goes on: checked before anything changes, put into force between two epochs or inside one.

Between two epochs no tuple is in flight, so all operators change at once and no tuple meets old and new logic: the
strongest of Texera's levels of consistency. The state goes over as an epoch of its own that processes nothing and
holds the whole state in the new form. Inside an epoch workers switch tuple by tuple (`code_switch.py`); when it ends,
the states that nobody touched go over as well, so that every epoch ends with one version of each operator. The log
says from which epoch on which code is in force, so that whoever computes an epoch again uses the code it ran with.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from samovar.compile.analysis import output_of
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.errors import RunError, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.class_check import check_class
from samovar.graph.code import operator_from_code
from samovar.graph.operator import Operator, is_batch_form
from samovar.ids import new_attempt
from samovar.record.digests import Digest
from samovar.record.log import AnyFact, EpochCommitted, LogicChanged, StateFile
from samovar.record.state_files import Header, StateCapture, read_state, restore, write_state
from samovar.record.store import History, Recording, slug_unique
from samovar.runtime.exchange.code_switch import Transfer, hand_over, read_switch_records, write_switch_code
from samovar.runtime.live.expression_change import plan_with
from samovar.runtime.live.inspection import check_python
from samovar.runtime.pickles import by_value

if TYPE_CHECKING:
    from samovar.runtime.epochs.epoch import RunContext

__all__ = [
    "Transfer",
    "apply_code",
    "checked_bodies",
    "code_at",
    "code_path",
    "may_switch",
    "settle_switches",
]


@dataclass(frozen=True)
class _Handed:
    bucket: int
    instance: Operator


def checked_bodies(
    context: RunContext, changes: Mapping[str, Any], transfer: Transfer | Mapping[str, Transfer] | None
) -> dict[str, tuple[bytes, bytes]]:
    """Code and transfer of each operator, as they are sent about. Raises when one cannot be put into force."""
    made: dict[str, tuple[bytes, bytes]] = {}
    for name, new in changes.items():
        check_python(context, name)
        op = context.plan.graph.ops[name]
        if isinstance(new, str) and isinstance(op, ops.Python):
            new = operator_from_code(msgspec.structs.replace(op, code=new, class_name=""))
        if not isinstance(new, Operator):
            raise RunError(
                f"Expected an operator for '{name}', got {type(new).__name__}.",
                operator=name,
                hint=f'Pass an instance, or the source text of a class: run.modify({{"{name}": New()}}).',
            )
        own = transfer.get(name) if isinstance(transfer, Mapping) else transfer
        check_class(new, name)
        _check_form(context, name, new)
        body = by_value(new, name)
        made[name] = (body, b"" if own is None else by_value(own, name))
        _handed(context, name, *made[name], one=True)  # tries it out, on a copy
    return made


def _check_form(context: RunContext, name: str, new: Operator) -> None:
    old: Operator = pickle.loads(context.code[name])
    for what, before, after in (
        ("stateless", type(old).stateless, type(new).stateless),
        ("a batch form", is_batch_form(type(old)), is_batch_form(type(new))),
    ):
        if before != after:
            raise WorkflowError(
                f"Expected an operator that is {'' if before else 'not '}{what}, as '{name}' is.",
                operator=name,
                hint="Start a new run for a change of this kind.",
            )
    wanted = context.plan.schemas[name]
    try:
        inputs = [context.plan.schemas[up] for up in context.plan.graph.ops[name].inputs]
        got = output_of(context.spark, name, type(new).output, inputs)
    except Exception as error:
        raise WorkflowError(
            f"The `output` of {type(new).__name__} is no schema: {str(error).splitlines()[0]}", operator=name
        ) from None
    if got.simpleString() != wanted.simpleString():
        raise WorkflowError(
            f"Expected {wanted.simpleString()[7:-1]} as the output of '{name}', got {got.simpleString()[7:-1]}.",
            operator=name,
            hint="What comes behind it was planned for the old columns: keep them, or start a new run.",
        )


def apply_code(context: RunContext, used: i.UseCode) -> None:
    """Put code into force before the next epoch. Nothing has changed when it raises."""
    recording = context.recording
    latest = {n: versions[-1] for n, versions in used.codes.items() if versions}
    now = {**context.expressions, **context.code}
    codes = {n: c for n, c in latest.items() if c.body != now.get(n)}
    if codes and recording.log is not None:
        _put_into_force(context, codes)
    context.code_versions = {n: c.version for n, c in latest.items()}


def _put_into_force(context: RunContext, codes: Mapping[str, m.CodeVersion]) -> None:
    recording, history = context.recording, context.history
    assert recording.log is not None
    code = {n: c for n, c in codes.items() if n in context.code}
    own = {**context.expressions, **{n: c.body for n, c in codes.items() if n not in context.code}}
    plan = context.plan
    if own != context.expressions:
        plan = plan_with(context.spark, plan, context.sources, own)
    handed = {n: _handed(context, n, c.body, c.transfer) for n, c in code.items()}
    versions = {n: 1 + sum(n in change.operators for change in history.changes) for n in codes}
    for name, one in codes.items():
        code_path(recording, name, versions[name]).write_bytes(one.body)
    files = recording.sealed_code(code_path(recording, n, v) for n, v in versions.items())
    number = len(history.epochs)
    fact: AnyFact
    if any(handed.values()):  # one fact says both, so that no crash can come between state and code
        fact = _transfer_epoch(context, number, handed, versions, files)
    else:
        fact = LogicChanged(at=time.time(), epoch=number, operators=versions, files=files)
    recording.log.append(fact)
    history.add(fact)
    context.code.update({n: c.body for n, c in code.items()})
    if plan is not context.plan:
        context.forget_shared()  # build sides may have been made with the old expression
        context.plan, context.expressions = plan, own


def _transfer_epoch(
    context: RunContext,
    number: int,
    handed: Mapping[str, list[_Handed]],
    versions: dict[str, int],
    code_files: dict[str, Digest],
) -> EpochCommitted:
    """The whole states in their new form, as an epoch that processes nothing."""
    last, attempt = context.history.epochs[-1], new_attempt()
    folder = context.recording.attempt_folder(number, attempt)
    state: dict[str, tuple[StateFile, ...]] = {}
    for name, parts in handed.items():
        state[name] = tuple(_write_whole(folder, number, name, p.bucket, p.instance) for p in parts)
    return EpochCommitted(
        at=time.time(),
        epoch=number,
        level=last.level,
        attempt=attempt,
        last=last.last,
        state=state,
        code=versions,
        files=context.recording.sealed(folder),
        code_files=code_files,
    )


def _handed(
    context: RunContext, name: str, body: bytes, transfer: bytes, *, one: bool = False
) -> list[_Handed]:
    """The new operator with the state of the old one, by key partition (`one`: of one of them only)."""
    made = []
    files = context.recording.state_files(name, list(context.history.epochs))
    for bucket, changes in files.items():
        old: Operator = pickle.loads(context.code[name])
        restore(old, (read_state(file)[1] for file, _ in changes))
        made.append(_Handed(bucket, hand_over(name, old, context.code[name], body, transfer)))
        if one:
            break
    return made


# --- inside an epoch ------------------------------------------------------------------------------------------------


def may_switch(context: RunContext, name: str) -> bool:
    """Whether an operator can switch inside an epoch so that the epoch can be computed again.

    A stateless operator can if its tuples carry positions, because something behind it needs the order, and come one
    by one.
    """
    plan = context.plan
    if plan.shape(name) == "python":
        return True
    tail = next(t for t, chain in plan.chains.items() if name in chain)
    return plan.width[tail] > 0 and not is_batch_form(type(pickle.loads(context.code[name])))


def settle_switches(
    context: RunContext, number: int, folder: Path, attempt: str, state: Mapping[str, tuple[StateFile, ...]]
) -> tuple[dict[str, tuple[StateFile, ...]], dict[str, int]]:
    """At the end of an epoch inside which operators switched: hand over what nobody touched, and keep the code.

    Returns the epoch's state files, and the versions of operators in force from the next epoch on (none: nobody went
    over).
    """
    found = read_switch_records(folder)
    used = context.steering.take_code() if found and context.steering is not None else None
    if used is None:
        return dict(state), {}
    last = EpochCommitted(at=0.0, epoch=number, level=0, attempt=attempt, state=dict(state))
    made, versions = dict(state), {}
    for name, codes in used.codes.items():
        before = context.code_versions.get(name, 0)
        newer = [c for c in codes if c.version > before]
        if not newer:
            continue
        bodies = {before: context.code[name], **{c.version: c.body for c in newer}}
        for code in newer:
            write_switch_code(folder, name, code.version, code.body, code.transfer)
        reached = {t.bucket: t.version for t in found if t.operator == name}
        files = context.recording.state_files(name, [*context.history.epochs, last])
        own = list(made.get(name, ()))
        for bucket, changes in files.items():
            at = reached.get(bucket, before)
            if at == newer[-1].version:
                continue
            instance: Operator = pickle.loads(bodies[at])
            restore(instance, (read_state(file)[1] for file, _ in changes))
            code_now = bodies[at]
            for code in (c for c in newer if c.version > at):
                instance = hand_over(name, instance, code_now, code.body, code.transfer)
                code_now = code.body
            own = [f for f in own if not (f.full and f.bucket == bucket)]
            own.append(_write_whole(folder, number, name, bucket, instance))
        if own:
            made[name] = tuple(sorted(own, key=lambda f: (f.bucket, f.full)))
        versions[name] = 1 + sum(name in change.operators for change in context.history.changes)
        code_path(context.recording, name, versions[name]).write_bytes(newer[-1].body)
        context.code[name] = newer[-1].body
        context.code_versions = {**context.code_versions, name: newer[-1].version}
    return made, versions


def _write_whole(folder: Path, epoch: int, name: str, bucket: int, instance: Operator) -> StateFile:
    capture = StateCapture(name, instance)
    entries = capture.entries()
    header = Header(operator=name, bucket=bucket, epoch=epoch, full=True, entries=entries)
    path = folder / "state" / slug_unique(name) / f"{bucket:04d}.full"
    return StateFile(bucket, True, write_state(path, header, capture.whole()), entries)


# --- which code, when -----------------------------------------------------------------------------------------------


def code_path(recording: Recording, operator: str, version: int) -> Path:
    """Where a recording keeps a later version of an operator's code."""
    path = recording.code_path(operator, version)
    path.parent.mkdir(exist_ok=True)
    return path


def code_at(
    recording: Recording, history: History, code: Mapping[str, bytes], epoch: int
) -> dict[str, bytes]:
    """The code an epoch ran with; `code` is what the run began with."""
    made = dict(code)
    for change in history.changes:
        if change.epoch <= epoch:
            for name, version in change.operators.items():
                if name in made:  # others are native: see expression_change.py
                    made[name] = recording.read_code(name, version, change.files)
    return made
