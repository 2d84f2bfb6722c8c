"""Whether the expressions of an operator look at one row, at many rows or at chance, as Spark's analysis finds out.

Function names do not decide it: Spark adds functions, and people register their own. Spark's analysis does, without
running anything: as the condition of a join Spark accepts only expressions that look at one row and are deterministic,
and for any other expression its error names the reason.

Cost: one analysis for an operator that calls functions (about 10 ms on a warm session), one more for each of its
expressions if that one fails. Operators that call no function need none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import cast

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from samovar.compile.chance import CHANCE, NUMBERING, PLACES, draws
from samovar.compile.clock import CLOCK
from samovar.compile.columns import quiet_analysis
from samovar.compile.shapes import Nature, nature_by_names
from samovar.compile.sqltext import SqlTextError, function_names, split_alias, stars
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op, column_of
from samovar.ids import HIDDEN

__all__ = ["nature_of"]

_BY_QUERY = CHANCE | CLOCK | {NUMBERING}
"""What has one meaning for a whole query: its epochs, each a query of its own, must agree on it."""
_WORD = re.compile(r"[a-z]\w*")


def nature_of(op: Op, inputs: Sequence[DataFrame]) -> Nature:
    """What an operator's expressions do on rows of its inputs, which need to have no rows."""
    if isinstance(op, ops.Aggregate):
        drawn = [_divided(Nature(volatile=draws(t)), t) for t in op.expressions()]
        return Nature(undivided=any(n.volatile or n.undivided for n in drawn))
    calling = [t for t in op.expressions() if column_of(t) is not None or function_names(t)]
    if not calling or not isinstance(op, ops.Select | ops.WithColumns | ops.Filter):
        return Nature()
    df = inputs[0]
    with quiet_analysis():
        alone = df.sparkSession.range(1).select(F.lit(1).alias(f"{HIDDEN}alone"))
        try:
            _probe(df, alone, calling)
            natures = [Nature()] * len(calling)
        except Exception:
            # More than PySpark's errors: the analysis may break on what no condition has (`window_time`).
            natures = [_nature_by_probe(df, alone, text) for text in calling]
    return reduce(Nature.__or__, (_divided(n, t) for n, t in zip(natures, calling, strict=True)))


def _nature_by_probe(df: DataFrame, alone: DataFrame, text: str) -> Nature:
    try:
        _probe(df, alone, [text])
    except Exception as error:
        condition = str(error.getCondition() or "") if isinstance(error, PySparkException) else ""
        if condition.startswith("INVALID_NON_DETERMINISTIC_EXPRESSIONS"):
            return Nature(volatile=True)
        if condition.startswith("UNSUPPORTED_EXPR_FOR_OPERATOR"):
            return Nature(gathers=True)
        if condition.startswith("UNSUPPORTED_GENERATOR"):
            return Nature(generates=True)
        # it cannot stand in a condition at all, as `stack(...) AS (a, b)` cannot
        return nature_by_names(text)
    return Nature()


def _probe(df: DataFrame, alone: DataFrame, texts: Sequence[str]) -> None:
    """Raise Spark's objection, if it has one, to these expressions as the condition of a join."""
    conditions = [_value(text).isNull() for text in texts]
    _ = df.join(alone, reduce(lambda a, b: a | b, conditions)).schema


def _value(text: str) -> Column:
    if (column := column_of(text)) is not None:
        return cast(Column, column)
    try:
        bare = split_alias(text)[0]
    except SqlTextError:
        bare = text
    return F.expr(f"struct({bare})" if stars(bare) else bare)


def _divided(nature: Nature, text: str) -> Nature:
    """The nature, and whether the expression can be computed epoch by epoch.

    What is drawn or numbered by Spark, and the present time, are written so that epochs agree (see `chance`, `clock`);
    that needs text. A Python function that is marked as non-deterministic is called once a tuple anyway.
    """
    if column_of(text) is not None:
        words = set(_WORD.findall(text.lower()))
        return nature | Nature(undivided=bool(words & _BY_QUERY))
    known = function_names(text) & (CHANCE | PLACES | {NUMBERING})
    return nature | Nature(undivided=nature.volatile and not known)
