"""The plan of a run: where operators work, which edges carry positions, what is fused. Built once, then only read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.compile.aggregates import Accumulators, decompose, uses_order
from samovar.compile.analysis import Analysis, empty_frame
from samovar.compile.levels import Placement, place
from samovar.compile.native import quoted
from samovar.compile.shapes import Shape, is_volatile
from samovar.graph import operators as ops
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.workflow import Graph
from samovar.ids import position_columns

__all__ = ["Plan", "make_plan"]

ROWS = "__sv_rows"
"""In an accumulating operator's deltas: how many input rows a group had."""


@dataclass(frozen=True)
class Plan:
    """Everything about a workflow that does not change from epoch to epoch.

    `width`: how many parts the position of an operator's output has, 0 where none is carried. `chains`: for the last
    operator of each fused chain of Python operators, the chain; `fused`: operators inside a chain that make no frame of
    their own. `buckets`: key partitions of each Python operator (1: one instance).
    """

    graph: Graph
    schemas: Mapping[str, StructType]
    placement: Placement
    referenced: frozenset[str]
    width: Mapping[str, int]
    accumulators: Mapping[str, Accumulators]
    chains: Mapping[str, tuple[str, ...]]
    fused: frozenset[str]
    buckets: Mapping[str, int]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def shape(self, name: str) -> Shape:
        return self.placement.shapes[name]

    def keys(self, name: str) -> tuple[str, ...]:
        """The grouping keys of an accumulating operator."""
        op = self.graph.ops[name]
        if isinstance(op, ops.Aggregate):
            return op.keys
        if isinstance(op, ops.DropDuplicates) and op.subset is not None:
            return tuple(quoted(c) for c in op.subset)
        return tuple(quoted(c) for c in self.schemas[name].names)

    def aligned(self, name: str) -> bool:
        """Whether a limit takes its rows as they come, because they come sorted."""
        at = self.graph.ops[name]
        while True:
            at = self.graph.ops[at.inputs[0]]
            if isinstance(at, ops.Sort):
                return True
            if self.shape(at.name) not in ("one", "some"):
                return False


def make_plan(
    spark: SparkSession, analysis: Analysis, sizes: Mapping[str, int], *, buckets: int, settings: Mapping[str, Any]
) -> Plan:
    """Place operators, cut aggregates into accumulators, decide positions and fusion. Runs no job."""
    graph = analysis.graph
    volatile = frozenset(n for n, op in graph.ops.items() if is_volatile(op))
    shapes = dict(analysis.shapes)
    accumulators: dict[str, Accumulators] = {}
    while True:  # an aggregate that cannot be cut keeps its input, which may change what is placed where
        placement = place(graph, shapes, volatile, sizes)
        draft = Plan(graph, analysis.schemas, placement, analysis.referenced, {}, {}, {}, frozenset(), {})
        width = _widths(graph, shapes, _positions_needed(draft))
        uncut = [n for n, shape in shapes.items() if shape == "accumulate" and n not in accumulators]
        if not uncut:
            break
        for name in uncut:
            op = graph.ops[name]
            cut = _cut(spark, analysis, op, width[op.inputs[0]])
            if cut is None:
                shapes[name] = "keep"
            else:
                accumulators[name] = cut
        if all(shapes[n] == "accumulate" for n in uncut):
            break
    chains = _chains(graph, shapes, placement)
    fused = frozenset(n for chain in chains.values() for n in chain[:-1])
    count = {n: (op.workers or buckets) if op.by else 1 for n, op in graph.ops.items() if isinstance(op, ops.Python)}
    return Plan(
        graph,
        analysis.schemas,
        placement,
        analysis.referenced,
        width,
        accumulators,
        chains,
        fused,
        count,
        dict(settings),
    )


