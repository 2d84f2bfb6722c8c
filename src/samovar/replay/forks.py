"""Forks: a new run that starts from a moment of an old one, with other logic, other parameters or a corrected tuple.

The fork's recording shares the epochs before the moment with its parent (hard links: they cost nothing and outlive
the parent). The tuples of the moment's epoch that come before the moment are computed once more, by the old logic and
with what calls of `log_result` gave, and become an epoch of the fork: it takes the time of an epoch at most. The unit
of input that the moment lies in is written as two files, which take its place. Then the new logic goes on from the
state of the old logic.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from samovar.compile.native import hidden
from samovar.compile.plan import Plan
from samovar.compile.strategy import EpochRange
from samovar.errors import RunError, SamovarError, TimeTravelError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.class_check import check_class
from samovar.graph.operator import Operator
from samovar.graph.workflow import Graph
from samovar.ids import HIDDEN, new_run_id
from samovar.positions import Position, pack, unpack
from samovar.record.addresses import local_folder
from samovar.record.digests import Digest, flush_tree
from samovar.record.log import EpochCommitted, LogicChanged
from samovar.record.state_files import dumps
from samovar.record.store import History, Recording, link, slug_unique
from samovar.replay.condition_watch import SERVICES
from samovar.replay.trace.segments import Segment
from samovar.replay.trace.tracer import Tracer
from samovar.runtime.epochs.attempt import Attempt
from samovar.runtime.epochs.epoch import Epoch
from samovar.runtime.epochs.epoch_runner import commit_epoch
from samovar.runtime.epochs.run_context import Logic, RunContext, RunProgress
from samovar.runtime.exchange.decisions import write_decisions
from samovar.runtime.live.modification import (
    code_path,
    handed_states,
    other_expression,
    plan_with,
    transfer_epoch,
)
from samovar.runtime.parquet_files import writer_into
from samovar.runtime.pickles import by_value
from samovar.runtime.plans import Plans, plans_of
from samovar.runtime.run import Run
from samovar.runtime.run_thread import PreparedRun
from samovar.runtime.sources.unit_list import Unit
from samovar.runtime.sources.units import Source, read_units
from samovar.runtime.start import first_fact, launch
from samovar.runtime.workflow_file import write_down
from samovar.text import quote_name

__all__ = ["Cut", "start_fork"]

Edit = Mapping[str, Any]
_PART = f"{HIDDEN}part"


@dataclass(frozen=True)
class Cut:
    """Where a fork begins: a segment, and the first leaf tuple for the new logic (None: all of the segment)."""

    segment: Segment
    at: Position | None


def start_fork(
    tracer: Tracer,
    cut: Cut,
    changes: Mapping[str, Any],
    *,
    row: Edit | None = None,
    record: str | os.PathLike[str] | None = None,
    interactive: bool | None = None,
) -> Run:
    """Start the fork and return at once. Raises for changes that are not possible."""
    _check_code(tracer, cut)
    graph = _changed_graph(tracer.plan_at(cut.segment.epoch).graph, changes)
    _check_level(tracer.plan, cut.segment, changes)
    root = local_folder(record) if record is not None else tracer.recording.path.parent
    fork = Recording.create(root.absolute() / new_run_id(f"{graph.name}-fork"))

    def prepare() -> PreparedRun:
        return _prepared(tracer, cut, fork, graph, changes, row)

    return launch(fork, prepare, SERVICES, interactive=interactive, remove=fork.path)


def _prepared(
    tracer: Tracer, cut: Cut, fork: Recording, graph: Graph, changes: Mapping[str, Any], row: Edit | None
) -> PreparedRun:
    parent, started = tracer.recording, tracer.history.started
    assert started is not None
    assert fork.log is not None
    sources, split = _split(tracer, cut, fork, row)
    first = first_fact(
        fork,
        graph.name,
        started.options,
        sources.values(),
        at=time.time(),
        spark=started.spark,
        parent=parent.run_id,
    )
    published = {f"results/{slug_unique(name)}/" for name in tracer.history.published}
    shared = [_shifted(fact, split, published) for fact in tracer.history.epochs[: cut.segment.epoch]]
    history = History.of([first, *shared])
    for fact in shared:
        _share(parent, fork, fact)
    code = tracer.code_at(cut.segment.epoch)
    write_down(fork, tracer.plan.graph, sources, code)
    plans = plans_of(fork, history, tracer.spark, graph=graph)
    if tracer.history.changes:  # operators that the fork does not change keep the code they had at the moment
        plans.code.update({n: body for n, body in code.items() if n not in changes})
    _check_same_places(tracer.plan, plans.plan, bool(shared) or split is not None)
    write_down(fork, plans.plan.graph, sources, plans.code)
    states = partial(_handed, code, history, fork, changes)
    states(one=True)  # raises now, in the caller's thread, if a state cannot be handed over
    files = {**_inherited(parent), **fork.sealed_start()}
    flush_tree(fork.path / "epochs", copied=True)
    fork.log.append(msgspec.structs.replace(first, files=files))
    for fact in shared:
        fork.log.append(fact)
    _remember(tracer, cut, fork, history, plans, changes, len(shared) + int(split is not None))
    plan = tracer.plan_at(cut.segment.epoch)
    old, new = (
        RunContext(tracer.spark, sources, fork, fork.run_id, logic, RunProgress(history))
        for logic in (Logic(plan, code), Logic(plans.plan, plans.code))
    )

    def before(stopping: Callable[[], bool]) -> None:
        if split is not None:
            make, marks = _beginning(tracer, cut)
            covers = replace(_covers(tracer, cut, sources, split), marks=marks)
            commit_epoch(old, covers, 0, stopping, make=make)
            old.progress.build_sides.forget()
        handed = {name: parts for name, parts in states().items() if parts}
        if handed and fork.log is not None:
            fact = transfer_epoch(fork, history, handed)
            fork.log.append(fact)
            history.add(fact)

    return PreparedRun(new, before=before, publishes=False)


def _handed(
    code: Mapping[str, bytes],
    history: History,
    fork: Recording,
    changes: Mapping[str, Any],
    *,
    one: bool = False,
) -> dict[str, dict[int, Operator]]:
    """Changed Python operators in the state of the old ones, by key partition (`one`: of one of them only)."""
    try:
        return {
            name: handed_states(fork, history, name, code[name], by_value(change, name), one=one)
            for name, change in changes.items()
            if isinstance(change, Operator)
        }
    except RunError as error:
        raise TimeTravelError(error.message, operator=error.operator) from None


def _remember(
    tracer: Tracer,
    cut: Cut,
    fork: Recording,
    history: History,
    plans: Plans,
    changes: Mapping[str, Any],
    first: int,
) -> None:
    """Log the logic of the epochs before `first`, the fork's first epoch with the new logic, for their replays."""
    code = plans.code
    python = {n for n in code if n in changes or any(n in c.operators for c in tracer.history.changes)}
    native = {n for n in changes if n not in code and n in tracer.plan.graph.ops}

    def logic(epoch: int) -> dict[str, bytes]:
        if epoch >= first:
            return {**{n: code[n] for n in python}, **{n: dumps(plans.plan.graph.ops[n]) for n in native}}
        then = min(epoch, cut.segment.epoch)
        ran, plan = tracer.code_at(then), tracer.plan_at(then)
        return {**{n: ran[n] for n in python}, **{n: dumps(plan.graph.ops[n]) for n in native}}

    try:
        for epoch in range(first):
            bodies = {n: body for n, body in logic(epoch).items() if n in native}
            plan_with(tracer.spark, plans.plan, plans.sources, bodies)
    except SamovarError:  # its output had other columns: the operators behind it cannot be traced with it
        native = set()
    now, versions = logic(first), dict.fromkeys((*python, *native), 0)
    assert fork.log is not None
    for epoch in range(first + 1):
        changed = {n: body for n, body in logic(epoch).items() if body != now[n]}
        if not changed:
            continue
        now |= changed
        for name, body in changed.items():
            versions[name] += 1
            code_path(fork, name, versions[name]).write_bytes(body)
        files = fork.sealed_code(code_path(fork, n, versions[n]) for n in changed)
        fact = LogicChanged(
            at=time.time(), epoch=epoch, operators={n: versions[n] for n in changed}, files=files
        )
        fork.log.append(fact)
        history.add(fact)


