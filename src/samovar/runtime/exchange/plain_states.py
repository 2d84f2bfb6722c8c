"""States of Python operators as plain data, for people: what the containers hold, without their bookkeeping."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from samovar.graph.operator import Operator
from samovar.graph.state import StateList, StateMap, declared

__all__ = ["attributes", "merged"]


def attributes(instance: Operator) -> dict[str, Any]:
    """An operator's state. Changes nothing, also where a declared state has not been looked at yet."""
    made: dict[str, Any] = {}
    own = {n: v for n, v in vars(instance).items() if not n.startswith("_sv_")}
    unseen = {
        name: kind.wrap(copy.deepcopy(kind.initial))
        for name, kind in declared(type(instance)).items()
        if name not in own
    }
    for name, value in {**own, **unseen}.items():
        if isinstance(value, StateMap):
            made[name] = dict(dict.items(value))
        elif isinstance(value, StateList):
            made[name] = list(list.__iter__(value))
        else:
            made[name] = value
    return made


def merged(states: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The state of an operator over its key partitions: maps together, other values by partition."""
    if len(states) == 1:
        return dict(next(iter(states.values())))
    made: dict[str, Any] = {}
    names = list(dict.fromkeys(n for s in states.values() for n in s))
    for name in names:
        values = {bucket: s[name] for bucket, s in states.items() if name in s}
        if all(isinstance(v, Mapping) for v in values.values()):
            made[name] = {k: v for part in values.values() for k, v in part.items()}
        elif len({repr(v) for v in values.values()}) == 1:
            made[name] = next(iter(values.values()))
        else:
            made[name] = values
    return made
