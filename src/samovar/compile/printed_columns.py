"""The printed form of a PySpark Column as a tree.

`str(column)` is a prefix form: `=(x, 'abc')`, `CASE WHEN >(x, 1) THEN 'q' END`, `sum(*(a, -(1, b))) AS s`,
`transform(arr, x_1 -> +(x_1, 1))`, `row_number() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST)`, with the
text of an `F.expr` in it as the user wrote it.

Guarantee: parsing never fails; text that is not of the printed form becomes a `Leaf`.
Not promised: that the tree is the Column's. The form is ambiguous; users of the tree have to verify.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "Call",
    "Case",
    "Cast",
    "Lambda",
    "Leaf",
    "Node",
    "Over",
    "PrintedAlias",
    "PrintedIndex",
    "PrintedSort",
    "parse_printed",
    "string_end",
]


@dataclass(frozen=True)
class Leaf:
    text: str


@dataclass(frozen=True)
class Call:
    name: str
    args: tuple[Node, ...]
    text: str


@dataclass(frozen=True)
class Case:
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None


@dataclass(frozen=True)
class Cast:
    keyword: str
    child: Node
    type: str


@dataclass(frozen=True)
class PrintedIndex:
    child: Node
    key: Node


@dataclass(frozen=True)
class Lambda:
    params: tuple[str, ...]
    body: Node


@dataclass(frozen=True)
class PrintedAlias:
    child: Node
    names: tuple[str, ...]


@dataclass(frozen=True)
class PrintedSort:
    child: Node
    order: str


@dataclass(frozen=True)
class Over:
    child: Node
    partition: tuple[Node, ...]
    order: tuple[Node, ...]
    frame: str


Node = Leaf | Call | Case | Cast | PrintedIndex | Lambda | PrintedAlias | PrintedSort | Over

_SORT = re.compile(r"(.+) ((?:ASC|DESC) NULLS (?:FIRST|LAST))\Z", re.DOTALL)
_CALL = re.compile(r"([^\s(),'\"`\[\]]+)\(")
_CAST = re.compile(r"(CAST|TRY_CAST)\(")
_LAMBDA = re.compile(r"(?:\(((?:\w+, )+\w+)\)|(\w+)) -> ")
_FRAME = re.compile(r" ?(ROWS|RANGE) BETWEEN (.+?) AND (.+)\Z", re.DOTALL)
_CASE_WORD = re.compile(r"(CASE|WHEN|THEN|ELSE|END)(?= |\Z)")


def string_end(text: str, start: int) -> int:
    """The place behind the string literal that begins at `start`."""
    place = start + 1
    while place < len(text) and text[place] != "'":
        place += 2 if text[place] == "\\" else 1
    return min(place + 1, len(text))


def _depths(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Each place of `text` outside strings and backticks, and how many brackets are open before it; a closing bracket
    counts as outside the brackets it closes."""
    place, depth = start, 0
    while place < len(text):
        char = text[place]
        if char == "'":
            place = string_end(text, place)
            continue
        if char == "`":
            end = text.find("`", place + 1)
            place = len(text) if end < 0 else end + 1
            continue
        depth -= char in ")]"
        yield place, depth
        depth += char in "(["
        place += 1


def _top_level(text: str) -> Iterator[int]:
    """The places of `text` outside strings, backticks and brackets (an opening bracket itself counts)."""
    return (place for place, depth in _depths(text) if depth == 0 and text[place] not in ")]")


def _closing(text: str, opening: int) -> int | None:
    """The place of the bracket that closes the one at `opening`."""
    return next(
        (place for place, depth in _depths(text, opening) if depth == 0 and text[place] in ")]"), None
    )


def _places(text: str, words: str) -> list[int]:
    """Where `words` stand in `text` outside strings, backticks and brackets."""
    return [place for place in _top_level(text) if text.startswith(words, place)]


def _split(text: str, separator: str) -> list[str]:
    places = _places(text, separator)
    bounds = [0, *(p + len(separator) for p in places)]
    return [text[a:b] for a, b in zip(bounds, [*places, len(text)], strict=True)]


def parse_printed(text: str) -> Node:
    """The tree of a printed Column; text that is not of the printed form becomes a leaf."""
    for read in (_parse_alias, _parse_sort, _parse_over, _parse_case, _parse_cast, _parse_call, _parse_index):
        node = read(text)
        if node is not None:
            return node
    return Leaf(text)


