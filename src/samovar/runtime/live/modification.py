"""Other logic for a run that goes on: checked before anything changes, put into force between two epochs or inside one.

Between two epochs no tuple is in flight, so all operators change at once and no tuple meets old and new logic: the
strongest of Texera's levels of consistency. The state is transferred by an additional epoch that processes nothing and
holds the whole state in the new form. Inside an epoch workers switch tuple by tuple (`code_switch.py`); when the epoch
ends, the states that no worker had loaded are transferred as well, so that every epoch ends with one version of each
operator. The log has the epoch from which on code is in force, so that a replay uses the code that an epoch ran with.

Operators that Spark runs take other expressions, between two epochs only. Such an operator must give the same columns
and stay where it is; operators that keep something (aggregates, sorts, joins) cannot change, since what they kept was
computed by the old expression, nor can operators that are computed on several levels, where a tuple would meet both.

Forks transfer states to changed operators by the same functions (`handed_states`, `transfer_epoch`).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from samovar.compile.analysis import analyse, output_of
from samovar.compile.plan import Plan, make_plan
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.desk import Desk
from samovar.control.events import Consistency, ModifyRequested
from samovar.errors import RunError, SamovarError, UnknownName, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.class_check import check_class
from samovar.graph.code import operator_from_code
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.operators.base import Op, expr
from samovar.graph.workflow import Graph
from samovar.ids import new_attempt
from samovar.record.digests import Digest
from samovar.record.log import AnyFact, EpochCommitted, LogicChanged, StateFile
from samovar.record.state_files import Header, StateCapture, dumps, read_state, restore, write_state
from samovar.record.store import History, Recording, slug_unique
from samovar.runtime.exchange.code_switch import Transfer, hand_over, read_switch_records, write_switch_code
from samovar.runtime.failures.spark_errors import SparkError
from samovar.runtime.live.inspection import check_python
from samovar.runtime.pickles import by_value
from samovar.runtime.sources.units import Source

if TYPE_CHECKING:
    from samovar.runtime.epochs.run_context import RunContext

__all__ = [
    "Modified",
    "Transfer",
    "apply_code",
    "code_at",
    "code_path",
    "expressions_at",
    "handed_states",
    "modification",
    "modified",
    "other_expression",
    "plan_with",
    "settle_switches",
    "transfer_epoch",
]


@dataclass(frozen=True)
class Modified:
    """What became of a modification. As text: one sentence about it."""

    epoch: int | None
    """The first epoch with the new logic; None: there is none, or it is the next one."""
    taken: Mapping[str, int]
    """Tuples that each operator had taken when the new logic came into force."""
    exact: bool = True
    """Whether these numbers are exact: between two epochs they are. Inside an epoch they are what workers reported
    last; the recording has the exact places when the epoch is committed (`past.switches`)."""
    late: bool = False
    """Whether it came too late: no tuple meets the new logic."""
    note: str = ""

    def __str__(self) -> str:
        if self.late:
            return f"too late: {self.note}"
        if self.epoch is None:
            return self.note
        about = "" if self.exact else "about "
        places = ", ".join(f"{about}tuple {taken + 1:,} of {name}" for name, taken in self.taken.items())
        return f"in force since {places} (epoch {self.epoch})"


def modified(context: RunContext, desk: Desk, names: tuple[str, ...], answer: i.CommandAnswer) -> Modified:
    """What became of a modification of these operators, from the desk's answer."""
    if answer.late or answer.note:
        return Modified(None, {}, late=answer.late, note=answer.note)
    history = context.history
    if answer.epoch is None:  # nothing has begun in this process
        totals = history.totals()
        taken = {n: sum(totals[n].taken) if n in totals else 0 for n in names}
        return Modified(len(history.epochs), taken)
    if answer.taken:
        return Modified(answer.epoch, {n: answer.taken.get(n, 0) for n in names})
    return Modified(answer.epoch, {n: desk.taken(n) for n in names}, exact=False)


