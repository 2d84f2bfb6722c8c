"""Arguments of the commands of `samovar debug`: numbers, literals, pages, errors that say how it is written. Pure."""

from __future__ import annotations

import ast
from typing import Any

from samovar.cli.debug.debug_words import COMMANDS, Word
from samovar.errors import SamovarError, TimeTravelError

__all__ = ["declared", "is_whole", "literal", "nothing_more", "parses", "search_and_page", "usage", "whole"]


def usage(verb: str, message: str) -> SamovarError:
    """An error that says how a command is written."""
    return TimeTravelError(message, hint=f"Usage: {COMMANDS[verb].usage}")


def nothing_more(verb: str, rest: str) -> None:
    """Raise when a command that takes no arguments was given some."""
    if rest:
        raise usage(verb, f"Expected nothing after `{verb}`, got `{rest}`.")


def is_whole(text: str) -> bool:
    """Whether a text is a whole number; 1,000 and 1_000 are."""
    return text.replace(",", "").replace("_", "").isdigit()


def whole(text: str, what: str) -> int:
    """A whole number. Raises TimeTravelError."""
    if not is_whole(text):
        raise TimeTravelError(f"Expected {what}, got '{text}'.", hint="Write a whole number, such as 42.")
    return int(text.replace(",", "").replace("_", ""))


def literal(text: str) -> Any:
    """A Python literal; anything else is the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def parses(text: str) -> bool:
    """Whether a text is a Python expression."""
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def search_and_page(rest: str, said: list[Word]) -> tuple[str | None, int]:
    """What follows the names in `state`: `search TEXT`, `page N`, in this order; TEXT may have several words."""
    page = 1
    if len(said) >= 2 and said[-2].text == "page" and not said[-2].quoted and is_whole(said[-1].text):
        page = whole(said[-1].text, "a page")
        said = said[:-2]
    if not said:
        return None, page
    if said[0].text != "search" or len(said) < 2:
        raise usage("state", f"Expected `search TEXT` or `page N`, got `{rest[said[0].start :]}`.")
    if len(said) == 2:
        return said[1].text, page
    return rest[said[1].start : said[-1].end], page


def declared(code: str) -> tuple[str, ...]:
    """The names of the states that a class declares, from its text."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return ()
    made = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            if called in ("MapState", "ValueState", "ListState"):
                made += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return tuple(made)
