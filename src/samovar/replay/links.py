"""Files that two recordings share: hard links, which cost nothing and outlive either of them."""

from __future__ import annotations

import os
import shutil

__all__ = ["link"]


def link(source: str, target: str) -> None:
    """Have a file under another name too; a copy of it where the other name is on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
