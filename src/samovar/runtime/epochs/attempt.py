"""An attempt at an epoch, and what its Python workers are sent."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.sql.pandas.types import to_arrow_schema

from samovar.compile.counters import may_skip_rows, stored_in
from samovar.compile.plan import Plan
from samovar.compile.strategy import EpochRange
from samovar.graph import operators as ops
from samovar.record.log import EpochCommitted
from samovar.record.store import LOG, Recording, slug_unique
from samovar.runtime.epochs.run_context import RunContext
from samovar.runtime.exchange.decisions import RecordedDecision
from samovar.runtime.exchange.task import MARK_SHARE, Control, Stage, Task, Version

__all__ = ["Attempt", "EpochDropped", "Turn", "chain_task", "state_versions"]


class EpochDropped(Exception):
    """An epoch that had begun ahead of its turn is given up; caught by the thread that computes it."""


class Turn:
    """Whether it is the turn of an epoch that has begun ahead of it: all epochs before it are committed."""

    def __init__(self) -> None:
        self._decided = threading.Event()
        self.dropped = False

    @property
    def has_come(self) -> bool:
        return self._decided.is_set() and not self.dropped

    def come(self) -> None:
        """It is its turn."""
        self._decided.set()

    def drop(self) -> None:
        """Its turn will not come."""
        self.dropped = True
        self._decided.set()

    def wait(self) -> None:
        """Return when the turn has come; raises EpochDropped when it will not."""
        self._decided.wait()
        if self.dropped:
            raise EpochDropped


@dataclass(frozen=True)
class Attempt:
    """An attempt at epoch `number`. `name`: its name in the log and of its Spark jobs' group."""

    context: RunContext
    number: int
    covers: EpochRange
    name: str
    folder: Path
    """Everything that the attempt writes lies in it."""
    control: Control | None = None
    """Where workers report to; None: nowhere."""
    looks: bool = False
    """Whether it is computed to look into only: nothing of it is counted or committed."""
    mended: Sequence[RecordedDecision] = ()
    """Rows that Spark failed on in attempts before, with what was decided about them."""
    turn: Turn | None = None
    """Of an attempt that may begin before the epochs before it are committed; None: they are."""

    @property
    def turn_folder(self) -> Path:
        """Where workers that wait for the turn of this attempt find their tasks; it is there while they wait."""
        return self.folder / "turn"

    @cached_property
    def plan(self) -> Plan:
        return self.context.plan

    @cached_property
    def stored(self) -> frozenset[str]:
        """Operators whose input, or result, is written."""
        return stored_in(self.plan, self.covers.low, self.covers.high)

    def wait_for_turn(self) -> None:
        """Return when all epochs before this one are committed."""
        if self.turn is not None:
            self.turn.wait()


def chain_task(attempt: Attempt, chain: tuple[str, ...]) -> Task:
    """What the workers need to know of a chain."""
    context, plan = attempt.context, attempt.plan
    # rows come to workers in the session's time zone: a chain hands timestamps on in the same
    zone = str(context.spark.conf.get("spark.sql.session.timeZone"))
    names = list(plan.graph.ops)
    stages = tuple(
        Stage(
            name=name,
            code=context.code[name],
            schema=to_arrow_schema(plan.schemas[name], timezone=zone),
            folder=str(attempt.folder / "state" / slug_unique(name)),
            versions=state_versions(context.recording, name, context.history.epochs),
            ports=len(plan.graph.ops[name].inputs),
            rank=names.index(name),
        )
        for name in chain
    )
    head = plan.graph.ops[chain[0]]
    stateful = plan.shape(chain[0]) == "python"
    return Task(
        run=context.recording.run_id,
        epoch=attempt.number,
        token=attempt.name,
        stages=stages,
        positions=plan.width[chain[-1]],
        stateful=stateful,
        errors=str(attempt.folder / "errors"),
        sign="" if attempt.looks else str(context.recording.path / LOG),
        arrival=isinstance(head, ops.Python) and head.order == "arrival",
        signs=may_skip_rows(plan, chain[-1], attempt.stored),
        marks=attempt.covers.marks if stateful else (),
        mark_share=math.inf if context.marks_policy == "every" else MARK_SHARE,
        arrow=isinstance(head, ops.Batches) and head.form == "arrow",
        control=attempt.control,
        hold=context.holds and attempt.control is not None,
        code_versions={n: v for n, v in context.logic.code_versions.items() if n in chain},
    )


def state_versions(recording: Recording, name: str, epochs: Iterable[EpochCommitted]) -> dict[int, Version]:
    """For each bucket of an operator, the files that give its state after some epochs, and the names of the states."""
    files = recording.state_files(name, epochs)
    return {
        bucket: Version(tuple(str(f) for f, _ in pairs), ("", *(epoch.attempt for _, epoch in pairs)))
        for bucket, pairs in files.items()
    }
