"""Routes of differences: two recordings compared, and the way to the cause; and statistics of a result's columns."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

import samovar as sv
from samovar.server import answers
from samovar.server.runs.column_statistics import column_values, statistics_of
from samovar.server.runs.comparisons import Order, depends_of
from samovar.server.services import The

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["differences"])


class Compare(BaseModel):
    """Two recordings, and what counts as equal: the order that matters, columns, a tolerance of floats."""

    left: str
    right: str
    sink: str | None = None
    order: Order = "any"
    keys: list[str] = Field(default_factory=list, max_length=50)
    columns: list[str] | None = Field(None, max_length=1000)
    tolerance: float | None = Field(None, ge=0, allow_inf_nan=False)


class Cause(BaseModel):
    """The side whose past is gone to."""

    side: Literal["left", "right"] = "left"


@router.post("/compare", response_model=answers.ComparisonData)
def compare(the: The, given: Compare) -> dict[str, Any]:
    """Compare the results of two recordings: `equivalent`, and if not, `pairs` of rows that differ."""
    left, right = (the.journeys.enter(the.workspace.recording(run)) for run in (given.left, given.right))
    return the.comparisons.make(
        left,
        right,
        sink=given.sink,
        depends=depends_of(given.order, given.keys),
        columns=given.columns,
        tolerance=given.tolerance,
        spark=the.engine.session(),
    )


@router.post("/comparisons/{comparison}/cause", response_model=answers.CauseData)
def cause(the: The, comparison: str, given: Cause) -> dict[str, Any]:
    """The moment just before the first row that differs was made: `run`, `operator`, `moment`."""
    return the.comparisons.cause(comparison, given.side)


@router.get("/recordings/{run}/results/{sink}/statistics", response_model=list[answers.ColumnFiguresData])
def statistics(the: The, run: str, sink: str, where: str | None = None) -> list[dict[str, Any]]:
    """Each column of a result in figures: nulls, different values, least, greatest, mean. Computed by Spark."""
    past = sv.open(the.workspace.recording(run))
    return statistics_of(past, sink, where=where, session=the.engine.session)


@router.get(
    "/recordings/{run}/results/{sink}/statistics/{column}",
    response_model=list[answers.ValueCountData | answers.RangeData],
)
def values(the: The, run: str, sink: str, column: str, where: str | None = None) -> list[dict[str, Any]]:
    """The values of a column: the most frequent ones, or of numbers how many lie in each of ten ranges."""
    past = sv.open(the.workspace.recording(run))
    return column_values(past, sink, column, where=where, session=the.engine.session)
