"""States as they were: a base, and what each step changed in it. Pure: no Spark.

A state is a mapping from names to values. A value is a map (a declared map, the groups of an aggregate), a list, or a
plain value. `Timeline` holds the base of one operator at a window's start and the changes of every step of the window;
the state at a moment is a view of the base with the changes so far laid over it: it costs what changed, not the whole.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samovar.record.blocks import patched
from samovar.replay.trace.model import ABSENT, StateChange
from samovar.runtime.exchange.plain_states import attributes, merged

__all__ = ["MapView", "Timeline", "apply_changes", "attributes", "merged"]


class MapView(Mapping[Any, Any]):
    """A map with some keys changed or gone; the base is shared and never copied."""

    def __init__(self, base: Mapping[Any, Any], changed: Mapping[Any, Any]) -> None:
        self.base = base
        self.changed = changed
        """The changed keys and their values; ABSENT for those that are gone."""

    def __getitem__(self, key: Any) -> Any:
        value = self.changed[key] if key in self.changed else self.base[key]
        if value is ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.changed[key] is not ABSENT if key in self.changed else key in self.base

    def __iter__(self) -> Iterator[Any]:
        yield from (key for key in self.base if self.changed.get(key) is not ABSENT)
        yield from (
            key for key, value in self.changed.items() if key not in self.base and value is not ABSENT
        )

    def __len__(self) -> int:
        """Without walking through the base, which may be large."""
        added = sum(1 for k, v in self.changed.items() if v is not ABSENT and k not in self.base)
        gone = sum(1 for k, v in self.changed.items() if v is ABSENT and k in self.base)
        return len(self.base) + added - gone

    def __repr__(self) -> str:
        return repr(dict(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Timeline:
    """One operator's state over a window. `changes[n]` is what its n-th step changed."""

    base: Mapping[str, Any]
    changes: Sequence[Sequence[StateChange]]

    def at(self, steps: int) -> dict[str, Any]:
        """The state after some steps of the window."""
        changed: dict[str, dict[Any, Any]] = {}
        """The changed keys of maps that are in the base."""
        values = dict(self.base)
        for change in (change for step in self.changes[:steps] for change in step):
            name, base = change.name, self.base.get(change.name)
            if change.keyed and not isinstance(base, Mapping):
                values[name] = MapView(values.get(name, {}), {change.key: change.after})
            elif isinstance(base, Mapping) and not change.whole:
                changed.setdefault(name, {})[change.key] = change.after
            elif isinstance(base, list) and not change.whole:
                values[name] = [*values[name][: change.key], change.after]
            elif change.after is ABSENT:
                values.pop(name, None)
                changed.pop(name, None)
            else:
                values[name] = change.after
        return values | {name: MapView(self.base[name], keys) for name, keys in changed.items()}


def apply_changes(
    operator: str, state: dict[str, Any], delta: Mapping[str, Any], pickled: dict[str, bytes]
) -> list[StateChange]:
    """Apply a worker's changes to a state of plain data, and return them one by one with what was there before.

    `pickled` holds the plain values as the worker has them: of a large value, a worker sends the blocks that changed.
    """
    changes: list[StateChange] = []
    for name, (replaced, changed, deleted) in delta["maps"].items():
        target: dict[Any, Any] = state.setdefault(name, {})
        lost = {k: target.pop(k) for k in (list(target) if replaced else deleted) if k in target}
        changes += [
            StateChange(operator, name, k, v, ABSENT, True) for k, v in lost.items() if k not in changed
        ]
        for key, value in changed.items():
            before = lost.get(key, target.get(key, ABSENT))
            if before is ABSENT or not _same(before, value):
                changes.append(StateChange(operator, name, key, before, value, True))
            target[key] = value
    for name, (base, items) in delta["lists"].items():
        held: list[Any] = state.setdefault(name, [])
        if base is None:
            changes.append(StateChange(operator, name, None, list(held), list(items)))
            state[name] = list(items)
        else:
            changes += [
                StateChange(operator, name, len(held) + i, ABSENT, item) for i, item in enumerate(items)
            ]
            held.extend(items)
    for name, blocks in delta["values"].items():
        pickled[name] = patched(pickled.get(name), blocks)
        value = pickle.loads(pickled[name])
        before = state.get(name, ABSENT)
        if "whole" not in delta or before is ABSENT or not _same(before, value):
            changes.append(StateChange(operator, name, None, before, value))
        state[name] = value
    for name in delta["gone"]:
        if name in state:
            changes.append(StateChange(operator, name, None, state.pop(name), ABSENT))
    return changes


def _same(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # for example arrays, whose comparison is an array
        return False
