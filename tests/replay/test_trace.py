"""Traces from positions alone: who took what, what was made from it, and the scope of a tuple."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.support import Made, Node, descendants, random_made

from samovar.positions import END, Position
from samovar.replay.trace.model import Edges, Trace, Tuple, parent_of

COMMON = settings(deadline=None, database=None, derandomize=True, max_examples=300)


def taken(made: Made, name: str) -> list[tuple[int, Position]]:
    return [(s.port, s.taken.position) for s in made.trace.steps[name] if s.taken is not None]


def keys(made: Made, *roots: tuple[str, int]) -> set[tuple[str, int]]:
    return made.trace.scope(roots)


CHAIN = {
    "U": Node("source"),
    "FE": Node("python", ("U",)),
    "FD": Node("python", ("FE",)),
    "FF": Node("some", ("FD",)),
    "S": Node("sink", ("FF",)),
}
TREE = {
    "U": Node("source"),
    "B": Node("python", ("U",)),
    "C": Node("one", ("B",)),
    "D": Node("many", ("B",)),
    "E": Node("sink", ("B",)),
}
DIAMOND = {
    "U": Node("source"),
    "A": Node("python", ("U",)),
    "B": Node("one", ("A",)),
    "C": Node("python", ("A",)),
    "D": Node("union", ("B", "C")),
    "S": Node("sink", ("D",)),
}


def test_a_step_of_a_chain_takes_what_the_step_before_gave() -> None:
    made = Made.of(CHAIN)
    assert taken(made, "FE") == [(0, (0, 0)), (0, (0, 1))]
    assert taken(made, "FD") == [(0, (0, 0, 0)), (0, (0, 1, 0))]
    assert taken(made, "S") == [(0, (0, 0, 0, 0)), (0, (0, 1, 0, 0))]
    second = made.trace.step(("FD", 1))
    assert made.trace.producer(second) == ("FE", 1)
    assert [t.position for t in second.outputs] == [(0, 1, 0, 0)]
    assert made.trace.producer(made.trace.step(("FE", 0))) is None
    assert second.row == {"at": "FE(0, 1, 0)"}


def test_the_scope_of_a_tuple_of_a_chain_is_one_step_of_each_operator() -> None:
    made = Made.of(CHAIN)
    assert keys(made, ("FE", 1)) == {("FE", 1), ("FD", 1), ("FF", 1), ("S", 1)}
    assert keys(made, ("FF", 0)) == {("FF", 0), ("S", 0)}


def test_a_tuple_of_a_tree_goes_to_all_branches() -> None:
    made = Made.of(TREE)
    (given_by_b,) = made.trace.step(("B", 0)).outputs
    assert set(made.trace.consumers(given_by_b)) == {("C", 0), ("D", 0), ("E", 0)}
    assert keys(made, ("B", 0)) == {("B", 0), ("C", 0), ("D", 0), ("E", 0)}


def test_branches_of_a_diamond_meet_in_the_order_of_their_source() -> None:
    made = Made.of(DIAMOND)
    assert taken(made, "D") == [(0, (0, 0, 0)), (1, (0, 0, 0, 0)), (0, (0, 1, 0)), (1, (0, 1, 0, 0))]
    assert [made.trace.producer(s) for s in made.trace.steps["D"]] == [("B", 0), ("C", 0), ("B", 1), ("C", 1)]
    assert keys(made, ("A", 0)) == {
        ("A", 0),
        ("B", 0),
        ("C", 0),
        ("D", 0),
        ("D", 1),
        ("S", 0),
        ("S", 1),
    }


def test_a_union_of_one_frame_with_itself_takes_every_tuple_on_both_ports() -> None:
    made = Made.of({"U": Node("source"), "D": Node("union", ("U", "U")), "S": Node("sink", ("D",))}, rows=2)
    assert taken(made, "D") == [(0, (0, 0)), (1, (0, 0)), (0, (0, 1)), (1, (0, 1))]
    assert [[t.position for t in s.outputs] for s in made.trace.steps["D"]] == [
        [(0, 0, 0)],
        [(0, 0, 1)],
        [(0, 1, 0)],
        [(0, 1, 1)],
    ]


def test_sources_come_one_after_the_other() -> None:
    nodes = {"a": Node("source"), "b": Node("source"), "P": Node("python", ("b", "a"))}
    made = Made.of(nodes, rows=2)
    assert taken(made, "P") == [(1, (0, 0)), (1, (0, 1)), (0, (1, 0)), (0, (1, 1))]
    assert [t.position for t in made.trace.step(("P", 0)).outputs] == [(0, 0, 1, 0)]


@pytest.mark.parametrize("probe", [0, 1])
def test_only_the_probe_side_of_a_join_is_steps(probe: int) -> None:
    nodes = {
        "a": Node("source"),
        "b": Node("source"),
        "x": Node("one", ("a",)),
        "y": Node("one", ("b",)),
        "J": Node("join", ("x", "y"), probe=probe),
        "S": Node("sink", ("J",)),
    }
    made = Made.of(nodes, rows=2)
    assert taken(made, "J") == [(probe, (probe, 0)), (probe, (probe, 1))]
    probing, building = ("x", "y") if probe == 0 else ("y", "x")
    assert keys(made, (probing, 1)) == {(probing, 1), ("J", 1), ("S", 1)}
    assert keys(made, (building, 1)) == {(building, 1)}


def test_what_is_given_at_the_end_has_no_parent_and_comes_last() -> None:
    nodes = {
        "U": Node("source"),
        "P": Node("python", ("U",), finish=2),
        "Q": Node("python", ("P",), finish=0),
        "S": Node("sink", ("Q",)),
    }
    made = Made.of(nodes, rows=1)
    end = made.trace.step(("P", 1))
    assert end.taken is None
    assert end.row is None
    assert [t.position for t in end.outputs] == [(END + 1, 0, 0), (END + 1, 0, 1)]
    assert parent_of(made.edges, "P", end.outputs[0].position) is None
    assert [s.taken is None for s in made.trace.steps["Q"]] == [False, False, False, True]
    assert [made.trace.producer(s) for s in made.trace.steps["Q"]] == [("P", 0), ("P", 1), ("P", 1), None]
    assert keys(made, ("P", 1)) == {("P", 1), ("Q", 1), ("Q", 2), ("S", 1), ("S", 2)}
    assert keys(made, ("Q", 3)) == {("Q", 3)}


def test_a_tuple_from_before_the_trace_has_no_producer() -> None:
    edges = Edges(
        {"A": ("U",), "B": ("A",), "U": ()}, {"A": "one", "B": "sink", "U": "source"}, {"U": 2, "A": 2}, {}
    )
    trace = Trace(edges, {})
    assert ("A", 0) not in trace
    assert trace.consumers(Tuple("A", (0, 3), {})) == []


def test_downstream_is_the_operator_and_all_behind_it() -> None:
    edges = Made.of(DIAMOND).edges
    assert edges.downstream("A") == {"A", "B", "C", "D", "S"}
    assert edges.downstream("C") == {"C", "D", "S"}
    assert edges.downstream("S") == {"S"}


def test_tuples_are_the_same_by_operator_and_position() -> None:
    assert Tuple("A", (0, 1), {"a": 1}) == Tuple("A", (0, 1), {"a": [2]})
    assert len({Tuple("A", (0, 1), {"a": [1]}), Tuple("A", (0, 1), {}), Tuple("B", (0, 1), {})}) == 2


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_every_output_is_found_below_the_step_that_made_it(seed: int, arrival: bool) -> None:
    made = random_made(random.Random(seed), arrival=arrival)
    for own in made.trace.steps.values():
        for step in own:
            for out in step.outputs:
                assert made.parents[out.operator, out.position] == step.key
    told = {(o.operator, o.position) for own in made.trace.steps.values() for s in own for o in s.outputs}
    assert told == {at for at, parent in made.parents.items() if parent is not None}


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_every_tuple_is_taken_once_by_each_consumer(seed: int, arrival: bool) -> None:
    made = random_made(random.Random(seed), arrival=arrival)
    for name, node in made.nodes.items():
        if node.shape == "source":
            assert name not in made.trace.steps
            continue
        ports = [node.probe] if node.shape == "join" else range(len(node.inputs))
        wanted = sorted((p, at) for p in ports for (op, at) in made.parents if op == node.inputs[p])
        assert sorted(taken(made, name)) == wanted
        assert [s.number for s in made.trace.steps[name]] == list(range(len(made.trace.steps[name])))


@given(st.integers(0, 1 << 32), st.booleans())
@COMMON
def test_a_scope_is_exactly_the_descendants(seed: int, arrival: bool) -> None:
    made = random_made(random.Random(seed), arrival=arrival)
    for key in made.steps:
        assert made.trace.scope([key]) == descendants(made, key)


@given(st.integers(0, 1 << 32))
@COMMON
def test_the_scope_of_several_steps_is_their_scopes_together(seed: int) -> None:
    rnd = random.Random(seed)
    made = random_made(rnd)
    some = [k for k in made.steps if rnd.random() < 0.4]
    assert made.trace.scope(some) == set().union(*(descendants(made, k) for k in some))
