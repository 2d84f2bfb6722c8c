"""Columns by which a join's build side can be laid out once for all epochs. Pure."""

from __future__ import annotations

from collections.abc import Collection

from samovar.compile.sqltext import SqlTextError, Token, split_top_level, tokenise
from samovar.graph import operators as ops
from samovar.graph.operators.base import column_of

__all__ = ["build_keys"]


def build_keys(op: ops.Join, build: Collection[str], probe: Collection[str]) -> list[str] | None:
    """The build side's columns that equalities of the join's condition compare; None when there are none.

    Only plain equalities joined by AND are understood, between a column that one side alone has and one that the other
    side alone has; anything else is left to Spark.
    """
    if op.on is not None:
        return list(op.on)
    if op.condition is None or column_of(op.condition) is not None:
        return None
    try:
        tokens = tokenise(op.condition)
    except SqlTextError:
        return None
    ours, theirs = {c.lower(): c for c in build}, {c.lower(): c for c in probe}
    if any(t.text in ("(", ")") or t.lower == "or" for t in tokens):
        return None
    keys = []
    for part in split_top_level(tokens, "and"):
        at = [i for i, t in enumerate(part) if t.text in ("=", "==")]
        if len(at) != 1:
            continue
        sides = [_column(part[: at[0]]), _column(part[at[0] + 1 :])]
        if None in sides:
            continue
        mine = [s for s in sides if s in ours and s not in theirs]
        other = [s for s in sides if s in theirs and s not in ours]
        if len(mine) == len(other) == 1:
            keys.append(ours[str(mine[0])])
    return keys or None


def _column(tokens: list[Token]) -> str | None:
    """The column a side of an equality names, without its qualifier, in lower case."""
    if len(tokens) == 1 and tokens[0].kind in ("word", "quoted"):
        return tokens[0].name.lower()
    if len(tokens) == 3 and tokens[1].text == "." and tokens[2].kind in ("word", "quoted"):
        return tokens[2].name.lower()
    return None
