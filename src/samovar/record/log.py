"""The log of a run: an append-only file of facts, one JSON line each, with a checksum.

Guarantee: a fact that `append` returned from has been handed to the disk; a line cut short by a crash is recognised and
dropped on the next open; a damaged line before the end is reported with the number of facts before it, which stay
usable. Facts stay true: nothing is rewritten. The first fact carries the format's version, which readers check.

A line is `<crc32 of the JSON, 8 hex digits> <JSON>\\n`. See docs/reference/recording.md.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from samovar.errors import RecordingCorrupt, RecordingInUse, RecordingTooNew, StorageProblem
from samovar.positions import Position
from samovar.record.digests import Digest

__all__ = [
    "FORMAT",
    "WHOLE_FILES",
    "Counters",
    "EpochCommitted",
    "EpochFailed",
    "Fact",
    "Interaction",
    "InteractionsMade",
    "Log",
    "LogicChanged",
    "ResultPublished",
    "RunEnded",
    "RunResumed",
    "RunStarted",
    "StateFile",
    "TupleDecided",
    "TupleHeld",
    "read_log",
]

FORMAT = 3
"""The newest format this Samovar writes and reads.

2: facts name files with digests, a resume may cut epochs off. 3: a unit may be a range of rows inside a file.
"""
WHOLE_FILES = 2
"""The format whose readers can read a recording in which every unit is a file or chunk."""


class Counters(msgspec.Struct, frozen=True, array_like=True):
    """Tuples an operator took in on each port, and gave out, in one epoch."""

    taken: tuple[int, ...] = ()
    given: int = 0


class StateFile(msgspec.Struct, frozen=True, array_like=True):
    """A Python operator's state file written in an epoch, relative to the attempt's folder."""

    bucket: int
    full: bool
    size: int
    entries: int = 0


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact", omit_defaults=True):
    """Something that happened, at a time (seconds since 1970)."""

    at: float


class RunStarted(Fact, tag="run-started", frozen=True, kw_only=True):
    """The first fact of every log."""

    format: int
    reader: int = 0
    """The oldest format whose readers can read the recording (0: that of the recording itself)."""
    run: str
    workflow: str
    samovar: str
    spark: str
    python: str
    options: dict[str, Any] = {}
    parent: str | None = None
    files: dict[str, Digest] = {}
    """Workflow, sources, code and kept inputs, by their path in the recording."""


class RunResumed(Fact, tag="run-resumed", frozen=True, kw_only=True):
    """A process took the run up again after `epoch` epochs: those the log has from there on count no longer."""

    epoch: int
    damaged: tuple[str, ...] = ()
    """The damaged files because of which they do not count, by their path in the recording."""


class EpochCommitted(Fact, tag="epoch", frozen=True, kw_only=True):
    """An epoch is whole: its deltas and results lie in the folder of this attempt and count from here on."""

    epoch: int
    level: int
    levels: int = 1
    """How many levels the epoch closed in one go."""
    attempt: str
    units: dict[str, tuple[int, int]] = {}
    """For each source of the level, the range of its units this epoch took."""
    last: bool = False
    """Whether the level ended with this epoch."""
    seconds: float = 0.0
    counters: dict[str, Counters] = {}
    state: dict[str, tuple[StateFile, ...]] = {}
    rejected: dict[str, int] = {}
    bytes: int = 0
    """Input bytes this epoch took."""
    marks: tuple[Position, ...] = ()
    """Positions inside the epoch at which the state of Python operators was kept."""
    code: dict[str, int] = {}
    """In an epoch that converts states for other code: the versions in force from here on."""
    switched: dict[str, int] = {}
    """In an epoch inside which operators switched to other code: the versions in force from the next one on."""
    files: dict[str, Digest] = {}
    """The files of the epoch's folder, by their path in it; state files carry checksums of their own."""
    code_files: dict[str, Digest] = {}
    """Versions of code that `code` and `switched` name, by their path in the recording."""


