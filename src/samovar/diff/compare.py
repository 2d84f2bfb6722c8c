"""`compare`: are two tables the same, up to the order that matters? Computed by Spark, where the rows are.

Guarantee: no table is collected; to the driver come sums of hashes, and the first rows that differ. The verdict is that
of a `Matcher` fed with both tables, up to a chance of about 2^-80 that different rows have the same hashes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samovar.diff.comparison_errors import DiffError
from samovar.diff.dependence import as_dependence, independent
from samovar.diff.equality import as_equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher.axioms import check_columns
from samovar.diff.tables.table_verdict import TableVerdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from samovar.diff.tables.schemas import Strictness

__all__ = ["compare"]


def compare(
    left: Any,
    right: Any,
    *,
    depends: Any = independent,
    equal: Any = None,
    schema: Strictness = "types",
    sink: str | None = None,
    rows: int = 200,
    cache: bool = False,
    spark: SparkSession | None = None,
) -> TableVerdict:
    """Compare two tables: DataFrames, pyarrow tables, paths of files or recordings, catalog tables, runs.

    `depends` and `equal` are those of `Matcher`. The order of a table is that of its partitions and of the rows within
    each. `schema` states what has to agree beforehand: `types` (names and types), `kinds` (integers of any width are
    one), or `exact` (order and nullability, too). `sink` chooses the result of a run that has several. At most `rows`
    rows a side are brought here to be shown. `cache` keeps both tables while they are compared: for tables that are not
    deterministic, or expensive to compute.
    """
    from samovar.diff.tables.schemas import agreed_columns
    from samovar.diff.tables.table_comparison import TableComparison
    from samovar.diff.tables.table_inputs import as_side, session_of

    if rows < 1:
        raise DiffError(f"Expected at least one row to show, got rows={rows}.")
    depending, equality = as_dependence(depends), as_equality(equal)
    check_columns(depending, equality)
    equality = equality.exact_in(depending.columns)
    session = session_of(left, right, spark=spark)
    origins = {s: as_side(v, s, session, sink=sink) for s, v in zip(SIDES, (left, right), strict=True)}
    frames: dict[Side, DataFrame] = {s: origins[s].df for s in SIDES}
    agreed = agreed_columns(
        frames["left"].schema, frames["right"].schema, equality, depending, strictness=schema
    )
    if cache:
        frames = {s: df.persist() for s, df in frames.items()}
    try:
        return TableComparison(frames, agreed, depending, equality, origins, rows).verdict()
    finally:
        if cache:
            for df in frames.values():
                df.unpersist()
