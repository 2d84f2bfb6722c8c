"""Names of runs and of attempts, and the hidden columns the engine adds to a frame."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime

__all__ = [
    "BUCKET",
    "CONTROL",
    "HIDDEN",
    "PORT",
    "VERSION",
    "new_attempt",
    "new_run_id",
    "slug",
]

HIDDEN = "__sv_"
"""How the names of hidden columns begin; users' columns may not begin so."""
BUCKET = "__sv_bucket"
"""The key partition a row goes to."""
CONTROL = "__sv_control"
"""0 for tuples; -1 and 1 for the rows without a tuple that begin and end a key partition."""
PORT = "__sv_port"
"""The input port of a Python operator that a row comes by."""
VERSION = "0.1.0"
"""Samovar's version, the same as the package's."""


def slug(name: str) -> str:
    """A name as part of a file name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-").lower() or "x"


def new_run_id(workflow: str) -> str:
    """Sorts by time, reads well, and does not repeat: `fraud-20260131-142501-3fa9`."""
    return f"{slug(workflow)}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def new_attempt() -> str:
    """Marks one attempt at an epoch, so that what a dead process still writes is never taken for ours."""
    return secrets.token_hex(4)
