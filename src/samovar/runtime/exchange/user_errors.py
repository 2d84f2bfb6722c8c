"""What goes wrong in user code inside a worker, as the driver can show it: exceptions, and rows that do not fit.

Runs in Spark's Python workers. Nothing here is called while all goes well, except `column`, which makes a column of an
operator's output and refuses what Arrow would bend in silence: a fraction for an integer, a null where none may be.
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
    "spark_name",
    "unsaved",
    "wrong_row",
]

RAISED = (Exception, SystemExit)
"""What user code may raise; a worker is not to be ended by sys.exit()."""

_LIBRARIES = tuple(
    {sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {str(Path(__file__).parents[2])}
)
_FRAMES = 6
_LOCALS = 8


@dataclass(frozen=True)
class Failure:
    """An exception in user code, or a row that does not fit, as the driver shows it."""

    operator: str
    row: dict[str, Any] | None
    error: str
    traceback: str
    mismatch: bool = False
    during: str = "the end of its input"
    """What was being done when there is no row."""
    hint: str = ""
    position: Position = ()
    """Where the tuple lies that the chain of operators had before it, if rows tell where they lie."""
    taken: int = 0
    """How many tuples the chain had taken with that one, in its key partition; 0: it keeps no order."""


class UserError(Exception):
    """Ends the work of a task; carries what is to be reported."""

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
    own = [i for i, (frame, _) in enumerate(frames) if not _foreign(frame.f_code.co_filename)]
    if not own:
        return ""
    lines = ["Traceback (most recent call last):"]
    shown = own if len(own) <= _FRAMES else [*own[:2], *own[2 - _FRAMES :]]
    for place, i in enumerate(shown):
        if len(own) > _FRAMES and place == 2:
            lines.append(f"  ... {len(own) - _FRAMES} calls more ...")
        frame, number = frames[i]
        name = frame.f_code.co_filename
        lines.append(f'  File "{name}", line {number}, in {frame.f_code.co_name}')
        text = linecache.getline(name, number).strip()
        if text:
            lines.append(f"    {text}")
    known = _locals(frames[own[-1]][0], row)
    if known:
        lines.append(f"    with {known}")
    if own[-1] + 1 < len(frames):
        last = frames[-1][0].f_code
        lines.append(f"    (raised in {last.co_name}, {_short_path(last.co_filename)}, line {frames[-1][1]})")
    lines.append("".join(traceback.format_exception_only(error)).strip()[:1000])
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and repr(cause) != repr(error):
        lines.append(f"because of {''.join(traceback.format_exception_only(cause)).strip()[:400]}")
    return "\n".join(lines)


def frames_of(error: BaseException) -> list[TracebackFrame]:
    """The frames of user code that an exception went through, with the values of their names as text."""
    made = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not _foreign(code.co_filename):
            text = linecache.getline(code.co_filename, line).strip()
            names = {n: v for n, v in frame.f_locals.items() if n != "self" and not n.startswith("__")}
            plain = {n: shown(v) for n, v in names.items() if not isinstance(v, types.ModuleType | type)}
            made.append(TracebackFrame(code.co_filename, line, code.co_name, text, plain))
    return made[-_FRAMES:]


def _foreign(file: str) -> bool:
    if file.startswith("<operator"):
        return False
    return file.startswith(("<", "pyarrow/", *_LIBRARIES)) or "pyspark.zip" in file or "/pyspark/" in file


def _short_path(file: str) -> str:
    return next((os.path.relpath(file, base) for base in _LIBRARIES if file.startswith(base)), file)


def _locals(frame: types.FrameType, row: Any) -> str:
    """Small values of the names in a frame; what is a module, function, operator or the row itself is left out."""
    parts = []
    for name, value in frame.f_locals.items():
        plain = not isinstance(value, types.ModuleType | types.FunctionType | type | types.GeneratorType)
        if name in ("self", "port") or name.startswith("__") or value is row or not plain:
            continue
        try:
            text = repr(value)
        except Exception:
            continue
        if "\n" in text:
            text = f"<{type(value).__name__}>"
        parts.append(f"{name} = {text if len(text) <= 80 else text[:77] + '...'}")
    return ", ".join(parts[:_LOCALS])


def unsaved(operator: str, instance: Any, error: BaseException, hint: str | None) -> Failure:
    """State that cannot be pickled, by the name of the attribute."""
    from pyspark import cloudpickle

    for name, value in vars(instance).items():
        try:
            cloudpickle.dumps(value)
        except Exception as cause:
            kind = type(value).__name__.replace("State", "")
            text = f"an error as its state was saved: '{name}' ({kind}) cannot be pickled: {cause}"
            break
    else:
        text = f"an error as its state was saved: {error}"
    return Failure(operator, None, text, "", during="the end of the epoch", hint=hint or "")


# --- rows that do not fit -------------------------------------------------------------------------------------------


def column(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Values as a column of an operator's output. Raises ValueError or an error of Arrow's when one does not fit."""
    made = pa.array(values, type=field.type, from_pandas=False)
    if made.null_count and not field.nullable:
        raise ValueError("a null where none may be")
    kind = field.type
    if pa.types.is_integer(kind):
        if any(issubclass(t, float) for t in set(map(type, values))) and any(
            isinstance(v, float) and not v.is_integer() for v in values
        ):
            raise ValueError("a fraction where an integer is wanted")
    elif pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            inner = kind.field(i)
            if not inner.nullable and made.field(i).null_count > made.null_count:
                raise ValueError(f"a null in '{inner.name}' where none may be")
    return made