class Interaction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to see the state at a point of the run: after `tuples` of an operator and all that came of them.

    An interaction that a condition made (`by` is "condition") names the tuple by its position instead.
    """

    id: str
    at: float
    operator: str
    epoch: int
    tuples: int | None = None
    position: Position | None = None
    note: str = ""
    by: str = "person"


class InteractionsMade(Fact, tag="interactions", frozen=True, kw_only=True):
    """Interactions whose moments are known since an epoch was committed."""

    made: tuple[Interaction, ...]


class EpochFailed(Fact, tag="epoch-failed", frozen=True, kw_only=True):
    """An epoch that could not be completed: what it covered, so that its failure can be looked at.

    Where a Python operator raised at a tuple: which one, and where its input tuple lies, or that of the operator that
    heads its chain (`position`; `taken`: how many that one had taken with it, if it is one instance).
    """

    epoch: int
    level: int
    levels: int = 1
    units: dict[str, tuple[int, int]] = {}
    first: bool = False
    last: bool = False
    operator: str = ""
    position: Position = ()
    taken: int = 0
    attempt: str = ""
    """The attempt whose states at marks are kept; empty: none are."""
    marks: tuple[Position, ...] = ()
    """The positions of these marks."""


class TupleHeld(Fact, tag="tuple-held", frozen=True, kw_only=True):
    """An operator raised on a tuple, and the run stopped in place to wait for a decision."""

    hold: str
    epoch: int
    operator: str
    row: str
    """The tuple as text."""
    error: str


class TupleDecided(Fact, tag="tuple-decided", frozen=True, kw_only=True):
    """What was decided about a held tuple: "retry", "edit", "skip" or "skip-all".

    The tuples of a committed epoch that were skipped or replaced are in the epoch's folder.
    """

    hold: str
    verdict: str
    operator: str = ""
    like: str = ""
    """With "skip-all": the error that all tuples skipped from here on have in common."""
    place: tuple[int, ...] = ()
    """Epoch, bucket, port and number of a tuple that was skipped or replaced."""
    row: bytes = b""
    """With "edit": the tuple that took its place, pickled."""


class LogicChanged(Fact, tag="logic-changed", frozen=True, kw_only=True):
    """From an epoch on, operators run other code: version `v` of operator FE lies in `code/FE.<v>.pkl`.

    Where a state is converted for the new code, the epoch that does it names the versions itself (`code`).
    """

    epoch: int
    operators: dict[str, int]
    files: dict[str, Digest] = {}
    """Where that code lies, by the path in the recording."""


class ResultPublished(Fact, tag="result-published", frozen=True, kw_only=True):
    """The files of a `write` operator now lie at their path."""

    operator: str
    path: str
    files: int


class RunEnded(Fact, tag="run-ended", frozen=True, kw_only=True):
    """The run came to an end: completed, failed or stopped. A failed or stopped run can be resumed."""

    status: str
    error: str | None = None
    operator: str | None = None


AnyFact = (
    RunStarted
    | RunResumed
    | EpochCommitted
    | EpochFailed
    | InteractionsMade
    | TupleHeld
    | TupleDecided
    | LogicChanged
    | ResultPublished
    | RunEnded
)
_decode = msgspec.json.Decoder(AnyFact).decode
_encode = msgspec.json.Encoder().encode


class Log:
    """The writing end. One process at a time (the store holds the lock); its threads take turns.

    Where two processes write nevertheless, because the file system has no locks, the second one stops at its next fact
    (RecordingInUse) and writes nothing: a fact is appended only while this process holds a file beside the log, made
    with exclusive creation, and only where this process wrote last. `may_write` raises when it may no longer write.
    """

    def __init__(self, path: Path, *, may_write: Callable[[], None] | None = None) -> None:
        self.path = path
        self._may_write = may_write
        self._fence = path.with_name(f".{path.name}.turn")
        self._fence.unlink(missing_ok=True)  # left by a process that died while it wrote
        self._lock = threading.Lock()
        self._length = _whole_length(path)
        self._file = path.open("ab", buffering=0)
        if self._length < self._file.tell():
            self._file.truncate(self._length)  # a line cut short by a crash: it was never promised

    def append(self, fact: Fact) -> None:
        """Write a fact and hand it to the disk before returning: the whole of it, or nothing (StorageProblem)."""
        body = _encode(fact)
        line = b"%08x %s\n" % (zlib.crc32(body), body)
        with self._lock, self._alone():
            self._write(line)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other process can append; raises RecordingInUse when one has done so."""
        if self._may_write is not None:
            self._may_write()
        for wait in (0.01, 0.05, 0.25, None):
            try:
                os.close(os.open(self._fence, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
                break
            except FileExistsError:
                if wait is None:
                    raise self._in_use() from None
                time.sleep(wait)
            except OSError as error:
                raise self._unwritten(error) from error
        try:
            # opened again: remote file systems may show an open file as it was
            with self.path.open("rb") as file:
                now = os.fstat(file.fileno())
            if now.st_size != self._length or not os.path.samestat(now, os.fstat(self._file.fileno())):
                raise self._in_use()
            yield
        except FileNotFoundError:
            raise self._in_use() from None
        finally:
            self._fence.unlink(missing_ok=True)

    def _in_use(self) -> RecordingInUse:
        return RecordingInUse(
            f"Another process has written the log {self.path} since this one did: this one stops.",
            hint="Its epochs up to there count. Look at what the other does: `samovar show`.",
        )

    def _unwritten(self, error: OSError) -> StorageProblem:
        return StorageProblem(
            f"The log {self.path} could not be written: {error}.",
            hint="Free some space and resume the run: everything committed before is kept.",
        )

    def _write(self, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
            self._length += len(line)
        except OSError as error:
            # the part that a full disk took must not stand before a later fact
            with contextlib.suppress(OSError):
                self._file.truncate(self._length)
            raise self._unwritten(error) from error

    def close(self) -> None:
        """Close the file; facts appended so far stay."""
        self._file.close()


def read_log(path: Path) -> Iterator[AnyFact]:
    """The facts in order. A last line cut short is dropped; damage before it raises RecordingCorrupt."""
    lines = path.read_bytes().split(b"\n")
    # empty when the file ends with a newline; else a line cut short, or damaged at its end
    tail = lines.pop()
    for number, line in enumerate(lines):
        body = line[9:]
        if len(line) < 10 or line[:9] != b"%08x " % zlib.crc32(body):
            raise RecordingCorrupt(
                f"Line {number + 1} of {path} does not match its checksum (of {len(lines)} lines).",
                hint=f"The {number} facts before it are sound.",
            )
        if number == 0:
            first = _check_format(body, path)
        try:
            yield _decode(body)
        except msgspec.ValidationError as error:
            raise _unknown(body, number, first, path, error) from None
    if len(tail) > 10 and tail[:9] == b"%08x " % zlib.crc32(tail[9:-1]):  # a whole line, but for its newline
        raise RecordingCorrupt(
            f"The end of the last line of {path} is damaged.",
            hint=f"The {len(lines)} facts before it are sound.",
        )


def _check_format(body: bytes, path: Path) -> dict[str, Any]:
    """The first fact as plain data, after a check that this Samovar can read the facts behind it."""
    first: dict[str, Any] = msgspec.json.decode(body)
    version = first.get("reader") or first.get("format", 0)
    if version > FORMAT:
        raise RecordingTooNew(
            f"{path.parent} has format {version}; this Samovar reads up to {FORMAT}.",
            hint=_update(first),
        )
    return first


def _unknown(
    body: bytes, number: int, first: dict[str, Any], path: Path, error: msgspec.ValidationError
) -> RecordingTooNew | RecordingCorrupt:
    """The error for a line whose bytes are sound but which is not a fact that this Samovar knows."""
    kind = msgspec.json.decode(body).get("fact")
    if kind in {fact.__struct_config__.tag for fact in AnyFact.__args__}:
        return RecordingCorrupt(
            f"Line {number + 1} of {path} is not a valid '{kind}' fact: {error}.",
            hint=f"The {number} facts before it are sound. {_update(first)}",
        )
    return RecordingTooNew(
        f"Line {number + 1} of {path} is a fact of the kind '{kind}', which this Samovar does not know.",
        hint=_update(first),
    )


def _update(first: dict[str, Any]) -> str:
    by = f" It was written by Samovar {first['samovar']}." if first.get("samovar") else ""
    return f"Update Samovar (pip install -U samovar) to open it.{by}"


def _whole_length(path: Path) -> int:
    """The length of the log up to the end of its last whole line."""
    return path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
