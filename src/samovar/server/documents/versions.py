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
    """Save a version; returns its entry in `list_versions`."""
    name = name.strip()
    if not name or len(name) > _LETTERS:
        raise WorkspaceError(
            f"Expected a name of 1 to {_LETTERS} letters for the version, got {len(name)}.",
            hint="Say what it is: 'before the currency fix'.",
        )
    versions = folder / "versions"
    versions.mkdir(exist_ok=True)
    number = max((v["version"] for v in list_versions(folder)), default=0) + 1
    head = {"version": number, "name": name, "by": by[:_LETTERS], "at": time.time()}
    version = {**head, "document": document, "layout": dict(layout), "comments": list(comments)}
    write_file(versions / f"{number}.json", json.dumps(version))
    return head


def list_versions(folder: Path) -> list[dict[str, Any]]:
    """The versions, the newest first: version, name, by, at."""
    files = [path for path in folder.glob("versions/*") if _FILE.match(path.name)]
    versions = [json.loads(path.read_text("utf-8")) for path in files]
    heads = [{key: version[key] for key in ("version", "name", "by", "at")} for version in versions]
    return sorted(heads, key=lambda head: head["version"], reverse=True)


def read_version(folder: Path, number: int) -> dict[str, Any]:
    """A version with its document, layout and comments."""
    path = folder / "versions" / f"{number}.json"
    if not path.is_file():
        known = ", ".join(str(v["version"]) for v in list_versions(folder)) or "none"
        raise NotInWorkspace(f"No version {number} of the workflow.", hint=f"Versions: {known}.")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data
