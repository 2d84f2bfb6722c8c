"""What `samovar diff` and `samovar shake` share: dependences, equalities and tables as a command line names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from samovar.cli.terminal import print_json
from samovar.diff import Dependence, TableVerdict, equality, independent
from samovar.diff import keyed as keyed_by
from samovar.diff import ordered as all_ordered
from samovar.errors import SamovarError
from samovar.record.store import LOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["depends_of", "equality_of", "is_document", "operand", "report_problem", "verdict_data"]


def depends_of(ordered: bool, keyed: list[str]) -> Dependence:
    """The dependence of `--ordered` and `--keyed`; several columns are one key."""
    if ordered and keyed:
        raise typer.BadParameter("Expected --ordered or --keyed, got both.", param_hint="--keyed")
    names = [n.strip() for given in keyed for n in given.split(",")]
    return all_ordered if ordered else keyed_by(*names) if names else independent


def equality_of(columns: str | None, tolerance: list[str], relative: float | None) -> Any:
    """The equality of `--columns`, `--tolerance` and `--relative`."""
    by_column: dict[str, float] = {}
    absolute: float | None = None
    for given in tolerance:
        name, joined, number = given.rpartition("=")
        try:
            amount = float(number)
        except ValueError:
            raise typer.BadParameter(
                f"Expected a number or COLUMN=NUMBER, got '{given}'.", param_hint="--tolerance"
            ) from None
        if joined:
            by_column[name] = amount
        else:
            absolute = amount
    if by_column and absolute is not None:
        raise typer.BadParameter(
            "Expected one tolerance for all floats or one by column, got both.", param_hint="--tolerance"
        )
    names = [n.strip() for n in columns.split(",")] if columns else None
    return equality(columns=names, tolerance=by_column or absolute, relative=relative)


def is_document(given: str) -> bool:
    """Whether a path is a workflow: a Python file, a YAML document, or JSON with `operators`."""
    name, _, _ = given.partition(".py:")
    path = Path(given if name == given else f"{name}.py")
    if path.suffix in (".py", ".yaml", ".yml"):
        return path.is_file()
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8") as opened:
            whole = json.load(opened)
    except (ValueError, OSError):
        return False  # lines of JSON are data
    return isinstance(whole, dict) and "operators" in whole


def operand(given: str, folder: Path, spark: SparkSession) -> Any:
    """What a side of a comparison stands for: a recording opened, a workflow that was run, or a name for Spark."""
    from samovar.cli.named_recordings import find_run
    from samovar.cli.named_workflows import load_flow
    from samovar.diff.tables.table_inputs import is_table
    from samovar.replay.past import open_recording

    if is_document(given):
        return load_flow(given).run(spark=spark, record=False, progress=False)
    path = Path(given)
    files = path.exists() and not (path / LOG).is_file()
    if files or "://" in given or (path.suffix and not path.exists()) or is_table(given, spark):
        return given
    return open_recording(find_run(given, folder).absolute(), spark=spark)


def verdict_data(verdict: TableVerdict, rows: int) -> dict[str, Any]:
    """A verdict as plain data for `--json`, with that many rows of each side."""
    return {
        "equivalent": verdict.equivalent,
        "depends": verdict.depends,
        "rows": dict(verdict.totals),
        "without_partner": dict(verdict.counts),
        "side": verdict.side,
        "position": verdict.position,
        "event": verdict.event,
        "against": verdict.against,
        "left": verdict.unmatched("left")[:rows],
        "right": verdict.unmatched("right")[:rows],
    }


def report_problem(problem: SamovarError, as_json: bool) -> None:
    """An error on stderr, and as JSON on stdout where that was asked for."""
    from samovar.cli.main import report

    if as_json:
        print_json({"error": {"message": problem.message, "hint": problem.hint}})
    report(problem)
