"""`samovar show`: what a recording holds. Takes no lock and unpickles nothing, so any recording is safe to look at."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Column, Table
from rich.text import Text

from samovar.cli.graph_picture import describe, draw
from samovar.cli.named_recordings import (
    RecordingView,
    find_run,
    head_of,
    look,
    operator_data,
    rejected_place,
    result_data,
)
from samovar.cli.runs_command import STYLES
from samovar.cli.shared_options import Folder, OneRun
from samovar.cli.terminal import listing, output, print_json, print_line, print_rows
from samovar.errors import RecordingError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.record.log import EpochCommitted, RunResumed
from samovar.runtime.display import count, counted, duration, size
from samovar.runtime.progress import OperatorProgress
from samovar.runtime.sources.rejected_rows import read_rejected, reading_hint
from samovar.runtime.summary import recorded_progress
from samovar.runtime.workflow_file import read_sources
from samovar.text import shortened

__all__ = ["show"]


def show(
    run: OneRun = "latest",
    sink: Annotated[str | None, typer.Argument(metavar="[SINK]", help="A sink whose rows to show.")] = None,
    folder: Folder = Path("runs"),
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows to show.")] = 10,
    epochs: Annotated[bool, typer.Option("--epochs", help="Show the epochs.")] = False,
    rejected: Annotated[
        str | None,
        typer.Option("--rejected", help="Show the rows of a source that did not parse.", metavar="SOURCE"),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option("--code", help="Show the code of a Python operator as it ran.", metavar="OPERATOR"),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Show the facts of the log.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show a recorded run: its workflow, counters, sizes, results, and its error if it failed."""
    view = look(find_run(run, folder))
    if sink is not None:
        _show_rows(view, sink, rows, json)
    elif rejected is not None:
        _show_rejected(view, rejected, rows, json)
    elif code is not None:
        _show_code(view, code, json)
    elif log:
        _show_log(view, json)
    elif json:
        print_json(_summary(view, epochs))
    else:
        _show_run(view, epochs)


# --- the run ------------------------------------------------------------------------------------------------


def _show_run(view: RecordingView, epochs: bool) -> None:
    console = output()
    history, started = view.history, view.history.started
    status = Text(view.status, style=STYLES.get(view.status, ""))
    console.print(Text.assemble((view.path.name, "bold"), "  ", status))
    if started is not None:
        when = datetime.fromtimestamp(started.at).astimezone()
        console.print(
            f"workflow {started.workflow}, started {when:%Y-%m-%d %H:%M:%S}, took {duration(view.seconds)}, "
            f"samovar {started.samovar}, Spark {started.spark}, Python {started.python}",
            style="dim",
        )
    if view.damage is not None:
        print_line(console, f"Damaged: {view.damage}", "red")
    if view.graph is not None:
        console.print()
        console.print(_workflow_table(view, view.graph))
    where = "" if str(view.path.parent) == "runs" else f" --dir {view.path.parent}"
    for source, n in history.rejected().items():
        command = f"samovar show {view.path.name} --rejected {source}{where}"
        print_line(console, f"{counted(n, 'row')} of '{source}' did not parse: {command}", "yellow")
        with contextlib.suppress(RecordingError):  # of a damaged recording, what there is
            hint = reading_hint(read_sources(view.recording).get(source))
            print_line(console, f"  {hint}", "dim") if hint else None
    for name, result in history.published.items():
        print_line(console, f"{name}: {result.files:,} files written to {result.path}")
    if epochs:
        console.print()
        console.print(_epoch_table(history.epochs))
    console.print()
    sizes = {kind: n for kind, n in view.recording.sizes().items() if n}
    parts = ", ".join(f"{kind} {size(n)}" for kind, n in sizes.items())
    console.print(f"{counted(len(history.epochs), 'epoch')}, {size(sum(sizes.values()))} on disk: {parts}")
    for fact in view.facts:
        if isinstance(fact, RunResumed) and fact.damaged:
            note = f"On resuming, epochs from {fact.epoch} on were computed again: {fact.damaged[0]}"
            print_line(console, note, "yellow")
    if history.ended is not None and history.ended.error:
        console.print()
        print_line(console, history.ended.error, "red")
    if view.status in ("failed", "stopped", "interrupted"):
        where = where.replace("--dir", "--record")
        print_line(console, f"To go on with it: samovar run --resume {view.path.name}{where}", "dim")


def _workflow_table(view: RecordingView, graph: Graph) -> Table:
    counters = {op.name: op for op in _counters(view, graph)}
    numbers = ("in", "out", "state")
    table = listing("operator", Column(no_wrap=True, style="dim", max_width=44), *numbers, right=numbers)
    for line in draw({name: op.inputs for name, op in graph.ops.items()}):
        if line.operator is None:
            table.add_row(Text(line.lanes))
            continue
        op, c = graph.ops[line.operator], counters[line.operator]
        table.add_row(
            Text.assemble(f"{line.lanes} ", (op.name, "bold")),
            Text(" ".join(describe(op).split())),
            "" if isinstance(op, ops.SOURCES) else count(c.taken),
            "" if isinstance(op, ops.SINKS) else count(c.given),
            f"{count(c.state_entries)} in {size(c.state_bytes)}" if c.state_bytes else "",
        )
    return table


def _counters(view: RecordingView, graph: Graph) -> tuple[OperatorProgress, ...]:
    return recorded_progress(
        view.recording, view.history, graph.ops.values(), "completed", view.seconds
    ).operators


