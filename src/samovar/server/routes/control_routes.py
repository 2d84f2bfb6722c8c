"""Routes that steer an execution: pause, look inside, help over a tuple that raised, other logic, watches."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

import samovar as sv
from samovar.errors import WorkflowError
from samovar.graph import operators as ops
from samovar.graph.code import operator_from_code
from samovar.server import answers
from samovar.server.documents.sql_reach import check_sql, check_texts
from samovar.server.json_values import inspection_data, row_data
from samovar.server.runs.executions import Execution
from samovar.server.services import The

__all__ = ["Asked", "other_logic", "router"]

router = APIRouter(prefix="/api/executions/{id}", tags=["steering"])


def _execution(the: The, id: str) -> Execution:
    return the.executions.get(id)


Target = Annotated[Execution, Depends(_execution)]
"""The type of a route's argument for the execution that its path names."""


class Asked(BaseModel):
    """Who asks."""

    by: str = Field("", max_length=200)


class Pause(Asked):
    """A pause: at once with tuples in flight, or when the epoch is over."""

    mode: Literal["direct", "aligned"] = "direct"


class Look(Asked):
    """An operator to look into."""

    operator: str = Field(max_length=200)


class Retry(Asked):
    """Process a held tuple again; `row`: columns to change in it first."""

    operator: str | None = None
    row: dict[str, Any] | None = None


class Skip(Asked):
    """Leave a held tuple out; `all_like_it`: and all others that raise the same way."""

    operator: str | None = None
    all_like_it: bool = False


class Modify(Asked):
    """Other logic for operators: code for Python operators, SQL or a mapping of fields for others."""

    changes: dict[str, str | list[str] | dict[str, Any]]
    consistency: Literal["strict", "backward", "none"] = "strict"


class NewWatch(Look):
    """Mark each tuple an operator takes that meets a condition: SQL over the operator's input columns."""

    condition: str = Field(max_length=10_000)


class NewBreakpoint(Look):
    """Pause at a tuple that meets a condition (Python for a Python operator, else SQL), or after so many tuples."""

    condition: str | None = Field(None, max_length=10_000)
    tuples: int | None = Field(None, ge=1)
    outputs: int | None = Field(None, ge=1)


class Mark(Look):
    """Mark this moment of the run."""

    note: str = Field("", max_length=2000)


@router.post("/pause", response_model=answers.ExecutionData)
def pause(the: The, execution: Target, given: Pause) -> dict[str, Any]:
    """Stop the run in place; everybody sees who did, and whether it stands."""
    run = execution.going()
    before, execution.paused_by = execution.paused_by, given.by
    try:
        run.pause(mode=given.mode)
    except BaseException:
        execution.paused_by = before
        raise
    stands = run.status != "pausing"
    did = "paused it" if stands else "asked for a pause, which comes when the epoch is over"
    return the.executions.announce(execution, given.by, did)


@router.post("/resume", response_model=answers.ExecutionData)
def resume(the: The, execution: Target, given: Asked) -> dict[str, Any]:
    """Go on after a pause."""
    execution.going().resume()
    execution.paused_by = None
    return the.executions.announce(execution, given.by, "let it go on")


@router.post("/inspect", response_model=answers.InspectionData)
def inspect(the: The, execution: Target, given: Look) -> dict[str, Any]:
    """The state of a Python operator now, and the tuples it has not finished."""
    run = execution.going()
    seen = run.inspect(given.operator)
    flying = run.in_flight(given.operator, limit=20) if run.status in ("paused", "holding") else None
    the.executions.announce(execution, given.by, f"looked into {given.operator}", operator=given.operator)
    return inspection_data(seen, flying)


@router.get("/held", response_model=list[answers.HeldTupleData])
def held(execution: Target) -> list[dict[str, Any]]:
    """The tuples that wait for a decision: the tuple, the error, its traceback, locals and the operator's state."""
    if execution.run is None:
        return []
    return [
        {
            "hold": h.hold,
            "operator": h.operator,
            "epoch": h.epoch,
            "row": row_data(h.row),
            "error": h.error,
            "traceback": h.traceback,
            "locals": dict(h.locals),
            "state": h.state,
        }
        for h in execution.run.holds
    ]


@router.get("/console", response_model=list[answers.ConsoleLineData])
def console(execution: Target) -> list[dict[str, Any]]:
    """What Python operators have printed: the last lines."""
    lines = () if execution.run is None else execution.run.console
    return [{"at": one.at, "operator": one.operator, "epoch": one.epoch, "text": one.text} for one in lines]


