"""What people did to a run and noted about its moments: one file of lines for each recording, in the workspace.

An entry is a JSON object. Entries of kind `did` hold who did what (paused, inspected, ...); entries of kind `note` are
pinned to a moment by its address (`journeys.py`). Entries are appended; a later line of kind `removed` names a note
that was removed. When a notebook is full, the oldest deeds are dropped for new ones: a full notebook never keeps people
from acting on a run. Notes stay until somebody removes them. Each change is passed to `publish`, on the thread that
made it.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from samovar.errors import NotInWorkspace, WorkspaceError
from samovar.files import write_file

__all__ = ["Notebooks"]

_LETTERS = 2000
_MOST = 5000
"""Entries of a run."""


class Notebooks:
    """The notebooks of a workspace, by run. For any thread."""

    def __init__(self, folder: Path, publish: Callable[[dict[str, Any]], None]) -> None:
        self._folder = folder
        self._publish = publish
        self._lock = threading.Lock()

    def read(self, run: str) -> list[dict[str, Any]]:
        """The entries of a run in the order of time."""
        with self._lock:
            return self._entries(run)

    def did(self, run: str, entry: dict[str, Any]) -> None:
        """Add what somebody did."""
        self._add(run, {"kind": "did", "id": secrets.token_hex(6), **entry})

    def note(self, run: str, by: str, text: str, address: dict[str, Any], epoch: int) -> dict[str, Any]:
        """Pin a note to a moment."""
        text = text.strip()
        if not 1 <= len(text) <= _LETTERS:
            raise WorkspaceError(f"Expected a note of 1 to {_LETTERS} letters, got {len(text)}.")
        entry = {
            "kind": "note",
            "id": secrets.token_hex(6),
            "at": time.time(),
            "by": by,
            "text": text,
            "address": address,
            "epoch": epoch,
        }
        self._add(run, entry)
        return entry

    def remove(self, run: str, id: str) -> None:
        """Remove a note."""
        with self._lock:
            if not any(e["id"] == id and e["kind"] == "note" for e in self._entries(run)):
                raise NotInWorkspace(f"No note {id!r} on {run}.")
            self._append(run, {"kind": "removed", "id": id})
        self._publish({"run": run})

    def _add(self, run: str, entry: dict[str, Any]) -> None:
        with self._lock:
            entries = self._entries(run)
            if len(entries) >= _MOST:
                notes = sum(e["kind"] == "note" for e in entries)
                if entry["kind"] == "note" and notes >= _MOST // 2:
                    raise WorkspaceError(
                        f"The notebook of {run} is full: it has {notes} notes.",
                        hint="Remove some of them.",
                    )
                self._make_room(run, entries)
            self._append(run, entry)
        self._publish({"run": run})

    def _make_room(self, run: str, entries: list[dict[str, Any]]) -> None:
        """Keep the notes and the newer deeds. Drops a quarter at once, because it writes the whole file again."""
        deeds = [e["id"] for e in entries if e["kind"] != "note"]
        gone = set(deeds[: max(1, min(len(deeds), _MOST // 4))])
        deed = {"kind": "did", "id": secrets.token_hex(6), "at": time.time(), "by": "the server"}
        deed["did"] = f"dropped the {len(gone)} oldest entries: the notebook was full"
        kept = [deed] * bool(gone) + [e for e in entries if e["id"] not in gone]
        write_file(self._path(run), "".join(json.dumps(e) + "\n" for e in kept))

    def _path(self, run: str) -> Path:
        return self._folder / f"{run}.jsonl"

    def _append(self, run: str, entry: dict[str, Any]) -> None:
        self._folder.mkdir(exist_ok=True)
        with self._path(run).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def _entries(self, run: str) -> list[dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = {}
        try:
            lines = self._path(run).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:  # cut short by a crash
                continue
            if entry["kind"] == "removed":
                entries.pop(entry["id"], None)
            else:
                entries[entry["id"]] = entry
        return list(entries.values())
