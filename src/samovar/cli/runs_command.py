"""`samovar runs`: the recordings in a folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column
from rich.text import Text

from samovar.cli.named_recordings import RecordingView, look
from samovar.cli.shared_options import Folder
from samovar.cli.terminal import listing, output, print_json, print_line
from samovar.record.store import find_recordings
from samovar.runtime.display import count, duration, size

__all__ = ["STYLES", "runs"]

STYLES = {
    "completed": "green",
    "failed": "red",
    "damaged": "bold red",
    "running": "cyan",
    "starting": "cyan",
    "stopped": "yellow",
    "interrupted": "yellow",
}


def runs(
    folder: Folder = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the recorded runs, the newest last.

    `interrupted` is a run without an end that no process is writing: `samovar run --resume RUN` goes on with it.
    """
    listed = [_summary(look(path)) for path in find_recordings(folder)]
    if json:
        print_json(listed)
        return
    console = output()
    if not listed:
        print_line(
            console, f"No recordings in {folder}. `samovar demo` makes one; --dir names another folder."
        )
        return
    numbers = ("epochs", "tuples", "took", "size")
    table = listing(
        Column("run", no_wrap=True, overflow="fold"), "status", *numbers, "started", right=numbers
    )
    for run in listed:
        table.add_row(
            Text(run["run"]),
            Text(run["status"], style=STYLES.get(run["status"], "")),
            count(run["epochs"]),
            count(run["tuples"]),
            duration(run["seconds"]),
            size(run["bytes"]),
            _when(run["started"]),
        )
    console.print(table)
    for run in listed:
        if run["damage"]:
            print_line(console, f"{run['run']}: {run['damage']}", "red")


def _summary(view: RecordingView) -> dict[str, Any]:
    started = view.history.started
    return {
        "run": view.path.name,
        "workflow": started.workflow if started else None,
        "status": view.status,
        "epochs": len(view.history.epochs),
        "tuples": view.tuples,
        "seconds": round(view.seconds, 3),
        "bytes": _bytes(view),
        "started": started.at if started else None,
        "path": str(view.path),
        "damage": view.damage,
    }


def _bytes(view: RecordingView) -> int:
    try:
        return sum(view.recording.sizes().values())
    except OSError:  # files come and go while a run is writing
        return 0


def _when(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
