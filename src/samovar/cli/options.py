"""Options that several verbs have, each written once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Columns", "Conf", "Json", "Keyed", "Master", "Relative", "Sink", "Tolerance"]

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
