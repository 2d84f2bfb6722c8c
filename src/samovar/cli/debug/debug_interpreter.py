"""The interpreter of `samovar debug`: a line goes in, an answer comes out. It does not print.

`Debugger.do` interprets one command and returns a `PromptAnswer` of plain fields, which `debug_screen` draws and
`--json` prints. A command that fails raises a SamovarError and leaves the moment as it was. Not safe for several
threads at a time, but any thread may call it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samovar.cli.debug.debug_arguments import (
    declared,
    is_whole,
    literal,
    parses,
    search_and_page,
    usage,
    whole,
)
from samovar.cli.debug.debug_place import DebugPlace
from samovar.cli.debug.debug_values import PAGE, change_data, page_of
from samovar.cli.debug.debug_words import COMMANDS, Names, find_command, words
from samovar.errors import UnknownName
from samovar.graph import operators as ops

if TYPE_CHECKING:
    from samovar.replay.moment import Moment
    from samovar.replay.past import Past

__all__ = ["Debugger", "PromptAnswer"]

STEPS = ("over", "into", "out")
SHOWN = 10
"""Rows that wait, and entries of each of several states, that are shown."""
LOGGED = 1_000
"""Rows of a log that are in an answer."""


@dataclass(frozen=True)
class PromptAnswer:
    """The answer to a command. `moved`: whether the moment changed."""

    verb: str
    data: dict[str, Any] = field(default_factory=dict)
    moved: bool = False


class Debugger(DebugPlace):
    """A place in the past of a run, and the commands that move it."""

    def __init__(self, past: Past, *, show_progress: bool = False) -> None:
        super().__init__(past)
        self._show_progress = show_progress
        self._seen: dict[str, tuple[str, ...]] = {}
        self._does: dict[str, Callable[[str], PromptAnswer]] = {
            name: getattr(self, f"_{name}") for name in COMMANDS if name != "quit"
        }

    def do(self, line: str) -> PromptAnswer:
        """Interpret one command. Raises SamovarError; the moment and the operator then stay as they were."""
        given = words(line)
        if not given:
            return PromptAnswer("where")
        command, rest = find_command(given[0].text), line[given[0].end :].strip()
        if command.name == "quit":
            return PromptAnswer("quit")
        if rest and command.usage == command.name:
            raise usage(command.name, f"Expected nothing after `{command.name}`, got `{rest}`.")
        before = self.mark()
        try:
            return self._does[command.name](rest)
        except BaseException:
            self.restore(before)
            raise

    def opening(self) -> PromptAnswer:
        """The moment the run is opened at, as an answer."""
        return self._here("where")

    # --- moving -----------------------------------------------------------------------------------------------------

    def _jump(self, rest: str) -> PromptAnswer:
        given = words(rest)
        match [w.text for w in given]:
            case ["end"]:
                return self._go("jump", self.past.jump())
            case ["start"]:
                return self._go("jump", self.past.jump(epoch=0))
            case ["epoch", number] if not given[0].quoted:
                return self._go("jump", self.past.jump(epoch=whole(number, "an epoch")))
            case [number] if is_whole(number):
                return self._jump_to(self.operator, number)
            case [name, number]:
                return self._jump_to(self._known(name), number)
            case [name] if name in self.graph.ops:
                raise usage("jump", f"Expected how many tuples '{name}' has processed: jump {name} 42.")
            case [name]:
                return self._jump_to_interaction(name)
        raise usage("jump", f"Expected `{COMMANDS['jump'].usage}`, got `jump {rest}`.")

    def _jump_to(self, operator: str, number: str) -> PromptAnswer:
        moment = self.past.jump(operator, tuples=whole(number, "a number of tuples"))
        return self._go("jump", moment, operator)

    def _jump_to_interaction(self, name: str) -> PromptAnswer:
        known = {str(i.id): i for i in self.past.interactions}
        if name not in known:
            places = [*known, *self.graph.ops, "start", "end"]
            raise UnknownName(name, places, what="an interaction, or an operator and a number of tuples")
        chosen = known[name]
        operator = chosen.operator if chosen.operator in self.graph.ops else None
        return self._go("jump", self.past.jump(chosen.id), operator)

    def _over(self, rest: str) -> PromptAnswer:
        operator = self._one_operator("over", rest)
        return self._go("over", self.moment.step_over(operator), operator)

    def _into(self, rest: str) -> PromptAnswer:
        operator = self._one_operator("into", rest)
        inside = (*self.inside, operator)
        return self._go("into", self.moment.step_into(operator), operator, inside)

    def _out(self, rest: str) -> PromptAnswer:
        moment = self.moment.step_out()
        # The next tuple to step over is one of the operator that was stepped into, or else of the one around it.
        operator = next((op for op in reversed(self.inside) if moment.pending(op, 1)), None)
        return self._go("out", moment, operator, self.inside[:-1])

    def _back(self, rest: str) -> PromptAnswer:
        self.move_back()
        return self._here("back")

    def _when(self, rest: str) -> PromptAnswer:
        operator, predicate = self._operator_and_text("when", rest)
        moment = self.past.first(operator, predicate)
        return self._found("when", moment, operator, {"operator": operator, "predicate": predicate})

    def _changed(self, rest: str) -> PromptAnswer:
        operator, text = self._operator_and_text("changed", rest)
        key = literal(text)
        moment = self.moment.last_change(operator, key)
        return self._found("changed", moment, operator, {"operator": operator, "key": key})

    def _found(self, verb: str, moment: Moment | None, operator: str, asked: dict[str, Any]) -> PromptAnswer:
        if moment is None:
            self.operator = operator
            return PromptAnswer(verb, {"found": False, **asked})
        answer = self._go(verb, moment, operator)
        return PromptAnswer(verb, {"found": True, **asked, **answer.data}, moved=True)

    def _where(self, rest: str) -> PromptAnswer:
        return self._here("where")

    def _go(
        self, verb: str, moment: Moment, operator: str | None = None, inside: tuple[str, ...] = ()
    ) -> PromptAnswer:
        self.move(moment, operator, inside=inside, step=verb in STEPS)
        return self._here(verb)

    def _here(self, verb: str) -> PromptAnswer:
        changes = [change_data(c) for c in self.moment.changes]
        data = {"moment": self.where_data(), "last": self.step_data(), "changes": changes}
        return PromptAnswer(verb, data, moved=True)

    # --- looking ----------------------------------------------------------------------------------------------------

    def _last(self, rest: str) -> PromptAnswer:
        return PromptAnswer("last", {"last": self.step_data()})

    def _changes(self, rest: str) -> PromptAnswer:
        return PromptAnswer("changes", {"changes": [change_data(c) for c in self.moment.changes]})

    def _counters(self, rest: str) -> PromptAnswer:
        return PromptAnswer("counters", {"moment": self.where_data()})

    def _ops(self, rest: str) -> PromptAnswer:
        return PromptAnswer("ops", {"moment": self.where_data()})

    def _state(self, rest: str) -> PromptAnswer:
        given = words(rest)
        operator = self.operator
        if given and given[0].text in self.graph.ops:
            operator = given.pop(0).text
        states = self.moment.state(operator)
        self._seen[operator] = tuple(states)
        name = None
        if given and given[0].text not in ("search", "page"):
            name = given.pop(0).text
            if name not in states:
                known = [*states] if operator != self.operator else [*states, *self.graph.ops]
                raise UnknownName(name, known, what=f"a state of '{operator}'")
        search, page = search_and_page(rest, given)
        chosen = {name: states[name]} if name is not None else states
        size = PAGE if len(chosen) == 1 else SHOWN
        pages = [page_of(n, v, search=search, page=page, size=size) for n, v in chosen.items()]
        self.operator = operator
        return PromptAnswer("state", {"operator": operator, "search": search, "states": pages})

    def _pending(self, rest: str) -> PromptAnswer:
        operator = self._one_operator("pending", rest)
        rows = [t.row for t in self.moment.pending(operator, SHOWN)]
        waiting = max(self.waiting(operator, self.moment.counters), len(rows))
        self.operator = operator
        return PromptAnswer("pending", {"operator": operator, "waiting": waiting, "rows": rows})

    def _lines(self, rest: str) -> PromptAnswer:
        operator = self._one_operator("lines", rest)
        lines = [{**vars(line), "locals": dict(line.locals)} for line in self.moment.lines(operator)]
        self.operator = operator
        return PromptAnswer("lines", {"operator": operator, "lines": lines})

    def _interactions(self, rest: str) -> PromptAnswer:
        listed = []
        for interaction in self.past.interactions:
            cost = self.past.jump_cost(interaction)
            fields = ("id", "operator", "tuples", "epoch", "note", "at")
            data = {name: getattr(interaction, name) for name in fields}
            listed.append({**data, "seconds": cost.seconds, "bytes": cost.bytes})
        return PromptAnswer("interactions", {"interactions": listed})

    # --- asking -----------------------------------------------------------------------------------------------------

    def _why(self, rest: str) -> PromptAnswer:
        given = words(rest)
        sinks = [op.name for op in self.graph.sinks]
        if not given:
            raise usage("why", "Expected a sink and a row, or its number.")
        sink = given[0].text
        if sink not in sinks:
            raise UnknownName(sink, sinks, what="a sink of the run")
        text = rest[given[0].end :].strip()
        row = literal(text) if text else None
        if isinstance(row, bool) or not isinstance(row, int | dict):
            raise usage("why", f"Expected a row such as {{'customer': 'Bob'}} or its number, got `{text}`.")
        origins = [
            {"operator": origin.operator, "epoch": origin.epoch, "row": dict(origin.row)}
            for origin in self.past.why(sink, row)
        ]
        return PromptAnswer("why", {"sink": sink, "asked": row, "origins": origins})

    def _log(self, rest: str) -> PromptAnswer:
        operator, text = self._operator_and_text("log", rest)
        at = text.lower().rfind(" where ")
        expression, where = (text, None) if at < 0 else (text[:at].strip(), text[at + 7 :].strip())
        table = self.past.log(operator, expression, where=where)
        self.operator = operator
        head = table.slice(0, LOGGED)
        asked = {"operator": operator, "expression": expression, "where": where}
        return PromptAnswer("log", {**asked, "rows": table.num_rows, "head": head})

    def _fork(self, rest: str) -> PromptAnswer:
        from samovar.cli.named_workflows import load_operator

        changes = {}
        for word in words(rest):
            name, joined, named = word.text.partition("=")
            if not joined:
                raise usage("fork", f"Expected OP=file.py:Class, got `{word.text}`.")
            changes[self._known(name.strip("\"'"))] = load_operator(named.strip("\"'"))
        if not changes:
            raise usage("fork", "Expected an operator and its new class: fork FE=fixed.py:Enrichment.")
        run = self.moment.fork(changes)
        try:
            run.wait(progress=self._show_progress)
        except BaseException:
            run.stop()
            raise
        return PromptAnswer(
            "fork",
            {
                "run": run.id,
                "status": run.status,
                "recording": None if run.recording is None else str(run.recording),
                "operators": list(changes),
                "parent": str(self.past.path),
            },
        )

    def _help(self, rest: str) -> PromptAnswer:
        chosen = [find_command(w.text) for w in words(rest)[:1]] or list(COMMANDS.values())
        data = [{"name": c.name, "letter": c.letter, "usage": c.usage, "does": c.does} for c in chosen]
        return PromptAnswer("help", {"commands": data})

    # --- names ------------------------------------------------------------------------------------------------------

    def names(self) -> Names:
        """What completion may offer. Computes nothing with Spark."""
        return Names(
            list(self.graph.ops),
            [op.name for op in self.graph.sinks],
            [str(i.id) for i in self.past.interactions],
            self.operator,
            self._state_names,
        )

    def _state_names(self, operator: str) -> tuple[str, ...]:
        """State names as last seen; before that, those a class declares."""
        if operator not in self._seen:
            op = self.graph.ops.get(operator)
            self._seen[operator] = declared(op.code) if isinstance(op, ops.Python) else ()
        return self._seen[operator]

    def _known(self, name: str) -> str:
        if name not in self.graph.ops:
            raise UnknownName(name, self.graph.ops, what="an operator of the run")
        return name

    def _one_operator(self, verb: str, rest: str) -> str:
        given = words(rest)
        if not given:
            return self.operator
        if len(given) > 1:
            raise usage(verb, f"Expected one operator, got `{rest}`.")
        return self._known(given[0].text)

    def _operator_and_text(self, verb: str, rest: str) -> tuple[str, str]:
        """`OP TEXT` split; a text that does not start with an operator's name is about the operator used last."""
        given = words(rest)
        if not given:
            raise usage(verb, f"Expected `{COMMANDS[verb].usage}`.")
        first, text = given[0], rest[given[0].end :].strip()
        if first.text in self.graph.ops and text:
            return first.text, text
        if text and not first.quoted and first.text.isidentifier() and not parses(rest) and parses(text):
            raise UnknownName(first.text, self.graph.ops, what="an operator of the run")
        return self.operator, rest
