"""One Arrow batch as rows, the input of a chain of Python operators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any

import pyarrow as pa

from samovar.ids import BUCKET, CONTROL, HIDDEN, PORT
from samovar.positions import Position, is_position_column, position_columns
from samovar.text import row_text

__all__ = ["View", "fitted", "is_simple", "picker", "rows_at", "shown_batch", "stretches"]


class View:
    """One batch for a chain: rows and batches of each port, positions, buckets."""

    def __init__(self, batch: pa.RecordBatch, positions: bool) -> None:
        self.batch = batch
        names = batch.schema.names
        self.shown = [n for n in names if not n.startswith(HIDDEN)]
        self._parts = [n for n in names if is_position_column(n)] if positions else []
        self.buckets = self._hidden(BUCKET)
        self.controls = self._hidden(CONTROL)
        self.ports = self._hidden(PORT)
        self._structs: dict[int, list[dict[str, Any]]] = {}

    def _hidden(self, name: str) -> list[int] | None:
        names = self.batch.schema.names
        return self.batch.column(names.index(name)).to_pylist() if name in names else None

    def rows(self, start: int, stop: int) -> list[dict[str, Any]]:
        """Rows of an operator with one port, as dicts."""
        part = self.batch.slice(start, stop - start).select(self.shown)
        if not self.shown:
            return [{} for _ in range(part.num_rows)]
        columns = [_values(c) for c in part.columns]
        return _row_maker(tuple(self.shown))(columns)

    def structs(self, port: int) -> list[dict[str, Any]]:
        """Rows of one of several ports; None where a row belongs to another port."""
        if port not in self._structs:
            names = self.batch.schema.names
            column = self.batch.column(names.index(f"{HIDDEN}v{port}"))
            self._structs[port] = _values(column)
        return self._structs[port]

    def batch_of(self, port: int, start: int, stop: int) -> pa.RecordBatch:
        """Rows of a port as a batch."""
        if self.ports is None:
            return self.batch.slice(start, stop - start).select(self.shown)
        column = self.batch.column(self.batch.schema.names.index(f"{HIDDEN}v{port}"))
        return pa.RecordBatch.from_struct_array(column.slice(start, stop - start))

    def place(self, i: int) -> Position:
        """The position of one row, also where the chain's output has no positions."""
        parts = filter(is_position_column, self.batch.schema.names)
        return tuple(self.batch.column(n)[i].as_py() for n in parts)

    def position(self, i: int) -> Position:
        """The position of a row; empty where the chain's output has no positions."""
        return self._positions[i] if self._parts else ()

    @cached_property
    def _positions(self) -> list[Position]:
        """The positions of all rows, computed when the first is asked for: a replay skips rows without asking."""
        names = self.batch.schema.names
        return list(zip(*(self.batch.column(names.index(n)).to_pylist() for n in self._parts), strict=True))


def _values(column: pa.Array) -> list[Any]:
    """A column's values; maps as dicts. Arrow converts plain columns faster without that option."""
    options = {"maps_as_pydicts": "strict"} if pa.types.is_nested(column.type) else {}
    values: list[Any] = column.to_pylist(**options)
    return values


@lru_cache
def _row_maker(names: tuple[str, ...]) -> Callable[[list[list[Any]]], list[dict[str, Any]]]:
    """A function from columns to rows, written out for these names: four times as fast as `RecordBatch.to_pylist`."""
    values = [f"v{i}" for i in range(len(names))]
    items = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    maker: Callable[[list[list[Any]]], list[dict[str, Any]]] = eval(
        f"lambda columns: [{{{items}}} for {', '.join(values)}, in zip(*columns)]"
    )
    return maker


def picker(schema: pa.Schema) -> Callable[[Any], tuple[Any, ...]] | None:
    """A function that takes a row's values in the order of the schema; None for a single plain column.

    Lists, maps and structs are copied: a row is what it held when the operator yielded it, and while it waits to be
    sent on the operator may go on filling the same list.
    """
    names = schema.names
    nested = [pa.types.is_nested(field.type) for field in schema]
    if any(nested):

        def pick(row: Any) -> tuple[Any, ...]:
            return tuple(
                copy.deepcopy(row[name]) if copied else row[name]
                for name, copied in zip(names, nested, strict=True)
            )

        return pick
    return itemgetter(*names) if len(names) > 1 else None


def stretches(values: list[int] | None, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Start and stop of each stretch of rows with equal values; all rows as one stretch where there are no values."""
    if values is None or len(set(values)) == 1:
        if stop > start:
            yield start, stop
        return
    first = start
    for i in range(start + 1, stop + 1):
        if i == stop or values[i] != values[first]:
            yield first, i
            first = i


def is_simple(kind: pa.DataType) -> bool:
    """Whether values of a type come out of Spark as they went in."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_date(kind)
    )


def rows_at(
    view: View, rows: list[dict[str, Any]], start: int, waiting: Iterable[int]
) -> list[dict[str, Any]]:
    """Rows of a view by their numbers; `rows` are those of the only port, from `start` on."""
    if view.ports is None:
        return [rows[i - start] for i in waiting]
    return [view.structs(view.ports[i])[i] for i in waiting]


def shown_batch(data: pa.RecordBatch, first: dict[str, Any]) -> str:
    """A batch in words, for a message."""
    return f"a batch of {data.num_rows} rows from {row_text(first, 400)} on"


def fitted(
    batch: pa.RecordBatch, schema: pa.Schema, base: Position, child: int, positions: int
) -> pa.RecordBatch:
    """A batch with the columns of a schema, in its types, and with the positions of its rows."""
    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            raise ValueError(
                f"expected columns {', '.join(schema.names)}, got {', '.join(batch.schema.names)}"
            )
        columns.append(batch.column(batch.schema.names.index(field.name)).cast(field.type))
    fields = list(schema)
    for i, name in enumerate(position_columns(positions)):
        value = pa.array(
            [base[i] if i < len(base) else child + n for n in range(batch.num_rows)], type=pa.int64()
        )
        columns.append(value)
        fields.append(pa.field(name, pa.int64()))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
