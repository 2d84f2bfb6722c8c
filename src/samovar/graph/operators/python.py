"""Operators written in Python."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from samovar.graph.operators.base import Op

__all__ = ["Batches", "Order", "Python"]

Order = Literal["canonical", "arrival"]


class Python(Op, tag="python", frozen=True, kw_only=True):
    """A Python operator: `code` defines class `class` (a `sv.Operator`), made with `params`.

    Without `by` it is one instance with one global order; `by` makes one instance per key partition. A workflow built
    in Python carries the live instance beside this, and its code is written out when a document is asked for.
    """

    code: str = ""
    class_name: str = msgspec.field(default="", name="class")
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    by: tuple[str, ...] = ()
    order: Order = "canonical"
    key_partitions: int | None = None
    """How many key partitions `by` makes; None: twice the cores."""

    ports: ClassVar[tuple[int, int | None]] = (1, None)
    summary: ClassVar[str] = "runs Python code on each row"
    sql_fields: ClassVar[tuple[str, ...]] = ("by",)


class Batches(Op, tag="batches", frozen=True, kw_only=True):
    """`mapInArrow` or `mapInPandas`: a function from an iterator of batches to an iterator of batches, no state."""

    schema: str
    form: Literal["arrow", "pandas"] = "arrow"
    code: str = ""
    function: str = ""
    summary: ClassVar[str] = "runs a Python function on batches"
