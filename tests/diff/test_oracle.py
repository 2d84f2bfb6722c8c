"""The matcher against the definition of equivalence: verdicts, the earliest event for them, and what is kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import pyarrow as pa
import pytest
from tests.diff.oracle import Stream, Traces, hopeful_by_matching, interleavings, matching_exists

from samovar.diff import Dependence, Matcher, equality, independent, keyed, ordered, punctuated, synchronised

Relation = Callable[[Any, Any], bool]
ABC = ("a", "b", "c")
PAIRS = list(combinations_with_replacement(ABC, 2))
RELATIONS = [
    frozenset(p for p, bit in zip(PAIRS, bits, strict=True) if bit) for bits in product([0, 1], repeat=6)
]


def relation(pairs: frozenset[tuple[str, str]]) -> Relation:
    return lambda a, b: (a, b) in pairs or (b, a) in pairs


def pairs_of_streams(letters: tuple[Any, ...], total: int) -> Iterator[tuple[Stream, Stream]]:
    for size in range(total + 1):
        for cut in range(size + 1):
            for stream in product(letters, repeat=size):
                yield stream[:cut], stream[cut:]


def judge(
    matcher: Matcher,
    traces: Traces,
    left: Stream,
    right: Stream,
    sides: tuple[str, ...],
    push: Callable[[Matcher, str, Any], None],
    letter: Callable[[Any], Any],
) -> None:
    """Feed an interleaving; after each event the matcher knows what the definition says, and keeps the least."""
    taken: dict[str, Stream] = {"left": (), "right": ()}
    for side in sides:
        stream = left if side == "left" else right
        event = stream[len(taken[side])]
        taken[side] = (*taken[side], event)
        push(matcher, side, event)
        if not traces.hopeful(taken["left"], taken["right"]):
            verdict = matcher.verdict
            assert verdict is not None
            assert not verdict.equivalent
            assert (verdict.side, verdict.position) == (side, len(taken[side]) - 1)
            assert letter(verdict.event) == event
            assert traces.depends(letter(verdict.event), letter(verdict.against))
            return
        assert matcher.verdict is None
        kept = tuple(tuple(map(letter, matcher.unmatched(s))) for s in ("left", "right"))  # type: ignore[arg-type]
        assert tuple(traces.class_of[k] for k in kept) == traces.unmatched(*taken.values())
    assert matcher.close().equivalent == traces.equivalent(left, right)


def push_letter(matcher: Matcher, side: Any, event: Any) -> None:
    matcher.push(side, event)


def same(value: Any) -> Any:
    return value


def named(pairs: frozenset[tuple[str, str]]) -> str:
    """A relation's name, the same in every process: the order of a set differs from one to the next."""
    return " ".join(sorted(map("".join, pairs)))


@pytest.mark.parametrize("pairs", RELATIONS[::7], ids=named)
def test_the_two_forms_of_the_definition_agree(pairs: frozenset[tuple[str, str]]) -> None:
    traces = Traces(ABC, relation(pairs), 4)
    streams = [s for s in traces.class_of if len(s) == 4]
    chosen = random.Random(str(sorted(pairs))).sample(streams, 40)
    for left, right in product(chosen, repeat=2):
        assert traces.equivalent(left, right) == matching_exists(
            left, right, traces.depends, lambda a, b: bool(a == b)
        )


def test_a_sample_of_all_streams_over_three_letters_and_all_dependences() -> None:
    rng = random.Random(11)
    for pairs in RELATIONS:
        traces = Traces(ABC, relation(pairs), 6)
        for _ in range(120):
            cut, size = rng.randint(0, 6), 6
            left = tuple(rng.choices(ABC, k=cut))
            right = tuple(rng.choices(ABC, k=size - cut))
            if rng.random() < 0.5 and cut == 3:
                right = tuple(rng.sample(left, 3))
            sides = rng.choice(list(interleavings(len(left), len(right))))
            judge(Matcher(depends=traces.depends), traces, left, right, sides, push_letter, same)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pairs", RELATIONS, ids=named)
def test_all_streams_over_three_letters_in_every_interleaving(pairs: frozenset[tuple[str, str]]) -> None:
    traces = Traces(ABC, relation(pairs), 6)
    for left, right in pairs_of_streams(ABC, 6):
        for sides in interleavings(len(left), len(right)):
            judge(Matcher(depends=traces.depends), traces, left, right, sides, push_letter, same)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("bits", list(product([0, 1], repeat=3)), ids=str)
