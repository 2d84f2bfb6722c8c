"""What can be wrong with a comparison itself, as opposed to the streams compared.

SamovarError
└── DiffError
    ├── DependenceProblem     not symmetric, not compatible with the equality, or it raised
    ├── EqualityProblem       not an equality, or it raised
    ├── EventProblem          an event or a batch that does not fit the comparison
    ├── CheckpointProblem     a saved matcher that cannot be restored
    ├── SchemasDiffer         two tables whose columns cannot be compared
    ├── SideProblem           a side that is not a table, is missing, or changes while it is compared
    └── ProgramProblem        a program, its inputs or its settings cannot be run as asked
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from samovar.errors import SamovarError, nearest
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
    "called",
    "did_you_mean",
    "repeated",
]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the known name most like `name`; None when nothing is near."""
    close = nearest(name, known)
    return f"Did you mean '{close}'?" if close else None


def repeated(names: Sequence[str]) -> str | None:
    """The first name that occurs twice."""
    return next((name for i, name in enumerate(names) if name in names[:i]), None)


class DiffError(SamovarError):
    """A comparison cannot be made as asked. `events` are the events that show it, if there are any."""

    def __init__(self, message: str, *, events: Sequence[Any] = (), hint: str | None = None) -> None:
        lines = [f"  event {name}: {shown(e, 300)}" for name, e in zip("abc", events, strict=False)]
        super().__init__("\n".join([message, *lines]), hint=hint)
        self.events = tuple(events)


class DependenceProblem(DiffError):
    """The dependence raised, is not symmetric, or tells apart events that the equality does not."""


class EqualityProblem(DiffError):
    """The equality raised, is not an equality, or cannot be used with this dependence."""


class EventProblem(DiffError):
    """An event or a batch lacks a column, names one twice, or has another type than before."""


class CheckpointProblem(DiffError):
    """A saved matcher is missing, of another format, damaged, or needs functions that were not passed."""


class SchemasDiffer(DiffError):
    """The columns of two tables differ in names or types; the message shows both side by side."""


class SideProblem(DiffError):
    """A side of a comparison is not a table, is missing, or has other rows each time it is computed."""


class ProgramProblem(DiffError):
    """A program, its inputs or its settings cannot be run as asked."""


def called(what: str, problem: type[DiffError], function: Callable[..., Any], *events: Any) -> Any:
    """Call a function of the user; an exception becomes a problem that shows the events."""
    try:
        return function(*events)
    except Exception as error:
        raise problem(f"The {what} raised {type(error).__name__}: {error}", events=events) from error
