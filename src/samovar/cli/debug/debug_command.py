"""`samovar debug`: go back to any moment of a recorded run and step through it, at a prompt or by a script.

`debug_interpreter` runs each command in a thread of its own, so that Ctrl-C can cancel its Spark jobs and return to the
prompt.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from samovar.cli.conductor import INTERRUPTED, Output, session, spark_settings
from samovar.cli.debug.debug_interpreter import Debugger, PromptAnswer
from samovar.cli.debug.debug_screen import Screen
from samovar.cli.debug.debug_values import plain
from samovar.cli.debug.debug_words import completions, split_commands
from samovar.cli.named_recordings import find_run
from samovar.cli.named_workflows import load_flow, needs_spark
from samovar.cli.shared_options import Conf, Each, Folder, Master, OneRun, Script
from samovar.cli.terminal import error_data, output, print_json
from samovar.errors import RecordingError, SamovarError
from samovar.replay.past import open_recording
from samovar.runtime.spark.job_tags import cancel_tagged

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from pyspark.sql import SparkSession

    from samovar.replay.moment import Moment
    from samovar.replay.past import Past

__all__ = ["Talk", "debug", "history_file", "open_at", "scripted"]

REPEATED = ("over", "into", "out", "back")
"""Commands that an empty line repeats."""
PATIENCE = 1.0
"""Seconds after a Ctrl-C in which another one is taken for the same."""


def debug(
    run: OneRun = "latest",
    folder: Folder = Path("runs"),
    command: Annotated[
        str | None,
        typer.Option(
            "--command", "-c", help='Commands to run, such as "jump FE 42; over".', metavar="COMMANDS"
        ),
    ] = None,
    script: Script = None,
    json: Each = False,
    flow: Annotated[
        str | None,
        typer.Option(
            "--flow", help="The workflow, for a recording whose Columns have no SQL form.", metavar="FLOW"
        ),
    ] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Step through a recorded run, tuple by tuple, forwards and backwards.

    Opens at the end of the run; a failed run opens at the tuple that failed. `help` at the prompt lists the commands.
    Without a terminal, commands are read line by line.
    """
    commands, chosen = scripted(command, script), spark_settings(conf or [])
    path = find_run(run, folder)
    wanted = Output(json=json, quiet=json or commands is not None)
    if flow is not None and needs_spark(flow):
        session(master, chosen, wanted)
    loaded = load_flow(flow) if flow is not None else None
    spark = session(master, chosen, wanted)
    past = open_recording(path.absolute(), spark=spark, flow=loaded)
    try:
        talking = Talk(Debugger(past, show_progress=wanted.watched), spark, json)
        talking.go(commands)
    finally:
        past.close()


def open_at(past: Past, moment: Moment, spark: SparkSession, *, prompt: bool, json: bool = False) -> None:
    """Open the debugger at a moment of a recording: a prompt, or without a terminal a drawing of the moment."""
    debugger = Debugger(past)
    debugger.move(moment)
    Talk(debugger, spark, json).go(None if prompt else ["where"])


def scripted(command: str | None, script: Path | None) -> list[str] | None:
    """The commands of -c or --script; None when they come from stdin."""
    if command is not None and script is not None:
        raise typer.BadParameter("Give commands with -c, or a file of them, not both.", param_hint="--script")
    if command is not None:
        return split_commands(command)
    if script is None:
        return None
    try:
        return split_commands(sys.stdin.read() if str(script) == "-" else script.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"Expected a file of commands at {script}: {error}.") from None


def history_file() -> Path:
    """Where the lines typed at the prompt are kept."""
    return Path(os.environ.get("SAMOVAR_CACHE") or Path.home() / ".cache" / "samovar") / "debug-history"


class Cancelled(KeyboardInterrupt):
    """Ctrl-C during a command: the command was cancelled, and the moment is as it was."""


