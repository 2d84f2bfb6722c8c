"""Routes of executions and of recordings: starting, stopping, results by page, and travelling in time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

import samovar as sv
from samovar.errors import SamovarError
from samovar.graph import operators as ops
from samovar.graph.document import load
from samovar.server import answers
from samovar.server.documents.confinement import confine
from samovar.server.documents.versions import read_version
from samovar.server.error_answers import problem_data
from samovar.server.json_values import row_data
from samovar.server.routes.control_routes import Asked, other_logic
from samovar.server.runs.journeys import Address, Journey, StepKind
from samovar.server.runs.results import MOST, page_of
from samovar.server.services import Parts, The

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["runs"])


class RunAsked(Asked):
    """A run: of the workflow as it is or of a version, all of it or up to an operator; what is done with errors."""

    to: str | None = Field(None, max_length=200)
    on_error: Literal["fail", "hold"] = "fail"
    version: int | None = None


class Jump(BaseModel):
    """Where to go: an interaction, an operator and tuples, an epoch; nothing: the end."""

    interaction: str | None = None
    operator: str | None = None
    tuples: int | None = None
    epoch: int | None = None


class When(BaseModel):
    """A question: the first moment where something holds of an operator."""

    operator: str
    predicate: str = Field(max_length=10_000)


class ToFailure(BaseModel):
    """The moment just before the tuple that a run failed at."""

    failure: Literal[True]


class MomentAddress(BaseModel):
    """The address of a moment: where was jumped to, and the steps from there."""

    to: Jump | When | ToFailure
    steps: list[tuple[StepKind, str | None]] = Field(default_factory=list, max_length=5000)


class Change(BaseModel):
    """A value of an operator's state, or an entry of one (`keyed`)."""

    operator: str
    name: str
    key: Any = None
    keyed: bool = False


class Scope(BaseModel):
    """A tuple of a moment: one that waits at an operator, the one taken last, or one that was given for it."""

    of: Literal["pending", "taken", "given"]
    operator: str = ""
    number: int = Field(0, ge=0, le=1000)


class Note(Asked):
    """A note for a moment."""

    moment: str
    text: str = Field(max_length=2000)


class StepRequest(BaseModel):
    """A step from a moment."""

    moment: str
    how: StepKind
    operator: str | None = None


class Fork(Asked):
    """A fork: for each changed operator its code (Python operators) or its expression."""

    changes: dict[str, str] = Field(default_factory=dict)
    row: dict[str, Any] | None = None
    workflow: str | None = None


# --- executions -----------------------------------------------------------------------------------------------------


@router.get("/executions", response_model=list[answers.ExecutionData])
def executions(the: The) -> list[dict[str, Any]]:
    """What was asked for since the server started, the newest last."""
    return [e.data() for e in the.executions.list()]


@router.post("/workflows/{id}/run", status_code=202, response_model=answers.ExecutionData)
async def run_workflow(the: The, id: str, given: RunAsked) -> dict[str, Any]:
    """Queue a run of a workflow as it is now, or of a version; `to`: only what leads to that operator."""
    if given.version is not None:
        document = read_version(the.workspace.workflow(id), given.version)["document"]
    else:
        with the.rooms.use(id) as room:
            document = room.read().document
    flow = await run_in_threadpool(_flow_of, the, document, given.to)

    def make() -> Any:
        return flow.start(
            spark=the.engine.session(), record=the.workspace.runs, interactive=True, on_error=given.on_error
        )

    return the.executions.submit(id, flow.name, given.by, make).data()


def _flow_of(the: Parts, document: dict[str, Any], to: str | None) -> sv.Workflow:
    confine(document, the.workspace.files)
    flow = load(document, folder=the.workspace.files)
    if to is not None:
        flow = flow.up_to(to)
    flow.graph()  # raises for wrong edges before anything is queued
    return flow


@router.get("/executions/{id}", response_model=answers.ExecutionData)
def execution(the: The, id: str) -> dict[str, Any]:
    """An execution: its status, and its run's counters."""
    return the.executions.get(id).data()


@router.post("/executions/{id}/stop", response_model=answers.ExecutionData)
def stop(the: The, id: str, given: Asked) -> dict[str, Any]:
    """Stop an execution and wait until it has stopped; what was committed is kept."""
    return the.executions.stop(id, given.by).data()


# --- recordings -----------------------------------------------------------------------------------------------------


@router.get("/recordings", response_model=list[answers.RecordingSummaryData])
def recordings(the: The) -> list[dict[str, Any]]:
    """The recordings of the workspace, the newest last."""
    return [_summary(the, run) for run in the.workspace.list_recordings()]


