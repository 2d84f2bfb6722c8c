"""The workspace: one folder that holds what the workbench works with.

    workflows/<id>/   a shared document and its named versions
    files/            what was uploaded; paths in documents are relative to this folder
    runs/             recordings
    notebooks/        what people did to runs, and noted about their moments

Guarantee: every path that comes from outside goes through `inside`, which returns a path below its folder or raises
OutsideWorkspace, symbolic links included. One server at a time works on a workspace.
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import IO, Any

from samovar.errors import NotInWorkspace, OutsideWorkspace, RecordingNotFound, WorkspaceError, nearest
from samovar.record.addresses import local_folder
from samovar.record.store import LOG, find_recordings

__all__ = ["Workspace", "inside"]

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}\Z")
_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")
_PARTS = re.compile(r"[/\\{},]")


def inside(folder: Path, named: str) -> Path:
    """The path below `folder` that a relative path or pattern names. Nothing is opened."""
    parts = _PARTS.split(named)
    if "\0" in named or os.path.isabs(named) or ".." in parts or named.startswith("~"):
        raise OutsideWorkspace(
            f"Expected a path inside the workspace, got {named!r}.",
            hint="Name it relative to the workspace's files, without '..': payments/may.parquet.",
        )
    path = folder / named
    root = os.path.realpath(folder)
    real = os.path.realpath(path)
    if real != root and not real.startswith(root + os.sep):
        raise OutsideWorkspace(
            f"Expected a path inside the workspace, but {named!r} leads out of it.",
            hint="It passes a symbolic link; put a copy into the workspace.",
        )
    return path


def _hint(name: str, known: list[str], otherwise: str) -> str:
    close = nearest(name, known)
    return f"Did you mean '{close}'?" if close else otherwise


class Workspace:
    """A folder on disk with the parts above. Takes a lock that ends with the process or with `close`."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = local_folder(root).absolute()
        self.workflows = self.root / "workflows"
        self.files = self.root / "files"
        self.runs = self.root / "runs"
        self.notebooks = self.root / "notebooks"
        try:
            for folder in (self.workflows, self.files, self.runs):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock: IO[Any] = open(self.root / ".lock", "a")  # noqa: SIM115  held until close
        except OSError as error:
            raise WorkspaceError(
                f"Expected a folder to work in at {self.root}, got: {error.strerror or error}.",
                hint="Name another one with --workspace.",
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise WorkspaceError(
                f"Another server works in {self.root}.",
                hint="Use the link it printed, stop it, or name another folder with --workspace.",
            ) from None

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    # --- files --------------------------------------------------------------------------------------------------

    def file(self, named: str) -> Path:
        """The path of a file or folder below `files`, whether it exists or not."""
        path = inside(self.files, named)
        if path == self.files:
            raise OutsideWorkspace("Expected the name of a file, got none.")
        return path

    def existing_file(self, named: str) -> Path:
        """The path of a file or folder below `files` that exists."""
        path = self.file(named)
        try:
            exists = path.exists()
        except OSError:  # a name too long, say
            exists = False
        if not exists:
            hint = _hint(named, [f["path"] for f in self.list_files()], "Upload it first.")
            raise NotInWorkspace(f"No file {named!r} in the workspace.", hint=hint)
        return path

    def list_files(self, limit: int = 5000) -> list[dict[str, Any]]:
        """Files below `files`, each with path, size and time of change; hidden files are skipped."""
        listed: list[dict[str, Any]] = []
        for folder, names, files in os.walk(self.files):
            names[:] = sorted(n for n in names if not n.startswith("."))
            for name in sorted(files):
                path = Path(folder, name)
                if name.startswith(".") or not path.is_file():
                    continue
                stat = path.stat()
                relative = path.relative_to(self.files).as_posix()
                listed.append({"path": relative, "bytes": stat.st_size, "changed": stat.st_mtime})
                if len(listed) >= limit:
                    return listed
        return listed

    def file_bytes(self) -> int:
        """The size of all files together, also of those that are being uploaded."""
        walk = ((folder, name) for folder, _, names in os.walk(self.files) for name in names)
        return sum(Path(f, n).lstat().st_size for f, n in walk if Path(f, n).exists())

    # --- workflows and recordings ---------------------------------------------------------------------------------

    def workflow(self, id: str, *, new: bool = False) -> Path:
        """The folder of a workflow. `new`: one that must not exist yet."""
        if not _ID.match(id):
            raise NotInWorkspace(f"Expected an id of small letters, digits, '-' and '_', got {id!r}.")
        path = self.workflows / id
        if new and path.exists():
            raise WorkspaceError(f"The workspace already has a workflow '{id}'.", hint="Choose another name.")
        if not new and not path.is_dir():
            hint = _hint(id, self.list_workflows(), "GET /api/workflows lists them.")
            raise NotInWorkspace(f"No workflow '{id}' in the workspace.", hint=hint)
        return path

    def list_workflows(self) -> list[str]:
        """Ids of the workflows, in alphabetical order."""
        return sorted(p.name for p in self.workflows.iterdir() if p.is_dir() and _ID.match(p.name))

    def recording(self, run: str) -> Path:
        """The folder of a recording."""
        path = self.runs / run
        if not _RUN.match(run) or not (path / LOG).is_file():
            hint = _hint(run, self.list_recordings(), "GET /api/recordings lists them.")
            raise RecordingNotFound(f"No recording {run!r} in the workspace.", hint=hint)
        return path

    def list_recordings(self) -> list[str]:
        """Names of the recordings, the newest last."""
        return [p.name for p in find_recordings(self.runs)]
