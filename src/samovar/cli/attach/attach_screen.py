"""What `samovar attach` draws of a run that goes on. Draws only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from samovar.cli.debug.debug_interpreter import PromptAnswer
from samovar.cli.debug.debug_screen import Screen
from samovar.cli.debug.debug_values import row_text
from samovar.graph.workflow import Graph
from samovar.runtime.display import counted, duration, size

__all__ = ["LiveScreen"]

STATUS = ("status", "pause", "resume", "stop", "wait", "retry", "skip", "modify", "fix", "unwatch")
"""Commands whose answer is the run's status."""


class LiveScreen(Screen):
    """Draws answers of live commands, and of time travel."""

    def __init__(self, console: Console, graph: Graph) -> None:
        super().__init__(console, graph)
        self._shows |= dict.fromkeys(STATUS, self._status)
        self._shows |= {
            "inspect": self._inspect,
            "flight": self._flight,
            "stats": self._stats,
            "break": self._break,
            "watch": self._watch,
            "breakpoints": self._breakpoints,
            "interact": lambda a: self._say(f"Marked as {a.data['interaction']}."),
            "held": self._held,
        }

    def _status(self, answer: PromptAnswer) -> None:
        now = answer.data
        self._say(
            Text.assemble(
                (now["run"], "bold"),
                "  ",
                (now["status"], "bold cyan"),
                (
                    f"  {counted(now['epoch'], 'epoch')}, {now['fraction']:.0%}, {duration(now['seconds'])}",
                    "dim",
                ),
            )
        )
        if "modified" in now:
            self._say(f"{now['modified'][:1].upper()}{now['modified'][1:]}.")
        for one in now["reached"]:
            self._reached(one)
        for one in now["held"]:
            self._say(
                Text.assemble(
                    ("held ", "yellow"), f"{one['operator']}: {row_text(one['row'])}: {one['error']}"
                )
            )

    def _reached(self, one: Mapping[str, Any]) -> None:
        about = row_text(one["row"]) if one["row"] is not None else one["note"]
        self._say(Text.assemble(("reached ", "yellow"), f"{one['name']} at {one['operator']}: {about}"))

    def _inspect(self, answer: PromptAnswer) -> None:
        data = answer.data
        if not data["consistent"]:
            self._say("Each worker at another instant:", "dim")
        elif data["states"]:
            self._say(f"At the end of {counted(data['epoch'], 'epoch')}:", "dim")
        else:
            self._say("No tuple was processed yet.", "dim")
        self._state(PromptAnswer("state", {**data, "search": None}))
        if data["note"]:
            self._say(data["note"], "yellow")

    def _flight(self, answer: PromptAnswer) -> None:
        for row in answer.data["rows"]:
            self._say(row_text(row))
        if answer.data["more"]:
            self._say(f"and {counted(answer.data['more'], 'tuple')} more", "dim")
        elif not answer.data["rows"]:
            self._say("No tuple is in flight.", "dim")

    def _stats(self, answer: PromptAnswer) -> None:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column("operator", no_wrap=True, overflow="ellipsis")
        for title in ("taken", "given", "a second", "busy", "workers", "queue", "state", "skew"):
            table.add_column(title, justify="right", no_wrap=True)
        for op in answer.data["operators"]:
            live = op["workers"] > 0
            table.add_row(
                Text(op["name"]),
                f"{op['taken']:,}",
                f"{op['given']:,}",
                f"{op['rate']:,.0f}",
                f"{op['busy']:.0%}" if live else "",
                f"{op['workers']}" if live else "",
                f"{op['queue']:,}" if live else "",
                f"{op['state_entries']:,} / {size(op['state_bytes'])}" if op["state_entries"] else "",
                f"{op['skew']:.2f}" if live else "",
            )
        self.console.print(table)

    def _watch(self, answer: PromptAnswer) -> None:
        data = answer.data
        self._say(f"{data['name']}: marks tuples of {data['operator']}, {data['condition']}.")

    def _break(self, answer: PromptAnswer) -> None:
        data = answer.data
        number = next((f"{data[n]:,} {n}" for n in ("tuples", "outputs") if n in data), None)
        self._say(f"{data['name']}: pauses at {data['operator']}, {number or data['condition']}.")

    def _breakpoints(self, answer: PromptAnswer) -> None:
        for b in answer.data["breakpoints"]:
            number = next((f"{b[n]:,} {n}" for n in ("tuples", "outputs") if b[n] is not None), None)
            hits = f", met {counted(b['hits'], 'time')}" if b["hits"] else ""
            self._say(f"{b['name']}: {b['operator']}, {number or b['condition']}{hits}")
        if not answer.data["breakpoints"]:
            self._say("No breakpoint stands.", "dim")
        for one in answer.data["reached"]:
            self._reached(one)

    def _held(self, answer: PromptAnswer) -> None:
        for one in answer.data["held"]:
            self._say(Text.assemble((one["operator"], "bold"), f" holds {row_text(one['row'])}"))
            self._say(one["traceback"])
            for name, value in one["locals"].items():
                self._say(Text.assemble((f"  {name}", "dim"), f" = {value}"))
            self._say(Text.assemble(("state ", "dim"), one["state"]))
        if not answer.data["held"]:
            self._say("No tuple is held.", "dim")
        else:
            self._say("retry [COLUMN=VALUE ...], skip [all], fix OP=file.py:Class, or stop.", "dim")
