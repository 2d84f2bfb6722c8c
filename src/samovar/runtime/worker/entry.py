"""The functions that Spark's Python workers run: a chain of operators, or a function of the user's over batches.

An error in user code, or an order to abandon the task, ends a task early without failing it; the rest of its input is
drained, so that Spark sees a task that went well. Only a task that does not see the recording fails (see delivery.py).
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain as chained
from itertools import islice
from typing import Any

import pyarrow as pa

from samovar.control.agent import TaskAbandoned
from samovar.graph.code import recall_source
from samovar.runtime.exchange.delivery import check_seen, deliver
from samovar.runtime.exchange.late_task import LateTask
from samovar.runtime.exchange.partition import stands_for_worker
from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.task_signs import leave_sign
from samovar.runtime.exchange.user_errors import RAISED, UserError, batch_misfit, raised
from samovar.runtime.worker.arrival import in_arrival_order
from samovar.runtime.worker.chain import Chain
from samovar.runtime.worker.task_control import attend
from samovar.runtime.worker.undoable_chain import Undo

__all__ = ["batches_function", "chain_function", "late_chain_function", "rows_of"]


def chain_function(task: Task) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` that runs a chain of operators over a partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chain = Chain(task, Undo() if task.hold else None)
        yield from _attended(task, chain, batches, rows_of(task, batches), chain.run)

    return run


def late_chain_function(late: LateTask) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The same for an epoch that has begun ahead of its turn: with the first rows in hand it waits for the task."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        late.arrive()
        first = list(islice(batches, 1))
        task = late.wait()
        if task is None:
            for _ in batches:
                pass
        else:
            yield from chain_function(task)(chained(first, batches))

    return run


def rows_of(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task's input in the order in which its operators take it."""
    if not stands_for_worker():
        _settle_garbage()
    return in_arrival_order(task.order_log, batches) if task.arrival else batches


def _attended(
    task: Task, chain: Chain | None, batches: Iterator[Any], rows: Iterator[Any], work: Callable[..., Any]
) -> Iterator[Any]:
    """The output of the work; failures are reported, and orders obeyed if somebody steers the run."""
    control = attend(task, chain)
    try:
        yield from work(rows) if control is None else control.run(rows, work)
    except UserError as error:
        deliver(task, chain.located(error.failure) if chain is not None else error.failure)
        for _ in batches:  # take the rest from Spark, so that the task ends cleanly
            pass
    except TaskAbandoned:
        leave_sign(task, "abandoned")
        for _ in batches:
            pass
        check_seen(task)
    except Exception:
        check_seen(task)  # if it is not seen, that is the cause: of a state file that is missing, for example
        raise
    else:
        check_seen(task)
    finally:
        if control is not None:
            control.end()


@lru_cache(maxsize=1)
def _settle_garbage() -> None:
    """Once in a worker's life: keep the garbage collector away from the objects of imported modules, which stay anyway.

    Rows are many small objects: without this, every full collection would walk through all of pandas and pyspark, and
    a collection of the youngest generation would come every few hundred rows.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def batches_function(task: Task) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for a user's `mapInArrow` or `mapInPandas`, whose failures are reported as an operator's are."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield from _attended(task, None, batches, batches, work)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        stage = task.stages[0]
        function = pickle.loads(stage.code)
        recall_source(function)
        try:
            for batch in function(batches):
                if task.arrow and (failure := batch_misfit(stage.name, batch, stage.schema, by_name=False)):
                    raise UserError(failure)
                yield batch
        except (UserError, TaskAbandoned):
            raise
        except RAISED as error:
            raise UserError(raised(stage.name, None, error, during="its batches of rows")) from None

    return run
