"""Spark's analysis of a workflow before anything runs: every operator's schema, or an error that names the operator.

Building empty frames and applying each operator to them makes Spark resolve columns, functions and types; no job runs.
Columns given as PySpark objects are turned into SQL text where that can be verified.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from samovar.compile.columns import Usage, column_to_sql, quiet_analysis
from samovar.compile.kept_types import check_kept
from samovar.compile.native import apply_native, key_types, sort_column
from samovar.compile.natures import nature_of
from samovar.compile.qualifiers import Qualifiers, column_qualifiers, marked, requalified, with_marks
from samovar.compile.samples import check_samples
from samovar.compile.schema_problems import explain_problem, plain_text, syntax_text
from samovar.compile.shapes import Shape, shape_of
from samovar.compile.sqltext import unqualified
from samovar.errors import SchemaProblem, WorkflowError, did_you_mean
from samovar.graph import operators as ops
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.operators.base import Op, column_of
from samovar.graph.workflow import Graph
from samovar.ids import HIDDEN

__all__ = [
    "Analysis",
    "analyse",
    "apply_empty",
    "check_operator",
    "empty_frame",
    "named",
    "output_of",
    "referenced",
]

Applied = Callable[[Op, list[DataFrame]], DataFrame]
"""Applies an operator to empty inputs."""


@dataclass(frozen=True)
class Analysis:
    """The workflow with Columns as SQL text where possible, and the schema and shape of each operator."""

    graph: Graph
    schemas: Mapping[str, StructType]
    shapes: Mapping[str, Shape]
    referenced: frozenset[str]
    qualified: frozenset[str] = frozenset()
    """Operators that refer to columns of one name by their origin, which stored rows do not have."""
    volatile: frozenset[str] = frozenset()
    """Operators whose output may differ when they are computed again."""
    qualifiers: Mapping[str, Qualifiers] = field(default_factory=dict)
    """The origins of the columns of some operators' outputs, where an operator behind them refers to these."""

    def named(self, name: str, df: DataFrame) -> DataFrame:
        """An operator's output with the qualifiers of its columns that the operators behind it use."""
        return named(name, df, self.referenced, self.qualifiers)


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame of that schema without rows; its jobs cost nothing."""
    return spark.createDataFrame([], schema)


def analyse(spark: SparkSession, graph: Graph, sources: Mapping[str, StructType]) -> Analysis:
    """Check every operator against its inputs. Raises SchemaProblem naming the operator."""
    check_samples(graph)
    names = referenced(graph)
    qualifiers = names | {op.alias for op in graph.ops.values() if isinstance(op, ops.Alias)}
    views = _Views(spark, names, bool(qualifiers))
    done: dict[str, Op] = {}
    shapes: dict[str, Shape] = {}
    schemas: dict[str, StructType] = {}
    qualified: set[str] = set()
    volatile: set[str] = set()
    for name, op in graph.ops.items():
        live = graph.live.get(name)
        stateless = isinstance(live, Operator) and live.stateless
        inputs = [views.named[up] for up in op.inputs]

        def applied(op: Op, ins: list[DataFrame], live: Any = live, stateless: bool = stateless) -> DataFrame:
            return _frame(spark, op, ins, shape_of(op, stateless=stateless), live, sources)

        try:
            op = _as_sql(op, inputs)
            df = applied(op, inputs)
        except PySparkException as error:
            inherited = [views.inherited[up] for up in op.inputs]
            known = _by_origin(op, inherited, inputs, qualifiers, applied)
            if known is None:
                raise explain_problem(spark, name, error, inputs, op) from None
            op, by_name = known
            inputs = inputs if by_name else inherited
            df = applied(op, inputs)
        _check_names(op, df, inputs)
        if qualifiers and op.expressions():
            storable = _storable(op, inputs, [views.stored[up] for up in op.inputs], df, qualifiers, applied)
            op = storable or op
            if storable is None:
                qualified.add(name)
        done[name] = op
        nature = nature_of(op, inputs)
        if nature.volatile:
            volatile.add(name)
        shapes[name] = shape_of(op, nature, stateless=stateless)
        schemas[name] = df.schema
        views.add(op, df, applied)
    checked = Graph(graph.name, done, graph.live)
    analysis = Analysis(checked, schemas, shapes, names, frozenset(qualified), frozenset(volatile))
    return _with_qualifiers(spark, analysis, qualifiers) if qualified else analysis


def named(
    name: str,
    df: DataFrame,
    referenced: Collection[str],
    qualifiers: Mapping[str, Qualifiers],
    *,
    stored: bool = True,
) -> DataFrame:
    """An operator's output with qualifiers for its columns: the operator's name, or those of the columns' origins.

    `stored`: whether the rows come from storage, and so have no qualifiers.
    """
    if name in qualifiers:
        origins = qualifiers[name]
        return requalified(df, origins) if stored or not origins.natural else df
    return df.alias(name) if name in referenced else df


def _with_qualifiers(spark: SparkSession, analysis: Analysis, known: frozenset[str]) -> Analysis:
    """The analysis with the qualifiers that its qualified operators use, where they can be found.

    Operators that read the same output by its operator's name are rewritten without that name.
    """
    views = _Views(spark, analysis.referenced, True)

    def applied(op: Op, ins: list[DataFrame]) -> DataFrame:
        df = apply_empty(spark, analysis, op.name, ins, op)
        if isinstance(op, ops.Alias):  # so that two aliases of one frame differ
            return marked(df, op.name).alias(op.alias)
        return with_marks(df, op.name)

    done = dict(analysis.graph.ops)
    qualifiers: dict[str, Qualifiers] = {}
    for name, op in done.items():
        view = views.named
        try:
            with quiet_analysis():
                df = applied(op, [view[up] for up in op.inputs])
        except PySparkException:
            view = views.inherited
            df = applied(op, [view[up] for up in op.inputs])
        views.add(op, df, applied)
        for up in op.inputs if name in analysis.qualified else ():
            columns = column_qualifiers(view[up], known)
            if columns is not None:
                natural = view is views.named and up not in analysis.referenced
                qualifiers[up] = Qualifiers(columns, natural)
    analysis = replace(analysis, qualifiers=qualifiers)
    for name, op in done.items():
        if not qualifiers.keys() & set(op.inputs):
            continue
        stored = [analysis.named(up, empty_frame(spark, analysis.schemas[up])) for up in op.inputs]
        for candidate in _less_qualified(op, analysis.referenced & set(op.inputs)):
            with quiet_analysis(), contextlib.suppress(PySparkException):
                if apply_empty(spark, analysis, name, stored, candidate).schema == analysis.schemas[name]:
                    done[name] = candidate
                    break
    return replace(analysis, graph=Graph(analysis.graph.name, done, analysis.graph.live))


class _Views:
    """Each operator's output as an empty frame, in three views that differ in what qualifies its columns.

    `named`: the operator's name, if an expression uses it, which hides the qualifiers of its input. `inherited`: the
    qualifiers of its input. `stored`: the operator's name and nothing else, as when rows are read back from storage.
    """

    def __init__(self, spark: SparkSession, names: frozenset[str], several: bool) -> None:
        self.named: dict[str, DataFrame] = {}
        self.inherited: dict[str, DataFrame] = {}
        self.stored: dict[str, DataFrame] = {}
        self._spark = spark
        self._names = names
        self._several = several

    def add(self, op: Op, df: DataFrame, applied: Applied) -> None:
        self.named[op.name] = self._by_name(op.name, df)
        if not self._several:  # nothing is qualified: the views are alike
            self.inherited[op.name] = self.stored[op.name] = self.named[op.name]
            return
        self.stored[op.name] = self._by_name(op.name, empty_frame(self._spark, df.schema))
        self.inherited[op.name] = self.named[op.name]
        if op.inputs and not isinstance(op, ops.Python | ops.Batches):
            with quiet_analysis(), contextlib.suppress(PySparkException):
                self.inherited[op.name] = applied(op, [self.inherited[up] for up in op.inputs])

    def _by_name(self, name: str, df: DataFrame) -> DataFrame:
        return df.alias(name) if name in self._names else df


def _by_origin(
    op: Op,
    inputs: list[DataFrame],
    named: list[DataFrame],
    qualifiers: frozenset[str],
    applied: Applied,
) -> tuple[Op, bool] | None:
    """The operator with columns of earlier frames (`orders["id"]` on a frame made from orders); and whether their names
    alone are enough."""
    try:
        with quiet_analysis():
            op = _as_sql(op, inputs)
            by_name = _storable(op, inputs, named, applied(op, inputs), qualifiers, applied)
    except PySparkException:
        return None
    return (op, False) if by_name is None else (by_name, True)


def _storable(
    op: Op,
    inputs: list[DataFrame],
    stored: list[DataFrame],
    wanted: DataFrame,
    qualifiers: frozenset[str],
    applied: Applied,
) -> Op | None:
    """The operator in a form that also works on rows read back from storage; None when there is none.

    Stored rows have lost the qualifiers that Spark's frames inherit, so `orders.id` becomes `id` where that means the
    same.
    """
    for candidate in _less_qualified(op, qualifiers):
        try:
            with quiet_analysis():
                if candidate is not op:
                    df = applied(candidate, inputs)
                    alike = isinstance(op, ops.Python) or df.sameSemantics(wanted)
                    if df.schema != wanted.schema or not alike:
                        continue
                if applied(candidate, stored).columns == wanted.columns:
                    return candidate
        except PySparkException:
            continue
    return None


def _less_qualified(op: Op, qualifiers: frozenset[str]) -> Iterator[Op]:
    """The operator as it is, then without all qualifiers, then without those of one operator each."""
    yield op
    texts = op.expressions()
    used = {q for q in qualifiers if any(unqualified(t, {q}) != t for t in texts)}
    for dropped in [used, *({q} for q in sorted(used))] if len(used) > 1 else [used]:
        fewer = tuple(t if column_of(t) is not None else unqualified(t, dropped) for t in texts)
        if fewer != texts:
            yield op.with_expressions(fewer)


def apply_empty(
    spark: SparkSession, analysis: Analysis, name: str, inputs: list[DataFrame], op: Op | None = None
) -> DataFrame:
    """An operator of an analysed workflow, or another form of it, on empty inputs. Raises what Spark raises."""
    op = op or analysis.graph.ops[name]
    return _frame(spark, op, inputs, analysis.shapes[name], analysis.graph.live.get(name), analysis.schemas)


def referenced(graph: Graph) -> frozenset[str]:
    """Operators whose names are used in expressions to qualify columns (`orders.id`)."""
    text = "\n".join(t for op in graph.ops.values() for t in op.expressions())
    # a Column prints the arguments of a Python UDF as UnresolvedAttribute(List(orders, id), ...)
    in_udfs = {n.lower() for n in re.findall(r"UnresolvedAttribute\(List\(([^(),]+), ", text)}
    return frozenset(
        n
        for n in graph.ops
        if n.lower() in in_udfs
        or re.search(rf"(?<![\w`])(?:`{re.escape(n)}`|{re.escape(n)})\s*\.", text, re.IGNORECASE)
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
        case ops.Sample() | ops.Split() if inputs:
            return inputs[0]
        case _ if shape == "source":
            return empty_frame(spark, sources[op.name])
        case ops.Sink():
            check_kept(spark, op.name, inputs[0].schema)
            return inputs[0]
        case ops.Write():
            return inputs[0]
        case ops.Python():
            if not isinstance(live, Operator):
                raise WorkflowError(f"Operator '{op.name}' has no Python code.", operator=op.name)
            check_operator(op, live)
            key_types(op.by, inputs)
            return empty_frame(
                spark, output_of(spark, op.name, type(live).output, [df.schema for df in inputs])
            )
        case ops.Batches():
            return empty_frame(spark, _output_schema(spark, op.name, op.schema))
        case ops.Sort():
            return inputs[0].orderBy(*(sort_column(k) for k in op.keys))
    return apply_native(op, inputs, shape)


_STAR = re.compile(r"\s*\*(\d*)\s*(?:,(.*))?\Z", re.DOTALL)


def output_of(spark: SparkSession, name: str, output: str, inputs: Sequence[StructType]) -> StructType:
    """A Python operator's output schema: DDL, which may start with `*` (the columns of port 0) or `*1` (of port 1)."""
    starred = _STAR.match(output)
    if starred is None:
        return _output_schema(spark, name, output)
    port = int(starred[1] or 0)
    if port >= len(inputs):
        raise SchemaProblem(
            f"Expected `output` to name a port from 0 to {len(inputs) - 1}, got '*{port}'.", operator=name
        )
    rest = (starred[2] or "").strip()
    added = _output_schema(spark, name, rest).fields if rest else []
    names = {f.name.lower() for f in added}
    return StructType([*(f for f in inputs[port].fields if f.name.lower() not in names), *added])


