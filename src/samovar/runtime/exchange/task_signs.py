"""Signs that a task leaves for the driver: empty files in the attempt's folder for failures."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from samovar.runtime.exchange.task import Task

__all__ = ["EpochAbandoned", "has_sign", "leave_sign"]

Sign = Literal["abandoned", "unattended"]
"""`abandoned`: the attempt does not count. `unattended`: the task did not reach the coordinator, and may lack code."""


class EpochAbandoned(Exception):
    """A task of the epoch was abandoned: the attempt does not count."""


def leave_sign(task: Task, sign: Sign) -> None:
    """Leave a sign in the name of a task."""
    folder = Path(task.errors)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / sign).touch()


def has_sign(folder: Path, sign: Sign) -> bool:
    """Whether a task of the attempt has left a sign."""
    return (folder / sign).exists()