def test_all_pairs_of_streams_of_up_to_six_over_two_letters(bits: tuple[int, ...]) -> None:
    """Every pair of streams of up to 6 letters each, in three interleavings each."""
    rng = random.Random(5)
    pairs = frozenset(p for p, bit in zip([("a", "a"), ("a", "b"), ("b", "b")], bits, strict=True) if bit)
    traces = Traces(("a", "b"), relation(pairs), 12)
    streams = [s for s in traces.class_of if len(s) <= 6]
    for left, right in product(streams, repeat=2):
        for _ in range(3):
            sides = ["left"] * len(left) + ["right"] * len(right)
            rng.shuffle(sides)
            judge(Matcher(depends=traces.depends), traces, left, right, tuple(sides), push_letter, same)


# Structured dependences: letters are rows (key, mark, time); what each dependence means is written out here once more.

Row = tuple[int, int, int]


def row(letter: Row) -> dict[str, int]:
    return dict(zip(("key", "mark", "time"), letter, strict=True))


def letter_of(event: dict[str, int]) -> Row:
    return event["key"], event["mark"], event["time"]


def late(a: Row, b: Row) -> bool:
    return bool((a[1] and b[2] < a[2]) or (b[1] and a[2] < b[2]))


STRUCTURED: dict[str, tuple[Dependence, Relation, tuple[Row, ...]]] = {
    "independent": (independent, lambda a, b: False, ((0, 0, 0), (1, 0, 0), (1, 1, 0))),
    "ordered": (ordered, lambda a, b: True, ((0, 0, 0), (1, 0, 0), (1, 1, 0))),
    "keyed": (keyed("key"), lambda a, b: a[0] == b[0], ((0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1))),
    "two keys": (
        keyed("key") | keyed("mark"),
        lambda a, b: a[0] == b[0] or a[1] == b[1],
        ((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)),
    ),
    "key of two": (
        keyed("key", "mark"),
        lambda a, b: a[:2] == b[:2],
        ((0, 0, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)),
    ),
    "synchronised": (
        synchronised(by={"mark": 1}),
        lambda a, b: bool(a[1] or b[1]),
        ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)),
    ),
    "keyed, synchronised": (
        synchronised(keyed("key"), by={"mark": 1}),
        lambda a, b: bool(a[0] == b[0] or a[1] or b[1]),
        ((0, 0, 0), (0, 0, 1), (1, 0, 0), (2, 1, 0)),
    ),
    "synchronised within": (
        synchronised(by={"mark": 1}, within="key"),
        lambda a, b: bool(a[0] == b[0] and (a[1] or b[1])),
        ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0)),
    ),
    "keyed, synchronised within": (
        synchronised(keyed("time"), by={"mark": 1}, within=["key"]),
        lambda a, b: bool(a[2] == b[2] or (a[0] == b[0] and (a[1] or b[1]))),
        ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)),
    ),
    "punctuated": (
        punctuated(time="time", by={"mark": 1}),
        late,
        ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2), (0, 0, 2)),
    ),
    "punctuated, two at a time": (
        punctuated(time="time", by={"mark": 1}),
        late,
        ((0, 0, 0), (0, 1, 1), (1, 1, 1), (0, 1, 0)),
    ),
    "keyed, punctuated": (
        keyed("key") | punctuated(time="time", by={"mark": 1}),
        lambda a, b: a[0] == b[0] or late(a, b),
        ((0, 0, 0), (1, 0, 0), (1, 0, 1), (2, 1, 1), (3, 1, 2)),
    ),
    "synchronised, punctuated": (
        synchronised(punctuated(time="time", by={"mark": 1}), by={"key": 9}),
        lambda a, b: 9 in (a[0], b[0]) or late(a, b),
        ((0, 0, 0), (0, 0, 1), (0, 1, 1), (9, 0, 0)),
    ),
}
STRUCTURED["keyed, or by a function"] = (
    keyed("key") | (lambda a, b: a["time"] != b["time"]),
    lambda a, b: a[0] == b[0] or a[2] != b[2],
    ((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1)),
)
SCHEMA = pa.schema([("key", pa.int64()), ("mark", pa.int8()), ("time", pa.int32())])
_TRACES: dict[tuple[str, int], Traces] = {}


def traces_of(name: str, longest: int) -> Traces:
    _, depends, letters = STRUCTURED[name]
    if (name, longest) not in _TRACES:
        _TRACES[name, longest] = Traces(letters, depends, longest)
    return _TRACES[name, longest]


def push_row(matcher: Matcher, side: Any, event: Any) -> None:
    matcher.push(side, row(event))


def push_batch(matcher: Matcher, side: Any, event: Any) -> None:
    matcher.push_batch(side, pa.RecordBatch.from_pylist([row(event)], schema=SCHEMA))


