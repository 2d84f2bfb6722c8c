"""The journal of a shared document: its updates, appended one by one, and merged into one now and then.

A record is its length, its checksum and its bytes. Guarantee: an update that was appended is there after the process is
killed at any instant; a record that was cut off while it was written is dropped on opening, and all before it are kept.
Not promised: the last updates after a power cut (records are not forced to the disk one by one; compaction is).
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import IO

from samovar.files import write_file

__all__ = ["LEAST", "Journal"]

_HEAD = struct.Struct("<II")
LEAST = 64 * 1024
"""Bytes appended before compaction is worth it."""


class Journal:
    """An append-only file of updates. Not for several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.updates, whole = _read(path)
        """What the file held when it was opened."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = open(path, "ab")  # noqa: SIM115  open until close
        if self._file.tell() > whole:
            self._file.truncate(whole)
            self._file.seek(0, os.SEEK_END)
        self._base = whole
        self._size = whole

    def append(self, update: bytes) -> None:
        """Add an update; it is with the operating system when this returns."""
        self._file.write(_record(update))
        self._file.flush()
        self._size += _HEAD.size + len(update)

    def wants_compaction(self, least: int = LEAST) -> bool:
        """Whether the file has grown by that many bytes since it was compact, and to twice of what it was."""
        return self._size - self._base > max(least, self._base)

    def compact(self, whole: bytes) -> None:
        """Replace all updates by one that holds the whole document."""
        write_file(self.path, _record(whole), durable=True)
        self._file.close()
        self._file = open(self.path, "ab")  # noqa: SIM115  open until close
        self._base = self._size = _HEAD.size + len(whole)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _record(update: bytes) -> bytes:
    return _HEAD.pack(len(update), zlib.crc32(update)) + update


def _read(path: Path) -> tuple[list[bytes], int]:
    """The sound records from the start, and where they end."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    updates: list[bytes] = []
    at = 0
    while at + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, at)
        update = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(update) < length or zlib.crc32(update) != checksum:
            break
        updates.append(update)
        at += _HEAD.size + length
    return updates, at
