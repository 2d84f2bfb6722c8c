"""Arguments of Frame methods in the forms PySpark takes them, turned into the texts operators hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from samovar.errors import WorkflowError, nearest
from samovar.graph.operators.base import column_of, expr
from samovar.text import quote_name

__all__ = [
    "TakesOptions",
    "aggregate_call",
    "checked_arguments",
    "column_text",
    "ddl",
    "directed",
    "flat",
    "named",
    "names_of",
    "option_text",
    "quoted",
]


P = ParamSpec("P")
R = TypeVar("R")


def checked_arguments(**hints: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have a function raise WorkflowError for an argument it does not have; `hints`: what to write for some of them."""

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.items()
        known = [name for name, parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            for name in named:
                if name not in known:
                    meant = hints.get(name) or nearest(name, known)
                    raise WorkflowError(
                        f"{function.__name__} has no argument '{name}'.",
                        hint=f"Did you mean {meant}?" if meant else f"Its arguments: {', '.join(known)}.",
                    )
            return function(*args, **named)

        return call

    return checked


def flat(values: Sequence[Any]) -> list[Any]:
    """PySpark takes `f("a", "b")` and `f(["a", "b"])` alike."""
    if len(values) == 1 and isinstance(values[0], list | tuple):
        return list(values[0])
    return list(values)


def named(cols: Sequence[Any]) -> tuple[str, ...]:
    """Columns given by name or as Columns, as operators hold them."""
    return tuple(map(column_text, cols))


def column_text(col: Any) -> str:
    """A column given by name (quoted, so that odd names stay names) or as a Column."""
    return quoted(col) if isinstance(col, str) else expr(col)


def quoted(name: str) -> str:
    """A column name as SQL: `a`, `a.b` and `*` stay, anything else is put in backticks."""
    parts = name.split(".")
    if "`" in name or all(part == "*" or (part.isidentifier() and part.isascii()) for part in parts):
        return name
    return quote_name(name)


def names_of(subset: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """One name or several as a tuple."""
    return None if subset is None else (subset,) if isinstance(subset, str) else tuple(subset)


def directed(key: str, ascending: bool) -> str:
    """A sort key with a direction."""
    if (column := column_of(key)) is not None:
        return expr(column.asc() if ascending else column.desc())
    return key if ascending else f"{key} DESC"


def aggregate_call(function: str, column: str) -> str:
    """An aggregate of a column as SQL, under the name that PySpark gives it: ``sum(x) AS `sum(x)` ``."""
    if column == "*":
        return f"{function}(1) AS `{function}(1)`" if function == "count" else f"{function}(*)"
    return f"{function}({quoted(column)}) AS `{function}({column})`"


def ddl(schema: Any) -> str:
    """A schema as DDL text, given as such or as a StructType."""
    if isinstance(schema, str):
        return schema
    fields = getattr(schema, "fields", None)
    if fields is None:
        raise WorkflowError(f"Expected a schema as DDL text or StructType, got {type(schema).__name__}.")
    return ", ".join(
        f"`{f.name}` {f.dataType.simpleString()}{'' if f.nullable else ' NOT NULL'}" for f in fields
    )


def option_text(value: Any) -> str:
    """The value of an option as Spark's readers and writers take it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class TakesOptions:
    """The methods `option` and `options` of readers and writers."""

    def __init__(self) -> None:
        self._options: dict[str, str] = {}

    def option(self, key: str, value: Any) -> Self:
        """Set an option of the data source; None leaves it at its default."""
        return self.options(**{key: value})

    def options(self, **options: Any) -> Self:
        """Set several options of the data source."""
        self._options.update({k: option_text(v) for k, v in options.items() if v is not None})
        return self
