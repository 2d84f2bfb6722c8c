"""`samovar serve`: the workbench in the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from samovar.cli.conductor import spark_settings
from samovar.cli.shared_options import Conf, RunOn, bytes_of
from samovar.cli.terminal import output, print_line
from samovar.server.startup import check_packages
from samovar.server.startup import serve as run_server

__all__ = ["serve"]


def serve(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; the next free one if it is taken.")
    ] = 8765,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    workspace: Annotated[
        Path, typer.Option("--workspace", help="The folder to work in; created if need be.", metavar="DIR")
    ] = Path("workspace"),
    token: Annotated[
        str | None,
        typer.Option("--token", help="The token, instead of a random one. SAMOVAR_TOKEN does the same."),
    ] = None,
    master: RunOn = None,
    idle: Annotated[
        float,
        typer.Option(
            "--idle", min=0, help="Minutes without work after which Spark's memory is freed; 0: never."
        ),
    ] = 15,
    example: Annotated[
        str | None,
        typer.Option(
            "--example", help="Open on an example: fraud, tweets, reviews, taxi, tpch-q1, tpch-q10."
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url", help="Where a proxy shows it to people: https://bench.example.org.", metavar="URL"
        ),
    ] = None,
    max_upload: Annotated[
        str, typer.Option("--max-upload", help="The largest file to upload; none: no limit.", metavar="SIZE")
    ] = "4GB",
    max_body: Annotated[
        str, typer.Option("--max-body", help="The largest other request; none: no limit.", metavar="SIZE")
    ] = "16MB",
    quota: Annotated[
        str, typer.Option("--quota", help="What all files of the workspace may take.", metavar="SIZE")
    ] = "none",
    conf: Conf = None,
) -> None:
    """Serve the workbench: build workflows in the browser, together; run them, and travel in their past.

    Prints a link with a token: whoever has it can run code as you. Ends with Ctrl-C.
    """
    check_packages()
    from samovar.server.limits import Limits

    console = output()
    sizes = {"--max-body": max_body, "--max-upload": max_upload, "--quota": quota}
    limits = Limits(
        *(None if text.lower() == "none" else bytes_of(text, option) for option, text in sizes.items())
    )

    def ready(link: str) -> None:
        print_line(console, Text.assemble("Workbench: ", (link, "bold cyan")))
        print_line(console, f"Workspace: {workspace.absolute()}   Ctrl-C ends it.")

    run_server(
        workspace,
        host=host,
        port=port,
        token=token or os.environ.get("SAMOVAR_TOKEN") or None,
        master=master,
        conf=spark_settings(conf or []),
        idle=idle,
        example=example,
        public_url=public_url,
        limits=limits,
        ready=ready,
    )
