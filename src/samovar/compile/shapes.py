"""How each operator behaves over epochs, by its kind and the nature of its expressions. Pure: needs no Spark.

| shape      | over an epoch                                                                       |
|------------|-------------------------------------------------------------------------------------|
| source     | gives a slice                                                                        |
| one        | one row out for each row in                                                          |
| some       | each row in gives none or one                                                        |
| many       | each row in gives any number                                                         |
| union      | all rows of its inputs                                                               |
| join       | probe rows joined with the whole build side                                          |
| limit      | the first rows; remembers how many it has passed                                     |
| python     | stateful Python                                                                      |
| batches    | stateless Python                                                                     |
| accumulate | adds the epoch's partial aggregates; gives its output when its input has ended       |
| keep       | keeps its input; gives its output when its input has ended                           |
| sink       | keeps rows as the result                                                             |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from samovar.compile.chance import CHANCE, NUMBERING, PLACES
from samovar.compile.samples import is_drawn
from samovar.compile.sqltext import AGGREGATES, GENERATORS, function_names
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op

__all__ = ["Nature", "Shape", "has_window", "nature_by_names", "shape_of"]

Shape = Literal[
    "source",
    "one",
    "some",
    "many",
    "union",
    "join",
    "limit",
    "python",
    "batches",
    "accumulate",
    "keep",
    "sink",
]

_OVER = re.compile(r"\bover\b\s*(\(|\w)", re.IGNORECASE)


@dataclass(frozen=True)
class Nature:
    """What the expressions of an operator do with rows (found by `natures`).

    `gathers`: they look at many rows (aggregates, windows). `generates`: one row can give several. `volatile`: computed
    again, they may give something else. `undivided`: only one query over all rows gives what Spark would give.
    """

    gathers: bool = False
    generates: bool = False
    volatile: bool = False
    undivided: bool = False

    def __or__(self, other: Nature) -> Nature:
        return Nature(
            self.gathers or other.gathers,
            self.generates or other.generates,
            self.volatile or other.volatile,
            self.undivided or other.undivided,
        )


def has_window(text: str) -> bool:
    """Whether the text has a window: `OVER (...)`, or `OVER w`."""
    return bool(_OVER.search(text))


def nature_by_names(text: str) -> Nature:
    """A guess by the names of functions, for text that Spark cannot analyse as a condition."""
    called = function_names(text)
    return Nature(
        gathers=bool(called & AGGREGATES) or has_window(text),
        generates=bool(called & GENERATORS),
        volatile=bool(called & (CHANCE | PLACES | {NUMBERING})),
    )


def shape_of(op: Op, nature: Nature = Nature(), *, stateless: bool = False) -> Shape:
    """The shape of an operator; `stateless`: whether a Python operator's class declares itself so."""
    match op:
        case _ if isinstance(op, ops.SOURCES) or is_drawn(op):
            return "source"
        case ops.Select() | ops.WithColumns():
            if nature.gathers or nature.undivided:
                return "keep"
            return "many" if nature.generates else "one"
        case ops.Filter() if nature.undivided:
            return "keep"
        case ops.Filter() | ops.DropNa() | ops.Sample():
            return "some"
        case ops.Rename() | ops.ToDF() | ops.Drop() | ops.FillNa() | ops.Replace() | ops.Alias():
            return "one"
        case ops.Union():
            return "union"
        case ops.Join():
            return "keep" if op.how == "full" else "join"
        case ops.Limit():
            return "limit"
        case ops.Python():
            return "batches" if stateless else "python"
        case ops.Batches():
            return "batches"
        case ops.Distinct() | ops.DropDuplicates():
            return "accumulate"
        case ops.Aggregate():
            plain = op.grouping == "groupBy" and op.pivot is None
            return "accumulate" if plain and not nature.undivided else "keep"
        case ops.Sort() | ops.SetOperation():
            return "keep"
        case ops.Sink() | ops.Write():
            return "sink"
    raise AssertionError(f"no shape for {op.kind}")
