"""What several verbs print: consoles, tables of rows, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from samovar.errors import SamovarError
from samovar.runtime.display import counted

__all__ = [
    "error_data",
    "listing",
    "messages",
    "output",
    "print_json",
    "print_line",
    "print_rows",
    "row_table",
]

_PIPED = 140
"""The width of the output where it is not a terminal."""


def output() -> Console:
    """The console of what was asked for: stdout."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED)


def messages() -> Console:
    """The console of progress, notes and errors: stderr."""
    return Console(stderr=True, highlight=False)


def print_line(console: Console, text: str | Text, style: str = "") -> None:
    """Print a text as it is: long lines are not wrapped, and brackets are not markup."""
    console.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def print_json(value: Any, *, indent: int | None = 2, to_stderr: bool = False) -> None:
    """Print plain data as JSON; what JSON has no form for is printed as text."""
    stream = sys.stderr if to_stderr else sys.stdout
    print(json.dumps(value, indent=indent, ensure_ascii=False, default=str), file=stream, flush=True)


def error_data(error: BaseException) -> dict[str, Any]:
    """An error as plain data."""
    known = error if isinstance(error, SamovarError) else SamovarError(str(error))
    return {
        "type": type(error).__name__,
        "message": known.text,
        "operator": known.operator,
        "hint": known.hint,
    }


def print_rows(console: Console, title: str, rows: pa.Table, total: int) -> None:
    """Print the head of a result, and how much more there is."""
    shown = "" if rows.num_rows >= total else f", the first {rows.num_rows:,}"
    console.print(
        Text.assemble((title, "bold"), f": {counted(total, 'row')}{shown if rows.num_rows else ''}")
    )
    if rows.num_rows:
        console.print(row_table(rows, console.width))


def listing(*columns: str | Column, right: Collection[str] = (), header: bool = True) -> Table:
    """An empty table without lines. A column given by its title does not wrap; those in `right` hold numbers."""
    shaped = [
        Column(column, no_wrap=True, justify="right" if column in right else "left")
        if isinstance(column, str)
        else column
        for column in columns
    ]
    return Table(
        *shaped, box=None, pad_edge=False, show_header=header, header_style="dim", padding=(0, 2, 0, 0)
    )


def row_table(rows: pa.Table, width: int) -> Table:
    """Rows as a table that fits a width; columns that would not fit are counted instead of squeezed."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
    cells = {name: [_cell(v) for v in _values(rows[name])] for name in rows.column_names}
    shown: list[str] = []
    used = 0
    for name, texts in cells.items():
        wide = min(max([len(name), *map(len, texts)]), 40) + 2
        if shown and used + wide > width - 8:
            break
        used += wide
        shown.append(name)
    for name in shown:
        kind = rows.schema.field(name).type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        table.add_column(
            Text(name), justify="right" if numeric else "left", no_wrap=True, overflow="ellipsis"
        )
    left = len(cells) - len(shown)
    if left:
        table.add_column(Text(f"+{left}"), style="dim")
    for i in range(rows.num_rows):
        table.add_row(*(Text(cells[n][i]) for n in shown), *(["…"] if left else []))
    return table


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values; floats of 32 bits as NumPy's, because Python's float would print digits that are not in the data."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_float32(column.type):
        return [None if v is None else np.float32(v) for v in values]
    return values


def _cell(value: Any, limit: int = 40) -> str:
    if value is None:
        return "null"
    text = str(value).replace("\n", "⏎").replace("\t", " ")
    return text if len(text) <= limit else text[: limit - 1] + "…"
