"""The plan of a run: where operators work, which edges carry positions, what is fused. Built once, then only read."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.compile.aggregates import Accumulators, decompose, uses_order
from samovar.compile.analysis import Analysis, apply_empty, empty_frame, named
from samovar.compile.chance import draws
from samovar.compile.columns import quiet_analysis
from samovar.compile.epoch_expressions import epoch_expressions
from samovar.compile.levels import Placement, place
from samovar.compile.native import starless
from samovar.compile.qualifiers import Qualifiers
from samovar.compile.shapes import Shape, has_window
from samovar.errors import SchemaProblem
from samovar.graph import operators as ops
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Graph
from samovar.positions import ROW_WIDTH, TEXT_WIDTH, output_width, position_columns
from samovar.text import quote_name

__all__ = ["ROWS", "Plan", "make_plan", "needs_order"]

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
    qualifiers: Mapping[str, Qualifiers] = field(default_factory=dict)

    def named(self, name: str, df: DataFrame, *, stored: bool = True) -> DataFrame:
        """An operator's output, from storage or as it flows, with what qualifies its columns for those behind it."""
        return named(name, df, self.referenced, self.qualifiers, stored=stored)

    def shape(self, name: str) -> Shape:
        return self.placement.shapes[name]

    def keys(self, name: str) -> tuple[str, ...]:
        """The grouping keys of an accumulating operator."""
        op = self.graph.ops[name]
        if isinstance(op, ops.Aggregate):
            return op.keys
        if isinstance(op, ops.DropDuplicates) and op.subset is not None:
            return tuple(f"{quote_name(c)} AS __k{i}" for i, c in enumerate(op.subset))
        return tuple(quote_name(c) for c in self.schemas[name].names)

    def partitions(self, name: str) -> int:
        """In how many partitions a stateful Python operator runs."""
        buckets = self.buckets[name]
        op = self.graph.ops[name]
        keyed = isinstance(op, ops.Python) and bool(op.by)
        return max(1, min(buckets, int(self.settings.get("parallelism", buckets)))) if keyed else 1

    def ordered(self, name: str) -> bool:
        """Whether a blocking operator's result depends on the order of its input, which positions then tell."""
        return needs_order(self.graph.ops[name])

    def aligned(self, name: str) -> bool:
        """Whether a limit takes its rows as they come, because Spark reads a sort and a limit behind it as one step."""
        at = self.graph.ops[name]
        while True:
            at = self.graph.ops[at.inputs[0]]
            if len(self.graph.consumers(at.name)) > 1:
                return False
            if isinstance(at, ops.Sort):
                return True
            if self.shape(at.name) != "one":
                return False


def needs_order(op: Op) -> bool:
    """Whether an operator that gives its output at the end of its input looks at the order of the input."""
    if isinstance(op, ops.DropDuplicates):
        return op.subset is not None
    if isinstance(op, ops.Select):  # aggregates without a group; a window has an order of its own
        return uses_order(op.columns) and not any(map(has_window, op.columns))
    return isinstance(op, ops.Aggregate) and uses_order(op.aggregates)


def make_plan(
    spark: SparkSession,
    analysis: Analysis,
    sizes: Mapping[str, int],
    *,
    buckets: int,
    settings: Mapping[str, Any],
    positions: bool = False,
) -> Plan:
    """Place operators, cut aggregates into accumulators, decide positions and fusion. Runs no job.

    `positions`: whether every edge carries positions, as a trace needs them; nothing else differs then.
    """
    graph = epoch_expressions(spark, analysis.graph, analysis.schemas, int(settings["now"]))
    analysis = replace(analysis, graph=graph)
    shapes = dict(analysis.shapes)
    accumulators: dict[str, Accumulators] = {}
    while True:  # an aggregate that cannot be cut keeps its input, which may change what is placed where
        placement = place(graph, shapes, analysis.volatile, sizes, defers=bool(settings.get("defers")))
        draft = Plan(graph, analysis.schemas, placement, analysis.referenced, {}, {}, {}, frozenset(), {})
        width = _widths(graph, shapes, set(graph.ops) if positions else _positions_needed(draft))
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
    _check_stored(spark, analysis, placement, shapes)
    chains = _chains(graph, shapes, placement)
    fused = frozenset(n for chain in chains.values() for n in chain[:-1])
    count = {
        n: (op.key_partitions or buckets) if op.by else 1
        for n, op in graph.ops.items()
        if isinstance(op, ops.Python)
    }
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
        analysis.qualifiers,
    )


