"""Answers of `samovar debug` drawn as text for a terminal of any width. Draws only; computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from samovar.cli.debug.debug_interpreter import PromptAnswer
from samovar.cli.debug.debug_values import brief, row_text
from samovar.cli.graph_picture import describe, draw
from samovar.cli.terminal import listing, row_table
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.runtime.display import counted

__all__ = ["Screen"]

NARROW = 70
"""Columns below which tables become lines."""
CHANGES = 12
"""Changes that are drawn after a move; `changes` shows more."""
LOGGED = 20
"""Rows of a log that are drawn."""
MARK = "▶"


class Screen:
    """Draws answers on a console."""

    def __init__(self, console: Console, graph: Graph) -> None:
        self.console = console
        self.graph = graph
        self._lines = draw({name: op.inputs for name, op in graph.ops.items()})
        self._shows: dict[str, Callable[[PromptAnswer], None]] = {
            "state": self._state,
            "pending": self._pending,
            "last": lambda a: self._last(a.data["last"], whole=True),
            "changes": lambda a: self._changes(a.data["changes"], limit=10 * CHANGES),
            "counters": self._counters,
            "ops": lambda a: self._dag(a.data["moment"], what=True),
            "interactions": self._interactions,
            "lines": self._code,
            "why": self._why,
            "log": self._log,
            "fork": self._fork,
            "help": self._help,
        }

    @property
    def narrow(self) -> bool:
        return self.console.width < NARROW

    def show(self, answer: PromptAnswer) -> None:
        """Draw an answer."""
        if answer.data.get("found") is False:
            asked = answer.data.get("predicate") or f"the key {brief(answer.data.get('key'))}"
            never = "never held" if "predicate" in answer.data else "was not changed before this moment"
            self._say(f"At '{answer.data['operator']}', {asked} {never}.", "yellow")
        elif answer.moved:
            self._moment(answer.data)
        elif answer.verb in self._shows:
            self._shows[answer.verb](answer)

    def error(self, title: str, message: str, hint: str | None) -> None:
        """Print what is wrong and what to do, on the same console as everything else."""
        self._say(Text.assemble((f"{title}: " if title else "", "bold red"), message))
        if hint:
            self._say(Text.assemble(("Hint: ", "bold green"), hint))

    def _say(self, text: str | Text, style: str = "") -> None:
        self.console.print(Text(text, style=style) if isinstance(text, str) else text)

    # --- a moment ---------------------------------------------------------------------------------------------------

    def _moment(self, data: Mapping[str, Any]) -> None:
        place = data["moment"]
        epoch = Text.assemble(("epoch ", "dim"), (f"{place['epoch']}", "bold"), "  ")
        operator = Text.assemble((place["operator"], "bold cyan"), (" has processed ", "dim"))
        tuples = Text.assemble(
            (f"{place['tuples']:,}", "bold"), (f" of {counted(place['of'], 'tuple')}", "dim")
        )
        self._say(epoch + operator + tuples)
        self._dag(place, what=False)
        self._last(data["last"])
        if data["last"] is not None or data["changes"]:
            self._changes(data["changes"], limit=CHANGES)

    def _dag(self, place: Mapping[str, Any], *, what: bool) -> None:
        counts = {op["name"]: op for op in place["operators"]}
        numbers = ("processed", "waiting")
        table = listing(Column(no_wrap=True, width=1), "operator", *numbers, right=numbers)
        if what and not self.narrow:
            table.add_column("", no_wrap=True, overflow="ellipsis", style="dim")
        for line in self._lines:
            if line.operator is None:
                table.add_row("", Text(line.lanes))
                continue
            name = line.operator
            here = name == place["operator"]
            source = isinstance(self.graph.ops[name], ops.SOURCES)
            waiting = counts[name]["waiting"]
            cells: list[Any] = [
                Text(MARK if here else "", style="bold cyan"),
                Text.assemble(f"{line.lanes} ", (name, "bold cyan" if here else "bold")),
                "" if source else f"{counts[name]['taken']:,}",
                Text(f"{waiting:,}", style="yellow") if waiting else "",
            ]
            if what and not self.narrow:
                cells.append(Text(" ".join(describe(self.graph.ops[name]).split())))
            table.add_row(*cells)
        self.console.print(table)

    def _last(self, last: Mapping[str, Any] | None, *, whole: bool = False) -> None:
        if last is None:
            if whole:
                self._say("No step led here: this moment was jumped to.", "dim")
            return
        port = f" port {last['port']}" if last["port"] else ""
        grid = Table.grid(Column(no_wrap=True, style="dim"), Column(overflow="fold"), padding=(0, 1))
        grid.add_row(Text(f"{last['operator']}{port} in"), Text(row_text(last["row"])))
        outputs = last["outputs"]
        for row in outputs if whole else outputs[:3]:
            grid.add_row(Text("out", justify="right"), _differing(row, last["row"]))
        if not whole and len(outputs) > 3:
            grid.add_row("", f"and {counted(len(outputs) - 3, 'row')} more")
        if not outputs and not isinstance(self.graph.ops[last["operator"]], ops.SINKS):
            grid.add_row(Text("out", justify="right"), Text("nothing", style="dim"))
        self.console.print(grid)
        if whole:
            self._changes(last["changes"], limit=10 * CHANGES)

    def _changes(self, changes: list[dict[str, Any]], *, limit: int) -> None:
        if not changes:
            self._say("No state changed.", "dim")
            return
        if self.narrow:
            for c in changes[:limit]:
                key = "" if c["key"] is None else f"[{brief(c['key'], 24)}]"
                values = _before_after(c, max(12, self.console.width - 8))
                self._say(Text.assemble((f"{c['operator']}.{c['name']}{key}", "bold"), "  ", *values))
        else:
            table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
            room = max(16, (self.console.width - 40) // 2)
            for title in ("operator", "state", "key", "before", "", "after"):
                table.add_column(title, no_wrap=True, overflow="ellipsis")
            for c in changes[:limit]:
                before, arrow, after = _before_after(c, room)
                key = "" if c["key"] is None else brief(c["key"], 32)
                place = (Text(c["operator"]), Text(c["name"]), Text(key))
                table.add_row(*place, Text(*before), arrow, Text(*after))
            self.console.print(table)
        if len(changes) > limit:
            self._say(f"and {counted(len(changes) - limit, 'change')} more", "dim")

    # --- what was asked for -----------------------------------------------------------------------------------------

    def _counters(self, answer: PromptAnswer) -> None:
        numbers = ("taken", "given", "waiting")
        table = listing("operator", *numbers, right=numbers)
        for op in answer.data["moment"]["operators"]:
            table.add_row(op["name"], *(f"{op[n]:,}" for n in numbers))
        self.console.print(table)

    def _state(self, answer: PromptAnswer) -> None:
        operator, search = answer.data["operator"], answer.data["search"]
        for page in answer.data["states"]:
            name = f"{operator}.{page['name']}"
            if page["kind"] == "value":
                for item in page["items"]:
                    room = max(20, self.console.width - len(name) - 4)
                    self._say(Text.assemble((name, "bold"), "  ", brief(item["value"], room)))
                continue
            about = counted(page["entries"], "entry").replace("entrys", "entries")
            if search is not None:
                about += f", {page['matches']:,} with '{search}'"
            if page["pages"] > 1:
                about += f", page {page['page']:,} of {page['pages']:,}"
            self._say(Text.assemble((name, "bold"), (f"  {about}", "dim")))
            key = Column(no_wrap=True, max_width=self.console.width // 3)
            grid = Table.grid(key, Column(overflow="fold"), padding=(0, 2))
            for item in page["items"]:
                room = 2 * self.console.width
                grid.add_row(Text(f"  {brief(item['key'])}", style="cyan"), Text(brief(item["value"], room)))
            if page["items"]:
                self.console.print(grid)
            if page["pages"] > page["page"]:
                searched = f" search {search}" if search is not None else ""
                more = f"state {operator} {page['name']}{searched} page {page['page'] + 1}"
                self._say(f"  more: {more}", "dim")

    def _pending(self, answer: PromptAnswer) -> None:
        data = answer.data
        if not data["waiting"]:
            self._say(f"No tuple waits at '{data['operator']}'.", "dim")
            return
        shown = f", the first {len(data['rows'])}" if data["waiting"] > len(data["rows"]) > 0 else ""
        about = f": {counted(data['waiting'], 'tuple')} waiting{shown}"
        self._say(Text.assemble((data["operator"], "bold"), about))
        for row in data["rows"]:
            self._say(Text(f"  {row_text(row)}"))

    def _interactions(self, answer: PromptAnswer) -> None:
        interactions = answer.data["interactions"]
        if not interactions:
            self._say("The run has no interactions.", "dim")
            return
        numbers = ("tuples", "epoch", "jump")
        table = listing("id", "operator", *numbers, Column("note", overflow="fold"), right=numbers)
        for i in interactions:
            tuples = f"{i['tuples']:,}" if isinstance(i["tuples"], int) else ""
            cost, note = f"about {i['seconds']:.0f} s", Text(i["note"] or "")
            table.add_row(str(i["id"]), str(i["operator"] or ""), tuples, str(i["epoch"]), cost, note)
        self.console.print(table)

    def _code(self, answer: PromptAnswer) -> None:
        lines = answer.data["lines"]
        table = listing(Column(justify="right", style="dim", no_wrap=True), "", header=False)
        if not self.narrow:
            table.add_column(overflow="fold", style="cyan")
        texts = [line["text"] for line in lines if line["text"].strip()]
        indent = min((len(text) - len(text.lstrip()) for text in texts), default=0)
        seen: dict[str, Mapping[str, Any]] = {}  # the locals of each function when they were last shown
        for line in lines:
            if line["event"] == "return" and line["value"] is None:
                continue
            held = {k: v for k, v in line["locals"].items() if k != "self"}
            before = seen.get(line["function"], {})
            new = ", ".join(f"{k}={brief(v, 40)}" for k, v in held.items() if _new(k, v, before))
            if line["event"] != "line":
                gave = f"{line['event']} {brief(line['value'], 60)}"
                new = f"{new}, {gave}" if new else gave
            seen[line["function"]] = held
            text = Text(line["text"].rstrip()[indent:])
            if self.narrow:
                table.add_row(str(line["number"]), text)
                if new:
                    table.add_row("", Text(f"  {new}", style="cyan"))
            else:
                table.add_row(str(line["number"]), text, Text(new))
        self.console.print(table)
        if not lines:
            self._say(f"'{answer.data['operator']}' ran no lines.", "dim")

    def _why(self, answer: PromptAnswer) -> None:
        grid = Table.grid(Column(no_wrap=True, style="bold"), Column(overflow="fold"), padding=(0, 2))
        for origin in answer.data["origins"]:
            grid.add_row(Text(origin["operator"]), Text(row_text(origin["row"])))
        if answer.data["origins"]:
            self.console.print(grid)
        else:
            self._say(f"No tuple led to this row of '{answer.data['sink']}'.", "dim")

    def _log(self, answer: PromptAnswer) -> None:
        data = answer.data
        head, rows = data["head"].slice(0, LOGGED), data["rows"]
        shown = f", the first {head.num_rows}" if head.num_rows < rows else ""
        self._say(Text.assemble((data["expression"], "bold"), f": {counted(rows, 'row')}{shown}"))
        if head.num_rows:
            self.console.print(row_table(head, self.console.width))

    def _fork(self, answer: PromptAnswer) -> None:
        data = answer.data
        self._say(Text.assemble(("Run ", ""), (data["run"], "bold"), f" {data['status']}."))
        place = data["recording"] or data["run"]
        self._say(f"Look at it: samovar show {place}", "dim")
        self._say(f"What differs: samovar diff {data['parent']} {place}", "dim")

    def _help(self, answer: PromptAnswer) -> None:
        commands = answer.data["commands"]
        if self.narrow or len(commands) == 1:
            for c in commands:
                short = f"  (or {c['letter']})" if c["letter"] else ""
                self._say(Text.assemble((c["usage"], "bold"), (short, "dim")))
                self._say(f"  {c['does']}")
            return
        styled = (Column(style="cyan", no_wrap=True), Column(style="bold", no_wrap=True))
        table = listing(*styled, Column(overflow="fold"), header=False)
        for c in commands:
            table.add_row(c["letter"], Text(c["usage"]), Text(c["does"]))
        self.console.print(table)
        self._say(
            "OP is by default the operator used last. Commands may be shortened. An empty line repeats a step.",
            "dim",
        )


def _before_after(change: Mapping[str, Any], room: int) -> tuple[Any, Any, Any]:
    before = ("-", "dim") if change["kind"] == "added" else (brief(change["before"], room), "red")
    after = ("-", "dim") if change["kind"] == "removed" else (brief(change["after"], room), "green")
    return before, " → ", after


def _differing(row: Mapping[str, Any], taken: Mapping[str, Any] | None) -> Text:
    """An output row, with the columns in bold that differ from the input row."""
    columns = []
    for name, value in row.items():
        same = taken is not None and name in taken and brief(taken[name]) == brief(value)
        columns.append(Text(f"{name}={brief(value)}", style="dim" if same else "bold"))
    return Text(", ").join(columns)


def _new(name: str, value: Any, before: Mapping[str, Any]) -> bool:
    return name not in before or brief(before[name], 200) != brief(value, 200)
