"""A recording on disk: its folder, its lock, and what of it counts.

    <run>/
      LOCK            held (flock) by the process that writes
      log.jsonl       the facts (see log.py)
      workflow.json   the workflow as it was
      sources.json    every source's units: path, size, time, rows
      code/           live Python operators and functions, pickled by value
      inputs/         rows of sources that cannot be read again
      epochs/000007-1f3a9c22/
        results/<sink>/   state/<operator>/   deltas/<operator>/   stash/<operator>/   rejected/<source>/
        kept/<operator>/  rows that Python operators gave up to each mark
        decisions/      tuples that were left out or replaced by a person's decision

An epoch's folder carries the name of the attempt; it counts only when the log names that attempt. What a dead process
may still write lands in a folder that never counts and is removed on the next open for writing.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from samovar.errors import RecordingCorrupt, RecordingInUse, RecordingNotFound, StorageProblem
from samovar.record.addresses import local_folder
from samovar.record.log import (
    AnyFact,
    Counters,
    EpochCommitted,
    EpochFailed,
    Interaction,
    InteractionsMade,
    Log,
    LogicChanged,
    ResultPublished,
    RunEnded,
    RunResumed,
    RunStarted,
    TupleDecided,
    read_log,
)
from samovar.record.state_files import is_mark

__all__ = ["History", "Recording", "find_recordings"]

LOG = "log.jsonl"
"""There as long as the recording is: who sees it sees the recording."""


@dataclass
class History:
    """What the facts of a log add up to. Pure: built from facts alone."""

    started: RunStarted | None = None
    epochs: list[EpochCommitted] = field(default_factory=list)
    published: dict[str, ResultPublished] = field(default_factory=dict)
    ended: RunEnded | None = None
    interactions: list[Interaction] = field(default_factory=list)
    failed: EpochFailed | None = None
    changes: list[LogicChanged] = field(default_factory=list)
    decided: list[TupleDecided] = field(default_factory=list)

    @classmethod
    def of(cls, facts: Iterable[AnyFact]) -> History:
        history = cls()
        for fact in facts:
            history.add(fact)
        return history

    def add(self, fact: AnyFact) -> None:
        """Take in one more fact."""
        if isinstance(fact, RunStarted):
            self.started = fact
        elif isinstance(fact, EpochCommitted):
            if fact.epoch != len(self.epochs):
                raise RecordingCorrupt(f"Expected epoch {len(self.epochs)} in the log, got {fact.epoch}.")
            self.epochs.append(fact)
            self.failed = None
            if fact.code:
                self.changes.append(LogicChanged(at=fact.at, epoch=fact.epoch, operators=fact.code))
            if fact.switched:
                self.changes.append(LogicChanged(at=fact.at, epoch=fact.epoch + 1, operators=fact.switched))
        elif isinstance(fact, EpochFailed):
            self.failed = fact
        elif isinstance(fact, InteractionsMade):
            self.interactions += fact.made
        elif isinstance(fact, ResultPublished):
            self.published[fact.operator] = fact
        elif isinstance(fact, RunEnded):
            self.ended = fact
        elif isinstance(fact, LogicChanged):
            self.changes.append(fact)
        elif isinstance(fact, TupleDecided):
            self.decided.append(fact)
        elif isinstance(fact, RunResumed):
            self.ended = None

    def totals(self, before: int | None = None) -> dict[str, Counters]:
        """Each operator's counters over all committed epochs, or over those before one."""
        totals: dict[str, Counters] = {}
        for epoch in self.epochs[:before]:
            for name, c in epoch.counters.items():
                totals[name] = add_counters(totals.get(name), c)
        return totals

    def taken(self, level: int, source: str) -> int:
        """How many units of a source the epochs of a level have taken."""
        return max(
            (e.units[source][1] for e in self.epochs if e.level == level and source in e.units), default=0
        )

    def epochs_on(self, level: int) -> list[EpochCommitted]:
        """The committed epochs that worked on a level."""
        return [e for e in self.epochs if e.level <= level < e.level + e.levels]

    def rejected(self) -> dict[str, int]:
        """Rows that did not parse, per source."""
        found: dict[str, int] = {}
        for epoch in self.epochs:
            for source, n in epoch.rejected.items():
                found[source] = found.get(source, 0) + n
        return found


def add_counters(a: Counters | None, b: Counters) -> Counters:
    """Sum of two counters; ports an epoch did not use count as zero."""
    if a is None:
        return b
    ports = max(len(a.taken), len(b.taken))
    taken = tuple(
        (a.taken[i] if i < len(a.taken) else 0) + (b.taken[i] if i < len(b.taken) else 0)
        for i in range(ports)
    )
    return Counters(taken, a.given + b.given)


