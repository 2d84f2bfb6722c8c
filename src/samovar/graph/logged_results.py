"""`sv.log_result`: results of calls that cannot be repeated (IcedTea, section 5.2).

In a run the call is made and its result kept in the recording; in a replay it is not made, and the kept result comes
back in the same order. Outside of a run it is a plain call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["Results", "log_result", "swap", "using"]

T = TypeVar("T")


class Results:
    """Results of one operator in one epoch: kept in a run, returned again in a replay."""

    def __init__(self, kept: list[Any] | None = None, start: int = 0) -> None:
        self.made: list[Any] = (kept or [])[:start]
        self._kept = kept
        self._next = start

    def of(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of the call in a run; in a replay the result that the call had in the run."""
        if self._kept is None:
            result = function(*args, **kwargs)
            self.made.append(result)
            return result
        if self._next >= len(self._kept):
            raise RuntimeError(
                "log_result was called more often than in the run: the code before the call is not deterministic"
            )
        kept: T = self._kept[self._next]
        self._next += 1
        self.made.append(kept)
        return kept

    def since(self, start: int) -> tuple[Any, ...]:
        """The results returned again from number `start` on."""
        return tuple((self._kept or ())[start : self._next])

    @property
    def place(self) -> int:
        """How many results have been returned again."""
        return self._next


class _Thread(threading.local):
    """What a thread has at hand: in a local run (samovar.testing) several tasks work in one process."""

    results: Results | None = None


_thread = _Thread()


@contextmanager
def using(results: Results | None) -> Iterator[None]:
    """Send calls of `log_result` to these results inside the block."""
    before = swap(results)
    try:
        yield
    finally:
        swap(before)


def swap(results: Results | None) -> Results | None:
    """The same for the inside of a loop over tuples: sets the results and returns those before."""
    before, _thread.results = _thread.results, results
    return before


def log_result(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function whose result may differ each time (a service, a clock, chance), and keep the result.

    Use it in `process` and `finish` of a Python operator; the result must be something that can be pickled.
    """
    results = _thread.results
    return function(*args, **kwargs) if results is None else results.of(function, *args, **kwargs)
