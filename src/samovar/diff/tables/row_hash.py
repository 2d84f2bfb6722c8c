"""Fingerprints of rows as Spark expressions: two hashes of a row, the same for equal rows of either side.

Spark's hashes skip nulls, so that (null, 1) and (1, null) would have the same; here nulls are marked, at the
top by a word of bits and inside of arrays, structs and maps by a number of their own. NaN equals NaN, -0.0 equals
0.0, and the entries of a map have no order.

The expressions are written as SQL text: a Column built call by call costs a trip to the Java process for each call,
more than a small table takes to be read.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    CalendarIntervalType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    StructField,
    StructType,
    UserDefinedType,
    VariantType,
)

from samovar.text import quote_name

__all__ = ["cast_columns", "hash_texts", "is_float", "quoted", "row_hashes", "row_struct", "struct_text"]

_NULL = f"{0x1E37_79B9_7F4A_7C15}L"


def quoted(name: str) -> Column:
    """A column by its name, whatever characters are in it."""
    return F.col(quote_name(name))


def is_float(kind: DataType) -> bool:
    """Whether a column holds floating-point numbers."""
    return isinstance(kind, (FloatType, DoubleType))


def cast_columns(schema: StructType) -> list[Column]:
    """The columns of a schema, cast to its types."""
    return [quoted(f.name).cast(f.dataType).alias(f.name) for f in schema.fields]


def row_hashes(fields: Sequence[StructField], more: Sequence[str] = ()) -> tuple[Column, Column]:
    """A 64-bit and a 32-bit hash over columns, cast to their types, and over SQL expressions that are never null."""
    a, b = hash_texts(fields, more)
    return F.expr(a), F.expr(b)


def hash_texts(fields: Sequence[StructField], more: Sequence[str] = ()) -> tuple[str, str]:
    """The hashes of `row_hashes` as SQL texts."""
    columns = [_cast(f) for f in fields]
    nulls = _null_words(columns)

    def text(hash_: str) -> str:
        parts = [_value(c, f.dataType, hash_) for c, f in zip(columns, fields, strict=True)]
        return _call(hash_, *parts, *nulls, *more, "0")

    return text("xxhash64"), text("hash")


def row_struct(fields: Sequence[StructField]) -> Column:
    """Columns, cast to their types, as one struct."""
    return F.expr(struct_text(fields))


def struct_text(fields: Sequence[StructField]) -> str:
    """The struct of `row_struct` as SQL text."""
    return _call("struct", *[f"{_cast(f)} AS {quote_name(f.name)}" for f in fields])


def _call(function: str, *arguments: str) -> str:
    return f"{function}({', '.join(arguments)})"


def _cast(field: StructField) -> str:
    kind = _type_text(field.dataType)
    return quote_name(field.name) if kind is None else f"CAST({quote_name(field.name)} AS {kind})"


def _type_text(kind: DataType) -> str | None:
    """A type as SQL text; None for a type without a name in SQL, which is then the same on both sides."""
    if isinstance(kind, UserDefinedType):
        return None
    if isinstance(kind, ArrayType):
        element = _type_text(kind.elementType)
        return None if element is None else f"ARRAY<{element}>"
    if isinstance(kind, MapType):
        key, value = _type_text(kind.keyType), _type_text(kind.valueType)
        return None if key is None or value is None else f"MAP<{key}, {value}>"
    if isinstance(kind, StructType):
        parts = [(f.name, _type_text(f.dataType)) for f in kind.fields]
        if any(text is None for _, text in parts):
            return None
        return f"STRUCT<{', '.join(f'{quote_name(name)}: {text}' for name, text in parts)}>"
    return kind.simpleString()


def _null_words(columns: Sequence[str]) -> list[str]:
    words = []
    for start in range(0, len(columns), 62):
        bits = [f"IF({c} IS NULL, {1 << i}L, 0L)" for i, c in enumerate(columns[start : start + 62])]
        words.append(" | ".join(bits))
    return words


def _value(column: str, kind: DataType, hash_: str, depth: int = 0) -> str:
    """What stands for a value in the hash of its row: itself, or the hash of what is in it."""
    if isinstance(kind, NullType):
        return "0"
    if is_float(kind):
        return f"{column} + CAST(0 AS {kind.simpleString()})"  # -0.0 becomes 0.0
    if isinstance(kind, (CalendarIntervalType, VariantType)):
        return f"CAST({column} AS STRING)"
    if isinstance(kind, AtomicType):
        return column
    each = f"e{depth}"
    if isinstance(kind, ArrayType):
        part = _part(each, kind.elementType, hash_, depth + 1)
        return _call(hash_, f"size({column})", f"transform({column}, {each} -> {part})")
    if isinstance(kind, MapType):
        entry = StructType([StructField("key", kind.keyType), StructField("value", kind.valueType)])
        part = _part(each, entry, hash_, depth + 1)
        return _call(
            hash_, f"size({column})", f"array_sort(transform(map_entries({column}), {each} -> {part}))"
        )
    if isinstance(kind, StructType):
        parts = [_part(f"{column}.{quote_name(f.name)}", f.dataType, hash_, depth) for f in kind.fields]
        return _call(hash_, *parts, "0")
    return f"CAST({column} AS STRING)"


def _part(column: str, kind: DataType, hash_: str, depth: int) -> str:
    value = _call(hash_, _value(column, kind, hash_, depth))
    return f"IF({column} IS NULL, {_NULL}, CAST({value} AS BIGINT))"
