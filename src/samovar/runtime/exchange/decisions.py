"""Decisions about single tuples, as an epoch keeps them: which tuple was left out or replaced, and why.

They lie in the folder of the attempt they were made in and count with it, so that whoever computes the epoch again
treats the same tuples in the same way. A tuple is named by its number in its key partition; one of a stateless
operator, whose partitions are nobody's, by its content. They are plain data: looking at them runs no code.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.files import write_file
from samovar.record.log import TupleDecided
from samovar.record.plain_values import from_plain, read_files, to_plain
from samovar.record.store import History, Recording, slug_unique

__all__ = [
    "AT_END",
    "Decided",
    "Decisions",
    "decided_fact",
    "read_decisions",
    "replaced",
    "skipped_tuples",
    "standing",
    "write_decisions",
]

FOLDER = "decisions"
AT_END = -1
"""The number of what is no tuple: the end of an operator's input."""


@dataclass(frozen=True)
class Decided:
    """A tuple that was left out ("skip") or replaced ("edit")."""

    operator: str
    bucket: int
    port: int
    number: int
    verdict: Literal["skip", "edit"]
    row: dict[str, Any]
    error: str
    edited: dict[str, Any] | None = None


class Decisions:
    """The decisions of an epoch, as a chain asks for them."""

    def __init__(self, made: Iterable[Decided], *, by_number: bool) -> None:
        self._made = list(made)
        self._by_number = by_number
        self._places = {(d.operator, d.bucket, d.port, d.number): d for d in self._made}

    def __bool__(self) -> bool:
        return bool(self._made)

    def of(self, operator: str, bucket: int, port: int, number: int, row: dict[str, Any]) -> Decided | None:
        """What was decided about a tuple; None: nothing."""
        if self._by_number:
            return self._places.get((operator, bucket, port, number))
        return next((d for d in self._made if d.operator == operator and d.row == row), None)


def write_decisions(attempt: Path, name: str, made: Iterable[Decided]) -> None:
    """Keep the decisions of one task in the attempt's folder; a task that runs twice keeps them once."""
    kept = [replace(d, row=to_plain(d.row), edited=to_plain(d.edited)) for d in made]
    write_file(attempt / FOLDER / f"{name}.msgpack", msgspec.msgpack.encode(kept))


def read_decisions(attempt: Path, operators: Iterable[str] | None = None) -> tuple[Decided, ...]:
    """The decisions an epoch keeps, about some operators."""
    wanted = None if operators is None else set(operators)
    made = [d for d in read_files(attempt / FOLDER, Decided) if wanted is None or d.operator in wanted]
    return tuple(replace(d, row=from_plain(d.row), edited=from_plain(d.edited)) for d in made)


def replaced(data: pa.RecordBatch, decided: Decided | None) -> pa.RecordBatch | None:
    """A batch of one row as it was decided about; None: it is left out."""
    if decided is None:
        return data
    return (
        None if decided.edited is None else pa.RecordBatch.from_pylist([decided.edited], schema=data.schema)
    )


# --- decisions that outlive the process -----------------------------------------------------------------------------


def decided_fact(note: i.NoteDecision) -> TupleDecided:
    """A decision for the log, with what whoever takes the run up needs to know of it."""
    rule, ruling = note.rule, note.ruling
    place = ruling.place if ruling is not None else None
    return TupleDecided(
        at=time.time(),
        hold=note.hold,
        verdict=note.verdict,
        operator=rule.operator if rule is not None else place.operator if place is not None else "",
        like=rule.like if rule is not None else "",
        place=(place.epoch, place.bucket, place.port, place.number) if place is not None else (),
        row=ruling.row if ruling is not None else b"",
    )


def standing(history: History) -> e.DriverRestarted | None:
    """What was decided before and still stands: tuples to leave out or to replace, and kinds of them; None: nothing."""
    rules = tuple(m.Rule(operator=d.operator, like=d.like) for d in history.decided if d.like)
    rulings = tuple(
        m.Ruling(m.Place(d.operator, *d.place), "edit" if d.verdict == "edit" else "skip", d.row)
        for d in history.decided
        if d.place and d.place[0] >= len(history.epochs)
    )
    return e.DriverRestarted(rules=rules, rulings=rulings) if rules or rulings else None


def file_name(operator: str, bucket: int, partition: int) -> str:
    """The name of the file a task keeps its decisions in."""
    return f"{slug_unique(operator)}-{bucket:04d}-{partition:05d}"


def skipped_tuples(recording: Recording, operator: str) -> pa.Table:
    """Tuples of a Python operator that were left out, in committed epochs: epoch, error, row."""
    found = [
        (epoch.epoch, d)
        for epoch in recording.history().epochs
        for d in read_decisions(recording.checked_folder(epoch, FOLDER), [operator])
        if d.verdict == "skip"
    ]
    found.sort(key=lambda pair: (pair[0], pair[1].bucket, pair[1].number))
    return pa.table(
        {
            "epoch": pa.array([n for n, _ in found], pa.int64()),
            "error": pa.array([d.error for _, d in found], pa.string()),
            "row": pa.array([d.row for _, d in found]) if found else pa.array([], pa.struct([])),
        }
    )
