"""Other expressions for operators that Spark runs by itself: checked against the whole plan, put into force with it.

A plan changes between two epochs. The operator must give the same columns and stay where it is; operators that keep
something (aggregates, sorts, joins) cannot change, since what they kept was made by the old expression, nor can those
that are computed on several levels, where a tuple would meet both.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import SparkSession

from samovar.compile.analysis import analyse
from samovar.compile.plan import Plan, make_plan
from samovar.errors import RunError, SamovarError, UnknownName, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op, expr
from samovar.graph.workflow import Graph
from samovar.record.state_files import dumps
from samovar.record.store import History, Recording
from samovar.runtime.sources.units import Source

if TYPE_CHECKING:
    from samovar.runtime.epochs.epoch import RunContext

__all__ = ["checked_expressions", "expressions_at", "other_expression", "plan_with"]


def other_expression(op: Op, change: Any, problem: type[SamovarError] = RunError) -> Op:
    """A native operator with other expressions: SQL text (several: a list), or a mapping of its fields."""
    if isinstance(change, Mapping):
        try:
            return msgspec.structs.replace(op, **change)
        except TypeError as error:
            raise problem(f"'{op.kind}' has no such field: {error}.", operator=op.name) from None
    given = [change] if isinstance(change, str) or hasattr(change, "cast") else list(change)
    texts = tuple(expr(c) for c in given)
    wanted = len(op.expressions())
    if len(texts) != wanted:
        raise problem(
            f"Expected {wanted} expressions for '{op.name}', got {len(texts)}.",
            operator=op.name,
            hint=f"It has: {', '.join(op.expressions()) or 'none'}.",
        )
    return op.with_expressions(texts)


def checked_expressions(context: RunContext, changes: Mapping[str, Any]) -> dict[str, bytes]:
    """The new operators as they are sent about. Raises when one cannot be put into force; runs no job."""
    plan = context.plan
    made: dict[str, bytes] = {}
    for name, change in changes.items():
        if name not in plan.graph.ops:
            raise UnknownName(name, plan.graph.ops, what="an operator of the run")
        op = plan.graph.ops[name]
        if isinstance(op, ops.Python | ops.Batches) or plan.shape(name) not in ("one", "some", "many"):
            raise RunError(
                f"Expected a Python operator or one that keeps nothing (a filter, a select), got '{name}' "
                f"({op.kind}).",
                operator=name,
                hint="Fork the run from a moment before: past.jump(...).fork({...}).",
            )
        places = plan.placement
        if len(places.streams[name] | places.whole[name]) > 1 or places.whole[name]:
            raise RunError(
                f"'{name}' is computed more than once in a run: a tuple would meet its old and its new expression.",
                operator=name,
                hint="Fork the run from a moment before: past.jump(...).fork({...}).",
            )
        made[name] = dumps(other_expression(op, change))
    if made:
        plan_with(context.spark, plan, context.sources, made)
    return made


def plan_with(
    spark: SparkSession,
    plan: Plan,
    sources: Mapping[str, Source],
    bodies: Mapping[str, bytes],
    *,
    positions: bool = False,
) -> Plan:
    """The plan with other expressions. Raises when an operator would give other columns or work elsewhere."""
    if not bodies:
        return plan
    made = {**plan.graph.ops, **{n: pickle.loads(body) for n, body in bodies.items()}}
    graph = Graph(plan.graph.name, made, plan.graph.live)
    analysis = analyse(spark, graph, {n: s.struct for n, s in sources.items()})
    new = make_plan(
        spark,
        analysis,
        {n: s.size for n, s in sources.items()},
        buckets=int(plan.settings["buckets"]),
        settings=plan.settings,
        positions=positions,
    )
    for name in plan.graph.ops:
        before, after = plan.schemas[name].simpleString()[7:-1], new.schemas[name].simpleString()[7:-1]
        if before != after:
            raise WorkflowError(
                f"Expected {before} as the output of '{name}', got {after}.",
                operator=name,
                hint="What comes behind it was planned for the old columns: keep them, or start a new run.",
            )
        same = plan.shape(name) == new.shape(name) and plan.width[name] == new.width[name]
        if not same or plan.placement.level[name] != new.placement.level[name]:
            raise WorkflowError(
                f"With this change '{name}' works elsewhere in the run: what the run stored does not fit.",
                operator=name,
                hint="Start a new run for a change of this kind.",
            )
    return new


def expressions_at(
    recording: Recording, history: History, code: Mapping[str, bytes], epoch: int
) -> dict[str, bytes]:
    """Native operators that an epoch ran with other expressions; `code` names the Python operators."""
    made: dict[str, bytes] = {}
    for change in history.changes:
        if change.epoch <= epoch:
            for name, version in change.operators.items():
                if name not in code:
                    made[name] = recording.read_code(name, version, change.files)
    return made
