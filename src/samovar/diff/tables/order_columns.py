"""Order as columns: what turns a comparison up to an order into one of sets of rows.

For each clause of a structured dependence a number is added to each row: for a key, how many rows of the same key came
before; for a synchronising event, how many of those came before (within the same columns). Two tables are equivalent
exactly if they hold the same rows with the same numbers as often: between dependent rows the numbers show which came
first, and between others the order is free.

The order of a table is that of its partitions, and of the rows within each: that of `collect()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.diff.dependence import Dependence, Key, Predicate, Synchronising
from samovar.diff.tables.row_hash import quoted, row_hashes

__all__ = [
    "AT",
    "LINE",
    "PLACE",
    "augmented",
    "can_augment",
    "counts_of",
    "indexed",
    "offsets_of",
    "position",
]

PLACE = "__samovar_place"
"""Where a row is: partition and row within it, as in `monotonically_increasing_id`."""

LINE, AT = "__samovar_line0", "__samovar_number0"
"""A hash of what the first clause groups by, and the number by that clause: on each line, only the first difference
counts."""
_LOCAL = (1 << 33) - 1
"""The bits of a place that count rows within a partition; the partition is above them."""


def can_augment(depends: Dependence) -> bool:
    """Whether numbers can express the whole order."""
    return all(
        (isinstance(c, Key) and c.by is None) or (isinstance(c, Synchronising) and c.by.function is None)
        for c in depends.clauses
    )


def augmented(
    df: DataFrame, depends: Dependence, schema: StructType, keep: Mapping[str, Column]
) -> tuple[DataFrame, list[str]]:
    """The columns `keep` of each row, its place and its numbers, and the names of the numbers' columns.

    Only hashes and these columns are moved between partitions.
    """
    clauses = sorted(depends.clauses, key=lambda c: not isinstance(c, Key))
    chosen = {**keep}
    if clauses:
        chosen[PLACE] = F.monotonically_increasing_id()
    for i, clause in enumerate(clauses):
        assert isinstance(clause, (Key, Synchronising))
        if by := clause.columns if isinstance(clause, Key) else clause.within:
            chosen[_line(i)], chosen[f"{_line(i)}b"] = row_hashes([schema[c] for c in by])
        if isinstance(clause, Synchronising):
            chosen[f"{_number(i)}m"] = F.when(_holds(clause.by), F.lit(1)).otherwise(F.lit(0)).cast("long")
    raw, df = df, df.select(*[c.alias(n) for n, c in chosen.items()])
    for i, clause in enumerate(clauses):
        if isinstance(clause, Synchronising):
            df = _counted(df, bool(clause.within), i)
        elif clause == Key():
            df = df.withColumn(_line(i), F.lit(0).cast("long"))
            df = df.withColumn(_number(i), _position(PLACE, offsets_of(raw)))
        else:
            window = Window.partitionBy(_line(i), f"{_line(i)}b").orderBy(PLACE)
            df = df.withColumn(_number(i), F.row_number().over(window).cast("long") - 1)
    return df, [_number(i) for i in range(len(clauses))]


def counts_of(df: DataFrame) -> list[int]:
    """How many rows each partition has. One job that reads no columns."""
    return _by_partition(df.groupBy(F.spark_partition_id().alias("p")).agg(F.count("*").alias("n")))


def offsets_of(df: DataFrame) -> list[int]:
    """How many rows came before each partition. One job that reads no columns."""
    return _running(counts_of(df))


def indexed(df: DataFrame, name: str, counts: Sequence[int] | None = None) -> DataFrame:
    """The table with the number of each row. One job counts the rows of each partition, unless that is known."""
    offsets = _running(counts_of(df) if counts is None else counts)
    df = df.withColumn(name, F.monotonically_increasing_id())
    return df.withColumn(name, _position(name, offsets))


def position(place: int, offsets: Sequence[int]) -> int:
    """The number of a row in its table."""
    return offsets[place >> 33] + (place & _LOCAL)


def _position(place: str, offsets: Sequence[int]) -> Column:
    """The number of each row in its table, as a column."""
    return F.col(place).bitwiseAND(F.lit(_LOCAL)) + _pick(offsets, F.shiftright(place, 33))


def _counted(df: DataFrame, within: bool, i: int) -> DataFrame:
    """How many synchronising events came before, doubled; one less than double for these events themselves."""
    mark = f"{_number(i)}m"
    if within:
        window = Window.partitionBy(_line(i), f"{_line(i)}b").orderBy(PLACE)
        offset: Column = F.lit(0).cast("long")
    else:
        partition = F.shiftright(PLACE, 33)
        marks = df.groupBy(partition.alias("p")).agg(F.sum(mark).alias("n"))
        df = df.withColumn(_line(i), F.lit(0).cast("long")).withColumn(f"{mark}p", partition)
        window = Window.partitionBy(f"{mark}p").orderBy(PLACE)
        offset = _pick(_running(_by_partition(marks)), F.col(f"{mark}p"))
    before = F.sum(mark).over(window.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return df.withColumn(_number(i), (before + offset) * 2 - F.col(mark))


def _line(i: int) -> str:
    return f"__samovar_line{i}"


def _number(i: int) -> str:
    return f"__samovar_number{i}"


def _holds(by: Predicate) -> Column:
    holds = F.lit(True)
    for name, values in by.columns:
        one = F.lit(False)
        for value in values:
            one = one | quoted(name).eqNullSafe(F.lit(float("nan") if value == ("NaN",) else value))
        holds = holds & one
    return holds


def _by_partition(counts: DataFrame) -> list[int]:
    rows = {r["p"]: r["n"] for r in counts.collect()}
    return [rows.get(p, 0) for p in range(max(rows, default=-1) + 1)]


def _running(counts: Sequence[int]) -> list[int]:
    """The sum of the counts before each."""
    return [0, *accumulate(counts[:-1])]


def _pick(numbers: Sequence[int], index: Column) -> Column:
    if len(set(numbers)) == 1:
        return F.lit(numbers[0]).cast("long")
    return F.element_at(F.lit(list(numbers)).cast("array<long>"), (index + 1).cast("int"))