# --- other logic ----------------------------------------------------------------------------------------------------


def _check_code(tracer: Tracer, cut: Cut) -> None:
    """Raise when the fork begins inside an epoch in which operators switched to other code."""
    epochs, number = tracer.history.epochs, cut.segment.epoch
    if cut.at is not None and number < len(epochs) and epochs[number].switched:
        named = ", ".join(f"'{n}'" for n in epochs[number].switched)
        raise TimeTravelError(
            f"A fork cannot begin inside epoch {number}: {named} switched to other code in it.",
            hint=f"Fork from its start or from its end: past.jump(epoch={number}), past.jump(epoch={number + 1}).",
        )


def _changed_graph(graph: Graph, changes: Mapping[str, Any]) -> Graph:
    """The graph with some operators' logic replaced.

    A Python operator takes an `sv.Operator`; a native one SQL text (several: a list), or a mapping of its fields.
    """
    changed = dict(graph.ops)
    live = dict(graph.live)
    for name, change in changes.items():
        if name not in changed:
            raise UnknownName(name, changed, what="an operator of the run")
        op = changed[name]
        if isinstance(change, Operator):
            if not isinstance(op, ops.Python):
                raise TimeTravelError(
                    f"'{name}' is not a Python operator: expected SQL text, got {type(change).__name__}.",
                    operator=name,
                )
            check_class(change, name)
            changed[name] = msgspec.structs.replace(op, code="", class_name="", params={})
            live[name] = change
        elif isinstance(op, ops.Python):
            raise TimeTravelError(
                f"Expected an operator for '{name}', got {type(change).__name__}.",
                operator=name,
                hint=f"Pass an instance: m.fork({{'{name}': Fixed()}}).",
            )
        else:
            changed[name] = other_expression(op, change, TimeTravelError)
    return Graph(graph.name, changed, live)