def fits(value: Any, field: pa.Field) -> bool:
    """Whether a value can stand in a column."""
    try:
        column([value], field)
    except Exception:
        return False
    return True


def misfit(operator: str, row: dict[str, Any] | None, value: Any, field: pa.Field) -> Failure:
    """A value of an output row that does not fit its column."""
    got = "None" if value is None else f"{type(value).__name__} {shown(value)}"
    wanted = spark_name(field.type) + ("" if field.nullable else " not null")
    inside = _inside(value, field)
    hint = ""
    if value is None:
        hint = f"Give a value, or leave out NOT NULL in `output`: '{field.name} {spark_name(field.type)}'."
    elif isinstance(value, int) and pa.types.is_integer(field.type):
        hint = f"The number does not fit: write '{field.name} bigint' in `output`."
    elif isinstance(value, float) and math.isfinite(value) and pa.types.is_integer(field.type):
        hint = f"Round it first, or write '{field.name} double' in `output`."
    return Failure(
        operator, row, f"expected {wanted} in '{field.name}', got {got}{inside}", "", mismatch=True, hint=hint
    )


def wrong_row(operator: str, row: dict[str, Any] | None, names: Sequence[str], got: Any) -> Failure:
    """Something that is no row, or a row that lacks columns."""
    wanted = ", ".join(names)
    if not isinstance(got, Mapping):
        hint = "Yield mappings such as {" + ", ".join(f"'{n}': ..." for n in names[:3]) + "}."
        if isinstance(got, str) and (got in names or (isinstance(row, Mapping) and got in row)):
            hint = "process() returned a row instead of yielding it: write `yield row`, or return a list of rows."
        text = f"expected a row with {wanted}, got {type(got).__name__} {shown(got)}"
        return Failure(operator, row, text, "", mismatch=True, hint=hint)
    lacking = [n for n in names if n not in got]
    text = f"expected {wanted}, got a row with {', '.join(map(str, got)) or 'nothing'} (missing: {', '.join(lacking)})"
    hint = f"Add {', '.join(lacking[:3])} to the row, or take it out of `output`."
    return Failure(operator, row, text[:800], "", mismatch=True, hint=hint)


def batch_misfit(operator: str, made: Any, schema: pa.Schema, *, by_name: bool) -> Failure | None:
    """What is wrong with a batch that a function or operator gave; None when it can be used."""
    where = "its output"
    if not isinstance(made, pa.RecordBatch):
        text = f"expected Arrow record batches (pyarrow.RecordBatch), got {type(made).__name__} {shown(made)}"
        return Failure(operator, None, text, "", mismatch=True, during=where)
    names = made.schema.names
    lacking = [n for n in schema.names if n not in names] if by_name else []
    if lacking or len(names) < len(schema.names):
        text = f"expected columns {', '.join(schema.names)}, got {', '.join(names) or 'none'}"
        return Failure(operator, None, text[:800], "", mismatch=True, during=where)
    for i, field in enumerate(schema):
        array = made.column(names.index(field.name) if by_name else i)
        if not field.nullable and array.null_count:
            return misfit(operator, None, None, field)
        if by_name and not array.type.equals(field.type):
            try:
                array.cast(field.type)
            except Exception as error:
                text = f"expected {spark_name(field.type)} in '{field.name}', got {array.type}: {error}"
                return Failure(operator, None, text[:400], "", mismatch=True, during=where)
        elif not by_name and _differs(array.type, field.type):
            text = f"expected {spark_name(field.type)} as column {i + 1} ('{field.name}'), got {array.type}"
            return Failure(operator, None, text, "", mismatch=True, during=where)
    return None


def _differs(got: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark would read one type as another; types it reads alike (string, large_string) do not differ."""
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if any(test(wanted) for test in plain) or any(test(got) for test in plain):
        return not got.equals(wanted)
    return False


def _inside(value: Any, field: pa.Field) -> str:
    """Where in a nested value the trouble is."""
    kind = field.type
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        for i in range(kind.num_fields):
            inner = kind.field(i)
            if not fits(value.get(inner.name), inner):
                return f": '{field.name}.{inner.name}' is {shown(value.get(inner.name))}, not {spark_name(inner.type)}"
    elif pa.types.is_list(kind) and isinstance(value, list | tuple):
        for i, item in enumerate(value):
            if not fits(item, kind.value_field):
                return f": item {i} is {shown(item)}, not {spark_name(kind.value_type)}"
    return ""


def spark_name(kind: pa.DataType) -> str:
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
        return f"array<{spark_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        inner = (kind.field(i) for i in range(kind.num_fields))
        return "struct<" + ",".join(f"{f.name}:{spark_name(f.type)}" for f in inner) + ">"
    return str(kind)


def report(folder: Path, failure: Failure) -> None:
    """Leave a failure where the driver looks for it; once, if several tasks fail alike."""
    try:
        body = pickle.dumps(failure)
    except Exception:
        row = None if failure.row is None else {k: repr(v) for k, v in failure.row.items()}
        body = pickle.dumps(replace(failure, row=row))
    write_file(folder / f"{hashlib.blake2b(body, digest_size=8).hexdigest()}.failure", body)
