"""The `samovar` command.

Adding a verb takes two steps:

1. `cli/<verb>_command.py` with a function of the verb's name, annotated as Typer wants it. Its docstring is the help
   text of `samovar <verb> --help`.
2. A line in `VERBS` below: the name and its line in `samovar --help`.

A verb's module is imported only when that verb is used, so it may import Spark and the rest at its top, and
`samovar --help` stays fast. A dash in a verb is an underscore in Python: `a-b` is the function `a_b` in
`cli/a_b_command.py`.

Verbs raise `SamovarError` for what the user can do something about, and `typer.Exit(code)` for an outcome that is not
an error; they never print a traceback. `main` turns errors into one screen on stderr and an exit code: 1 for
an error, 2 for a wrong command line, 130 for Ctrl-C. `--debug`, or `SAMOVAR_DEBUG` in the environment, lets the
traceback through.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Annotated, Any

import typer
import typer.core

from samovar.errors import SamovarError

__all__ = ["VERBS", "app", "main", "report"]

VERBS: dict[str, str] = {
    "demo": "Run a fraud-detection workflow on generated payments.",
    "run": "Run a workflow: a document, a Python file, or a recorded run to resume.",
    "runs": "List the recorded runs.",
    "show": "Show a recorded run: workflow, counters, results, log.",
    "diff": "Compare two tables, files, recordings or workflows.",
    "shake": "Run a program under many partitionings and orders: is the result always the same?",
    "attach": "Join a run of another process: pause, inspect, change it, and travel in its past.",
    "debug": "Go back to any moment of a recorded run, and step through it.",
    "serve": "The workbench in the browser: build workflows, run them, travel in time, together.",
    "doctor": "Check whether this machine is ready, and what to do if not.",
}
"""The verbs in the order `samovar --help` shows them, each with its one line of help."""


_ROOMS = {"attach": "attach.", "debug": "debug."}
"""The verbs whose modules have a package of their own."""


class _LazyVerbs(typer.core.TyperGroup):
    """Shows verbs by their entry in `VERBS`, and imports one only when it is about to run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name in VERBS:
            command = _load(name)
        return name, command, rest


def _load(verb: str) -> Any:
    name = verb.replace("-", "_")
    module = importlib.import_module(f"samovar.cli.{_ROOMS.get(name, '')}{name}_command")
    verb_app = typer.Typer(add_completion=False)
    verb_app.command(verb)(getattr(module, name))
    command = typer.main.get_command(verb_app)
    command.name = verb
    return command


app = typer.Typer(
    name="samovar",
    cls=_LazyVerbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"samovar {version('samovar')}")
        raise typer.Exit


@app.callback()
def _samovar(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Dataflow workflows on Apache Spark that can be paused, inspected, changed and replayed."""
    if debug:
        os.environ["SAMOVAR_DEBUG"] = "1"


def _placeholder() -> None:  # never runs: _LazyVerbs puts the real verb in its place
    raise NotImplementedError


for _verb, _help in VERBS.items():
    app.command(_verb, help=_help)(_placeholder)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process with its exit code; `arguments` stand in for `sys.argv[1:]`."""
    try:
        app(args=arguments, prog_name="samovar")
    except SamovarError as error:
        if _debugging():
            raise
        report(error)
        sys.exit(1)
    except Exception as error:
        if _debugging():
            raise
        _report(
            f"Unexpected {type(error).__name__}",
            str(error) or "It came without a message.",
            "This is a bug in Samovar, or in something it uses. SAMOVAR_DEBUG=1 shows where it happened.",
        )
        sys.exit(1)


def report(error: SamovarError) -> None:
    """One screen on stderr about an error of the user's: what is wrong, and what to do."""
    _report(type(error).__name__, error.text, error.hint)


def _debugging() -> bool:
    return os.environ.get("SAMOVAR_DEBUG", "") not in ("", "0")


def _report(title: str, message: str, hint: str | None) -> None:
    """One screen on stderr: what is wrong, and what to do. A longer message loses its middle."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    body = _fit(message.splitlines(), max(console.size.height - 6, 12))
    console.print(Text(_spaced(title), style="bold red"))
    console.print(Text("\n".join(body)))
    if hint:
        console.print(Text.assemble(("Hint: ", "bold green"), hint))


def _spaced(name: str) -> str:
    """`RecordingInUse` as `Recording in use`; a name with spaces stays as it is."""
    return name if " " in name else re.sub(r"(?<!^)[A-Z]", lambda letter: f" {letter[0].lower()}", name)


def _fit(lines: list[str], room: int) -> list[str]:
    if len(lines) <= room:
        return lines
    head = room // 2
    tail = room - head - 1
    return [*lines[:head], f"... {len(lines) - head - tail} lines skipped ...", *lines[-tail:]]


if __name__ == "__main__":
    main()
