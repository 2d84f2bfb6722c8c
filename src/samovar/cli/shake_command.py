"""`samovar shake`: does a program return the same however Spark runs it? 0: yes, 1: no, 2: it cannot be run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from samovar.cli.conductor import Output, session, spark_settings
from samovar.cli.diff_arguments import depends_of, equality_of, is_document, report_problem
from samovar.cli.named_workflows import is_python, load_flow, load_function
from samovar.cli.shared_options import Columns, Conf, Json, Keyed, Master, Relative, Sink, Tolerance
from samovar.cli.terminal import output, print_json, print_line
from samovar.diff import shake as shake_program
from samovar.errors import SamovarError, WorkflowError

__all__ = ["shake"]


def shake(
    program: Annotated[
        str, typer.Argument(help="A function of DataFrames as file.py:function, or a workflow.")
    ],
    inputs: Annotated[
        list[str], typer.Argument(help="Its inputs: files or catalog tables; NAME=PATH for a named one.")
    ],
    ordered: Annotated[bool, typer.Option("--ordered", help="The order of the output matters.")] = False,
    keyed: Keyed = None,
    arrives: Annotated[
        list[str] | None,
        typer.Option(
            "--arrives", help="Input rows with the same value here stay in order.", metavar="COLUMN"
        ),
    ] = None,
    columns: Columns = None,
    tolerance: Tolerance = None,
    relative: Relative = None,
    runs: Annotated[int, typer.Option("--runs", min=2, help="How many executions at most.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Chooses the settings that are tried.")] = 0,
    sink: Sink = None,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run a program under many partitionings and orders, and name two settings under which it differs.

    Ends with 0 if it always gave the same, 1 if it did not, and 2 if it cannot be run.
    """
    depends, equal = depends_of(ordered, keyed or []), equality_of(columns, tolerance or [], relative)
    try:
        spark = session(master, spark_settings(conf or []), Output(json=json, quiet=json))
        report = shake_program(
            _program(program),
            _inputs(inputs),
            depends=depends,
            equal=equal,
            arrives=depends_of(False, arrives or []),
            runs=runs,
            seed=seed,
            sink=sink,
            spark=spark,
        )
    except SamovarError as problem:
        report_problem(problem, json)
        raise typer.Exit(2) from None
    if json:
        pair = None if report.pair is None else [setting.words() for setting in report.pair]
        print_json(
            {"same": report.passed, "executions": report.executions, "pair": pair, "problem": report.problem}
        )
    else:
        print_line(output(), report.explain())
    raise typer.Exit(0 if report.passed else 1)


def _program(named: str) -> Any:
    if is_python(named):
        return load_function(named)
    if is_document(named):
        return load_flow(named)
    raise WorkflowError(
        f"Expected a program as file.py:function, or a workflow document, got '{named}'.",
        hint="Such as taxi.py:distances.",
    )


def _inputs(given: list[str]) -> Any:
    named = {}
    for number, text in enumerate(given):
        name, joined, path = text.partition("=")
        if joined and not Path(text).exists():
            named[name] = path
        else:
            named[str(number)] = text
    return named
