"""Runs as the command line conducts them: a session, a display, a clean stop on Ctrl-C, a summary.

stdout carries what was asked for: the summary and results, or one JSON object with `--json`. stderr carries the live
display, events (`--json-events`) and errors.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from samovar.cli.named_recordings import head_of, operator_data, rejected_place, result_data
from samovar.cli.terminal import error_data, messages, output, print_json, print_line, print_rows
from samovar.errors import RunStopped, SamovarError, UnknownName
from samovar.graph import operators as ops
from samovar.runtime.display import counted, duration, size
from samovar.runtime.run import Run
from samovar.runtime.sources.rejected_rows import read_rejected, reading_hint
from samovar.runtime.spark.session import spark_session
from samovar.runtime.workflow_file import read_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "INTERRUPTED",
    "Output",
    "check_sinks",
    "conduct",
    "session",
    "shown",
    "spark_settings",
    "summary",
    "telling",
]

INTERRUPTED = 130
_REJECTED_SHOWN = 3


@dataclass(frozen=True)
class Output:
    """What a run prints. `show` names the sinks whose head is wanted; empty: all of them."""

    json: bool = False
    events: bool = False
    quiet: bool = False
    show: tuple[str, ...] = ()
    rows: int = 10

    @property
    def display(self) -> bool:
        """Whether the progress is displayed."""
        return not (self.json or self.events or self.quiet)

    @property
    def watched(self) -> bool:
        """Whether the progress is displayed on a terminal: epochs are short then."""
        return self.display and sys.stderr.isatty()


def spark_settings(given: list[str]) -> dict[str, str]:
    """Spark settings from `--conf KEY=VALUE`."""
    settings = {}
    for item in given:
        key, joined, value = item.partition("=")
        if not joined or not key.strip():
            raise typer.BadParameter(f"Expected KEY=VALUE, got '{item}'.", param_hint="--conf")
        settings[key.strip()] = value.strip()
    return settings


def session(master: str | None, conf: Mapping[str, str], wanted: Output) -> SparkSession:
    """The Spark session for a command; a terminal shows that it starts."""
    console = messages()
    waiting: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if wanted.display and console.is_terminal:
        waiting = console.status("starting Spark ...")
    with waiting:
        spark = spark_session(master=master, conf=conf)
    if threading.current_thread() is threading.main_thread():
        # PySpark's handler of Ctrl-C cancels all jobs first; a run stops after its last committed epoch instead.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return spark


@contextlib.contextmanager
def telling(wanted: Output) -> Iterator[None]:
    """Errors before there is a run, as JSON on stdout where that was asked for; they are raised all the same."""
    try:
        yield
    except SamovarError as error:
        if wanted.json:
            print_json({"run": None, "status": "failed", "error": error_data(error)})
        raise


def conduct(begin: Callable[[], Run], wanted: Output, *, hold: bool = False) -> Run:
    """Start a run, follow it to its end, and print its summary. Raises what made it fail, or Exit(130) on Ctrl-C.

    `hold`: a held tuple opens a prompt, if there is a terminal.
    """
    with telling(wanted):
        run = begin()
    try:
        with _events(run) if wanted.events else contextlib.nullcontext():
            if hold:
                _follow_holding(run, wanted)
            run.wait(progress=wanted.display, warn=wanted.quiet and not wanted.json)  # else the summary does
    except (KeyboardInterrupt, RunStopped):
        return _stopped(run, wanted)
    except Exception as error:
        if wanted.json:
            print_json(summary(run, wanted, error=error))
        elif not wanted.quiet:
            _print_failed(run)
        raise
    if wanted.json:
        print_json(summary(run, wanted))
    else:
        _print_summary(run, wanted)
    return run


def _follow_holding(run: Run, wanted: Output) -> None:
    """Follow a run to its end; whenever a tuple is held, let people decide about it."""
    from samovar.runtime.display import follow

    shown_once: set[str] = set()

    def held() -> bool:
        return any(h.hold not in shown_once for h in run.holds)

    while not run.ended:
        if wanted.display:
            follow(run, until=held)
        else:
            while not run.wait_ended(0.1) and not held():
                pass
        if run.wait_ended(0):
            return
        shown_once |= {h.hold for h in run.holds}
        if sys.stdin.isatty() and wanted.display:
            _prompt(run)
        if run.holds and not wanted.quiet:
            console = messages()
            console.print(Text(str(run.holds[0]), style="yellow"))
            print_line(console, f"It waits for a decision: samovar attach {shown(run.store.path)}")


def _prompt(run: Run) -> None:
    """A prompt at a held tuple, in a process of its own: time travel there has a Spark without held tasks."""
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C at the prompt is the prompt's
    try:
        subprocess.run(
            [sys.executable, "-m", "samovar.cli.main", "attach", str(run.store.path), "--held"],
            check=False,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def _stopped(run: Run, wanted: Output) -> Run:
    """Stop a run at its last committed epoch, print how to resume it, and exit with 130."""
    if wanted.display:
        messages().print("stopping ...", style="dim")
    run.stop()
    if run.status == "completed":  # it ended while Ctrl-C was on its way
        return run
    if wanted.json:
        print_json(summary(run, wanted, error=run.error))
    elif not wanted.quiet:
        console = messages()
        console.print(f"Stopped. {_epochs(run.progress.epoch)} kept.")
        if run.recording is not None:
            console.print(f"Go on with: {_resume_command(run)}")
    raise typer.Exit(INTERRUPTED)


def _print_failed(run: Run) -> None:
    if run.recording is not None:
        console = messages()
        console.print(f"Run {run.id} failed. {_epochs(run.progress.epoch)} kept.", style="red")
        print_line(console, f"To go on once the cause is gone: {_resume_command(run)}")


def _epochs(n: int) -> str:
    return "No epoch was committed, none is" if n == 0 else "1 epoch is" if n == 1 else f"{n:,} epochs are"


def _resume_command(run: Run) -> str:
    assert run.recording is not None
    folder = shown(run.recording.parent)
    return f"samovar run --resume {run.id}" + ("" if folder == "runs" else f" --record {folder}")


@contextlib.contextmanager
def _events(run: Run) -> Iterator[None]:
    """One JSON line on stderr for each committed epoch, and one at the end."""

    def emit(event: str) -> None:
        print_json({"event": event, "at": time.time(), **run.progress.as_dict()}, indent=None, to_stderr=True)

    run.on_progress(lambda _: emit("epoch"))
    emit("started")
    try:
        yield
    finally:
        emit("ended")


# --- summaries ----------------------------------------------------------------------------------------------


def summary(run: Run, wanted: Output, *, error: BaseException | None = None) -> dict[str, Any]:
    """A run that has ended, as plain data (docs/reference/cli.md)."""
    progress = run.progress
    return {
        "run": run.id,
        "workflow": progress.workflow,
        "status": run.status,
        "recording": None if run.recording is None else str(run.recording),
        "seconds": round(progress.seconds, 3),
        "epochs": progress.epoch,
        "operators": [operator_data(op) for op in progress.operators],
        "results": _results(run, wanted),
        "rejected": {
            source: {"rows": n, "head": _rejected(run, source)} for source, n in progress.rejected.items()
        },
        "error": None if error is None else error_data(error),
    }


def _results(run: Run, wanted: Output) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for op in run.graph.sinks:
        result = results[op.name] = result_data(run.store, run.history, op, kept=run.recording is not None)
        if op.name in wanted.show and not isinstance(op, ops.Write):
            head = head_of(run.store, run.history, op.name, wanted.rows)
            result["head"] = [] if head is None else head.to_pylist()
    return results


def _rejected(run: Run, source: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_rejected(run.store, source).slice(0, _REJECTED_SHOWN).to_pylist()
    return rows


def check_sinks(names: tuple[str, ...], known: list[str]) -> None:
    """Raise UnknownName for a sink that is not there, before anything runs."""
    for name in names:
        if name not in known:
            raise UnknownName(name, known, what="a sink of the workflow")


def _print_summary(run: Run, wanted: Output) -> None:
    console = output()
    taken = {op.name: op.taken for op in run.progress.operators}
    for op in run.graph.sinks:
        rows = taken.get(op.name, 0)
        if (wanted.show and op.name not in wanted.show) or (wanted.quiet and not wanted.show):
            continue
        if isinstance(op, ops.Write):
            written = f": {rows:,} rows written to {op.path}"
            print_line(console, Text.assemble((op.name, "bold"), written))
            continue
        head = head_of(run.store, run.history, op.name, wanted.rows)
        if head is not None:
            print_rows(console, op.name, head, rows)
    if wanted.quiet:
        return
    for source, n in run.progress.rejected.items():
        _print_rejected(console, run, source, n)
    if run.recording is not None:
        total = sum(run.store.sizes().values())
        print_line(
            console,
            f"{run.id}: {counted(run.progress.epoch, 'epoch')} in {duration(run.progress.seconds)}, "
            f"recorded in {shown(run.recording)} ({size(total)}).",
        )


def _print_rejected(console: Any, run: Run, source: str, n: int) -> None:
    kept = f"{counted(n, 'row')} of '{source}' did not parse, kept as rejected:"
    console.print(Text(kept, style="yellow"))
    for row in _rejected(run, source):
        print_line(console, f"  {shown(rejected_place(row))}: {row['text'][:80]}")
    hint = reading_hint(read_sources(run.store).get(source))
    if hint:
        print_line(console, f"  {hint}")
    if n > _REJECTED_SHOWN and run.recording is not None:
        print_line(console, f"  samovar show {run.id} --rejected {source} shows all of them.")


def shown(path: Any) -> str:
    """A path as a person in the current folder would write it."""
    text, here = str(path), os.getcwd() + os.sep
    return text.removeprefix(here)
