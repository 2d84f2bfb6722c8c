"""What every operator of a workflow is: frozen data with a name and named inputs.

An operator states *what* is computed; `samovar.compile` turns it into Spark plans. Operators are
msgspec structs, so one definition gives the Python object, the document form, its validation and its JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

import msgspec

__all__ = ["Expr", "Op", "column_of", "current_fields", "expr"]


OLD_FIELDS = {"workers": "key_partitions"}
"""Fields of operators under the names they had in documents and recordings that are still read."""


def current_fields(fields: Mapping[Any, Any]) -> dict[Any, Any]:
    """An operator's fields as plain data, under today's names."""
    return {OLD_FIELDS.get(name, name): value for name, value in fields.items()}


class Expr(str):
    """SQL text, or a PySpark Column under its printed form.

    A Column needs a live session to exist and prints in a form that is not SQL; it is carried in `column` and turned
    into SQL text by the compiler where a document or a recording needs it. Equality and hash are those of the text.
    """

    column: Any

    def __new__(cls, text: str, column: Any = None) -> Expr:
        expression = super().__new__(cls, text)
        expression.column = column
        return expression


def expr(value: Any) -> str:
    """A SQL string as it is; a PySpark Column (anything else with a `cast`) as an `Expr` that carries it."""
    if isinstance(value, str):
        return value
    if hasattr(value, "cast") and hasattr(value, "alias"):
        text = str(value)
        if text.startswith("Column<'") and text.endswith("'>"):
            text = text[len("Column<'") : -len("'>")]
        return Expr(text, value)
    raise TypeError(f"Expected a SQL string or a PySpark Column, got {type(value).__name__} ({value!r}).")


def column_of(text: str) -> Any:
    """The PySpark Column that an expression carries; None for SQL text."""
    return getattr(text, "column", None)


class Op(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="op", forbid_unknown_fields=True, omit_defaults=True
):
    """An operator: `name` is unique in its workflow, `inputs` are the names of the operators on its ports."""

    name: str
    inputs: tuple[str, ...] = ()
    enabled: bool = True
    """Whether it takes part in runs; see `samovar.graph.subgraph`."""

    ports: ClassVar[tuple[int, int | None]] = (1, 1)
    """Fewest and most inputs (None: any number)."""

    summary: ClassVar[str] = ""
    """A line for palettes and progress displays."""

    sql_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that hold SQL: a text, several of them, or texts by column."""

    @property
    def kind(self) -> str:
        """The word that names this kind of operator in documents."""
        return str(self.__struct_config__.tag)

    def plain(self) -> Op:
        """The operator this one is short for, under the same name; itself for all but shorthands."""
        return self

    def expressions(self) -> tuple[str, ...]:
        """Every SQL text or Column this operator holds, in the order of `sql_fields`."""
        return tuple(text for field in self.sql_fields for text in _texts(getattr(self, field)))

    def with_expressions(self, texts: tuple[str, ...]) -> Op:
        """The same operator with `expressions()` replaced, in order."""
        if len(texts) != len(self.expressions()):
            raise ValueError(f"'{self.kind}' has {len(self.expressions())} expressions, got {len(texts)}")
        left = iter(texts)
        fields = {field: _with_texts(getattr(self, field), left) for field in self.sql_fields}
        return msgspec.structs.replace(self, **fields) if fields else self


def _texts(value: str | tuple[str, ...] | dict[str, str] | None) -> Iterable[str]:
    """The SQL texts of a field: one, several, some by column, or none."""
    if value is None:
        return ()
    if isinstance(value, dict):
        return value.values()
    return (value,) if isinstance(value, str) else value


def _with_texts(value: str | tuple[str, ...] | dict[str, str] | None, texts: Iterator[str]) -> Any:
    """The value of a field with the next texts in place of its own."""
    if isinstance(value, dict):
        return dict(zip(value, texts, strict=False))
    if isinstance(value, tuple):
        return tuple(islice(texts, len(value)))
    return None if value is None else next(texts)
