"""`samovar attach`: join a run of another process, to pause it, look into it, change it, and travel in its past."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from samovar.cli.attach.attach_interpreter import Attached
from samovar.cli.attach.attach_screen import LiveScreen
from samovar.cli.conductor import Output, session, spark_settings
from samovar.cli.debug.debug_command import Talk, scripted
from samovar.cli.debug.debug_interpreter import PromptAnswer
from samovar.cli.named_recordings import find_run
from samovar.cli.shared_options import Conf, Each, Folder, OneRun, Script
from samovar.cli.terminal import output
from samovar.control.door import Visit, read_address
from samovar.record.store import Recording
from samovar.replay.past import Past, open_recording
from samovar.runtime.workflow_file import read_graph

__all__ = ["attach"]

DECISIONS = ("retry", "skip", "fix", "resume")
"""Commands after which a run goes on."""
PATIENCE = 5.0
"""Seconds until it has gone on, or holds the next tuple: after a `fix` the epoch is done again first."""


def attach(
    run: OneRun = "latest",
    folder: Folder = Path("runs"),
    command: Annotated[
        str | None,
        typer.Option(
            "--command", "-c", help='Commands to run, such as "pause; inspect FE".', metavar="COMMANDS"
        ),
    ] = None,
    script: Script = None,
    json: Each = False,
    held: Annotated[
        bool, typer.Option("--held", help="Leave as soon as no tuple is held any more and the run goes on.")
    ] = False,
    master: Annotated[str | None, typer.Option("--master", help="The Spark to travel in time with.")] = None,
    conf: Conf = None,
) -> None:
    """Join a run that goes on in another process of this machine.

    Live commands (pause, resume, inspect, watch, held, retry, skip, fix, ...) act on the run; all commands of `samovar
    debug` work on the epochs committed so far. Leaving changes nothing: a paused run stays paused.
    """
    commands, settings = scripted(command, script), spark_settings(conf or [])
    path = find_run(run, folder).absolute()
    visit = Visit(*read_address(path))
    form = Output(json=json, quiet=json or commands is not None)
    opened: list[Past] = []

    def travel() -> Past:
        talking.spark = session(master, settings, form)
        opened.append(open_recording(path, spark=talking.spark))
        return opened[-1]

    talking = _Talk(Attached(visit, read_graph(Recording.open(path)), travel), json, held)
    try:
        talking.go(commands)
    finally:
        for past in opened:
            past.close()


class _Talk(Talk):
    """A session with a run that goes on."""

    def __init__(self, attached: Attached, json: bool, held: bool) -> None:
        super().__init__(attached, None, json)
        self.attached = attached
        self.screen = LiveScreen(output(), attached.graph)
        self._held = held
        self._decided = False
        self._shown: Any = None

    def _open(self) -> None:
        status = self.attached.do("status")
        self._tell("status", status)
        if self._held:
            self._show_held(status.data["held"])
        self.screen.console.print("`help` lists the commands.", style="dim", markup=False)

    def _tell(self, line: str, answer: PromptAnswer) -> None:
        super()._tell(line, answer)
        self._decided = answer.verb in DECISIONS

    @property
    def _over(self) -> bool:  # type: ignore[override]
        """Whether nothing is left to decide. After a decision, waits until the run goes on or holds the next tuple."""
        if not self._held:
            return False
        until = time.monotonic() + (PATIENCE if self._decided else 0.0)
        while True:
            now = self.attached.do("status").data
            if not now["held"] and now["status"] not in ("holding", "paused", "pausing"):
                return True
            if now["held"] and now["held"] != self._shown:
                self._show_held(now["held"])
                return False
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)

    def _show_held(self, held: Any) -> None:
        self._shown = held
        self._tell("held", self.attached.do("held"))
