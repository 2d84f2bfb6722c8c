"""Folders outside of recordings: the cache of chunks, and scratch for runs that leave no recording.

On a cluster executors read and write both, so they must be where all hosts see them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["cache_folder", "is_scratch", "new_scratch"]

_PREFIX = "samovar-"


def cache_folder() -> Path:
    """Where chunks are cached: below `$SAMOVAR_CACHE`, or `~/.cache/samovar`."""
    return Path(os.environ.get("SAMOVAR_CACHE") or Path.home() / ".cache" / "samovar") / "chunks"


def new_scratch(what: str = "", root: Path | None = None) -> Path:
    """A new folder for a run that leaves no recording: in `root`, `$SAMOVAR_SCRATCH`, or where temporary files go."""
    root = root or _scratch_root()
    root.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{what}", dir=root))


def is_scratch(folder: Path) -> bool:
    """Whether a folder is, or is inside, a folder of `new_scratch`."""
    root = _scratch_root()
    return folder.is_relative_to(root) and str(folder.relative_to(root)).startswith(_PREFIX)


def _scratch_root() -> Path:
    return Path(os.environ.get("SAMOVAR_SCRATCH") or tempfile.gettempdir()).absolute()
