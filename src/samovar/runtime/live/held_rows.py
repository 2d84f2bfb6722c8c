"""Holding a row on which an expression failed inside Spark, until a person decides about it.

The row is found by splitting its epoch (`row_search.py`). The decisions of the present epoch are in its `PresentEpoch`;
`row_repair.py` carries them out.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from samovar.control import events as e
from samovar.control import messages as m
from samovar.errors import ExpressionFailed
from samovar.record.state_files import dumps
from samovar.runtime.epochs.run_context import PresentEpoch, RunContext
from samovar.runtime.exchange.decisions import RecordedDecision
from samovar.runtime.failures.explanation import explain_failure
from samovar.runtime.failures.spark_errors import SparkError
from samovar.runtime.live.row_repair import mark_of
from samovar.runtime.live.run_control import Steering
from samovar.text import shown

__all__ = ["hold_row"]


def hold_row(context: RunContext, present: PresentEpoch, steering: Steering, error: Exception) -> None:
    """Find the row an epoch failed on and wait for a decision about it. Raises when there is none to decide about."""
    failure = explain_failure(context, error)
    if not isinstance(failure, ExpressionFailed) or not _can_be_held(context, failure):
        raise failure
    operator, row = str(failure.operator), dict(failure.row or {})
    number = _number(context, operator, row)
    if any(d.operator == operator and d.number == number for d in present.mended):
        raise failure  # the row was skipped or replaced, and yet it failed again
    epoch = len(context.history.epochs)
    condition = SparkError.of(error).condition
    held = m.Held(
        hold=f"row/{epoch}/{number:x}/{len(present.mended)}",
        place=m.TuplePlace(operator, epoch, 0, 0, number),
        error=failure.error,
        like=condition or failure.error[:80],
        row=dumps(row),
        shown=shown(row, 600),
    )
    decision = steering.hold(e.RowHeld(held=held))
    if decision is None or decision.kind == "retry":
        return
    edited = pickle.loads(decision.row) if decision.kind == "edit" else None
    present.mended.append(
        RecordedDecision(
            operator, 0, 0, number, "skip" if edited is None else "edit", row, failure.error, edited
        )
    )


def _can_be_held(context: RunContext, failure: ExpressionFailed) -> bool:
    """Whether one row of one input failed, and the names of its columns differ."""
    plan, name = context.plan, str(failure.operator)
    if failure.row is None or len(plan.graph.ops[name].inputs) != 1:
        return False
    if plan.shape(name) not in ("one", "some", "many", "accumulate", "keep"):
        return False
    names = plan.schemas[plan.graph.ops[name].inputs[0]].names
    return len({n.lower() for n in names}) == len(names) and set(failure.row) == set(names)


def _number(context: RunContext, operator: str, row: Mapping[str, Any]) -> int:
    schema = context.plan.schemas[context.plan.graph.ops[operator].inputs[0]]
    df = context.spark.createDataFrame([tuple(row[n] for n in schema.names)], schema)
    return int(df.select(mark_of(df)).collect()[0][0])