def _output_schema(spark: SparkSession, name: str, ddl: str) -> StructType:
    try:
        return spark.createDataFrame([], ddl).schema
    except PySparkException as error:
        is_syntax = "== SQL ==" in str(error)
        why = syntax_text(str(error)).split("got: ", 1)[-1] if is_syntax else plain_text(error)
        raise SchemaProblem(
            f"Expected a schema such as 'customer string, amount double' as `output`, got {ddl!r}: {why}",
            operator=name,
            hint="Columns are separated by commas; types are Spark's: string, int, bigint, double, decimal(10,2), "
            "date, timestamp, array<...>, map<...,...>, struct<a:int>.",
        ) from None


def check_operator(op: ops.Python, live: Operator) -> None:
    """Raise when the class of a Python operator does not fit its place in the workflow."""
    cls = type(live)
    if cls.stateless and cls.finish is not Operator.finish:
        raise WorkflowError(
            f"{cls.__name__} is stateless and defines finish(): a stateless operator has no end of its own.",
            operator=op.name,
            hint="Remove `stateless = True`, or move what finish() does into an operator of its own.",
        )
    if cls.stateless and op.by:
        raise WorkflowError(
            f"{cls.__name__} is stateless: `by=` has no meaning for it.",
            operator=op.name,
            hint="Remove one of them.",
        )
    if not is_batch_form(cls) and cls.process is Operator.process:
        raise WorkflowError(
            f"{cls.__name__} defines neither process(self, row, port=0) nor process_batch(self, batch, port=0).",
            operator=op.name,
        )
    several = len(op.inputs) > 1
    if is_batch_form(cls):
        _check_signature(op, cls, "process_batch", ("batch", "port=0"), 2)
    else:
        _check_signature(op, cls, "process", ("row", "port=0"), 2 if several else 1)
    _check_signature(op, cls, "finish", ("port=0",), 1 if several else 0)