def modification(
    context: RunContext,
    changes: Mapping[str, Any],
    consistency: Consistency,
    transfer: Transfer | Mapping[str, Transfer] | None,
) -> Callable[[str], ModifyRequested]:
    """The request for other logic, as a function of the command's name. Raises when it cannot be put into force."""
    known = context.plan.graph.ops
    python = {
        n: new
        for n, new in changes.items()
        if isinstance(new, Operator) or isinstance(known.get(n), ops.Python)
    }
    bodies = _checked_bodies(context, python, transfer)
    native = _checked_expressions(context, {n: new for n, new in changes.items() if n not in python})
    inside = not native and all(_may_switch(context, name) for name in bodies)
    every = {**bodies, **{n: (body, b"") for n, body in native.items()}}
    return lambda name: ModifyRequested(
        command=name,
        bodies=every,
        native=tuple(native),
        consistency=consistency if inside else "strict",
        at=time.monotonic(),
    )


def _checked_bodies(
    context: RunContext, changes: Mapping[str, Any], transfer: Transfer | Mapping[str, Transfer] | None
) -> dict[str, tuple[bytes, bytes]]:
    """Code and transfer of each operator, pickled. Raises when the code of an operator cannot be put into force."""
    bodies: dict[str, tuple[bytes, bytes]] = {}
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
        function = transfer.get(name) if isinstance(transfer, Mapping) else transfer
        check_class(new, name)
        _check_form(context, name, new)
        bodies[name] = (by_value(new, name), b"" if function is None else by_value(function, name))
        # tried on a copy of one state: a transfer that raises is refused before anything changes
        handed_states(context.recording, context.history, name, context.code[name], *bodies[name], one=True)
    return bodies


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
            f"The `output` of {type(new).__name__} is not a schema: {SparkError.of(error).line}",
            operator=name,
        ) from None
    _check_output(name, wanted, got)


def _check_output(name: str, wanted: StructType, got: StructType) -> None:
    if got.simpleString() != wanted.simpleString():
        before, after = (s.simpleString().removeprefix("struct<").removesuffix(">") for s in (wanted, got))
        raise WorkflowError(
            f"Expected {before} as the output of '{name}', got {after}.",
            operator=name,
            hint="Operators after it were planned for the old columns: keep them, or start a new run.",
        )


def apply_code(context: RunContext, used: i.UseCode) -> None:
    """Put code into force before the next epoch. Nothing has changed when it raises."""
    recording = context.recording
    latest = {n: versions[-1] for n, versions in used.codes.items() if versions}
    now = {**context.logic.expressions, **context.code}
    codes = {n: c for n, c in latest.items() if c.body != now.get(n)}
    if codes and recording.log is not None:
        _put_into_force(context, codes)
    context.logic.code_versions = {n: c.version for n, c in latest.items()}


def _put_into_force(context: RunContext, codes: Mapping[str, m.CodeVersion]) -> None:
    recording, history = context.recording, context.history
    assert recording.log is not None
    code = {n: c for n, c in codes.items() if n in context.code}
    changed = {n: c.body for n, c in codes.items() if n not in context.code}
    expressions = {**context.logic.expressions, **changed}
    plan = context.plan
    if expressions != context.logic.expressions:
        plan = plan_with(context.spark, plan, context.sources, expressions)
    states = {
        n: handed_states(recording, history, n, context.code[n], c.body, c.transfer) for n, c in code.items()
    }
    versions = {n: 1 + sum(n in change.operators for change in history.changes) for n in codes}
    for name, one in codes.items():
        code_path(recording, name, versions[name]).write_bytes(one.body)
    files = recording.sealed_code(code_path(recording, n, v) for n, v in versions.items())
    number = len(history.epochs)
    fact: AnyFact
    if any(states.values()):  # one fact for both, so that no crash can come between state and code
        fact = transfer_epoch(recording, history, states, versions, files)
    else:
        fact = LogicChanged(at=time.time(), epoch=number, operators=versions, files=files)
    recording.log.append(fact)
    history.add(fact)
    context.code.update({n: c.body for n, c in code.items()})
    if plan is not context.plan:
        context.progress.build_sides.forget()  # they may have been computed with the old expression
        context.logic.plan, context.logic.expressions = plan, expressions