def _summary(the: Parts, run: str) -> dict[str, Any]:
    try:
        past = sv.open(the.workspace.recording(run))
        history = past.history
        started = history.started
        return {
            "run": run,
            "workflow": started.workflow if started else None,
            "parent": started.parent if started else None,
            "started": started.at if started else None,
            "status": past.status,
            "epochs": len(history.epochs),
            "error": None,
        }
    except SamovarError as error:
        unknown = {"workflow": None, "parent": None, "started": None, "epochs": 0}
        return {"run": run, **unknown, "status": "damaged", "error": problem_data(error)}


@router.get("/recordings/{run}", response_model=answers.RecordingData)
def recording(the: The, run: str) -> dict[str, Any]:
    """A recording: its counters, epochs, interactions, operators, sinks, and the code that ran."""
    past = sv.open(the.workspace.recording(run))
    history = past.history
    flow = past.workflow
    graph = flow.graph()
    failed = history.failed
    return {
        **_summary(the, run),
        "progress": past.progress.as_dict(),
        "epoch_list": [
            {
                "epoch": e.epoch,
                "level": e.level,
                "seconds": e.seconds,
                "at": e.at,
                "taken": {name: sum(c.taken) for name, c in e.counters.items() if c.taken},
            }
            for e in history.epochs
        ],
        "failed_epoch": failed.epoch if failed is not None else None,
        "message": history.ended.error if history.ended is not None else None,
        "interactions": [msgspec.to_builtins(i) for i in past.interactions],
        "operators": [
            {"name": op.name, "op": op.kind, "inputs": list(op.inputs)} for op in graph.ops.values()
        ],
        "code": {op.name: op.code for op in graph.ops.values() if isinstance(op, ops.Python)},
        "sinks": [op.name for op in graph.sinks if not isinstance(op, ops.Write)],
    }


@router.get("/recordings/{run}/results/{sink}", response_model=answers.PageData)
def results(
    the: The,
    run: str,
    sink: str,
    start: int = 0,
    count: int = 100,
    where: str | None = None,
    sort: str | None = None,
    descending: bool = False,
) -> dict[str, Any]:
    """Rows of a sink by page. `where` is SQL, `sort` a column; both are done by Spark."""
    past = sv.open(the.workspace.recording(run))
    page = page_of(
        past,
        sink,
        start=start,
        count=min(count, MOST),
        where=where,
        sort=sort,
        descending=descending,
        session=the.engine.session,
    )
    return asdict(page)


@router.get("/recordings/{run}/rejected/{operator}", response_model=answers.RejectedData)
def rejected(the: The, run: str, operator: str, count: int = 100) -> dict[str, Any]:
    """Rows that did not parse: file, line, text; of a Python operator skipped tuples: epoch, error, row."""
    table = sv.open(the.workspace.recording(run)).rejected(operator)
    rows = table.slice(0, max(0, min(count, MOST))).to_pylist()
    files = f"{the.workspace.files}/"
    for row in rows:
        if "file" in row:
            row["file"] = row["file"].removeprefix(files)
    return {"operator": operator, "total": table.num_rows, "rows": [row_data(row) for row in rows]}


# --- travelling -----------------------------------------------------------------------------------------------------


def _journey(the: Parts, run: str) -> Journey:
    return the.journeys.enter(the.workspace.recording(run))


@router.post("/recordings/{run}/jump", response_model=answers.MomentData)
def jump(the: The, run: str, to: Jump) -> dict[str, Any]:
    """Go to a moment."""
    return _journey(the, run).visit(Address(to.model_dump(exclude_none=True)))


@router.post("/recordings/{run}/step", response_model=answers.MomentData)
def step(the: The, run: str, given: StepRequest) -> dict[str, Any]:
    """Step over, into, out or back; the answer is the moment it leads to."""
    return _journey(the, run).step(given.moment, given.how, given.operator)


@router.post("/recordings/{run}/visit", response_model=answers.MomentData)
def visit(the: The, run: str, given: MomentAddress) -> dict[str, Any]:
    """Go to the moment at an address, as moments carry it."""
    to = given.to.model_dump(exclude_none=True)
    return _journey(the, run).visit(Address(to, tuple(given.steps)))


@router.post("/recordings/{run}/first", response_model=answers.FoundMomentData)
def first(the: The, run: str, question: When) -> dict[str, Any]:
    """The first moment where something holds, under `found`; null when it never did."""
    return {"found": _journey(the, run).first(question.operator, question.predicate)}


