"""Whether two result tables hold the same rows, in any order.

Column names and types must agree exactly; floating-point values within a relative tolerance, since a sum
depends on the order of its terms. Rows are matched after sorting, so one missing row is reported as one
missing row only when counts differ; otherwise the first pair that differs is shown. Meant for results that
fit in memory.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

__all__ = ["difference"]


def difference(expected: pa.Table, got: pa.Table, *, tolerance: float = 1e-9) -> str | None:
    """What sets ``got`` apart from ``expected``, in a sentence; None when they are equal."""
    if expected.column_names != got.column_names:
        return f"Expected columns {expected.column_names}, got {got.column_names}."
    for name, ours, theirs in zip(
        expected.column_names, expected.schema.types, got.schema.types, strict=True
    ):
        if ours != theirs:
            return f"Expected column {name} of type {ours}, got {theirs}."
    if expected.num_rows != got.num_rows:
        return f"Expected {expected.num_rows} rows, got {got.num_rows}."
    exact = [not pa.types.is_floating(kind) for kind in expected.schema.types]
    for left, right in zip(_sorted(expected, exact), _sorted(got, exact), strict=True):
        if not all(_same(a, b, tolerance) for a, b in zip(left, right, strict=True)):
            return f"Expected the row {left}, got {right}."
    return None


def _sorted(table: pa.Table, exact: list[bool]) -> list[tuple[Any, ...]]:
    """Rows by their exact columns first, so that a last digit of a float does not change who meets whom."""

    def key(row: tuple[Any, ...]) -> tuple[list[str], list[tuple[bool, float]]]:
        firm = [repr(value) for value, is_exact in zip(row, exact, strict=True) if is_exact]
        loose = [
            (value is None, 0.0 if value is None or math.isnan(value) else value)
            for value, is_exact in zip(row, exact, strict=True)
            if not is_exact
        ]
        return firm, loose

    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=key)


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return bool(a == b)
