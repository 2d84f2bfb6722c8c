"""Other logic for a run that goes on: checked before anything changes, put into force between two epochs.

Between two epochs no tuple is in flight, so all operators change at once and no tuple meets old and new logic: the
strongest of Texera's three levels of consistency, whichever was asked for. The state goes over as an epoch of its own
that processes nothing and holds the whole state in the new form; the log says from which epoch on which code is in
force, so that whoever computes an epoch again uses the code it ran with.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.errors import RunError, SamovarError, WorkflowError
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.state import StateMap
from samovar.ids import new_attempt
from samovar.record.log import AnyFact, EpochCommitted, LogicChanged, StateFile
from samovar.record.state_files import Header, StateCapture, dumps, read_state, restore, write_state
from samovar.record.store import History, Recording, slug_unique
from samovar.runtime.code import by_value
from samovar.runtime.inspecting import check_python
from samovar.runtime.plain_states import attributes

if TYPE_CHECKING:
    from samovar.runtime.epoch import RunContext

__all__ = ["Transfer", "apply_code", "carried", "checked_bodies", "code_at"]

Transfer = Callable[[dict[str, Any]], Mapping[str, Any]]
"""From the old operator's state to values to set on the new one."""


@dataclass(frozen=True)
class _Handed:
    bucket: int
    instance: Operator


def checked_bodies(
    context: RunContext, changes: Mapping[str, Any], transfer: Transfer | Mapping[str, Transfer] | None
) -> dict[str, tuple[bytes, bytes]]:
    """Code and transfer of each operator, as they are sent about. Raises when one cannot be put into force."""
    if not changes:
        raise RunError('Expected operators to modify, got none: run.modify({"FE": NewFE()}).')
    made: dict[str, tuple[bytes, bytes]] = {}
    for name, new in changes.items():
        check_python(context, name)
        if not isinstance(new, Operator):
            raise RunError(
                f"Expected an operator for '{name}', got {type(new).__name__}.",
                operator=name,
                hint=f'Pass an instance: run.modify({{"{name}": New()}}).',
            )
        own = transfer.get(name) if isinstance(transfer, Mapping) else transfer
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
        got = context.spark.createDataFrame([], type(new).output).schema
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
    codes = {n: c for n, c in latest.items() if c.body != context.code[n]}
    if codes and recording.log is not None:
        _put_into_force(context, codes)
    context.code_versions = {n: c.version for n, c in latest.items()}


def _put_into_force(context: RunContext, codes: Mapping[str, m.Code]) -> None:
    recording, history = context.recording, context.history
    assert recording.log is not None
    handed = {n: _handed(context, n, c.body, c.transfer) for n, c in codes.items()}
    versions = {n: 1 + sum(n in change.operators for change in history.changes) for n in codes}
    for name, code in codes.items():
        code_path(recording, name, versions[name]).write_bytes(code.body)
    number = len(history.epochs)
    fact: AnyFact
    if any(handed.values()):  # one fact says both, so that no crash can come between state and code
        fact = _transfer_epoch(context, number, handed, versions)
    else:
        fact = LogicChanged(at=time.time(), epoch=number, operators=versions)
    recording.log.append(fact)
    history.add(fact)
    context.code.update({n: c.body for n, c in codes.items()})


def _transfer_epoch(
    context: RunContext, number: int, handed: Mapping[str, list[_Handed]], versions: dict[str, int]
) -> EpochCommitted:
    """The whole states in their new form, as an epoch that processes nothing."""
    last, attempt = context.history.epochs[-1], new_attempt()
    folder = context.recording.attempt_folder(number, attempt)
    state: dict[str, tuple[StateFile, ...]] = {}
    for name, parts in handed.items():
        files = []
        for part in parts:
            capture = StateCapture(name, part.instance)
            entries = capture.entries()
            header = Header(operator=name, bucket=part.bucket, epoch=number, full=True, entries=entries)
            path = folder / "state" / slug_unique(name) / f"{part.bucket:04d}.full"
            size = write_state(path, header, capture.whole())
            files.append(StateFile(part.bucket, True, size, entries))
        state[name] = tuple(files)
    return EpochCommitted(
        at=time.time(),
        epoch=number,
        level=last.level,
        attempt=attempt,
        last=last.last,
        state=state,
        code=versions,
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
        new: Operator = pickle.loads(body)
        try:
            if transfer:
                for attribute, value in dict(pickle.loads(transfer)(attributes(old))).items():
                    setattr(new, attribute, value)
            else:
                carried(name, old, pickle.loads(context.code[name]), new)
            StateCapture(name, new).whole()
        except SamovarError:
            raise
        except Exception as error:
            raise RunError(
                f"The state of '{name}' could not be handed to the new operator: {type(error).__name__}: {error}.",
                operator=name,
                hint="Give transfer=: a function from the old state (a mapping) to values to set on the new operator.",
            ) from None
        made.append(_Handed(bucket, new))
        if one:
            break
    return made


def carried(name: str, old: Operator, fresh: Operator, new: Operator) -> None:
    """Set on the new operator what the old one had changed since it was made; the rest is as the new one made it."""
    for attribute, value in vars(old).items():
        if attribute.startswith("_sv_"):
            continue
        begun = vars(fresh).get(attribute)
        if isinstance(value, StateMap) or attribute not in vars(fresh) or dumps(begun) != dumps(value):
            setattr(new, attribute, value)


# --- which code, when -----------------------------------------------------------------------------------------------


def code_path(recording: Recording, operator: str, version: int) -> Any:
    """Where a recording keeps a later version of an operator's code."""
    folder = recording.path / "code"
    folder.mkdir(exist_ok=True)
    return folder / f"{slug_unique(operator)}.{version}.pkl"


def code_at(
    recording: Recording, history: History, code: Mapping[str, bytes], epoch: int
) -> dict[str, bytes]:
    """The code an epoch ran with; `code` is what the run began with."""
    made = dict(code)
    for change in history.changes:
        if change.epoch <= epoch:
            for name, version in change.operators.items():
                made[name] = code_path(recording, name, version).read_bytes()
    return made