@router.post("/recordings/{run}/failure", response_model=answers.FoundMomentData)
def failure(the: The, run: str) -> dict[str, Any]:
    """For a failed run the moment just before the tuple that failed, under `found`."""
    return {"found": _journey(the, run).failure()}


@router.get("/recordings/{run}/moments/{moment}", response_model=answers.MomentData)
def moment(the: The, run: str, moment: str) -> dict[str, Any]:
    """A moment that was gone to: counters, the last step, changes."""
    return _journey(the, run).moment(moment)


@router.get("/recordings/{run}/moments/{moment}/state/{operator}", response_model=answers.OperatorStateData)
def state(
    the: The,
    run: str,
    moment: str,
    operator: str,
    name: str | None = None,
    start: int = 0,
    where: str | None = None,
) -> dict[str, Any]:
    """An operator's state at a moment; maps by page (`name` and `start` say which)."""
    return _journey(the, run).state(moment, operator, name, start, where)


@router.get(
    "/recordings/{run}/moments/{moment}/pending/{operator}", response_model=list[answers.PendingTupleData]
)
def pending(the: The, run: str, moment: str, operator: str, limit: int = 20) -> list[dict[str, Any]]:
    """Tuples that wait at an operator."""
    return _journey(the, run).pending(moment, operator, max(1, min(limit, 200)))


@router.get("/recordings/{run}/moments/{moment}/steps/{operator}", response_model=answers.CanStepData)
def can_step(the: The, run: str, moment: str, operator: str) -> dict[str, Any]:
    """Whether the operator's next tuple can be stepped over, and if not, why."""
    return _journey(the, run).can_step(moment, operator)


@router.get("/recordings/{run}/moments/{moment}/lines/{operator}", response_model=list[answers.LineData])
def lines(the: The, run: str, moment: str, operator: str) -> list[dict[str, Any]]:
    """The lines that a Python operator's last step ran, with the locals at each."""
    return _journey(the, run).lines(moment, operator)


@router.post("/recordings/{run}/moments/{moment}/last_change", response_model=answers.FoundMomentData)
def last_change(the: The, run: str, moment: str, given: Change) -> dict[str, Any]:
    """The moment after the step that changed a value last, under `found`; null when none did."""
    journey = _journey(the, run)
    return {"found": journey.last_change(moment, given.operator, given.name, given.key, given.keyed)}


@router.post("/recordings/{run}/moments/{moment}/scope", response_model=answers.ScopeData)
def scope(the: The, run: str, moment: str, given: Scope) -> dict[str, Any]:
    """A tuple and all that was made from it: `operators` that it went through, `tuples`."""
    return _journey(the, run).scope(moment, given.of, given.operator, given.number)


@router.post("/recordings/{run}/moments/{moment}/fork", status_code=202, response_model=answers.ExecutionData)
def fork(the: The, run: str, moment: str, given: Fork) -> dict[str, Any]:
    """Queue a new run that starts from a moment, with other logic or a corrected tuple."""
    journey = _journey(the, run)
    at = journey.at(moment)
    workflow = journey.past.workflow
    changes = {name: other_logic(workflow, name, text) for name, text in given.changes.items()}

    def make() -> Any:
        with journey.lock:
            return at.fork(changes, row=given.row, record=the.workspace.runs, interactive=True)

    belongs = the.executions.workflow_of(run)
    if belongs is None and given.workflow is not None:
        the.workspace.workflow(given.workflow)
        belongs = given.workflow
    return the.executions.submit(belongs, f"{workflow.name} (fork)", given.by, make, parent=run).data()


# --- the notebook ---------------------------------------------------------------------------------------------------


@router.get("/recordings/{run}/notebook", response_model=list[answers.NotebookEntryData])
def notebook(the: The, run: str) -> list[dict[str, Any]]:
    """Who did what to a run, and the notes pinned to its moments."""
    the.workspace.recording(run)
    return the.notebooks.read(run)


@router.post("/recordings/{run}/notes", status_code=201, response_model=answers.NoteEntryData)
def pin(the: The, run: str, given: Note) -> dict[str, Any]:
    """Pin a note to a moment."""
    journey = _journey(the, run)
    at = journey.at(given.moment)
    return the.notebooks.note(run, given.by, given.text, journey.address(given.moment).data(), at.epoch)


@router.delete("/recordings/{run}/notes/{note}", status_code=204)
def unpin(the: The, run: str, note: str) -> None:
    """Take a note back."""
    the.workspace.recording(run)
    the.notebooks.remove(run, note)
