"""Decisions about single tuples, as an epoch keeps them: which tuple was skipped or replaced, and why.

They lie in the folder of the attempt they were made in and count with it, so that a replay of the epoch treats the same
tuples in the same way. A tuple is named by its number in its key partition. A tuple of a stateless operator is named by
its content: partitions of a stateless operator are not stable between attempts. Decisions are plain data: reading them
runs no code.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.files import write_file
from samovar.record.log import TupleDecided
from samovar.record.plain_values import from_plain, read_files, to_plain
from samovar.record.store import History, Recording, slug_unique

__all__ = [
    "AT_END",
    "EpochDecisions",
    "RecordedDecision",
    "decision_fact",
    "read_decisions",
    "replaced",
    "skipped_tuples",
    "standing_decisions",
    "write_decisions",
]

FOLDER = "decisions"
AT_END = -1
"""In place of a tuple's number: the end of an operator's input."""


class RecordedDecision(msgspec.Struct, frozen=True, rename={"kind": "verdict"}):
    """A tuple that was skipped or replaced ("edit"). Files of a recording call `kind` "verdict"."""

    operator: str
    bucket: int
    port: int
    number: int
    kind: Literal["skip", "edit"]
    row: dict[str, Any]
    error: str
    edited: dict[str, Any] | None = None


class EpochDecisions:
    """The decisions of an epoch, for a chain to look up."""

    def __init__(self, decisions: Iterable[RecordedDecision], *, by_number: bool) -> None:
        self._decisions = list(decisions)
        self._by_number = by_number
        self._places = {(d.operator, d.bucket, d.port, d.number): d for d in self._decisions}

    def __bool__(self) -> bool:
        return bool(self._decisions)

    def of(
        self, operator: str, bucket: int, port: int, number: int, row: dict[str, Any]
    ) -> RecordedDecision | None:
        """The decision about a tuple; None: there is none."""
        if self._by_number:
            return self._places.get((operator, bucket, port, number))
        return next((d for d in self._decisions if d.operator == operator and d.row == row), None)


def write_decisions(attempt: Path, name: str, decisions: Iterable[RecordedDecision]) -> None:
    """Write the decisions of one task into the attempt's folder; a task that runs twice writes the same file."""
    kept = [replace(d, row=to_plain(d.row), edited=to_plain(d.edited)) for d in decisions]
    write_file(attempt / FOLDER / f"{name}.msgpack", msgspec.msgpack.encode(kept))


def read_decisions(attempt: Path, operators: Iterable[str] | None = None) -> tuple[RecordedDecision, ...]:
    """The decisions of an epoch, about some operators (None: all)."""
    wanted = None if operators is None else set(operators)
    return tuple(
        replace(d, row=from_plain(d.row), edited=from_plain(d.edited))
        for d in read_files(attempt / FOLDER, RecordedDecision)
        if wanted is None or d.operator in wanted
    )


def replaced(data: pa.RecordBatch, decided: RecordedDecision | None) -> pa.RecordBatch | None:
    """A batch of one row after a decision about it; None: the row is skipped."""
    if decided is None:
        return data
    edited = decided.edited
    return None if edited is None else pa.RecordBatch.from_pylist([edited], schema=data.schema)


# --- decisions that outlive the process -----------------------------------------------------------------------------


def decision_fact(note: i.NoteDecision) -> TupleDecided:
    """A decision for the log, with all that a process needs that resumes the run."""
    decision, skip_all = note.decision, note.skip_all
    place = decision.place if decision is not None else None
    return TupleDecided(
        at=time.time(),
        hold=note.hold,
        verdict=note.kind,
        operator=skip_all.operator if skip_all is not None else place.operator if place is not None else "",
        like=skip_all.like if skip_all is not None else "",
        place=(place.epoch, place.bucket, place.port, place.number) if place is not None else (),
        row=decision.row if decision is not None else b"",
    )


def standing_decisions(history: History) -> e.DriverRestarted | None:
    """The decisions of earlier processes that are still in force, about single tuples and about kinds of errors."""
    skip_all = tuple(m.SkipAllDecision(operator=d.operator, like=d.like) for d in history.decided if d.like)
    decisions = tuple(
        m.TupleDecision(m.TuplePlace(d.operator, *d.place), "edit" if d.verdict == "edit" else "skip", d.row)
        for d in history.decided
        if d.place and d.place[0] >= len(history.epochs)
    )
    return e.DriverRestarted(skip_all=skip_all, decisions=decisions) if skip_all or decisions else None


def file_name(operator: str, bucket: int, partition: int) -> str:
    """The name of the file of a task's decisions."""
    return f"{slug_unique(operator)}-{bucket:04d}-{partition:05d}"


def skipped_tuples(recording: Recording, operator: str) -> pa.Table:
    """Tuples of a Python operator that were skipped, in committed epochs: epoch, error, row."""
    skipped = [
        (epoch.epoch, d)
        for epoch in recording.history().epochs
        for d in read_decisions(recording.checked_folder(epoch, FOLDER), [operator])
        if d.kind == "skip"
    ]
    skipped.sort(key=lambda pair: (pair[0], pair[1].bucket, pair[1].number))
    return pa.table(
        {
            "epoch": pa.array([n for n, _ in skipped], pa.int64()),
            "error": pa.array([d.error for _, d in skipped], pa.string()),
            "row": pa.array([d.row for _, d in skipped]) if skipped else pa.array([], pa.struct([])),
        }
    )
