"""Results of `write` operators: their paths are checked before a run, and their files moved there after it.

Files are written under the recording and moved to their path when the run has completed: nobody sees half a result. A
move that was interrupted is finished by the next resume; file names carry the run and epoch, so nothing is moved twice.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlparse

from samovar.errors import StorageProblem, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.ids import slug
from samovar.record.digests import check, flush, flush_tree
from samovar.record.log import EpochCommitted, ResultPublished
from samovar.record.store import Recording
from samovar.runtime.epochs.run_context import RunContext

__all__ = ["check_targets", "moved_path", "publish"]


def check_targets(graph: Graph) -> None:
    """Raise, before anything runs, when a `write` operator may not write to its path."""
    seen: dict[Path, str] = {}
    for op in graph.sinks:
        if not isinstance(op, ops.Write):
            continue
        path = _target(op)
        if path in seen:
            raise WorkflowError(f"'{op.name}' and '{seen[path]}' both write to {op.path}.", operator=op.name)
        seen[path] = op.name
        if op.mode == "error" and path.exists() and (path.is_file() or any(path.iterdir())):
            raise StorageProblem(
                f"'{op.name}' would write to {op.path}, which exists already.",
                operator=op.name,
                hint='Choose another path, or use .mode("overwrite"), "append" or "ignore".',
            )
        if not os.access(_existing(path), os.W_OK):
            raise StorageProblem(f"'{op.name}' cannot write to {op.path}: no permission.", operator=op.name)


def publish(context: RunContext) -> None:
    """Move the files of every `write` operator to its path."""
    for op in context.plan.graph.sinks:
        if not isinstance(op, ops.Write) or op.name in context.history.published:
            continue
        files = _publish(context, op)
        fact = ResultPublished(at=time.time(), operator=op.name, path=op.path, files=files)
        assert context.recording.log is not None
        context.recording.log.append(fact)
        context.history.add(fact)


def _publish(context: RunContext, op: ops.Write) -> int:
    """Move the files that are not moved yet. Returns how many files of this run are at the target then."""
    target = _target(op)
    mark = _own_prefix(context.recording)
    present = [target] if target.is_file() else [p for p in target.rglob("*") if p.is_file()]
    foreign = [p for p in present if not p.name.startswith(mark)]
    if op.mode == "ignore" and foreign and len(foreign) == len(present):
        return 0
    if op.mode == "error" and any(not p.name.startswith(("_", ".")) for p in foreign):
        raise StorageProblem(
            f"'{op.name}' was to write to {op.path}, where files have appeared since the run started.",
            operator=op.name,
            hint="Move them away and resume the run: nothing is computed again.",
        )
    if op.mode == "overwrite":
        for old in foreign:
            old.unlink()
    target.mkdir(parents=True, exist_ok=True)
    for epoch in context.history.epochs:
        for folder in context.recording.parts("results", op.name, [epoch], check=False):
            for file in sorted(
                p for p in folder.rglob("*") if p.is_file() and not p.name.startswith((".", "_"))
            ):
                inside = file.relative_to(context.recording.epoch_folder(epoch)).as_posix()
                if (digest := epoch.files.get(inside)) is not None:
                    check(file, digest)
                where = moved_path(context.recording, op, epoch, inside)
                where.parent.mkdir(parents=True, exist_ok=True)
                _move(file, where)
    if op.mode == "overwrite":
        _drop_empty_folders(target)
    (target / "_SUCCESS").touch()
    if context.recording.durable:  # before the log says that they are published
        flush_tree(target)
        flush(target.parent)
    return sum(1 for p in target.rglob(f"{mark}*"))


def moved_path(recording: Recording, op: ops.Write, epoch: EpochCommitted, inside: str) -> Path:
    """The path that a file of a result is moved to; `inside`: its path in the epoch's folder. Names run and epoch."""
    file = PurePosixPath(*PurePosixPath(inside).parts[2:])
    name = f"{_own_prefix(recording)}{epoch.epoch:06d}-{file.name.removeprefix('part-')}"
    return _target(op) / file.parent / name


def _own_prefix(recording: Recording) -> str:
    return f"part-{slug(recording.run_id)}-"


def _move(file: Path, to: Path) -> None:
    """Rename; onto another disk, copy under a name that readers skip, then rename: never half a file."""
    try:
        file.replace(to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        hidden = to.with_name(f".{to.name}")
        try:
            shutil.copy2(file, hidden)
            flush(hidden)
            hidden.replace(to)
        finally:
            hidden.unlink(missing_ok=True)
        file.unlink()


def _drop_empty_folders(target: Path) -> None:
    for folder in sorted((p for p in target.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _target(op: ops.Write) -> Path:
    parsed = urlparse(op.path)
    if parsed.scheme not in ("", "file"):
        raise WorkflowError(
            f"'{op.name}' writes to {op.path}: only local (or mounted) paths can be written.",
            operator=op.name,
            hint="Use .sink(name) and write run.result(name) yourself.",
        )
    return Path(unquote(parsed.path) if parsed.scheme else os.path.expanduser(op.path)).absolute()


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