class Recording:
    """The folder of one run. `writable` recordings hold the lock; readers take none and see committed epochs only."""

    def __init__(self, path: Path, *, lock: IO[Any] | None = None) -> None:
        self.path = path
        self._lock = lock
        self.log: Log | None = None

    # --- opening --------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path) -> Recording:
        """A new recording, locked for writing."""
        try:
            path.mkdir(parents=True, exist_ok=False)
            (path / "epochs").mkdir()
        except FileExistsError:
            raise StorageProblem(
                f"{path} exists already.", hint="Choose another folder with record=."
            ) from None
        except OSError as error:
            raise StorageProblem(f"The recording folder {path} cannot be made: {error}.") from error
        made = cls(path, lock=_lock(path))
        made.log = Log(path / LOG)
        return made

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, write: bool = False) -> Recording:
        """An existing recording; `write=True` locks it, and clears away what unfinished epochs left."""
        folder = local_folder(path).absolute()  # Spark resolves relative paths against a folder of its own
        if not (folder / LOG).is_file():
            hint = None
            if folder.is_dir() and any((p / LOG).is_file() for p in folder.iterdir() if p.is_dir()):
                hint = f"{folder} is a folder of runs: name one of them (`samovar runs --dir {folder}` lists them)."
            raise RecordingNotFound(f"Expected a recording at {folder}, found none.", hint=hint)
        next(iter(read_log(folder / LOG)), None)  # checks the format
        if not write:
            return cls(folder)
        made = cls(folder, lock=_lock(folder))
        made.log = Log(folder / LOG)
        made.sweep()
        return made

    def close(self) -> None:
        """Give up the lock."""
        if self.log:
            self.log.close()
            self.log = None
        if self._lock:
            self._lock.close()
            self._lock = None

    def is_written(self) -> bool:
        """Whether some process holds the lock now."""
        try:
            with (self.path / "LOCK").open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def sweep(self, *, failed: bool = False) -> None:
        """Clear away what unfinished epochs left. `failed`: but for states that lead to a failure."""
        history = self.history()
        counted = {self.epoch_folder(e).name for e in history.epochs}
        if failed and history.failed is not None:
            counted.add(self.attempt_folder(history.failed.epoch, history.failed.attempt).name)
        for folder in (self.path / "epochs").iterdir():
            if folder.name not in counted:
                shutil.rmtree(folder, ignore_errors=True)

    # --- contents -------------------------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        return self.path.name

    def facts(self) -> list[AnyFact]:
        """All facts so far."""
        return list(read_log(self.path / LOG))

    def history(self) -> History:
        """What the facts add up to."""
        return History.of(read_log(self.path / LOG))

    def epoch_folder(self, epoch: EpochCommitted) -> Path:
        """Where a committed epoch's files lie."""
        return self.attempt_folder(epoch.epoch, epoch.attempt)

    def attempt_folder(self, epoch: int, attempt: str) -> Path:
        """Where an attempt at an epoch writes."""
        return self.path / "epochs" / f"{epoch:06d}-{attempt}"

    def parts(self, kind: str, operator: str, epochs: Iterable[EpochCommitted]) -> list[Path]:
        """The folders an operator filled in the given epochs, in order."""
        found = (self.epoch_folder(e) / kind / slug_unique(operator) for e in epochs)
        return [p for p in found if p.is_dir()]

    def state_files(
        self, operator: str, epochs: Iterable[EpochCommitted]
    ) -> dict[int, list[tuple[Path, EpochCommitted]]]:
        """For each bucket of a Python operator, from the last full one on, the files that give its state."""
        files: dict[int, list[tuple[Path, EpochCommitted]]] = {}
        for epoch in epochs:
            folder = self.epoch_folder(epoch) / "state" / slug_unique(operator)
            for state in epoch.state.get(operator, ()):
                if state.full:
                    files[state.bucket] = []
                name = f"{state.bucket:04d}.{'full' if state.full else 'delta'}"
                files.setdefault(state.bucket, []).append((folder / name, epoch))
        return files

    def write_json(self, name: str, value: Any) -> None:
        """Write a small file of plain data whole or not at all."""
        temporary = self.path / f".{name}.tmp"
        temporary.write_text(json.dumps(value, indent=1, default=str))
        temporary.replace(self.path / name)

    def read_json(self, name: str) -> Any:
        """A small file of plain data."""
        try:
            return json.loads((self.path / name).read_text())
        except (OSError, ValueError) as error:
            raise RecordingCorrupt(f"{self.path / name} cannot be read: {error}.") from error

    def sizes(self) -> dict[str, int]:
        """Bytes by kind: log, results, state, marks (states inside epochs), kept (rows given up to them), and so on."""
        kinds = (
            "log",
            "results",
            "state",
            "marks",
            "kept",
            "deltas",
            "stash",
            "rejected",
            "inputs",
            "code",
            "other",
        )
        found = dict.fromkeys(kinds, 0)
        for folder, _, files in os.walk(self.path):
            parts = Path(folder).relative_to(self.path).parts
            for file in files:
                size = (Path(folder) / file).stat().st_size
                kind = "log" if file == LOG else parts[2] if len(parts) > 2 and parts[0] == "epochs" else ""
                kind = "marks" if kind == "state" and is_mark(Path(file)) else kind
                kind = kind or (parts[0] if parts and parts[0] in found else "other")
                found[kind if kind in found else "other"] += size
        return found


def slug_unique(operator: str) -> str:
    """A folder name for an operator: readable, and different for different names."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", operator)
    if plain == operator and not plain.startswith((".", "_")):
        return plain
    return f"{plain.lstrip('._')}-{zlib.crc32(operator.encode()):08x}"


def find_recordings(folder: str | os.PathLike[str]) -> list[Path]:
    """The recordings in a folder, newest last."""
    root = local_folder(folder)
    if not root.is_dir():
        return []
    return sorted((p for p in root.iterdir() if (p / LOG).is_file()), key=lambda p: (p / LOG).stat().st_ctime)


def _lock(path: Path) -> IO[Any]:
    file = (path / "LOCK").open("a")
    for wait in (0.05, 0.1, 0.2, None):  # somebody may just be looking whether it is locked
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if wait is None:
                break
            time.sleep(wait)
        else:
            return file
    file.close()
    raise RecordingInUse(
        f"Another process writes the recording {path} now.",
        hint="Wait for it to end, or stop it; `samovar show` can look at it meanwhile.",
    )
