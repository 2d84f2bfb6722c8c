"""A recording on disk: its folder, its lock, and which of its epochs count.

    <run>/
      LOCK, WRITER    held (flock) by the process that writes; names that process, for file systems without locks
      log.jsonl       the facts (see log.py)
      workflow.json   the workflow as it was
      sources.json    every source's files: path, size, time, rows; how many rows a unit has
      code/           live Python operators and functions, pickled by value
      inputs/         rows of sources that cannot be read again
      epochs/000007-1f3a9c22/
        results/<sink>/   state/<operator>/   deltas/<operator>/   stash/<operator>/   rejected/<source>/
        kept/<operator>/  rows that Python operators gave up to each mark
        decisions/      tuples that were skipped or replaced by a person's decision

An epoch's folder carries the name of the attempt; it counts only when the log names that attempt. What a dead process
may still write lands in a folder that never counts and is removed on the next open for writing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from samovar.errors import RecordingCorrupt, RecordingNotFound, StorageProblem
from samovar.files import write_file
from samovar.record.addresses import local_folder
from samovar.record.digests import (
    DAMAGED_START,
    THREADS,
    Digest,
    check,
    contents,
    flush,
    problem_of,
    seal,
    seal_files,
)
from samovar.record.lease import Lease, in_use
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
from samovar.record.state_files import is_mark, state_problem

__all__ = ["History", "Recording", "find_recordings", "link"]

LOG = "log.jsonl"
"""Exists as long as the recording does: a folder with this file is a recording."""
_NEEDED = ("results", "deltas", "stash", "rejected")
"""The parts of an epoch's folder that, beside states, a run needs to go on or its results consist of."""
_KINDS = (
    "log",
    "results",
    "state",
    "marks",
    "deltas",
    "stash",
    "rejected",
    "inputs",
    "code",
    "other",
)
"""What a recording's bytes are counted by."""


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
        """Add one more fact."""
        match fact:
            case RunStarted():
                self.started = fact
            case EpochCommitted():
                if fact.epoch != len(self.epochs):
                    raise RecordingCorrupt(f"Expected epoch {len(self.epochs)} in the log, got {fact.epoch}.")
                self.epochs.append(fact)
                self.failed = None
                for epoch, versions in ((fact.epoch, fact.code), (fact.epoch + 1, fact.switched)):
                    if versions:
                        change = LogicChanged(
                            at=fact.at, epoch=epoch, operators=versions, files=fact.code_files
                        )
                        self.changes.append(change)
            case EpochFailed():
                self.failed = fact
            case InteractionsMade():
                self.interactions += fact.made
            case ResultPublished():
                self.published[fact.operator] = fact
            case RunEnded():
                self.ended = fact
            case LogicChanged():
                self.changes.append(fact)
            case TupleDecided():
                self.decided.append(fact)
            case RunResumed():
                self.ended = None
                if fact.epoch < len(self.epochs):
                    self._cut(fact.epoch)

    def _cut(self, count: int) -> None:
        """Keep the first `count` epochs: later ones, and what depends on them, no longer count."""
        gone = [e.code for e in self.epochs[count:] if e.code]  # with them goes the state in its new form
        self.changes = [
            c for c in self.changes if c.epoch <= count and not any(c.operators is code for code in gone)
        ]
        self.interactions = [i for i in self.interactions if i.epoch < count]
        self.failed = None
        del self.epochs[count:]

    def totals(self, before: int | None = None) -> dict[str, Counters]:
        """Each operator's counters over all committed epochs, or over those before one."""
        totals: dict[str, Counters] = {}
        for epoch in self.epochs[:before]:
            for name, c in epoch.counters.items():
                totals[name] = add_counters(totals.get(name), c)
        return totals

    def taken(self, level: int, source: str) -> int:
        """How many units of a source the epochs of a level have taken."""
        for epoch in reversed(self.epochs):  # the newest one tells, and mostly at once
            if epoch.level < level:
                break
            if epoch.level == level and source in epoch.units:
                return epoch.units[source][1]
        return 0

    def epochs_on(self, level: int) -> list[EpochCommitted]:
        """The committed epochs that worked on a level."""
        return [e for e in self.epochs if e.level <= level < e.level + e.levels]

    def rejected(self) -> dict[str, int]:
        """Rows that did not parse, per source."""
        rows: Counter[str] = Counter()
        for epoch in self.epochs:
            rows.update(epoch.rejected)
        return dict(rows)