class Talk:
    """A session: commands from somewhere, answers to stdout."""

    _over = False
    """Whether the session ends after this command."""

    def __init__(self, debugger: Any, spark: SparkSession | None, json: bool) -> None:
        """`debugger`: a Debugger, or what has its methods."""
        self.debugger = debugger
        self.spark = spark
        self.json = json
        self.screen: Screen = Screen(output(), debugger.graph)

    # --- where commands come from -----------------------------------------------------------------------------------

    def go(self, commands: list[str] | None) -> None:
        """Run a script, or else what is typed at a prompt; without a terminal, each line of stdin."""
        if commands is None and sys.stdin.isatty() and not self.json:
            self.prompt()
            return
        try:
            if commands is not None:
                self.script(commands)
            else:
                self.lines(sys.stdin)
        except Cancelled:
            raise typer.Exit(INTERRUPTED) from None

    def script(self, commands: list[str]) -> None:
        """Run commands to the first that fails: its error ends the process with 1."""
        for line in commands:
            if not self.json:
                self.screen.console.print(f"> {line}", style="dim", markup=False)
            try:
                if self._do(line).verb == "quit":
                    return
            except Exception as error:
                if self.json:
                    self._print_error(line, error)
                raise

    def lines(self, stream: Any) -> None:
        """Commands line by line, without a prompt; continues after an error, and ends with 1 then."""
        failed = False
        for line in (command for text in stream for command in split_commands(text)):
            try:
                if self._do(line).verb == "quit" or self._over:
                    break
            except Exception as error:
                failed = True
                self._print_error(line, error)
        if failed:
            raise typer.Exit(1)

    def prompt(self) -> None:
        """Commands typed at a prompt, until `quit` or Ctrl-D."""
        asking = _prompt_session(self.debugger)
        self._open()
        repeated = ""
        while True:
            try:
                typed = asking.prompt(f"{self.debugger.operator}> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            for line in split_commands(typed) or ([repeated] if repeated else []):
                try:
                    answer = self._do(line)
                except (Cancelled, Exception) as error:
                    self._print_error(line, error)
                    break
                if answer.verb == "quit" or self._over:
                    return
                repeated = answer.verb if answer.verb in REPEATED else ""

    def _open(self) -> None:
        """Draw where the run is opened: the first thing a person sees."""
        past = self.debugger.past
        console = self.screen.console
        console.print(f"{past.id}  {past.status}", style="bold", markup=False)
        if self.debugger.error:
            self.screen.error("", self.debugger.error, None)
        try:
            with console.status("going there ..."):
                answer = self._work(self.debugger.opening)
            self.screen.show(answer)
        except (Cancelled, Exception) as error:
            self._print_error("where", error)
        console.print("`help` lists the commands.", style="dim", markup=False)

    # --- at work ----------------------------------------------------------------------------------------------------

    def _do(self, line: str) -> PromptAnswer:
        """Run a command and show its answer. Raises what the command raised, or Cancelled."""
        answer = self._work(lambda: self.debugger.do(line))
        if answer.verb != "quit":
            self._tell(line, answer)
        return answer

    def _work(self, do: Callable[[], PromptAnswer]) -> PromptAnswer:
        """Interpret a command in a thread of its own; Ctrl-C cancels its jobs and raises Cancelled."""
        result: Future[PromptAnswer] = Future()

        def work() -> None:
            try:
                result.set_result(do())
            except BaseException as error:
                result.set_exception(error)

        debugger = self.debugger
        before = debugger.mark()
        thread = threading.Thread(target=work, name="samovar-debug", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.5)  # with a timeout, so that Ctrl-C interrupts it on every platform
        except KeyboardInterrupt:
            self._cancel(thread)
            debugger.restore(before)
            raise Cancelled from None
        return result.result()

    def _cancel(self, thread: threading.Thread) -> None:
        """Cancel a command's Spark jobs, also those that it starts meanwhile, until it ends; a later Ctrl-C leaves."""
        began = time.monotonic()
        while thread.is_alive():
            try:
                if self.spark is not None:
                    cancel_tagged(self.spark, f"{self.debugger.past.id}-replay")
                thread.join(0.2)
            except KeyboardInterrupt:
                if time.monotonic() - began > PATIENCE:
                    raise

    # --- answers and errors ---------------------------------------------------------------------------------------

    def _tell(self, line: str, answer: PromptAnswer) -> None:
        if not self.json:
            self.screen.show(answer)
            return
        data = {k: plain_table(v) for k, v in answer.data.items()}
        print_json({"command": line, "verb": answer.verb, "ok": True, **data}, indent=None)

    def _print_error(self, line: str, error: BaseException) -> None:
        if self.json:
            data = {"command": line, "verb": None, "ok": False, "error": error_data(error)}
            print_json(data, indent=None)
        elif isinstance(error, Cancelled):
            self.screen.error("", "Cancelled.", None)
        elif os.environ.get("SAMOVAR_DEBUG", "") not in ("", "0"):
            raise error
        elif isinstance(error, SamovarError):
            self.screen.error("", error.text, error.hint)
        else:
            self.screen.error(f"Unexpected {type(error).__name__}", str(error), None)


def plain_table(value: Any) -> Any:
    """As `plain`; a table becomes its rows."""
    return plain(value.to_pylist()) if hasattr(value, "to_pylist") else plain(value)


def _prompt_session(debugger: Any) -> PromptSession[str]:
    """A prompt with completion and a history. Imports prompt_toolkit, which nothing else needs."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory

    class Words(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
            before = document.text_before_cursor
            typed = "" if before[-1:].isspace() else before.split(" ")[-1]
            for choice in completions(before, debugger.names()):
                yield Completion(choice, start_position=-len(typed))

    history: History = InMemoryHistory()
    try:
        history_file().parent.mkdir(parents=True, exist_ok=True)
        history = FileHistory(str(history_file()))
    except OSError:  # the home folder is read-only: keep the history of this session alone
        pass
    return PromptSession(
        history=history,
        completer=Words(),
        auto_suggest=AutoSuggestFromHistory(),
        complete_while_typing=False,
        enable_history_search=True,
    )
