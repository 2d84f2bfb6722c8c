"""`monitor`: two live streams, compared as they go.

The micro-batches of two queries go, in the order of their arrival, through one matcher on the driver, or through one in
parts on the executors (`samovar.diff.streams.keyed_matchers`). Guarantee: every micro-batch is compared exactly
once, also over restarts, if the monitor has a checkpoint; no side gets further ahead than `drift` events, or one
micro-batch if that is more.

Threads: Spark passes batches on threads of its own, one at a time for each query; all state is changed under one lock.
Another thread alerts and stops, so that a user's function may call `stop`.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from samovar.diff.comparison_errors import DiffError, SideProblem
from samovar.diff.dependence import independent
from samovar.diff.event_values import OTHER, SIDES, Side, check_side
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.streams.monitor_checkpoint import Judge, Store
from samovar.diff.streams.stream_comparison import Batch, Comparison, Metrics
from samovar.diff.verdict import Verdict
from samovar.text import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from samovar.diff.streams.feeds import Feed
    from samovar.diff.tables.schemas import Strictness

__all__ = ["Monitor", "monitor"]

Status = Literal["running", "equivalent", "different", "stopped", "failed"]
log = logging.getLogger("samovar")


def monitor(
    left: Any,
    right: Any,
    *,
    depends: Any = independent,
    equal: Any = None,
    checkpoint: str | Path | None = None,
    drift: int = 100_000,
    patience: float | None = 300.0,
    on_difference: Literal["stop", "alert"] = "stop",
    alert: Callable[[Verdict], Any] | None = None,
    on_metrics: Callable[[Metrics], Any] | None = None,
    write: Callable[[Side, DataFrame, int], Any] | None = None,
    trigger: Mapping[str, Any] | None = None,
    mode: Literal["append", "update"] = "append",
    schema: Strictness = "types",
    sink: str | None = None,
    parts: int | None = None,
) -> Monitor:
    """Compare two streams as they go: streaming DataFrames, iterables of Arrow batches, runs; returns at once.

    `depends` and `equal` are those of `Matcher`. A side that is more than `drift` events ahead is held back. An event
    that has no partner after `patience` seconds is a difference. At a difference both sides are stopped, or with
    `on_difference="alert"` go on; `alert` is called with the verdict in either case (default: a warning in the log).
    `checkpoint` is a folder from which a monitor of the same streams goes on. `on_metrics` is called after each batch,
    `write(side, batch, number)` before a batch is compared, for micro-batches that are to be written, too. `trigger`
    and `mode` are those of the queries, `sink` chooses the result of a run that has several. `parts`: for two streams
    and a dependence by key, rows stay on the executors and are compared there, divided by key into this many parts;
    the checkpoint has to be a folder that executors can reach.
    """
    from pyspark.sql import DataFrame

    from samovar.diff.streams.feeds import as_feed
    from samovar.diff.streams.keyed_matchers import Divided, counted
    from samovar.diff.tables.schemas import agreed_columns

    matcher = Matcher(depends=depends, equal=equal)
    _check_options(drift, patience, on_difference, mode, parts)
    fetch = None if parts is None else counted
    feeds = {
        s: as_feed(value, s, trigger=trigger or {}, mode=mode, write=write, sink=sink, fetch=fetch)
        for s, value in zip(SIDES, (left, right), strict=True)
    }
    agreed = None
    if isinstance(left, DataFrame) and isinstance(right, DataFrame):
        agreed = agreed_columns(left.schema, right.schema, matcher.equal, matcher.depends, strictness=schema)
    folder = Path(tempfile.mkdtemp(prefix="samovar-monitor-") if checkpoint is None else checkpoint)
    store = None
    try:
        judge: Judge = matcher
        if parts is not None:
            if agreed is None:
                raise SideProblem(
                    "Expected, with parts=, streaming DataFrames on both sides, got something else on one.",
                    hint="Leave parts= out to compare on the driver.",
                )
            judge = Divided(matcher.depends, matcher.equal, agreed, parts=parts, folder=folder / "parts")
        if checkpoint is not None:
            store = Store(folder, {s: feeds[s].what for s in SIDES}, parts=parts or 0)
        return Monitor(
            Comparison(judge, drift=drift, store=store),
            feeds,
            folder=folder,
            patience=patience,
            stops=on_difference == "stop",
            alert=alert,
            on_metrics=on_metrics,
        )
    except BaseException:
        if store is not None:
            store.close()
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


class Monitor:
    """A running comparison, returned by `monitor`; as a context manager it is stopped at the end of the block."""

    def __init__(
        self,
        comparison: Comparison,
        feeds: Mapping[Side, Feed],
        *,
        folder: Path,
        patience: float | None,
        stops: bool,
        alert: Callable[[Verdict], Any] | None,
        on_metrics: Callable[[Metrics], Any] | None,
    ) -> None:
        self._comparison = comparison
        self._feeds = feeds
        self._patience = patience
        self._stops = stops
        self._alert = alert
        self._on_metrics = on_metrics
        self._changed = threading.Condition()
        self._ended: set[Side] = set()
        self._verdict: Verdict | None = None
        self._error: BaseException | None = None
        self._stopping = False
        self._inside: set[int] = set()
        """Threads that are in a function of the user: they cannot wait for the end."""
        self._began = time.monotonic()
        self._done = threading.Event()
        self._folder = folder
        self._start()

    def __repr__(self) -> str:
        return f"Monitor({self.status})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def status(self) -> Status:
        """`running`, or how it ended: `equivalent`, `different`, `stopped` (undecided), `failed`."""
        if not self._done.is_set():
            return "running"
        if self._error is not None:
            return "failed"
        if self._verdict is None:
            return "stopped"
        return "equivalent" if self._verdict.equivalent else "different"

    @property
    def verdict(self) -> Verdict | None:
        """The last verdict: of the difference found, or of the end; None while there is none."""
        return self._verdict

    @property
    def error(self) -> BaseException | None:
        """The error that made the monitor fail; None if it did not."""
        return self._error

    @property
    def metrics(self) -> Metrics:
        """How far the streams agree now."""
        with self._changed:
            return self._comparison.metrics()

    def query(self, side: Side) -> StreamingQuery | None:
        """Spark's query of a side; None if the side is not a streaming DataFrame."""
        return self._feeds[check_side(side)].query

    def wait(self, timeout: float | None = None) -> Verdict:
        """Wait for the end: both streams ended, a difference stopped them, or `stop` was called.

        After `timeout` seconds the verdict is undecided, and the monitor goes on. Raises if the monitor failed.
        """
        self._done.wait(timeout)
        if self._done.is_set() and self._error is not None:
            raise self._error
        if self._verdict is not None:
            return self._verdict
        with self._changed:
            return self._comparison.matcher.undecided(round(time.monotonic() - self._began, 3))

    def stop(self) -> None:
        """Stop both sides and wait until they have. What was compared stays in the checkpoint."""
        self._stop()
        if threading.get_ident() not in self._inside:
            self._done.wait()

    def _start(self) -> None:
        saved = self._comparison.verdict
        if saved is not None and self._stops:
            self._verdict = saved
            self._close()
            return
        try:
            for side in SIDES:
                self._feeds[side].start(partial(self._take, side), self._folder / side)
        except BaseException:
            self._halt()
            raise
        for side in SIDES:
            threading.Thread(
                target=self._follow, args=(side,), name=f"samovar monitor {side}", daemon=True
            ).start()
        threading.Thread(target=self._watch, name="samovar monitor", daemon=True).start()

    def _take(self, side: Side, number: int, compute: Callable[[], Batch]) -> None:
        try:
            metrics = self._compare(side, number, compute)
            if metrics is not None and self._on_metrics is not None:
                self._call(self._on_metrics, metrics)
        except BaseException as error:
            self._fail(error)
            raise

    def _compare(self, side: Side, number: int, compute: Callable[[], Batch]) -> Metrics | None:
        """Compare a batch, unless that was done before. The metrics after it, if somebody asked for them."""
        began = time.monotonic()
        with self._changed:
            if self._comparison.has(side, number):
                return None
        table = compute()
        fetched = time.monotonic()
        with self._changed:
            self._hold_back(side, table.num_rows)
            if self._done.is_set():
                return None
            if self._error is not None:
                raise DiffError("The comparison failed before this batch.") from self._error
            going = time.monotonic()
            self._comparison.take(side, number, table)
            self._comparison.waited[side] += going - fetched
            self._comparison.latency[side] = time.monotonic() - going + fetched - began
            self._changed.notify_all()
            return None if self._on_metrics is None else self._comparison.metrics()

    def _hold_back(self, side: Side, rows: int) -> None:
        """Wait while the side is too far ahead of the other, and the other may still catch up."""
        self._changed.wait_for(
            lambda: (
                self._stopping
                or self._error is not None
                or self._comparison.verdict is not None
                or OTHER[side] in self._ended
                or not self._comparison.too_far(side, rows)
            ),
            self._patience,
        )

    def _follow(self, side: Side) -> None:
        """Wait until a side has ended, in a separate thread for each side."""
        try:
            ended = self._feeds[side].finish()
        except BaseException as error:
            self._fail(error)
            return
        if not ended:
            self._stop()
            return
        with self._changed:
            self._ended.add(side)
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if not self._stopping and self._error is None:
                self._error = error
        self._stop()

    def _watch(self) -> None:
        """Alert, and stop when it is time to."""
        alerted = self._comparison.verdict is not None
        try:
            while (news := self._next_verdict(alerted)) is not None:
                verdict, last = news
                alerted = alerted or verdict is self._comparison.verdict
                self._verdict = verdict
                if self._alert is not None and not verdict.equivalent:
                    self._call(self._alert, verdict)
                elif not self._stops and not verdict.equivalent:
                    log.warning("%s", verdict.explain())
                if last or self._stops:
                    break
        except BaseException as error:
            self._fail(error)
        self._halt()

    def _next_verdict(self, alerted: bool) -> tuple[Verdict, bool] | None:
        """Wait for a verdict to report, and whether it is the last; None if there will be none."""
        comparison = self._comparison
        with self._changed:
            while not self._stopping:
                if comparison.verdict is not None and not alerted:
                    return comparison.verdict, False
                if comparison.verdict is None and self._has_ended():
                    return comparison.matcher.if_ended(), True
                if len(self._ended) == len(SIDES):
                    return None
                due = None
                if self._patience is not None:
                    if (late := comparison.overdue(self._patience)) is not None:
                        return late, False
                    due = comparison.until_overdue(self._patience)
                self._changed.wait(due)
            verdict = comparison.verdict
            return None if verdict is None or alerted or self._error is not None else (verdict, True)

    def _has_ended(self) -> bool:
        if len(self._ended) == len(SIDES):
            return True
        return self._stops and any(self._comparison.decided_without(side) for side in self._ended)

    def _call(self, function: Callable[[Any], Any], value: Any) -> None:
        """Call a function of the user."""
        thread = threading.get_ident()
        self._inside.add(thread)
        try:
            function(value)
        finally:
            self._inside.discard(thread)

    def _stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _halt(self) -> None:
        self._stop()
        for side in SIDES:
            try:
                self._feeds[side].stop()
            except Exception:
                log.debug("the query of the %s side could not be stopped", side, exc_info=True)
        self._close()

    def _close(self) -> None:
        with self._changed:
            self._comparison.close()
            self._done.set()
        if not self._comparison.is_saved:
            shutil.rmtree(self._folder, ignore_errors=True)


def _check_options(
    drift: int, patience: float | None, on_difference: str, mode: str, parts: int | None
) -> None:
    if parts is not None and parts < 1:
        raise DiffError(f"Expected parts= as a number of parts, 1 or more, got {shown(parts)}.")
    if drift < 1:
        raise DiffError(f"Expected drift= as a number of events, 1 or more, got {shown(drift)}.")
    if patience is not None and not patience > 0:
        raise DiffError(
            f"Expected patience= as seconds, or None to wait for ever, got {shown(patience)}.",
            hint="It is the time an event has to find its partner.",
        )
    if on_difference not in ("stop", "alert"):
        raise DiffError(f"Expected on_difference='stop' or 'alert', got {shown(on_difference)}.")
    if mode not in ("append", "update"):
        raise DiffError(
            f"Expected mode='append' or 'update', got {shown(mode)}.",
            hint="A query in complete mode returns all its rows each time: they are not a stream of events.",
        )
