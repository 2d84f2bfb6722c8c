"""The matcher as a user meets it: verdicts, their explanation, and what is refused."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

import samovar.diff
from samovar.diff import (
    DependenceProblem,
    DiffError,
    EqualityProblem,
    EventProblem,
    Matcher,
    accepts,
    equality,
    independent,
    keyed,
    ordered,
    punctuated,
    synchronised,
)


def compared(left: list[Any], right: list[Any], **options: Any) -> samovar.diff.Verdict:
    matcher = Matcher(**options)
    for event in left:
        matcher.push("left", event)
    for event in right:
        matcher.push("right", event)
    return matcher.close()


def test_importing_it_imports_no_pyspark() -> None:
    code = "import sys, samovar.diff; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_there_and_sorted() -> None:
    assert samovar.diff.__all__ == sorted(samovar.diff.__all__)
    assert all(hasattr(samovar.diff, name) for name in samovar.diff.__all__)


def test_taxis_may_overtake_each_other_but_not_themselves() -> None:
    rides = [{"taxi": t, "at": n} for t, n in (("a", 1), ("a", 2), ("b", 1))]
    assert compared(rides, [rides[2], rides[0], rides[1]], depends=keyed("taxi"))
    verdict = compared(rides, [rides[1], rides[0], rides[2]], depends=keyed("taxi"))
    assert not verdict
    assert (verdict.side, verdict.position, verdict.event) == ("right", 0, rides[1])
    assert (verdict.against, verdict.against_position) == (rides[0], 0)


def test_there_is_no_verdict_while_a_continuation_could_help() -> None:
    matcher = Matcher(depends=independent)
    assert matcher.push("left", "a") is None
    assert matcher.push("right", "b") is None
    assert (matcher.waiting("left"), matcher.waiting("right")) == (1, 1)
    matcher.push("left", "b")
    matcher.push("right", "a")
    assert matcher.verdict is None
    verdict = matcher.close()
    assert verdict is matcher.verdict
    assert verdict.equivalent
    assert (verdict.side, verdict.position, verdict.event) == (None, None, None)
    assert (matcher.seen("left"), matcher.waiting("left")) == (2, 0)


def test_events_after_the_verdict_change_nothing_and_after_the_close_are_refused() -> None:
    matcher = Matcher(depends=ordered)
    matcher.push("left", 1)
    verdict = matcher.push("right", 2)
    assert verdict is not None
    assert matcher.push("right", 3) is verdict
    assert matcher.close() is verdict
    with pytest.raises(DiffError, match=r"after close\(\)"):
        matcher.push("left", 1)


def test_nan_and_null_equal_themselves_and_duplicates_count() -> None:
    rows = [{"x": math.nan}, {"x": None}, {"x": None}, {"x": {"k": [math.nan]}}]
    assert compared(rows, rows[::-1], depends=independent)
    verdict = compared(rows, [rows[0], rows[1], rows[3]], depends=independent)
    assert verdict.unmatched("left") == [{"x": None}]
    assert verdict.unmatched("right") == []


def test_an_empty_side_is_a_difference_only_if_the_other_is_not_empty() -> None:
    assert compared([], [], depends=ordered).equivalent
    verdict = compared([], [1, 2], depends=ordered)
    assert (verdict.side, verdict.position, verdict.event) == ("right", 0, 1)
    assert verdict.unmatched("right") == [1, 2]


# --- equality -----------------------------------------------------------------------------------------------


def test_by_columns_other_columns_do_not_count() -> None:
    left = [{"k": 1, "v": 2, "stamp": 3}]
    right = [{"k": 1, "v": 2, "stamp": 4}]
    assert compared(left, right, depends=ordered, equal=equality(columns=["k", "v"]))
    matcher = Matcher(depends=ordered, equal=equality(columns=["k", "v"]))
    matcher.push_batch("left", pa.Table.from_pylist(left))
    matcher.push_batch("right", pa.Table.from_pylist([{"v": 2, "k": 1}]))
    assert matcher.close().equivalent


def test_by_a_key_function() -> None:
    equal = equality(key=lambda row: row["name"].lower())
    left, right = pa.table({"name": ["A", "b"]}), pa.table({"name": ["B", "a"]})
    matcher = Matcher(depends=independent, equal=equal)
    matcher.push_batch("left", left)
    matcher.push_batch("right", right)
    assert matcher.close().equivalent


def test_by_a_function_of_two_events() -> None:
    assert compared([10, 21], [22, 11], depends=independent, equal=lambda a, b: a // 10 == b // 10)
    assert not compared([10, 21], [22, 31], depends=independent, equal=lambda a, b: a // 10 == b // 10)


def test_accepts_lets_the_reference_allow_several_answers() -> None:
    reference = [{"key": "a", "any_of": [1, 2]}, {"key": "b", "any_of": [3]}]
    output = [{"key": "b", "value": 3}, {"key": "a", "value": 2}]

    def fine(expected: dict[str, Any], given: dict[str, Any]) -> bool:
        return expected["key"] == given["key"] and given["value"] in expected["any_of"]

    assert compared(output, reference, depends=keyed("key"), equal=accepts(fine))
    assert compared(reference, output, depends=independent, equal=accepts(fine, reference="left"))
    output[1]["value"] = 5
    verdict = compared(output, reference, depends=keyed("key"), equal=accepts(fine))
    assert verdict.against == output[1]


def test_near_numbers_find_partners_even_if_the_first_choice_was_wrong() -> None:
    equal = equality(tolerance=0.5)
    assert compared([1.0, 2.0], [1.5, 0.5], depends=independent, equal=equal)
    assert compared([2.0, 1.0], [1.5, 2.5], depends=independent, equal=equal)
    assert not compared([1.0, 2.0], [1.5, 2.6], depends=independent, equal=equal)


# --- what is refused ----------------------------------------------------------------------------------------


def test_a_dependence_that_raises_shows_the_pair() -> None:
    matcher = Matcher(depends=lambda a, b: a["k"] / b["k"] > 1)
    with pytest.raises(DependenceProblem, match="ZeroDivisionError") as caught:
        matcher.push("left", {"k": 0})
    assert caught.value.events == ({"k": 0}, {"k": 0})
    assert "event a: {'k': 0}" in str(caught.value)


def test_a_dependence_that_raises_late_shows_the_pair_it_raised_on() -> None:
    def depends(a: int, b: int) -> bool:
        if {a, b} == {500, 77}:
            raise RuntimeError("no")
        return False

    matcher = Matcher(depends=depends)
    for n in range(300):
        matcher.push("left", n)
    with pytest.raises(DependenceProblem, match="RuntimeError: no") as caught:
        matcher.push("right", 500)
    assert caught.value.events == (500, 77)


def test_a_dependence_that_is_not_symmetric_is_shown() -> None:
    matcher = Matcher(depends=lambda a, b: a < b)
    matcher.push("left", 1)
    with pytest.raises(DependenceProblem, match="symmetric") as caught:
        matcher.push("right", 2)
    assert set(caught.value.events) == {1, 2}


def test_a_dependence_that_tells_equal_events_apart_is_shown() -> None:
    matcher = Matcher(depends=lambda a, b: a["n"] == b["n"], equal=equality(columns=["k"]))
    matcher.push("left", {"k": 1, "n": 1})
    with pytest.raises(DependenceProblem, match="fits the equality"):
        matcher.push("right", {"k": 1, "n": 2})


@pytest.mark.parametrize(
    ("equal", "complaint"),
    [
        (lambda a, b: a != b, "equal itself"),
        (lambda a, b: a <= b, "symmetric"),
        (lambda a, b: abs(a - b) <= 1, "transitive"),
    ],
)
def test_an_equality_that_is_not_one_is_shown(equal: Any, complaint: str) -> None:
    matcher = Matcher(depends=independent, equal=equal)

    def push_all() -> None:
        for n in (1, 2, 3):
            matcher.push("left", n)

    with pytest.raises(EqualityProblem, match=complaint) as caught:
        push_all()
    assert caught.value.events


def test_an_equality_that_raises_shows_the_events() -> None:
    with pytest.raises(EqualityProblem, match="TypeError") as caught:
        compared([1], ["a"], depends=independent, equal=lambda a, b: a < b + 1)
    assert caught.value.events
    with pytest.raises(EqualityProblem, match="key function raised KeyError"):
        compared([{"a": 1}], [], depends=independent, equal=equality(key=lambda row: row["b"]))


def test_dependences_and_equalities_that_do_not_fit_are_refused_at_once() -> None:
    with pytest.raises(DependenceProblem, match="got one on 'taxi'"):
        Matcher(depends=keyed("taxi"), equal=equality(columns=["at"]))
    with pytest.raises(DependenceProblem, match="'at', which has a tolerance"):
        Matcher(depends=keyed("at"), equal=equality(tolerance={"at": 1.0}))
    with pytest.raises(EqualityProblem, match="got a punctuated one"):
        Matcher(depends=punctuated(time="at", by="mark"), equal=equality(tolerance=0.1))
    with pytest.raises(EqualityProblem, match="got another one"):
        Matcher(depends=lambda a, b: False, equal=accepts(lambda a, b: True))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Matcher(depends="taxi"),
        lambda: Matcher(depends=keyed),
        lambda: keyed(),
        lambda: keyed("a", "a"),
        lambda: keyed(3),
        lambda: synchronised(by=3),
        lambda: punctuated(time="", by="mark"),
        lambda: Matcher(depends=ordered, equal=["a"]),
        lambda: equality(columns="a"),
        lambda: equality(columns=[]),
        lambda: equality(tolerance=-1),
        lambda: equality(tolerance=math.nan),
        lambda: equality(key=len, columns=["a"]),
        lambda: equality(columns=["a"], tolerance={"b": 1.0}),
        lambda: accepts(3),
        lambda: accepts(lambda a, b: True, reference="up"),
    ],
)
def test_a_wrong_argument_says_what_was_expected(make: Any) -> None:
    with pytest.raises(DiffError, match="Expected"):
        make()


def test_a_missing_or_misspelt_column_is_named() -> None:
    matcher = Matcher(depends=keyed("taxi"))
    with pytest.raises(EventProblem, match="'taxi'") as caught:
        matcher.push("left", {"taxy": 1})
    assert caught.value.hint == "Did you mean 'taxy'?"
    with pytest.raises(EventProblem, match="an event with columns"):
        matcher.push("left", 3)
    with pytest.raises(EventProblem, match="'taxi'"):
        Matcher(depends=keyed("taxi")).push_batch("left", pa.table({"taxy": [1]}))


def test_batches_that_do_not_fit_are_refused() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    for depends in (independent, lambda a, b: False):
        matcher = Matcher(depends=depends)
        with pytest.raises(EventProblem, match="'a' twice"):
            matcher.push_batch("left", twice)
        matcher.push_batch("left", pa.table({"a": [1]}))
        with pytest.raises(EventProblem, match="Expected the column 'a' to hold integer"):
            matcher.push_batch("right", pa.table({"a": ["1"]}))
        with pytest.raises(EventProblem, match="Expected the columns a"):
            matcher.push_batch("right", pa.table({"a": [1], "b": [1]}))
        matcher.push_batch("right", pa.table({"a": pa.array([1], pa.int32())}))
        assert matcher.close().equivalent
    with pytest.raises(EventProblem, match="RecordBatch or Table, got list"):
        Matcher(depends=ordered).push_batch("left", [1])  # type: ignore[arg-type]
    with pytest.raises(EventProblem, match="'left' or 'right', got 'up'"):
        Matcher(depends=ordered).push("up", 1)  # type: ignore[arg-type]
    with pytest.raises(EventProblem, match="as the time of a dependence"):
        Matcher(depends=punctuated(time="a", by={"a": "x"})).push_batch("left", pa.table({"a": ["x"]}))
    with pytest.raises(EventProblem, match="type of 'a'"):
        Matcher(depends=synchronised(by={"a": "x"})).push_batch("left", pa.table({"a": [1]}))


def test_a_map_with_a_key_twice_is_refused_where_rows_are_looked_at() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    matcher = Matcher(depends=lambda a, b: False)
    with pytest.raises(EventProblem, match="key"):
        matcher.push_batch("left", pa.table({"m": pa.array([[("a", 1), ("a", 2)]], kind)}))


# --- explain ------------------------------------------------------------------------------------------------


def test_the_explanation_marks_the_cells_that_differ_and_shows_no_equal_rows() -> None:
    rides = [{"taxi": t, "at": n, "fare": 10.0 * n} for t in "ab" for n in range(50)]
    other = [*rides[:30], {**rides[30], "fare": 1.0}, *rides[31:]]
    verdict = compared(rides, other, depends=keyed("taxi"))
    text = verdict.explain()
    assert text.splitlines()[:6] == [
        "The streams differ at event 30 of the right side (in order for each taxi).",
        "It depends on event 30 of the left side, which has to come first and has no partner yet.",
        "",
        "         position  taxi  at  fare",
        "  left   30        a     30  *300.0*",
        "  right  30        a     30  *1.0*",
    ]
    assert "290.0" not in text
    assert text.endswith("... and 59 more")


def test_what_is_left_at_the_end_stands_beside_what_is_most_like_it() -> None:
    left = [{"id": 1, "name": "x", "city": None}, {"id": 2, "name": "y", "city": "B"}]
    right = [{"id": 2, "name": "y", "city": "C"}, {"id": 7, "name": "q", "city": "Z"}]
    text = compared(left, right, depends=independent).explain()
    assert text.splitlines() == [
        "The streams differ when both have ended (independent).",
        "Without a partner: 2 left, 2 right.",
        "",
        "              position  id  name  city",
        "  only left   0         1   x     null",
        "  left        1         2   y     *B*",
        "  right       0         2   y     *C*",
        "  only right  1         7   q     Z",
    ]


def test_equivalent_streams_are_explained_as_such() -> None:
    assert compared([1], [1], depends=ordered).explain() == "The streams are equivalent (ordered)."


def test_events_that_are_no_rows_are_shown_too() -> None:
    assert "*1*" in compared([1], [2], depends=ordered).explain()
