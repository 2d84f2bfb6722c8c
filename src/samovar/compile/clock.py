"""The present time in expressions: one for a whole run, as Spark has one for a whole query.

Each epoch is a query of its own, so `current_timestamp()` would be another time in each. A run has one present: the
moment it started, which its recording keeps; calls that ask for the time are written as that moment.
"""

from __future__ import annotations

from collections.abc import Collection

from samovar.compile.sqltext import SqlTextError, replace_calls, tokenise

__all__ = ["CLOCK", "at_time"]

_BARE = frozenset(("current_timestamp", "current_date", "current_time"))
"""Functions that SQL calls without brackets too."""
CLOCK = _BARE | {"now", "curdate", "localtimestamp"}


def at_time(text: str, now: int, columns: Collection[str]) -> str:
    """The text with each call for the present time as the moment `now`, in microseconds since 1970.

    `columns` are those of the input: a column may have the name of a function that needs no brackets.
    """
    names = {c.lower() for c in columns}
    try:
        bare = [t for t in tokenise(text) if t.kind in ("word", "quoted") and t.name.lower() in _BARE - names]
    except SqlTextError:
        return text
    for token in reversed(bare):
        rest = text[token.end :].lstrip()
        before = text[: token.start].rstrip()
        if not rest.startswith("(") and not before.endswith(".") and not before.lower().endswith(" as"):
            text = f"{text[: token.start]}{token.name}(){text[token.end :]}"

    def moment(name: str, args: list[str]) -> str | None:
        instant = f"timestamp_micros({now}L)"
        match name, args:
            case (("current_timestamp" | "now"), []):
                return instant
            case "localtimestamp", []:
                return f"CAST({instant} AS TIMESTAMP_NTZ)"
            case (("current_date" | "curdate"), []):
                return f"CAST({instant} AS DATE)"
            case "current_time", ([] | [_]):
                return f"to_time(date_format({instant}, 'HH:mm:ss.SSSSSS'))"
            case "unix_timestamp", []:
                return f"{now // 1_000_000}L"
        return None

    return replace_calls(text, moment)
