"""Values as `samovar debug` shows them: short in a terminal, plain in JSON, and states a page at a time. Pure.

However large a value is, its text and its JSON are small: containers are cut, never printed whole.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import Any

from samovar.errors import TimeTravelError
from samovar.replay.trace.model import ABSENT

__all__ = ["PAGE", "brief", "change_data", "page_of", "plain", "row_text"]

PAGE = 20
"""Entries of a state that are shown at a time."""
_NESTED = 100
"""Entries of a container inside a value that JSON gets."""
_OWN = 10_000


class _Short(reprlib.Repr):
    """Values inside values: short, and times as people write them."""

    def repr_datetime(self, value: datetime, level: int) -> str:
        return _time_text(value)

    def repr_Decimal(self, value: Decimal, level: int) -> str:
        return str(value)


_short = _Short()
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxdict = _short.maxlist = _short.maxtuple = _short.maxset = 6
_short.maxlevel = 4


def _time_text(value: datetime) -> str:
    text = value.isoformat(sep=" ", timespec="milliseconds" if value.microsecond else "seconds")
    return text.removesuffix("+00:00")


def brief(value: Any, limit: int = 60) -> str:
    """A value as one short line."""
    if value is ABSENT:
        return "-"
    if value is None:
        return "null"
    if isinstance(value, datetime):
        text = _time_text(value)
    elif isinstance(value, date | time | Decimal):
        text = str(value)
    else:
        text = _short.repr(dict(islice(value.items(), 7)) if isinstance(value, Mapping) else value)
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def row_text(row: Mapping[str, Any] | None) -> str:
    """A row as a line: `customer='Bob', amount=20.0`."""
    if row is None:
        return "the end of its input"
    return ", ".join(f"{name}={brief(value)}" for name, value in row.items())


def plain(value: Any, depth: int = 0) -> Any:
    """A field of an answer as JSON has it; what it has no form for becomes text.

    Containers inside values are cut after a hundred entries, an answer's own lists after ten thousand.
    """
    limit = _OWN if depth <= 1 else _NESTED
    if value is ABSENT:
        return None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else brief(key): plain(v, depth + 1)
            for key, v in islice(value.items(), limit)
        }
    if isinstance(value, list | tuple | AbstractSet):
        return [plain(v, depth + 1) for v in islice(value, limit)]
    return str(value) if isinstance(value, Decimal) else brief(value, 1000)


def change_data(change: Any) -> dict[str, Any]:
    """A change as plain fields; `kind` distinguishes an absent value from a null."""
    kind = "added" if change.before is ABSENT else "removed" if change.after is ABSENT else "changed"
    return {
        "operator": change.operator,
        "name": change.name,
        "key": change.key,
        "kind": kind,
        "before": change.before,
        "after": change.after,
    }


def page_of(
    name: str, value: Any, *, search: str | None = None, page: int = 1, size: int = PAGE
) -> dict[str, Any]:
    """A page of a state: a map's or list's entries, or a plain value as the one entry.

    Goes through the entries only as far as the page takes; through all of them when something is searched.
    """
    kind = "map" if isinstance(value, Mapping) else "list" if isinstance(value, list) else "value"
    entries = len(value) if kind != "value" else 1
    start = (page - 1) * size
    if search is None:
        matches = entries
        shown = list(islice(_entries(kind, value), start, start + size))
    else:
        matches, shown = 0, []
        for entry in _matching(_entries(kind, value), search.casefold()):
            if start <= matches < start + size:
                shown.append(entry)
            matches += 1
    pages = max(1, -(-matches // size))
    if page < 1 or page > pages:
        raise TimeTravelError(
            f"Expected a page of '{name}' from 1 to {pages:,}, got {page:,}.",
            hint="`search TEXT` finds entries by key or value.",
        )
    return {
        "name": name,
        "kind": kind,
        "entries": entries,
        "matches": matches,
        "page": page,
        "pages": pages,
        "items": [{"key": key, "value": held} for key, held in shown],
    }


def _entries(kind: str, value: Any) -> Iterator[tuple[Any, Any]]:
    if kind == "map":
        return iter(value.items())
    if kind == "list":
        return enumerate(value)
    return iter([(None, value)])


def _matching(entries: Iterable[tuple[Any, Any]], text: str) -> Iterator[tuple[Any, Any]]:
    for key, value in entries:
        if text in str(key).casefold() or text in str(value).casefold():
            yield key, value
