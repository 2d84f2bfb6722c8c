"""The interpreter of `samovar attach`: live commands go to the run over its door, all others travel in its past.

A command that goes to a moment or asks about the past sees the epochs that are committed by then. The first such
command starts Spark in this process: time travel works while the run is paused and its tasks hold all slots of its
Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from samovar.cli.debug.debug_arguments import is_whole, literal, whole
from samovar.cli.debug.debug_interpreter import Debugger, PromptAnswer
from samovar.cli.debug.debug_place import Bookmark
from samovar.cli.debug.debug_values import PAGE, page_of
from samovar.cli.debug.debug_words import COMMANDS, Command, Names, Word, find_command, words
from samovar.cli.named_workflows import load_operator
from samovar.control.door import Visit
from samovar.errors import TimeTravelError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.replay.past import Past
from samovar.runtime import pickles

__all__ = ["LIVE", "Attached"]

LIVE = {
    c.name: c
    for c in (
        Command("status", "status", "the state of the run, what is held and reached"),
        Command("pause", "pause [aligned]", "stop the run now, or at the epoch's end"),
        Command("resume", "resume", "go on"),
        Command("wait", "wait [STATE ...]", "wait until it is paused or holding (or as named), or has ended"),
        Command("inspect", "inspect OP [NAME]", "a Python operator's state in the workers now"),
        Command("flight", "flight OP [N]", "tuples that workers have taken in and not finished"),
        Command("stats", "stats", "tuples, rates, work, state, queue and skew of every operator"),
        Command("break", "break OP CONDITION | tuples N | outputs N", "pause at such a tuple, or after N"),
        Command(
            "watch", "watch OP CONDITION", "mark each tuple that meets a condition (SQL), to jump to later"
        ),
        Command("unwatch", "unwatch NAME", "remove a breakpoint or a watch"),
        Command("breakpoints", "breakpoints", "the breakpoints that stand"),
        Command("interact", "interact OP [NOTE]", "mark this moment, to jump to later"),
        Command("held", "held", "the tuples that raised and wait, with traceback, locals and state"),
        Command("retry", "retry [COLUMN=VALUE ...]", "process the held tuple again, with other values"),
        Command("skip", "skip [all]", "skip the held tuple, or all that raise like it"),
        Command("modify", "modify OP=file.py:Class ...", "replace the logic of operators"),
        Command("fix", "fix OP=file.py:Class ...", "the same: the held tuple is met again with it"),
        Command("stop", "stop", "end the run; it can be resumed"),
    )
}
"""The live commands in the order `help` shows them."""
REMOTE = {c: c for c in ("status", "resume", "stop", "held", "breakpoints")} | {"stats": "statistics"}
"""Live commands without arguments, and what they are called in the run's process."""
ALWAYS_FRESH = ("jump", "when", "why", "log", "interactions")
"""Commands before which epochs that were committed meanwhile are looked for."""
FRESH_AT_FIRST = ("where", "state", "pending", "ops", "counters", "over", "into")
"""The same, as long as nothing was travelled to: afterwards they are about the moment that was travelled to."""