@pytest.mark.parametrize("name", STRUCTURED)
def test_a_structured_dependence_means_what_it_says(name: str) -> None:
    depends, meant, letters = STRUCTURED[name]
    for a, b in product(letters, repeat=2):
        assert depends.depends(row(a), row(b)) == meant(a, b)


@pytest.mark.parametrize("push", [push_row, push_batch], ids=["events", "batches"])
@pytest.mark.parametrize("name", STRUCTURED)
def test_a_sample_of_streams_for_each_structured_dependence(name: str, push: Any) -> None:
    traces = traces_of(name, 6)
    rng = random.Random(name)
    for _ in range(250):
        cut = rng.choice([0, 2, 3, 3, 3, 4, 6])
        left = tuple(rng.choices(traces.letters, k=cut))
        right = tuple(rng.choices(traces.letters, k=6 - cut))
        if cut == 3 and rng.random() < 0.7:
            right = tuple(rng.sample(left, 3))
        sides = rng.choice(list(interleavings(cut, 6 - cut)))
        matcher = Matcher(depends=STRUCTURED[name][0])
        judge(matcher, traces, left, right, sides, push, letter_of)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("push", [push_row, push_batch], ids=["events", "batches"])
@pytest.mark.parametrize("name", STRUCTURED)
def test_all_streams_for_each_structured_dependence(name: str, push: Any) -> None:
    """All pairs of up to 4 rows in all, and all pairs of 3 with 3 that hold the same rows, in every interleaving."""
    traces = traces_of(name, 6)
    for left, right in pairs_of_streams(traces.letters, 4):
        for sides in interleavings(len(left), len(right)):
            judge(Matcher(depends=STRUCTURED[name][0]), traces, left, right, sides, push, letter_of)
    for left, right in product(product(traces.letters, repeat=3), repeat=2):
        if sorted(left) == sorted(right):
            for sides in interleavings(3, 3):
                judge(Matcher(depends=STRUCTURED[name][0]), traces, left, right, sides, push, letter_of)


# A tolerance is no equality: 0.0 is near 1.0, 1.0 is near 2.0, 0.0 is not near 2.0.

NUMBERS = (0.0, 1.0, 2.0)
TOLERANT: dict[str, tuple[Dependence, Relation, tuple[Any, ...]]] = {
    "independent": (independent, lambda a, b: False, tuple(("x", n) for n in NUMBERS)),
    "ordered": (ordered, lambda a, b: True, tuple(("x", n) for n in NUMBERS)),
    "keyed": (keyed("kind"), lambda a, b: a[0] == b[0], (("x", 0.0), ("x", 1.0), ("x", 2.0), ("y", 0.0))),
    "synchronised": (
        synchronised(by={"kind": "end"}),
        lambda a, b: "end" in (a[0], b[0]),
        (("x", 0.0), ("x", 1.0), ("x", 2.0), ("end", 0.0)),
    ),
}


@pytest.mark.parametrize("name", TOLERANT)
def test_with_a_tolerance_the_verdict_does_not_depend_on_luck(name: str) -> None:
    judge_with_a_tolerance(name, streams=60)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOLERANT)
def test_with_a_tolerance_many_verdicts_do_not_depend_on_luck(name: str) -> None:
    judge_with_a_tolerance(name, streams=400)


def judge_with_a_tolerance(name: str, streams: int) -> None:
    depends, meant, letters = TOLERANT[name]

    def near(a: Any, b: Any) -> bool:
        return bool(a[0] == b[0] and abs(a[1] - b[1]) <= 1.0)

    hopeful = hopeful_by_matching(letters, meant, near)
    rng = random.Random(name)
    for number in range(streams):
        size = rng.choice([2, 3, 3]) if name != "synchronised" else 3
        left = tuple(rng.choices(letters, k=size))
        right = tuple(rng.sample(left, size)) if number % 3 else tuple(rng.choices(letters, k=size))
        right = tuple(
            (k, rng.choice([n for n in NUMBERS if abs(n - v) <= 1 and (k, n) in letters])) for k, v in right
        )
        sides = rng.choice(list(interleavings(size, size)))
        matcher = Matcher(depends=depends, equal=equality(tolerance=1.0))
        taken: dict[str, Stream] = {"left": (), "right": ()}
        for side in sides:
            letter = (left if side == "left" else right)[len(taken[side])]
            taken[side] = (*taken[side], letter)
            matcher.push(side, {"kind": letter[0], "n": letter[1]})  # type: ignore[arg-type]
            assert (matcher.verdict is None) == hopeful(taken["left"], taken["right"])
            if matcher.verdict is not None:
                break
        else:
            assert matcher.close().equivalent == matching_exists(left, right, meant, near)
