"""A result's columns in figures, computed by Spark in one pass; and the values of one column."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from samovar.replay.past import Past
from samovar.server.json_values import plain
from samovar.server.runs.results import check_column, result_frame, spark_errors
from samovar.text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["column_values", "statistics_of"]

_BINS = 10
_VALUES = 10


def statistics_of(
    past: Past, sink: str, *, where: str | None, session: Callable[[], SparkSession]
) -> list[dict[str, Any]]:
    """For each column: rows, nulls, different values (about), least and greatest value, mean of numbers."""
    from pyspark.sql import functions as F

    frame = result_frame(past, sink, where, session)
    if frame is None:
        return []
    aggregates: list[Column] = [F.count(F.lit(1)).alias("rows")]
    for number, field in enumerate(frame.schema.fields):
        column = F.col(quote_name(field.name))
        aggregates.append(F.count(column).alias(f"{number}_filled"))
        if _plain_type(field.dataType):
            aggregates.append(F.approx_count_distinct(column).alias(f"{number}_distinct"))
            aggregates += [F.min(column).alias(f"{number}_least"), F.max(column).alias(f"{number}_greatest")]
        if _number(field.dataType):
            aggregates.append(F.avg(column).alias(f"{number}_mean"))
    with spark_errors(where, frame.columns):
        row = frame.agg(*aggregates).toArrow().to_pylist()[0]
    return [
        {
            "name": field.name,
            "type": field.dataType.simpleString(),
            "rows": row["rows"],
            "nulls": row["rows"] - row[f"{number}_filled"],
            **{
                name: plain(row.get(f"{number}_{name}")) for name in ("distinct", "least", "greatest", "mean")
            },
        }
        for number, field in enumerate(frame.schema.fields)
    ]


def column_values(
    past: Past, sink: str, column: str, *, where: str | None, session: Callable[[], SparkSession]
) -> list[dict[str, Any]]:
    """The most frequent values of a column (`value`, `rows`), or ranges of numbers (`from`, `to`, `rows`)."""
    from pyspark.sql import functions as F

    frame = result_frame(past, sink, where, session)
    if frame is None:
        return []
    check_column(column, frame.columns)
    one = frame.select(F.col(quote_name(column)).alias("value")).where("value IS NOT NULL")
    kind = one.schema["value"].dataType
    with spark_errors(where, frame.columns):
        if _number(kind):
            return _ranges(one.select(F.col("value").cast("double")))
        shown = one if _plain_type(kind) else one.select(F.to_json("value").alias("value"))
        counted = shown.groupBy("value").count().orderBy(F.col("count").desc(), "value").limit(_VALUES)
        return [{"value": plain(r["value"]), "rows": r["count"]} for r in counted.toArrow().to_pylist()]


def _ranges(numbers: DataFrame) -> list[dict[str, Any]]:
    from pyspark.sql import functions as F

    numbers = numbers.where("NOT isnan(value) AND abs(value) <> double('Infinity')")
    least, greatest = numbers.agg(F.min("value"), F.max("value")).first() or (None, None)
    if least is None or greatest is None:
        return []
    width = (greatest - least) / _BINS
    if width == 0:
        return [{"from": least, "to": greatest, "rows": numbers.count()}]
    number = F.least(F.floor((F.col("value") - least) / width), F.lit(_BINS - 1))
    counted = numbers.groupBy(number.alias("bin")).count().toArrow().to_pylist()
    rows = {r["bin"]: r["count"] for r in counted}
    return [
        {"from": least + i * width, "to": least + (i + 1) * width, "rows": rows.get(i, 0)}
        for i in range(_BINS)
    ]


def _number(kind: Any) -> bool:
    from pyspark.sql.types import NumericType

    return isinstance(kind, NumericType)


def _plain_type(kind: Any) -> bool:
    """Whether values can be ordered and counted as they are."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    return not isinstance(kind, ArrayType | MapType | StructType | VariantType)
