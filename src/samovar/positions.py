"""Positions: where a tuple lies in the canonical order of a run. Replay, marks, forks and switches of code rest on it.

A position is a plain tuple of whole numbers; positions compare as tuples do. Their parts depend on who gave the tuple:

| given by                                | position                                                            |
|-----------------------------------------|---------------------------------------------------------------------|
| a source of Parquet files               | (source, place): `place` packs the unit's and the row's number      |
| a source of other files                 | (source, place of the block's first byte, row)                      |
| a stash that was written without        | (STASH + operator, place in its files)                              |
| an aggregate, a sort, a window: its end | (BLOCKING + operator, row)                                          |
| a Python operator, at its input's end   | (END + operator, key partition, port and child)                     |
| an operator with several rows for one   | (*input, child)                                                     |
| a union; a Python operator's ports      | (*input, padding, branch); (*input, padding, port, child)           |
| a join                                  | (*probe input, *build input)                                        |
| any other operator                      | that of its input                                                   |

So an output's position begins with that of its input (`input_of`), and its first parts name the leaf tuple it comes
from. Positions of one operator have one width; a shorter one is filled up with PAD, which lies before any part.
In a DataFrame the parts are hidden columns. Pure: executors import this module, and the loop over tuples makes tuples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from samovar.ids import HIDDEN

__all__ = [
    "AT_END",
    "BEFORE_ALL",
    "BLOCKING",
    "END",
    "NEVER",
    "PAD",
    "ROW_BITS",
    "ROW_WIDTH",
    "START",
    "STASH",
    "TEXT_WIDTH",
    "Position",
    "RowRange",
    "Window",
    "chunk_of",
    "chunk_start",
    "counting_partition",
    "end_position",
    "input_of",
    "is_position_column",
    "output_width",
    "pack",
    "packed_sql",
    "padded",
    "padded_columns",
    "position_columns",
    "reaches",
    "reaches_sql",
    "row_sql",
    "same_place",
    "unit_of",
    "unit_sql",
    "unpack",
]

Position = tuple[int, ...]
RowRange = tuple[int, int, int]
"""Source, first place, number of rows: leaf tuples that lie one after another."""

# --- the first part: who gave the leaf tuple ------------------------------------------------------------------------

BEFORE_ALL = -(1 << 62)
"""In a column of positions: the state before the first tuple."""
STASH = -2_000_000
"""Rows of stashes come before other rows: plus the number of the operator in the workflow."""
BLOCKING = -1_000_000
"""Output of blocking operators comes before rows of sources: plus the number of the operator in the workflow."""
PAD = -1
"""Fills up a position; also the build side's parts where an outer join found no match."""
END = 1 << 62
"""What Python operators give at the end of their input comes after all tuples: plus the number of the operator."""

START: Position = ()
"""Before every tuple."""
AT_END: Position = (END,)
"""The end of an operator's input."""
NEVER: Position = (1 << 63,)
"""Behind everything, also behind the rows that operators give at the end of their input."""

ROW_WIDTH = 2
TEXT_WIDTH = 3
"""Parts of a source's positions: text has no row numbers, so a row is named by its block and its place in there."""

# --- the second part: unit and row ----------------------------------------------------------------------------------

ROW_BITS = 40
"""Bits of the row in a place: a unit has up to 2**40 rows (or bytes, for text)."""
_ROWS = (1 << ROW_BITS) - 1


def pack(unit: int, row: int) -> int:
    """The place of a row: places of a source's units lie one after another."""
    return (unit << ROW_BITS) + row


def unpack(place: int) -> tuple[int, int]:
    """The number of a place's unit, and the row in it."""
    return place >> ROW_BITS, place & _ROWS


def unit_of(place: int) -> int:
    """The number of a place's unit."""
    return place >> ROW_BITS


def packed_sql(unit: str, row: str) -> str:
    """`pack` as SQL."""
    return f"{unit} * {1 << ROW_BITS} + {row}"


def unit_sql(place: str) -> str:
    """`unit_of` as SQL."""
    return f"shiftright({place}, {ROW_BITS})"


def row_sql(place: str) -> str:
    """The row of `unpack` as SQL."""
    return f"({place} & {_ROWS}L)"


def chunk_of(at: Position, bits: int) -> tuple[int, int]:
    """The source and number of the chunk, of 2**bits places, in which a leaf tuple lies."""
    return at[0], at[1] >> bits


def chunk_start(chunk: tuple[int, int], bits: int) -> Position:
    """The first position of a chunk."""
    return chunk[0], chunk[1] << bits


# --- the other parts ------------------------------------------------------------------------------------------------

_CHILD_BITS = 32
"""Bits of the child's number beside the port: an operator gives fewer rows at an end."""
_PARTITION_SHIFT = 20
"""Key partitions are fewer than 2**20, so a task's number has its place above them."""


