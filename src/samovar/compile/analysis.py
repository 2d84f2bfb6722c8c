"""What Spark says of a workflow before anything runs: every operator's schema, or a problem with the operator's name.

Building empty frames and applying each operator to them makes Spark resolve columns, functions and types; no job runs.
Columns handed in as PySpark objects are turned into SQL text where that can be verified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from samovar.compile.columns import column_to_sql
from samovar.compile.native import apply_native, as_column, sort_column
from samovar.compile.shapes import Shape, shape_of
from samovar.errors import SchemaProblem, WorkflowError, nearest
from samovar.graph import operators as ops
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Graph
from samovar.ids import HIDDEN

__all__ = ["Analysis", "analyse", "empty_frame", "explain_problem", "referenced"]

Usage = Literal["project", "filter", "aggregate", "sort", "join"]


@dataclass(frozen=True)
class Analysis:
    """The workflow with Columns as SQL text where possible, and what is known of each operator."""

    graph: Graph
    schemas: Mapping[str, StructType]
    shapes: Mapping[str, Shape]
    referenced: frozenset[str]


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame of that schema without rows; its jobs cost nothing."""
    return spark.createDataFrame([], schema)


def analyse(spark: SparkSession, graph: Graph, sources: Mapping[str, StructType]) -> Analysis:
    """Check every operator against its inputs. Raises SchemaProblem naming the operator."""
    names = referenced(graph)
    frames: dict[str, DataFrame] = {}
    done: dict[str, Op] = {}
    shapes: dict[str, Shape] = {}
    schemas: dict[str, StructType] = {}
    for name, op in graph.ops.items():
        live = graph.live.get(name)
        inputs = [frames[up] for up in op.inputs]
        try:
            op = _as_sql(op, inputs)
            shapes[name] = shape_of(op, stateless=isinstance(live, Operator) and live.stateless)
            df = _frame(spark, op, inputs, shapes[name], live, sources)
        except PySparkException as error:
            raise explain_problem(spark, name, error, inputs) from None
        _check_names(op, df)
        done[name] = op
        schemas[name] = df.schema
        frames[name] = df.alias(name) if name in names else df
    return Analysis(Graph(graph.name, done, graph.live), schemas, shapes, names)


def referenced(graph: Graph) -> frozenset[str]:
    """Operators whose names are used in expressions to qualify columns (`orders.id`)."""
    text = "\n".join(t for op in graph.ops.values() for t in op.expressions())
    return frozenset(
        n for n in graph.ops if re.search(rf"(?<![\w`])(?:`{re.escape(n)}`|{re.escape(n)})\s*\.", text, re.IGNORECASE)
    )


def _frame(
    spark: SparkSession,
    op: Op,
    inputs: list[DataFrame],
    shape: Shape,
    live: Any,
    sources: Mapping[str, StructType],
) -> DataFrame:
    match op:
        case _ if shape == "source":
            return empty_frame(spark, sources[op.name])
        case ops.Sink() | ops.Write():
            return inputs[0]
        case ops.Python():
            if not isinstance(live, Operator):
                raise WorkflowError(f"Operator '{op.name}' has no Python code.", operator=op.name)
            _check_operator(op, live)
            for df in inputs:
                df.select(*(as_column(k) for k in op.by))
            return empty_frame(spark, _output_schema(spark, op.name, type(live).output))
        case ops.Batches():
            return empty_frame(spark, _output_schema(spark, op.name, op.schema))
        case ops.Sample():
            return inputs[0]
        case ops.Sort():
            return inputs[0].orderBy(*(sort_column(k) for k in op.keys))
    return apply_native(op, inputs, shape)


def _output_schema(spark: SparkSession, name: str, ddl: str) -> StructType:
    try:
        return spark.createDataFrame([], ddl).schema
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise SchemaProblem(
            f"Expected a schema such as 'customer string, amount double' as `output`, got {ddl!r}: {first}",
            operator=name,
        ) from None


