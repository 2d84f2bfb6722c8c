"""The options of a run, checked before anything runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, get_args

from samovar.errors import StorageProblem, WorkflowError
from samovar.record.addresses import local_folder
from samovar.runtime.epochs.checkpoint_policy import Policy

__all__ = ["check_options", "remove_if_empty"]


def check_options(
    *,
    tau: Any,
    marks: Any,
    on_error: Any,
    epoch_bytes: Any,
    key_partitions: Any,
    record: Any,
    run_id: Any = None,
) -> None:
    """Raise WorkflowError for an option of the wrong kind, StorageProblem for a folder that cannot be written."""
    if on_error not in ("fail", "hold"):
        raise WorkflowError(
            f"Expected on_error to be 'fail' or 'hold', got {on_error!r}.",
            hint="`fail` ends the run at a tuple that raises; `hold` stops it there until somebody decides.",
        )
    if marks not in get_args(Policy):
        raise WorkflowError(
            f"Expected marks to be one of {', '.join(get_args(Policy))}, got {marks!r}.",
            hint="`tau` keeps as much state as jumps within tau seconds need; `none` keeps none inside epochs.",
        )
    _number("tau", tau, "seconds, for example tau=2.0", fraction=True)
    if epoch_bytes is not None:
        what = "bytes, for example epoch_bytes=64 << 20; leave it out to let it adapt"
        _number("epoch_bytes", epoch_bytes, what)
    if key_partitions is not None:
        what = "key partitions, for example key_partitions=4; leave it out to follow the cores"
        _number("key_partitions", key_partitions, what)
    if run_id is not None:
        _folder_name(run_id)
    if isinstance(record, bool):
        return
    if not isinstance(record, str | os.PathLike) or not os.fspath(record):
        raise WorkflowError(
            f"Expected record= to be a folder, True or False, got {record!r}.",
            hint='Write for example record="runs".',
        )
    _writable(local_folder(record).absolute())


def remove_if_empty(folder: Path) -> None:
    """Remove a folder, if nothing was written into it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _number(name: str, value: Any, what: str, *, fraction: bool = False) -> None:
    kinds = int | float if fraction else int
    if isinstance(value, bool) or not isinstance(value, kinds) or not value > 0:
        raise WorkflowError(
            f"Expected {name} to be a number above 0, got {value!r}.", hint=f"It is a number of {what}."
        )


def _folder_name(run_id: Any) -> None:
    if not isinstance(run_id, str) or not run_id or os.sep in run_id or run_id.startswith("."):
        raise WorkflowError(f"Expected run_id to be a plain folder name, got {run_id!r}.")
    if "," in run_id:
        raise WorkflowError(
            f"Expected run_id without a comma, got {run_id!r}.",
            hint="Spark's jobs carry it as a tag, which may have none: use '-' or '_'.",
        )


def _writable(folder: Path) -> None:
    at = folder
    while not at.exists():
        at = at.parent
    if not at.is_dir():
        raise StorageProblem(
            f"Expected a folder to keep recordings in at {folder}, got a file at {at}.",
            hint="Choose another folder with record=, or record=False to keep none.",
        )
    if not os.access(at, os.W_OK | os.X_OK):
        raise StorageProblem(
            f"Expected a folder that may be written for recordings, got {folder}: no permission in {at}.",
            hint="Choose another folder with record=, or record=False to keep none.",
        )