def _cut(spark: SparkSession, analysis: Analysis, op: Any, width: int) -> Accumulators | None:
    schema = analysis.schemas[op.inputs[0]]
    if isinstance(op, ops.Distinct) or (isinstance(op, ops.DropDuplicates) and op.subset is None):
        return Accumulators((), (), ())
    positions = position_columns(width)
    if isinstance(op, ops.DropDuplicates):
        row = "struct(" + ", ".join(quoted(c) for c in schema.names) + ")"
        at = "struct(" + ", ".join(positions) + ")"
        return Accumulators(
            (f"min_by({row}, {at}) AS __a0", f"min({at}) AS __a1"),
            ("min_by(__a0, __a1) AS __a0", "min(__a1) AS __a1"),
            ("__a0.*",),
        )
    if any(getattr(t, "column", None) is not None for t in op.expressions()):
        return None
    df = empty_frame(spark, schema)
    if op.inputs[0] in analysis.referenced:
        df = df.alias(op.inputs[0])
    if uses_order(op.aggregates):
        df = df.select("*", *(F.lit(0).cast("bigint").alias(c) for c in positions))
        return decompose(df, op.keys, op.aggregates, positions)
    return decompose(df, op.keys, op.aggregates)


def _positions_needed(plan: Plan) -> set[str]:
    """Operators whose output must carry positions, found from the consumers back."""
    graph, shapes = plan.graph, plan.placement.shapes
    needed: set[str] = set()
    for name in reversed(graph.ops):
        for consumer, _ in graph.consumers(name):
            op = graph.ops[consumer]
            match shapes[consumer]:
                case "python":
                    wants = True
                case "limit":
                    wants = not plan.aligned(consumer)
                case "accumulate":
                    wants = (isinstance(op, ops.DropDuplicates) and op.subset is not None) or (
                        isinstance(op, ops.Aggregate) and uses_order(op.aggregates)
                    )
                case "keep":
                    wants = isinstance(op, ops.Sort) and consumer in needed
                case "sink":
                    wants = False
                case _:
                    wants = consumer in needed or isinstance(op, ops.Sample)
            if wants:
                needed.add(name)
    return needed


def _widths(graph: Graph, shapes: Mapping[str, Shape], needed: set[str]) -> dict[str, int]:
    width: dict[str, int] = {}
    for name, op in graph.ops.items():
        ins = [width[up] for up in op.inputs]
        match shapes[name]:
            case "source":
                full = 3 if isinstance(op, ops.Read) and op.format in ("csv", "json", "text", "orc") else 2
            case "many":
                full = ins[0] + 1
            case "python" | "batches":
                full = 2 if isinstance(op, ops.Batches) else max(ins) + (len(ins) > 1) + 1
            case "union":
                full = max(ins) + 1
            case "join":
                full = sum(ins)
            case "accumulate" | "keep":
                full = 2
            case _:
                full = ins[0]
        width[name] = full if name in needed else 0
    return width


def _chains(graph: Graph, shapes: Mapping[str, Shape], placement: Placement) -> dict[str, tuple[str, ...]]:
    """Neighbouring Python operators that share one worker pass: same kind of order, one consumer, row form."""
    chains: dict[str, tuple[str, ...]] = {}
    for name, op in graph.ops.items():
        if not isinstance(op, ops.Python):
            continue
        chain: tuple[str, ...] = (name,)
        if len(op.inputs) == 1:
            up = graph.ops[op.inputs[0]]
            before = chains.get(up.name)
            if (
                before is not None
                and isinstance(up, ops.Python)
                and _fusable(graph, up, op, shapes)
                and len(graph.consumers(up.name)) == 1
                and placement.level[up.name] == placement.level[name]
            ):
                chain = (*before, name)
                del chains[up.name]
        chains[name] = chain
    return chains


def _fusable(graph: Graph, up: ops.Python, op: ops.Python, shapes: Mapping[str, Shape]) -> bool:
    one, two = graph.live[up.name], graph.live[op.name]
    if not (isinstance(one, Operator) and isinstance(two, Operator)):
        return False
    if is_batch_form(type(one)) or is_batch_form(type(two)) or "arrival" in (up.order, op.order):
        return False
    both_stateless = shapes[up.name] == shapes[op.name] == "batches"
    both_global = shapes[up.name] == shapes[op.name] == "python" and not up.by and not op.by
    return both_stateless or both_global
