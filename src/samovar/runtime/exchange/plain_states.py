"""States of Python operators as plain data, for people: what the containers hold, without their bookkeeping."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from samovar.graph.operator import Operator
from samovar.graph.state import StateList, StateMap, declared

__all__ = ["attributes", "merged", "states_of"]


def attributes(instance: Operator) -> dict[str, Any]:
    """An operator's state as plain data."""
    return {name: _plain(value) for name, value in states_of(instance).items()}


def states_of(instance: Operator) -> dict[str, Any]:
    """An operator's state in its containers. Asking changes nothing, also where a declared state was never used."""
    values = {n: v for n, v in vars(instance).items() if not n.startswith("_sv_")}
    for name, kind in declared(type(instance)).items():
        if name not in values:
            values[name] = kind.wrap(copy.deepcopy(kind.initial))
    return values


def _plain(value: Any) -> Any:
    """A copy of a container's content; any other value as it is. By the base class: reading is not recorded."""
    if isinstance(value, StateMap):
        return dict(dict.items(value))
    return list(list.__iter__(value)) if isinstance(value, StateList) else value


def merged(states: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The state of an operator over its key partitions: maps together, other values by partition."""
    if len(states) == 1:
        return dict(next(iter(states.values())))
    state: dict[str, Any] = {}
    names = list(dict.fromkeys(n for s in states.values() for n in s))
    for name in names:
        values = {bucket: s[name] for bucket, s in states.items() if name in s}
        if all(isinstance(v, Mapping) for v in values.values()):
            state[name] = {k: v for part in values.values() for k, v in part.items()}
        elif len({repr(v) for v in values.values()}) == 1:
            state[name] = next(iter(values.values()))
        else:
            state[name] = values
    return state
