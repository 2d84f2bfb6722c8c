"""Samples with a seed: Spark draws them, before the run and as one query, so that they are the rows Spark draws.

Spark draws by partition: the rows for a seed follow from how a query's rows lie in partitions, which epochs do not
keep. So such a sample is a source of the run: its rows are what Spark gives for everything before it, and are kept in
the recording. What comes before it and feeds nothing else is not part of the run.

Behind a join, an aggregate or a Python operator a sample with a seed is refused: it would take the operators before it
out of the run.
"""

from __future__ import annotations

import msgspec

from samovar.errors import WorkflowError
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Graph

__all__ = ["check_samples", "drawn_as_sources", "is_drawn"]

_ROW_BY_ROW = (
    ops.Select,
    ops.WithColumns,
    ops.Filter,
    ops.DropNa,
    ops.Rename,
    ops.ToDF,
    ops.Drop,
    ops.FillNa,
    ops.Replace,
    ops.Alias,
    ops.Union,
)


def is_drawn(op: Op) -> bool:
    """Whether Spark draws the operator's rows before the run."""
    return isinstance(op, ops.Sample | ops.Split) and op.seed is not None


def check_samples(graph: Graph) -> None:
    """Raise when a sample with a seed stands where it cannot be drawn before the run."""
    for name, op in graph.ops.items():
        if not is_drawn(op):
            continue
        for before in graph.upstream(name):
            if isinstance(before, (*ops.SOURCES, *_ROW_BY_ROW)) or is_drawn(before):
                continue
            raise WorkflowError(
                f"Expected a sample with a seed behind a source and operators that look at one row at a time, got one "
                f"behind '{before.name}' ({before.kind}).",
                operator=name,
                hint="Spark draws by partition, which a run in epochs does not keep. Sample before that operator, or "
                "leave the seed out: each row is then decided by its position, the same way in every run.",
            )


def drawn_as_sources(graph: Graph) -> Graph:
    """The graph with samples that Spark draws as sources, without what only they are drawn from."""
    sampled: dict[str, Op] = {}
    for name, op in reversed(list(graph.ops.items())):
        consumers = [c for c, _ in graph.consumers(name)]
        if consumers and not any(c in sampled and name in sampled[c].inputs for c in consumers):
            continue
        sampled[name] = msgspec.structs.replace(op, inputs=()) if is_drawn(op) else op
    ordered = {n: sampled[n] for n in graph.ops if n in sampled}
    return Graph(graph.name, ordered, {n: live for n, live in graph.live.items() if n in ordered})
