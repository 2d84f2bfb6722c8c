"""Rows on which an expression fails inside Spark: skipped or replaced when their epoch is done again.

Spark fails the job, not the row; so the epoch is given up, the row is found by splitting the epoch (`row_search.py`),
and the run waits for a decision before the epoch is tried again (`held_rows.py`). A row is named by its operator and a
hash of its columns: equal rows fail alike, so a decision is about all equal rows of the epoch. The decisions are kept
in the epoch's folder, and a replay follows them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from samovar.compile.native import visible
from samovar.runtime.exchange.decisions import RecordedDecision
from samovar.text import quote_name

__all__ = ["mark_of", "mend"]

_POSITIVE = (1 << 63) - 1


def mend(df: DataFrame, decisions: Iterable[RecordedDecision]) -> DataFrame:
    """The input of an operator without the rows that were skipped, and with those that were replaced."""
    for decision in decisions:
        this = mark_of(df) == F.lit(decision.number)
        if decision.edited is None:
            df = df.filter(~this)
            continue
        edited = {n: v for n, v in decision.edited.items() if v != decision.row.get(n)}
        kinds = {f.name: f.dataType for f in df.schema.fields}
        df = df.withColumns(
            {
                n: F.when(this, F.lit(v).cast(kinds[n])).otherwise(F.col(quote_name(n)))
                for n, v in edited.items()
            }
        )
    return df


def mark_of(df: DataFrame) -> Column:
    """A number for each row: a hash of its columns without maps, which Spark does not hash."""
    kinds = {f.name: f.dataType.simpleString() for f in df.schema.fields}
    return F.xxhash64(*(quote_name(c) for c in visible(df) if "map<" not in kinds[c])).bitwiseAND(
        F.lit(_POSITIVE)
    )