def transfer_epoch(
    recording: Recording,
    history: History,
    states: Mapping[str, Mapping[int, Operator]],
    versions: dict[str, int] | None = None,
    code_files: dict[str, Digest] | None = None,
) -> EpochCommitted:
    """States in their new form, by operator and key partition, as an epoch that processes nothing."""
    number, last, attempt = len(history.epochs), history.epochs[-1], new_attempt()
    folder = recording.attempt_folder(number, attempt)
    state = {
        name: tuple(_write_whole(folder, number, name, *part) for part in parts.items())
        for name, parts in states.items()
    }
    return EpochCommitted(
        at=time.time(),
        epoch=number,
        level=last.level,
        attempt=attempt,
        last=last.last,
        state=state,
        code=versions or {},
        files=recording.sealed(folder),
        code_files=code_files or {},
    )


def handed_states(
    recording: Recording,
    history: History,
    name: str,
    code: bytes,
    body: bytes,
    transfer: bytes = b"",
    *,
    one: bool = False,
) -> dict[int, Operator]:
    """The new operator with the state of the old one, by key partition (`one`: of one of them only, to try it out)."""
    states: dict[int, Operator] = {}
    for bucket, changes in recording.state_files(name, list(history.epochs)).items():
        old: Operator = pickle.loads(code)
        restore(old, (read_state(file)[1] for file, _ in changes))
        states[bucket] = hand_over(name, old, code, body, transfer)
        if one:
            break
    return states


# --- expressions ----------------------------------------------------------------------------------------------------


def other_expression(op: Op, change: Any, problem: type[SamovarError] = RunError) -> Op:
    """A native operator with other expressions: SQL text (several: a list), or a mapping of its fields."""
    if isinstance(change, Mapping):
        try:
            return msgspec.structs.replace(op, **change)
        except TypeError as error:
            raise problem(f"'{op.kind}' has no such field: {error}.", operator=op.name) from None
    columns = [change] if isinstance(change, str) or hasattr(change, "cast") else list(change)
    texts = tuple(expr(c) for c in columns)
    wanted = len(op.expressions())
    if len(texts) != wanted:
        raise problem(
            f"Expected {wanted} expressions for '{op.name}', got {len(texts)}.",
            operator=op.name,
            hint=f"It has: {', '.join(op.expressions()) or 'none'}.",
        )
    return op.with_expressions(texts)


def _checked_expressions(context: RunContext, changes: Mapping[str, Any]) -> dict[str, bytes]:
    """The new operators, pickled. Raises when an operator cannot be put into force; runs no job."""
    plan = context.plan
    bodies: dict[str, bytes] = {}
    for name, change in changes.items():
        if name not in plan.graph.ops:
            raise UnknownName(name, plan.graph.ops, what="an operator of the run")
        op = plan.graph.ops[name]
        if isinstance(op, ops.Python | ops.Batches) or plan.shape(name) not in ("one", "some", "many"):
            raise RunError(
                f"Expected a Python operator or an operator that keeps nothing (a filter, a select), got '{name}' "
                f"({op.kind}).",
                operator=name,
                hint="Fork the run from a moment before: past.jump(...).fork({...}).",
            )
        places = plan.placement
        if len(places.streams[name] | places.whole[name]) > 1 or places.whole[name]:
            raise RunError(
                f"'{name}' is computed more than once in a run: a tuple would meet its old and its new expression.",
                operator=name,
                hint="Fork the run from a moment before: past.jump(...).fork({...}).",
            )
        bodies[name] = dumps(other_expression(op, change))
    plan_with(context.spark, plan, context.sources, bodies)
    return bodies


