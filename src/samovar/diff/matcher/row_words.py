"""Rows of Arrow batches as numbers, a column at a time, with no Python for each row.

A column of numbers, dates or truth values becomes a word of 64 bits for each row, equal exactly if the cells are equal
(NaN to NaN, 0.0 to -0.0); other columns (text, bytes, decimals, nested values) become a hash. Nulls have a word of
their own. Cells that are equal have equal words; where words are only hashes, `Layout.confirm` compares the cells
themselves. Hashes are the same in every process, so that a saved matcher can go on elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from samovar.diff.comparison_errors import EqualityProblem, EventProblem, did_you_mean, repeated
from samovar.diff.equality import Equality
from samovar.diff.event_values import canonical

__all__ = ["Layout", "Words", "hash_of", "numbers_of"]

Words = npt.NDArray[np.uint64]

_random = np.random.default_rng(0x5A40_7A12)
_BYTES: Words = _random.integers(0, 2**64, 256, dtype=np.uint64)
_ODD: Words = _random.integers(0, 2**64, 4096, dtype=np.uint64) | np.uint64(1)
_NULL = np.uint64(0x9E37_79B9_7F4A_7C15)
_BASE = np.uint64(0xD6E8_FEB8_6659_FD93)  # odd: has an inverse modulo 2**64
_INVERSE = np.uint64(pow(int(_BASE), -1, 2**64))
_HALF = np.uint64(32)
_FOLD = np.uint64(29)
_powers: Words = np.ones(1, np.uint64)
_inverses: Words = np.ones(1, np.uint64)


@dataclass(frozen=True)
class Column:
    """A compared column: its kind, and the absolute tolerance if it has one."""

    name: str
    kind: str
    tolerance: float | None = None


class Layout:
    """The compared columns. The first batch fixes them; later ones, of either side, have to fit."""

    def __init__(self, equal: Equality, needed: tuple[str, ...]) -> None:
        self._equal = equal
        self._needed = needed
        self._columns: dict[str, Column] = {}
        self._last: tuple[Any, list[int]] | None = None

    @property
    def columns(self) -> Sequence[Column]:
        """The compared columns in a fixed order."""
        return tuple(self._columns.values())

    def fit(self, schema: pa.Schema) -> list[int]:
        """Where the compared columns are in a batch of this schema; an error if it does not fit."""
        if self._last is not None and (self._last[0] is schema or self._last[0].equals(schema)):
            return self._last[1]
        names = schema.names
        if (twice := repeated(names)) is not None:
            raise EventProblem(
                f"Expected columns with different names, got '{twice}' twice.", hint="Rename one."
            )
        for column in self._needed:
            if column not in names:
                raise EventProblem(
                    f"Expected the column '{column}', used by the dependence or the equality, got {', '.join(names)}.",
                    hint=did_you_mean(column, names),
                )
        wanted = self._equal.columns if self._equal.columns is not None else tuple(names)
        kinds = {name: kind_of(schema.field(name).type) for name in wanted}
        if not self._columns:
            self._columns = {n: Column(n, kinds[n], self._tolerance(n, kinds[n])) for n in wanted}
        if set(kinds) != set(self._columns):
            raise EventProblem(
                f"Expected the columns {', '.join(self._columns)}, as in the first batch, got {', '.join(names)}.",
                hint="To compare some columns only, use equality(columns=[...]).",
            )
        for name, kind in kinds.items():
            known = self._columns[name]
            if known.kind == "null" and kind != "null":
                self._columns[name] = Column(name, kind, self._tolerance(name, kind))
            elif kind not in (known.kind, "null"):
                raise EventProblem(
                    f"Expected the column '{name}' to hold {known.kind}, as in the first batch, got {kind}.",
                    hint="Cast one side so that both have the same type.",
                )
        places = [schema.get_field_index(name) for name in self._columns]
        self._last = (schema, places)
        return places

    def words(self, batch: pa.RecordBatch) -> tuple[list[Words], list[Words]]:
        """For each column its words with nulls marked, and the words whose bits mark the cells that are null."""
        places = self.fit(batch.schema)
        words: list[Words] = []
        nulls = [np.zeros(batch.num_rows, np.uint64) for _ in range(-(-len(places) // 64))]
        for number, place in enumerate(places):
            array = batch.column(place)
            words.append(words_of(array))
            if array.null_count:
                nulls[number // 64] |= _nulls(array).astype(np.uint64) << np.uint64(number % 64)
        return words, nulls

    @property
    def hashed(self) -> bool:
        """Whether words of some column are only hashes, so that equal words need a look at the cells."""
        return any(_is_hashed(c.kind) for c in self._columns.values())

    def confirm(self, a: pa.RecordBatch, b: pa.RecordBatch) -> bool:
        """Whether the rows of two batches with equal words are equal, cell by cell, where words are only hashes."""
        for name, column in self._columns.items():
            if not _is_hashed(column.kind):
                continue
            left, right = a.column(name), b.column(name)
            if left.type != right.type:
                with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    right = right.cast(left.type)
            if left.equals(right):
                continue
            if not _is_nested(left.type) and left.type == right.type:
                return False
            # NaN, maps in another order, types that differ: rare enough to look at each row
            rows = zip(_values(left), _values(right), strict=True)
            if any(canonical(x) != canonical(y) for x, y in rows):
                return False
        return True

    def _tolerance(self, name: str, kind: str) -> float | None:
        tolerance = self._equal.tolerance
        absolute = None if tolerance is None else tolerance.of(name)
        if tolerance is None or absolute is None or kind == "float":
            return absolute
        if tolerance.columns is None:
            return None
        if kind not in ("integer", "null"):
            raise EqualityProblem(
                f"Expected a column of numbers for a tolerance, got '{name}', which holds {kind}."
            )
        return absolute


_KINDS = (
    (pa.types.is_uint64, "unsigned 64-bit integer"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "float"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_string_view, "text"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_fixed_size_binary, "bytes"),
    (pa.types.is_binary_view, "bytes"),
    (pa.types.is_date, "date"),
    (pa.types.is_null, "null"),
)


def kind_of(kind: pa.DataType) -> str:
    """The kind of a column: types of one kind compare with each other."""
    t = pa.types
    for is_one, name in _KINDS:
        if is_one(kind):
            return name
    if t.is_dictionary(kind):
        return kind_of(kind.value_type)
    if t.is_decimal(kind):
        return f"decimals of scale {kind.scale}"
    if t.is_map(kind):
        return f"maps from {kind_of(kind.key_type)} to {kind_of(kind.item_type)}"
    if t.is_struct(kind):
        return "structs of " + ", ".join(f"{f.name} {kind_of(f.type)}" for f in kind)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return f"lists of {kind_of(kind.value_type)}"
    return str(kind)


def words_of(array: pa.Array) -> Words:
    """A word for each cell; that of a null is fixed."""
    kind = array.type
    t = pa.types
    if t.is_dictionary(kind):
        return words_of(array.dictionary_decode())
    if t.is_null(kind):
        return np.full(len(array), _NULL, np.uint64)
    if t.is_boolean(kind) or _is_number_like(kind):
        words = _number_words(array)
    elif t.is_decimal(kind):
        words = _decimal_words(array)
    elif kind_of(kind) in ("text", "bytes"):
        words = _text_words(array)
    elif t.is_struct(kind):
        words = hash_of([words_of(child) for child in array.flatten()] or [np.zeros(len(array), np.uint64)])
    elif t.is_map(kind):
        entries = hash_of([words_of(array.keys), words_of(array.items)])
        words = _fold(_sums(entries * _BASE, array.offsets))
    elif t.is_list(kind) or t.is_large_list(kind):
        words = _sequence_words(words_of(array.values), array.offsets)
    elif t.is_fixed_size_list(kind):
        offsets = pa.array(np.arange(len(array) + 1) * kind.list_size)
        words = _sequence_words(words_of(array.values)[array.offset * kind.list_size :], offsets)
    else:  # a type without a vectorised form: interval, union, extension
        words = np.fromiter((_digest(repr(canonical(v))) for v in _values(array)), np.uint64, len(array))
    if array.null_count:
        words = np.where(_nulls(array), _NULL, words)
    return words


def hash_of(words: Sequence[Words]) -> Words:
    """One hash for each row of several columns of words."""
    total = np.zeros(len(words[0]), np.uint64) if words else np.zeros(0, np.uint64)
    for number, column in enumerate(words):
        total += (column ^ (column >> _FOLD)) * _ODD[number % len(_ODD)]
    return _fold(total)


def numbers_of(array: pa.Array) -> npt.NDArray[Any]:
    """A column of times as numbers that compare like the times; a null is later than all."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), np.iinfo(np.int64).max)
    if not _is_number_like(kind):
        raise EventProblem(
            f"Expected a time, date or number as the time of a dependence, got {kind_of(kind)} ({kind})."
        )
    values = _as_numpy(array)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        return np.where(_nulls(array) | np.isnan(values), np.inf, values)
    values = values.astype(np.int64)
    return np.where(_nulls(array), np.iinfo(np.int64).max, values) if array.null_count else values


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _fold(words: Words) -> Words:
    return words ^ (words >> _HALF)


