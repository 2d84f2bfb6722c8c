"""Rows written in a workflow: Spark's DDL schemas read without Spark, and cells as plain text or numbers.

A document holds only what JSON has. A cell is written and read by the type its schema gives it, so that every value
comes back as the Python object it was:

    date, timestamp, time     ISO text: "2024-01-31", "2024-01-31 12:30:00.250000", with "+01:00" when it has a zone
    decimal                   text: "12.50"
    binary                    base64 text
    float, double             a number, or "NaN", "Infinity", "-Infinity"
    interval day to second    text: "1 02:03:04.500000"
    array, struct             a list; a struct also a mapping by field name
    map                       a mapping when its keys are strings, otherwise a list of [key, value] pairs

Values of other types are kept as they are.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from samovar.text import shown

__all__ = ["Type", "columns", "decode", "encode", "split_top"]

_INTEGERS = {"tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"}
_FLOATS = {"float", "real", "double"}
_DECIMALS = {"decimal", "dec", "numeric"}
_TIMESTAMPS = {"timestamp", "timestamp_ltz", "timestamp_ntz"}
_TEXTS = {"string", "char", "varchar"}
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>\Z", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s:`<>]+))\s*:?\s*(.*)\Z", re.DOTALL)
_SUFFIX = re.compile(r"\s+(not\s+null|comment\s+('[^']*'|\"[^\"]*\")|default\s+\S+)\s*\Z", re.IGNORECASE)
_INTERVAL = re.compile(r"(-)?(\d+) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?\Z")


@dataclass(frozen=True)
class Type:
    """A Spark type as far as reading and writing its values goes."""

    name: str
    """Lower case, without arguments: `decimal`, `array`, `interval day to second`."""

    text: str
    inner: tuple[Type, ...] = ()
    fields: tuple[str, ...] = ()
    """The names of a struct's fields, in the order of `inner`."""


def columns(schema: str) -> list[tuple[str, Type]]:
    """Names and types of a DDL schema: `"id int, tags array<string>"`. Not a check: Spark has the last word."""
    text = schema.strip()
    whole = _NESTED.match(text)
    if whole and whole[1].lower() == "struct":
        text = whole[2]
    return [_field(part) for part in split_top(text)]


def split_top(text: str) -> list[str]:
    """Split at commas outside of <>, (), quotes and backticks; empty parts are dropped."""
    parts: list[str] = []
    depth, start, quote = 0, 0, ""
    for i, ch in enumerate(text):
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "`'\"":
            quote = ch
        else:
            depth += (ch in "<(") - (ch in ">)")
            if ch == "," and depth == 0:
                parts.append(text[start:i])
                start = i + 1
    parts.append(text[start:])
    return [p for p in parts if p.strip()]


def _field(part: str) -> tuple[str, Type]:
    field = _FIELD.match(part)
    if field is None or not field[3].strip():  # a bare type, or something only Spark can judge
        return "value", _type(part)
    name = field[1].replace("``", "`") if field[1] is not None else field[2]
    return name, _type(field[3])


def _type(text: str) -> Type:
    text = text.strip()
    while (cut := _SUFFIX.search(text)) is not None:
        text = text[: cut.start()].rstrip()
    nested = _NESTED.match(text)
    if nested is None:
        return Type(re.sub(r"\s+", " ", re.sub(r"\(.*\)", "", text)).strip().lower(), text)
    kind = nested[1].lower()
    parts = split_top(nested[2])
    if kind == "struct":
        members = [_field(p) for p in parts]
        return Type(kind, text, tuple(t for _, t in members), tuple(n for n, _ in members))
    if len(parts) != (1 if kind == "array" else 2):
        return Type("", text)
    return Type(kind, text, tuple(_type(p) for p in parts))


def encode(value: Any, of: Type) -> Any:
    """The value as JSON has it. Raises ValueError for what cannot be written."""
    if value is None or isinstance(value, bool):
        return value
    if of.name == "array" and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [encode(v, of.inner[0]) for v in value]
    if of.name == "map" and isinstance(value, Mapping):
        key, item = of.inner
        if key.name in _TEXTS:
            return {str(k): encode(v, item) for k, v in value.items()}
        return [[encode(k, key), encode(v, item)] for k, v in value.items()]
    if of.name == "struct":
        if isinstance(value, Mapping):
            types = dict(zip(of.fields, of.inner, strict=True))
            return {str(k): encode(v, types.get(k, _UNKNOWN)) for k, v in value.items()}
        if isinstance(value, tuple | list) and len(value) == len(of.inner):
            return [encode(v, t) for v, t in zip(value, of.inner, strict=True)]
    return _plain(value)