def plan_with(
    spark: SparkSession,
    plan: Plan,
    sources: Mapping[str, Source],
    bodies: Mapping[str, bytes],
    *,
    positions: bool = False,
) -> Plan:
    """The plan with other expressions. Raises when an operator would give other columns or work elsewhere."""
    if not bodies:
        return plan
    operators = {**plan.graph.ops, **{n: pickle.loads(body) for n, body in bodies.items()}}
    graph = Graph(plan.graph.name, operators, plan.graph.live)
    analysis = analyse(spark, graph, {n: s.struct for n, s in sources.items()})
    new = make_plan(
        spark,
        analysis,
        {n: s.size for n, s in sources.items()},
        buckets=int(plan.settings["buckets"]),
        settings=plan.settings,
        positions=positions,
    )
    for name in plan.graph.ops:
        _check_output(name, plan.schemas[name], new.schemas[name])
        same = plan.shape(name) == new.shape(name) and plan.width[name] == new.width[name]
        if not same or plan.placement.level[name] != new.placement.level[name]:
            raise WorkflowError(
                f"With this change '{name}' works elsewhere in the run: what the run stored does not fit.",
                operator=name,
                hint="Start a new run for a change of this kind.",
            )
    return new


# --- inside an epoch ------------------------------------------------------------------------------------------------


def _may_switch(context: RunContext, name: str) -> bool:
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
    """At the end of an epoch inside which operators switched: transfer the states that no worker had loaded, and keep
    the code.

    Returns the epoch's state files, and the versions of operators in force from the next epoch on (none: no operator
    switched).
    """
    records = read_switch_records(folder)
    used = context.steering.take_code() if records and context.steering is not None else None
    if used is None:
        return dict(state), {}
    last = EpochCommitted(at=0.0, epoch=number, level=0, attempt=attempt, state=dict(state))
    all_files, versions = dict(state), {}
    for name, codes in used.codes.items():
        before = context.logic.code_versions.get(name, 0)
        newer = [c for c in codes if c.version > before]
        if not newer:
            continue
        bodies = {before: context.code[name], **{c.version: c.body for c in newer}}
        for code in newer:
            write_switch_code(folder, name, code.version, code.body, code.transfer)
        reached = {t.bucket: t.version for t in records if t.operator == name}
        files = list(state.get(name, ()))
        for bucket, changes in context.recording.state_files(name, [*context.history.epochs, last]).items():
            at = reached.get(bucket, before)
            if at == newer[-1].version:
                continue
            instance: Operator = pickle.loads(bodies[at])
            restore(instance, (read_state(file)[1] for file, _ in changes))
            code_now = bodies[at]
            for code in (c for c in newer if c.version > at):
                instance = hand_over(name, instance, code_now, code.body, code.transfer)
                code_now = code.body
            files = [f for f in files if not (f.full and f.bucket == bucket)]
            files.append(_write_whole(folder, number, name, bucket, instance))
        if files:
            all_files[name] = tuple(sorted(files, key=lambda f: (f.bucket, f.full)))
        versions[name] = 1 + sum(name in change.operators for change in context.history.changes)
        code_path(context.recording, name, versions[name]).write_bytes(newer[-1].body)
        context.code[name] = newer[-1].body
        context.logic.code_versions[name] = newer[-1].version
    return all_files, versions


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
    """The code of Python operators that an epoch ran with; `code` is what the run began with."""
    return {**code, **_changed(recording, history, epoch, lambda name: name in code)}


def expressions_at(
    recording: Recording, history: History, code: Mapping[str, bytes], epoch: int
) -> dict[str, bytes]:
    """Native operators that an epoch ran with other expressions; `code` names the Python operators."""
    return _changed(recording, history, epoch, lambda name: name not in code)


def _changed(
    recording: Recording, history: History, epoch: int, wanted: Callable[[str], bool]
) -> dict[str, bytes]:
    """The code that was put into force up to an epoch, by operator."""
    return {
        name: recording.read_code(name, version, change.files)
        for change in history.changes
        if change.epoch <= epoch
        for name, version in change.operators.items()
        if wanted(name)
    }