def _is_number_like(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_integer(kind) or t.is_floating(kind) or t.is_timestamp(kind) or t.is_date(kind) or t.is_time(kind)
        or t.is_duration(kind)
    )  # fmt: skip


def _is_hashed(kind: str) -> bool:
    exact = ("integer", "unsigned 64-bit integer", "float", "boolean", "date", "null")
    return kind not in exact and not kind.startswith(("timestamp", "time32", "time64", "duration"))


def _is_nested(kind: pa.DataType) -> bool:
    return kind_of(kind) not in ("text", "bytes") and not pa.types.is_decimal(kind)


def _values(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist(maps_as_pydicts="strict")
    return values


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    nulls: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _as_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """The buffer of a column of fixed width, whatever lies below nulls."""
    kind = array.type
    width = kind.bit_width // 8
    if pa.types.is_floating(kind):
        dtype = f"f{width}"
    else:
        dtype = f"{'u' if pa.types.is_unsigned_integer(kind) else 'i'}{width}"
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * width)


def _number_words(array: pa.Array) -> Words:
    kind = array.type
    if pa.types.is_boolean(kind):
        if array.null_count:
            array = array.fill_null(False)
        truths: Words = array.to_numpy(zero_copy_only=False).astype(np.uint64)
        return truths
    values = _as_numpy(array)
    if pa.types.is_date64(kind):
        return (values // 86_400_000).astype(np.int64).view(np.uint64)
    if values.dtype.kind == "f":
        floats = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        strange = np.isnan(floats)
        if strange.any():
            floats[strange] = np.nan
        return floats.view(np.uint64)
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    return values.astype(np.int64, copy=False).view(np.uint64)


def _decimal_words(array: pa.Array) -> Words:
    width = array.type.bit_width // 8
    wide = array.cast(pa.decimal128(38, array.type.scale)) if width < 16 else array
    count = wide.type.bit_width // 64
    parts = np.frombuffer(wide.buffers()[1], np.uint64, len(wide) * count, wide.offset * count * 8)
    return hash_of([np.ascontiguousarray(parts[i::count]) for i in range(count)])


def _text_words(array: pa.Array) -> Words:
    """A polynomial of random words, one for each byte value, by sums over the bytes of all cells at once."""
    kind = array.type
    if pa.types.is_fixed_size_binary(kind) or "view" in str(kind):
        array = array.cast(pa.large_binary())
        kind = array.type
    width = 8 if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) else 4
    _, offsets_buffer, data_buffer = array.buffers()
    if len(array) == 0 or offsets_buffer is None:
        return np.zeros(len(array), np.uint64)
    offsets = np.frombuffer(offsets_buffer, f"i{width}", len(array) + 1, array.offset * width)
    offsets = offsets.astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if last == first or data_buffer is None:
        return np.zeros(len(array), np.uint64)
    data = np.frombuffer(data_buffer, np.uint8, last - first, first)
    return _polynomial(_BYTES[data], offsets - first)


