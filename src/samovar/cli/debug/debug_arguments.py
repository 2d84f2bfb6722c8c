"""Arguments of the commands of `samovar debug`: numbers, literals, pages, and errors that show the usage. Pure."""

from __future__ import annotations

import ast
from typing import Any

from samovar.cli.debug.debug_words import COMMANDS, Word
from samovar.errors import SamovarError, TimeTravelError

__all__ = ["declared", "is_whole", "literal", "parses", "search_and_page", "usage", "whole"]


def usage(verb: str, message: str) -> SamovarError:
    """An error whose hint is the usage of a command."""
    return TimeTravelError(message, hint=f"Usage: {COMMANDS[verb].usage}")


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


def search_and_page(rest: str, given: list[Word]) -> tuple[str | None, int]:
    """What follows the names in `state`: `search TEXT`, `page N`, in this order; TEXT may have several words."""
    page = 1
    if len(given) >= 2 and given[-2].text == "page" and not given[-2].quoted and is_whole(given[-1].text):
        page = whole(given[-1].text, "a page")
        given = given[:-2]
    if not given:
        return None, page
    if given[0].text != "search" or len(given) < 2:
        raise usage("state", f"Expected `search TEXT` or `page N`, got `{rest[given[0].start :]}`.")
    if len(given) == 2:
        return given[1].text, page
    return rest[given[1].start : given[-1].end], page


def declared(code: str) -> tuple[str, ...]:
    """The names of the states that a class declares, from its text."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return ()
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            if called in ("MapState", "ValueState", "ListState"):
                names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return tuple(names)