def _check_level(plan: Plan, segment: Segment, changes: Mapping[str, Any]) -> None:
    """Raise when a changed operator has processed all its tuples of the epoch before the moment."""
    done = [n for n in changes if segment.low <= plan.placement.level[n] < segment.level]
    if done:
        raise TimeTravelError(
            f"'{done[0]}' has processed all its tuples at this moment: a change to it would come too late.",
            operator=done[0],
            hint=f"Fork from before: past.jump('{done[0]}', tuples=...), or past.jump(epoch={segment.epoch}).",
        )


def _check_same_places(old: Plan, new: Plan, stored: bool) -> None:
    """Raise when the new logic cannot go on from the files of the old logic."""
    if not stored:
        return
    for name in old.graph.ops:
        moved = old.placement.level[name] != new.placement.level[name] or old.shape(name) != new.shape(name)
        before, after = old.schemas[name].simpleString(), new.schemas[name].simpleString()
        if moved or before != after:
            what = "works elsewhere in the run" if moved else f"gives {after} where it gave {before}"
            raise TimeTravelError(
                f"With this change '{name}' {what}: what the run stored does not fit.",
                operator=name,
                hint="Fork from the beginning (past.jump(epoch=0)), or start a new run.",
            )


# --- the shared past ------------------------------------------------------------------------------------------------


def _share(parent: Recording, fork: Recording, fact: EpochCommitted) -> None:
    """Link an epoch's files into the fork. Switches are left behind: the fork has the code of the moment."""
    source, target = parent.epoch_folder(fact), fork.epoch_folder(fact)
    if source.is_dir():
        shutil.copytree(source, target, copy_function=link, ignore=shutil.ignore_patterns("switches"))


def _inherited(parent: Recording) -> dict[str, Digest]:
    """The digests of inputs that the parent kept: the fork reads them in the parent's folder."""
    known = parent.start_digests().items()
    return {str(parent.path / name): digest for name, digest in known if "inputs" in Path(name).parts}


def _shifted(
    fact: EpochCommitted, split: tuple[str, int] | None, published: Iterable[str] = ()
) -> EpochCommitted:
    """An epoch of the parent for the fork's log: units behind the unit that was cut in two have other numbers.

    `published`: results that the parent has published, so that their files cannot be shared.
    """
    skipped = ("switches/", *published)
    files = {name: digest for name, digest in fact.files.items() if not name.startswith(skipped)}
    fact = msgspec.structs.replace(fact, code={}, switched={}, code_files={}, files=files)
    if split is None or split[0] not in fact.units:
        return fact
    name, cut = split
    start, stop = fact.units[name]
    moved = (start + (start > cut), stop + (stop > cut))
    return msgspec.structs.replace(fact, units={**fact.units, name: moved})


