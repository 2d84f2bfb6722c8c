"""Do two tables have the same columns? Asked before any row is read.

Columns are compared by name, in any order. Whether a column may be null is shown and not compared, unless asked for:
Spark derives it from how a column was computed, not from what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from samovar.diff.comparison_errors import (
    EventProblem,
    SchemasDiffer,
    SideProblem,
    did_you_mean,
    repeated,
)
from samovar.diff.dependence import Dependence, independent
from samovar.diff.equality import Equality
from samovar.diff.report import aligned
from samovar.errors import nearest

__all__ = ["Strictness", "agreed_columns", "kind_of"]

Strictness = Literal["exact", "types", "kinds"]
"""`exact`: also order and nullability; `types`: names and types; `kinds`: integers of any width are one kind, too."""


def kind_of(kind: DataType) -> DataType:
    """The widest type of its kind: what a column is cast to where two sides are of the same kind only."""
    if isinstance(kind, IntegralType):
        return LongType()
    if isinstance(kind, FloatType):
        return DoubleType()
    if isinstance(kind, (CharType, VarcharType)):
        return StringType()
    return _nullable(kind, kind_of)


def _nullable(kind: DataType, part: Callable[[DataType], DataType] | None = None) -> DataType:
    """A type whose parts, changed by a function, may all be null."""
    part = part or _nullable
    if isinstance(kind, ArrayType):
        return ArrayType(part(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(part(kind.keyType), part(kind.valueType), True)
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, part(f.dataType), True) for f in kind.fields])
    return kind


def agreed_columns(
    left: StructType,
    right: StructType,
    equal: Equality,
    depends: Dependence = independent,
    *,
    strictness: Strictness = "types",
) -> StructType:
    """The compared columns with the type both sides are cast to. Raises `SchemasDiffer` with both side by side."""
    sides = {"left": left, "right": right}
    for side, schema in sides.items():
        if (twice := repeated(schema.names)) is not None:
            raise EventProblem(
                f"Expected columns with different names, got '{twice}' twice on the {side} side.",
                hint=f"Rename them, for example with df.toDF({', '.join(_numbered(schema.names))}).",
            )
    wanted = list(equal.columns) if equal.columns is not None else None
    for name in (*(wanted or ()), *depends.columns, *equal.tolerant_columns):
        lacking = [side for side, schema in sides.items() if name not in schema.names]
        if lacking:
            there = sides[lacking[0]].names
            what = (
                f"the column '{name}' on the {lacking[0]} side" if len(lacking) == 1 else f"a column '{name}'"
            )
            # a name that neither side has is a mistake of the caller, not a difference
            raise (SchemasDiffer if len(lacking) == 1 else SideProblem)(
                f"Expected {what}, used by the dependence or the equality, got {', '.join(there) or 'none'}.",
                hint=did_you_mean(name, there),
            )
    names = wanted if wanted is not None else list(dict.fromkeys([*left.names, *right.names]))
    problems = [n for n in names if _problem(left, right, n, strictness)]
    if strictness == "exact" and not problems and wanted is None and left.names != right.names:
        problems = [a for a, b in zip(left.names, right.names, strict=True) if a != b]
    if problems:
        count = "one that differs" if len(problems) == 1 else f"{len(problems)} that differ"
        raise SchemasDiffer(
            f"Expected two tables with the same columns, got {count}:\n\n"
            + "\n".join(_side_by_side(left, right, names, problems)),
            hint=_hint(left, right, problems, strictness),
        )
    return StructType([StructField(n, _common(left[n].dataType, right[n].dataType), True) for n in names])


def _numbered(names: Sequence[str]) -> list[str]:
    return [repr(n if n not in names[:i] else f"{n}_{names[:i].count(n) + 1}") for i, n in enumerate(names)]


def _problem(left: StructType, right: StructType, name: str, strictness: Strictness) -> bool:
    if name not in left.names or name not in right.names:
        return True
    a, b = left[name], right[name]
    if strictness == "kinds":
        return kind_of(a.dataType) != kind_of(b.dataType)
    if _nullable(a.dataType) != _nullable(b.dataType):
        return True
    return strictness == "exact" and (a.nullable != b.nullable or a.dataType != b.dataType)


def _common(a: DataType, b: DataType) -> DataType:
    return _nullable(a) if _nullable(a) == _nullable(b) else kind_of(a)


def _side_by_side(
    left: StructType, right: StructType, names: Sequence[str], problems: Sequence[str]
) -> list[str]:
    rows = [("", "column", "left", "right")]
    for name in names:
        mark = "*" if name in problems else ""
        rows.append((mark, name, _cell(left, name), _cell(right, name)))
    return aligned(rows)


def _cell(schema: StructType, name: str) -> str:
    if name not in schema.names:
        return "-"
    field = schema[name]
    return field.dataType.simpleString() + ("" if field.nullable else " not null")


def _hint(left: StructType, right: StructType, problems: Sequence[str], strictness: Strictness) -> str:
    missing = [n for n in problems if n not in left.names or n not in right.names]
    for name in missing:
        other = [n for n in missing if (n in left.names) != (name in left.names)]
        close = nearest(name, other)
        if close:
            return f"'{name}' and '{close}' may be the same column: rename one with withColumnRenamed."
    if missing:
        both = [n for n in left.names if n in right.names]
        return f"To compare only what both have: equal=equality(columns={both!r})."
    if strictness == "types" and not any(_problem(left, right, n, "kinds") for n in problems):
        return 'To take integers (and floats) of any width for one type: schema="kinds".'
    if strictness == "exact" and not any(_problem(left, right, n, "types") for n in problems):
        return 'To compare names and types only: schema="types".'
    return f"Cast one side, for example .withColumn('{problems[0]}', F.col('{problems[0]}').cast(...))."
