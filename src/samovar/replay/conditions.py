"""Which rows of an operator a condition in SQL is about: its input, or its output.

A condition is about the tuples an operator takes if they have all columns it names; a join takes the tuples of its
probe side. Otherwise it is about the rows the operator produces, which for a join have the columns of both sides; the
answer is then the tuple that a row came from. For an aggregate it is the other way round: first its groups after each
tuple, then its tuples. A column that is in neither raises an error that names the columns there are.

It has Spark analyse empty frames: no job is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.compile.analysis import empty_frame
from samovar.compile.columns import quiet_analysis
from samovar.compile.plan import Plan
from samovar.errors import TimeTravelError, nearest
from samovar.runtime.failures.spark_errors import SparkError

__all__ = ["ConditionRows", "condition_rows"]


@dataclass(frozen=True)
class ConditionRows:
    """The rows a condition is about: those taken at some ports, or those produced ("given")."""

    rows: Literal["taken", "given"]
    ports: tuple[int, ...] = ()


def condition_rows(spark: SparkSession, plan: Plan, operator: str, *texts: str) -> ConditionRows:
    """Which rows have all columns that some SQL texts name. Raises a TimeTravelError when none have."""
    op, shape = plan.graph.ops[operator], plan.shape(operator)
    if not op.inputs:
        after = [name for name, _ in plan.graph.consumers(operator)]
        raise TimeTravelError(
            f"'{operator}' is a source: it takes no tuples that could be asked about.",
            operator=operator,
            hint=f"Ask the operator behind it: {', '.join(after)}.",
        )
    probe = {"left": (1,), "right": (0,)}.get(plan.placement.build.get(operator, ""))
    ports = probe or tuple(range(len(op.inputs)))
    wrong = {port: _wrong(spark, op.inputs[port], plan.schemas[op.inputs[port]], texts) for port in ports}
    fit = tuple(port for port in ports if wrong[port] is None)
    gives = shape not in ("sink", "batches")  # a row from a function over batches comes from no single tuple
    wrong_given = _wrong(spark, operator, plan.schemas[operator], texts) if gives else wrong[ports[0]]
    given = gives and wrong_given is None
    if given and (shape == "accumulate" or len(fit) < len(ports)):
        return ConditionRows("given")
    if fit:
        return ConditionRows("taken", fit)
    taken = list(dict.fromkeys(n for port in ports for n in plan.schemas[op.inputs[port]].names))
    error = wrong_given or wrong[ports[0]]
    assert error is not None
    raise _refused(operator, texts[0], taken, plan.schemas[operator].names if gives else taken, error)


def _wrong(
    spark: SparkSession, name: str, schema: StructType, texts: Sequence[str]
) -> PySparkException | None:
    """Spark's error for some SQL texts over rows of a schema; None: they are valid."""
    df = empty_frame(spark, schema).alias(name)
    try:
        with quiet_analysis():
            df.select(*map(F.expr, texts))
    except PySparkException as error:
        return error
    return None


def _refused(
    operator: str, text: str, taken: list[str], given: list[str], error: PySparkException
) -> TimeTravelError:
    condition = str(error.getCondition() or "")
    if not isinstance(error, AnalysisException) or not condition.startswith("UNRESOLVED_COLUMN"):
        line = SparkError.of(error).line
        return TimeTravelError(f"The condition {text!r} cannot be evaluated: {line}", operator=operator)
    name = str((error.getMessageParameters() or {}).get("objectName", "")).replace("`", "")
    more = f" or gives ({', '.join(given)})" if set(given) != set(taken) else ""
    close = nearest(name, [*taken, *given])
    return TimeTravelError(
        f"Expected columns that '{operator}' takes ({', '.join(taken)}){more}, got '{name}'.",
        operator=operator,
        hint=f"Did you mean '{close}'?" if close else f'For example: "{given[0]} IS NOT NULL".',
    )
