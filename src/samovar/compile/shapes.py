"""How each operator behaves over epochs, told from its text alone. Pure: needs no Spark.

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
from typing import Literal

from samovar.compile.sqltext import AGGREGATES, SqlTextError, tokenise
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op

__all__ = ["GENERATORS", "Shape", "function_names", "is_volatile", "shape_of"]

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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


GENERATORS = _words(
    """explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple variant_explode
    variant_explode_outer collations"""
)
VOLATILE = _words(
    """rand randn random uuid uniform randstr shuffle current_timestamp now localtimestamp current_date curdate
    current_time monotonically_increasing_id spark_partition_id input_file_name
    input_file_block_start input_file_block_length"""
)
_WITHOUT_PARENTHESES = _words("current_timestamp current_date current_time localtimestamp")
_NOW_IF_EMPTY = _words("unix_timestamp")
"""The present time if nothing is handed to them."""
_OVER = re.compile(r"\bover\b\s*(\(|\w)", re.IGNORECASE)


def shape_of(op: Op, *, stateless: bool = False) -> Shape:
    """The shape of an operator; `stateless` is what a Python operator's class says of itself."""
    match op:
        case _ if isinstance(op, ops.SOURCES):
            return "source"
        case ops.Select() | ops.WithColumns():
            called = {name for text in op.expressions() for name in function_names(text)}
            if called & AGGREGATES or any(_OVER.search(text) for text in op.expressions()):
                return "keep"
            return "many" if called & GENERATORS else "one"
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
            return "accumulate" if plain else "keep"
        case ops.Sort() | ops.SetOperation():
            return "keep"
        case ops.Sink() | ops.Write():
            return "sink"
    raise AssertionError(f"no shape for {op.kind}")


def is_volatile(op: Op) -> bool:
    """Whether an expression of the operator may give another value when computed again."""
    return any(function_names(text) & VOLATILE or _asks_the_time(text) for text in op.expressions())


def _asks_the_time(text: str) -> bool:
    try:
        words = [t.text.lower() for t in tokenise(text)]
    except SqlTextError:
        return False
    if _WITHOUT_PARENTHESES & set(words):
        return True
    return any(w in _NOW_IF_EMPTY and words[i + 1 : i + 3] == ["(", ")"] for i, w in enumerate(words))


def function_names(text: str) -> frozenset[str]:
    """The functions a SQL text (or a printed Column) calls, in lower case; more rather than fewer when in doubt."""
    try:
        tokens = tokenise(text)
    except SqlTextError:
        return frozenset(w.lower() for w in re.findall(r"(\w+)\s*\(", text))
    following = [*tokens[1:], None]
    named = zip(tokens, following, strict=True)
    return frozenset(t.text.lower() for t, after in named if after is not None and after.text == "(")
