"""What waits to be sent to one person's browser: bounded in number and in bytes.

A browser that does not keep up is disconnected: what waits is dropped, and the browser connects again and gets
everything as it is then. When nothing else waits, a message may have any size: a whole document may be one.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

__all__ = ["Message", "Outbox"]

Message = TypeVar("Message", bytes, str)
_MESSAGES = 5000
_BYTES = 16 << 20
"""For one person; a document of average size is a thousandth of it."""


class Outbox(Generic[Message]):
    """A queue of messages; None is the end. Belongs to the event loop."""

    def __init__(self, *, messages: int = _MESSAGES, bytes: int = _BYTES) -> None:
        self._most = messages, bytes
        self._waiting: asyncio.Queue[Message | None] = asyncio.Queue()
        self._bytes = 0
        self._ended = False

    @property
    def bytes(self) -> int:
        """The size of all messages that wait."""
        return self._bytes

    def put(self, message: Message) -> None:
        """Add a message; when too much waits, the end takes the place of all of it."""
        if self._ended:
            return
        number, size = self._waiting.qsize(), len(message)
        if number and (number >= self._most[0] or self._bytes + size > self._most[1]):
            self._ended = True
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self._bytes = 0
            self._waiting.put_nowait(None)
            return
        self._bytes += size
        self._waiting.put_nowait(message)

    async def get(self) -> Message | None:
        """The next message; None: there are no more."""
        message = await self._waiting.get()
        if message is not None:
            self._bytes -= len(message)
        return message
