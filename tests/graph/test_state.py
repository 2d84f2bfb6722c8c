"""State containers: what they report as changed suffices to bring an older copy up to date."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.graph.operator import Operator
from samovar.graph.state import ListState, MapState, StateList, StateMap, ValueState, declared


def brought_up_to_date(base: dict[Any, Any], now: StateMap[Any, Any]) -> dict[Any, Any]:
    """What a reader of base and delta ends up with."""
    content = dict(dict.items(now))
    if now.replaced:
        return copy.deepcopy(content)
    made = {k: v for k, v in base.items() if k not in now.deleted}
    made.update({k: copy.deepcopy(v) for k, v in content.items() if k in now.changed})
    return made


KEYS = st.integers(0, 4)
VALUES = st.one_of(st.integers(), st.lists(st.integers(), max_size=2))
MAP_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["set", "del", "pop", "popitem", "setdefault", "update", "ior", "append", "get", "clear", "values",
             "items", "dict", "spread", "copy", "settle"]
        ),
        KEYS,
        VALUES,
    ),
    max_size=25,
)  # fmt: skip


def _grow(value: Any) -> None:
    if isinstance(value, list):
        value.append(99)


def _map_step(m: StateMap[Any, Any], what: str, key: int, value: Any) -> None:
    match what:
        case "set":
            m[key] = value
        case "del" if key in m:
            del m[key]
        case "pop":
            m.pop(key, None)
        case "popitem" if m:
            m.popitem()
        case "setdefault":
            _grow(m.setdefault(key, value))
        case "update":
            m.update({key: value})
        case "ior":
            m |= {key: value}
        case "append" if key in m:
            _grow(m[key])
        case "get":
            _grow(m.get(key))
        case "clear":
            m.clear()
        case "values":
            for v in m.values():
                _grow(v)
        case "items":
            for pair in m.items():
                _grow(pair[1])
        case "dict":
            _grow(dict(m).get(key))
        case "spread":
            _grow({**m}.get(key))
        case "copy":
            _grow(copy.copy(m).get(key))
            _grow(m.copy().get(key))
            _grow((m | {}).get(key))


@given(st.dictionaries(KEYS, VALUES, max_size=4), MAP_STEPS)
def test_base_and_delta_give_the_map_with_its_order(start: dict[int, Any], steps: list[Any]) -> None:
    m: StateMap[Any, Any] = StateMap(copy.deepcopy(start))
    m.settle()
    base = copy.deepcopy(start)
    for what, key, value in steps:
        if what == "settle":
            base = copy.deepcopy(dict(dict.items(m)))
            m.settle()
        else:
            _map_step(m, what, key, copy.deepcopy(value))
        again = brought_up_to_date(base, m)
        assert list(again.items()) == list(dict.items(m))


def test_reading_plain_values_changes_nothing() -> None:
    m = StateMap({"a": 1, "b": "x"})
    m.settle()
    assert (m["a"], m.get("b"), list(m.values()), "a" in m, dict(m)) == (
        1,
        "x",
        [1, "x"],
        True,
        {"a": 1, "b": "x"},
    )
    assert not m.changed
    assert not m.deleted


def test_a_mutable_value_counts_as_changed_when_handed_out() -> None:
    m: StateMap[str, list[int]] = StateMap({"a": [], "b": []})
    m.settle()
    m["a"].append(1)
    assert m.changed == {"a"}


def test_a_missing_key_is_an_error_as_in_a_dict() -> None:
    m: StateMap[str, int] = StateMap()
    for attempt in (lambda: m["x"], lambda: m.pop("x"), lambda: m.__delitem__("x")):
        with pytest.raises(KeyError):
            attempt()
    assert not m.deleted


LIST_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "extend", "iadd", "set", "del", "insert", "pop", "remove", "clear", "sort", "reverse", "imul",
             "grow", "iterate", "reversed", "slice", "copy", "add", "unpack", "slice_set", "settle"]
        ),
        st.integers(0, 3),
        VALUES,
    ),
    max_size=25,
)  # fmt: skip


def _list_step(items: StateList[Any], what: str, at: int, value: Any) -> StateList[Any]:
    inside = at < len(items)
    match what:
        case "append":
            items.append(value)
        case "extend":
            items.extend([value, value])
        case "iadd":
            items += [value]
        case "set" if inside:
            items[at] = value
        case "del" if inside:
            del items[at]
        case "insert":
            items.insert(at, value)
        case "pop" if items:
            items.pop()
        case "remove" if value in items:
            items.remove(value)
        case "clear":
            items.clear()
        case "sort":
            items.sort(key=str)
        case "reverse":
            items.reverse()
        case "imul":
            items *= at if len(items) < 50 else 1
        case "grow" if inside:
            _grow(items[at])
        case "iterate":
            for v in items:
                _grow(v)
        case "reversed":
            for v in reversed(items):
                _grow(v)
        case "slice":
            for v in items[at:]:
                _grow(v)
        case "copy":
            for v in [*items.copy(), *copy.copy(items)]:
                _grow(v)
        case "add":
            for v in [*(items + []), *(items * 1), *(1 * items)]:  # noqa: RUF005
                _grow(v)
        case "unpack":
            for v in [*items]:
                _grow(v)
        case "slice_set":
            items[at : at + 1] = [value]
    return items


@given(st.lists(VALUES, max_size=4), LIST_STEPS)
def test_base_and_appended_items_give_the_list(start: list[Any], steps: list[Any]) -> None:
    items: StateList[Any] = StateList(copy.deepcopy(start))
    items.settle()
    base = copy.deepcopy(start)
    for what, at, value in steps:
        if what == "settle":
            base = copy.deepcopy(list(list.__iter__(items)))
            items.settle()
        else:
            items = _list_step(items, what, at, copy.deepcopy(value))
        assert isinstance(items, StateList)
        now = list(list.__iter__(items))
        if not items.rewritten:
            assert items.base == len(base)
            assert base + now[items.base :] == now


def test_a_list_that_only_grows_is_not_rewritten() -> None:
    items = StateList([1, 2])
    items.settle()
    items.append(3)
    items.extend([4])
    assert (items[0], items[-1], items[1:], sum(items), items.base) == (1, 4, [2, 3, 4], 10, 2)
    assert not items.rewritten


def test_an_inner_list_counts_as_changed_when_handed_out() -> None:
    items = StateList([[1, 2]])
    items.settle()
    items[0].append(3)
    assert items.rewritten


class Counting(Operator):
    output = "n int"
    highest = MapState()
    seen = ListState()
    n = ValueState(0)
    tags = ValueState([])

    def __init__(self, start: int = 0, names: list[str] | None = None) -> None:
        self.n = start
        self.highest["first"] = start
        self.plain = "x"


class TestDeclaredState:
    def test_each_instance_has_its_own(self) -> None:
        one, two = Counting(), Counting()
        one.highest["a"] = 1
        one.seen.append(1)
        one.tags.append("t")
        one.n += 5
        assert (dict(two.highest), list(two.seen), two.tags, two.n) == ({"first": 0}, [], [], 0)

    def test_assigning_replaces_the_container_and_says_so(self) -> None:
        op = Counting()
        op.highest.settle()
        op.highest = {"b": 2}
        assert isinstance(op.highest, StateMap)
        assert op.highest.replaced
        op.seen = (1, 2)
        assert isinstance(op.seen, StateList)
        assert op.seen.rewritten

    def test_declared_lists_base_classes_first(self) -> None:
        class More(Counting):
            extra = ValueState(1)

        assert list(declared(More)) == ["highest", "seen", "n", "tags", "extra"]
        assert isinstance(Counting.highest, MapState)

    def test_pickling_and_copying_keep_containers_that_track(self) -> None:
        op = Counting(3)
        for again in (pickle.loads(pickle.dumps(op)), copy.deepcopy(op), copy.copy(op)):
            assert isinstance(again.highest, StateMap)
            assert again.highest == {"first": 3}
            assert (again.n, again.plain, again._sv_params) == (3, "x", ((3,), {}))

    def test_containers_pickle_as_plain_ones(self) -> None:
        assert type(pickle.loads(pickle.dumps(StateMap({"a": 1})))) is dict
        assert type(pickle.loads(pickle.dumps(StateList([1])))) is list


class TestConstructorArguments:
    def test_are_kept_as_given_whatever_the_constructor_does_to_them(self) -> None:
        class Eats(Operator):
            def __init__(self, names: list[str]) -> None:
                names.clear()

        assert Eats(["a", "b"])._sv_params == ((["a", "b"],), {})

    def test_too_many_are_an_error_as_for_any_class(self) -> None:
        class Plain(Operator):
            output = "a int"

        with pytest.raises(TypeError, match="takes no arguments"):
            Plain(1)
        with pytest.raises(TypeError):
            Counting(1, 2, 3)
