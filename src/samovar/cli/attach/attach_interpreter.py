"""The interpreter of `samovar attach`: live commands go to the run over its door, all others travel in its past.

What is committed while one looks on is there to travel in: a command that goes to a moment or asks about the past sees
the epochs committed by then. Spark is started with the first command that needs it, in this process: time travel works
while the run is paused and its own Spark is full.
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
        Command("status", "status", "how the run is, what is held and reached"),
        Command("pause", "pause [aligned]", "stop the run now, or at the epoch's end"),
        Command("resume", "resume", "go on"),
        Command("wait", "wait [STATE ...]", "wait until it is paused or holding (or as named), or has ended"),
        Command("inspect", "inspect OP [NAME]", "a Python operator's state in the workers now"),
        Command("flight", "flight OP [N]", "tuples that workers have taken in and not finished"),
        Command("stats", "stats", "tuples, rates, work, state, queue and skew of every operator"),
        Command("break", "break OP CONDITION | tuples N | outputs N", "pause where it is so"),
        Command(
            "watch", "watch OP CONDITION", "mark each tuple that meets a condition (SQL), to jump to later"
        ),
        Command("unwatch", "unwatch NAME", "remove a breakpoint or a watch"),
        Command("breakpoints", "breakpoints", "the breakpoints that stand"),
        Command("interact", "interact OP [NOTE]", "mark this moment, to jump to later"),
        Command("held", "held", "the tuples that raised and wait, with traceback, locals and state"),
        Command("retry", "retry [COLUMN=VALUE ...]", "process the held tuple again, with other values"),
        Command("skip", "skip [all]", "leave the held tuple out, or all that raise like it"),
        Command("modify", "modify OP=file.py:Class ...", "give operators other logic"),
        Command("fix", "fix OP=file.py:Class ...", "the same: the held tuple is met again with it"),
        Command("stop", "stop", "end the run; it can be resumed"),
    )
}
"""The live commands in the order `help` shows them."""
FRESH = (
    "jump",
    "when",
    "why",
    "log",
    "interactions",
    "where",
    "state",
    "pending",
    "ops",
    "counters",
    "over",
    "into",
)
"""Commands before which epochs committed meanwhile are looked for, if nothing was travelled to yet (`jump`: always)."""


class Attached:
    """A run of another process and its past. As `Debugger`, for `Talk`."""

    def __init__(self, visit: Visit, graph: Graph, travel: Callable[[], Past]) -> None:
        self.visit = visit
        self.graph = graph
        working = [n for n, op in graph.ops.items() if not isinstance(op, ops.SOURCES)]
        self.operator = next(iter(working or graph.ops))
        self._travel = travel
        self._debugger: Debugger | None = None
        self._does: dict[str, Callable[[str, list[Word]], PromptAnswer]] = {
            "status": lambda rest, said: self._live("status"),
            "pause": lambda rest, said: self._live("pause", mode=said[0].text if said else "direct"),
            "resume": lambda rest, said: self._live("resume"),
            "stop": lambda rest, said: self._live("stop"),
            "wait": self._wait,
            "inspect": self._inspect,
            "flight": self._flight,
            "stats": lambda rest, said: PromptAnswer("stats", self._ask("statistics")),
            "break": self._break,
            "watch": self._watch,
            "unwatch": lambda rest, said: self._live("unwatch", name=rest),
            "breakpoints": lambda rest, said: PromptAnswer("breakpoints", self._ask("breakpoints")),
            "interact": self._interact,
            "held": lambda rest, said: PromptAnswer("held", self._ask("held")),
            "retry": self._retry,
            "skip": lambda rest, said: self._live("skip", all_like_it=rest == "all"),
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
        """Where time travel is. Starts Spark when it is first asked for."""
        if self._debugger is None:
            self._debugger = Debugger(self._travel())
        return self._debugger

    @property
    def failed(self) -> bool:
        return False

    def mark(self) -> tuple[Debugger | None, Bookmark | None, str]:
        """Where this is now."""
        made = self._debugger
        return made, None if made is None else made.mark(), self.operator

    def restore(self, mark: tuple[Debugger | None, Bookmark | None, str]) -> None:
        """Go back to a mark."""
        made, at, self.operator = mark
        if made is not None and at is not None:
            made.restore(at)

    def names(self) -> Names:
        """What completion may offer."""
        sinks = [op.name for op in self.graph.sinks]
        made = Names(list(self.graph.ops), sinks, [], self.operator, lambda _: ())
        if self._debugger is not None:
            made = self._debugger.names()
        return replace(made, commands=tuple(LIVE))

    def do(self, line: str) -> PromptAnswer:
        """Interpret one command. Raises SamovarError."""
        said = words(line)
        if not said:
            return PromptAnswer("status", self._ask("status"))
        rest = line[said[0].end :].strip()
        name = self._named(said[0].text)
        if name == "help":
            return self._help(rest)
        if name in LIVE:
            return self._does[name](rest, words(rest))
        return self._go_back(name, line)

    def _named(self, word: str) -> str:
        wanted = word.lower()
        if wanted in LIVE:
            return wanted
        try:
            return find_command(word).name
        except UnknownName:
            fitting = [n for n in LIVE if n.startswith(wanted)]
            if len(fitting) == 1:
                return fitting[0]
            raise UnknownName(word, [*LIVE, *COMMANDS], what="a command") from None

    def _go_back(self, name: str, line: str) -> PromptAnswer:
        if name == "quit":
            return PromptAnswer("quit")
        made = self._debugger
        if made is not None and name in FRESH and (name in FRESH[:5] or made.mark().moment is None):
            known = made.past
            if len(known.history.epochs) > made.epochs:  # the log has more than was known when it was opened
                at = made.operator
                known.close()
                self._debugger = Debugger(self._travel())
                self._debugger.operator = at
        answer = self.debugger.do(line)
        self.operator = self.debugger.operator
        return answer

    def _help(self, rest: str) -> PromptAnswer:
        said = words(rest)
        chosen: list[Command] = [*LIVE.values(), *COMMANDS.values()]
        if said:
            name = self._named(said[0].text)
            chosen = [LIVE[name] if name in LIVE else COMMANDS[name]]
        data = [{"name": c.name, "letter": c.letter, "usage": c.usage, "does": c.does} for c in chosen]
        return PromptAnswer("help", {"commands": data})

    # --- live -------------------------------------------------------------------------------------------------------

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.visit.ask(do, **arguments)
        return answer

    def _live(self, do: str, **arguments: Any) -> PromptAnswer:
        return PromptAnswer(do, self._ask(do, **arguments))

    def _wait(self, rest: str, said: list[Word]) -> PromptAnswer:
        states = tuple(w.text for w in said) or ("paused", "holding")
        while True:
            found = self._ask("wait", states=states)
            if found.pop("waited"):
                return PromptAnswer("wait", found)

    def _known(self, said: list[Word], verb: str) -> str:
        if not said:
            raise TimeTravelError("Expected an operator, got none.", hint=f"Usage: {LIVE[verb].usage}")
        if said[0].text not in self.graph.ops:
            raise UnknownName(said[0].text, self.graph.ops, what="an operator of the run")
        self.operator = said[0].text
        return self.operator

    def _inspect(self, rest: str, said: list[Word]) -> PromptAnswer:
        found = self._ask("inspect", operator=self._known(said, "inspect"))
        states = found.pop("state")
        if len(said) > 1:
            if said[1].text not in states:
                raise UnknownName(said[1].text, states, what=f"a state of '{self.operator}'")
            states = {said[1].text: states[said[1].text]}
        size = PAGE if len(states) == 1 else 10
        return PromptAnswer(
            "inspect", {**found, "states": [page_of(n, v, size=size) for n, v in states.items()]}
        )

    def _flight(self, rest: str, said: list[Word]) -> PromptAnswer:
        operator = self._known(said, "flight")
        limit = whole(said[1].text, "a number of tuples") if len(said) > 1 else 10
        return PromptAnswer("flight", self._ask("in_flight", operator=operator, limit=limit))

    def _break(self, rest: str, said: list[Word]) -> PromptAnswer:
        operator = self._known(said, "break")
        if len(said) == 3 and said[1].text in ("tuples", "outputs") and is_whole(said[2].text):
            how: dict[str, Any] = {said[1].text: whole(said[2].text, "a number of tuples")}
        else:
            how = {"condition": self._condition(rest, said)}
        return PromptAnswer(
            "break", {"operator": operator, **self._ask("break_at", operator=operator, **how), **how}
        )

    def _watch(self, rest: str, said: list[Word]) -> PromptAnswer:
        how = {"operator": self._known(said, "watch"), "condition": self._condition(rest, said)}
        return PromptAnswer("watch", {**how, **self._ask("watch", **how)})

    @staticmethod
    def _condition(rest: str, said: list[Word]) -> str:
        """The condition behind the operator's name, with or without quotes around it."""
        return said[1].text if len(said) == 2 and said[1].quoted else rest[said[0].end :].strip()

    def _interact(self, rest: str, said: list[Word]) -> PromptAnswer:
        operator = self._known(said, "interact")
        found = self._ask("interact", operator=operator, note=rest[said[0].end :].strip())
        return PromptAnswer("interact", {"operator": operator, **found})

    def _retry(self, rest: str, said: list[Word]) -> PromptAnswer:
        row = {}
        for word in said:
            name, joined, value = word.text.partition("=")
            if not joined:
                raise TimeTravelError(f"Expected COLUMN=VALUE, got `{word.text}`.")
            row[name] = literal(value)
        return self._live("retry", row=row or None)

    def _modify(self, rest: str, said: list[Word]) -> PromptAnswer:
        changes = {}
        for word in said:
            name, joined, named = word.text.partition("=")
            if not joined or name.strip("\"'") not in self.graph.ops:
                raise TimeTravelError(f"Expected OP=file.py:Class, got `{word.text}`.")
            operator = name.strip("\"'")
            changes[operator] = pickles.by_value(load_operator(named.strip("\"'")), operator)
        return self._live("modify", changes=changes)
