"""News for everybody who is connected: executions as they change. Threads publish, the event loop hands out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

__all__ = ["Listener", "Live"]

_WAITING = 1000
"""News that may wait for a slow listener; one that falls further behind is let go and connects again."""


class Listener:
    """Someone who is told the news: a queue of texts; None is the end."""

    def __init__(self) -> None:
        self.news: asyncio.Queue[str | None] = asyncio.Queue()

    def tell(self, text: str) -> None:
        """Add news; a listener too far behind gets the end instead."""
        if self.news.qsize() >= _WAITING:
            self.news = asyncio.Queue()
            self.news.put_nowait(None)
        else:
            self.news.put_nowait(text)


class Live:
    """The listeners. `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[Listener] = set()

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Say which loop the listeners are on; None: it has ended."""
        self._loop = loop

    def publish(self, kind: str, data: Any) -> None:
        """Tell everybody."""
        loop = self._loop
        if loop is None:
            return
        text = json.dumps({"kind": kind, "data": data})
        try:
            loop.call_soon_threadsafe(self._tell, text)
        except RuntimeError:  # the loop has just ended
            self._loop = None

    def _tell(self, text: str) -> None:
        for listener in self._listeners:
            listener.tell(text)

    def add(self, listener: Listener) -> None:
        """Take a listener in."""
        self._listeners.add(listener)

    def remove(self, listener: Listener) -> None:
        """Let a listener go."""
        self._listeners.discard(listener)
