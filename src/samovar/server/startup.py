"""Starting the server: a socket, a token, a link, and uvicorn until Ctrl-C."""

from __future__ import annotations

import importlib.util
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from samovar.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from samovar.server.limits import Limits

__all__ = ["NEEDED", "check_packages", "public_address", "serve"]

NEEDED = ("fastapi", "uvicorn", "websockets", "pycrdt")
_TRIES = 20
"""Ports that are tried when the wanted one is taken."""


def check_packages() -> None:
    """Raise EnvironmentProblem if the packages of the extra `server` are not there."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(
            f"Packages of the workbench are not installed: {', '.join(missing)}.",
            hint="Install them: pip install 'samovar[server]'.",
        )


def serve(
    workspace: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    master: str | None = None,
    conf: dict[str, str] | None = None,
    idle: float = 15,
    example: str | None = None,
    session: SparkSession | None = None,
    public_url: str | None = None,
    limits: Limits | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve a workspace until the process ends. `ready` receives the link once the server accepts connections.

    `idle`: minutes without work after which Spark is stopped until it is needed again; 0: never. `example`: the link
    leads to this example, which is copied into the workspace and run if it is not there. `session`: a Spark session
    to use, which is left running. `public_url`: the address at which a proxy shows the server to people.
    """
    check_packages()
    import uvicorn

    from samovar.server.app import make_app
    from samovar.server.documents.rooms import MESSAGE_BYTES
    from samovar.server.limits import Limits
    from samovar.server.routes.workflow_routes import open_example
    from samovar.server.services import Parts
    from samovar.server.spark_service import Engine
    from samovar.server.workspace import Workspace

    public = public_address(public_url) if public_url else None
    chosen = token or secrets.token_urlsafe(24)
    listening = _listen(host, port)
    loopback = listening.getsockname()[0] in ("127.0.0.1", "::1")
    engine = Engine(master, conf, session)
    the = Parts(Workspace(workspace), engine, limits or Limits())
    app = make_app(the, token=chosen, loopback=loopback, public=public)
    engine.warm_up()
    if idle > 0:
        the.rest_when_idle(idle)
    place = ""

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            nonlocal place
            await super().startup(sockets)
            if example is not None:
                place = f"#/w/{await open_example(the, example)}"
            name = host if host not in ("0.0.0.0", "::") else socket.gethostname()
            shown = f"[{name}]" if ":" in name else name
            address = public or f"http://{shown}:{listening.getsockname()[1]}"
            ready(f"{address}/?token={chosen}{place}")

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        ws="websockets-sansio",
        ws_max_size=2 * MESSAGE_BYTES,
        timeout_graceful_shutdown=5,
    )
    Server(config).run(sockets=[listening])


def public_address(url: str) -> str:
    """A public address as browsers send it in `Origin`: scheme, name, and a port that is not the scheme's own."""
    wrong = EnvironmentProblem(
        f"Expected a public address such as https://bench.example.org, got {url!r}.",
        hint="http or https and a name, with a port if need be, and no path: pages of the workbench start at /.",
    )
    try:
        parts = urlsplit(url.strip().lower())
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise wrong
    if parts.query or parts.fragment or parts.username is not None:
        raise wrong
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = port is None or port == {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" + ("" if usual else f":{port}")


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket on the wanted port or one of the next; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port, port + (_TRIES if port else 1)):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, candidate))
            return listening
        except OSError as error:
            listening.close()
            problem = error
    raise EnvironmentProblem(
        f"Expected a free port from {port} on at {host}, got: {problem.strerror or problem}.",
        hint="Name another port with --port, or another address with --host.",
    )
