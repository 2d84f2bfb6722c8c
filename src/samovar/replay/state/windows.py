"""The windows of a recording: which window to trace for a place, its neighbours, and the windows kept in memory."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from samovar.positions import Position, Window
from samovar.replay.trace.segments import Segment
from samovar.replay.trace.traced_window import TracedWindow
from samovar.replay.trace.tracer import Tracer

__all__ = ["Windows"]

log = logging.getLogger("samovar.replay")

KEPT = 24
"""Windows that are kept in memory: going back and forth between a few moments traces none of them again."""
ROOM = 512 << 20
"""Bytes that the states of the windows kept may take."""


class Windows:
    """Traces windows. Safe for several threads: a window is traced once."""

    size = 500
    """Leaf tuples of a window: a step inside a window costs nothing, the step to the next window a Spark job."""
    margin = 50
    """Tuples before the moment that are traced too, for steps back."""

    def __init__(self, tracer: Tracer, segments: Sequence[Segment]) -> None:
        self.tracer = tracer
        self.leaves = tracer.leaves
        self.segments = segments
        self._kept: OrderedDict[tuple[int, Window], Future[TracedWindow]] = OrderedDict()
        """Windows by their place, those used last at the end; some are being traced."""
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="samovar-ahead")
        self._lock = threading.Lock()

    def traced(self, segment: Segment, window: Window) -> TracedWindow:
        """The trace of a window, from memory if it is there.

        Where an operator took tuples as they arrived, a range of positions is not a range of time: then the whole
        segment is traced.
        """
        if "arrival" in self.tracer.edges(segment.level).order.values():
            window = Window()
        key = (segment.number, window)
        with self._lock:
            is_new = key not in self._kept
            future = self._kept.setdefault(key, Future())
            self._kept.move_to_end(key)
        if is_new:  # this thread traces it; others that ask meanwhile wait for the same future
            try:
                future.set_result(self.tracer.trace(segment, window))
            except BaseException as error:
                with self._lock:
                    self._kept.pop(key, None)
                future.set_exception(error)
            self._forget_old()
        return future.result()

    def _forget_old(self) -> None:
        with self._lock:
            sizes = {key: f.result().size for key, f in self._kept.items() if f.done() and not f.exception()}
            for key in list(sizes)[:-2]:  # the last two: a step may go back and forth between them
                if len(self._kept) > KEPT or sum(sizes.values()) > ROOM:
                    del self._kept[key], sizes[key]

    def close(self) -> None:
        """End the tracing in the background."""
        self._ahead.shutdown(wait=True, cancel_futures=True)

    # --- windows by place -------------------------------------------------------------------------------------------

    def first(self, segment: Segment) -> TracedWindow:
        """The first window of a segment."""
        return self.traced(segment, Window(None, self.leaves.edge_after(segment, None, self.size)))

    def last(self, segment: Segment) -> TracedWindow:
        """The last window of a segment."""
        return self.traced(segment, Window(self.leaves.edge_before(segment, None, self.size), None))

    def around(self, segment: Segment, low: Position, high: Position) -> TracedWindow:
        """A window from a margin before one leaf tuple to a window's size behind another."""
        first = self.leaves.edge_before(segment, low, self.margin)
        return self.traced(segment, Window(first, self.leaves.edge_after(segment, high, self.size)))

    def up_to(self, segment: Segment, leaf: Position) -> TracedWindow:
        """A window that ends with a leaf tuple."""
        low = self.leaves.edge_before(segment, leaf, self.margin)
        return self.traced(segment, Window(low, self.leaves.after(segment, leaf, 1)))

    def behind(self, traced: TracedWindow) -> TracedWindow | None:
        """The window behind another one; None at the end of the run."""
        low, following = traced.window.high, traced.segment.number + 1
        if low is None:
            return self.first(self.segments[following]) if following < len(self.segments) else None
        high = self.leaves.edge_after(traced.segment, low, self.size)
        return self.traced(traced.segment, Window(low, high))

    def before(self, traced: TracedWindow) -> TracedWindow | None:
        """The window before another one; None at the start of the run."""
        high, number = traced.window.low, traced.segment.number
        if high is None:
            return self.last(self.segments[number - 1]) if number else None
        low = self.leaves.edge_before(traced.segment, high, self.size)
        before = self.traced(traced.segment, Window(low, high))
        if low is None and not any(before.trace.steps.values()):  # nothing of the segment lies before
            return self.before(before)
        return before

    def look_ahead(self, traced: TracedWindow, done: int) -> None:
        """Trace the window behind in the background once half of this one's steps are done."""
        steps = sum(map(len, traced.trace.steps.values()))
        if traced.looked_ahead or steps < self.size // 2 or done < steps // 2:
            return
        traced.looked_ahead = True
        with contextlib.suppress(RuntimeError):  # the session was closed
            self._ahead.submit(self._trace_behind, traced)

    def _trace_behind(self, traced: TracedWindow) -> None:
        try:
            self.behind(traced)
        except Exception:  # the step that needs this window raises the error
            log.debug("tracing ahead failed", exc_info=True)
