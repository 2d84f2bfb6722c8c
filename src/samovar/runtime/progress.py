"""The progress of a run at an instant, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

__all__ = ["GOING", "OperatorProgress", "Progress", "Status"]

Status = Literal[
    "starting",
    "running",
    "pausing",
    "paused",
    "holding",
    "completed",
    "failed",
    "stopped",
    "interrupted",
]
"""`holding`: a tuple that raised waits for a decision; `interrupted`: a recording without an end that no process is
writing."""
GOING = ("starting", "running", "pausing", "paused", "holding")
"""States of a run that has not ended."""


@dataclass(frozen=True)
class OperatorProgress:
    """Counters of one operator so far. `rate` is tuples taken (for a source: given) a second in the last epoch."""

    name: str
    kind: str
    taken: int
    given: int
    rate: float = 0.0
    state_entries: int = 0
    state_bytes: int = 0


@dataclass(frozen=True)
class Progress:
    """A run at an instant. `fraction` is the share of input bytes processed, over all levels."""

    run: str
    workflow: str
    status: Status
    epoch: int
    fraction: float
    seconds: float
    operators: tuple[OperatorProgress, ...] = ()
    rejected: dict[str, int] = field(default_factory=dict)
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data
