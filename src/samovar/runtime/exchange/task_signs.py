"""Signs that a task leaves in the attempt's folder for failures: that it was abandoned, or that nobody steered it."""

from __future__ import annotations

from pathlib import Path

from samovar.runtime.exchange.task import Task

__all__ = ["EpochAbandoned", "sign_abandoned", "sign_unattended", "was_abandoned", "was_unattended"]

_ABANDONED = "abandoned"
_UNATTENDED = "unattended"


class EpochAbandoned(Exception):
    """A task of the epoch was abandoned: the attempt does not count."""


def sign_abandoned(task: Task) -> None:
    _leave(task, _ABANDONED)


def sign_unattended(task: Task) -> None:
    """The task could not reach the coordinator of its run: it may have missed other code."""
    _leave(task, _UNATTENDED)


def was_abandoned(folder: Path) -> bool:
    return (folder / _ABANDONED).exists()


def was_unattended(folder: Path) -> bool:
    return (folder / _UNATTENDED).exists()


def _leave(task: Task, name: str) -> None:
    folder = Path(task.errors)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
