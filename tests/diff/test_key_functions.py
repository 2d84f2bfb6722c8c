"""`keyed(by=function)`: the verdict of the function of two events that compares keys, but no pair is asked about."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from operator import itemgetter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from samovar.diff import DependenceProblem, Matcher, equality, independent, keyed, synchronised
from samovar.diff.event_values import canonical
from samovar.diff.matcher import indexes

NAMES = {1: "one", 4: "four"}


def _kind(event: Any) -> Any:
    try:
        return [k for k in ("a", "p") if k < str(event["kind"])]
    except KeyError:
        return None


KEYS: list[Callable[[Any], Any]] = [
    itemgetter("key"),
    lambda e: (e["key"], -e["n"]),
    lambda e: str(e["n"]),
    lambda e: e["n"] // 3,
    lambda e: e.get("key"),
    lambda e: NAMES[e["n"]],
    lambda e: math.hypot(e["n"], 2),
    lambda e: e["key"] if e["mark"] else None,
    _kind,
]
EVENTS = [
    {"key": k, "n": n, "mark": m, "kind": "one"}
    for k, n, m in product((1, 1.0, None, float("nan"), "1", [1], -1, -2), (1, 4), (False, True))
]


def _place(matcher: Matcher) -> Any:
    verdict = matcher.verdict
    return None if verdict is None else (verdict.side, verdict.position, verdict.against_position)


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_the_verdict_is_that_of_a_function_of_two_events(number: int) -> None:
    key = KEYS[number]
    random = Random(number)
    differences = 0
    for _ in range(120):
        chosen = random.choices(EVENTS, k=8)
        streams = {"left": list(chosen), "right": random.sample(chosen, len(chosen))}
        asked = Matcher(depends=lambda a, b: canonical(key(a)) == canonical(key(b)))
        matcher = Matcher(depends=keyed(by=key))
        for side in random.sample(["left", "right"] * len(chosen), 2 * len(chosen)):
            event = streams[side].pop(0)
            asked.push(side, event)  # type: ignore[arg-type]
            matcher.push(side, event)  # type: ignore[arg-type]
            assert _place(matcher) == _place(asked)
            if matcher.verdict is not None:
                differences += 1
                break
    assert differences > 5


def test_batches_have_the_verdict_of_single_events() -> None:
    random = Random(7)
    differences = 0
    for _ in range(60):
        rows = [{"key": random.randrange(-3, 3), "n": random.randrange(4)} for _ in range(30)]
        order = list(range(30))
        i = random.randrange(29)
        order[i], order[i + 1] = order[i + 1], order[i]
        depends = keyed(by=lambda e: e["key"] // 2) | synchronised(independent, by={"n": 0})
        single, batches = Matcher(depends=depends), Matcher(depends=depends)
        for side, given in (("left", rows), ("right", [rows[i] for i in order])):
            for row in given:
                single.push(side, row)  # type: ignore[arg-type]
            for start in (0, 10, 20):
                batches.push_batch(side, pa.Table.from_pylist(given[start : start + 10]))  # type: ignore[arg-type]
        assert _place(batches) == _place(single)
        assert batches.close().equivalent == single.close().equivalent
        differences += not batches.close().equivalent
    assert 5 < differences < 55


def test_the_error_shows_the_event_on_which_the_function_raised() -> None:
    with pytest.raises(
        DependenceProblem, match=r"key function of the dependence raised KeyError: 'key'"
    ) as raised:
        Matcher(depends=keyed(by=itemgetter("key"))).push("left", {"kye": 1})
    assert raised.value.events == ({"kye": 1},)


def test_a_function_that_looks_at_a_column_not_compared_is_found_out() -> None:
    matcher = Matcher(depends=keyed(by=itemgetter("at")), equal=equality(columns=["taxi"]))
    matcher.push_batch("left", pa.table({"taxi": ["a"], "at": [1]}))
    with pytest.raises(DependenceProblem, match="fits the equality"):
        matcher.push_batch("right", pa.table({"taxi": ["a"], "at": [2]}))


@pytest.mark.parametrize("arguments", [(("city",), len), ((), "city")])
def test_a_key_is_columns_or_a_function(arguments: tuple[Any, Any]) -> None:
    columns, by = arguments
    with pytest.raises(DependenceProblem, match="Expected columns or a function of an event"):
        keyed(*columns, by=by)


def test_a_checkpoint_wants_the_function_again(tmp_path: Any) -> None:
    matcher = Matcher(depends=keyed(by=itemgetter("key")))
    matcher.push_batch("left", pa.table({"key": [1, 2], "n": [3, 4]}))
    matcher.save(tmp_path / "saved")
    again = Matcher.restore(tmp_path / "saved", depends=keyed(by=itemgetter("key")))
    again.push_batch("right", pa.table({"key": [2, 1], "n": [4, 3]}))
    assert again.close().equivalent


def test_a_function_of_two_events_that_is_called_often_warns_of_the_quicker_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexes, "_MANY", 100)
    matcher = Matcher(depends=lambda a, b: a["key"] == b["key"])
    for n in range(60):
        matcher.push("left", {"key": n})
    matcher.push("right", {"key": 60})
    with pytest.warns(RuntimeWarning, match=r"keyed\(by=function\)"):
        matcher.push("right", {"key": 61})
