"""Which partition of its input a task works on. Spark knows; in a local run the thread that stands for a task does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["in_partition", "partition_number", "stands_for_worker"]

_local: ContextVar[int | None] = ContextVar("samovar_partition", default=None)


def partition_number() -> int:
    """The number of the partition this task works on."""
    number = _local.get()
    if number is not None:
        return number
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def stands_for_worker() -> bool:
    """Whether this thread stands for a worker, in a process that does other things as well."""
    return _local.get() is not None


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """Have this thread work on a partition, without Spark."""
    before = _local.set(number)
    try:
        yield
    finally:
        _local.reset(before)
