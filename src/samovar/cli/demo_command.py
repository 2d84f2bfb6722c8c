"""`samovar demo`: a fraud-detection workflow with a bug, on generated payments."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from samovar.cli.conductor import Output, conduct, session, shown
from samovar.cli.shared_options import Record, RunOn
from samovar.cli.terminal import output, print_line
from samovar.demo import fraud
from samovar.demo.export import export as write_export
from samovar.demo.findings import cut_off, sentences
from samovar.demo.payments import FEWEST, ROWS, payments_folder
from samovar.errors import EnvironmentProblem
from samovar.runtime.run import Run

__all__ = ["demo", "report"]


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End by itself, for scripts, instead of opening the workbench.")
    ] = False,
    rows: Annotated[int, typer.Option("--rows", min=FEWEST, help="How many payments.")] = ROWS,
    record: Record = Path("runs"),
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            help="Write the workflow (fraud.yaml, fraud.py) and its payments here instead of running it.",
            metavar="DIR",
        ),
    ] = None,
    master: RunOn = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live display.")] = False,
) -> None:
    """Run a fraud-detection workflow over generated payments, and look at what is odd in its result.

    Four hundred customers pay with their cards. FE adds features to each payment, FD labels it, FF drops the
    frauds, and S keeps the rest. The workflow has a bug.
    """
    if export is not None:
        _export(export, rows)
        return
    wanted = Output(quiet=quiet, rows=3)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(payments_folder, rows)  # while Spark starts
        spark = session(master, {}, wanted)
        payments = writing.result()
    flow = fraud.build(payments)
    epoch_bytes = max(f.stat().st_size for f in payments.iterdir())
    run = conduct(lambda: flow.start(spark=spark, record=record, epoch_bytes=epoch_bytes), wanted)
    report(output(), run, payments)
    if not once and not quiet and sys.stdout.isatty():
        _open_workbench(spark)


def report(console: Console, run: Run, payments: Path) -> None:
    """Print what is odd in the result, and which commands to try."""
    console.print(Text("\nWhat is odd", style="bold"))
    for sentence in sentences(cut_off(payments, run.result("S"))):
        console.print(Text(f"  {sentence}"))
    console.print(Text("\nWhat to try", style="bold"))
    folder = "runs" if run.recording is None else shown(run.recording.parent)
    where = "" if folder == "runs" else f" --dir {folder}"
    for command, purpose in _commands(where):
        console.print(Text.assemble("  ", (f"{command:<38}", "cyan"), f" {purpose}"))
    past = f'sv.open("{shown(run.recording)}")'
    print_line(
        console, Text.assemble("  in Python: ", (past, "cyan"), ' has .result("S"), .progress, .workflow')
    )


def _commands(where: str) -> list[tuple[str, str]]:
    return [
        (f"samovar show latest{where}", "the workflow, its counters, the size of its state"),
        (f"samovar show latest --code FE{where}", "an operator's code, as it ran"),
        (f"samovar debug latest{where}", "go back: `when FD 'Bob' in blacklist`, then `lines FE`"),
        (f'samovar debug latest -c "jump FE 42"{where}', "any moment, without a prompt"),
        (f"samovar runs{where}", "all recorded runs"),
        ("samovar serve --example fraud", "the same in the browser: build, run, travel, together"),
        ("samovar diff --help", "compare two runs, tables or programs, up to the order that matters"),
        ("samovar demo --export fraud", "the workflow to edit: fraud/fraud.yaml, fraud/fraud.py"),
        ("samovar run fraud/fraud.yaml", "and to run again"),
    ]


def _open_workbench(spark: Any) -> None:
    """Serve the workbench on the workflow until Ctrl-C, on the Spark that is up already."""
    from samovar.server.startup import check_packages, serve

    console = output()
    try:
        check_packages()
    except EnvironmentProblem as problem:
        print_line(console, f"\n{problem}")
        return

    def ready(link: str) -> None:
        print_line(console, Text.assemble("\nIn the browser: ", (link, "bold cyan")))
        print_line(console, "Ctrl-C ends it; `samovar serve --workspace demo-workspace` opens it again.")

    serve(Path("demo-workspace"), example="fraud", session=spark, ready=ready)


def _export(folder: Path, rows: int) -> None:
    console = output()
    written: list[Any] = write_export(folder, rows)
    for path in written:
        print_line(console, f"wrote {path}")
    print_line(
        console, f"Edit them, then: samovar run {folder / 'fraud.yaml'}, or samovar run {folder / 'fraud.py'}"
    )