@router.post("/retry", response_model=answers.ExecutionData)
def retry(the: The, execution: Target, given: Retry) -> dict[str, Any]:
    """Process a held tuple again, as it is or with other values."""
    execution.going().retry(given.row, operator=given.operator)
    changed = f" with {', '.join(given.row)} changed" if given.row is not None else ""
    did = f"had a held tuple processed again{changed}"
    return the.executions.announce(execution, given.by, did, operator=given.operator)


@router.post("/skip", response_model=answers.ExecutionData)
def skip(the: The, execution: Target, given: Skip) -> dict[str, Any]:
    """Leave a held tuple out."""
    execution.going().skip(all_like_it=given.all_like_it, operator=given.operator)
    did = "left a held tuple out" + (" and all like it" if given.all_like_it else "")
    return the.executions.announce(execution, given.by, did, operator=given.operator)


@router.post("/modify", response_model=answers.ExecutionData)
def modify(the: The, execution: Target, given: Modify) -> dict[str, Any]:
    """Give operators other logic while they run. The deed says since when it is in force, or that it came too late."""
    run = execution.going()
    if run.recording is None:  # runs of the workbench are recorded
        raise WorkflowError("Expected a recorded run: its recording holds its operators.")
    workflow = sv.open(run.recording).workflow
    changes = {name: other_logic(workflow, name, text) for name, text in given.changes.items()}
    modified = run.modify(changes, consistency=given.consistency)
    verb = "tried to change" if modified.late else "changed"
    did = f"{verb} {', '.join(changes)} ({given.consistency}): {modified}"
    return the.executions.announce(execution, given.by, did, operator=next(iter(changes), None))


@router.post("/watch", response_model=answers.ExecutionData)
def watch(the: The, execution: Target, given: NewWatch) -> dict[str, Any]:
    """Mark every tuple of an operator that meets a condition."""
    check_sql(given.condition, given.operator)
    name = execution.going().watch(given.operator, given.condition)
    execution.watches.append(
        {**given.model_dump(), "tuples": None, "outputs": None, "pause": False, "name": name}
    )
    did = f"watches {given.operator} for {given.condition}"
    return the.executions.announce(execution, given.by, did, operator=given.operator)


@router.post("/break", response_model=answers.ExecutionData)
def break_at(the: The, execution: Target, given: NewBreakpoint) -> dict[str, Any]:
    """Pause at a tuple that meets a condition, or after so many tuples: a breakpoint."""
    check_sql(given.condition, given.operator)
    name = execution.going().break_at(
        given.operator, given.condition, tuples=given.tuples, outputs=given.outputs
    )
    execution.watches.append({**given.model_dump(), "pause": True, "name": name})
    counted = f"{given.tuples} tuples" if given.tuples is not None else f"{given.outputs} outputs"
    did = f"watches {given.operator} for {given.condition or counted}, to pause there"
    return the.executions.announce(execution, given.by, did, operator=given.operator)


@router.delete("/watches/{name}", response_model=answers.ExecutionData)
def unwatch(the: The, id: str, name: str, by: str = "") -> dict[str, Any]:
    """Remove a watch or a breakpoint."""
    execution = the.executions.get(id)
    execution.going().unwatch(name)
    execution.watches = [w for w in execution.watches if w["name"] != name]
    return the.executions.announce(execution, by, f"took the watch {name} back")


@router.post("/interact", response_model=answers.MarkedData)
def interact(the: The, execution: Target, given: Mark) -> dict[str, Any]:
    """Mark this moment, without pausing; the recording has it when its epoch is over."""
    name = execution.going().interact(given.operator, given.note)
    the.executions.announce(
        execution, given.by, f"marked this moment of {given.operator}", operator=given.operator
    )
    return {"interaction": name}


def other_logic(workflow: sv.Workflow, name: str, given: Any) -> Any:
    """What the library takes for an operator: an instance made from code, or SQL and fields as they are."""
    op = workflow.graph().ops.get(name)
    if op is None:
        raise WorkflowError(f"No operator '{name}' in the run.", operator=name)
    if isinstance(op, ops.Python):
        if not isinstance(given, str):
            raise WorkflowError(f"Expected the code of '{name}' as text.", operator=name)
        return operator_from_code(msgspec.structs.replace(op, code=given))
    check_texts([given], name)
    return given
