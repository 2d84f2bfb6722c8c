"""From what Spark raises to what a person can act on: which operator, which row, what to do.

An expression that failed inside Spark is looked for by splitting: first the operator, then, by halves, the row. That
runs some twenty small jobs over the failed epoch's input, only after a failure.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from samovar.compile.native import visible
from samovar.errors import EnvironmentProblem, ExpressionFailed, RunError, SamovarError, StorageProblem
from samovar.ids import new_attempt
from samovar.runtime.epoch import Epoch, RunContext

__all__ = ["explain_failure"]

log = logging.getLogger("samovar.failures")

_FULL = ("No space left on device", "Disk quota exceeded", "ENOSPC")


def explain_failure(context: RunContext, error: BaseException) -> BaseException:
    """The error to show for what ended a run."""
    if isinstance(error, SamovarError) or not isinstance(error, Exception):
        return error
    text = str(error)
    if any(sign in text for sign in _FULL):
        return StorageProblem(
            "The disk is full: the epoch could not be written.",
            hint="Free some space and resume the run; every committed epoch is kept.",
        )
    if isinstance(error, OSError):
        return StorageProblem(f"The recording could not be written: {error}.")
    if not isinstance(error, PySparkException | Py4JError):
        return error
    if (
        "SparkContext was shut down" in text
        or "SparkContext has been shutdown" in text
        or "Answer from Java side is empty" in text
    ):
        return EnvironmentProblem(
            "The Spark session ended while the run was going on.", hint="Resume the run."
        )
    message = _first_line(text)
    found = _locate(context)
    if found is not None:
        operator, row, said = found
        return ExpressionFailed(
            operator,
            error=said or message,
            row=row,
            epoch=len(context.history.epochs),
            hint=_advice(said or message),
        )
    return RunError(
        f"Spark could not run epoch {len(context.history.epochs)}: {message}", hint=_advice(message)
    )


def _first_line(text: str) -> str:
    wanted = re.search(r"(\[[A-Z_0-9.]+\][^\n]*)", text)
    line = wanted.group(1) if wanted else next((ln for ln in text.splitlines() if ln.strip()), text)
    line = re.sub(r"\s*SQLSTATE: \w+", "", line)
    return line[:600]


def _advice(message: str) -> str | None:
    if "DIVIDE_BY_ZERO" in message:
        return "Filter such rows out first, or use try_divide(a, b), which gives null."
    if "CAST_INVALID_INPUT" in message or "CANNOT_PARSE" in message:
        return "Clean the value first, or use try_cast(... AS ...), which gives null."
    if "ARITHMETIC_OVERFLOW" in message:
        return "Cast to a wider type first, or use try_add / try_multiply / try_sum."
    return None


def _locate(context: RunContext) -> tuple[str, dict[str, Any] | None, str] | None:
    """The operator whose expression fails in the epoch after the last committed one, and a row it fails on."""
    plan = context.plan
    covers = context.range
    if covers is None:
        return None
    low, high = covers.low, covers.high
    epoch = Epoch(context, len(context.history.epochs), covers, attempt=f"probe-{new_attempt()}")
    epoch.folder.mkdir(parents=True, exist_ok=True)
    for level in range(low, high + 1):
        for name, op in plan.graph.ops.items():
            if not plan.placement.works(name, level) or name in plan.fused:
                continue
            try:
                if plan.placement.ends(name):
                    if plan.shape(name) == "accumulate":
                        _try(epoch.frames.partial(name))
                        if name not in epoch._stored:
                            _try(epoch.frames.stream(name, level + 1))
                    else:
                        for port in range(len(op.inputs)):
                            _try(epoch.frames.kept(name, port))
                else:
                    _try(epoch.frames.stream(name, level))
            except (PySparkException, Py4JError) as error:
                said = _first_line(str(error))
                ups = [up for up in op.inputs if plan.placement.works(up, level) or plan.placement.ends(up)]
                row = None
                if len(op.inputs) == 1 and ups:
                    row = _bisect(epoch, name, epoch.frames.stream(op.inputs[0], level))
                return name, row, said
    return None


def _try(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def _bisect(epoch: Epoch, name: str, source: DataFrame) -> dict[str, Any] | None:
    """A single row of an operator's input on which the operator fails."""
    from samovar.compile.native import apply_native
    from samovar.graph import operators as ops

    plan = epoch.plan
    op = plan.graph.ops[name]
    kept = source.select("*", F.monotonically_increasing_id().alias("__sv_n")).persist()
    try:

        def fails(df: DataFrame) -> bool:
            plain = df.drop("__sv_n")
            try:
                if isinstance(op, ops.Aggregate):
                    _try(apply_native(op, [plain], "keep"))
                else:
                    _try(apply_native(op, [plain], plan.shape(name)))
            except (PySparkException, Py4JError):
                return True
            return False

        ids = kept.select(F.min("__sv_n"), F.max("__sv_n")).first()
        if ids is None or ids[0] is None:
            return None
        low, high = int(ids[0]), int(ids[1])
        for _ in range(80):
            if low == high:
                break
            middle = (low + high) // 2
            part = kept.filter((F.col("__sv_n") >= low) & (F.col("__sv_n") <= middle))
            if fails(part):
                high = middle
            else:
                low = middle + 1
                # jump over the gaps that partition numbers leave
                after = (
                    kept.filter((F.col("__sv_n") >= low) & (F.col("__sv_n") <= high))
                    .agg(F.min("__sv_n"))
                    .first()
                )
                if after is None or after[0] is None:
                    return None
                low = int(after[0])
        row = kept.filter(F.col("__sv_n") == low)
        if not fails(row):
            return None
        found = row.select(*(f"`{c}`" for c in visible(row))).first()
        return None if found is None else found.asDict(recursive=True)
    finally:
        kept.unpersist()
