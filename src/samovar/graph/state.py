"""State of Python operators: declared kinds that know what changed.

`MapState` and `ListState` are containers on the instance that note which keys or items changed since the last epoch,
so that an epoch's delta holds only those. `ValueState` is a plain value. Values that are not plain immutables (a list
inside a map, say) count as changed as soon as they are read, since later changes to them cannot be seen.

A delta is applied to its base in this order: clear it if `replaced`, else remove the keys `deleted`; then set the keys
`changed` in the map's own order. This restores the order of the keys too. C functions that write into a list without
its methods (`heapq.heappush`, `heappop`) are not seen: keep a heap in a `ValueState` or a plain attribute.

A container behaves like the dict or list it is; it is not safe for use by several threads.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

if TYPE_CHECKING:
    from samovar.graph.operator import Operator

__all__ = ["ListState", "MapState", "State", "StateList", "StateMap", "ValueState", "declared"]

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

IMMUTABLE: frozenset[type] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, Decimal, date, datetime, time, timedelta, frozenset}
)
_MISSING: Any = object()


class StateMap(dict[K, V]):
    """A dict that notes changed and deleted keys. Reading costs one type check more than a dict."""

    __slots__ = ("changed", "deleted", "replaced")

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        self.changed: set[K] = set()
        self.deleted: set[K] = set()
        self.replaced = False

    def settle(self) -> None:
        """Forget what changed: the present content is the new base."""
        self.changed = set()
        self.deleted = set()
        self.replaced = False

    def __setitem__(self, key: K, value: V) -> None:
        self.changed.add(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: K) -> None:
        dict.__delitem__(self, key)
        self.changed.discard(key)
        self.deleted.add(key)

    def __getitem__(self, key: K) -> V:
        value = dict.__getitem__(self, key)
        if type(value) not in IMMUTABLE:
            self.changed.add(key)
        return value

    def get(self, key: K, default: Any = None) -> Any:
        value = dict.get(self, key, _MISSING)
        if value is _MISSING:
            return default
        if type(value) not in IMMUTABLE:
            self.changed.add(key)
        return value

    def setdefault(self, key: K, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: K, default: Any = _MISSING) -> Any:
        if key in self:
            value = dict.__getitem__(self, key)
            del self[key]
            return value
        if default is _MISSING:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[K, V]:
        key, value = dict.popitem(self)
        self.changed.discard(key)
        self.deleted.add(key)
        return key, value

    def clear(self) -> None:
        dict.clear(self)
        self.changed = set()
        self.deleted = set()
        self.replaced = True

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> StateMap[K, V]:  # type: ignore[override]
        self.update(other)
        return self

    def values(self) -> Any:
        self._hand_out_all()
        return dict.values(self)

    def items(self) -> Any:
        self._hand_out_all()
        return dict.items(self)

    def __iter__(self) -> Iterator[K]:
        # Without this method, dict(m) and {**m} would read the values without calling ours (CPython's fast path).
        return dict.__iter__(self)

    def copy(self) -> dict[K, V]:
        return dict(self.items())

    def __copy__(self) -> dict[K, V]:
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        return dict(self.items()) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self.items())

    def _hand_out_all(self) -> None:
        self.changed.update(k for k, v in dict.items(self) if type(v) not in IMMUTABLE)

    def __reduce__(self) -> Any:
        return (dict, (dict(dict.items(self)),))


class StateList(list[T]):
    """A list that knows whether it only grew. Any other change makes the whole list count as changed."""

    __slots__ = ("base", "rewritten")

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__(items)
        self.base = len(self)
        self.rewritten = True

    def settle(self) -> None:
        """Forget what changed: the present content is the new base."""
        self.base = len(self)
        self.rewritten = False

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: Any) -> Any:
        value = list.__getitem__(self, index)
        if not self.rewritten:
            handed_out = value if isinstance(index, slice) else (value,)
            self.rewritten = any(type(v) not in IMMUTABLE for v in handed_out)
        return value

    def __reversed__(self) -> Iterator[T]:
        iter(self)
        return list.__reversed__(self)

    def copy(self) -> list[T]:
        return list(self)

    def __copy__(self) -> list[T]:
        return list(self)

    def __add__(self, other: Any) -> Any:
        return list(self) + other

    def __mul__(self, n: SupportsIndex) -> list[T]:
        return list(self) * n

    __rmul__ = __mul__

    def __iter__(self) -> Iterator[T]:
        if not self.rewritten and any(type(v) not in IMMUTABLE for v in list.__iter__(self)):
            self.rewritten = True
        return list.__iter__(self)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.rewritten = True
        list.__setitem__(self, index, value)

    def __delitem__(self, index: Any) -> None:
        self.rewritten = True
        list.__delitem__(self, index)

    def insert(self, index: SupportsIndex, value: T) -> None:
        self.rewritten = True
        list.insert(self, index, value)

    def pop(self, index: SupportsIndex = -1) -> T:
        self.rewritten = True
        return list.pop(self, index)

    def remove(self, value: T) -> None:
        self.rewritten = True
        list.remove(self, value)

    def clear(self) -> None:
        self.rewritten = True
        list.clear(self)

    def sort(self, **kwargs: Any) -> None:
        self.rewritten = True
        list.sort(self, **kwargs)

    def reverse(self) -> None:
        self.rewritten = True
        list.reverse(self)

    def __imul__(self, n: SupportsIndex) -> StateList[T]:
        self.rewritten = True
        list.__imul__(self, n)
        return self

    def __reduce__(self) -> Any:
        return (list, (list(list.__iter__(self)),))


class State:
    """A declared state of a Python operator: a class attribute that gives each instance its own value."""

    name: str

    def __init__(self, initial: Any = None) -> None:
        self.initial = initial

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Operator | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            return instance.__dict__[self.name]
        except KeyError:
            value = instance.__dict__[self.name] = self.wrap(copy.deepcopy(self.initial))
            return value

    def __set__(self, instance: Operator, value: Any) -> None:
        instance.__dict__[self.name] = self.wrap(value)

    def wrap(self, value: Any) -> Any:
        """The form in which the value is kept on the instance."""
        return value


class ValueState(State):
    """A single value: `n = sv.ValueState(0)`, then `self.n += 1`."""


class MapState(State):
    """A dict of which only changed keys are stored per epoch: `highest = sv.MapState()`."""

    def wrap(self, value: Any) -> StateMap[Any, Any]:
        states: StateMap[Any, Any] = StateMap(value or ())
        states.replaced = True
        return states


class ListState(State):
    """A list of which only appended items are stored per epoch: `seen = sv.ListState()`."""

    def wrap(self, value: Any) -> StateList[Any]:
        return StateList(value or ())


def declared(cls: type) -> dict[str, State]:
    """The declared states of an operator class, by name, base classes first."""
    members = (member for base in reversed(cls.__mro__) for member in vars(base).items())
    return {name: value for name, value in members if isinstance(value, State)}
