"""The language of `samovar debug`: its commands, how a line is split into words, and completion. Pure.

A line is a command and its arguments. Commands may be shortened to any beginning that only one of them has, and the
common ones to a letter. Names with spaces go in quotes. Several commands on a line are separated by `;`, and what
follows a `#` at the start of a word is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from samovar.errors import TimeTravelError, UnknownName

__all__ = ["COMMANDS", "Command", "Names", "Word", "completions", "find_command", "split_commands", "words"]


@dataclass(frozen=True)
class Command:
    """A command: how it is written, and what it does. `letter` is its short form."""

    name: str
    usage: str
    does: str
    letter: str = ""


COMMANDS: dict[str, Command] = {
    c.name: c
    for c in (
        Command("jump", "jump OP N | epoch N | I3 | start | end", "go to a moment", "j"),
        Command("over", "over [OP]", "process the operator's next tuple and all that comes of it", "o"),
        Command("into", "into [OP]", "process the operator's next tuple; its outputs wait downstream", "i"),
        Command("out", "out", "finish the scope of the tuple that was stepped into last", "u"),
        Command("back", "back", "undo the last step; after a jump, go back by one tuple", "b"),
        Command("when", "when [OP] PREDICATE", "go to the first moment where it holds"),
        Command("changed", "changed [OP] KEY", "go back to where a key of the state was changed last"),
        Command("where", "where", "draw this moment again", "w"),
        Command("state", "state [OP] [NAME] [search TEXT] [page N]", "an operator's state here", "s"),
        Command("pending", "pending [OP]", "the tuples that wait at an operator", "p"),
        Command("last", "last", "the step that led here: its row, what it gave, what it changed", "l"),
        Command("changes", "changes", "what changed in all states since the moment before", "c"),
        Command("lines", "lines [OP]", "the lines an operator ran for its last tuple, with their locals"),
        Command("counters", "counters", "what every operator has taken and given up to here"),
        Command("ops", "ops", "the workflow, with what each operator does"),
        Command("interactions", "interactions", "the interactions of the run, to jump to"),
        Command("why", "why SINK ROW|NUMBER", "the tuples that led to a row of a sink"),
        Command("log", "log [OP] EXPR [where CONDITION]", "an expression over every tuple of an operator"),
        Command("fork", "fork OP=file.py:Class ...", "a new run from here with other operators"),
        Command("help", "help [COMMAND]", "this list, or more about one command", "h"),
        Command("quit", "quit", "leave (Ctrl-D does, too)", "q"),
    )
}
"""The commands in the order `help` shows them."""

_LETTERS = {c.letter: c.name for c in COMMANDS.values() if c.letter} | {"?": "help", "exit": "quit"}
_WORD = re.compile(r""""(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>(?:"[^"]*"|'[^']*'|\S)+)""")
_PIECE = re.compile(r""""[^"]*"|'[^']*'|.""")
"""A quoted text, or a character: a quote without its partner is a character as any other."""


@dataclass(frozen=True)
class Word:
    """A word of a line, and where in the line it starts and ends."""

    text: str
    start: int
    end: int
    quoted: bool = False


def words(line: str) -> list[Word]:
    """The words of a line. A quoted text that stands alone is one word, without its quotes."""
    split = []
    for match in _WORD.finditer(line):
        inner = match["double"] if match["double"] is not None else match["single"]
        split.append(
            Word(match[0] if inner is None else inner, match.start(), match.end(), inner is not None)
        )
    return split


def find_command(word: str) -> Command:
    """The command a word stands for. Raises UnknownName, or TimeTravelError when it stands for several."""
    wanted = word.lower()
    if wanted in COMMANDS:
        return COMMANDS[wanted]
    if wanted in _LETTERS:
        return COMMANDS[_LETTERS[wanted]]
    fitting = [c for c in COMMANDS.values() if c.name.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(c.name for c in fitting)
        raise TimeTravelError(
            f"'{word}' stands for several commands: {names}.", hint="Type more letters of it."
        )
    raise UnknownName(word, COMMANDS, what="a command")


def split_commands(text: str) -> list[str]:
    """The commands of a text: one a line, or several separated by `;` outside of quotes and brackets."""
    commands: list[str] = []
    for line in text.splitlines():
        depth, current = 0, ""
        for piece in _PIECE.findall(line):
            if piece.startswith("#") and not current[-1:].strip():
                break
            depth = max(0, depth + (piece in "([{") - (piece in ")]}"))
            if piece == ";" and depth == 0:
                commands.append(current)
                current = ""
            else:
                current += piece
        commands.append(current)
    return [command.strip() for command in commands if command.strip()]


# --- completion -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """What can be named: `states` returns an operator's state names without computing anything."""

    operators: Sequence[str]
    sinks: Sequence[str]
    interactions: Sequence[str]
    current: str
    states: Callable[[str], Sequence[str]]
    commands: Sequence[str] = ()
    """Commands beside those of time travel; after them an operator is named."""


def completions(before: str, names: Names) -> list[str]:
    """What the word at the end of a text may be completed to, best first."""
    text = before.rpartition(";")[2].lstrip() if "'" not in before and '"' not in before else before.lstrip()
    given = words(text)
    typed = "" if not given or text[-1:].isspace() else given.pop().text
    if not given:
        return _beginning(typed, [*COMMANDS, *names.commands])
    if given[0].text in names.commands:
        return _beginning(typed, names.operators if len(given) == 1 else [])
    try:
        command = find_command(given[0].text).name
    except (TimeTravelError, UnknownName):
        return []
    return _beginning(typed, _next_words(command, [w.text for w in given[1:]], names))


def _beginning(typed: str, choices: Iterable[str]) -> list[str]:
    low = typed.lower().lstrip("\"'")
    fitting = [c for c in dict.fromkeys(choices) if c.lower().startswith(low)]
    return [f'"{c}"' if " " in c else c for c in fitting]


def _next_words(command: str, given: list[str], names: Names) -> list[str]:
    operator = given[0] if given and given[0] in names.operators else names.current
    named = bool(given) and given[0] in names.operators
    states = [*names.states(operator)]
    match command, len(given):
        case "jump", 0:
            return [*names.operators, *names.interactions, "epoch", "start", "end"]
        case "over" | "into" | "pending" | "lines" | "log", 0:
            return [*names.operators]
        case "log", _:
            return ["where"]
        case "when" | "changed", 0:
            return [*names.operators, *states]
        case "when", _:
            return states
        case "state", 0:
            return [*names.operators, *states, "search", "page"]
        case "state", n if n == 1 and named:
            return [*states, "search", "page"]
        case "state", _:
            return ["search", "page"]
        case "why", 0:
            return [*names.sinks]
        case "fork", _:
            return [f"{op}=" for op in names.operators]
        case "help", 0:
            return [*COMMANDS]
        case _:
            return []
