"""Digests of files: a commit flushes the files it names and notes their digests, which are checked on use.

`seal` is called once for a folder, right before the log names it: every file is read while it is still in memory,
flushed, and its size and CRC-32 go into the log's line. `check` compares a file with that; a file that was sealed or
checked by this process is not read again while its inode, size and times stay as they were, so that an epoch pays for
its own files only. CRC-32 finds every flipped bit and every burst of up to 32 bits, but not deliberate changes.

State files carry a checksum of their own (state_files.py) and are flushed here, not digested. What Spark leaves beside
its files is not needed: hidden `.crc` files, which readers other than Spark never look at, are removed.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import msgspec

from samovar.errors import RecordingCorrupt

__all__ = [
    "DAMAGED",
    "DAMAGED_START",
    "THREADS",
    "Digest",
    "check",
    "contents",
    "flush",
    "flush_tree",
    "forget",
    "is_known",
    "note_sound",
    "problem_of",
    "seal",
    "seal_files",
]

THREADS = 4
"""Flushes wait for the disk, which takes several together; more threads gained nothing (14 files: 4.0 ms, then 2.5)."""
PIECE = 1 << 20
"""Bytes read at a time: large files must not fill the driver's memory."""
MOST = 200_000
"""Files remembered as sound, at most: about 60 MB. Beyond, all are forgotten and read again when they are used."""

DAMAGED = (
    "Restore the file from a copy; or go back to the last epoch whose files are whole and compute the rest again: "
    "past.resume() or `samovar run --resume`."
)
"""What to do about a damaged file of an epoch."""
DAMAGED_START = "Restore the file from a copy, or start the workflow again."
"""What to do about a damaged file that a run needs to be resumed."""

_OWN_CHECKSUM = (".delta", ".full", ".mark")
_sound: dict[str, tuple[int, ...]] = {}
"""Files by path as they were when last sealed or checked: CRC-32, inode, size and times."""


class Digest(msgspec.Struct, frozen=True, array_like=True):
    """A file's size and the CRC-32 of its bytes."""

    size: int
    crc: int


def seal(folder: Path, *, durable: bool = True) -> dict[str, Digest]:
    """Flush all that lies in an epoch's folder, and return the digests of its files by relative path.

    `durable`: whether it has to outlive a loss of power; otherwise nothing is flushed.
    """
    files, folders = contents(folder)
    state = folder / "state"
    states = {f for f in files if state in f.parents and f.suffix.startswith(_OWN_CHECKSUM)}
    digests = seal_files((f for f in files if f not in states), durable=durable)
    if durable:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(flush, states))
            list(pool.map(flush, [folder.parent, *folders]))
    return {f.relative_to(folder).as_posix(): d for f, d in digests.items()}


def contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files and folders below a folder that count, and the folder; Spark's hidden checksums are removed."""
    files, folders = [], []
    for place, inside, names in os.walk(folder):
        inside[:] = [n for n in inside if n != "errors"]
        folders.append(Path(place))
        for name in names:
            if name.startswith(".") and name.endswith(".crc"):
                Path(place, name).unlink(missing_ok=True)
            elif not name.startswith((".", "_", "ran-")):  # signs without content
                files.append(Path(place, name))
    return files, folders


def seal_files(files: Iterable[Path], *, durable: bool = True) -> dict[Path, Digest]:
    """The digests of some files, which are flushed on the way; their folders are not."""
    with ThreadPoolExecutor(THREADS) as pool:
        chosen = list(files)
        return dict(zip(chosen, pool.map(lambda f: _sealed(f, durable), chosen), strict=True))


def flush(path: Path) -> None:
    """Flush a file's bytes, or the names in a folder, to the disk, so that they outlive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path, *, copied: bool = False) -> None:
    """Flush all names below a folder. `copied`: and files that have no other name, which were copied there."""
    places = list(os.walk(folder))
    files = [Path(place) / name for place, _, names in places for name in names] if copied else []
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(flush, (f for f in files if f.stat().st_nlink == 1)))
        list(pool.map(flush, (Path(place) for place, _, _ in places)))


def is_known(path: Path) -> bool:
    """Whether this process found a file sound, and it has not been touched since."""
    known = _sound.get(str(path))
    return known is not None and known == _marks(path.stat(), known[0])


def note_sound(path: Path, status: os.stat_result, crc: int) -> None:
    """Remember that a file is sound; `status`: its status before it was read."""
    if len(_sound) >= MOST:
        _sound.clear()
    _sound[str(path)] = _marks(status, crc)


def forget(path: Path) -> None:
    """Let a file be read again when it is used next: it turned out to be damaged."""
    _sound.pop(str(path), None)


def check(path: Path, digest: Digest, *, hint: str = DAMAGED) -> None:
    """Raise RecordingCorrupt, with the file's name and what to do about it, when a file is not as it was."""
    if (problem := problem_of(path, digest)) is not None:
        raise RecordingCorrupt(problem, hint=hint)


def problem_of(path: Path, digest: Digest) -> str | None:
    """What is wrong with a file, in a sentence; None: nothing."""
    try:
        status = path.stat()
        if status.st_size != digest.size:
            return f"Expected {digest.size} bytes in {path}, found {status.st_size}."
        if _sound.get(str(path)) == _marks(status, digest.crc):
            return None
        with path.open("rb") as file:
            crc = _crc(file)
    except FileNotFoundError:
        return f"{path} is gone."
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}."
    if crc != digest.crc:
        return f"{path} does not match its checksum: expected {digest.crc:08x}, found {crc:08x}."
    note_sound(path, status, crc)
    return None


def _sealed(path: Path, durable: bool) -> Digest:
    with path.open("rb") as file:
        crc = _crc(file)
        if durable:
            os.fsync(file.fileno())
        status = os.fstat(file.fileno())
    note_sound(path, status, crc)
    return Digest(status.st_size, crc)


def _crc(file: IO[bytes]) -> int:
    crc = 0
    while piece := file.read(PIECE):
        crc = zlib.crc32(piece, crc)
    return crc


def _marks(status: os.stat_result, crc: int) -> tuple[int, ...]:
    return crc, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
