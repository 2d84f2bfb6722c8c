"""Options that several verbs have, each written once."""

from __future__ import annotations

import re
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
    "Record",
    "Relative",
    "RunOn",
    "Script",
    "Sink",
    "Tolerance",
    "bytes_of",
]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30, "TI": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)

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
Record = Annotated[Path, typer.Option("--record", help="The folder recordings go to.", metavar="DIR")]
RunOn = Annotated[
    str | None, typer.Option("--master", help="The Spark to run on: local[4], spark://host:7077, yarn, ...")
]
Json = Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")]
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


def bytes_of(text: str, option: str, *, least: int = 0) -> int:
    """The size that an option names, in bytes: `64MB`, `64 MiB`, `64m` or `67108864`."""
    match = _SIZE.fullmatch(text)
    size = int(float(match[1]) * _UNITS[(match[2] or "").upper()]) if match is not None else -1
    if size < least:
        raise typer.BadParameter(f"Expected a size such as 64MB, got '{text}'.", param_hint=option)
    return size
