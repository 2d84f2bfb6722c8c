"""What is read off a dependence that is a function: it may only ever spare questions whose answer is no."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from operator import itemgetter
from random import Random
from typing import Any

import pytest

from samovar.diff import DependenceProblem, Matcher
from samovar.diff.matcher.symbolic import agreeing

LIMIT = 5
NAMES = {1: "one", 4: "four"}
by_key = itemgetter("key")


def _chained(a: Any, b: Any) -> Any:
    if a["kind"] != b["kind"]:
        return False
    return a["key"] == b["key"] and 1 < a["n"] < 9 and 1 < b["n"] < 9


def _either(a: Any, b: Any) -> Any:
    if a["mark"] and b["mark"]:
        return a["key"] == b["key"] and a["n"] == b["n"]
    return False if a["mark"] or b["mark"] else b["key"] == a["key"]


def _kind(event: Any) -> Any:
    try:  # not read: a function of one event need not be
        return [k for k in ("a", "b") if k < str(event["kind"])]
    except KeyError:
        return None


def _both(a: Any, b: Any) -> Any:
    first, second = by_key(a), by_key(b)
    return first == second and str(_kind(a)) == str(_kind(b))


def _same(name: str) -> Callable[[Any, Any], Any]:
    return lambda a, b, other="n": a[name] == b[name] and a[other] == b[other]


READABLE: list[tuple[Callable[[Any, Any], Any], tuple[str, ...]]] = [
    (lambda a, b: a["key"] == b["key"], ("key",)),
    (lambda a, b: a["key"] == b["key"] and a["n"] == b["n"], ("key", "n")),
    (lambda a, b: a[0] == b[0], ("0",)),
    (lambda a, b: not a["mark"] and not b["mark"] and a["key"] == b["key"], ("key",)),
    (_chained, ("key",)),
    (_either, ("key",)),
    (lambda a, b: by_key(a) == by_key(b), (f"call({by_key}, event)",)),
    (lambda a, b: str(a["n"]) == str(b["n"]), ("call(str, n)",)),
    (lambda a, b: a["n"] < LIMIT and a["key"] == b["key"] and b["n"] < LIMIT, ("key",)),
    (lambda a, b: a["n"] // 3 + LIMIT == b["n"] // 3 + LIMIT, ("add(floordiv(n, 3), 5)",)),
    (lambda a, b: (a["key"], -a["n"]) == (b["key"], -b["n"]), ("key", "neg(n)")),
    (lambda a, b: a.get("key") == b.get("key"), ("call(attr(event, 'get'), 'key')",)),
    (lambda a, b: NAMES[a["n"]] == NAMES[b["n"]], (f"item({NAMES}, n)",)),
    (lambda a, b: math.hypot(a["n"], 2) == math.hypot(b["n"], 2), ("call(hypot, n, 2)",)),
    (lambda a, b: bool(_either(a, b)) and by_key(b) == by_key(a), (f"call({by_key}, event)", "key")),
    (_both, (f"call({by_key}, event)", "call(str, call(_kind, event))")),
    (_same("key"), ("key", "n")),
    (lambda a, b: a["key"] in (1, 1.5, "1") and a["key"] == b["key"], ("key",)),
    (lambda a, b: a["n"] in {1, 9} and b["n"] not in {4, 9} and a["key"] == b["key"], ("key",)),
    (lambda a, b: a["key"] in (b["key"],), ("key",)),
    (lambda a, b: "key" in a and a["n"] in NAMES and a["key"] == b["key"], ("key",)),
    (lambda a, b: not (a["n"] in (1, 2) or b["n"] in (1, 2)) and b["key"] in (a["key"],), ("key",)),
]
UNREADABLE: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a["key"] == b["key"] or a["mark"],
    lambda a, b: a["key"] == b["n"],
    lambda a, b: a["key"] != b["key"],
    lambda a, b: a["key"] is b["key"],
    lambda a, b: not (a["key"] == b["key"] and a["n"] == b["n"]),
    lambda a, b: a["key"] is None or a["key"] == b["key"],
    lambda a, b: a["key"] in (b["key"], b["n"]),
    lambda a, b: a["key"] not in (b["key"],),
    lambda a, b: a["key"] in {b["key"]},
    lambda a, b: a["n"] in {1, 9} or a["key"] == b["key"],
    lambda a, b: a["key"] in b["kind"],
    lambda a, b: a in (b,),
    lambda a, b: a["key"] == a["key"],
    lambda a, b: (a["key"] == b["key"]) == True or a["n"] == b["n"],  # noqa: E712
    lambda a, b: "%s" % a["key"] == "%s" % b["key"],  # noqa: UP031
    lambda a, b: f"{a['key']}" == f"{b['key']}",
    lambda a, b: all(a[c] == b[c] for c in ("key", "n")),
    lambda a, b: a["key"] + b["n"] == b["key"] + a["n"],
    lambda a, b: max(a["n"], b["n"]) == max(b["n"], a["n"]),
    lambda a, b: str(a["key"]) == repr(b["key"]),
    lambda a, b: _kind(a) == _kind(b) if LIMIT else True,
    lambda a, b: not str(a["key"] == b["key"]),
    lambda a, b: round(a["n"], 1) == round(b["n"], 2),
    lambda a, b: True,
]


@pytest.mark.parametrize(("function", "columns"), READABLE)
def test_values_that_dependent_events_share_are_found(function: Any, columns: tuple[str, ...]) -> None:
    assert tuple(map(str, agreeing(function))) == columns


@pytest.mark.parametrize("function", UNREADABLE)
def test_where_that_is_not_clear_nothing_is_said(function: Any) -> None:
    assert agreeing(function) == ()


def test_what_is_no_plain_function_is_not_read() -> None:
    class Same:
        def __call__(self, a: Any, b: Any) -> bool:
            return bool(a["key"] == b["key"])

    assert agreeing(Same()) == ()
    assert agreeing(lambda a, b, *, key="key": a[key] == b[key]) == ()  # type: ignore[misc]


class Asked:
    """The same function in a form that is not read."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, a: Any, b: Any) -> Any:
        return self._function(a, b)


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
        asked, read = Matcher(depends=Asked(function)), Matcher(depends=function)
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
