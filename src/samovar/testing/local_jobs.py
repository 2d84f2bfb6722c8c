"""An epoch without Spark: tables in memory, and a thread for each task of a chain of Python operators.

What a chain gets is laid out as `compile/frames.py` has Spark lay it out: sorted by key partition and position, with
control rows at the end of the input.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from samovar.control.client import forget_clients
from samovar.graph import operators as ops
from samovar.ids import BUCKET, CONTROL, HIDDEN, PORT
from samovar.positions import PAD, is_position_column, position_columns
from samovar.record.store import slug_unique
from samovar.runtime.epochs.attempt import Attempt, chain_task
from samovar.runtime.exchange.partition import in_partition
from samovar.runtime.failures.failed_epoch import raise_failures
from samovar.runtime.worker.entry import chain_function
from samovar.testing.local_session import LocalSession

__all__ = ["JobCancelled", "LocalJobs", "key_column"]

BATCH = 10_000
"""Rows that Spark sends to a worker at once, unless somebody has set it."""
LEAVING = 2.0
"""Seconds that the threads of a cancelled job have to notice it; one that hangs in user code is left behind."""

Batches = Iterator[pa.RecordBatch]


class JobCancelled(Exception):
    """The job was cancelled, as Spark's are when their epoch is given up."""


class LocalJobs:
    """Computes epochs on threads."""

    def __init__(self, session: LocalSession, workers: int) -> None:
        self._session = session
        self._workers = workers

    def compute(self, attempt: Attempt) -> dict[tuple[str, int | None], int]:
        """Compute an attempt: states, decisions and results go to its folder. Returns how many rows operators gave."""
        plan = attempt.plan
        tables: dict[str, pa.Table] = {}
        counted: dict[tuple[str, int | None], int] = {}
        for name, op in plan.graph.ops.items():
            if name in plan.fused:
                continue
            inputs = [tables[up] for up in op.inputs if up in tables]
            match op:
                case ops.Python():
                    tables[name] = self._python(attempt, plan.chains[name], tables)
                    raise_failures(attempt)
                case ops.Drop():
                    tables[name] = inputs[0].drop_columns(
                        [c for c in op.columns if c in inputs[0].schema.names]
                    )
                case ops.Union():
                    tables[name] = _union(inputs, plan.width[name])
                case ops.Sink():
                    counted[name, 0] = _keep(attempt, name, inputs[0])
                    continue
                case _:
                    tables[name] = _read(attempt, name)
            counted[name, None] = tables[name].num_rows
        return counted

    def _python(self, attempt: Attempt, chain: tuple[str, ...], tables: dict[str, pa.Table]) -> pa.Table:
        plan = attempt.plan
        head = plan.graph.ops[chain[0]]
        assert isinstance(head, ops.Python)
        inputs = [tables[up] for up in head.inputs]
        table = inputs[0] if len(inputs) == 1 else _ports(inputs)
        if plan.shape(head.name) == "batches":
            share = max(
                BATCH, -(-table.num_rows // self._workers)
            )  # few rows are one task, as a small file is
            parts = [table.slice(start, share) for start in range(0, table.num_rows, share)]
        else:
            parts = _partitions(attempt, head, chain[-1], table)
        given = self._on_threads(attempt, chain_function(chain_task(attempt, chain)), parts)
        fields = [pa.field(column, pa.int64()) for column in position_columns(plan.width[chain[-1]])]
        schema = pa.schema([*to_arrow_schema(plan.schemas[chain[-1]], timezone="UTC"), *fields])
        return pa.Table.from_batches(given).cast(schema) if given else schema.empty_table()

    def _on_threads(
        self, attempt: Attempt, function: Callable[[Batches], Batches], parts: Sequence[pa.Table]
    ) -> list[pa.RecordBatch]:
        """What a task makes of each part, one after another. Raises what one raised, or JobCancelled."""
        tasks: list[Future[list[pa.RecordBatch]]] = []
        for number, part in enumerate(parts):
            task: Future[list[pa.RecordBatch]] = Future()
            tasks.append(task)
            name = f"samovar-task-{attempt.number}-{number}"
            threading.Thread(
                target=_work, args=(function, number, part, task), name=name, daemon=True
            ).start()
        cancelled = self._session.sparkContext.cancelled[attempt.context.tag]
        pending: set[Future[Any]] = set(tasks)
        while pending:
            done, _ = wait({*pending, cancelled}, return_when=FIRST_COMPLETED)
            if cancelled in done:
                wait(pending, LEAVING)
                raise JobCancelled(f"epoch {attempt.number} was given up")
            pending -= done
        return [batch for task in tasks for batch in task.result()]


def _work(
    function: Callable[[Batches], Batches], number: int, part: pa.Table, task: Future[list[pa.RecordBatch]]
) -> None:
    """A task, on the thread that stands for a worker."""
    try:
        try:
            with in_partition(number):
                given = list(function(iter(part.combine_chunks().to_batches(max_chunksize=BATCH))))
        finally:
            forget_clients()  # before the result is there: the run may end with it
    except BaseException as error:
        task.set_exception(error)
    else:
        task.set_result(given)


# --- what tasks get -------------------------------------------------------------------------------------------------


def _read(attempt: Attempt, name: str) -> pa.Table:
    """The rows of a source's units that belong to an epoch."""
    source = attempt.context.sources[name]
    schema = to_arrow_schema(source.struct, timezone="UTC")
    tables = []
    for number, span in source.units.spans_of(range(*attempt.covers.units.get(name, (0, 0)))):
        table = pq.read_table(span.path, partitioning=None).select(schema.names).cast(schema)
        table = table.slice(span.first, span.rows)
        if attempt.plan.width[name]:
            places = [[source.number] * table.num_rows, source.units.places(number, range(table.num_rows))]
            table = _with_numbers(table, dict(zip(position_columns(2), places, strict=True)))
        tables.append(table)
    if not tables:
        fields = [pa.field(column, pa.int64()) for column in position_columns(attempt.plan.width[name])]
        return pa.schema([*schema, *fields]).empty_table()
    return pa.concat_tables(tables)


def _with_numbers(table: pa.Table, numbers: dict[str, Any]) -> pa.Table:
    for name, values in numbers.items():
        table = table.append_column(pa.field(name, pa.int64()), pa.array(values, pa.int64()))
    return table


def _positions(table: pa.Table) -> list[str]:
    return [name for name in table.schema.names if is_position_column(name)]


def _visible(table: pa.Table) -> pa.Table:
    return table.select([name for name in table.schema.names if not name.startswith(HIDDEN)])


def _placed(table: pa.Table, source: pa.Table, width: int, last: int) -> pa.Table:
    """A table with the positions of another one, filled up to a width, and one more part."""
    parts = [source.column(name).to_pylist() for name in _positions(source)]
    parts += [[PAD] * source.num_rows] * (width - len(parts)) + [[last] * source.num_rows]
    return _with_numbers(table, dict(zip(position_columns(width + 1), parts, strict=True)))


def _union(inputs: Sequence[pa.Table], width: int) -> pa.Table:
    """Rows of several tables, column by column; a row's position ends with the number of its table."""
    schema = _visible(inputs[0]).schema
    tables = []
    for branch, table in enumerate(inputs):
        visible = _visible(table).rename_columns(schema.names).cast(schema)
        tables.append(_placed(visible, table, width - 1, branch) if width else visible)
    return pa.concat_tables(tables)


def _ports(inputs: Sequence[pa.Table]) -> pa.Table:
    """Several ports in one table: a row is a struct in the column of its port; positions order across ports."""
    width = max(len(_positions(table)) for table in inputs)
    tables = []
    for port, table in enumerate(inputs):
        rows = _visible(table)
        struct = pa.struct(list(rows.schema))
        column = pa.chunked_array([chunk.to_struct_array() for chunk in rows.to_batches()], struct)
        one = _with_numbers(pa.table({f"{HIDDEN}v{port}": column}), {PORT: [port] * table.num_rows})
        tables.append(_placed(one, table, width, port) if width else one)
    return pa.concat_tables(tables, promote_options="default")


def _partitions(attempt: Attempt, head: ops.Python, tail: str, table: pa.Table) -> list[pa.Table]:
    """What the tasks of a stateful operator get, each sorted by key partition and position."""
    plan = attempt.plan
    buckets, partitions = plan.buckets[head.name], plan.partitions(head.name)
    order = [] if head.order == "arrival" else _positions(table)
    if head.by:
        table = _with_numbers(table, {BUCKET: _buckets(table, head, buckets)})
    first = [BUCKET] if head.by else []
    if attempt.covers.last:
        first.append(CONTROL)
        table = _with_numbers(table, {CONTROL: [0] * table.num_rows})
        ends = {CONTROL: [1] * buckets} | ({BUCKET: range(buckets)} if head.by else {})
        ends_table = pa.table({name: pa.array(values, pa.int64()) for name, values in ends.items()})
        table = pa.concat_tables([table, ends_table], promote_options="default")
    if first or order:
        table = table.sort_by([(name, "ascending") for name in (*first, *order)])
    if order and not plan.width[tail] and not attempt.covers.marks:
        table = table.drop_columns(order)
    if not head.by:
        return [table] if table.num_rows else []
    homes = [bucket % partitions for bucket in table.column(BUCKET).to_pylist()]
    parts = [table.filter(pa.array([home == number for home in homes])) for number in range(partitions)]
    return [part for part in parts if part.num_rows]


def _buckets(table: pa.Table, head: ops.Python, buckets: int) -> list[int]:
    """The key partition of each row."""
    if PORT in table.schema.names:
        structs = [table.column(f"{HIDDEN}v{port}").to_pylist() for port in range(len(head.inputs))]
        rows = [structs[port][i] for i, port in enumerate(table.column(PORT).to_pylist())]
    else:
        rows = table.select([key_column(key) for key in head.by]).to_pylist()
    keys = ([row[key_column(key)] for key in head.by] for row in rows)
    return [zlib.crc32(repr(key).encode()) % buckets for key in keys]


def key_column(expression: str) -> str:
    """The column that an expression of `by=` names."""
    return expression.strip().strip("`")


def _keep(attempt: Attempt, name: str, table: pa.Table) -> int:
    """Write a sink's rows; returns how many."""
    folder = attempt.folder / "results" / slug_unique(name)
    folder.mkdir(parents=True)
    pq.write_table(_visible(table), folder / "part-00000.parquet")
    return int(table.num_rows)
