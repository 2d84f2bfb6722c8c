"""Routes of charts: the pictures of a run, from what is committed so far."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

import samovar as sv
from samovar.errors import SamovarError
from samovar.graph import operators as ops
from samovar.server.error_answers import problem_data
from samovar.server.services import The

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["charts"])


@router.get("/recordings/{run}/charts")
def charts(the: The, run: str) -> list[dict[str, Any]]:
    """The pictures of a run's `chart` operators; one that cannot be drawn has an `error` instead of series."""
    past = sv.open(the.workspace.recording(run))
    names = [op.name for op in past.workflow.graph().sinks if isinstance(op, ops.Chart)]
    return [_chart(past, name) for name in names]


def _chart(past: sv.Past, name: str) -> dict[str, Any]:
    try:
        return past.chart(name)
    except SamovarError as error:
        return {"name": name, "error": problem_data(error)}
