"""The states of operators in a worker: brought to the version an epoch starts from, and saved when it ends.

The state of a bucket is kept in the worker between epochs under its version; a worker that holds an older version
catches up by the state files since.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import reduce
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

__all__ = ["LoadedOperator", "load", "loaded_as", "save", "told"]


@dataclass
class LoadedOperator:
    token: str
    instance: Operator
    capture: StateCapture
    full_bytes: int = 0
    delta_bytes: int = 0
    code: bytes = b""
    """What the instance was made from: a run may go on with other code."""
    results: Results = attribute(default_factory=Results)
    """What `log_result` gave in this epoch."""
    changes: dict[str, Any] | None = None
    """What changed in this epoch up to the last mark."""
    prints: Fingerprints = attribute(default_factory=lambda: Fingerprints(""))
    """Fingerprints of what it gives in this epoch."""
    switched: bool = False
    """Whether it switched to other code in this epoch."""
    version: int = 0
    """Of that code."""
    gone: tuple[str, ...] | None = None
    """Right after that: attributes the old code had and the new one has not."""

    def switch_to(self, new: Operator, code: bytes, version: int) -> None:
        """Go on as another operator, to which the state was handed over."""
        before = vars(self.instance)
        self.instance, self.code = new, code
        self.capture = StateCapture(self.capture.name, new)
        lost = tuple(n for n in before if n not in vars(new) and not n.startswith("_sv_"))
        self.gone = (*(self.gone or ()), *lost)
        self.switched, self.version = True, version

    def take_changes(self) -> dict[str, Any]:
        """What changed since the last time: all of it, if other code came in between."""
        if self.gone is None:
            return self.capture.changes()
        made = {**self.capture.whole(), "gone": self.gone, "whole": self.version}
        self.capture.settle(made["values"])
        self.gone = None
        return made


_cache: dict[tuple[str, str, int], LoadedOperator] = {}
_NOTHING: dict[str, Any] = {"maps": {}, "lists": {}, "values": {}, "gone": ()}
"""The changes of a stretch without tuples."""


def loaded_as(
    instance: Operator, capture: StateCapture, code: bytes, results: Results, prints: Fingerprints
) -> LoadedOperator:
    """An operator ready to work, from its parts."""
    return LoadedOperator("", instance, capture, 0, 0, code, results, prints=prints)


def load(task: Task, stage: Stage, bucket: int) -> LoadedOperator:
    version = stage.versions.get(bucket, Version())
    key = (task.run, stage.name, bucket)
    held = _cache.pop(key, None)
    kept = stage.results.get(bucket)
    results = Results()
    prints = Fingerprints(stage.name)
    if kept is not None:
        recorded = read_state(Path(kept))[1]
        given = stage.given.get(bucket, 0)
        if bucket in stage.goes_on:
            logged = recorded.get("results", [])
            results = Results(logged, len(logged) if kept in version.files else _used(version))
            prints = Fingerprints(stage.name, start=given, goes_on=recorded.get("prints", ()))
        else:
            results = Results(recorded.get("results", []), _used(version))
            prints = Fingerprints(stage.name, recorded.get("prints", ()), given)
    if held is not None and held.token in version.tokens and held.code == stage.code:
        behind = version.files[version.tokens.index(held.token) :]
        if behind:
            known = held.capture.known
            restore(held.instance, (read_state(Path(f))[1] for f in behind), known)
            held.capture.settle(known)
        held.results, held.prints = results, prints
        return held
    instance: Operator = pickle.loads(stage.code)
    capture = StateCapture(stage.name, instance)
    loaded = LoadedOperator(version.tokens[-1], instance, capture, 0, 0, stage.code, results, prints=prints)
    if version.files:
        known = {}
        restore(instance, (read_state(Path(f))[1] for f in version.files), known)
        capture.settle(known)
    if own := stage.goes_on.get(bucket):  # what the epoch changed so far is part of what it will have changed
        loaded.changes = reduce(composed, (read_state(Path(f))[1] for f in version.files[-own:]), _NOTHING)
    return loaded


def _used(version: Version) -> int:
    """How many results were given before the mark a version ends with."""
    if not version.files or not is_mark(Path(version.files[-1])):
        return 0
    used: int = read_state(Path(version.files[-1]))[1]["used"]
    return used


def save(task: Task, stage: Stage, loaded: LoadedOperator, header: Header) -> None:
    bucket, folder = header.bucket, Path(stage.folder)
    first = not stage.versions.get(bucket, Version()).files
    switched, loaded.switched = loaded.switched, False
    with told(stage, loaded):
        if switched:  # nothing before it can be added to
            changes, loaded.gone, loaded.changes = loaded.capture.whole(), None, None
            loaded.capture.settle(changes["values"])
        else:
            changes = loaded.capture.changes()
        if loaded.changes is not None:
            changes, loaded.changes = composed(loaded.changes, changes), None
        if loaded.results.made:
            changes["results"] = loaded.results.made
        if loaded.prints.made:
            changes["prints"] = loaded.prints.made
        loaded.delta_bytes += write_state(folder / f"{bucket:04d}.delta", header, changes)
    if switched or (not first and loaded.delta_bytes > max(1 << 16, 2 * loaded.full_bytes)):
        whole = Header(
            operator=stage.name, bucket=bucket, epoch=task.epoch, full=True, entries=header.entries
        )
        loaded.full_bytes = write_state(folder / f"{bucket:04d}.full", whole, loaded.capture.whole())
        loaded.delta_bytes = 0
    loaded.token = task.token
    _cache[task.run, stage.name, bucket] = loaded
    _forget_old_runs()


@contextmanager
def told(stage: Stage, loaded: LoadedOperator) -> Iterator[None]:
    """Failures to write a state, told so that a person knows whose."""
    try:
        yield
    except WorkflowError as error:  # a value that cannot be pickled
        raise UserError(unsaved(stage.name, loaded.instance, error, error.hint)) from None
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: state of operator '{stage.name}'") from None


def _forget_old_runs(keep: int = 3) -> None:
    """A worker lives longer than a run: states of runs not seen for a while are dropped."""
    keys = list(_cache)  # other threads may save meanwhile, in a local run
    runs = list(dict.fromkeys(run for run, _, _ in reversed(keys)))
    for key in (k for k in keys if k[0] in runs[keep:]):
        _cache.pop(key, None)
