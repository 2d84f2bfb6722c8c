"""`assert_equivalent`: a comparison, or a program against its reference, as one line of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samovar.diff.check import check
from samovar.diff.compare import compare
from samovar.diff.dependence import independent
from samovar.diff.programs.program import OnFrames, Plain
from samovar.graph.workflow import Workflow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["assert_equivalent"]


def assert_equivalent(
    left: Any,
    right: Any,
    inputs: Any = None,
    *,
    depends: Any = independent,
    equal: Any = None,
    sink: str | None = None,
    spark: SparkSession | None = None,
    **options: Any,
) -> None:
    """Raise an AssertionError that shows what differs, unless two tables, or two programs on `inputs`, are equivalent.

    Tables go through `compare`, programs through `check`; further options are theirs.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    programs = inputs is not None or _is_program(left) or _is_program(right)
    if programs:
        result: Any = check(
            left, right, inputs, depends=depends, equal=equal, sink=sink, spark=spark, **options
        )
    else:
        result = compare(left, right, depends=depends, equal=equal, sink=sink, spark=spark, **options)
    if not result:
        raise AssertionError(result.explain())


def _is_program(value: Any) -> bool:
    table = hasattr(value, "schema") or hasattr(value, "result")
    return isinstance(value, (Plain, OnFrames, Workflow)) or (callable(value) and not table)
