"""Values as text for people, cut to a length; names as SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["quote_name", "quote_text", "row_text", "shortened", "shown", "with_caret"]


def shortened(text: str, limit: int) -> str:
    """A text of at most `limit` characters; dots at its end stand for the rest."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def shown(value: Any, limit: int = 160) -> str:
    """A value as Python writes it. The `repr` of a user's class may raise: a message is made all the same."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return shortened(text, limit)


def with_caret(line: str, column: int) -> str:
    """A line of a text below a message, with a caret under a column counted from 0; a long line is cut around it."""
    start = max(0, column - 70)
    part = line[start : start + 110].rstrip().replace("\t", " ")
    return f"\n    {part}\n    {' ' * (column - start)}^"


def row_text(row: Mapping[str, Any], limit: int = 600) -> str:
    """A row as `{customer: 'Bob', amount: 20.0}`."""
    return shortened("{" + ", ".join(f"{k}: {shown(v, limit)}" for k, v in row.items()) + "}", limit)


def quote_name(name: str) -> str:
    """A column's name as SQL, in backticks, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A text as a SQL literal (for Spark's default `escapedStringLiterals=false`)."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
