"""Options that several verbs have, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Columns",
    "Conf",
    "Each",
    "Folder",
    "Json",
    "Keyed",
    "Master",
    "OneRun",
    "Relative",
    "Script",
    "Sink",
    "Tolerance",
]

Keyed = Annotated[
    list[str] | None,
    typer.Option("--keyed", help="The order matters among rows with the same value here.", metavar="COLUMN"),
]
Columns = Annotated[str | None, typer.Option("--columns", help="Compare these only.", metavar="A,B,...")]
Tolerance = Annotated[
    list[str] | None,
    typer.Option("--tolerance", help="How far floats may differ: 0.01, or fare=0.01.", metavar="NUMBER"),
]
Relative = Annotated[
    float | None, typer.Option("--relative", help="How far floats may differ in proportion.")
]
Sink = Annotated[str | None, typer.Option("--sink", help="The sink of a recording or workflow.")]
Json = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]
Master = Annotated[str | None, typer.Option("--master", help="The Spark to compute with.")]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", help="A Spark setting; may be given several times.", metavar="KEY=VALUE"),
]
OneRun = Annotated[
    str,
    typer.Argument(
        metavar="[RUN]", help="A run's id, the beginning of it, the path of its recording, or `latest`."
    ),
]
Folder = Annotated[Path, typer.Option("--dir", help="The folder of recordings.", metavar="DIR")]
Script = Annotated[
    Path | None,
    typer.Option("--script", help="A file of commands to run; - is the standard input.", metavar="FILE"),
]
Each = Annotated[bool, typer.Option("--json", help="Print one JSON object for each command.")]
