"""`samovar diff`: are two tables, files, recordings or workflows the same? 0: yes, 1: no, 2: not comparable."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from samovar.cli.conductor import Output, session, spark_settings
from samovar.cli.diff_arguments import depends_of, equality_of, operand, report_problem, verdict_data
from samovar.cli.shared_options import Columns, Conf, Folder, Json, Keyed, Master, Relative, Sink, Tolerance
from samovar.cli.terminal import output, print_json, print_line
from samovar.diff import SchemasDiffer, SideProblem, TableVerdict, compare
from samovar.errors import SamovarError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["diff"]


def diff(
    left: Annotated[
        str,
        typer.Argument(
            help="Files, a catalog table, a recording (path, id, `latest`), or a workflow to run."
        ),
    ],
    right: Annotated[str, typer.Argument(help="The same for the other side.")],
    ordered: Annotated[bool, typer.Option("--ordered", help="The order of all rows matters.")] = False,
    keyed: Keyed = None,
    columns: Columns = None,
    tolerance: Tolerance = None,
    relative: Relative = None,
    schema: Annotated[
        str, typer.Option("--schema", help="What has to agree: types, kinds or exact.")
    ] = "types",
    sink: Sink = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many rows to show.")] = 10,
    folder: Folder = Path("runs"),
    debug: Annotated[
        str | None,
        typer.Option(
            "--debug", help="Open the debugger where this side parts: left or right.", metavar="SIDE"
        ),
    ] = None,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Compare two tables up to the order that matters, and show the rows that differ.

    Ends with 0 if they are equivalent, 1 if they differ, and 2 if they cannot be compared.
    """
    if schema not in ("types", "kinds", "exact"):
        raise typer.BadParameter(f"Expected types, kinds or exact, got '{schema}'.", param_hint="--schema")
    if debug not in (None, "left", "right"):
        raise typer.BadParameter(f"Expected left or right, got '{debug}'.", param_hint="--debug")
    from samovar.replay.past import Past

    depends, equal = depends_of(ordered, keyed or []), equality_of(columns, tolerance or [], relative)
    try:
        spark = session(master, spark_settings(conf or []), Output(json=json, quiet=json))
        sides = [operand(given, folder, spark) for given in (left, right)]
        if debug is not None and not isinstance(sides[0 if debug == "left" else 1], Past):
            raise SideProblem(f"Expected, with --debug {debug}, a recording on the {debug} side, got none.")
        verdict = compare(
            *sides,
            depends=depends,
            equal=equal,
            schema=schema,  # type: ignore[arg-type]
            sink=sink,
            spark=spark,
        )
    except SchemasDiffer as problem:
        if json:
            print_json({"equivalent": False, "schema": problem.message})
        else:
            print_line(output(), _as_options(str(problem)))
        raise typer.Exit(1) from None
    except SamovarError as problem:
        report_problem(problem, json)
        raise typer.Exit(2) from None
    if json:
        print_json(verdict_data(verdict, rows))
    else:
        print_line(output(), verdict.explain(rows=rows))
    if debug is not None and not verdict.equivalent:
        _open(verdict, sides, debug, spark, json)
    raise typer.Exit(0 if verdict.equivalent else 1)


def _as_options(message: str) -> str:
    """What a message advises, as one would write it here."""
    message = re.sub(r'schema="(\w+)"', r"--schema \1", message)
    return re.sub(
        r"equal=equality\(columns=\[(.*?)\]\)",
        lambda m: "--columns " + m[1].replace("'", "").replace(", ", ","),
        message,
    )


def _open(verdict: TableVerdict, sides: list[Any], side: str, spark: SparkSession, json: bool) -> None:
    """The debugger at the moment where a side parts; without a terminal, where that is."""
    from samovar.cli.debug.debug_command import open_at

    past, moment = (
        (sides[0], verdict.moment("left")) if side == "left" else (sides[1], verdict.moment("right"))
    )
    open_at(past, moment, spark, prompt=sys.stdin.isatty() and not json, json=json)