def add_counters(a: Counters | None, b: Counters) -> Counters:
    """Sum of two counters; ports an epoch did not use count as zero."""
    if a is None:
        return b
    taken = tuple(map(sum, zip_longest(a.taken, b.taken, fillvalue=0)))
    return Counters(taken, a.given + b.given)


class Recording:
    """The folder of one run. `writable` recordings hold the lock; readers take none and see committed epochs only."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path = path
        self.durable = durable
        """Whether what is committed has to outlive a loss of power."""
        self._lock: _Lock | None = None
        self._start: dict[str, Digest] | None = None
        self.log: Log | None = None

    # --- opening --------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, *, durable: bool = True) -> Recording:
        """A new recording, locked for writing. `durable`: it has to outlive a loss of power."""
        try:
            path.mkdir(parents=True, exist_ok=False)
            (path / "epochs").mkdir()
        except FileExistsError:
            raise StorageProblem(
                f"{path} exists already.", hint="Choose another folder with record=."
            ) from None
        except OSError as error:
            raise StorageProblem(f"The recording folder {path} cannot be made: {error}.") from error
        recording = cls(path, durable=durable)
        try:
            recording._lock_for_writing()
        except OSError as error:
            recording.close()
            shutil.rmtree(path, ignore_errors=True)
            raise StorageProblem(f"The recording {path} could not be started: {error}.") from error
        return recording

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, write: bool = False) -> Recording:
        """An existing recording; `write=True` locks it, and clears away what unfinished epochs left."""
        folder = local_folder(path).absolute()  # Spark resolves relative paths against a folder of its own
        if not (folder / LOG).is_file():
            hint = None
            if folder.is_dir() and any((p / LOG).is_file() for p in folder.iterdir() if p.is_dir()):
                hint = f"{folder} is a folder of runs: name one of them (`samovar runs --dir {folder}` lists them)."
            raise RecordingNotFound(f"Expected a recording at {folder}, found none.", hint=hint)
        next(read_log(folder / LOG), None)  # checks the format
        recording = cls(folder)
        if not write:
            return recording
        try:
            recording._lock_for_writing()
            recording.sweep()
        except BaseException as error:
            recording.close()
            if not isinstance(error, OSError):
                raise
            raise StorageProblem(
                f"The recording {folder} cannot be written: {error.strerror}.",
                hint="Looking at it works. To go on, free some space if the disk is full; else copy it to where it can "
                "be written, or fork it elsewhere: past.jump(...).fork(record=...).",
            ) from error
        return recording

    def _lock_for_writing(self) -> None:
        self._lock = _Lock(self.path)
        self.log = Log(self.path / LOG, may_write=self._lock.lease.check)

    def close(self) -> None:
        """Release the lock."""
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
        except OSError:  # no such file, or locks are not kept here
            pass
        return Lease.is_held(self.path)

    def sweep(self, *, failed: bool = False) -> None:
        """Remove what unfinished epochs left. `failed`: keep the states that lead to a failure."""
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
        """All facts of the log so far."""
        return list(read_log(self.path / LOG))

    def history(self) -> History:
        """The state of the run that the facts add up to."""
        return History.of(read_log(self.path / LOG))

    def epoch_folder(self, epoch: EpochCommitted) -> Path:
        """The folder of a committed epoch's files."""
        return self.attempt_folder(epoch.epoch, epoch.attempt)

    def attempt_folder(self, epoch: int, attempt: str) -> Path:
        """Where an attempt at an epoch writes."""
        return self.path / "epochs" / f"{epoch:06d}-{attempt}"

    def parts(
        self, kind: str, operator: str, epochs: Iterable[EpochCommitted], *, check: bool = True
    ) -> list[Path]:
        """The folders an operator filled in the given epochs, in order.

        `check`: their files are compared with what was committed (RecordingCorrupt); each is read once by a process.
        """
        within = f"{kind}/{slug_unique(operator)}"
        folders = [
            (self.checked_folder(e, within) if check else self.epoch_folder(e)) / within for e in epochs
        ]
        return [folder for folder in folders if folder.is_dir()]

    def checked_folder(self, epoch: EpochCommitted, within: str) -> Path:
        """The folder of an epoch, of which all files below `within` are as they were committed."""
        folder = self.epoch_folder(epoch)
        for name, digest in epoch.files.items():
            if name.startswith(f"{within}/"):
                check(folder / name, digest)
        return folder

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

    # --- files and their digests ----------------------------------------------------------------------------------

    def sealed(self, folder: Path) -> dict[str, Digest]:
        """Flush an epoch's folder; the digests of its files, for the fact that commits it."""
        return seal(folder, durable=self.durable)

    def sealed_code(self, paths: Iterable[Path]) -> dict[str, Digest]:
        """Flush files of code; their digests, for the fact that puts them into force."""
        digests = seal_files(paths, durable=self.durable)
        if digests and self.durable:
            flush(self.path / "code")
        return self._by_name(digests)

    def sealed_start(self) -> dict[str, Digest]:
        """Flush all that a run begins with, and the recording's own name; the digests, for the first fact."""
        files = [p for p in self.path.glob("*.json") if p.name != "attach.json"]
        folders = [self.path.parent, self.path]
        for name in ("code", "inputs"):
            inside, below = contents(self.path / name)
            files += inside
            folders += below
        digests = seal_files(files, durable=self.durable)
        for folder in folders if self.durable else ():
            flush(folder)
        if self.durable:
            with contextlib.suppress(PermissionError):  # the folder of runs may be new itself
                flush(self.path.parent.parent)
        return self._by_name(digests)

    def _by_name(self, digests: Mapping[Path, Digest]) -> dict[str, Digest]:
        return {path.relative_to(self.path).as_posix(): digest for path, digest in digests.items()}

    def start_digests(self) -> dict[str, Digest]:
        """The digests of the files a run begins with, from the first fact; empty before that is written."""
        if self._start is None:
            first = next(read_log(self.path / LOG), None)
            if not isinstance(first, RunStarted):
                return {}
            self._start = first.files
        return self._start

    def check_start(self, within: str) -> None:
        """Raise RecordingCorrupt when a file that the run began with, or one below it, is not as it was."""
        for name, digest in self.start_digests().items():
            if name == within or f"/{within}/" in f"/{name}":
                check(self.path / name, digest, hint=DAMAGED_START)

    def read_code(self, operator: str, version: int = 0, files: Mapping[str, Digest] | None = None) -> bytes:
        """An operator's pickled code; `files`: the digests of the fact that put a later version into force."""
        path = self.code_path(operator, version)
        known = self.start_digests() if files is None else files
        digest = known.get(path.relative_to(self.path).as_posix())
        if digest is not None:
            hint = "Pass the workflow (past.resume(flow=flow)), or restore the file from a copy."
            check(path, digest, hint=hint)
        return path.read_bytes()

    def code_path(self, operator: str, version: int = 0) -> Path:
        """Where an operator's code lies: what it began with, or a later version."""
        number = f".{version}" if version else ""
        return self.path / "code" / f"{slug_unique(operator)}{number}.pkl"

    def whole_epochs(
        self, history: History, *, moved: Callable[[EpochCommitted, str], bool]
    ) -> tuple[int, list[str]]:
        """The number of epochs after which a run can go on, and the problems with files that keep it from more.

        Reads all that going on and the results need: not states at marks, kept rows and decisions, which only looking
        back needs. `moved`: whether a file of a result lies at its path by now.
        """
        needed: list[tuple[int, Path, Digest]] = []
        for epoch in history.epochs:
            folder = self.epoch_folder(epoch)
            for name, digest in epoch.files.items():
                if name.split("/", 1)[0] in _NEEDED and not moved(epoch, name):
                    needed.append((epoch.epoch, folder / name, digest))
        with ThreadPoolExecutor(THREADS) as pool:
            checked = list(pool.map(lambda n: (n[0], problem_of(n[1], n[2])), needed))
        damaged = [(number, problem) for number, problem in checked if problem is not None]
        count = min((number for number, _ in damaged), default=len(history.epochs))
        problems = [problem for _, problem in damaged]
        known: dict[Path, str | None] = {}
        while count and (bad := self._damaged_states(history.epochs[:count], known)):
            problems += [problem for problem in bad if problem not in problems]
            count -= 1
        return count, problems

    def _damaged_states(self, epochs: list[EpochCommitted], known: dict[Path, str | None]) -> list[str]:
        """What is wrong with the files that give the states at the end of some epochs."""
        problems = []
        for name in {n for e in epochs for n in e.state}:
            for bucket, files in self.state_files(name, epochs).items():
                for path, epoch in files:
                    if path not in known:
                        kind = (bucket, path.suffix == ".full")
                        size = next(f.size for f in epoch.state[name] if (f.bucket, f.full) == kind)
                        known[path] = state_problem(path, size)
                    if (problem := known[path]) is not None:
                        problems.append(problem)
        return problems

    def write_json(self, name: str, value: Any) -> None:
        """Write a small file of plain data whole or not at all."""
        write_file(self.path / name, json.dumps(value, indent=1, default=str))

    def read_json(self, name: str) -> Any:
        """Read a small file of plain data, after a check of its digest."""
        self.check_start(name)
        try:
            return json.loads((self.path / name).read_text())
        except (OSError, ValueError) as error:
            raise RecordingCorrupt(f"{self.path / name} cannot be read: {error}.") from error

    def sizes(self) -> dict[str, int]:
        """Bytes by kind: log, results, state, marks (states inside epochs), kept (rows given up to them), and so on."""
        sizes = dict.fromkeys(_KINDS, 0)
        for folder, _, files in os.walk(self.path):
            parts = Path(folder).relative_to(self.path).parts
            within = parts[2:3] if parts[:1] == ("epochs",) else parts[:1]
            for file in files:
                kind = "log" if file == LOG else within[0] if within else "other"
                kind = "marks" if kind == "state" and is_mark(Path(file)) else kind
                sizes[kind if kind in sizes else "other"] += (Path(folder) / file).stat().st_size
        return sizes


