"""Batches give the verdict that events give, at the same event, however the streams are cut."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.diff.support import SCHEMA, cut, outcome, reordered, stream, table

from samovar.diff import (
    DependenceProblem,
    Matcher,
    equality,
    independent,
    keyed,
    ordered,
    punctuated,
    synchronised,
)

DEPENDENCES = {
    "independent": independent,
    "ordered": ordered,
    "keyed": keyed("key"),
    "two keys": keyed("key") | keyed("city"),
    "synchronised": synchronised(by="mark"),
    "keyed, synchronised": synchronised(keyed("key"), by="mark"),
    "synchronised within": synchronised(keyed("key"), by="mark", within="city"),
    "punctuated": punctuated(time="time", by="mark"),
    "keyed, punctuated": keyed("city") | punctuated(time="time", by="mark"),
    "by a function": synchronised(by=lambda row: row["note"] == "ab"),
}


@pytest.mark.parametrize("name", DEPENDENCES)
@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(0, 40),
    largest=st.integers(1, 12),
    wrong=st.sampled_from([0, 0.02]),
)
def test_batches_agree_with_events_on_random_cuts(
    name: str, seed: int, size: int, largest: int, wrong: float
) -> None:
    rng = random.Random(seed)
    depends = DEPENDENCES[name]
    left = stream(rng, size)
    right = reordered(rng, left, depends, 60, wrong)
    if wrong and right:
        right[rng.randrange(size)] = dict(rng.choice(left))
    matchers = {form: Matcher(depends=depends) for form in ("events", "batches")}
    for side, rows in cut(rng, left, right, largest):
        matchers["batches"].push_batch(side, table(rows))
        for row in rows:
            matchers["events"].push(side, row)
        assert matchers["batches"].waiting(side) == matchers["events"].waiting(side)
    found = {form: outcome(m, m.close()) for form, m in matchers.items()}
    assert found["batches"] == found["events"]


@pytest.mark.parametrize("name", DEPENDENCES)
def test_an_allowed_order_is_never_a_difference_and_never_leaves_the_arrays(name: str) -> None:
    rng = random.Random(name)
    depends = DEPENDENCES[name]
    left = stream(rng, 400)
    if (
        "punctuated" in name
    ):  # one punctuation for a time: two different ones may swap, and are looked at one by one
        times: set[int] = set()
        for row in left:
            row["mark"] = row["mark"] and row["time"] not in times
            times.update([row["time"]] if row["mark"] else [])
    right = reordered(rng, left, depends, 4_000, 0)
    matcher = Matcher(depends=depends)
    for side, rows in cut(rng, left, right, 90):
        assert matcher.push_batch(side, table(rows)) is None
    assert matcher._columnar is not None
    assert matcher.close().equivalent


@pytest.mark.parametrize("name", ["independent", "keyed", "keyed, synchronised", "punctuated"])
def test_many_unmatched_rows_are_merged_and_packed(name: str) -> None:
    """The right side lags behind by thousands of rows."""
    rng = random.Random(3)
    depends = DEPENDENCES[name]
    left = [
        {"key": i % 97, "city": 0, "mark": i % 500 == 499, "time": i, "amount": float(i), "note": None}
        for i in range(24_000)
    ]
    right = list(left)
    for start in range(0, len(left), 100):
        part = right[start : start + 99]  # every mark is the last of its hundred
        if "keyed" in name:
            part.sort(key=lambda row: row["key"])
        else:
            rng.shuffle(part)
        right[start : start + 99] = part
    tables = {"left": table(left), "right": table(right)}
    matcher = Matcher(depends=depends)
    ahead, step = 9_100, 700
    for start in range(0, len(left) + ahead, step):
        matcher.push_batch("left", tables["left"].slice(start, step))
        if start >= ahead:
            matcher.push_batch("right", tables["right"].slice(start - ahead, step))
        assert matcher.verdict is None
        assert matcher._columnar is not None
        pending = matcher._columnar.pending["left"]
        assert pending.length <= 2 * matcher.waiting("left") + 4096 + step
        assert not pending.alive_count or pending._chunks[0].end > (pending.first_alive() or 0)
    assert matcher.close().equivalent


def test_small_batches_of_a_table_are_taken_in_together() -> None:
    rows = [
        {"key": i % 7, "city": 0, "mark": False, "time": i, "amount": 0.0, "note": "x"} for i in range(999)
    ]
    pieces = pa.Table.from_batches(table(rows).to_batches(max_chunksize=10))
    other = table([*rows[:990], {**rows[990], "amount": 1.0}, *rows[991:]])
    assert len(pieces.to_batches()) == 100
    for second, equal in ((pieces, True), (other, False)):
        matcher = Matcher(depends=keyed("key"))
        matcher.push_batch("left", pieces)
        assert matcher._columnar is not None
        assert len(matcher._columnar.pending["left"]._chunks) == 1
        matcher.push_batch("right", second)
        verdict = matcher.close()
        assert verdict.equivalent == equal
        assert (verdict.position, verdict.against_position) == ((None, None) if equal else (990, 990))


@pytest.mark.parametrize("wrong", [0, 1_023, 1_024, 40_000, 69_999])
def test_of_a_large_batch_that_differs_few_rows_are_looked_at_one_by_one(
    wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from samovar.diff.matcher.stepwise import Stepwise

    at = list(range(70_000))
    left = pa.table({"key": [i % 50 for i in at], "at": at})
    right = pa.table({"key": [i % 50 for i in at], "at": [-1 if i == wrong else i for i in at]})
    pushed: list[int] = []
    push = Stepwise.push
    monkeypatch.setattr(Stepwise, "push", lambda self, *a: (pushed.append(1), push(self, *a))[1])
    matcher = Matcher(depends=keyed("key"))
    matcher.push_batch("left", left)
    verdict = matcher.push_batch("right", right)
    assert verdict is not None
    assert (verdict.position, verdict.against_position) == (wrong, wrong)
    assert len(pushed) <= 70_000 - wrong + 2 * 1_100  # those that wait, and a piece


def test_a_different_row_late_in_a_large_batch_has_its_exact_place() -> None:
    rows = [
        {"key": i % 5, "city": 0, "mark": False, "time": i, "amount": 0.0, "note": "x"} for i in range(3_000)
    ]
    other = [*rows[:2_345], {**rows[2_345], "amount": 1.0}, *rows[2_346:]]
    matcher = Matcher(depends=keyed("key"))
    matcher.push_batch("left", table(rows))
    verdict = matcher.push_batch("right", table(other))
    assert verdict is not None
    assert (verdict.side, verdict.position, verdict.against_position) == ("right", 2_345, 2_345)
    assert verdict.event == other[2_345]
    assert verdict.against == rows[2_345]
    assert len(verdict.unmatched("left")) == 3_000 - 2_345
    assert verdict.unmatched("right") == [other[2_345]]


def test_two_rows_with_one_hash_are_not_taken_for_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    from samovar.diff.matcher import columnar

    monkeypatch.setattr(columnar, "hash_of", lambda words: words[0] * 0)
    left = pa.table({"key": [1, 2, 3]})
    for right, equivalent in (([3, 1, 2], True), ([3, 1, 1], False)):
        matcher = Matcher(depends=independent)
        matcher.push_batch("left", left)
        matcher.push_batch("right", pa.table({"key": right}))
        assert matcher.close().equivalent == equivalent


def test_text_with_one_hash_is_compared_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from samovar.diff.matcher import row_words

    monkeypatch.setattr(row_words, "_BYTES", row_words._BYTES * 0)
    matcher = Matcher(depends=ordered)
    matcher.push_batch("left", pa.table({"note": ["abc"]}))
    verdict = matcher.push_batch("right", pa.table({"note": ["xyz"]}))
    assert verdict is not None
    assert verdict.event == {"note": "xyz"}


def test_events_and_batches_can_be_mixed() -> None:
    matcher = Matcher(depends=keyed("key"))
    matcher.push_batch("left", pa.table({"key": [1, 2], "n": [1, 1]}))
    matcher.push("right", {"key": 2, "n": 1})
    assert matcher.unmatched("left") == [{"key": 1, "n": 1}]
    matcher.push_batch("right", pa.table({"key": [1], "n": [1]}))
    assert matcher.close().equivalent


def test_a_tolerance_for_each_key_needs_no_python_for_each_row() -> None:
    matcher = Matcher(depends=keyed("key"), equal=equality(tolerance={"amount": 0.1}))
    amounts = [1.0, 2.0, float("nan"), None, float("inf")]
    near = [1.05, 1.95, float("nan"), None, float("inf")]
    matcher.push_batch("left", pa.table({"key": [1, 1, 2, 2, 2], "amount": amounts}))
    matcher.push_batch("right", pa.table({"key": [1, 1, 2, 2, 2], "amount": near}))
    assert matcher._columnar is not None
    assert matcher.close().equivalent
    far = Matcher(depends=ordered, equal=equality(relative=0.01))
    far.push_batch("left", pa.table({"amount": [100.0, 100.0]}))
    verdict = far.push_batch("right", pa.table({"amount": [100.9, 102.0]}))
    assert verdict is not None
    assert verdict.position == 1


def column(kind: pa.DataType, values: list[Any]) -> pa.Table:
    return pa.table({"value": pa.array(values, kind)})


VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [1, -1, None, 0]),
    (pa.uint64(), [2**64 - 1, 0, None]),
    (pa.float32(), [0.5, float("nan"), None, float("inf")]),
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "a", "aa", None, "ab", "ba", "zażółć"]),
    (pa.large_string(), ["", "a", None]),
    (pa.binary(), [b"", b"\x00", b"\x00\x00", None]),
    (pa.binary(2), [b"ab", b"ba", None]),
    (pa.date32(), [0, 1, None]),
    (pa.timestamp("us", "UTC"), [0, 1, None]),
    (pa.time64("us"), [0, 1, None]),
    (pa.duration("ms"), [0, 1, None]),
    (pa.decimal128(10, 2), ["1.00", "-1.00", None]),
    (pa.list_(pa.int64()), [[], [1], [1, 2], [2, 1], [None], None]),
    (pa.list_(pa.string(), 2), [["a", "b"], ["b", "a"], None]),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": 1, "b": None}, None]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", 2)], [("a", 2), ("b", 1)], [], None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    (pa.null(), [None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(k) for k, _ in VALUES])
def test_values_of_every_type_equal_themselves_and_no_other(kind: pa.DataType, values: list[Any]) -> None:
    if pa.types.is_decimal(kind):
        from decimal import Decimal

        values = [None if v is None else Decimal(v) for v in values]
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            matcher = Matcher(depends=ordered)
            padded = column(kind, [values[-1], left]).slice(1)  # a slice has an offset
            matcher.push_batch("left", padded)
            verdict = matcher.push_batch("right", column(kind, [right]))
            assert (verdict is None) == (i == j), (left, right)
    shuffled = [*values, *reversed(values)]
    matcher = Matcher(depends=independent)
    matcher.push_batch("left", column(kind, shuffled))
    matcher.push_batch("right", column(kind, sorted(shuffled, key=repr)))
    assert matcher._columnar is not None
    assert matcher.close().equivalent


def test_maps_are_equal_in_any_order_and_nested_nan_equals_itself() -> None:
    kind = pa.map_(pa.string(), pa.float64())
    matcher = Matcher(depends=ordered)
    matcher.push_batch("left", column(kind, [[("a", 1.0), ("b", float("nan"))]]))
    matcher.push_batch("right", column(kind, [[("b", float("nan")), ("a", 1.0)]]))
    assert matcher.close().equivalent


def test_an_empty_batch_and_an_empty_side_are_fine() -> None:
    matcher = Matcher(depends=keyed("key"))
    matcher.push_batch("left", SCHEMA.empty_table())
    matcher.push_batch("right", pa.RecordBatch.from_pylist([], schema=SCHEMA))
    assert matcher.verdict is None
    matcher.push_batch("left", table(stream(random.Random(1), 3)))
    verdict = matcher.close()
    assert not verdict.equivalent
    assert (verdict.side, verdict.position) == ("left", 0)
    assert len(verdict.unmatched("left")) == 3
    assert verdict.unmatched("right") == []


def test_after_a_false_alarm_batches_go_through_arrays_again() -> None:
    """A punctuation that comes too late is no difference if both sides have it, but arrays cannot take it."""
    depends = punctuated(time="time", by="mark")
    rows = [
        {"key": i, "city": 0, "mark": i % 10 == 9, "time": i, "amount": 0.0, "note": None} for i in range(200)
    ]
    rows[59]["time"] = 40
    matcher = Matcher(depends=depends)
    used = []
    for start in range(0, 200, 10):
        for side in ("left", "right"):
            matcher.push_batch(side, table(rows[start : start + 10]))  # type: ignore[arg-type]
        used.append(matcher._columnar is not None)
    assert used[4]
    assert not used[5]
    assert used[-1]
    assert (matcher.seen("left"), matcher.seen("right")) == (200, 200)
    assert matcher.close().equivalent


def test_an_error_in_a_predicate_leaves_the_matcher_as_it_was() -> None:
    fail = [False]

    def by(row: dict[str, Any]) -> bool:
        if fail[0]:
            raise RuntimeError("not now")
        return False

    matcher = Matcher(depends=synchronised(by=by))
    matcher.push_batch("left", pa.table({"a": [1, 2]}))
    fail[0] = True
    with pytest.raises(DependenceProblem, match="not now"):
        matcher.push_batch("right", pa.table({"a": [2]}))
    fail[0] = False
    assert (matcher.waiting("left"), matcher.seen("right")) == (2, 0)
    matcher.push_batch("right", pa.table({"a": [2, 1]}))
    assert matcher.close().equivalent


def test_types_of_one_kind_compare_with_each_other() -> None:
    left = pa.table(
        {
            "n": pa.array([1, 2], pa.int32()),
            "text": pa.array(["a", None], pa.string()),
            "list": pa.array([[1], None], pa.list_(pa.field("element", pa.int16()))),
            "price": pa.array([None, None], pa.decimal128(8, 2)),
            "kind": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    right = pa.table(
        {
            "n": pa.array([1, 2], pa.int64()),
            "text": pa.array(["a", None], pa.large_string()),
            "list": pa.array([[1], None], pa.large_list(pa.field("item", pa.int64()))),
            "price": pa.array([None, None], pa.decimal128(12, 2)),
            "kind": pa.array(["x", "y"]),
        }
    )
    matcher = Matcher(depends=independent)
    matcher.push_batch("left", left)
    matcher.push_batch("right", right.take([1, 0]))
    assert matcher._columnar is not None
    assert matcher.close().equivalent


def test_a_tolerance_for_all_floats_leaves_out_those_the_dependence_looks_at() -> None:
    for form in ("events", "batches"):
        matcher = Matcher(depends=keyed("key"), equal=equality(tolerance=0.5))
        for side, keys in (("left", [1.0, 1.4]), ("right", [1.4, 1.0])):
            rows = [{"key": key, "x": key + (0.1 if side == "left" else 0)} for key in keys]
            if form == "batches":
                matcher.push_batch(side, pa.Table.from_pylist(rows))  # type: ignore[arg-type]
            for row in rows if form == "events" else ():
                matcher.push(side, row)  # type: ignore[arg-type]
        assert matcher.close().equivalent
