"""Who may talk to the server: everybody who has its token, from its own pages.

One piece of middleware stands before every route, the files of the GUI and WebSockets included. The token comes in the
query (`?token=`, as in the printed link), in a header (`Authorization: Bearer ...`), or as the cookie that the link
sets. Comparisons take the same time wherever two tokens differ. A WebSocket, or a request that changes something, must
come from a page of this server (`Origin`), and requests to a server on loopback must be addressed to loopback (`Host`),
so that no other site's page can use the browser's cookie.

Behind a proxy, pages come from the proxy's address, the public one: it counts as an address of this server, whether the
proxy sends its own `Host` or not. If that address has TLS, the browser sends the cookie over TLS alone.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard"]

_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PAGE = """<!doctype html><meta charset="utf-8"><title>Samovar</title>
<body style="font: 16px/1.5 system-ui; max-width: 40em; margin: 4em auto">
<h1>This workbench needs its token</h1>
<p>Open the link that <code>samovar serve</code> printed: it ends in <code>?token=...</code></p></body>"""
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self' ws: wss:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
}
_MONTH = 30 * 24 * 3600
"""Seconds for which a browser keeps the cookie."""


class Guard:
    """ASGI middleware: lets a request through, or answers it itself with 401 or 403."""

    def __init__(self, app: ASGIApp, *, token: str, loopback: bool = True, public: str | None = None) -> None:
        self._app = app
        self._token = token
        self._cookie = hmac.new(token.encode(), b"samovar cookie", hashlib.sha256).hexdigest()
        self._loopback = loopback
        self._public = public.lower().rstrip("/") if public else None
        self._names = (*_LOOPBACK, *((_name(self._public.partition("://")[2]),) if self._public else ()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        by_query = _same(request.query_params.get("token", ""), self._token)
        foreign = self._foreign(request)
        answer: Response | None = None
        if foreign is not None:
            answer = _refusal(403, *foreign)
        elif not (by_query or self._by_header(request) or self._by_cookie(request)):
            answer = _no_token(page=scope["path"] == "/")
        elif by_query and scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/":
            answer = self._welcome(request)
        if answer is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await answer(scope, receive, _with_headers(send))
        else:
            await receive()  # the request to connect; closing before accepting it is answered with 403
            await send({"type": "websocket.close", "code": 4000 + answer.status_code})

    def _by_header(self, request: HTTPConnection) -> bool:
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        return kind.lower() in ("bearer", "token") and _same(value.strip(), self._token)

    def _by_cookie(self, request: HTTPConnection) -> bool:
        return _same(request.cookies.get(_cookie_name(request), ""), self._cookie)

    def _foreign(self, request: HTTPConnection) -> tuple[str, str] | None:
        """What is wrong with where a request comes from or goes to, and a hint; None when nothing is."""
        host = request.headers.get("host", "")
        if self._loopback and _name(host) not in self._names:
            return (
                f"Expected a request to this machine, got one to {host!r}.",
                "Use the printed link; behind a proxy, start the server with --public-url and the proxy's address.",
            )
        if request.scope["type"] == "http" and request.scope["method"] in _SAFE:
            return None
        origin = request.headers.get("origin")
        if origin is None or origin.lower() == self._public:
            return None
        if origin.partition("://")[2].lower() != host.lower():
            return (
                f"Expected a request from a page of this server, got one from {origin!r}.",
                "Other sites may not use the workbench; a program sends no Origin, and the token in a header.",
            )
        return None

    def _welcome(self, request: HTTPConnection) -> Response:
        """The answer to the printed link: sets the token as a cookie, and removes it from the address."""
        rest = urlencode({k: v for k, v in request.query_params.items() if k != "token"})
        answer = RedirectResponse(f"/?{rest}".rstrip("?"), 303, {"cache-control": "no-store"})
        answer.set_cookie(
            _cookie_name(request),
            self._cookie,
            max_age=_MONTH,
            httponly=True,
            samesite="strict",
            secure=self._public is not None and self._public.startswith("https://"),
        )
        return answer


def _cookie_name(request: HTTPConnection) -> str:
    """Cookies are shared by all ports of a machine: each server has one of its own."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"samovar-{port}" if port.isdigit() else "samovar"


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return send_with_headers


def _refusal(status: int, message: str, hint: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"kind": "Refused", "message": message, "hint": hint}}, status, headers)


def _no_token(*, page: bool) -> Response:
    bearer = {"www-authenticate": "Bearer"}
    if page:
        return HTMLResponse(_PAGE, 401, bearer)
    return _refusal(
        401,
        "Expected the server's token, got none or another.",
        "Open the link that `samovar serve` printed, or send 'Authorization: Bearer <token>'.",
        bearer,
    )