def _split(
    tracer: Tracer, cut: Cut, fork: Recording, row: Edit | None
) -> tuple[dict[str, Source], tuple[str, int] | None]:
    """The sources with the unit that the fork begins in cut in two; the source and unit that were cut, if any."""
    sources = dict(tracer.sources)
    if cut.at is None:
        if row is not None:
            raise TimeTravelError("Expected a tuple to correct, but none is next at this moment.")
        return sources, None
    number, place = cut.at[0], cut.at[1]
    source = next((s for s in sources.values() if s.number == number), None)
    if source is None or source.format != "parquet":
        kind = source.format if source is not None else "what an operator gave at its end"
        raise TimeTravelError(
            f"A fork inside an epoch needs Parquet input; here it is {kind}.",
            hint=f"Fork from the epoch's start: past.jump(epoch={cut.segment.epoch}).fork(...).",
        )
    unit, index = unpack(place)
    start, _ = cut.segment.units[source.name]
    if index == 0 and unit == start and row is None:
        return sources, None
    folder = fork.path / "inputs" / f"{slug_unique(source.name)}-cut"
    parts = _write_parts(tracer, source, unit, folder, index, row or {})
    sources[source.name] = msgspec.structs.replace(source, spans=source.units.split(unit, parts))
    return sources, (source.name, unit)


def _write_parts(
    tracer: Tracer, source: Source, unit: int, folder: Path, index: int, edit: Edit
) -> list[Unit]:
    """A unit's rows before a row, and from that row on, with the row edited: two files, written by one job."""
    df = read_units(tracer.spark, source, range(unit, unit + 1), positions=True)
    order = hidden(df)
    place = F.col(order[-1])
    first = pack(unit, index)
    for name, value in edit.items():
        if name not in source.struct.names:
            raise UnknownName(name, source.struct.names, what=f"a column of '{source.name}'")
        kind = source.struct[name].dataType
        edited = F.when(place == first, F.lit(value).cast(kind)).otherwise(F.col(quote_name(name)))
        df = df.withColumn(name, edited)
    df = df.withColumn(_PART, (place >= first).cast("int")).coalesce(1)
    df = df.sortWithinPartitions(_PART, *order).drop(*order)
    writer_into(folder, df.write.partitionBy(_PART)).parquet(str(folder))
    if index == 0:  # no row comes before: the first of the two files is empty, and must exist
        df.drop(_PART).limit(0).coalesce(1).write.parquet(str(folder / f"{_PART}=0"))
    units = []
    for number, name in enumerate(("before", "after")):
        (folder / f"{_PART}={number}").rename(folder / name)
        file = next((folder / name).glob("*.parquet"))
        stat = file.stat()
        units.append(Unit(str(file), stat.st_size, stat.st_mtime, pq.read_metadata(file).num_rows))
    return units


def _beginning(tracer: Tracer, cut: Cut) -> tuple[Callable[[Attempt], Epoch], tuple[Position, ...]]:
    """The function that prepares an attempt at the epoch before the cut, and the marks of that epoch."""
    number, epochs = cut.segment.epoch, tracer.history.epochs
    if number >= len(epochs):  # the epoch failed: it left no marks
        return Epoch, ()
    recorded = tracer.recorded(cut.segment)

    def make(attempt: Attempt) -> Epoch:
        if recorded.decisions:
            write_decisions(attempt.folder, "before", recorded.decisions)
        return Epoch(attempt, complete=recorded.task_anew)

    return make, tuple(m for m in epochs[number].marks if cut.at is not None and m <= cut.at)


def _covers(tracer: Tracer, cut: Cut, sources: dict[str, Source], split: tuple[str, int]) -> EpochRange:
    """The epoch of the tuples before the cut."""
    name, unit = split
    number = sources[name].number
    units: dict[str, tuple[int, int]] = {}
    for each, (start, stop) in cut.segment.units.items():
        source = tracer.sources.get(each)
        before = source is None or source.number < number
        units[each] = (start, unit + 1) if each == name else (start, stop if before else start)
    return EpochRange(cut.segment.level, cut.segment.level, units, cut.segment.first, False)
