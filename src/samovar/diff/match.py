"""`match`: two streams pulled to their end, or to the first difference, or for so many seconds.

Each side is read in a thread of its own, so that one that waits does not hold up the other, and the one that is ahead
waits when it is too far ahead. A side that never ends, or never says anything, ends with the verdict "undecided".
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable
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
"""Events or batches of a side that may wait to be taken in."""


class _Reader:
    """Reads a side into a bounded queue; the thread ends when nobody wants more."""

    def __init__(self, side: Side, events: Iterable[Any]) -> None:
        self.side: Side = side
        self.ended = False
        self._waiting: queue.Queue[tuple[str, Any]] = queue.Queue(_AHEAD)
        self._stop = threading.Event()
        thread = threading.Thread(target=self._read, args=(events,), name=f"samovar {side}", daemon=True)
        thread.start()

    def _read(self, events: Iterable[Any]) -> None:
        try:
            for event in events:
                self._put("event", event)
                if self._stop.is_set():
                    return
            self._put("end", None)
        except Exception as error:  # told by the thread that asks
            self._put("error", error)

    def _put(self, kind: str, value: Any) -> None:
        while not self._stop.is_set():
            try:
                self._waiting.put((kind, value), timeout=0.1)
                return
            except queue.Full:
                continue

    def take(self) -> list[Any]:
        """Events that are there; none if there are none yet."""
        taken: list[Any] = []
        try:
            while not self.ended and len(taken) < _AHEAD:
                kind, value = self._waiting.get_nowait()
                if kind == "error":
                    raise SideProblem(
                        f"The {self.side} side raised {type(value).__name__}: {value}"
                    ) from value
                if kind == "end":
                    self.ended = True
                else:
                    taken.append(value)
        except queue.Empty:
            pass
        return taken

    def stop(self) -> None:
        """Want no more."""
        self._stop.set()


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
    for side, given in zip(SIDES, sides, strict=True):
        if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
            raise SideProblem(f"Expected events one after the other on the {side} side, got {shown(given)}.")
    matcher = Matcher(depends=depends, equal=equal)
    readers = [_Reader(side, given) for side, given in zip(SIDES, sides, strict=True)]
    end = None if seconds is None else time.monotonic() + seconds
    try:
        while not all(r.ended for r in readers):
            busy = False
            for reader in readers:
                for event in reader.take():
                    busy = True
                    push = (
                        matcher.push_batch if isinstance(event, (pa.RecordBatch, pa.Table)) else matcher.push
                    )
                    verdict = push(reader.side, event)
                    if verdict is not None:
                        return verdict
            if end is not None and time.monotonic() > end:
                return matcher.undecided(seconds or 0.0)
            if not busy:
                time.sleep(0.002)
        return matcher.close()
    finally:
        for reader in readers:
            reader.stop()
