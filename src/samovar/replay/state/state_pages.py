"""Pages of large states: some entries of a map, selected and in order, without loading the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from samovar.errors import TimeTravelError
from samovar.replay.state.group_states import FewGroups, StoredGroups
from samovar.replay.state.state_changes import MapView
from samovar.runtime.failures.spark_errors import SparkError

__all__ = ["page_of"]


def page_of(
    held: Mapping[Any, Any], start: int, count: int, where: str | None, *, sql: bool, operator: str
) -> list[tuple[Any, Any]]:
    """Entries `start` to `start + count` of those selected."""
    if start < 0 or count < 1:
        raise TimeTravelError(
            f"Expected a page from 0 on of 1 entry or more, got start={start}, count={count}.",
            operator=operator,
        )
    try:
        stored = _stored(held, selected=where is not None)
        if stored is not None:
            return stored.page(start, count, where)
        if where is not None:
            chosen = _chosen(held, where)
        else:
            chosen = iter(_sorted(held) if sql else held.items())
        return list(islice(chosen, start, start + count))
    except Exception as error:
        if where is None or isinstance(error, TimeTravelError):
            raise
        kind = "SQL over the columns of a group" if sql else "a Python expression over `key` and `value`"
        raise TimeTravelError(
            f"Expected {kind}, got {where!r}: {SparkError.of(error).line}", operator=operator
        ) from None


def _stored(held: Mapping[Any, Any], *, selected: bool) -> StoredGroups | None:
    """The groups as Spark has them: where they are too many to be here, or Spark is to select from them."""
    base = held.base if isinstance(held, MapView) else held
    if isinstance(base, FewGroups) and selected:
        base = base.stored
    if not isinstance(base, StoredGroups):
        return None
    return base.over(held.changed) if isinstance(held, MapView) else base


def _sorted(groups: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """Groups in the order of their keys, nulls first, as Spark has it."""

    def place(entry: tuple[Any, Any]) -> Any:
        parts = entry[0] if isinstance(entry[0], tuple) else (entry[0],)
        return tuple((part is not None, part) for part in parts)

    try:
        return sorted(groups.items(), key=place)
    except TypeError:  # values that have no order
        return groups.items()


def _chosen(held: Mapping[Any, Any], where: str) -> Iterator[tuple[Any, Any]]:
    code = compile(where, "<where>", "eval")
    return ((k, v) for k, v in held.items() if eval(code, {"key": k, "value": v}))
