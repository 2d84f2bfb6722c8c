"""Where a monitor's batches come from: a query of Structured Streaming, batches one after the other, a run.

Every batch has a number, counted from 0 without gaps, and the same one after a restart: Spark's own of a micro-batch,
the place of a batch in what gives it, the epoch of a run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

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
"""Given the number of a batch and what computes it; returns when the batch is dealt with."""
Fetch = Callable[[DataFrame], Any]
"""What a comparison takes of a micro-batch."""
Write = Callable[[Side, DataFrame, int], Any]


class Feed(Protocol):
    """One side. `start` and `stop` are called by the monitor, `finish` in a thread of the side's own."""

    what: str
    """The side in a few words; those of a checkpoint have to be the same."""
    query: StreamingQuery | None

    def start(self, take: Take, checkpoint: Path) -> None:
        """Begin to hand batches over."""

    def finish(self) -> bool:
        """Return when there are no more: whether the side came to its end (True), or was stopped."""

    def stop(self) -> None:
        """Hand over no more; returns when none is under way, or soon before."""


class _Stream:
    """A streaming DataFrame: a query whose micro-batches are the batches."""

    def __init__(
        self,
        side: Side,
        df: DataFrame,
        trigger: Mapping[str, Any],
        mode: str,
        write: Write | None,
        fetch: Fetch | None,
    ) -> None:
        self.side: Side = side
        self.df = df
        self.what = f"a stream of {df.schema.simpleString()}"
        self.query: StreamingQuery | None = None
        self._trigger = dict(trigger)
        self._mode = mode
        self._write = write
        self._fetch = fetch

    def start(self, take: Take, checkpoint: Path) -> None:
        write, fetch, side = self._write, self._fetch, self.side

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

        writer = self.df.writeStream.foreachBatch(each).outputMode(self._mode)
        writer = writer.option("checkpointLocation", str(checkpoint.absolute()))
        if self._trigger:
            writer = writer.trigger(**self._trigger)
        try:
            self.query = writer.start()
        except PySparkException as error:
            raise SideProblem(
                f"The query of the {side} side cannot be started: {SparkError.of(error).line}"
            ) from error

    def finish(self) -> bool:
        assert self.query is not None
        try:
            self.query.awaitTermination()
        except PySparkException as error:
            raise SideProblem(
                f"The query of the {self.side} side failed: {SparkError.of(error).line}"
            ) from error
        return bool(self._trigger.get("availableNow") or self._trigger.get("once"))

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()


class _Batches:
    """Batches that are there or are made one after the other."""

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
        for number, batch in enumerate(self._given()):
            if self._stopped.is_set():
                return False
            self._take(number, lambda batch=batch: self._table(batch))  # type: ignore[misc]
        return not self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()

    def _given(self) -> Iterator[Any]:
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
    """What a side of a monitor may be. `fetch` says what is taken of a stream's micro-batches; None: their rows."""
    if isinstance(value, DataFrame):
        if not value.isStreaming:
            raise SideProblem(
                f"Expected a streaming DataFrame on the {side} side, got one that is not.",
                hint="Read it with spark.readStream, or compare tables with sv.diff.compare(left, right).",
            )
        return _Stream(side, value, trigger, mode, write, fetch)
    if isinstance(value, Run):
        if value.recording is None:
            raise SideProblem(
                f"Expected a run that is recorded on the {side} side, got one that is not.",
                hint="Start it with record='runs'.",
            )
        return _Batches(side, _epochs(Recording(value.recording), value, side, sink), "the epochs of a run")
    if isinstance(value, Past):
        return _Batches(side, _epochs(Recording(value.path), None, side, sink), "the epochs of a run")
    if isinstance(value, pa.Table):
        return _Batches(side, value.to_batches(), "batches")
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return _Batches(side, value, "batches")
    raise SideProblem(
        f"Expected a streaming DataFrame, Arrow batches or a run on the {side} side, got {shown(value)}."
    )


def _epochs(recording: Recording, run: Run | None, side: Side, sink: str | None) -> Iterator[pa.Table]:
    """What each epoch gave, as soon as it is committed."""
    news = threading.Event()
    if run is not None:
        run.on_progress(lambda _: news.set())
    graph = read_graph(recording)
    name = chosen_sink([op.name for op in graph.sinks], sink, side)
    given = 0
    while True:
        ended = run is None or _has_ended(run)
        history = recording.history()
        for epoch in history.epochs[given:]:
            yield read_result(recording, replace(history, epochs=[epoch]), graph, name)
        given = len(history.epochs)
        if ended:
            break
        news.wait(0.2)
        news.clear()
    if run is not None:
        run.wait(progress=False)  # raises what the run failed with


def _has_ended(run: Run) -> bool:
    try:
        run.wait(0, progress=False)
    except TimeoutError:
        return False
    except Exception:  # told when its epochs have been taken
        return True
    return True