def _epoch_table(epochs: list[EpochCommitted]) -> Table:
    numbers = ("epoch", "level", "input", "tuples in", "seconds", "state", "rejected")
    table = listing(*numbers, Column("units", no_wrap=True, style="dim"), right=numbers)
    for e in epochs:
        state = sum(f.size for files in e.state.values() for f in files)
        units = ", ".join(f"{source} {a}..{b - 1}" for source, (a, b) in e.units.items())
        table.add_row(
            str(e.epoch),
            str(e.level) if e.levels == 1 else f"{e.level}-{e.level + e.levels - 1}",
            size(e.bytes) if e.bytes else "",
            count(sum(c.given for c in e.counters.values() if not c.taken)),
            f"{e.seconds:.2f}",
            size(state) if state else "",
            count(sum(e.rejected.values())) if e.rejected else "",
            units,
        )
    return table


def _summary(view: RecordingView, epochs: bool) -> dict[str, Any]:
    history, started, ended = view.history, view.history.started, view.history.ended
    summary: dict[str, Any] = {
        "run": view.path.name,
        "path": str(view.path.absolute()),
        "status": view.status,
        "workflow": started.workflow if started else None,
        "started": started.at if started else None,
        "seconds": round(view.seconds, 3),
        "samovar": started.samovar if started else None,
        "spark": started.spark if started else None,
        "python": started.python if started else None,
        "options": started.options if started else {},
        "epochs": [msgspec.to_builtins(e) for e in history.epochs] if epochs else len(history.epochs),
        "operators": [],
        "results": {},
        "rejected": history.rejected(),
        "sizes": view.recording.sizes(),
        "error": {"message": ended.error, "operator": ended.operator} if ended and ended.error else None,
        "damage": view.damage,
    }
    if view.graph is not None:
        for c in _counters(view, view.graph):
            op = view.graph.ops[c.name]
            summary["operators"].append({**operator_data(c), "inputs": list(op.inputs), "does": describe(op)})
        for op in view.graph.sinks:
            summary["results"][op.name] = result_data(view.recording, history, op)
    return summary


# --- parts of it --------------------------------------------------------------------------------------------


def _graph(view: RecordingView) -> Graph:
    if view.graph is None:
        raise RecordingError(
            f"The workflow of {view.path} cannot be read.",
            hint=view.damage or "The run has only just started.",
        )
    return view.graph


def _show_rows(view: RecordingView, sink: str, rows: int, json: bool) -> None:
    graph = _graph(view)
    names = [op.name for op in graph.sinks]
    if sink not in names:
        raise UnknownName(sink, names, what=f"a sink of {view.path.name}")
    op = graph.ops[sink]
    written = isinstance(op, ops.Write)
    result = result_data(view.recording, view.history, op)
    kept = None if written else head_of(view.recording, view.history, sink, rows)
    head = kept if kept is not None else pa.table({})
    if json:
        print_json({"sink": sink, **result, "head": head.to_pylist()})
    elif written:
        about = f"{result['rows']:,} rows of {result['format']}, written to {result['path']}"
        print_line(output(), f"{sink}: {about}")
    else:
        print_rows(output(), sink, head, result["rows"])


def _show_rejected(view: RecordingView, source: str, rows: int, json: bool) -> None:
    names = [op.name for op in _graph(view).sources]
    if source not in names:
        raise UnknownName(source, names, what=f"a source of {view.path.name}")
    table = read_rejected(view.recording, source)
    if json:
        print_json({"source": source, "rows": table.num_rows, "head": table.slice(0, rows).to_pylist()})
        return
    console = output()
    console.print(Text.assemble((source, "bold"), f": {counted(table.num_rows, 'row')} rejected"))
    for row in table.slice(0, rows).to_pylist():
        print_line(console, Text.assemble((f"{rejected_place(row)}: ", "dim"), row["text"]))


def _show_code(view: RecordingView, operator: str, json: bool) -> None:
    coded = {n: op for n, op in _graph(view).ops.items() if isinstance(op, ops.Python | ops.Batches)}
    if operator not in coded:
        raise UnknownName(operator, coded, what="an operator with Python code")
    op = coded[operator]
    if not op.code:
        raise RecordingError(
            f"The code of '{operator}' was recorded without its text.",
            operator=operator,
            hint="Text is kept for classes and functions that are defined in a file or a document.",
        )
    if json:
        name = op.class_name if isinstance(op, ops.Python) else op.function
        print_json({"operator": operator, "name": name, "code": op.code})
    else:
        _print_code(output(), op.code)


def _print_code(console: Console, text: str) -> None:
    if console.is_terminal:
        console.print(Syntax(text.rstrip(), "python", background_color="default"))
    else:
        print(text.rstrip())


def _show_log(view: RecordingView, json: bool) -> None:
    facts = [msgspec.to_builtins(f) for f in view.facts]
    if json:
        print_json(facts)
        return
    console = output()
    for fact in facts:
        when = datetime.fromtimestamp(fact.pop("at")).astimezone()
        kind = fact.pop("fact")
        rest = "  ".join(f"{k}={shortened(' '.join(str(v).split()), 160)}" for k, v in fact.items())
        print_line(
            console, Text.assemble((f"{when:%H:%M:%S.%f}"[:-3], "dim"), "  ", (kind, "bold"), "  ", rest)
        )
    if view.damage is not None:
        print_line(console, f"Damaged: {view.damage}", "red")
