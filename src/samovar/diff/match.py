"""`match`: two streams pulled to their end, or to the first difference, or for some seconds.

Each side is read in a thread of its own, so that a side that waits does not hold up the other, and a side that is
faster than the comparison waits for it. A side that never ends, or never yields, ends with the verdict "undecided".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import Any

import pyarrow as pa

from samovar.diff.comparison_errors import SideProblem
from samovar.diff.dependence import independent
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.verdict import Verdict
from samovar.text import shown

__all__ = ["match"]

_AHEAD = 1000
"""Events or batches of both sides that may wait to be taken in."""
_END = object()
"""What a reader puts into the queue when its side has ended."""


def _read(side: Side, events: Iterable[Any], queue: Queue[tuple[Side, Any]], stop: threading.Event) -> None:
    """Put the events of a side into the queue, and `_END` or the error of the side behind them."""

    def put(value: Any) -> None:
        while not stop.is_set():
            with suppress(Full):
                queue.put((side, value), timeout=0.1)
                return

    try:
        for event in events:
            put(event)
            if stop.is_set():
                return
        put(_END)
    except Exception as error:
        problem = SideProblem(f"The {side} side raised {type(error).__name__}: {error}")
        problem.__cause__ = error
        put(problem)


def match(
    left: Iterable[Any],
    right: Iterable[Any],
    *,
    depends: Any = independent,
    equal: Any = None,
    seconds: float | None = None,
) -> Verdict:
    """Compare two iterables of events or Arrow batches, read side by side.

    After `seconds` the verdict is undecided: neither equivalent nor different so far, with what has no partner yet.
    """
    sides: tuple[Any, Any] = (left, right)
    for side, events in zip(SIDES, sides, strict=True):
        if not isinstance(events, Iterable) or isinstance(events, (str, bytes)):
            raise SideProblem(f"Expected an iterable of events on the {side} side, got {shown(events)}.")
    matcher = Matcher(depends=depends, equal=equal)
    end = None if seconds is None else time.monotonic() + seconds
    queue: Queue[tuple[Side, Any]] = Queue(_AHEAD)
    stop = threading.Event()
    for side, events in zip(SIDES, sides, strict=True):
        threading.Thread(
            target=_read, args=(side, events, queue, stop), name=f"samovar {side}", daemon=True
        ).start()
    ended = 0
    try:
        while ended < len(SIDES):
            side, event = queue.get(timeout=None if end is None else max(0.0, end - time.monotonic()))
            if isinstance(event, SideProblem):
                raise event
            if event is _END:
                ended += 1
                continue
            push = matcher.push_batch if isinstance(event, (pa.RecordBatch, pa.Table)) else matcher.push
            if (verdict := push(side, event)) is not None:
                return verdict
            if end is not None and time.monotonic() > end:
                return matcher.undecided(seconds or 0.0)
        return matcher.close()
    except Empty:
        return matcher.undecided(seconds or 0.0)
    finally:
        stop.set()