class Attached:
    """A run of another process and its past. As `Debugger`, for `Talk`."""

    failed = False

    def __init__(self, visit: Visit, graph: Graph, travel: Callable[[], Past]) -> None:
        self.visit = visit
        self.graph = graph
        working = [n for n, op in graph.ops.items() if not isinstance(op, ops.SOURCES)]
        self.operator = next(iter(working or graph.ops))
        self._travel = travel
        self._debugger: Debugger | None = None
        self._live: dict[str, Callable[[str, list[Word]], dict[str, Any]]] = {
            "pause": lambda rest, args: self._ask("pause", mode=args[0].text if args else "direct"),
            "wait": self._wait,
            "inspect": self._inspect,
            "flight": self._flight,
            "break": self._break,
            "watch": self._watch,
            "unwatch": lambda rest, args: self._ask("unwatch", name=rest),
            "interact": self._interact,
            "retry": self._retry,
            "skip": lambda rest, args: self._ask("skip", all_like_it=rest == "all"),
            "modify": self._modify,
            "fix": self._modify,
        }

    # --- as a debugger ----------------------------------------------------------------------------------------------

    @property
    def past(self) -> Past:
        """The past of the run, as of the last look."""
        return self.debugger.past

    @property
    def debugger(self) -> Debugger:
        """The debugger of the past. Starts Spark when it is first asked for."""
        if self._debugger is None:
            self._debugger = Debugger(self._travel())
        return self._debugger

    def mark(self) -> tuple[Debugger | None, Bookmark | None, str]:
        """The present place, to restore it."""
        debugger = self._debugger
        return debugger, None if debugger is None else debugger.mark(), self.operator

    def restore(self, mark: tuple[Debugger | None, Bookmark | None, str]) -> None:
        """Go back to a mark."""
        debugger, bookmark, self.operator = mark
        if debugger is not None and bookmark is not None:
            debugger.restore(bookmark)

    def names(self) -> Names:
        """The names that completion offers."""
        sinks = [op.name for op in self.graph.sinks]
        names = Names(list(self.graph.ops), sinks, [], self.operator, lambda _: ())
        if self._debugger is not None:
            names = self._debugger.names()
        return replace(names, commands=tuple(LIVE))

    def do(self, line: str) -> PromptAnswer:
        """Interpret one command. Raises SamovarError."""
        all_words = words(line)
        if not all_words:
            return PromptAnswer("status", self._ask("status"))
        rest = line[all_words[0].end :].strip()
        name = self._command_name(all_words[0].text)
        if name == "help":
            return self._help(rest)
        if name in REMOTE:
            return PromptAnswer(name, self._ask(REMOTE[name]))
        if name in LIVE:
            return PromptAnswer(name, self._live[name](rest, words(rest)))
        return self._go_back(name, line)

    def _command_name(self, word: str) -> str:
        lower = word.lower()
        if lower in LIVE:
            return lower
        try:
            return find_command(word).name
        except UnknownName:
            fitting = [n for n in LIVE if n.startswith(lower)]
            if len(fitting) == 1:
                return fitting[0]
            raise UnknownName(word, [*LIVE, *COMMANDS], what="a command") from None

    def _go_back(self, name: str, line: str) -> PromptAnswer:
        if name == "quit":
            return PromptAnswer("quit")
        debugger = self._debugger
        if debugger is not None:
            fresh = name in ALWAYS_FRESH or (name in FRESH_AT_FIRST and debugger.mark().moment is None)
            if fresh and len(debugger.past.history.epochs) > debugger.epochs:
                debugger.past.close()
                self._debugger = Debugger(self._travel())
                self._debugger.operator = debugger.operator
        answer = self.debugger.do(line)
        self.operator = self.debugger.operator
        return answer

    def _help(self, rest: str) -> PromptAnswer:
        commands: list[Command] = [*LIVE.values(), *COMMANDS.values()]
        if named := words(rest):
            name = self._command_name(named[0].text)
            commands = [LIVE[name] if name in LIVE else COMMANDS[name]]
        data = [{"name": c.name, "letter": c.letter, "usage": c.usage, "does": c.does} for c in commands]
        return PromptAnswer("help", {"commands": data})

    # --- live: the text after the command's name, and its words -----------------------------------------------------

    def _ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.visit.ask(command, **arguments)
        return answer

    def _wait(self, rest: str, args: list[Word]) -> dict[str, Any]:
        states = tuple(w.text for w in args) or ("paused", "holding")
        while True:
            answer = self._ask("wait", states=states)
            if answer.pop("waited"):
                return answer

    def _named_operator(self, args: list[Word], verb: str) -> str:
        if not args:
            raise TimeTravelError("Expected an operator, got none.", hint=f"Usage: {LIVE[verb].usage}")
        if args[0].text not in self.graph.ops:
            raise UnknownName(args[0].text, self.graph.ops, what="an operator of the run")
        self.operator = args[0].text
        return self.operator

    def _inspect(self, rest: str, args: list[Word]) -> dict[str, Any]:
        answer = self._ask("inspect", operator=self._named_operator(args, "inspect"))
        states = answer.pop("state")
        if len(args) > 1:
            if args[1].text not in states:
                raise UnknownName(args[1].text, states, what=f"a state of '{self.operator}'")
            states = {args[1].text: states[args[1].text]}
        size = PAGE if len(states) == 1 else 10
        return {**answer, "states": [page_of(n, v, size=size) for n, v in states.items()]}

    def _flight(self, rest: str, args: list[Word]) -> dict[str, Any]:
        operator = self._named_operator(args, "flight")
        limit = whole(args[1].text, "a number of tuples") if len(args) > 1 else 10
        return self._ask("in_flight", operator=operator, limit=limit)

    def _break(self, rest: str, args: list[Word]) -> dict[str, Any]:
        operator = self._named_operator(args, "break")
        where: dict[str, Any] = {"condition": self._condition(rest, args)}
        if len(args) == 3 and args[1].text in ("tuples", "outputs") and is_whole(args[2].text):
            where = {args[1].text: whole(args[2].text, "a number of tuples")}
        return {"operator": operator, **self._ask("break_at", operator=operator, **where), **where}

    def _watch(self, rest: str, args: list[Word]) -> dict[str, Any]:
        where = {"operator": self._named_operator(args, "watch"), "condition": self._condition(rest, args)}
        return {**where, **self._ask("watch", **where)}

    @staticmethod
    def _condition(rest: str, args: list[Word]) -> str:
        """The condition after the operator's name, with or without quotes around it."""
        return args[1].text if len(args) == 2 and args[1].quoted else rest[args[0].end :].strip()

    def _interact(self, rest: str, args: list[Word]) -> dict[str, Any]:
        operator = self._named_operator(args, "interact")
        note = rest[args[0].end :].strip()
        return {"operator": operator, **self._ask("interact", operator=operator, note=note)}

    def _retry(self, rest: str, args: list[Word]) -> dict[str, Any]:
        row = {}
        for word in args:
            name, joined, value = word.text.partition("=")
            if not joined:
                raise TimeTravelError(f"Expected COLUMN=VALUE, got `{word.text}`.")
            row[name] = literal(value)
        return self._ask("retry", row=row or None)

    def _modify(self, rest: str, args: list[Word]) -> dict[str, Any]:
        changes = {}
        for word in args:
            operator, joined, class_name = (part.strip("\"'") for part in word.text.partition("="))
            if not joined or operator not in self.graph.ops:
                raise TimeTravelError(f"Expected OP=file.py:Class, got `{word.text}`.")
            changes[operator] = pickles.by_value(load_operator(class_name), operator)
        return self._ask("modify", changes=changes)
