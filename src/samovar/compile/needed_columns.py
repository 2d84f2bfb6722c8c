"""The columns of a kept frame that operators behind it need. Pure.

Spark prunes columns within a plan, but not through a frame that is kept over epochs. Names are looked for in the texts
of what follows; in doubt a column is kept.
"""

from __future__ import annotations

from samovar.compile.plan import Plan
from samovar.graph import operators as ops

__all__ = ["needed_columns"]

_PASSING = (ops.Filter, ops.WithColumns, ops.Rename, ops.Alias, ops.Drop, ops.Sample, ops.Join)


def needed_columns(plan: Plan, name: str) -> list[str] | None:
    """Columns of an operator's output that operators behind it can mention; None when all may be needed."""
    texts: list[str] = []
    todo = [consumer for consumer, _ in plan.graph.consumers(name)]
    seen: set[str] = set()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        op = plan.graph.ops[at]
        if at in plan.placement.stashed or plan.shape(at) in ("keep", "sink", "python", "batches"):
            return None
        texts += op.expressions()
        if isinstance(op, ops.Select) and not any("*" in c for c in op.columns):
            continue
        if isinstance(op, ops.Aggregate):
            continue
        if not isinstance(op, _PASSING):
            return None
        if isinstance(op, ops.Join):
            texts += op.on or ()
        elif isinstance(op, ops.Rename | ops.WithColumns):
            texts += op.columns
        todo += [consumer for consumer, _ in plan.graph.consumers(at)]
    joined = "\n".join(texts).lower()
    columns = plan.schemas[name].names
    needed = [c for c in columns if c.lower() in joined]
    return needed if len(needed) < len(columns) and len(set(columns)) == len(columns) else None