def slug_unique(operator: str) -> str:
    """A folder name for an operator: readable, and different for different names."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", operator)
    if plain == operator and not plain.startswith((".", "_")):
        return plain
    return f"{plain.lstrip('._')}-{zlib.crc32(operator.encode()):08x}"


def link(source: str, target: str) -> None:
    """Give a file another name too, at no cost; copy it where the other name is on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def find_recordings(folder: str | os.PathLike[str]) -> list[Path]:
    """The recordings in a folder, newest last."""
    root = local_folder(folder)
    if not root.is_dir():
        return []
    return sorted((p for p in root.iterdir() if (p / LOG).is_file()), key=lambda p: (p / LOG).stat().st_ctime)


class _Lock:
    """The right to write a recording: a lock, which ends with the process, and a lease where locks are not kept."""

    def __init__(self, path: Path) -> None:
        self._file = (path / "LOCK").open("a")
        try:
            self._take(path)
            self.lease = Lease(path)
        except BaseException:
            self._file.close()
            raise

    def _take(self, path: Path) -> None:
        for wait in (0.05, 0.1, 0.2, None):  # another process may just be testing the lock
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if wait is None:
                    raise in_use(path) from None
                time.sleep(wait)
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
                    raise
                return  # this file system has no locks: only the lease protects

    def close(self) -> None:
        """Release both."""
        self.lease.close()
        self._file.close()
