"""Events, the sides they come from, and the form of a value that decides whether two values are equal.

An event is any Python value; where columns are named, it is a mapping from column to value (a `Row` counts as one).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from operator import ne
from typing import Any, Literal

import pyarrow as pa

from samovar.diff.comparison_errors import EventProblem, did_you_mean
from samovar.text import shown

__all__ = ["OTHER", "SIDES", "Side", "as_event", "canonical", "cells", "check_side", "rows_of"]

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
OTHER: dict[Side, Side] = {"left": "right", "right": "left"}

_NAN = ("NaN",)  # what every NaN becomes; no column holds tuples
_PLAIN = frozenset({int, str, bool, bytes, type(None)})
_SIMPLE = frozenset({*_PLAIN, float})
_NUMBERS = frozenset({pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()})


def check_side(side: str) -> Side:
    """The side, or an error that names the two there are."""
    if side == "left":
        return "left"
    if side == "right":
        return "right"
    raise EventProblem(f"Expected the side 'left' or 'right', got {side!r}.")


def as_event(value: Any) -> Any:
    """A Spark `Row` as a mapping; any other value as it is."""
    as_dict = getattr(value, "asDict", None)
    return as_dict(True) if callable(as_dict) else value


def rows_of(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """The rows as mappings; a map column becomes a dict, since the order of its entries has no meaning."""
    names = batch.schema.names
    if not names:
        return [{} for _ in range(batch.num_rows)]
    try:
        columns = [_cells(column) for column in batch.columns]
    except KeyError as error:
        raise EventProblem(
            f"Expected maps without a key twice, got the key {error.args[0]} twice.",
            hint="Such a map has no one meaning; turn the column into an array of entries before comparing.",
        ) from error
    return list(map(dict, map(zip, repeat(names), zip(*columns, strict=True))))


def _cells(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column. Those of numbers and truth values come by way of an array, ten times as fast."""
    values: list[Any]
    if column.type in _NUMBERS and not column.null_count:
        values = column.to_numpy(zero_copy_only=False).tolist()
    else:
        values = column.to_pylist(maps_as_pydicts="strict")
    return values


def canonical(value: Any) -> Any:
    """A hashable form; two values have the same one if they are equal: NaN to NaN, null to null, maps in any order."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return _NAN if value != value else value
    if kind is dict or isinstance(value, Mapping):
        if _SIMPLE.issuperset(map(type, value.values())) and not any(map(ne, value.values(), value.values())):
            return frozenset(value.items())
        return frozenset([(k, v if type(v) in _PLAIN else canonical(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return tuple([canonical(v) for v in value])
    if isinstance(value, (set, frozenset)):
        return frozenset(canonical(v) for v in value)
    if isinstance(value, bytearray):
        return bytes(value)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return _NAN if value != value else value


def cells(event: Any, columns: tuple[str, ...], purpose: str) -> tuple[Any, ...]:
    """The canonical values of some columns of an event."""
    try:
        return tuple([canonical(event[c]) for c in columns])
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        pass
    if not isinstance(event, Mapping):
        raise EventProblem(
            f"Expected an event with columns, {purpose}, got {shown(event)}.",
            hint="Push mappings from column to value, or compare by a function of two events.",
        )
    missing = next((c for c in columns if c not in event), columns[0])
    names = [str(name) for name in event]
    raise EventProblem(
        f"Expected the column '{missing}' ({purpose}), got an event with {', '.join(names) or 'none'}.",
        hint=did_you_mean(missing, names),
    )
