"""Where a cursor goes: soundness, least steps, what waits, and scopes that overlap."""

from __future__ import annotations

import random
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.support import Made, Node, cursors, descendants, least, random_made, sound

from samovar.replay.trace.model import StepKey
from samovar.replay.trace.stepper import (
    Overlap,
    advanced,
    everything,
    next_step,
    open_steps,
    overlap,
    waiting,
)

COMMON = settings(deadline=None, database=None, derandomize=True, max_examples=150)
FEW = {"most": 4, "rows": 2}
"""Small enough for all cursors to be listed."""

ALL = frozenset({"U", "A", "B", "C", "D", "S", "FE", "FD", "FF"})


def none(made: Made) -> dict[str, int]:
    return dict.fromkeys(made.trace.steps, 0)


def later(a: Mapping[str, int], b: Mapping[str, int]) -> bool:
    """Whether a cursor is nowhere before another."""
    return all(a[op] >= b[op] for op in b)


def over(made: Made, counts: Mapping[str, int], key: StepKey) -> dict[str, int]:
    return advanced(made.trace, counts, made.trace.scope([key]))


# --- by hand --------------------------------------------------------------------------------------------------------

CHAIN = {
    "U": Node("source"),
    "FE": Node("python", ("U",)),
    "FD": Node("python", ("FE",)),
    "S": Node("sink", ("FD",)),
}


def test_stepping_over_processes_the_scope_and_no_more() -> None:
    made = Made.of(CHAIN, rows=3)
    one = over(made, none(made), ("FE", 0))
    assert one == {"FE": 1, "FD": 1, "S": 1}
    assert over(made, one, ("FE", 1)) == {"FE": 2, "FD": 2, "S": 2}


def test_stepping_into_leaves_the_outputs_waiting_behind() -> None:
    made = Made.of(CHAIN, rows=3)
    inside = advanced(made.trace, none(made), [("FE", 0)])
    assert inside == {"FE": 1, "FD": 0, "S": 0}
    assert waiting(made.trace, inside, "FD", ALL) == [("FD", 0)]
    assert waiting(made.trace, inside, "S", ALL) == []
    assert next_step(made.trace, inside, "S", ALL) is None
    assert next_step(made.trace, inside, "FD", ALL) == ("FD", 0)
    assert open_steps(made.trace, inside, ("FE", 0)) == {("FD", 0), ("S", 0)}


def test_stepping_over_behind_an_open_tuple_takes_the_open_one_along() -> None:
    made = Made.of(CHAIN, rows=3)
    inside = advanced(made.trace, none(made), [("FE", 0)])
    assert overlap(made.trace, inside, ("FE", 1)) is None
    assert over(made, inside, ("FE", 1)) == {"FE": 2, "FD": 2, "S": 2}


def test_what_comes_from_outside_is_taken_along() -> None:
    """A and B feed C; whoever looks at A gets B's tuples as the run took them."""
    nodes = {
        "u": Node("source"),
        "A": Node("python", ("u",)),
        "B": Node("python", ("u",)),
        "C": Node("python", ("A", "B")),
    }
    made = Made.of(nodes, rows=2)
    within = made.edges.downstream("A")
    first = over(made, none(made), ("A", 0))
    assert first == {"A": 1, "B": 0, "C": 1}
    assert next_step(made.trace, first, "C", within) == ("C", 1)  # B's tuple is there when it is asked for
    assert next_step(made.trace, first, "C", set(nodes)) is None
    second = over(made, first, ("A", 1))
    assert second == {"A": 2, "B": 1, "C": 3}
    assert overlap(made.trace, first, ("A", 1)) is None


def test_the_end_of_the_input_waits_for_all_of_it() -> None:
    nodes = {
        "U": Node("source"),
        "A": Node("python", ("U",), finish=1),
        "B": Node("python", ("A",), finish=1),
        "S": Node("sink", ("B",)),
    }
    made = Made.of(nodes, rows=1)
    within = set(nodes)
    done = over(made, none(made), ("A", 0))
    assert done == {"A": 1, "B": 1, "S": 1}
    assert next_step(made.trace, done, "A", within) == ("A", 1)
    assert next_step(made.trace, done, "B", within) is None
    end = over(made, done, ("A", 1))
    assert end == {"A": 2, "B": 2, "S": 2}
    assert next_step(made.trace, end, "B", within) == ("B", 2)
    assert over(made, end, ("B", 2)) == everything(made.trace)


