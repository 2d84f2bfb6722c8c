"""What is read off a dependence that is a function: it may only ever spare questions whose answer is no."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest

from samovar.diff import DependenceProblem, Matcher
from samovar.diff.reading import agreeing_columns

LIMIT = 5


def _chained(a: Any, b: Any) -> Any:
    if a["kind"] != b["kind"]:
        return False
    return a["key"] == b["key"] and 1 < a["n"] < 9 and 1 < b["n"] < 9


def _either(a: Any, b: Any) -> Any:
    if a["mark"] and b["mark"]:
        return a["key"] == b["key"] and a["n"] == b["n"]
    return False if a["mark"] or b["mark"] else b["key"] == a["key"]


READABLE: list[tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = [
    (lambda a, b: a["key"] == b["key"], ("key",)),
    (lambda a, b: a["key"] == b["key"] and a["n"] == b["n"], ("key", "n")),
    (lambda a, b: a[0] == b[0], (0,)),
    (lambda a, b: not a["mark"] and not b["mark"] and a["key"] == b["key"], ("key",)),
    (_chained, ("key",)),
    (_either, ("key",)),
]
UNREADABLE: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a["key"] == b["key"] or a["mark"],
    lambda a, b: a["key"] == b["n"],
    lambda a, b: a["key"] != b["key"],
    lambda a, b: a["key"] is b["key"],
    lambda a, b: not (a["key"] == b["key"] and a["n"] == b["n"]),
    lambda a, b: a["key"] is None or a["key"] == b["key"],
    lambda a, b: a["key"] in (1, 2) and a["key"] == b["key"],
    lambda a, b: len(a) == len(b),
    lambda a, b: a["n"] < LIMIT and a["key"] == b["key"],
    lambda a, b: a["key"] == a["key"],
    lambda a, b: True,
]


@pytest.mark.parametrize(("function", "columns"), READABLE)
def test_columns_that_dependent_events_share_are_found(function: Any, columns: tuple[Any, ...]) -> None:
    assert agreeing_columns(function) == columns


@pytest.mark.parametrize("function", UNREADABLE)
def test_where_that_is_not_clear_nothing_is_said(function: Any) -> None:
    assert agreeing_columns(function) == ()


def test_what_is_no_plain_function_is_not_read() -> None:
    class Same:
        def __call__(self, a: Any, b: Any) -> bool:
            return bool(a["key"] == b["key"])

    column = "key"
    assert agreeing_columns(Same()) == ()
    assert agreeing_columns(lambda a, b: a[column] == b[column]) == ()


EVENTS = [
    {"key": k, "n": n, "mark": m, "kind": "one"}
    for k, n, m in product((1, 1.0, None, float("nan"), "1", [1]), (1, 4), (False, True))
]


@pytest.mark.parametrize("number", range(len(READABLE)))
def test_the_verdict_is_that_of_the_function_asked_about_all(number: int) -> None:
    function = READABLE[number][0]
    random = Random(number)
    differences = 0
    for _ in range(120):
        chosen = random.choices(EVENTS, k=8)
        if number == 2:
            chosen = [(e["key"], e["n"]) for e in chosen]
        streams = {"left": list(chosen), "right": random.sample(chosen, len(chosen))}
        asked, read = (
            Matcher(depends=lambda a, b, f=function: f(a, b)),  # a default argument: not read
            Matcher(depends=function),
        )
        sides = random.sample(["left", "right"] * len(chosen), 2 * len(chosen))
        for side in sides:
            event = streams[side].pop(0)
            assert (asked.push(side, event) is None) == (read.push(side, event) is None)  # type: ignore[arg-type]
            if read.verdict is not None:
                differences += 1
                assert asked.verdict is not None
                assert (read.verdict.side, read.verdict.position, read.verdict.against_position) == (
                    asked.verdict.side,
                    asked.verdict.position,
                    asked.verdict.against_position,
                )
                break
    assert differences > 5


def test_a_column_that_is_missing_is_told_with_the_pair() -> None:
    matcher = Matcher(depends=lambda a, b: a["key"] == b["key"])
    with pytest.raises(DependenceProblem, match="KeyError"):
        matcher.push("left", {"kye": 1})


def test_events_without_the_column_may_stand_beside_others() -> None:
    matcher = Matcher(depends=lambda a, b: a["kind"] == "x" and b["kind"] == "x" and a["key"] == b["key"])
    events = [{"kind": "x", "key": 1}, {"kind": "y"}, {"kind": "x", "key": 2}, {"kind": "y"}]
    for side, order in (("left", events), ("right", events[::-1])):
        for event in order:
            assert matcher.push(side, event) is None  # type: ignore[arg-type]
    assert matcher.close().equivalent