def _check_signature(op: ops.Python, cls: type, method: str, wanted: tuple[str, ...], given: int) -> None:
    """Raise when a method cannot be called as a worker will call it."""
    try:
        signature = inspect.signature(getattr(cls, method))
        signature.bind(None, *([None] * given))
    except TypeError:
        ports = f" (it has {len(op.inputs)} input ports)" if len(op.inputs) > 1 else ""
        raise WorkflowError(
            f"Expected {cls.__name__}.{method}(self, {', '.join(wanted)}), got {method}{signature}{ports}.",
            operator=op.name,
            hint=f"Write def {method}(self, {', '.join(wanted)}).",
        ) from None
    except ValueError:  # it has no signature
        return


def _check_names(op: Op, df: DataFrame, inputs: list[DataFrame]) -> None:
    if isinstance(op, ops.Python | ops.Batches):
        for port, df_in in enumerate(inputs):
            _check_unique(op, f"Its rows on port {port}", df_in.columns, "before")
    taken = [c for c in df.columns if c.startswith(HIDDEN)]
    if taken:
        raise SchemaProblem(
            f"Column names starting with '{HIDDEN}' are Samovar's own; got {taken[0]}.", operator=op.name
        )
    if isinstance(op, ops.Chart):
        _check_chart(op, df)
    if isinstance(op, ops.SINKS):
        _check_unique(op, f"The result '{op.name}'", df.columns, "before the sink")


