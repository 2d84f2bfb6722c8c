"""Fingerprints of rows as Spark expressions: two hashes of a row, the same for equal rows of either side.

Spark's own hashes leave out nulls, so that (null, 1) and (1, null) would have the same; here nulls are marked, at the
top by a word of bits and inside of arrays, structs and maps by a number of their own. NaN equals NaN, -0.0 equals
0.0, and the entries of a map have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    VariantType,
)

__all__ = ["is_float", "quoted", "row_hashes"]

_NULL = 0x1E37_79B9_7F4A_7C15
Hash = Callable[..., Column]


def quoted(name: str) -> Column:
    """A column by its name, whatever characters are in it."""
    return F.col("`" + name.replace("`", "``") + "`")


def is_float(kind: DataType) -> bool:
    """Whether a column holds floating-point numbers."""
    return isinstance(kind, (FloatType, DoubleType))


def row_hashes(fields: Sequence[StructField], more: Sequence[Column] = ()) -> tuple[Column, Column]:
    """A 64-bit and a 32-bit hash over columns, cast to their types, and over expressions that are never null."""
    columns = [quoted(f.name).cast(f.dataType) for f in fields]
    nulls = _null_words(columns)
    made = []
    for hash_ in (F.xxhash64, F.hash):
        parts = [_value(c, f.dataType, hash_) for c, f in zip(columns, fields, strict=True)]
        made.append(hash_(*parts, *nulls, *more, F.lit(0)))
    return made[0], made[1]


def _null_words(columns: Sequence[Column]) -> list[Column]:
    words = []
    for start in range(0, len(columns), 62):
        bits = [
            F.when(c.isNull(), F.lit(1 << i)).otherwise(F.lit(0)).cast("long")
            for i, c in enumerate(columns[start : start + 62])
        ]
        word = bits[0]
        for bit in bits[1:]:
            word = word.bitwiseOR(bit)
        words.append(word)
    return words


def _value(column: Column, kind: DataType, hash_: Hash) -> Column:
    """What stands for a value in the hash of its row: itself, or the hash of what is in it."""
    if isinstance(kind, NullType):
        return F.lit(0)
    if is_float(kind):
        return column + F.lit(0.0).cast(kind)  # -0.0 becomes 0.0
    if isinstance(kind, (CalendarIntervalType, VariantType)):
        return column.cast("string")
    if isinstance(kind, AtomicType):
        return column
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return hash_(F.size(column), F.transform(column, lambda x: _part(x, element, hash_)))
    if isinstance(kind, MapType):
        entry = StructType([StructField("key", kind.keyType), StructField("value", kind.valueType)])
        entries = F.transform(F.map_entries(column), lambda e: _part(e, entry, hash_))
        return hash_(F.size(column), F.array_sort(entries))
    if isinstance(kind, StructType):
        return hash_(*[_part(column.getField(f.name), f.dataType, hash_) for f in kind.fields], F.lit(0))
    return column.cast("string")


def _part(column: Column, kind: DataType, hash_: Hash) -> Column:
    return F.when(column.isNull(), F.lit(_NULL)).otherwise(hash_(_value(column, kind, hash_)).cast("long"))