def test_an_end_step_takes_along_everything_before_it() -> None:
    """Also where the end before it gives nothing: an input that has not ended cannot be at its end."""
    nodes = {
        "U": Node("source"),
        "A": Node("python", ("U",), finish=0),
        "B": Node("some", ("A",)),
        "C": Node("python", ("B",), finish=1),
        "S": Node("sink", ("C",)),
    }
    made = Made.of(nodes, rows=2)
    assert advanced(made.trace, none(made), [("C", 2)]) == {"A": 3, "B": 2, "C": 3, "S": 0}


# --- IcedTea, Figures 12 and 13 -------------------------------------------------------------------------------------

FIGURE_12 = {
    "U": Node("source"),
    "A": Node("python", ("U",)),
    "B": Node("some", ("A",)),
    "C": Node("some", ("A",)),
    "D": Node("python", ("B", "C")),
}


def figure_12(order: list[tuple[int, tuple[int, ...]]] | None) -> Made:
    """A sends x to B and y to C; D hears of both, in an order of its own."""
    made = Made.of(FIGURE_12, rows=2)
    x, y = (0, 0, 0), (0, 1, 0)
    given = {
        "U": [s.taken for s in made.trace.steps["A"] if s.taken is not None],
        "A": [t for s in made.trace.steps["A"] for t in s.outputs],
        "B": [t for s in made.trace.steps["B"] for t in s.outputs if t.position == x],
        "C": [t for s in made.trace.steps["C"] for t in s.outputs if t.position == y],
        "D": [],
    }
    arrivals = None if order is None else {"D": {at: i for i, at in enumerate(order)}}
    made.trace = type(made.trace).of(made.edges, given, arrivals=arrivals)
    return made


X2, Y2 = (0, (0, 0, 0)), (1, (0, 1, 0))


def test_a_tuple_cannot_be_stepped_over_when_a_later_one_arrived_first() -> None:
    made = figure_12([Y2, X2])
    found = overlap(made.trace, none(made), ("A", 0))
    assert found == Overlap("A", ("A", 1), ("D", 0))
    y2 = made.trace.step(("D", 0)).taken
    assert y2 is not None
    assert y2.position == Y2[1]
    assert made.trace.scope([("A", 1)]) >= {found.at}


def test_the_later_tuple_can_be_stepped_over_once_the_first_is_processed() -> None:
    made = figure_12([Y2, X2])
    inside = advanced(made.trace, none(made), [("A", 0)])
    assert overlap(made.trace, inside, ("A", 1)) is None
    after = over(made, inside, ("A", 1))
    assert after["D"] == 1
    assert open_steps(made.trace, after, ("A", 0)) == {("D", 1)}


def test_the_same_tuples_in_canonical_order_do_not_overlap() -> None:
    for order in (None, [X2, Y2]):
        made = figure_12(order)
        assert overlap(made.trace, none(made), ("A", 0)) is None
        assert over(made, none(made), ("A", 0))["D"] == 1


def test_the_overlapping_tuple_is_named_also_when_it_is_not_the_next_one() -> None:
    """z, two tuples later, came first at D; y went nowhere near it."""
    made = Made.of(FIGURE_12, rows=3)
    x, z = (0, 0, 0), (0, 2, 0)
    given = {
        "U": [s.taken for s in made.trace.steps["A"] if s.taken is not None],
        "A": [t for s in made.trace.steps["A"] for t in s.outputs],
        "B": [t for s in made.trace.steps["B"] for t in s.outputs if t.position == x],
        "C": [t for s in made.trace.steps["C"] for t in s.outputs if t.position == z],
    }
    trace = type(made.trace).of(made.edges, given, arrivals={"D": {(1, z): 0, (0, x): 1}})
    assert overlap(trace, {}, ("A", 0)) == Overlap("A", ("A", 2), ("D", 0))


