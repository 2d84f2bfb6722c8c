"""Values of tuples as plain data: msgpack that holds nothing but data, so that reading it runs no code.

What msgpack has (null, booleans, numbers, text, bytes, lists) stands for itself; every other value is a mapping of one
entry, from the name of its type to what it is made of. A value comes back equal and with its type; numbers of numpy and
rows of Spark come back as Python's own numbers and tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from samovar.errors import RecordingCorrupt, WorkflowError

__all__ = ["from_plain", "read_files", "to_plain"]

T = TypeVar("T")
_WORD = 2**63  # msgpack has whole numbers of 64 bits


def to_plain(value: Any) -> Any:
    """The value as msgpack has it. Raises WorkflowError for a value that is not plain."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if -_WORD <= value < _WORD else {"int": str(int(value))}
        case float():
            return float(value)
        case str():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case time():
            return {"time": value.isoformat()}
        case timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case Decimal():
            return {"decimal": str(value)}
        case Mapping():
            return {"dict": [[to_plain(k), to_plain(v)] for k, v in value.items()]}
        case list():
            return [to_plain(v) for v in value]
        case tuple():
            return {"tuple": [to_plain(v) for v in value]}
        case AbstractSet():
            kind = "frozenset" if isinstance(value, frozenset) else "set"
            return {kind: [to_plain(v) for v in value]}
    if type(value).__name__ == "VariantVal":
        return {"variant": [value.value, value.metadata]}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return to_plain(value.tolist())
    raise WorkflowError(
        f"Expected plain values in a tuple, got a {type(value).__name__}: {str(value)[:100]}",
        hint="Numbers, text, bytes, dates and times, decimals, and lists, mappings or structs of them can be kept.",
    )


def from_plain(value: Any) -> Any:
    """The value that `to_plain` was given. Raises RecordingCorrupt for data that it did not make."""
    if isinstance(value, list):
        return [from_plain(v) for v in value]
    if not isinstance(value, dict):
        return value
    try:
        ((kind, body),) = value.items()
        return _READERS[kind](body)
    except (KeyError, ValueError, TypeError, ArithmeticError) as error:
        raise RecordingCorrupt(f"Expected a value as recordings keep it, got {str(value)[:100]}.") from error


def read_files(folder: Path, of: type[T]) -> Iterable[T]:
    """The lists in the files of a folder, one after the other. Raises RecordingCorrupt for whatever else is there."""
    for file in sorted(p for p in folder.glob("*") if p.suffix in (".msgpack", ".pkl")):
        if (
            file.suffix == ".pkl"
        ):  # reading it would run code: older versions wrote such files, or somebody planted it
            raise RecordingCorrupt(
                f"Expected plain data in {folder.name}, got the pickle {file.name}: it was not opened.",
                hint="Look at a recording of an older version with that version, if you trust its author.",
            )
        try:
            yield from msgspec.msgpack.decode(file.read_bytes(), type=list[of])  # type: ignore[valid-type]
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordingCorrupt(
                f"The file {folder.name}/{file.name} of the recording cannot be read: {error}"
            ) from None


def _variant(body: Any) -> Any:
    from pyspark.sql.types import VariantVal

    return VariantVal(*body)


_READERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda body: timedelta(*body),
    "decimal": Decimal,
    "dict": lambda body: {from_plain(k): from_plain(v) for k, v in body},
    "tuple": lambda body: tuple(from_plain(v) for v in body),
    "set": lambda body: {from_plain(v) for v in body},
    "frozenset": lambda body: frozenset(from_plain(v) for v in body),
    "variant": _variant,
}
