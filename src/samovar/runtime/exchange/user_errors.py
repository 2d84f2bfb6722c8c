"""Errors of user code inside a worker, as the driver shows them: exceptions, and rows that do not fit.

Runs in Spark's Python workers. Nothing here is called while all goes well, except `column`, which makes a column of an
operator's output and raises where Arrow would change a value silently: a fraction in an integer column, a null in a
column that is NOT NULL.
"""

from __future__ import annotations

import hashlib
import linecache
import math
import os
import pickle
import sysconfig
import traceback
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from samovar.control.messages import TracebackFrame
from samovar.files import write_file
from samovar.positions import Position
from samovar.text import shown

__all__ = [
    "RAISED",
    "Failure",
    "UserError",
    "batch_misfit",
    "column",
    "fits",
    "frames_of",
    "misfit",
    "raised",
    "report",
    "shown",
    "unpicklable",
    "unsaved",
    "wrong_row",
]

RAISED = (Exception, SystemExit)
"""What user code may raise: sys.exit() in an operator must not end the worker."""

_LIBRARIES = tuple(
    {sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {str(Path(__file__).parents[2])}
)
_FRAMES = 6
"""Frames of a traceback that are shown: the first two and the last ones."""
_LOCALS = 8
"""Names of a frame that are shown with their values."""


@dataclass(frozen=True)
class Failure:
    """An exception in user code, or a row that does not fit, as the driver shows it."""

    operator: str
    row: dict[str, Any] | None
    error: str
    traceback: str
    mismatch: bool = False
    during: str = "the end of its input"
    """What the operator was doing, where there is no row."""
    hint: str = ""
    position: Position = ()
    """The position of the tuple that the chain was processing, if its rows have positions."""
    taken: int = 0
    """How many tuples the chain had taken in its key partition, with that tuple; 0: its order is not kept."""


class UserError(Exception):
    """Ends the work of a task; carries the failure to report."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.error)
        self.failure = failure


# --- exceptions -----------------------------------------------------------------------------------------------------


def raised(
    operator: str, row: dict[str, Any] | None, error: BaseException, *, during: str = "the end of its input"
) -> Failure:
    """An exception of user code, its traceback limited to that code, with the values of names where it ends."""
    summary = "".join(traceback.format_exception_only(error)).strip()
    return Failure(operator, row, summary[:1000], _traceback(error, row), during=during)


def _traceback(error: BaseException, row: Any) -> str:
    frames = list(traceback.walk_tb(error.__traceback__))
    users = _user_frames(error)
    if not users:
        return ""
    lines = ["Traceback (most recent call last):"]
    for frame, number in users:
        code = frame.f_code
        text = linecache.getline(code.co_filename, number).strip()
        lines.append(f'  File "{code.co_filename}", line {number}, in {code.co_name}')
        lines[-1] += f"\n    {text}" if text else ""
    if len(users) > _FRAMES:
        lines[3 : 2 - _FRAMES] = [f"  ... {len(users) - _FRAMES} calls more ..."]
    if values := _locals(users[-1][0], row):
        lines.append(f"    with {values}")
    frame, number = frames[-1]
    if frame is not users[-1][0]:
        code = frame.f_code
        lines.append(f"    (raised in {code.co_name}, {_short_path(code.co_filename)}, line {number})")
    lines.append("".join(traceback.format_exception_only(error)).strip()[:1000])
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and repr(cause) != repr(error):
        lines.append(f"because of {''.join(traceback.format_exception_only(cause)).strip()[:400]}")
    return "\n".join(lines)


def frames_of(error: BaseException) -> list[TracebackFrame]:
    """The frames of user code that an exception went through, with the values of their names as text."""
    frames = []
    for frame, line in _user_frames(error)[-_FRAMES:]:
        code = frame.f_code
        text = linecache.getline(code.co_filename, line).strip()
        names = {n: v for n, v in frame.f_locals.items() if n != "self" and not n.startswith("__")}
        values = {n: shown(v) for n, v in names.items() if not isinstance(v, types.ModuleType | type)}
        frames.append(TracebackFrame(code.co_filename, line, code.co_name, text, values))
    return frames


def _user_frames(error: BaseException) -> list[tuple[types.FrameType, int]]:
    """The frames of user code that an exception went through, each with its line."""
    frames = traceback.walk_tb(error.__traceback__)
    return [(frame, line) for frame, line in frames if not _foreign(frame.f_code.co_filename)]


def _foreign(file: str) -> bool:
    """Whether a file belongs to Python, Spark, Samovar or another library. Operators given as text are the user's."""
    if file.startswith("<operator"):
        return False
    return file.startswith(("<", "pyarrow/", *_LIBRARIES)) or "pyspark.zip" in file or "/pyspark/" in file


def _short_path(file: str) -> str:
    return next((os.path.relpath(file, base) for base in _LIBRARIES if file.startswith(base)), file)


def _locals(frame: types.FrameType, row: Any) -> str:
    """The values of the names in a frame, in short; without modules, functions, the operator and the row itself."""
    parts = []
    for name, value in frame.f_locals.items():
        hidden = isinstance(value, types.ModuleType | types.FunctionType | type | types.GeneratorType)
        if name in ("self", "port") or name.startswith("__") or value is row or hidden:
            continue
        text = shown(value, 80)
        parts.append(f"{name} = <{type(value).__name__}>" if "\n" in text else f"{name} = {text}")
    return ", ".join(parts[:_LOCALS])


def unsaved(operator: str, instance: Any, error: BaseException, hint: str | None) -> Failure:
    """The failure for a state that cannot be pickled."""
    text = f"an error as its state was saved: {error}"
    if (attribute := unpicklable(instance)) is not None:
        name, cause = attribute
        kind = type(vars(instance)[name]).__name__.replace("State", "")
        text = f"an error as its state was saved: '{name}' ({kind}) cannot be pickled: {cause}"
    return Failure(operator, None, text, "", during="the end of the epoch", hint=hint or "")


def unpicklable(thing: Any) -> tuple[str, Exception] | None:
    """The first attribute of an object that cannot be pickled, and why; None: all can."""
    from pyspark import cloudpickle

    for name, value in getattr(thing, "__dict__", {}).items():
        try:
            if name != "_sv_params":
                cloudpickle.dumps(value)
        except Exception as error:
            return str(name), error
    return None


# --- rows that do not fit -------------------------------------------------------------------------------------------


def column(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Values as a column of an operator's output. Raises ValueError or an error of Arrow's when one does not fit."""
    array = pa.array(values, type=field.type, from_pandas=False)
    if array.null_count and not field.nullable:
        raise ValueError("a null in a column that is NOT NULL")
    kind = field.type
    if pa.types.is_integer(kind):
        if any(issubclass(t, float) for t in set(map(type, values))) and any(
            isinstance(v, float) and not v.is_integer() for v in values
        ):
            raise ValueError("a fraction in an integer column")
    elif pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            inner = kind.field(i)
            if not inner.nullable and array.field(i).null_count > array.null_count:
                raise ValueError(f"a null in '{inner.name}', which is NOT NULL")
    return array


def fits(value: Any, field: pa.Field) -> bool:
    """Whether a value fits a column."""
    try:
        column([value], field)
    except Exception:
        return False
    return True


def misfit(operator: str, row: dict[str, Any] | None, value: Any, field: pa.Field) -> Failure:
    """A value of an output row that does not fit its column."""
    got = "None" if value is None else f"{type(value).__name__} {shown(value)}"
    wanted = _spark_name(field.type) + ("" if field.nullable else " not null")
    inside = _inside(value, field)
    hint = ""
    if value is None:
        hint = f"Give a value, or drop NOT NULL from `output`: '{field.name} {_spark_name(field.type)}'."
    elif isinstance(value, int) and pa.types.is_integer(field.type):
        hint = f"The number does not fit: write '{field.name} bigint' in `output`."
    elif isinstance(value, float) and math.isfinite(value) and pa.types.is_integer(field.type):
        hint = f"Round it first, or write '{field.name} double' in `output`."
    return _mismatch(operator, f"expected {wanted} in '{field.name}', got {got}{inside}", row, hint=hint)


def _mismatch(
    operator: str, text: str, row: dict[str, Any] | None = None, *, hint: str = "", during: str = ""
) -> Failure:
    return Failure(operator, row, text[:800], "", True, during or Failure.during, hint)


def wrong_row(operator: str, row: dict[str, Any] | None, names: Sequence[str], got: Any) -> Failure:
    """An output that is not a row, or a row that lacks columns."""
    wanted = ", ".join(names)
    if not isinstance(got, Mapping):
        hint = "Yield mappings such as {" + ", ".join(f"'{n}': ..." for n in names[:3]) + "}."
        if isinstance(got, str) and (got in names or (isinstance(row, Mapping) and got in row)):
            hint = "process() returned a row instead of yielding it: write `yield row`, or return a list of rows."
        text = f"expected a row with {wanted}, got {type(got).__name__} {shown(got)}"
        return _mismatch(operator, text, row, hint=hint)
    lacking = [n for n in names if n not in got]
    text = f"expected {wanted}, got a row with {', '.join(map(str, got)) or 'nothing'} (missing: {', '.join(lacking)})"
    hint = f"Add {', '.join(lacking[:3])} to the row, or take it out of `output`."
    return _mismatch(operator, text, row, hint=hint)


def batch_misfit(operator: str, batch: Any, schema: pa.Schema, *, by_name: bool) -> Failure | None:
    """What is wrong with a batch of a function's or an operator's output; None when it fits."""
    where = "its output"
    if not isinstance(batch, pa.RecordBatch):
        text = (
            f"expected Arrow record batches (pyarrow.RecordBatch), got {type(batch).__name__} {shown(batch)}"
        )
        return _mismatch(operator, text, during=where)
    names = batch.schema.names
    lacking = [n for n in schema.names if n not in names] if by_name else []
    if lacking or len(names) < len(schema.names):
        text = f"expected columns {', '.join(schema.names)}, got {', '.join(names) or 'none'}"
        return _mismatch(operator, text, during=where)
    for i, field in enumerate(schema):
        array = batch.column(names.index(field.name) if by_name else i)
        if not field.nullable and array.null_count:
            return misfit(operator, None, None, field)
        if by_name and not array.type.equals(field.type):
            try:
                array.cast(field.type)
            except Exception as error:
                text = f"expected {_spark_name(field.type)} in '{field.name}', got {array.type}: {error}"
                return _mismatch(operator, text[:400], during=where)
        elif not by_name and _differs(array.type, field.type):
            text = f"expected {_spark_name(field.type)} as column {i + 1} ('{field.name}'), got {array.type}"
            return _mismatch(operator, text, during=where)
    return None


def _differs(got: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark would read one type as another; types it reads alike (string, large_string) do not differ."""
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if any(test(wanted) for test in plain) or any(test(got) for test in plain):
        return not got.equals(wanted)
    return False


def _inside(value: Any, field: pa.Field) -> str:
    """Which part of a nested value does not fit; empty for a plain value."""
    kind = field.type
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        for i in range(kind.num_fields):
            inner = kind.field(i)
            if not fits(value.get(inner.name), inner):
                return f": '{field.name}.{inner.name}' is {shown(value.get(inner.name))}, not {_spark_name(inner.type)}"
    elif pa.types.is_list(kind) and isinstance(value, list | tuple):
        for i, item in enumerate(value):
            if not fits(item, kind.value_field):
                return f": item {i} is {shown(item)}, not {_spark_name(kind.value_type)}"
    return ""


def _spark_name(kind: pa.DataType) -> str:
    """An Arrow type as `output` spells it."""
    names = {
        pa.int8(): "tinyint",
        pa.int16(): "smallint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.bool_(): "boolean",
        pa.binary(): "binary",
        pa.date32(): "date",
    }
    if kind in names:
        return names[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{_spark_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_spark_name(kind.key_type)},{_spark_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        inner = (kind.field(i) for i in range(kind.num_fields))
        return "struct<" + ",".join(f"{f.name}:{_spark_name(f.type)}" for f in inner) + ">"
    return str(kind)


def report(folder: Path, failure: Failure) -> None:
    """Write a failure into the folder where the driver looks; once, if several tasks fail in the same way."""
    try:
        body = pickle.dumps(failure)
    except Exception:
        row = None if failure.row is None else {k: repr(v) for k, v in failure.row.items()}
        body = pickle.dumps(replace(failure, row=row))
    write_file(folder / f"{hashlib.blake2b(body, digest_size=8).hexdigest()}.failure", body)
