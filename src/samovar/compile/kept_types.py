"""The types a result can hold: those that come back from its files as `DataFrame.toArrow` gives them.

Spark writes more types than Arrow has. What would fail when a result is read is refused when the workflow is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    GeographyType,
    GeometryType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimeType,
    VariantType,
)

from samovar.errors import SchemaProblem

__all__ = ["check_kept", "has_map", "has_variant", "mapped", "relaxed", "shown_types", "type_parts"]

SPATIAL = (GeometryType, GeographyType)
TIMES = "spark.sql.timeType.enabled"


def check_kept(spark: SparkSession, sink: str, schema: StructType) -> None:
    """Raise a SchemaProblem for a column of a type that cannot be read back from a result."""
    for field in schema.fields:
        for kind in type_parts(field.dataType):
            problem = _problem(spark, kind, nested=kind is not field.dataType)
            if problem is not None:
                raise SchemaProblem(
                    f"Expected columns that a result can hold, got '{field.name}' ({field.dataType.simpleString()}): "
                    f"{problem[0]}.",
                    operator=sink,
                    hint=problem[1].format(name=field.name),
                )


def _problem(spark: SparkSession, kind: DataType, *, nested: bool) -> tuple[str, str] | None:
    text = "Keep it as text: CAST({name} AS STRING) AS {name}."
    if isinstance(kind, TimeType) and str(spark.conf.get(TIMES, "false")).lower() != "true":
        return "this session has no TIME", f"Set {TIMES} to true in the session. " + text
    if isinstance(kind, SPATIAL):
        fixed = kind.srid != type(kind).MIXED_SRID
        if nested or not fixed:
            why = "inside other values its SRID is lost" if nested else "its SRID differs from row to row"
            return why, "Keep ST_AsBinary({name}), and ST_Srid({name}) beside it."
    elif not isinstance(kind, StructType | ArrayType | MapType) and not _in_arrow(kind):
        return "Arrow has no such type", text
    return None


def _in_arrow(kind: DataType) -> bool:
    try:
        to_arrow_type(kind, timezone="UTC")
    except (PySparkException, TypeError):
        return False
    return True


def has_variant(kind: DataType) -> bool:
    """Whether a type is VARIANT or has one inside."""
    return any(isinstance(part, VariantType) for part in type_parts(kind))


def has_map(kind: DataType) -> bool:
    """Whether a type is MAP or has one inside."""
    return any(isinstance(part, MapType) for part in type_parts(kind))


def relaxed(kind: DataType) -> DataType:
    """The type with nulls allowed in all its parts."""
    return mapped(kind, lambda leaf: leaf)


def shown_types(kind: DataType) -> DataType:
    """The type with text in the place of parts that Arrow has no type for, so that a person can look at it."""
    return mapped(kind, lambda leaf: leaf if _in_arrow(leaf) else StringType())


def mapped(kind: DataType, leaf: Callable[[DataType], DataType]) -> DataType:
    """A type with nulls allowed in all its parts, and its innermost types replaced."""
    match kind:
        case StructType():
            return StructType([StructField(f.name, mapped(f.dataType, leaf), True) for f in kind.fields])
        case ArrayType():
            return ArrayType(mapped(kind.elementType, leaf), True)
        case MapType():
            return MapType(mapped(kind.keyType, leaf), mapped(kind.valueType, leaf), True)
    return leaf(kind)


def type_parts(kind: DataType) -> Iterator[DataType]:
    """A type and all types inside it."""
    yield kind
    match kind:
        case StructType():
            for field in kind.fields:
                yield from type_parts(field.dataType)
        case ArrayType():
            yield from type_parts(kind.elementType)
        case MapType():
            yield from type_parts(kind.keyType)
            yield from type_parts(kind.valueType)
