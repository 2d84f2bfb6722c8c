"""Routes of workflows: the list, documents, checking, versions. Rooms are touched on the event loop alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from itertools import chain, count
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from samovar.errors import DocumentError, WorkspaceError
from samovar.graph.document import dump, load, to_document
from samovar.graph.python_form import as_python
from samovar.ids import slug
from samovar.server import answers
from samovar.server.documents.catalogue import catalogue
from samovar.server.documents.confinement import confine
from samovar.server.documents.document_form import (
    Reading,
    read_comments,
    write_comment,
    write_comments,
)
from samovar.server.documents.gallery import EXAMPLES, STORIES, write_example
from samovar.server.documents.rooms import JOURNAL
from samovar.server.documents.versions import list_versions, read_version, save_version
from samovar.server.routes.run_routes import RunAsked, run_workflow
from samovar.server.services import Parts, The

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["workflows"])
Document = dict[str, Any]


class NewWorkflow(BaseModel):
    """A workflow to make: empty, from a document (as data or text), or the example."""

    name: str = Field(max_length=120)
    document: Document | str | None = None
    layout: dict[str, tuple[float, float]] | None = None


class NewVersion(BaseModel):
    """A name for the workflow as it is now."""

    name: str = Field(max_length=200)
    by: str = Field("", max_length=200)


@router.get("/operators", response_model=list[answers.OperatorKindData])
def operators() -> list[dict[str, Any]]:
    """The operators, each with its ports and the JSON Schema of its fields."""
    return catalogue()


@router.get("/workflows", response_model=list[answers.WorkflowSummaryData])
async def list_workflows(the: The) -> list[dict[str, Any]]:
    """The workflows of the workspace, and how many people are at each."""
    return [_summary(the, id) for id in the.workspace.list_workflows()]


def _summary(the: Parts, id: str) -> dict[str, Any]:
    folder = the.workspace.workflow(id)
    journal = folder / JOURNAL
    changed = (journal if journal.exists() else folder).stat().st_mtime
    return {"workflow": id, "people": the.rooms.people(id), "changed": changed}


@router.post("/workflows", status_code=201, response_model=answers.WorkflowSummaryData)
async def new_workflow(the: The, given: NewWorkflow) -> dict[str, Any]:
    """Make a workflow."""
    document: Document = {"samovar": 1, "name": given.name, "operators": []}
    load(document)  # the name is checked as the library does
    if given.document is not None:
        read = await run_in_threadpool(_plain_document, the, given.document)
        document = {**read, "name": given.name}
    id = _free_id(the, given.name)
    folder = the.workspace.workflow(id, new=True)
    folder.mkdir()
    with the.rooms.use(id) as room:
        room.write(document, given.layout)
    return _summary(the, id)


@router.get("/examples")
def examples() -> dict[str, str]:
    """Examples that can be brought into the workspace, each with its story in a line."""
    return EXAMPLES


@router.post("/examples/{name}", status_code=201, response_model=answers.WorkflowSummaryData)
async def new_example(the: The, name: str) -> dict[str, Any]:
    """Make a workflow from an example, with the files it reads."""
    document = await run_in_threadpool(write_example, name, the.workspace.files)
    summary = await new_workflow(the, NewWorkflow(name=name, document=document))
    with the.rooms.use(summary["workflow"]) as room:
        write_comment(room.doc, STORIES.get(name, EXAMPLES[name]))
    return summary


async def open_example(the: Parts, name: str) -> str:
    """The id of an example's workflow, which is made and run if the workspace has none of that name."""
    if name in the.workspace.list_workflows():
        return name
    id: str = (await new_example(the, name))["workflow"]
    await run_workflow(the, id, RunAsked(by="samovar", to=None, on_error="fail"))
    return id


def _plain_document(the: Parts, given: Document | str) -> Document:
    if isinstance(given, str) and "\n" not in given and not given.lstrip().startswith("{"):
        given += "\n"  # text, never the path of a file
    flow = load(given)
    document: Document = {"samovar": 1, "name": flow.name, "operators": _operators(flow)}
    confine(document, the.workspace.files)
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        raise DocumentError(
            "Expected numbers and texts that JSON can hold, got NaN, an infinity, or text that is not Unicode."
        ) from None
    return document


def _operators(flow: Any) -> list[dict[str, Any]]:
    """All operators of a workflow as plain data, also those that lead to no sink."""
    from samovar.graph.workflow import Graph

    operators: list[dict[str, Any]] = to_document(Graph(flow.name, flow._ops, {}))["operators"]
    return operators


