"""How much one request may bring: a body, an upload, and all uploads of a workspace together.

Bodies are counted as they come in, so that nothing larger than the limit is ever held; what comes beyond it is
forgotten at once. Uploads go to the disk as they come, and have a limit of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from samovar.errors import EnvironmentProblem
from samovar.runtime.display import size

__all__ = ["Limits", "SizeGuard", "TooLarge", "bytes_of"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*\Z", re.IGNORECASE)

_PATIENCE = 30.0  # seconds for the rest of a body that is too large


@dataclass(frozen=True)
class Limits:
    """Bytes; None: no limit."""

    body: int | None = 16 * 10**6
    """Of a request that is no upload. A document of a thousand operators has half a megabyte."""
    upload: int | None = 4 * 10**9
    """Of one file."""
    quota: int | None = None
    """Of all files of the workspace together."""


class TooLarge(HTTPException):
    """A request that brings more than is taken. Starlette's kind, which passes through the reading of bodies."""

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
    """Read on and forget it: an answer before the end of a body is lost with most clients, which still send."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                pass


def _too_large(most: int, upload: bool) -> TooLarge:
    if upload:
        message = f"Expected a file of at most {size(most)}, got a larger one."
        return TooLarge(
            message, "Start the server with a larger --max-upload, or put it into the folder by hand."
        )
    message = f"Expected a request of at most {size(most)}, got a larger one."
    return TooLarge(message, "Upload data as files; --max-body sets another limit.")


def bytes_of(text: str) -> int | None:
    """A size as people write it, 500MB or 2g; `none` is no limit. Raises EnvironmentProblem."""
    if text.strip().lower() == "none":
        return None
    found = _SIZE.match(text)
    if found is None:
        raise EnvironmentProblem(f"Expected a size such as 500MB or 2GB, or none, got {text!r}.")
    return int(float(found[1]) * _UNITS[found[2].lower()])
