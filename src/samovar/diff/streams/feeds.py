"""Where a monitor's batches come from: a query of Structured Streaming, an iterable of batches, a run.

Every batch has a number, counted from 0 without gaps, and the same one after a restart: the number of Spark's
micro-batch, the place of a batch in its iterable, the epoch of a run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from samovar.diff.comparison_errors import SideProblem
from samovar.diff.event_values import Side
from samovar.diff.tables.table_inputs import chosen_sink
from samovar.record.store import Recording
from samovar.replay.past import Past
from samovar.runtime.failures.spark_errors import SparkError
from samovar.runtime.run import Run
from samovar.runtime.summary import read_result
from samovar.runtime.workflow_file import read_graph
from samovar.text import shown

__all__ = ["Feed", "as_feed"]

Take = Callable[[int, Callable[[], Any]], None]
"""Takes the number of a batch and the function that computes it; returns when the batch is compared."""
Fetch = Callable[[DataFrame], Any]
"""Turns a micro-batch into what is compared: its rows, or a count of rows that stay in Spark."""
Write = Callable[[Side, DataFrame, int], Any]


@dataclass
class _Stream:
    """A streaming DataFrame: a query whose micro-batches are the batches.

    The monitor calls `start` and `stop`, and `finish` in a separate thread for each side.
    """

    side: Side
    df: DataFrame
    trigger: Mapping[str, Any]
    mode: str
    write: Write | None
    fetch: Fetch | None
    query: StreamingQuery | None = None

    @property
    def what(self) -> str:
        """The side in a few words; those of a checkpoint have to be the same."""
        return f"a stream of {self.df.schema.simpleString()}"

    def start(self, take: Take, checkpoint: Path) -> None:
        """Begin to pass batches to `take`."""
        write, fetch, side = self.write, self.fetch, self.side

        def each(batch: DataFrame, number: int) -> None:
            if write is None and fetch is None:
                take(number, batch.toArrow)
                return
            batch.persist()
            try:
                if write is not None:
                    write(side, batch, number)
                take(number, batch.toArrow if fetch is None else lambda: fetch(batch))
            finally:
                batch.unpersist()

        writer = self.df.writeStream.foreachBatch(each).outputMode(self.mode)
        writer = writer.option("checkpointLocation", str(checkpoint.absolute()))
        if self.trigger:
            writer = writer.trigger(**self.trigger)
        with self._failing("cannot be started"):
            self.query = writer.start()

    def finish(self) -> bool:
        """Return when there are no more batches: whether the side came to its end (True), or was stopped."""
        assert self.query is not None
        with self._failing("failed"):
            self.query.awaitTermination()
        return bool(self.trigger.get("availableNow") or self.trigger.get("once"))

    def stop(self) -> None:
        """Pass no more batches; returns when none is under way, or soon before."""
        if self.query is not None:
            self.query.stop()

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except PySparkException as error:
            line = SparkError.of(error).line
            raise SideProblem(f"The query of the {self.side} side {what}: {line}") from error


class _Batches:
    """Arrow batches, in memory or computed one after the other, with the methods of a stream."""

    query: StreamingQuery | None = None

    def __init__(self, side: Side, batches: Iterable[Any], what: str) -> None:
        self.side: Side = side
        self.what = what
        self._batches = batches
        self._take: Take | None = None
        self._stopped = threading.Event()

    def start(self, take: Take, checkpoint: Path) -> None:
        self._take = take

    def finish(self) -> bool:
        assert self._take is not None
        for number, batch in enumerate(self._read()):
            if self._stopped.is_set():
                return False
            self._take(number, partial(self._table, batch))
        return not self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()

    def _read(self) -> Iterator[Any]:
        try:
            yield from self._batches
        except Exception as error:
            raise SideProblem(f"The {self.side} side raised {type(error).__name__}: {error}") from error

    def _table(self, batch: Any) -> pa.Table:
        if isinstance(batch, pa.RecordBatch):
            return pa.Table.from_batches([batch])
        if isinstance(batch, pa.Table):
            return batch
        raise SideProblem(
            f"Expected Arrow batches on the {self.side} side, got {shown(batch)}.",
            hint="Gather events with pyarrow.Table.from_pylist([...]), or compare events with match(...).",
        )


Feed = _Stream | _Batches
"""One side of a monitor."""


def as_feed(
    value: Any,
    side: Side,
    *,
    trigger: Mapping[str, Any],
    mode: str,
    write: Write | None,
    sink: str | None,
    fetch: Fetch | None = None,
) -> Feed:
    """A value as a side of a monitor. `fetch` turns a stream's micro-batch into what is compared; None: its rows."""
    if isinstance(value, DataFrame):
        if not value.isStreaming:
            raise SideProblem(
                f"Expected a streaming DataFrame on the {side} side, got one that is not.",
                hint="Read it with spark.readStream, or compare tables with sv.diff.compare(left, right).",
            )
        return _Stream(side, value, trigger, mode, write, fetch)
    if isinstance(value, (Run, Past)):
        path = value.recording if isinstance(value, Run) else value.path
        if path is None:
            raise SideProblem(
                f"Expected a run that is recorded on the {side} side, got one that is not.",
                hint="Start it with record='runs'.",
            )
        run = value if isinstance(value, Run) else None
        return _Batches(side, _epochs(Recording(path), run, side, sink), "the epochs of a run")
    if isinstance(value, pa.Table):
        value = value.to_batches()
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return _Batches(side, value, "batches")
    raise SideProblem(
        f"Expected a streaming DataFrame, Arrow batches or a run on the {side} side, got {shown(value)}."
    )


def _epochs(recording: Recording, run: Run | None, side: Side, sink: str | None) -> Iterator[pa.Table]:
    """The rows of each epoch, as soon as it is committed."""
    progress = threading.Event()
    if run is not None:
        run.on_progress(lambda _: progress.set())
    graph = read_graph(recording)
    name = chosen_sink([op.name for op in graph.sinks], sink, side)
    count = 0
    while True:
        ended = run is None or _has_ended(run)  # asked before the history is read, which then has all epochs
        history = recording.history()
        for epoch in history.epochs[count:]:
            yield read_result(recording, replace(history, epochs=[epoch]), graph, name)
        count = len(history.epochs)
        if ended:
            break
        progress.wait(0.2)
        progress.clear()
    if run is not None:
        run.wait(progress=False)  # raises what the run failed with


def _has_ended(run: Run) -> bool:
    try:
        run.wait(0, progress=False)
    except TimeoutError:
        return False
    except Exception:  # raised once its epochs have been read
        return True
    return True
