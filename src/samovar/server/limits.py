"""How much one request may bring: a body, an upload, and all uploads of a workspace together.

Bodies are counted as they come in, so that nothing larger than the limit is ever held; what comes beyond it is
dropped. Uploads go to the disk as they come, and have a limit of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from samovar.runtime.display import size

__all__ = ["Limits", "SizeGuard", "TooLarge"]

_PATIENCE = 30.0
"""Seconds in which the rest of a body that is too large is read."""


@dataclass(frozen=True)
class Limits:
    """The largest sizes in bytes; None: no limit."""

    body: int | None = 16 * 10**6
    """Of a request that is not an upload. A document of a thousand operators has half a megabyte."""
    upload: int | None = 4 * 10**9
    """Of one file."""
    quota: int | None = None
    """Of all files of the workspace together."""


class TooLarge(HTTPException):
    """A request larger than its limit. FastAPI lets no error but an HTTPException through while it reads a body."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(413, message)
        self.hint = hint


class SizeGuard:
    """ASGI middleware: refuses bodies that are too large."""

    def __init__(self, app: ASGIApp, *, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        upload = scope["method"] == "PUT" and scope["path"].startswith("/api/files/")
        most = self._limits.upload if upload else self._limits.body
        announced = next((v for k, v in scope["headers"] if k == b"content-length"), b"")
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            too_much = most is not None and announced.isdigit() and int(announced) > most
            more = True
            if not too_much:
                message = await receive()
                taken += len(message.get("body", b""))
                if most is None or taken <= most:
                    return message
                more = message.get("more_body", False)
            if more:
                await _drained(receive)
            raise _too_large(most or 0, upload)

        await self._app(scope, counted, send)


async def _drained(receive: Receive) -> None:
    """Read the rest of a body and drop it: most clients lose an answer that comes while they still send."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                pass


def _too_large(most: int, upload: bool) -> TooLarge:
    what = "file" if upload else "request"
    by_hand = "Start the server with a larger --max-upload, or put the file into the folder by hand."
    hint = by_hand if upload else "Upload data as files; --max-body sets another limit."
    return TooLarge(f"Expected a {what} of at most {size(most)}, got a larger one.", hint)