# --- at random ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_a_step_goes_to_the_least_sound_cursor_with_what_was_wanted(seed: int, arrival: bool) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd, arrival=arrival, **FEW)
    every = cursors(made)
    for _ in range(5):
        start = rnd.choice(every)
        wanted = [k for k in made.steps if rnd.random() < 0.2]
        reached = advanced(made.trace, start, wanted)
        assert sound(made, reached)
        fitting = [c for c in every if later(c, start) and all(c[op] > n for op, n in wanted)]
        assert reached == least(fitting)


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_stepping_over_is_the_closure_of_the_scope(seed: int, arrival: bool) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd, arrival=arrival, **FEW)
    every = cursors(made)
    start = rnd.choice(every)
    for op in made.trace.steps:
        key = next_step(made.trace, start, op, made.edges.downstream(op))
        if key is None:
            continue
        scope = descendants(made, key)
        fitting = [c for c in every if later(c, start) and all(c[o] > n for o, n in scope)]
        assert over(made, start, key) == least(fitting)
        assert open_steps(made.trace, least(fitting), key) == set()


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_more_wanted_or_a_later_start_never_gives_an_earlier_cursor(seed: int, arrival: bool) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd, arrival=arrival)
    many = [k for k in made.steps if rnd.random() < 0.4]
    few = [k for k in many if rnd.random() < 0.5]
    start = advanced(made.trace, {}, [k for k in made.steps if rnd.random() < 0.1])
    assert later(advanced(made.trace, start, many), advanced(made.trace, start, few))
    assert later(advanced(made.trace, start, many), advanced(made.trace, {}, many))
    assert later(advanced(made.trace, start, []), start)
    again = advanced(made.trace, start, many)
    assert advanced(made.trace, again, many) == again


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_stepping_into_goes_one_step_at_a_time_and_reaches_everything(seed: int, arrival: bool) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd, arrival=arrival)
    names = set(made.nodes)
    counts, taken = none(made), 0
    while True:
        ready = [k for op in made.trace.steps if (k := next_step(made.trace, counts, op, names))]
        if not ready:
            break
        key = rnd.choice(ready)
        after = advanced(made.trace, counts, [key])
        assert after == {**counts, key[0]: key[1] + 1}
        assert sound(made, after)
        counts, taken = after, taken + 1
    assert counts == everything(made.trace)
    assert taken == len(made.steps)


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_what_waits_has_been_given_and_not_taken(seed: int, arrival: bool) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd, arrival=arrival, **FEW)
    counts = rnd.choice(cursors(made))
    for op, own in made.trace.steps.items():
        wanted = []
        for step in own[counts[op] :]:
            if step.taken is not None:
                parent = made.parents[step.taken.operator, step.taken.position]
                if parent is None or parent[1] < counts[parent[0]]:
                    wanted.append(step.key)
        assert waiting(made.trace, counts, op, set(made.nodes)) == wanted
        assert waiting(made.trace, counts, op, {op}) == [
            s.key for s in own[counts[op] :] if s.taken is not None
        ]


@given(st.integers(0, 1 << 32))
@COMMON
def test_in_canonical_order_every_tuple_can_be_stepped_over(seed: int) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd)
    for op in made.trace.steps:
        within = made.edges.downstream(op)
        counts = none(made)
        done = 0
        while (key := next_step(made.trace, counts, op, within)) is not None:
            assert overlap(made.trace, counts, key) is None
            counts = over(made, counts, key)
            done += 1
            assert counts[op] == done
        assert done == len(made.trace.steps[op])


@given(st.integers(0, 1 << 32))
@COMMON
def test_an_overlap_is_told_exactly_when_another_tuple_would_have_to_be_processed(seed: int) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd, arrival=True, **FEW)
    every = cursors(made)
    start = rnd.choice(every)
    for op in made.trace.steps:
        key = next_step(made.trace, start, op, made.edges.downstream(op))
        if key is None:
            continue
        scope = descendants(made, key)
        reached = least(c for c in every if later(c, start) and all(c[o] > n for o, n in scope))
        found = overlap(made.trace, start, key)
        assert (found is not None) == (reached[op] > key[1] + 1)
        if found is not None:
            assert found.operator == op
            assert found.step[0] == op
            assert found.step[1] > key[1]
            assert found.at in descendants(made, found.step)
            assert start[found.at[0]] <= found.at[1] < reached[found.at[0]]
