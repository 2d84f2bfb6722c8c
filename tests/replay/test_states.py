"""States over time: views, timelines and changes, against plain replay of the same operations."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samovar as sv
from samovar.record.state_files import StateCapture
from samovar.replay.state.state_changes import MapView, Timeline, apply_changes, attributes, merged
from samovar.replay.trace.model import ABSENT, StateChange

COMMON = settings(deadline=None, database=None, derandomize=True, max_examples=200)

KEYS = st.one_of(st.none(), st.integers(0, 4), st.sampled_from(["a", "b", ""]))
VALUES = st.one_of(st.none(), st.integers(-2, 2), st.just(""), st.lists(st.integers(0, 2), max_size=2))


# --- MapView --------------------------------------------------------------------------------------------------------


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, st.one_of(VALUES, st.just(ABSENT))))
@COMMON
def test_a_view_is_the_map_with_its_changes(base: dict[Any, Any], over: dict[Any, Any]) -> None:
    plain = {k: v for k, v in {**base, **over}.items() if v is not ABSENT}
    before = copy.deepcopy(base)
    view = MapView(base, over)
    assert dict(view) == plain
    assert view == plain
    assert len(view) == len(plain) == len(list(view))
    assert bool(view) == bool(plain)
    for key in [None, 0, 1, 2, 3, 4, "a", "b", "", "other"]:
        assert (key in view) == (key in plain)
        assert view.get(key, "none") == plain.get(key, "none")
    assert repr(view) == repr(dict(view))
    assert base == before


def test_a_view_says_what_it_lacks_and_cannot_be_hashed() -> None:
    view = MapView({"a": 1, "b": None}, {"a": ABSENT})
    with pytest.raises(KeyError, match="a"):
        view["a"]
    assert view["b"] is None
    assert view == {"b": None}
    assert view != {"a": 1}
    with pytest.raises(TypeError):
        hash(view)


def test_absent_is_false_and_says_so() -> None:
    assert not ABSENT
    assert repr(ABSENT) == "absent"


def test_absent_stays_itself_on_its_way_between_processes() -> None:
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert copy.deepcopy(ABSENT) is ABSENT


# --- an operator's states over time ---------------------------------------------------------------------------------


class Busy(sv.Operator):
    """An operator with every kind of state."""

    output = "n int"
    declared_map = sv.MapState()
    declared_list = sv.ListState()
    declared_value = sv.ValueState(0)

    def __init__(self) -> None:
        self.plain = 0
        self.plain_dict: dict[Any, Any] = {}
        self.plain_list: list[Any] = []

    def act(self, rnd: random.Random) -> None:
        """One thing an operator may do to its state."""
        key = rnd.choice([None, 0, 1, 2, "a", "b"])
        value = rnd.choice([None, 0, 1, "x", [], [1]])
        match rnd.randrange(16):
            case 0 | 1 | 2:
                self.declared_map[key] = copy.copy(value)
            case 3:
                self.declared_map.pop(key, None)
            case 4:  # gone and come back in one step
                self.declared_map.pop(key, None)
                self.declared_map[key] = copy.copy(value)
            case 5:
                held = self.declared_map.setdefault(key, [])
                if isinstance(held, list):
                    held.append(len(held))
            case 6:
                self.declared_map = {key: 1, 2: 2}
            case 7:
                self.declared_map.clear()
            case 8 | 9:
                self.declared_list.append(copy.copy(value))
            case 10:
                self.declared_list[:] = [value, value]
            case 11:
                if self.declared_list:
                    self.declared_list.pop()
            case 12:
                self.declared_value += 1  # type: ignore[operator, assignment]
            case 13:
                self.plain_dict[key] = value
            case 14:
                self.plain_list.append(value)
            case 15:
                if hasattr(self, "sometimes"):
                    del self.sometimes
                else:
                    self.sometimes = self.plain


def told(delta: dict[str, Any]) -> dict[str, Any]:
    """What a worker told, as it comes out of its pickle."""
    made: dict[str, Any] = pickle.loads(pickle.dumps(delta))
    return made


def life(seed: int, steps: int = 12) -> tuple[list[dict[str, Any]], list[list[StateChange]]]:
    """The states of an operator after each step, and the changes that were told."""
    rnd = random.Random(seed)
    operator = Busy()
    for _ in range(rnd.randrange(5)):
        operator.act(rnd)
    state = copy.deepcopy(attributes(operator))
    capture = StateCapture("P", operator)
    capture.settle()
    states, changes = [copy.deepcopy(state)], []
    for _ in range(steps):
        for _ in range(rnd.choice([0, 1, 1, 2, 3])):
            operator.act(rnd)
        changes.append(apply_changes("P", state, told(capture.changes()), {}))
        assert state == attributes(operator)
        states.append(copy.deepcopy(state))
    return states, changes


@given(st.integers(0, 1 << 32))
@COMMON
def test_a_timeline_shows_the_state_after_every_step(seed: int) -> None:
    states, changes = life(seed)
    line = Timeline(states[0], changes)
    before = copy.deepcopy(states[0])
    for n, state in enumerate(states):
        assert line.at(n) == state
    for n in reversed(range(len(states))):  # looking back changes nothing
        assert line.at(n) == states[n]
    assert line.base == before


@given(st.integers(0, 1 << 32))
@COMMON
def test_changes_tell_what_was_there_before_and_after(seed: int) -> None:
    states, changes = life(seed)
    for n, made in enumerate(changes):
        seen = set()
        for change in made:
            assert change.operator == "P"
            if change.name == "declared_map":
                assert ("map", change.key) not in seen
                seen.add(("map", change.key))
                assert states[n]["declared_map"].get(change.key, ABSENT) == change.before
                assert states[n + 1]["declared_map"].get(change.key, ABSENT) == change.after
                assert change.before is not ABSENT or change.after is not ABSENT
            elif change.name == "declared_list" and change.key is not None:
                assert change.before is ABSENT
                assert states[n + 1]["declared_list"][change.key] == change.after
            else:
                assert change.key is None
                assert states[n].get(change.name, ABSENT) == change.before
                assert states[n + 1].get(change.name, ABSENT) == change.after


@given(st.integers(0, 1 << 32))
@COMMON
def test_a_step_that_changes_nothing_in_a_map_tells_nothing_of_it(seed: int) -> None:
    states, changes = life(seed)
    for n, made in enumerate(changes):
        keys = {c.key for c in made if c.name == "declared_map"}
        old, new = states[n]["declared_map"], states[n + 1]["declared_map"]
        differ = {k for k in (*old, *new) if (k in old, repr(old.get(k))) != (k in new, repr(new.get(k)))}
        assert keys == differ


def test_null_is_a_key_like_any_other() -> None:
    change = {"maps": {"m": (False, {None: 1}, ())}, "lists": {}, "values": {}, "gone": ()}
    state: dict[str, Any] = {"m": {"a": 0}}
    made = apply_changes("P", state, change, {})
    assert state == {"m": {"a": 0, None: 1}}
    assert Timeline({"m": {"a": 0}}, [made]).at(1) == state


def test_a_key_that_went_and_came_back_in_one_step_keeps_what_was_before() -> None:
    change = {"maps": {"m": (False, {"a": 2}, ("a",))}, "lists": {}, "values": {}, "gone": ()}
    (made,) = apply_changes("P", {"m": {"a": 1, "b": 1}}, change, {})
    assert (made.key, made.before, made.after) == ("a", 1, 2)


# --- key partitions -------------------------------------------------------------------------------------------------


def test_states_of_one_partition_are_the_state() -> None:
    assert merged({0: {"m": {1: 2}, "n": 3}}) == {"m": {1: 2}, "n": 3}


def test_maps_of_partitions_come_together_and_other_values_stay_apart() -> None:
    states = {
        0: {"m": {1: 2}, "n": 3, "same": "x"},
        1: {"m": {4: 5}, "n": 6, "same": "x"},
        5: {"m": {}, "same": "x"},
    }
    assert merged(states) == {"m": {1: 2, 4: 5}, "n": {0: 3, 1: 6}, "same": "x"}
