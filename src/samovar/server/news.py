"""News for everybody who is connected: executions as they change. Threads publish, the event loop sends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from samovar.server.outbox import Outbox

__all__ = ["Live"]


class Live:
    """The listeners. `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[Outbox[str]] = set()

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Set the event loop of the listeners; None: it has ended."""
        self._loop = loop

    def publish(self, kind: str, data: Any) -> None:
        """Send news to all listeners."""
        loop = self._loop
        if loop is None:
            return
        text = json.dumps({"kind": kind, "data": data})
        try:
            loop.call_soon_threadsafe(self._send, text)
        except RuntimeError:  # the loop has just ended
            self._loop = None

    def _send(self, text: str) -> None:
        for listener in self._listeners:
            listener.put(text)

    def add(self, listener: Outbox[str]) -> None:
        """Add a listener."""
        self._listeners.add(listener)

    def remove(self, listener: Outbox[str]) -> None:
        """Remove a listener."""
        self._listeners.discard(listener)
