"""A lease names the writer of a recording, for file systems that do not keep locks (NFS without locks, FUSE).

The lease is made with exclusive creation, which every shared file system keeps, and touched every `BEAT` seconds while
its holder lives. A process that finds a lease checks whether its holder is alive: on the same machine by its process;
elsewhere by watching whether the file is still being touched, which takes `PATIENCE` seconds. A lease whose holder is
gone is taken over. The holder reads its lease before each fact (see log.py), so that a holder that was wrongly taken
for dead stops before it writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
import weakref
from pathlib import Path
from typing import Any

from samovar.errors import RecordingInUse

__all__ = ["Lease"]

FILE = "WRITER"
BEAT = 2.0
"""Seconds between two signs of life: seldom enough to cost nothing, also on a remote disk."""
PATIENCE = 3 * BEAT
"""Seconds without one after which a holder on another machine counts as gone: it may have missed one or two."""

_held: weakref.WeakValueDictionary[str, Lease] = weakref.WeakValueDictionary()
"""The leases of this process, by token: a lease that was garbage-collected without being closed is not held."""


class Lease:
    """The right to write a recording, until it is closed, forgotten or taken over."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._token = uuid.uuid4().hex
        while not self._made():
            holder = _read(self._path)
            if holder is not None and _is_alive(holder, self._path):
                raise in_use(folder)
            # of several processes that want it, one can move the old lease away; the others find the new one
            aside = self._path.with_name(f".{FILE}.{self._token}")
            with contextlib.suppress(FileNotFoundError):
                os.rename(self._path, aside)
                aside.unlink()
        _held[self._token] = self
        stop = threading.Event()
        self._end = weakref.finalize(self, stop.set)
        threading.Thread(target=_beat, args=(self._path, stop), name="samovar-lease", daemon=True).start()

    def _made(self) -> bool:
        content = {"token": self._token, **_here(), "folder": self._path.parent.stat().st_ino}
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(content, file)
        except OSError:  # a full disk: no other process may find half of it
            self._path.unlink(missing_ok=True)
            raise
        return True

    def check(self) -> None:
        """Raise RecordingInUse when another process holds the lease by now."""
        holder = _read(self._path)
        if holder is None or holder.get("token") != self._token:
            raise in_use(self._path.parent)

    def close(self) -> None:
        """End the lease and remove its file."""
        self._end()
        _held.pop(self._token, None)
        holder = _read(self._path)
        if holder is not None and holder.get("token") == self._token:
            self._path.unlink(missing_ok=True)

    @staticmethod
    def is_held(folder: Path) -> bool:
        """Whether a process seems to hold a recording's lease now. Does not wait for its next sign of life."""
        path = folder / FILE
        holder = _read(path)
        return holder is not None and _is_alive(holder, path, waits=False)


def in_use(folder: Path) -> RecordingInUse:
    """The error for the second process that wants to write."""
    return RecordingInUse(
        f"Another process writes the recording {folder} now.",
        hint="Wait for it to end, or stop it; `samovar show` can look at it meanwhile.",
    )


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT):
        with contextlib.suppress(OSError):
            os.utime(path)


def _read(path: Path) -> dict[str, Any] | None:
    """The content of a lease; None: there is none, or it is being written."""
    for _ in range(20):
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):  # just made, and not written yet
            time.sleep(0.01)
        else:
            return content if isinstance(content, dict) else None
    return None


def _here() -> dict[str, Any]:
    """This process, described so that others can find out whether it lives."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "machine": _machine(), "pid": pid, "began": _began(pid)}


def _machine() -> str:
    """Identifies what numbers processes: one boot of one machine, or one container of it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return socket.gethostname()


def _began(pid: int) -> str:
    """When a process began, in the units of its system; empty: it does not run."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else rest[18]
    except OSError:
        pass
    if not Path("/proc/self/stat").exists():
        with contextlib.suppress(OSError):
            os.kill(pid, 0)
            return "alive"
    return ""


def _is_alive(holder: dict[str, Any], path: Path, *, waits: bool = True) -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    if holder.get("machine") == _machine():
        if holder.get("folder") != path.parent.stat().st_ino:
            return False  # it came here with a copy of the recording
        pid = int(holder.get("pid", 0))
        if pid == os.getpid():
            return holder.get("token") in _held
        return bool(_began(pid)) and _began(pid) == holder.get("began")
    if not waits:
        return abs(time.time() - status.st_mtime) < 2 * PATIENCE
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.1)
        try:
            if path.stat().st_mtime_ns != status.st_mtime_ns:
                return True
        except FileNotFoundError:  # given back meanwhile
            return False
    return False