def _check_unique(op: Op, what: str, columns: list[str], where: str) -> None:
    """Refuse two columns of one name, as Spark compares names."""
    names = [column.lower() for column in columns]
    for i, column in enumerate(columns):
        if names.index(names[i]) < i:
            raise SchemaProblem(
                f"{what} would have two columns named '{column}'.",
                operator=op.name,
                hint=f"Select, rename or drop one of them {where}.",
            )


def _check_chart(op: ops.Chart, df: DataFrame) -> None:
    if op.missing:
        raise SchemaProblem(
            f"Expected a column in '{op.missing[0]}' for a {op.chart} chart, got none.",
            operator=op.name,
            hint=f"Columns: {', '.join(df.columns)}.",
        )
    for where, column in op.used.items():
        if column not in df.columns:
            raise SchemaProblem(
                f"Expected a column of its input in '{where}', got '{column}'.",
                operator=op.name,
                hint=did_you_mean(column, df.columns, f"Columns: {', '.join(df.columns)}."),
            )


def _as_sql(op: Op, inputs: list[DataFrame]) -> Op:
    """The operator with its Columns as SQL text, where they have one."""
    texts = list(op.expressions())
    columns = {i: column_of(text) for i, text in enumerate(texts) if column_of(text) is not None}
    for i, column in columns.items():
        texts[i] = column_to_sql(column, *inputs, usage=_usage(op, i)) or texts[i]
    return op.with_expressions(tuple(texts)) if columns else op


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