def _parse_alias(text: str) -> Node | None:
    places = _places(text, " AS ")
    if not places or places[-1] == 0:
        return None
    child, alias = text[: places[-1]], text[places[-1] + 4 :]
    several = alias.startswith("(") and alias.endswith(")")
    return PrintedAlias(parse_printed(child), tuple(alias[1:-1].split(", ")) if several else (alias,))


def _parse_sort(text: str) -> Node | None:
    matched = _SORT.match(text)
    return PrintedSort(parse_printed(matched.group(1)), matched.group(2)) if matched else None


def _parse_over(text: str) -> Node | None:
    place = next((p for p in _places(text, " OVER (") if p), None)
    if place is None or _closing(text, place + 6) != len(text) - 1:
        return None
    spec = text[place + 7 : -1]
    frame = ""
    for start in _top_level(spec):
        if (matched := _FRAME.match(spec, start)) and (start == 0 or spec[start] == " "):
            frame = f"{matched.group(1)} BETWEEN {_bound(matched.group(2))} AND {_bound(matched.group(3))}"
            spec = spec[:start]
            break
    partition: tuple[Node, ...] = ()
    order: tuple[Node, ...] = ()
    if ordered := _places(spec, "ORDER BY "):
        order = tuple(parse_printed(item) for item in _split(spec[ordered[0] + 9 :], ", "))
        spec = spec[: ordered[0]].rstrip()
    if spec.startswith("PARTITION BY "):
        partition = tuple(parse_printed(item) for item in _split(spec[13:], ", "))
    elif spec:
        return None
    return Over(parse_printed(text[:place]), partition, order, frame)


def _bound(text: str) -> str:
    # "-1 FOLLOWING" and not "1 PRECEDING", which Spark reads as a minus applied to 1: other semantics to it.
    named = ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", "CURRENT ROW")
    return text if text in named else f"{text} FOLLOWING"


def _parse_case(text: str) -> Node | None:
    if not (text.startswith("CASE WHEN ") and text.endswith(" END")):
        return None
    pieces: list[tuple[str, int, int]] = []
    level = 0
    for place in _top_level(text):
        if place and text[place - 1] != " ":
            continue
        matched = _CASE_WORD.match(text, place)
        if matched is None:
            continue
        word = matched.group(1)
        level += (word == "CASE") - (word == "END")
        if level == 0 and matched.end() != len(text):
            return None
        if (level == 1 and word in ("WHEN", "THEN", "ELSE")) or (level == 0 and word == "END"):
            pieces.append((word, place, matched.end()))
    if not pieces or pieces[-1][0] != "END":
        return None
    values = [
        (word, text[end + 1 : following[1] - 1]) for (word, _, end), following in itertools.pairwise(pieces)
    ]
    words = [word for word, _ in values]
    pairs = len(words) // 2
    if words not in (["WHEN", "THEN"] * pairs, [*["WHEN", "THEN"] * pairs, "ELSE"]):
        return None
    parts = [parse_printed(value) for _, value in values]
    branches = tuple(zip(parts[: 2 * pairs : 2], parts[1 : 2 * pairs : 2], strict=True))
    return Case(branches, parts[-1] if len(parts) % 2 else None)


def _parse_cast(text: str) -> Node | None:
    matched = _CAST.match(text)
    if matched is None or _closing(text, matched.end() - 1) != len(text) - 1:
        return None
    inner = text[matched.end() : -1]
    places = _places(inner, " AS ")
    if not places:
        return None
    return Cast(matched.group(1), parse_printed(inner[: places[-1]]), inner[places[-1] + 4 :])


def _parse_call(text: str) -> Node | None:
    matched = _CALL.match(text)
    if matched is None or _closing(text, matched.end() - 1) != len(text) - 1:
        return None
    inner = text[matched.end() : -1]
    args = tuple(_parse_argument(item) for item in _split(inner, ", ")) if inner else ()
    return Call(matched.group(1), args, text)


def _parse_argument(text: str) -> Node:
    matched = _LAMBDA.match(text)
    if matched is None:
        return parse_printed(text)
    params = tuple(matched.group(1).split(", ")) if matched.group(1) else (matched.group(2),)
    return Lambda(params, parse_printed(text[matched.end() :]))


def _parse_index(text: str) -> Node | None:
    if not text.endswith("]"):
        return None
    for place in reversed(_places(text, "[")):
        if place and _closing(text, place) == len(text) - 1:
            return PrintedIndex(parse_printed(text[:place]), parse_printed(text[place + 1 : -1]))
    return None
