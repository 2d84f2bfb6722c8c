"""Errors of the library as answers of the server: a status, and the same fields the library's errors carry."""

from __future__ import annotations

from typing import Any

from samovar import errors

__all__ = ["problem_data", "problem_fields", "status_of"]

_STATUS: tuple[tuple[type[errors.SamovarError], int], ...] = (
    (errors.NotInWorkspace, 404),
    (errors.OutsideWorkspace, 403),
    (errors.RecordingNotFound, 404),
    (errors.RecordingInUse, 409),
    (errors.CommandRefused, 409),
    (errors.EnvironmentProblem, 503),
    (errors.SourceError, 422),
    (errors.WorkflowError, 422),
    (errors.TimeTravelError, 422),
    (errors.SamovarError, 400),
)


def status_of(error: errors.SamovarError) -> int:
    """The HTTP status that fits an error."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def problem_data(error: errors.SamovarError) -> dict[str, Any]:
    """An error of the library as plain data."""
    return problem_fields(type(error).__name__, error.text, error.hint, error.operator)


def problem_fields(
    kind: str, message: str, hint: str | None = None, operator: str | None = None
) -> dict[str, Any]:
    """The form in which every problem is sent."""
    return {"kind": kind, "message": message, "hint": hint, "operator": operator}