def _check_operator(op: ops.Python, live: Operator) -> None:
    cls = type(live)
    if cls.stateless and cls.finish is not Operator.finish:
        raise WorkflowError(
            f"{cls.__name__} is stateless and defines finish(): a stateless operator has no end of its own.",
            operator=op.name,
            hint="Remove `stateless = True`, or move what finish() does into an operator of its own.",
        )
    if cls.stateless and op.by:
        raise WorkflowError(
            f"{cls.__name__} is stateless: `by=` has no meaning for it.", operator=op.name, hint="Remove one of them."
        )
    if not is_batch_form(cls) and cls.process is Operator.process:
        raise WorkflowError(
            f"{cls.__name__} defines neither process(self, row, port=0) nor process_batch(self, batch, port=0).",
            operator=op.name,
        )


def _check_names(op: Op, df: DataFrame) -> None:
    taken = [c for c in df.columns if c.startswith(HIDDEN)]
    if taken:
        raise SchemaProblem(f"Column names starting with '{HIDDEN}' are Samovar's own; got {taken[0]}.", operator=op.name)
    if isinstance(op, ops.SINKS):
        seen: set[str] = set()
        for column in df.columns:
            if column.lower() in seen:
                raise SchemaProblem(
                    f"The result '{op.name}' would have two columns named '{column}'.",
                    operator=op.name,
                    hint="Select, rename or drop one of them before the sink.",
                )
            seen.add(column.lower())


def _as_sql(op: Op, inputs: list[DataFrame]) -> Op:
    texts = op.expressions()
    if not any(getattr(t, "column", None) is not None for t in texts):
        return op
    made = []
    for i, text in enumerate(texts):
        column = getattr(text, "column", None)
        sql = None
        if column is not None:
            sql = column_to_sql(column, *inputs, usage=_usage(op, i))
        made.append(sql if sql is not None else text)
    return op.with_expressions(tuple(made))


def _usage(op: Op, index: int) -> Usage:
    match op:
        case ops.Filter():
            return "filter"
        case ops.Sort():
            return "sort"
        case ops.Join():
            return "join"
        case ops.Aggregate():
            return "project" if index < len(op.keys) else "aggregate"
    return "project"


def explain_problem(
    spark: SparkSession, operator: str, error: PySparkException, inputs: list[DataFrame]
) -> SchemaProblem:
    """Spark's complaint about an operator in one line, with the nearest name as a hint."""
    condition = str(error.getCondition() or "")
    parameters = error.getMessageParameters() or {}
    columns = [c for df in inputs for c in df.columns]
    if condition.startswith("UNRESOLVED_COLUMN"):
        wanted = parameters.get("objectName", "").replace("`", "")
        close = nearest(wanted.split(".")[-1], columns)
        return SchemaProblem(
            f"Expected a column of its input ({_listed(columns)}), got '{wanted}'.",
            operator=operator,
            hint=f"Did you mean '{close}'?" if close else None,
        )
    if condition.startswith("UNRESOLVED_ROUTINE"):
        wanted = parameters.get("routineName", "").replace("`", "").split(".")[-1]
        known = [r[0] for r in spark.sql("SHOW FUNCTIONS").toArrow().to_pandas().itertuples(index=False)]
        close = nearest(wanted, known)
        return SchemaProblem(
            f"Expected a function Spark knows, got '{wanted}'.",
            operator=operator,
            hint=f"Did you mean '{close}'?" if close else None,
        )
    message = re.sub(r"\s*SQLSTATE: \w+", "", str(error).split("\n== ")[0].split(";\n")[0])
    message = re.sub(r"^\[[\w.]+\]\s*", "", message.strip())
    types = "; ".join(f"input {i}: {df.schema.simpleString()}" for i, df in enumerate(inputs))
    return SchemaProblem(message[:1500], operator=operator, hint=types[:600] or None)


def _listed(names: list[str], limit: int = 20) -> str:
    shown = ", ".join(names[:limit])
    return shown + (", ..." if len(names) > limit else "")
