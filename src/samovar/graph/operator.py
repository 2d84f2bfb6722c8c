"""`sv.Operator`: what a person writes to process tuples in Python.

A subclass sets `output` (a schema: Spark's DDL text or a StructType) and defines `process` (row by row) or
`process_batch` (Arrow record batches). The engine promises: tuples come one at a time, in canonical order within the
instance's partition; state set on the instance is there at the next tuple, in whatever process it runs; a tuple is
processed once.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from samovar.graph.arguments import ddl
from samovar.graph.state import declared

__all__ = ["Operator", "Rows", "is_batch_form", "remember_source"]

Rows = Iterable[Mapping[str, Any] | None]
"""What `process` gives: rows; None (a bare `yield`) marks a mini-step."""


class Operator:
    """Base of Python operators. Constructor parameters are kept as given; plain attributes are state as well."""

    output: ClassVar[Any] = ""
    """The rows this operator gives: a Spark DDL schema (`"customer string, amount double"`) or a StructType."""

    stateless: ClassVar[bool] = False
    """True lets Spark run the operator in parallel, without any order."""

    _sv_params: tuple[tuple[Any, ...], dict[str, Any]]
    """The constructor's arguments as they were given, for documents. Not state."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Writes a StructType in `output` as DDL text, which documents and recordings can hold."""
        super().__init_subclass__(**kwargs)
        cls.output = ddl(cls.output)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Notes the constructor's arguments, so that the operator can be written down and made again."""
        if cls.__init__ is object.__init__ and (args or kwargs):
            raise TypeError(f"{cls.__name__}() takes no arguments: it defines no __init__")
        operator = super().__new__(cls)
        operator._sv_params = (tuple(_copied(a) for a in args), {k: _copied(v) for k, v in kwargs.items()})
        return operator

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restores attributes after pickling: declared state gets its containers back, its code its source lines."""
        kinds = declared(type(self))
        for name, value in state.items():
            self.__dict__[name] = kinds[name].wrap(value) if name in kinds else value
        source = vars(type(self)).get("__source__")
        if source is not None:
            remember_source(*source)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Rows | None:
        """Handle one tuple: yield zero or more rows. A bare `yield` is a mini-step: a point to pause at."""
        raise NotImplementedError(f"{type(self).__name__} defines neither process nor process_batch")

    def finish(self, port: int = 0) -> Rows | None:
        """Called once when a port has ended; may yield rows."""
        return None

    # process_batch(self, batch, port=0) is looked up on the class: defining it switches to the batch form.


def remember_source(filename: str, text: str) -> None:
    """Let tracebacks, `inspect` and debuggers show the lines of code that lies in no file (`<operator FE>`)."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)


def _copied(value: Any) -> Any:
    """Plain containers copied, so that a constructor that changes its arguments does not change what is kept."""
    if type(value) is dict:
        return {k: _copied(v) for k, v in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_copied(v) for v in value)
    return value


def is_batch_form(cls: type) -> bool:
    """Whether an operator class takes Arrow record batches instead of rows."""
    return callable(getattr(cls, "process_batch", None))
