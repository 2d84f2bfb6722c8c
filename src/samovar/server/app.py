"""The application: parts, routes, errors as answers, the files of the GUI, and the guard before all of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from samovar.errors import SamovarError
from samovar.ids import VERSION
from samovar.server.auth import Guard
from samovar.server.error_answers import problem_data, problem_fields, status_of
from samovar.server.limits import SizeGuard, TooLarge
from samovar.server.routes import (
    chart_routes,
    comparison_routes,
    control_routes,
    editor_routes,
    file_routes,
    run_routes,
    socket_routes,
    workflow_routes,
)
from samovar.server.services import Parts

__all__ = ["STATIC", "make_app"]

STATIC = Path(__file__).parent / "static"
"""Where `npm run build` in web/ puts the GUI."""

_MISSING = """<!doctype html><meta charset="utf-8"><title>Samovar</title>
<body style="font: 16px/1.5 system-ui; max-width: 40em; margin: 4em auto">
<h1>The workbench's pages are not built</h1>
<p>The server runs, and its HTTP API is at <a href="/openapi.json">/openapi.json</a>.</p>
<p>To build the pages, install Node 20 or newer and run <code>scripts/setup</code> in the repository
(or <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code>), then reload.</p></body>"""


class AsciiResponse(JSONResponse):
    """JSON in ASCII, so that text with half a surrogate pair, which UTF-8 cannot encode, is returned as it came."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class _Assets(StaticFiles):
    """The scripts and styles of the GUI. Before they are built, requests for them are answered with 404."""

    async def check_config(self) -> None:
        """Starlette raises here when the folder is missing; it may be built while the server runs."""


def make_app(
    parts: Parts, *, token: str, loopback: bool = True, public: str | None = None, static: Path = STATIC
) -> FastAPI:
    """The application around its parts, which it closes when it ends. `public`: where a proxy shows it to people."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        parts.live.attach(asyncio.get_running_loop())
        yield
        await asyncio.to_thread(parts.close)

    app = FastAPI(
        title="Samovar workbench",
        version=VERSION,
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        default_response_class=AsciiResponse,
    )
    app.state.parts = parts
    for module in (
        workflow_routes,
        file_routes,
        run_routes,
        control_routes,
        comparison_routes,
        chart_routes,
        editor_routes,
        socket_routes,
    ):
        app.include_router(module.router)
    _answer_errors(app)
    _serve_pages(app, static)
    app.add_middleware(GZipMiddleware, minimum_size=2000, compresslevel=6)
    app.add_middleware(SizeGuard, limits=parts.limits)
    app.add_middleware(Guard, token=token, loopback=loopback, public=public)
    return app


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(SamovarError)
    async def known(_: Request, error: SamovarError) -> AsciiResponse:
        return AsciiResponse({"error": problem_data(error)}, status_of(error))

    @app.exception_handler(TooLarge)
    async def too_large(_: Request, error: TooLarge) -> AsciiResponse:
        problem = problem_fields("TooLarge", error.detail, error.hint)
        return AsciiResponse({"error": problem}, error.status_code, {"connection": "close"})

    @app.exception_handler(RequestValidationError)
    async def unreadable(_: Request, error: RequestValidationError) -> AsciiResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        hint = "See /openapi.json for what this route takes."
        return AsciiResponse({"error": problem_fields("BadRequest", f"{where}: {first['msg']}.", hint)}, 422)

    @app.exception_handler(UnicodeError)
    async def no_text(_: Request, error: UnicodeError) -> AsciiResponse:
        return AsciiResponse(
            {"error": problem_fields("BadRequest", f"Expected text in Unicode, got {error}.")}, 422
        )


def _serve_pages(app: FastAPI, static: Path) -> None:
    @app.get("/", include_in_schema=False)
    def index() -> Response:
        page = static / "index.html"
        if not page.is_file():
            return HTMLResponse(_MISSING, 503)
        return FileResponse(page, headers={"cache-control": "no-cache"})

    app.mount("/assets", _Assets(directory=static / "assets", check_dir=False), name="assets")
