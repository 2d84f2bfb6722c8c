"""Who may talk to the server: everybody who has its token, from its own pages.

One piece of middleware stands before every route, the files of the GUI and WebSockets included. The token comes in the
query (`?token=`, as in the printed link), in a header (`Authorization: Bearer ...`), or as the cookie that the link
sets. Comparisons take the same time wherever two tokens differ. A WebSocket, or a request that changes something, must
come from a page of this server (`Origin`), and requests to a server on loopback must be addressed to loopback (`Host`),
so that no other site's page can use the browser's cookie.

Behind a proxy, pages come from the proxy's address, the public one: it counts as an address of this server, whether the
proxy hands on its own `Host` or not. If that address has TLS, the cookie goes over nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

__all__ = ["Guard"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PAGE = """<!doctype html><meta charset="utf-8"><title>Samovar</title>
<body style="font: 16px/1.5 system-ui; max-width: 40em; margin: 4em auto">
<h1>This workbench needs its token</h1>
<p>Open the link that <code>samovar serve</code> printed: it ends in <code>?token=...</code></p></body>"""
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self' ws: wss:; "
        b"frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
]


class Guard:
    """ASGI middleware: lets a request through, or answers it itself with 401 or 403."""

    def __init__(self, app: App, *, token: str, loopback: bool = True, public: str | None = None) -> None:
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
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        problem = self._foreign(scope, headers)
        if problem is not None:
            await _refuse(scope, receive, send, 403, *problem)
            return
        given = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
        by_query = _same(given.get("token", ""), self._token)
        if not (by_query or self._by_header(headers) or self._by_cookie(headers)):
            await _refuse(
                scope,
                receive,
                send,
                401,
                "Expected the server's token, got none or another.",
                "Open the link that `samovar serve` printed, or send 'Authorization: Bearer <token>'.",
            )
            return
        if by_query and scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/":
            await self._welcome(scope, send, given)
            return
        await self._app(scope, receive, _with_headers(send))

    def _by_header(self, headers: dict[str, str]) -> bool:
        kind, _, value = headers.get("authorization", "").partition(" ")
        return kind.lower() in ("bearer", "token") and _same(value.strip(), self._token)

    def _by_cookie(self, headers: dict[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self._cookie)

    def _foreign(self, scope: Scope, headers: dict[str, str]) -> tuple[str, str] | None:
        """What is wrong with where a request comes from or goes to; None when nothing is."""
        host = headers.get("host", "")
        if self._loopback and _name(host) not in self._names:
            return (
                f"Expected a request to this machine, got one to {host!r}.",
                "Use the printed link; behind a proxy, start the server with --public-url and the proxy's address.",
            )
        if scope["type"] == "http" and scope["method"] in _SAFE:
            return None
        origin = headers.get("origin")
        if origin is not None and origin.lower() == self._public:
            return None
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return (
                f"Expected a request from a page of this server, got one from {origin!r}.",
                "Other sites may not use the workbench; a program sends no Origin, and the token in a header.",
            )
        return None

    async def _welcome(self, scope: Scope, send: Send, given: dict[str, str]) -> None:
        """The printed link: keep the token as a cookie, and take it out of the address."""
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        rest = urlencode({k: v for k, v in given.items() if k != "token"})
        cookie = f"{cookie_name(headers)}={self._cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000"
        if self._public is not None and self._public.startswith("https://"):
            cookie += "; Secure"
        await send(
            {
                "type": "http.response.start",
                "status": 303,
                "headers": [
                    (b"location", f"/?{rest}".rstrip("?").encode("latin-1")),
                    (b"set-cookie", cookie.encode("latin-1")),
                    (b"cache-control", b"no-store"),
                    *_HEADERS,
                ],
            }
        )
        await send({"type": "http.response.body", "body": b""})


def cookie_name(headers: dict[str, str]) -> str:
    """Cookies are shared by all ports of a machine: each server has one of its own."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"samovar-{port}" if port.isdigit() else "samovar"


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return sending


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, message: str, hint: str) -> None:
    if scope["type"] == "websocket":
        await receive()  # the request to connect; closing before accepting it is answered with 403
        await send({"type": "websocket.close", "code": 4401 if status == 401 else 4403, "reason": message})
        return
    page = status == 401 and scope["path"] == "/"
    body = _PAGE if page else json.dumps({"error": {"kind": "Refused", "message": message, "hint": hint}})
    kind = b"text/html; charset=utf-8" if page else b"application/json"
    encoded = body.encode()
    headers = [(b"content-type", kind), (b"content-length", str(len(encoded)).encode()), *_HEADERS]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": encoded})
