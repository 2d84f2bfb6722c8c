"""Programs under test: whatever turns tables into a table, run on given inputs.

A program is a function of DataFrames; a function of Frames (`on_frames`); a function of lists of rows (`plain`); a
workflow, whose sources are replaced by the inputs; or an output that exists already: a table, a path, a run, a
recording. A program that raises has an outcome, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from samovar.diff.comparison_errors import DiffError, ProgramProblem, SchemasDiffer
from samovar.diff.equality import as_equality
from samovar.diff.event_values import SIDES, Side, as_event, rows_of
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.programs.generated_rows import Rows
from samovar.diff.verdict import Verdict
from samovar.errors import SamovarError, UnknownName
from samovar.graph.workflow import Workflow
from samovar.text import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Outcome", "Plain", "named_inputs", "on_frames", "outcome_of", "plain", "same_outcome"]

_FEW = 500
"""Rows up to which a table goes through the matcher row by row, which shows exactly where it differs."""
_PIECE = 4096

Inputs = dict[str, Any]
"""The tables a program gets, by name: `Rows`, or DataFrames."""


@dataclass(frozen=True)
class Plain:
    """A function of lists of rows."""

    function: Callable[..., Iterable[Any]]


@dataclass(frozen=True)
class OnFrames:
    """A function of Frames, run as a workflow."""

    function: Callable[..., Any]


def plain(function: Callable[..., Iterable[Any]]) -> Plain:
    """A program in plain Python: a function of lists of rows (mappings) that returns rows. The simplest reference."""
    return Plain(function)


def on_frames(function: Callable[..., Any]) -> OnFrames:
    """A function of DataFrames, run on Frames: as a workflow."""
    return OnFrames(function)


@dataclass(frozen=True)
class Outcome:
    """The result of a program: a table, events, or an error."""

    table: pa.Table | None = None
    schema: StructType | None = None
    events: Sequence[Any] | None = None
    error: Exception | None = None

    def feed(self, matcher: Matcher, side: Side, *, as_events: bool) -> Iterator[None]:
        """Push all of it into a matcher, a piece at each step: single rows where there are few."""
        if self.table is not None and not as_events:
            size = 1 if self.table.num_rows <= _FEW else _PIECE
            for start in range(0, max(1, self.table.num_rows), size):
                matcher.push_batch(side, self.table.slice(start, size))
                yield
            return
        for event in self.rows():
            matcher.push(side, event)
            yield

    @property
    def message(self) -> str:
        """The first line of the error."""
        error = self.error
        text = error.text if isinstance(error, SamovarError) else str(error)
        first = text.strip().splitlines()[0] if text.strip() else "(no message)"
        return first if isinstance(error, DiffError) else f"{type(error).__name__}: {first}"

    def rows(self) -> Sequence[Any]:
        """The rows as mappings."""
        return rows_of(self.table) if self.table is not None else self.events or ()


def named_inputs(inputs: Any) -> dict[str, Any]:
    """Inputs by name: a mapping as it is, a list numbered, anything else as the only one."""
    if isinstance(inputs, Mapping):
        return {str(k): v for k, v in inputs.items()}
    is_list = isinstance(inputs, (list, tuple)) and inputs and not isinstance(inputs, Rows)
    if is_list and not all(isinstance(row, Mapping) for row in inputs):
        return {str(i): v for i, v in enumerate(inputs)}
    return {} if inputs is None else {"0": inputs}


def outcome_of(
    program: Any,
    inputs: Inputs,
    spark: SparkSession,
    *,
    sink: str | None = None,
    frames: Callable[[Inputs], dict[str, DataFrame]] | None = None,
    take: Callable[[DataFrame], pa.Table] | None = None,
) -> Outcome:
    """Run a program to its end. An exception of the program is its outcome; wrong arguments raise here.

    `frames` turns the inputs into DataFrames, `take` computes the DataFrame that a program returns.
    """
    _check(program)
    try:
        result = _run(program, inputs, spark, sink, frames or (lambda tables: as_frames(tables, spark)))
        return _outcome(result, take)
    except (ProgramProblem, UnknownName):
        raise
    except Exception as error:
        return Outcome(error=error)


def as_frames(inputs: Inputs, spark: SparkSession) -> dict[str, DataFrame]:
    """The inputs as DataFrames of one partition, in the order of their rows; DataFrames as they are."""
    tables = {n: value.table() if isinstance(value, Rows) else value for n, value in inputs.items()}
    return {
        n: spark.createDataFrame(table).coalesce(1) if isinstance(table, pa.Table) else table
        for n, table in tables.items()
    }


def same_outcome(left: Outcome, right: Outcome, depends: Any, equal: Any) -> tuple[bool, Verdict | None, str]:
    """Whether two outcomes are equivalent, the verdict on their rows if both have some, and the difference as text."""
    if left.error is not None and right.error is not None:
        return True, None, ""
    if left.error is not None:
        return False, None, f"The left program raised {left.message}\nThe right one returned a result."
    if right.error is not None:
        return False, None, f"The right program raised {right.message}\nThe left one returned a result."
    equality = as_equality(equal)
    if left.schema is not None and right.schema is not None and equality.in_columns:
        from samovar.diff.tables.schemas import agreed_columns

        try:
            agreed_columns(left.schema, right.schema, equality)
        except SchemasDiffer as problem:
            return False, None, str(problem)
    matcher = Matcher(depends=depends, equal=equal)
    as_events = left.table is None or right.table is None
    steps = (o.feed(matcher, s, as_events=as_events) for o, s in ((left, SIDES[0]), (right, SIDES[1])))
    # by turns, so that an event without a partner at the verdict really lacks one
    for _ in zip_longest(*steps):
        if matcher.verdict is not None:
            break
    verdict = matcher.close()
    return verdict.equivalent, verdict, "" if verdict.equivalent else verdict.explain()


def _check(program: Any) -> None:
    from pyspark.sql import DataFrame

    from samovar.replay.past import Past
    from samovar.runtime.run import Run

    kinds = (Workflow, Plain, OnFrames, DataFrame, Run, Past, pa.Table, str, os.PathLike)
    if not isinstance(program, kinds) and not callable(program):
        raise ProgramProblem(
            f"Expected a program: a function of DataFrames, a workflow, a recording or a table, got {shown(program)}.",
            hint="Functions of lists of rows are marked: plain(function).",
        )


def _run(
    program: Any,
    inputs: Inputs,
    spark: SparkSession,
    sink: str | None,
    frames: Callable[[Inputs], dict[str, DataFrame]],
) -> Any:
    if isinstance(program, Plain):
        return list(_called(program.function, {n: _listed(v) for n, v in inputs.items()}))
    if isinstance(program, OnFrames):
        flow = Workflow("program")
        sources = {n: flow.read.frame(df, name=f"input_{n}") for n, df in frames(inputs).items()}
        _called(program.function, sources).sink("S")
        return flow.run(spark=spark, record=False, progress=False).result("S")
    if isinstance(program, Workflow):
        return _on_inputs(program, frames(inputs), spark, sink)
    if callable(program):
        return _called(program, frames(inputs))
    from samovar.diff.tables.table_inputs import as_side

    return as_side(program, "left", spark, sink=sink).df


def _called(function: Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
    if all(name.isdigit() for name in inputs):
        return function(*inputs.values())
    return function(**inputs)


def _on_inputs(flow: Workflow, inputs: Mapping[str, DataFrame], spark: SparkSession, sink: str | None) -> Any:
    """Run a workflow on other inputs: they take the place of the sources of their names, or of the only source."""
    from samovar.diff.tables.table_inputs import chosen_sink
    from samovar.graph import operators as ops

    graph = flow.graph()
    sources = [op.name for op in graph.sources]
    chosen = dict(inputs)
    if list(chosen) == ["0"] and len(sources) == 1:
        chosen = {sources[0]: chosen["0"]}
    for name in chosen:
        if name not in sources:
            raise UnknownName(name, sources, what=f"a source of workflow '{flow.name}'")
    all_ops = [ops.FrameSource(name=n) if n in chosen else op for n, op in graph.ops.items()]
    changed = Workflow.of(flow.name, all_ops, {**graph.live, **chosen})
    sink = chosen_sink([op.name for op in graph.sinks], sink, "program's")
    return changed.run(spark=spark, record=False, progress=False).result(sink)


def _listed(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, pa.Table):
        return rows_of(value)
    if hasattr(value, "toArrow"):
        return rows_of(value.toArrow())
    return [dict(row) for row in value]


def _outcome(result: Any, take: Callable[[DataFrame], pa.Table] | None) -> Outcome:
    from pyspark.sql import DataFrame

    if isinstance(result, DataFrame):
        return Outcome(table=result.toArrow() if take is None else take(result), schema=result.schema)
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if isinstance(result, pa.Table):
        return Outcome(table=result)
    if isinstance(result, Iterable) and not isinstance(result, (str, bytes, Mapping)):
        return Outcome(events=[as_event(row) for row in result])
    raise ProgramProblem(
        f"Expected a program that returns a DataFrame, a table or rows, got {shown(result)} from it.",
        hint="Did it forget to return its result?" if result is None else None,
    )
