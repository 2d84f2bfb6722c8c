"""What several verbs print: consoles, tables of rows, JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from samovar.runtime.display import counted

__all__ = ["messages", "output", "print_json", "print_rows", "row_table"]

_PIPED = 140
"""Columns where no terminal says how many there are."""


def output() -> Console:
    """The console of what was asked for: stdout."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED)


def messages() -> Console:
    """The console of everything else: stderr."""
    return Console(stderr=True, highlight=False)


def print_json(value: Any, *, indent: int | None = 2, to_stderr: bool = False) -> None:
    """Print plain data as JSON; what JSON has no form for is printed as text."""
    stream = sys.stderr if to_stderr else sys.stdout
    print(json.dumps(value, indent=indent, ensure_ascii=False, default=str), file=stream, flush=True)


def print_rows(console: Console, title: str, rows: pa.Table, total: int) -> None:
    """Print the head of a result, and how much more there is."""
    shown = "" if rows.num_rows >= total else f", the first {rows.num_rows:,}"
    console.print(
        Text.assemble((title, "bold"), f": {counted(total, 'row')}{shown if rows.num_rows else ''}")
    )
    if rows.num_rows:
        console.print(row_table(rows, console.width))


def row_table(rows: pa.Table, width: int) -> Table:
    """Rows as a table that fits a width; columns that would not fit are counted instead of squeezed."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
    cells = {
        name: [_cell(v) for v in _values(column)]
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
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
    """Values with the digits they have: a float of 32 bits as Python's would get some that nobody wrote."""
    values = column.to_pylist()
    return (
        [None if v is None else np.float32(v) for v in values] if pa.types.is_float32(column.type) else values
    )


def _cell(value: Any, limit: int = 40) -> str:
    if value is None:
        return "null"
    text = str(value).replace("\n", "⏎").replace("\t", " ")
    return text if len(text) <= limit else text[: limit - 1] + "…"
