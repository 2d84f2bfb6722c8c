"""What oracle tests share: files to read, runs at several epoch sizes, and a judge of "the same rows".

Rows are compared as multisets unless an order is asked for; names and types exactly; floating-point numbers within a
relative tolerance, since a sum depends on the order of its terms.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tests.conftest import ALL_SIZES

import samovar as sv

__all__ = ["ALL_AT_ONCE", "ONE_FILE", "assert_same", "epoch_sizes", "rows_of", "run_flow", "write_files"]

ONE_FILE = 1
"""An epoch of one byte holds one file: an epoch takes at least one."""
ALL_AT_ONCE = 1 << 40

Build = Callable[..., Any]


def epoch_sizes(*sizes: int | None, case: object = "") -> tuple[int | None, ...]:
    """The epoch sizes that the present test runs at: one of `sizes`, or all of them with `--slow`.

    Which one it is follows from the test's name and from `case`, so the sizes alternate over the tests of a file and a
    failure can be repeated. Without `sizes`: an epoch for each file, or one epoch for everything.
    """
    sizes = sizes or (ONE_FILE, ALL_AT_ONCE)
    if os.environ.get(ALL_SIZES):
        return sizes
    test = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0]
    return (sizes[zlib.crc32(f"{test}{case}".encode()) % len(sizes)],)


def write_files(folder: Path, table: pa.Table, cuts: Sequence[int] | int = 3) -> str:
    """Write a table as Parquet files in row order; `cuts` are the numbers of rows of the files, or their number."""
    folder.mkdir(parents=True)
    if isinstance(cuts, int):
        step = max(1, math.ceil(table.num_rows / cuts))
        cuts = [step] * cuts
    start = 0
    for i, rows in enumerate(cuts):
        pq.write_table(table.slice(start, rows), folder / f"part-{i:03d}.parquet")
        start += rows
    return str(folder)


def run_flow(
    spark: SparkSession,
    flow: sv.Workflow,
    record: Path,
    *,
    epoch_bytes: int | None = ONE_FILE,
    **options: Any,
) -> Any:
    """A whole run with a recording."""
    return flow.run(spark=spark, record=record, epoch_bytes=epoch_bytes, progress=False, **options)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples, in order."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def assert_same(
    expected: DataFrame | pa.Table,
    got: pa.Table,
    *,
    ordered: bool = False,
    note: str = "",
    tolerance: float = 1e-9,
) -> None:
    """Fail, showing what differs, unless both hold the same rows under the same names and types."""
    table = expected if isinstance(expected, pa.Table) else expected.toArrow()
    where = f" ({note})" if note else ""
    assert got.column_names == table.column_names, (
        f"columns{where}: {table.column_names} / {got.column_names}"
    )
    for name, wanted, found in zip(table.column_names, table.schema.types, got.schema.types, strict=True):
        assert _type(found) == _type(wanted), f"type of {name}{where}: expected {wanted}, got {found}"
    left, right = rows_of(table), rows_of(got)
    assert len(right) == len(left), (
        f"rows{where}: expected {len(left)}, got {len(right)}\n{left[:20]}\n{right[:20]}"
    )
    if not ordered:
        left, right = sorted(left, key=_key), sorted(right, key=_key)
    for i, (one, two) in enumerate(zip(left, right, strict=True)):
        assert _alike(one, two, tolerance), f"row {i}{where}: expected {one}, got {two}"


def _type(kind: pa.DataType) -> str:
    """A type without the names of list items, which readers choose, and without the zone of an instant."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_type(kind.key_type)},{_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{_type(f.type)}' for f in kind)}>"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{'' if kind.tz is None else ', instant'}]"
    return str(kind)


def _key(value: Any) -> Any:
    """A total order over values of one column, nulls and NaN included; close floats stay close."""
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return (1, int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return (3,)
        return (2, float(f"{value:.6e}") + 0.0)
    if isinstance(value, int | decimal.Decimal):
        return (2, value)
    if isinstance(value, dt.datetime):
        return (4, value.timestamp())
    if isinstance(value, dict):
        return (5, tuple((k, _key(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return (6, tuple(_key(v) for v in value))
    return (7, str(value))


def _alike(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[k], b[k], tolerance) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_alike(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return bool(a == b)