def _free_id(the: Parts, name: str) -> str:
    base = slug(name)[:60]
    known = set(the.workspace.list_workflows())
    candidates = chain([base], (f"{base}-{number}" for number in count(2)))
    return next(id for id in candidates if id not in known)


@router.get("/workflows/{id}", response_model=answers.WorkflowData)
async def workflow(the: The, id: str) -> dict[str, Any]:
    """A workflow as it is now: its document, the places of its operators, and its runs' names."""
    with the.rooms.use(id) as room:
        reading = room.read()
    return {**_summary(the, id), "document": reading.document, "layout": reading.layout, "ids": reading.ids}


@router.put("/workflows/{id}", response_model=answers.WorkflowData)
async def replace_workflow(the: The, id: str, document: Annotated[Document, Body()]) -> dict[str, Any]:
    """Put a document in the place of a workflow; those who are at it see that as an edit."""
    plain = await run_in_threadpool(_plain_document, the, document)
    with the.rooms.use(id) as room:
        room.write(plain, room.read().layout)
    return await workflow(the, id)


@router.delete("/workflows/{id}", status_code=204)
async def delete_workflow(the: The, id: str) -> None:
    """Delete a workflow and its versions. Its recordings stay."""
    folder = the.workspace.workflow(id)
    if the.rooms.people(id):
        raise WorkspaceError(
            f"Somebody is at the workflow '{id}'.", hint="Close it in all browsers, then delete it."
        )
    the.rooms.drop(id)
    shutil.rmtree(folder)


@router.get("/workflows/{id}/export")
async def export(the: The, id: str, format: Literal["yaml", "json", "python"] = "yaml") -> Response:
    """The workflow as a document or a program, for `samovar run`; paths are relative to the workspace's files."""
    with the.rooms.use(id) as room:
        document = room.read().document
    if format == "python":
        flow = load(document)
        return Response(as_python(flow.name, flow._ops), media_type="text/x-python")
    kind = "application/yaml" if format == "yaml" else "application/json"
    return Response(dump(document, format), media_type=kind)


@router.get("/workflows/{id}/check", response_model=answers.CheckedData)
async def check_workflow(the: The, id: str, deep: bool = False) -> dict[str, Any]:
    """What is wrong with a workflow, operator by operator, and the columns each operator gives.

    Spark is asked when it is up already; `deep` starts it if need be.
    """
    with the.rooms.use(id) as room:
        reading = room.read()
    return await run_in_threadpool(_checked, the, reading, deep)


@router.post("/check", response_model=answers.CheckedData)
async def check_document(
    the: The, document: Annotated[Document, Body()], deep: bool = False
) -> dict[str, Any]:
    """The same for a document that is sent along."""
    return await run_in_threadpool(_checked, the, Reading(document), deep)


def _checked(the: Parts, reading: Reading, deep: bool) -> dict[str, Any]:
    spark = the.engine.session() if deep or the.engine.ready else None
    checked = the.checker.check(reading.document, spark)
    problems = [asdict(p) for p in (*reading.problems, *checked.problems)]
    return {"problems": problems, "schemas": checked.schemas, "deep": checked.deep}


# --- versions -------------------------------------------------------------------------------------------------------


@router.get("/workflows/{id}/versions", response_model=list[answers.VersionData])
def versions(the: The, id: str) -> list[dict[str, Any]]:
    """The named versions of a workflow, the newest first."""
    return list_versions(the.workspace.workflow(id))


@router.post("/workflows/{id}/versions", status_code=201, response_model=answers.VersionData)
async def new_version(the: The, id: str, given: NewVersion) -> dict[str, Any]:
    """Name the workflow as it is now."""
    with the.rooms.use(id) as room:
        reading, comments = room.read(), read_comments(room.doc)
    folder = the.workspace.workflow(id)
    return save_version(folder, given.name, given.by, reading.document, reading.layout, comments)


@router.get("/workflows/{id}/versions/{number}")
def version(the: The, id: str, number: int) -> dict[str, Any]:
    """A version with its document, the places of its operators, and the comments."""
    return read_version(the.workspace.workflow(id), number)


@router.post("/workflows/{id}/versions/{number}/restore", response_model=answers.WorkflowData)
async def restore(the: The, id: str, number: int) -> dict[str, Any]:
    """Make the workflow what it was; those who are at it see that as an edit."""
    version = read_version(the.workspace.workflow(id), number)
    with the.rooms.use(id) as room:
        room.write(version["document"], {k: (v[0], v[1]) for k, v in version["layout"].items()})
        write_comments(room.doc, version["comments"])
    return await workflow(the, id)