def _check_stored(
    spark: SparkSession, analysis: Analysis, placement: Placement, shapes: Mapping[str, Shape]
) -> None:
    """Raise when an operator needs to know where columns came from, and its rows come from storage, which does not."""
    if not analysis.qualified:
        return
    frames: dict[str, DataFrame] = {}

    def bare(name: str) -> DataFrame:
        return analysis.named(name, empty_frame(spark, analysis.schemas[name]))

    for name, op in analysis.graph.ops.items():
        ins = [bare(up) if shapes[name] == "keep" else frames[up] for up in op.inputs]
        df = None
        with quiet_analysis(), contextlib.suppress(PySparkException):
            df = apply_empty(spark, analysis, name, ins)
        if (
            df is None or df.columns != analysis.schemas[name].names
        ):  # drop() passes over what it does not find
            text = ", ".join(op.expressions())[:300]
            raise SchemaProblem(
                f"It tells columns of the same name apart by where they came from ({text}), which rows that "
                "were stored on the way do not say.",
                operator=name,
                hint="Rename or drop one of the columns before.",
            )
        lost = placement.ends(name) or name in placement.stashed
        frames[name] = bare(name) if lost else analysis.named(name, df)


def _cut(spark: SparkSession, analysis: Analysis, op: Any, width: int) -> Accumulators | None:
    schema = analysis.schemas[op.inputs[0]]
    if isinstance(op, ops.Distinct | ops.DropDuplicates) and len({n.lower() for n in schema.names}) < len(
        schema
    ):
        return None
    if isinstance(op, ops.Distinct) or (isinstance(op, ops.DropDuplicates) and op.subset is None):
        return Accumulators((), (), ())
    positions = position_columns(width)
    if isinstance(op, ops.DropDuplicates):
        row = "struct(" + ", ".join(quote_name(c) for c in schema.names) + ")"
        at = "struct(" + ", ".join(positions) + ")"
        return Accumulators(
            (f"min_by({row}, {at}) AS __a0", f"min({at}) AS __a1"),
            ("min_by(__a0, __a1) AS __a0", "min(__a1) AS __a1"),
            ("__a0.*",),
            keyless=True,
        )
    if any(getattr(t, "column", None) is not None for t in op.expressions()):
        return None
    df = analysis.named(op.inputs[0], empty_frame(spark, schema))
    if uses_order(op.aggregates):
        df = df.select("*", *(F.lit(0).cast("bigint").alias(c) for c in positions))
        return decompose(df, op.keys, [starless(a, df) for a in op.aggregates], positions)
    return decompose(df, op.keys, op.aggregates)


def _positions_needed(plan: Plan) -> set[str]:
    """Operators whose output must carry positions, found from the consumers back."""
    graph, shapes = plan.graph, plan.placement.shapes
    needed: set[str] = set()
    for name in reversed(list(graph.ops)):
        if name in plan.placement.fixed:
            needed.add(name)  # a trace ties its tuples to those they were made from
        for consumer, _ in graph.consumers(name):
            op = graph.ops[consumer]
            match shapes[consumer]:
                case "python":
                    wants = True
                case "limit":
                    wants = not plan.aligned(consumer)
                case "accumulate" | "keep":
                    wants = needs_order(op) or (isinstance(op, ops.Sort) and consumer in needed)
                case "sink":
                    wants = False
                case _:
                    drawn = isinstance(op, ops.Sample) or any(draws(t) for t in op.expressions())
                    wants = consumer in needed or drawn
            if wants:
                needed.add(name)
    return needed


def _widths(graph: Graph, shapes: Mapping[str, Shape], needed: set[str]) -> dict[str, int]:
    width: dict[str, int] = {}
    for name, op in graph.ops.items():
        shape = "opaque" if isinstance(op, ops.Batches) else shapes[name]
        text = isinstance(op, ops.Read) and op.format in ("csv", "json", "text", "orc")
        full = output_width(shape, [width[up] for up in op.inputs], TEXT_WIDTH if text else ROW_WIDTH)
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
    both = graph.live[up.name], graph.live[op.name]
    if not all(isinstance(live, Operator) for live in both):
        return False
    if any(is_batch_form(type(live)) for live in both) or "arrival" in (up.order, op.order):
        return False
    both_stateless = shapes[up.name] == shapes[op.name] == "batches"
    both_global = shapes[up.name] == shapes[op.name] == "python" and not up.by and not op.by
    return both_stateless or both_global
