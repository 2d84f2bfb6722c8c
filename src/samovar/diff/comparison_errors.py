"""What can be wrong with a comparison itself, as opposed to the streams compared.

SamovarError
└── DiffError
    ├── DependenceProblem     not symmetric, not compatible with the equality, or it raised
    ├── EqualityProblem       not an equality, or it raised
    ├── EventProblem          an event or a batch that does not fit the comparison
    ├── CheckpointProblem     a saved matcher that cannot be taken up again
    ├── SchemasDiffer         two tables whose columns cannot be compared
    ├── SideProblem           a side that is no table, is not there, or changes while it is compared
    └── ProgramProblem        a program, its inputs or its settings cannot be run as asked
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samovar.errors import SamovarError
from samovar.text import shown

__all__ = [
    "CheckpointProblem",
    "DependenceProblem",
    "DiffError",
    "EqualityProblem",
    "EventProblem",
    "ProgramProblem",
    "SchemasDiffer",
    "SideProblem",
]


class DiffError(SamovarError):
    """A comparison cannot be made as asked. `events` are the events that show it, if there are any."""

    def __init__(self, message: str, *, events: Sequence[Any] = (), hint: str | None = None) -> None:
        lines = [
            message,
            *(f"  event {name}: {shown(e, 300)}" for name, e in zip("abc", events, strict=False)),
        ]
        super().__init__("\n".join(lines), hint=hint)
        self.events = tuple(events)


class DependenceProblem(DiffError):
    """The dependence raised, is not symmetric, or tells apart events that the equality does not."""


class EqualityProblem(DiffError):
    """The equality raised, is not an equality, or cannot be used with this dependence."""


class EventProblem(DiffError):
    """An event or a batch lacks a column, names one twice, or has another type than before."""


class CheckpointProblem(DiffError):
    """A saved matcher is not there, too new, damaged, or needs functions that were not handed in."""


class SchemasDiffer(DiffError):
    """The columns of two tables differ in names or types; the message shows both side by side."""


class SideProblem(DiffError):
    """A side of a comparison is no table, is not there, or gives other rows each time it is computed."""


class ProgramProblem(DiffError):
    """A program, its inputs or its settings cannot be run as asked."""