def end_position(rank: int, partition: int, port: int, child: int, width: int) -> Position:
    """The position of a row that a Python operator gives at its end: by operator, key partition, port, order."""
    order = (END + rank, partition, (port << _CHILD_BITS) + child)
    return (*order, *([0] * (width - len(order))))[:width]


def counting_partition(partition: int, task: int) -> int:
    """Where tuples are counted: in a key partition, or, for a stateless operator, in a Spark task's share of it."""
    return partition + (task << _PARTITION_SHIFT)


def output_width(shape: str, inputs: Sequence[int], leaf: int = ROW_WIDTH) -> int:
    """The width of an operator's output by its shape (see compile/shapes.py) and the widths of its inputs."""
    match shape:
        case "source":
            return leaf
        case "many":
            return inputs[0] + 1
        case "python" | "batches":
            return max(inputs) + (len(inputs) > 1) + 1
        case "union":
            return max(inputs) + 1
        case "join":
            return sum(inputs)
        case "accumulate" | "keep" | "opaque":
            return ROW_WIDTH
    return inputs[0]


def input_of(
    shape: str, position: Position, inputs: Sequence[int], probe: int = 0
) -> tuple[int, Position] | None:
    """The port and position of the input tuple that an output tuple was made from; None: from no single tuple.

    `inputs`: the widths of the operator's inputs. `probe`: the port of a join whose tuples it takes one by one.
    """
    match shape:
        case "one" | "some" | "limit" | "sink":
            return 0, position
        case "many":
            return 0, position[:-1]
        case "python" | "batches":
            port = position[-2] if len(inputs) > 1 else 0
        case "union":
            port = position[-1]
        case "join":
            port = probe
        case _:
            return None
    return port, position[: inputs[port]]


# --- comparing ------------------------------------------------------------------------------------------------------


def padded(position: Position, width: int) -> Position:
    """A position filled up to a width."""
    return (*position, *([PAD] * (width - len(position))))


def same_place(a: Position, b: Position) -> bool:
    """Whether two positions are the same but for padding."""
    width = max(len(a), len(b))
    return padded(a, width) == padded(b, width)


def reaches(at: Position, edge: Position) -> bool:
    """Whether a tuple comes from an edge's leaf tuple or from one behind it."""
    return at[: len(edge)] >= edge


def reaches_sql(columns: Sequence[str], edge: Position) -> str:
    """`reaches` as SQL over position columns.

    Written out part by part, so that Spark skips what it knows: the number of a source is the same in all its rows.
    """
    condition = "true"
    for name, value in reversed(list(zip(columns, edge, strict=False))):
        condition = f"({name} > {value} OR ({name} = {value} AND {condition}))"
    return condition


@dataclass(frozen=True)
class Window:
    """A range of leaf positions: from `low` on (None: the epoch's start), before `high` (None: its end)."""

    low: Position | None = None
    high: Position | None = None

    def units(self, source: int, start: int, stop: int) -> range:
        """Which of a source's units can have rows in the window; the others need not be opened."""
        if (self.low is not None and source < self.low[0]) or (
            self.high is not None and source > self.high[0]
        ):
            return range(start, start)
        if self.low is not None and source == self.low[0]:
            start = max(start, unit_of(self.low[1]))
        if self.high is not None and source == self.high[0]:
            last = self.high[1] - (
                len(self.high) == ROW_WIDTH
            )  # an edge of more parts lies behind some rows there
            stop = min(stop, unit_of(last) + 1)
        return range(start, max(start, stop))

    def rows(self, source: int, unit: int, count: int) -> range:
        """Which of a unit's rows lie in the window; for edges of `ROW_WIDTH` parts."""

        def cut(edge: Position) -> int:
            if edge[0] != source:
                return 0 if edge[0] < source else count
            return min(max(edge[1] - pack(unit, 0), 0), count)

        first = 0 if self.low is None else cut(self.low)
        return range(first, max(first, count if self.high is None else cut(self.high)))


# --- hidden columns -------------------------------------------------------------------------------------------------

_COLUMN = re.compile(rf"{HIDDEN}p\d+\Z")


def position_columns(width: int, prefix: str = "p") -> list[str]:
    """The hidden columns of a position; `prefix` names a second position in the same frame."""
    return [f"{HIDDEN}{prefix}{i}" for i in range(width)]


def is_position_column(name: str) -> bool:
    """Whether a column holds a part of a row's position."""
    return _COLUMN.match(name) is not None


def padded_columns(columns: Sequence[str], width: int) -> list[str]:
    """`padded` as SQL, part by part."""
    return [*columns, *([f"{PAD}L"] * (width - len(columns)))]
