"""Values as JSON can hold them. However large a value is, its JSON is small: containers are cut. Pure."""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from samovar.record.log import Counters
from samovar.replay.moment import Moment, StepInfo
from samovar.replay.trace.model import ABSENT, StateChange
from samovar.runtime.live.inspection import InFlight, Inspection
from samovar.text import shown

__all__ = [
    "change_data",
    "inspection_data",
    "map_data",
    "moment_data",
    "plain",
    "row_data",
    "state_data",
    "step_data",
]

_ENTRIES = 100
"""Entries of a container inside a value."""
_LETTERS = 20_000
_DEPTH = 8
_EXACT = 2**53
"""Whole numbers beyond this lose digits in a browser; they travel as text."""


def plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON holds it: times and decimals as text, binary as base64, maps with other keys as pairs."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= _LETTERS else value[:_LETTERS] + " ..."
    if value is ABSENT:
        return {"$absent": True}
    if isinstance(value, datetime | date | time | timedelta | Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$binary": base64.b64encode(bytes(value)[:_LETTERS]).decode()}
    if depth >= _DEPTH:
        return {"$text": shown(value, 200)}
    if isinstance(value, Mapping):
        return _mapping(value, depth)
    if isinstance(value, list | tuple | AbstractSet):
        return _items(value, depth)
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a NumPy number
        return plain(value.item(), depth + 1)
    return {"$text": shown(value, _LETTERS)}


def _mapping(value: Mapping[Any, Any], depth: int) -> Any:
    entries = list(islice(value.items(), _ENTRIES + 1))
    more = len(value) - _ENTRIES if len(entries) > _ENTRIES else 0
    entries = entries[:_ENTRIES]
    if all(isinstance(k, str) and not k.startswith("$") for k, _ in entries) and not more:
        return {k: plain(v, depth + 1) for k, v in entries}
    return {"$map": [[plain(k, depth + 1), plain(v, depth + 1)] for k, v in entries], "$more": more}


def _items(value: Collection[Any], depth: int) -> Any:
    items = [plain(v, depth + 1) for v in islice(value, _ENTRIES + 1)]
    if len(items) <= _ENTRIES:
        return items
    return {"$list": items[:_ENTRIES], "$more": len(value) - _ENTRIES}


def row_data(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A row as JSON holds it, column by column."""
    return None if row is None else {str(k): plain(v) for k, v in row.items()}


def state_data(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state by its names: maps as their first entries, other values whole."""
    return {
        name: map_data(value, 0, islice(value.items(), _ENTRIES))
        if isinstance(value, Mapping)
        else {"kind": "value", "value": plain(value)}
        for name, value in state.items()
    }


def map_data(value: Mapping[Any, Any], start: int, entries: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """A page of a map: some of its entries, the first of which has the number `start`."""
    pairs = [[plain(k), plain(v)] for k, v in entries]
    return {"kind": "map", "size": len(value), "start": start, "entries": pairs}


def inspection_data(seen: Inspection, flying: InFlight | None) -> dict[str, Any]:
    """An operator of a run that has not ended: its state, and its tuples in flight (None: not asked for)."""
    return {
        "operator": seen.operator,
        "epoch": seen.epoch,
        "consistent": seen.consistent,
        "note": seen.note,
        "state": state_data(seen.state),
        "tuples": sum(p.tuples or 0 for p in seen.parts),
        "in_flight": None if flying is None else [row_data(r) for r in flying.rows],
        "more": 0 if flying is None else flying.more,
    }


def change_data(change: StateChange) -> dict[str, Any]:
    """A change of an operator's state as plain data."""
    return {
        "operator": change.operator,
        "name": change.name,
        "key": plain(change.key),
        "keyed": change.keyed or change.key is not None,
        "before": plain(change.before),
        "after": plain(change.after),
    }


def step_data(step: StepInfo) -> dict[str, Any]:
    """A computation step as plain data; outputs and changes are cut to a hundred."""
    return {
        "operator": step.operator,
        "port": step.port,
        "row": row_data(step.row),
        "outputs": [row_data(o) for o in step.outputs[:_ENTRIES]],
        "changes": [change_data(c) for c in step.changes[:_ENTRIES]],
    }


def moment_data(id: str, moment: Moment, operators: Iterable[str]) -> dict[str, Any]:
    """A moment: where it is, the counters, the step that led there, what changed since the moment before."""
    last = moment.last
    counters = {op: moment.counters.get(op, Counters()) for op in operators}
    return {
        "moment": id,
        "epoch": moment.epoch,
        "counters": {op: {"taken": list(c.taken), "given": c.given} for op, c in counters.items()},
        "last": None if last is None else step_data(last),
        "changes": [change_data(c) for c in moment.changes[:_ENTRIES]],
    }
