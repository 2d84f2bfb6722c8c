"""Routes of files: what the workspace has to read. Nothing outside of its folder is reachable."""

from __future__ import annotations

import shutil
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from samovar.errors import NotInWorkspace, StorageProblem
from samovar.files import new_file
from samovar.runtime.display import size as shown_size
from samovar.server import answers
from samovar.server.limits import TooLarge
from samovar.server.services import The

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["files"])


@router.get("/files", response_model=list[answers.FileData])
def list_files(the: The) -> list[dict[str, Any]]:
    """The files of the workspace."""
    return the.workspace.list_files()


@router.get("/files/{path:path}")
def download(the: The, path: str) -> FileResponse:
    """A file's bytes."""
    file = the.workspace.existing_file(path)
    if not file.is_file():
        raise NotInWorkspace(f"Expected a file, got the folder '{path}'.")
    return FileResponse(file, media_type="application/octet-stream", filename=file.name)


@router.put("/files/{path:path}", status_code=201, response_model=answers.UploadData)
async def upload(the: The, path: str, request: Request) -> dict[str, Any]:
    """Write a file from the request's body; it appears when it is complete, in the place of one of that name."""
    target = the.workspace.file(path)
    size = 0
    room = None if the.limits.quota is None else the.limits.quota - the.workspace.file_bytes()
    try:
        with new_file(target) as temporary:
            with open(temporary, "wb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    if room is None or size <= room:  # what is too much is read to its end, and dropped
                        await run_in_threadpool(file.write, chunk)
            if room is not None and size > room:
                raise TooLarge(
                    f"Expected files of at most {shown_size(the.limits.quota or 0)} in the workspace, got more.",
                    "Delete files that are no longer needed, or start the server with a larger --quota.",
                )
    except OSError as error:
        raise StorageProblem(f"'{path}' could not be written: {error.strerror or error}.") from error
    return {"path": path, "bytes": size}


@router.delete("/files/{path:path}", status_code=204)
def delete(the: The, path: str) -> None:
    """Delete a file, or a folder with all that is in it."""
    file = the.workspace.existing_file(path)
    try:
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
    except OSError as error:
        raise StorageProblem(f"'{path}' could not be deleted: {error.strerror or error}.") from error
