"""What Python operators print, on its way from a worker to the people who watch the run.

While a task is attended, `sys.stdout` of its worker is a `Console`: lines still go to the worker's own output, and are
sent along the control channel with the operator that printed them, which is found by the frames of the call. A task
sends at most `MOST` lines. An epoch that is done again prints again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from samovar.control import messages as m

__all__ = ["Console", "ConsoleLine"]

MOST = 500
"""Lines a task sends: an operator that prints every tuple must not fill the channel."""
LETTERS = 2000
"""Characters of a line that are sent."""
_lock = threading.Lock()
"""Held while `sys.stdout` changes hands: in a local run several tasks work in one process."""
_of_thread: dict[int, Console] = {}
"""The consoles of the threads that process tuples: one in a worker, several in a local run."""


@dataclass(frozen=True)
class ConsoleLine:
    """A line that an operator printed. `at`: seconds since 1970."""

    at: float
    operator: str
    epoch: int
    text: str


class Console:
    """A stream that stands in for `sys.stdout` from its making until `close`."""

    def __init__(
        self, send: Callable[[m.Message], object], epoch: int, operators: Callable[[], Mapping[int, str]]
    ) -> None:
        """`operators` returns the names of operators by the id of their instances."""
        self._send = send
        self._epoch = epoch
        self._operators = operators
        self._open: dict[str, str] = {}
        """Lines that have not ended, by operator."""
        self._sent = 0
        self._thread = threading.get_ident()
        with _lock:
            self._before = sys.stdout
            sys.stdout = _of_thread[self._thread] = self

    def write(self, text: str) -> int:
        """Write text through, and send the lines that are whole."""
        self._before.write(text)
        if self._sent <= MOST and self._is_mine():
            name = self._printing()
            *lines, rest = (self._open.pop(name, "") + text).split("\n")
            if rest:
                self._open[name] = rest[: LETTERS + 1]
            for line in lines:
                self._send_line(name, line)
        return len(text)

    def _is_mine(self) -> bool:
        """Whether this thread works for the task, and not for another one of a local run."""
        console = _of_thread.get(threading.get_ident())
        if console is None:  # a thread that user code started
            return sys.stdout is self
        return console is self

    def _send_line(self, operator: str, line: str) -> None:
        self._sent += 1
        if self._sent > MOST:
            line = f"... what this task prints from here on is not shown (it has printed {MOST} lines)"
        shown = line if len(line) <= LETTERS else line[:LETTERS] + " ..."
        if self._sent <= MOST + 1:
            self._send(m.Printed(operator=operator, epoch=self._epoch, text=shown))

    def _printing(self) -> str:
        """The operator whose code is running: the innermost frame that belongs to one."""
        known = self._operators()
        frame: Any = sys._getframe(2)
        while frame is not None:
            name = known.get(id(frame.f_locals.get("self")))
            if name is not None:
                return name
            frame = frame.f_back
        return next(iter(known.values()), "") if len(known) == 1 else ""

    def close(self) -> None:
        """Put the worker's own stream back, and send the lines that no newline has ended."""
        with _lock:
            _of_thread.pop(self._thread, None)
            if sys.stdout is self:
                sys.stdout = self._before
            above = sys.stdout
            while isinstance(above, Console):  # the console of a task that began later, in a local run
                if above._before is self:
                    above._before = self._before
                above = above._before
        for name, line in self._open.items():
            self._send_line(name, line)
        self._open.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._before, name)  # flush, encoding, isatty, ...