def _sequence_words(values: Words, offsets: pa.Array) -> Words:
    places = offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    first = int(places[0])
    return _polynomial(_fold(values * _BASE) + _NULL, places - first, values_from=first)


def _polynomial(terms: Words, offsets: npt.NDArray[np.int64], values_from: int = 0) -> Words:
    """For each piece of `terms`: the sum weighted by powers of the place within the piece, and the length."""
    terms = terms[values_from : values_from + int(offsets[-1])]
    powers, inverses = _tables(len(terms) + 1)
    sums = np.zeros(len(terms) + 1, np.uint64)
    np.cumsum(terms * powers[: len(terms)], out=sums[1:])
    starts, ends = offsets[:-1], offsets[1:]
    lengths = (ends - starts).astype(np.uint64)
    return _fold((sums[ends] - sums[starts]) * inverses[starts] + lengths * _NULL)


def _sums(terms: Words, offsets: pa.Array) -> Words:
    places = offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    sums = np.zeros(len(terms) + 1, np.uint64)
    np.cumsum(terms, out=sums[1:])
    pieces: Words = sums[places[1:]] - sums[places[:-1]]
    return pieces


def _tables(length: int) -> tuple[Words, Words]:
    """Powers of the base and of its inverse, at least `length` of each."""
    global _powers, _inverses
    if len(_powers) < length:
        size = max(length, 2 * len(_powers), 65536)
        _powers, _inverses = (
            np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(size - 1, base)]), dtype=np.uint64)
            for base in (_BASE, _INVERSE)
        )
    return _powers, _inverses
