"""Where a local run starts: its plan without Spark's analysis, its rows as files of the recording."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from samovar.compile.analysis import Analysis, check_operator, output_of
from samovar.compile.plan import make_plan
from samovar.compile.shapes import Shape, shape_of
from samovar.errors import RunError, UnknownName, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.operator import Operator
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Graph, Workflow
from samovar.ids import new_run_id
from samovar.record.addresses import local_folder
from samovar.record.store import Recording
from samovar.replay.condition_watch import SERVICES
from samovar.runtime.epochs.epoch import Epoch
from samovar.runtime.epochs.run_context import Logic, RunContext, RunProgress
from samovar.runtime.folders import new_scratch
from samovar.runtime.pickles import by_value
from samovar.runtime.plans import LOCAL, made_live
from samovar.runtime.run import Run
from samovar.runtime.run_options import check_options
from samovar.runtime.run_thread import PreparedRun
from samovar.runtime.sources.unit_list import Unit
from samovar.runtime.sources.units import Source
from samovar.runtime.start import first_fact, launch
from samovar.runtime.workflow_file import is_code, write_down
from samovar.testing.local_jobs import LocalJobs, key_column
from samovar.testing.local_session import LocalSession, struct_of

__all__ = ["start_locally"]


def start_locally(
    tested: Workflow | Operator,
    rows: Any,
    by: str | Sequence[str] | None,
    options: dict[str, Any],
    *,
    record: str | os.PathLike[str] | bool,
    key_partitions: int,
    workers: int,
    run_id: str | None,
) -> Run:
    """Start a run on threads; see `samovar.testing.start`."""
    check_options(**options, key_partitions=key_partitions, record=record, run_id=run_id)
    if isinstance(tested, Operator):
        flow, given = _around(tested, rows, by)
    else:
        flow, given = tested, _by_source(tested, rows, by)
    graph = made_live(flow.graph())
    scratch = new_scratch() if record is False else None
    root = scratch or local_folder("runs" if isinstance(record, bool) else os.fspath(record))
    recording = Recording.create(root.absolute() / (run_id or new_run_id(flow.name)), durable=scratch is None)

    def prepare() -> PreparedRun:
        context, session = _context(recording, graph, given, options, key_partitions, workers)
        make = partial(Epoch, jobs=LocalJobs(session, workers).compute)
        return PreparedRun(context, scratch=scratch, make=make)

    return launch(recording, prepare, replace(SERVICES, watch=_no_watch), remove=scratch or recording.path)


def _around(operator: Operator, rows: Any, by: str | Sequence[str] | None) -> tuple[Workflow, dict[str, Any]]:
    """A workflow of one operator."""
    if rows is None:
        raise WorkflowError(
            "Expected rows for the operator, got none.", hint="testing.run(Operator(), rows)."
        )
    flow = Workflow("test")
    columns = by if by is None or isinstance(by, str) else list(by)
    source = flow.values("", [], name="rows")
    source.apply(operator, by=columns, name=type(operator).__name__).sink("S")
    return flow, {"rows": rows}


def _by_source(flow: Workflow, rows: Any, by: Any) -> dict[str, Any]:
    if by is not None:
        raise WorkflowError(
            "Expected by= with an operator, got a workflow.", hint="frame.apply(..., by=...)."
        )
    if rows is not None and not isinstance(rows, Mapping):
        raise WorkflowError(
            f"Expected rows by source, got {type(rows).__name__}.",
            hint='testing.run(flow, {"orders": [{"amount": 1.0}]}).',
        )
    names = [op.name for op in flow.graph().sources]
    for name in rows or {}:
        if name not in names:
            raise UnknownName(name, names, what="a source of the workflow")
    return dict(rows or {})


def _no_watch(*_: Any, **__: Any) -> Any:
    raise RunError(
        "Expected a breakpoint of a Python operator that takes tuple by tuple, got a watch: it needs replay on Spark.",
        hint="Run the workflow with flow.start(spark=...), or use run.break_at.",
    )


def _context(
    recording: Recording,
    graph: Graph,
    given: Mapping[str, Any],
    options: dict[str, Any],
    key_partitions: int,
    workers: int,
) -> tuple[RunContext, LocalSession]:
    """The same as for a new run on Spark, with what Spark would have said of the workflow."""
    session = LocalSession(workers)
    spark = cast(SparkSession, session)
    sources = {
        op.name: _source(op, number, given.get(op.name), recording.path / "inputs" / op.name)
        for number, op in enumerate(graph.sources)
    }
    analysis = _analysed(spark, graph, sources)
    now = time.time()
    settings = {"buckets": key_partitions, "parallelism": workers, "now": int(now * 1_000_000)}
    sizes = {name: source.size for name, source in sources.items()}
    plan = make_plan(spark, analysis, sizes, buckets=key_partitions, settings=settings)
    code = {name: by_value(live, name) for name, live in graph.live.items() if is_code(graph.ops[name])}
    write_down(recording, graph, sources, code)
    fact = first_fact(recording, graph.name, {**options, **settings}, sources.values(), at=now, spark=LOCAL)
    assert recording.log is not None
    recording.log.append(msgspec.structs.replace(fact, files=recording.sealed_start()))
    logic, progress = Logic(plan, code), RunProgress(recording.history())
    return RunContext(spark, sources, recording, recording.run_id, logic, progress), session


def _analysed(spark: SparkSession, graph: Graph, sources: Mapping[str, Source]) -> Analysis:
    """The schemas of operators. Raises for one that only Spark can compute."""
    schemas: dict[str, StructType] = {}
    shapes: dict[str, Shape] = {}
    for name, op in graph.ops.items():
        inputs = [schemas[up] for up in op.inputs]
        live = graph.live.get(name)
        match op:
            case ops.Python() if isinstance(live, Operator):
                check_operator(op, live)
                _check_keys(op, inputs)
                schemas[name] = output_of(spark, name, type(live).output, inputs)
            case ops.Drop():
                schemas[name] = StructType(
                    [field for field in inputs[0].fields if field.name not in op.columns]
                )
            case ops.Union() if not op.by_name and len({len(schema.fields) for schema in inputs}) == 1:
                schemas[name] = inputs[0]
            case ops.Sink():
                schemas[name] = inputs[0]
            case _ if name in sources:
                schemas[name] = sources[name].struct
            case _:
                raise _only_spark(op, f"a {op.kind}")
        shapes[name] = shape_of(op, stateless=isinstance(live, Operator) and live.stateless)
    return Analysis(graph, schemas, shapes, frozenset())


def _check_keys(op: ops.Python, inputs: Sequence[StructType]) -> None:
    for key in op.by:
        if any(key_column(key) not in schema.names for schema in inputs):
            raise _only_spark(op, f"by={key!r}, which is no column")


def _only_spark(op: Op, got: str) -> WorkflowError:
    return WorkflowError(
        f"Expected Python operators, unions, drops and sinks in a local run, got {got}.",
        operator=op.name,
        hint="Only Spark computes it: run the workflow with flow.start(spark=...).",
    )


# --- sources --------------------------------------------------------------------------------------------------------


def _source(op: Op, number: int, given: Any, folder: Path) -> Source:
    """A source of rows that the test gives, or of Parquet files."""
    if given is not None:
        tables = _tables(op, given)
    elif isinstance(op, ops.Values):
        schema = to_arrow_schema(struct_of(op.schema), timezone="UTC")
        rows = [dict(zip(schema.names, row, strict=True)) for row in op.rows]
        tables = [pa.Table.from_pylist(rows, schema=schema)]
    elif isinstance(op, ops.Read) and op.format == "parquet":
        files = [_file(file) for path in op.path for file in _parquet_files(path)]
        return _listed(op, number, files, kept=False)
    else:
        raise WorkflowError(
            f"Expected rows for source '{op.name}', got none.",
            operator=op.name,
            hint=f'testing.start(flow, {{"{op.name}": [{{...}}, ...]}}); Parquet files are read without.',
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for i, table in enumerate(tables):
        pq.write_table(table, folder / f"{i:05d}.parquet")
    return _listed(op, number, [_file(file) for file in _parquet_files(str(folder))], kept=True)


def _tables(op: Op, given: Any) -> list[pa.Table]:
    """Rows as tables of one schema, one an epoch."""
    whole = isinstance(given, pa.Table) or not given or isinstance(given[0], Mapping)
    epochs = [given] if whole else list(given)
    wanted = getattr(op, "schema", None)
    schema = to_arrow_schema(struct_of(wanted), timezone="UTC") if wanted else None
    if schema is None:  # a column may be null in one epoch: its type is that of all rows
        rows = [
            epoch if isinstance(epoch, pa.Table) else pa.Table.from_pylist(list(epoch)) for epoch in epochs
        ]
        schema = pa.unify_schemas(
            [table.schema for table in rows if table.num_columns], promote_options="permissive"
        )
    return [
        epoch.cast(schema)
        if isinstance(epoch, pa.Table)
        else pa.Table.from_pylist(list(epoch), schema=schema)
        for epoch in epochs
    ]


def _listed(op: Op, number: int, files: list[Unit], *, kept: bool) -> Source:
    if not files:
        raise WorkflowError("Expected Parquet files to read, got none.", operator=op.name)
    schema = from_arrow_schema(pq.read_schema(files[0].path))
    return Source(
        name=op.name,
        number=number,
        format="parquet",
        schema=schema.json(),
        spans=tuple(files),
        files=() if kept else tuple(files),
        kept=kept,
    )


def _parquet_files(path: str) -> list[Path]:
    return sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else [Path(path)]


def _file(file: Path) -> Unit:
    stat = file.stat()
    return Unit(str(file.absolute()), stat.st_size, stat.st_mtime, pq.read_metadata(file).num_rows)
