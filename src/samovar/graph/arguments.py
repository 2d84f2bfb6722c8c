"""Arguments of Frame methods in the forms PySpark takes them, turned into the texts operators hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from samovar.errors import WorkflowError, nearest
from samovar.graph.operators.base import Expr, expr
from samovar.text import quote_name

__all__ = [
    "call",
    "checked_arguments",
    "conjunction",
    "ddl",
    "directed",
    "flat",
    "named",
    "names_of",
    "option_text",
    "quoted",
    "sort_key",
]


P = ParamSpec("P")
R = TypeVar("R")


def checked_arguments(**hints: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have a function raise WorkflowError for an argument it does not have; `hints`: what to write for some of them."""

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        known = [
            n for n, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_POSITIONAL
        ]

        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            for name in given:
                if name not in known:
                    meant = hints.get(name) or nearest(name, known)
                    raise WorkflowError(
                        f"{function.__name__} has no argument '{name}'.",
                        hint=f"Did you mean {meant}?" if meant else f"Its arguments: {', '.join(known)}.",
                    )
            return function(*args, **given)

        return call

    return checked


def flat(values: Sequence[Any]) -> list[Any]:
    """PySpark takes `f("a", "b")` and `f(["a", "b"])` alike."""
    if len(values) == 1 and isinstance(values[0], list | tuple):
        return list(values[0])
    return list(values)


def named(cols: Sequence[Any]) -> tuple[str, ...]:
    """Columns given by name (quoted, so that odd names stay names) or as Columns."""
    return tuple(quoted(c) if isinstance(c, str) else expr(c) for c in cols)


def quoted(name: str) -> str:
    """A column name as SQL: `a`, `a.b` and `*` stay, anything else is put in backticks."""
    parts = name.split(".")
    if "`" in name or all(part == "*" or (part.isidentifier() and part.isascii()) for part in parts):
        return name
    return quote_name(name)


def names_of(subset: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if subset is None else (subset,) if isinstance(subset, str) else tuple(subset)


def sort_key(col: Any) -> str:
    return quoted(col) if isinstance(col, str) else expr(col)


def directed(key: str, ascending: bool) -> str:
    if isinstance(key, Expr) and key.column is not None:
        column = key.column.asc() if ascending else key.column.desc()
        return expr(column)
    return key if ascending else f"{key} DESC"


def call(function: str, column: str) -> str:
    """`sum(x)` for use as SQL and as the column's name, as PySpark names it."""
    if column == "*":
        return f"{function}(1) AS `{function}(1)`" if function == "count" else f"{function}(*)"
    return f"{function}({quoted(column)}) AS `{function}({column})`"


def conjunction(columns: Sequence[Any]) -> str:
    made = columns[0]
    for column in columns[1:]:
        made = made & column
    return expr(made)


def ddl(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    fields = getattr(schema, "fields", None)
    if fields is None:
        raise WorkflowError(f"Expected a schema as DDL text or StructType, got {type(schema).__name__}.")
    return ", ".join(
        f"`{f.name}` {f.dataType.simpleString()}{'' if f.nullable else ' NOT NULL'}" for f in fields
    )


def option_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
