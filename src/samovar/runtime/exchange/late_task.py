"""A task that workers get after Spark has started it: what it starts from is known when an epoch's turn has come.

The driver writes the task as a file into the attempt's folder. A worker waits for the file where it has its first rows
in hand: reading, shuffling and sorting are done by then.
"""

from __future__ import annotations

import pickle
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from samovar.files import write_file
from samovar.runtime.exchange.delivery import check_seen
from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.task_signs import leave_sign

__all__ = ["LateTask"]

PATIENCE = 60.0
"""Seconds that a worker waits: it occupies a core, perhaps the last one after an executor was lost. What it waits for
takes two seconds most often; an epoch that is given up here is done again when its turn has come."""
LOOK = 0.002
"""Seconds between two looks: a `stat` each."""


@dataclass(frozen=True)
class LateTask:
    """Where the task of a chain will lie. `early`: the same chain before the epoch's turn has come."""

    file: str
    early: Task

    def hand_out(self, task: Task) -> None:
        """Let the workers go on. For the driver."""
        write_file(Path(self.file), pickle.dumps(task))

    def arrived(self) -> bool:
        """Whether a worker has begun: it has a core, and takes its rows. For the driver."""
        return self._sign.exists()

    def arrive(self) -> None:
        """Leave a sign that a worker has begun. For a worker, before it takes a row."""
        with suppress(FileNotFoundError):
            self._sign.touch()

    @property
    def _sign(self) -> Path:
        return Path(f"{self.file}.arrived")

    def wait(self) -> Task | None:
        """The task; None: the epoch was given up. For a worker."""
        file = Path(self.file)
        check_seen(self.early)
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            try:
                task: Task = pickle.loads(file.read_bytes())
                return task
            except FileNotFoundError:
                if not file.parent.is_dir():
                    return None
                time.sleep(LOOK)
        leave_sign(self.early, "abandoned")
        return None
