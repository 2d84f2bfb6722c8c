"""Expressions as epochs compute them: what Spark fixes once a query is fixed once a run.

The workflow keeps the expressions as they were written; a plan has these. The present time is the moment the run
started (`clock`), calls that draw have a seed (`chance`), and an expression that was named by its own text still has
that name.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.compile.chance import draws, seeded, uniform_as_rand
from samovar.compile.clock import at_time
from samovar.compile.columns import quiet_analysis
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op, column_of
from samovar.graph.workflow import Graph
from samovar.text import quote_name

__all__ = ["epoch_expressions"]


def epoch_expressions(
    spark: SparkSession, graph: Graph, schemas: Mapping[str, StructType], now: int
) -> Graph:
    """The graph with expressions on which all epochs of a run that started at `now` (microseconds) agree."""
    settled_ops: dict[str, Op] = {}
    for name, op in graph.ops.items():
        columns = [c for up in op.inputs for c in schemas[up].names]
        texts = []
        for i, text in enumerate(op.expressions()):
            settled = text
            if column_of(text) is None:
                settled = seeded(at_time(text, now, columns), f"{now}/{name}/{i}")
                settled = uniform_as_rand(settled, lambda call: _type_of(spark, call))
            if (settled != text or draws(text)) and isinstance(op, ops.Select | ops.Aggregate):
                settled = _named(spark, schemas[op.inputs[0]], op, text, settled)
            texts.append(settled)
        settled_ops[name] = op.with_expressions(tuple(texts)) if texts else op
    return Graph(graph.name, settled_ops, graph.live)


def _named(spark: SparkSession, schema: StructType, op: Op, text: str, settled: str) -> str:
    """The new text under the name that the old one gave its column."""

    def column(written: str) -> str | None:
        with quiet_analysis():
            try:
                df = spark.createDataFrame([], schema).alias(op.inputs[0])
                is_aggregate = isinstance(op, ops.Aggregate) and written not in op.keys
                names = (df.agg if is_aggregate else df.select)(F.expr(written)).columns
            except PySparkException:
                return None  # its columns are qualified by an operator before its input
            return names[-1] if names else None

    before = column(text)
    if before is None or column(settled) == before:
        return settled
    return f"{settled} AS {quote_name(before)}"


def _type_of(spark: SparkSession, call: str) -> str:
    return spark.range(1).select(F.expr(call)).schema.fields[0].dataType.simpleString()
