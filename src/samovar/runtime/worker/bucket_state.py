"""The states of operators in a worker: brought to the version an epoch starts from, and saved when it ends.

The state of a bucket is kept in the worker between epochs under its version; a worker that holds an older version
catches up by the state files since.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samovar.errors import WorkflowError
from samovar.graph.logged_results import Results
from samovar.graph.operator import Operator
from samovar.record.state_files import (
    Header,
    StateCapture,
    composed,
    is_mark,
    read_state,
    restore,
    write_state,
)
from samovar.runtime.exchange.fingerprints import Fingerprints
from samovar.runtime.exchange.task import Stage, Task, Version
from samovar.runtime.exchange.user_errors import UserError, unsaved

__all__ = ["LoadedOperator", "changes_in", "load", "save", "state_errors"]


@dataclass
class LoadedOperator:
    """An operator at work on one bucket: its instance, and what an epoch keeps of it."""

    name: str
    code: bytes
    """The pickle the instance was loaded from: a run may go on with other code."""
    results: Results
    """What `log_result` returned in this epoch."""
    prints: Fingerprints
    """Fingerprints of the operator's output in this epoch."""
    token: str = ""
    """The version of its state, where it is kept between epochs."""
    instance: Operator = field(init=False)
    capture: StateCapture = field(init=False)
    full_bytes: int = 0
    delta_bytes: int = 0
    changes: dict[str, Any] | None = None
    """What changed in this epoch up to the last mark."""
    switched: bool = False
    """Whether it switched to other code in this epoch."""
    version: int = 0
    """The version of that code."""
    gone: tuple[str, ...] | None = None
    """Right after a switch: attributes that the old code had and the new code lacks."""

    def __post_init__(self) -> None:
        self.instance = pickle.loads(self.code)
        self.capture = StateCapture(self.name, self.instance)

    def catch_up(self, changes: Iterable[dict[str, Any]]) -> None:
        """Apply changes that were made elsewhere; they do not count as changes of this epoch."""
        known = self.capture.known
        restore(self.instance, changes, known)
        self.capture.settle(known)

    def switch_to(self, new: Operator, code: bytes, version: int) -> None:
        """Go on as another operator, which has got the state already."""
        before = vars(self.instance)
        self.instance, self.code = new, code
        self.capture = StateCapture(self.name, new)
        lost = tuple(n for n in before if n not in vars(new) and not n.startswith("_sv_"))
        self.gone = (*(self.gone or ()), *lost)
        self.switched, self.version = True, version

    def take_changes(self) -> dict[str, Any]:
        """What changed since the last call; the whole state, if the operator switched to other code in between."""
        if self.gone is None:
            return self.capture.changes()
        whole = {**self.capture.whole(), "gone": self.gone, "whole": self.version}
        self.capture.settle(whole["values"])
        self.gone = None
        return whole


_cache: dict[tuple[str, str, int], LoadedOperator] = {}
RUNS_KEPT = 3
"""A worker process outlives a run: it keeps the states of the last few runs, since some may go on side by side."""
SMALL = 1 << 16
"""Bytes of deltas below which a checkpoint would save nobody time."""


def load(task: Task, stage: Stage, bucket: int) -> LoadedOperator:
    """An operator in the state its bucket starts the epoch with: from this process, or from the state files."""
    version = stage.versions.get(bucket, Version())
    key = (task.run, stage.name, bucket)
    held = _cache.pop(key, None)
    kept = stage.results.get(bucket)
    results = Results()
    prints = Fingerprints(stage.name)
    if kept is not None:
        recorded = read_state(Path(kept))[1]
        results = Results(recorded.get("results", []), _used(version))
        if not stage.anew:
            prints = Fingerprints(stage.name, recorded.get("prints", ()), stage.given.get(bucket, 0))
    if held is not None and held.token in version.tokens and held.code == stage.code:
        if behind := version.files[version.tokens.index(held.token) :]:
            held.catch_up(changes_in(behind))
        held.results, held.prints = results, prints
        return held
    loaded = LoadedOperator(stage.name, stage.code, results, prints, version.tokens[-1])
    if version.files:
        loaded.catch_up(changes_in(version.files))
    return loaded


def changes_in(files: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The changes that state files hold."""
    return (read_state(Path(file))[1] for file in files)


def _used(version: Version) -> int:
    """How many results `log_result` had returned at the mark a version ends with."""
    if not version.files or not is_mark(Path(version.files[-1])):
        return 0
    used: int = read_state(Path(version.files[-1]))[1]["used"]
    return used


def save(task: Task, stage: Stage, loaded: LoadedOperator, header: Header) -> None:
    """Write what the epoch changed; and the whole state, where reading all deltas would cost more than that."""
    bucket, folder = header.bucket, Path(stage.folder)
    first = not stage.versions.get(bucket, Version()).files
    switched, loaded.switched = loaded.switched, False
    with state_errors(loaded):
        if switched:  # deltas of the old code do not fit the new code's state
            changes, loaded.gone, loaded.changes = loaded.capture.whole(), None, None
            loaded.capture.settle(changes["values"])
        else:
            changes = loaded.capture.changes()
        if loaded.changes is not None:
            changes, loaded.changes = composed(loaded.changes, changes), None
        if loaded.results.made:
            changes["results"] = loaded.results.made
        if loaded.prints.checksums:
            changes["prints"] = loaded.prints.checksums
        loaded.delta_bytes += write_state(folder / f"{bucket:04d}.delta", header, changes)
    if switched or (not first and loaded.delta_bytes > max(SMALL, 2 * loaded.full_bytes)):
        whole = Header(
            operator=stage.name, bucket=bucket, epoch=task.epoch, full=True, entries=header.entries
        )
        loaded.full_bytes = write_state(folder / f"{bucket:04d}.full", whole, loaded.capture.whole())
        loaded.delta_bytes = 0
    loaded.token = task.token
    _cache[task.run, stage.name, bucket] = loaded
    keys = list(_cache)  # other threads may save meanwhile, in a local run
    runs = list(dict.fromkeys(run for run, _, _ in reversed(keys)))
    for key in (k for k in keys if k[0] in runs[RUNS_KEPT:]):
        _cache.pop(key, None)


@contextmanager
def state_errors(loaded: LoadedOperator) -> Iterator[None]:
    """Errors of writing a state, raised again with the name of the operator."""
    try:
        yield
    except WorkflowError as error:  # a value that cannot be pickled
        raise UserError(unsaved(loaded.name, loaded.instance, error, error.hint)) from None
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: state of operator '{loaded.name}'") from None
