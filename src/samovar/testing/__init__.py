"""Runs without Spark and Java: for tests of your operators, and of what is done to a run while it goes on.

    from samovar import testing

    run = testing.run(Highest(), [{"customer": "Ann", "amount": 3.0}, {"customer": "Ann", "amount": 2.0}])
    assert run.result("S").to_pylist() == [...]

Threads of this process stand for Spark's tasks; all else is what a run on Spark has: the same `Run`, the same loop over
tuples, control channel, state files and commits. So pauses, breakpoints, held tuples, modified code and snapshots
behave as they do there.

Not promised: speed, and anything that Spark computes. A workflow may have Python operators, `union`, `drop` and sinks;
sources take rows from the test, or Parquet files. A chain of Python operators is done with an epoch before the next
chain begins it, where Spark may run both side by side. Going back in time needs Spark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from samovar.graph.operator import Operator
from samovar.graph.workflow import Marks, OnError, Workflow

if TYPE_CHECKING:
    import pyarrow as pa

    from samovar.runtime.run import Run

    Rows: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table
    Epochs: TypeAlias = Rows | Sequence[Rows]

__all__ = ["run", "start"]


def start(
    tested: Workflow | Operator,
    rows: Epochs | Mapping[str, Epochs] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    on_error: OnError = "fail",
    record: str | os.PathLike[str] | bool = False,
    marks: Marks = "tau",
    epoch_bytes: int | None = 1,
    key_partitions: int = 4,
    workers: int = 2,
    run_id: str | None = None,
) -> Run:
    """Start a local run and return it at once.

    tested: an operator, whose output sink "S" keeps; or a workflow.
    rows: what the operator takes: mappings, or a pyarrow Table; a list of either: one epoch each. For a workflow, a
        mapping of such rows by source, in place of what the source reads; a source of Parquet files, or of `values`,
        needs none.
    by: for an operator: the columns of the key, for one instance a key partition.
    on_error, record, marks, key_partitions, run_id: as for `Workflow.start`, but nothing is recorded by default.
    epoch_bytes: the input an epoch takes; by default each item of `rows` and each file is an epoch of its own.
    workers: how many threads work at once.

    >>> from samovar import testing
    >>> class Doubles(sv.Operator):
    ...     output = "n bigint"
    ...     def process(self, row, port=0):
    ...         yield {"n": 2 * row["n"]}
    >>> run = testing.start(Doubles(), [[{"n": 1}], [{"n": 2}]])
    >>> run.result("S").to_pylist()
    [{'n': 2}, {'n': 4}]
    """
    from samovar.testing.local_start import start_locally  # imports pyspark, which takes a second

    options = {"on_error": on_error, "marks": marks, "epoch_bytes": epoch_bytes, "tau": 2.0}
    return start_locally(
        tested,
        rows,
        by,
        options,
        record=record,
        key_partitions=key_partitions,
        workers=workers,
        run_id=run_id,
    )


def run(
    tested: Workflow | Operator,
    rows: Epochs | Mapping[str, Epochs] | None = None,
    *,
    by: str | Sequence[str] | None = None,
    on_error: OnError = "fail",
    record: str | os.PathLike[str] | bool = False,
    marks: Marks = "tau",
    epoch_bytes: int | None = 1,
    key_partitions: int = 4,
    workers: int = 2,
    run_id: str | None = None,
    timeout: float | None = 60.0,
) -> Run:
    """Start a local run, wait for its end and return it. Options as for `start`.

    timeout: seconds after which TimeoutError is raised.

    >>> from samovar import testing
    >>> class Sums(sv.Operator):
    ...     output = "total bigint"
    ...     total = sv.ValueState(0)
    ...     def process(self, row, port=0):
    ...         self.total += row["n"]
    ...         yield {"total": self.total}
    >>> run = testing.run(Sums(), [{"n": 1}, {"n": 2}])
    >>> run.inspect("Sums").state
    {'total': 3}
    """
    options = {k: v for k, v in locals().items() if k not in ("tested", "rows", "timeout")}
    return start(tested, rows, **options).wait(timeout, progress=False)
