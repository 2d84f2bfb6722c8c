"""Named versions of a workflow: document, places of its operators, comments; one file each, never changed."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from samovar.errors import NotInWorkspace, WorkspaceError
from samovar.files import write_file

__all__ = ["list_versions", "read_version", "save_version"]

_FILE = re.compile(r"(\d{1,6})\.json\Z")
_LETTERS = 200


def save_version(
    folder: Path,
    name: str,
    by: str,
    document: Mapping[str, Any],
    layout: Mapping[str, tuple[float, float]],
    comments: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Keep a version; returns what `list_versions` says of it."""
    name = name.strip()
    if not name or len(name) > _LETTERS:
        raise WorkspaceError(
            f"Expected a name of 1 to {_LETTERS} letters for the version, got {len(name)}.",
            hint="Say what it is: 'before the currency fix'.",
        )
    versions = folder / "versions"
    versions.mkdir(exist_ok=True)
    number = max((v["version"] for v in list_versions(folder)), default=0) + 1
    made = {"version": number, "name": name, "by": by[:_LETTERS], "at": time.time()}
    kept = {**made, "document": document, "layout": dict(layout), "comments": list(comments)}
    write_file(versions / f"{number}.json", json.dumps(kept))
    return made


def list_versions(folder: Path) -> list[dict[str, Any]]:
    """The versions, the newest first: version, name, by, at."""
    found: list[dict[str, Any]] = []
    if (folder / "versions").is_dir():
        for path in (folder / "versions").iterdir():
            if _FILE.match(path.name):
                data = json.loads(path.read_text("utf-8"))
                found.append({k: data[k] for k in ("version", "name", "by", "at")})
    return sorted(found, key=lambda v: v["version"], reverse=True)


def read_version(folder: Path, number: int) -> dict[str, Any]:
    """A version with its document, layout and comments."""
    path = folder / "versions" / f"{number}.json"
    if not path.is_file():
        known = ", ".join(str(v["version"]) for v in list_versions(folder)) or "none"
        raise NotInWorkspace(f"Expected a version of the workflow, got {number}.", hint=f"Known: {known}.")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data