_UNKNOWN = Type("", "an unknown type")
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _plain(value: Any) -> Any:
    match value:
        case bool() | None:
            return value
        case str() | Decimal():
            return str(value)
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else _NOT_FINITE[str(value)]
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return _interval_text(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode("ascii")
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return _plain(value.item())
    raise ValueError(f"a {type(value).__name__} cannot be written")


def decode(value: Any, of: Type) -> Any:
    """The Python object a cell of a document stands for. Raises ValueError with what was expected."""
    if value is None:
        return None
    if of.name == "array":
        if not isinstance(value, list | tuple):
            raise _expected("a list", value)
        return [decode(v, of.inner[0]) for v in value]
    if of.name == "map":
        return _decode_map(value, of)
    if of.name == "struct":
        return _decode_struct(value, of)
    if of.name not in _READERS:
        return value
    expected, reader = _READERS[of.name]
    try:
        return reader(value)
    except (ValueError, TypeError, InvalidOperation, binascii.Error):
        raise _expected(expected, value) from None


def _decode_map(value: Any, of: Type) -> Any:
    key, item = of.inner
    if isinstance(value, Mapping):
        pairs: Any = value.items()
    elif isinstance(value, list | tuple) and all(isinstance(p, list | tuple) and len(p) == 2 for p in value):
        pairs = value
    else:
        raise _expected("a mapping, or a list of [key, value] pairs", value)
    return {_hashable(decode(k, key)): decode(v, item) for k, v in pairs}


def _hashable(key: Any) -> Any:
    return tuple(_hashable(k) for k in key) if isinstance(key, list | tuple) else key


def _decode_struct(value: Any, of: Type) -> Any:
    if isinstance(value, Mapping):
        types = dict(zip(of.fields, of.inner, strict=True))
        unknown = [k for k in value if k not in types]
        if unknown:
            raise ValueError(f"expected the fields {', '.join(of.fields)}, got '{unknown[0]}'")
        return {k: decode(v, types[k]) for k, v in value.items()}
    if isinstance(value, list | tuple) and len(value) == len(of.inner):
        return tuple(decode(v, t) for v, t in zip(value, of.inner, strict=True))
    raise _expected(f"a mapping or a list with the fields {', '.join(of.fields)}", value)


def _expected(what: str, value: Any) -> ValueError:
    return ValueError(f"expected {what}, got {shown(value, 60)}")


def _strictly(kind: type | tuple[type, ...]) -> Callable[[Any], Any]:
    def reader(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TypeError
        return value

    return reader


def _read_float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _read_decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise TypeError
    return Decimal(repr(value) if isinstance(value, float) else value)


def _read_iso(kind: type[date] | type[time]) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kind) else kind.fromisoformat(value)


def _read_bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray) else base64.b64decode(value, validate=True)


def _interval_text(value: timedelta) -> str:
    sign, size = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(size.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{size.microseconds:06d}" if size.microseconds else ""
    return f"{sign}{size.days} {hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def _read_interval(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    parts = _INTERVAL.match(value)
    if parts is None:
        raise ValueError
    days, hours, minutes, seconds = map(int, parts.group(2, 3, 4, 5))
    micros = int((parts[6] or "0").ljust(6, "0"))
    size = timedelta(days, seconds, micros, minutes=minutes, hours=hours)
    return -size if parts[1] else size


_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "boolean": ("true or false", _strictly(bool)),
    "date": ("a date such as 2024-01-31", _read_iso(date)),
    "time": ("a time such as 12:30:00", _read_iso(time)),
    "binary": ("bytes as base64 text", _read_bytes),
    "interval day to second": ("an interval such as '1 02:03:04.5'", _read_interval),
    **dict.fromkeys(_TEXTS, ("text", _strictly(str))),
    **dict.fromkeys(_INTEGERS, ("a whole number", _strictly(int))),
    **dict.fromkeys(_FLOATS, ("a number (or NaN, Infinity, -Infinity)", _read_float)),
    **dict.fromkeys(_DECIMALS, ("a decimal number such as '12.50'", _read_decimal)),
    **dict.fromkeys(_TIMESTAMPS, ("a timestamp such as '2024-01-31 12:30:00'", _read_iso(datetime))),
}
