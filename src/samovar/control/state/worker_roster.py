"""Which worker has which task, the last order to each, and whether it was carried out. Pure data for `machine.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from samovar.control import messages as m

__all__ = ["KnownWorker", "WorkerRoster"]


@dataclass
class KnownWorker:
    """One worker. `stop`: whether its last order was to stop; `done`: whether it has confirmed that order."""

    name: str
    task: m.TaskBegun | None = None
    connected: bool = True
    order: int = 0
    stop: bool = False
    done: bool = True
    versions: dict[str, int] = field(default_factory=dict)
    """Versions sent in this task, beside those it came with."""
    noted: set[int] = field(default_factory=set)
    """Versions it has reported a switch to in this task."""

    @property
    def stopped(self) -> bool:
        """Whether it has confirmed that it processes nothing."""
        return self.stop and self.done

    def runs(self, operator: str) -> bool:
        """Whether its task has this operator."""
        return self.task is not None and operator in self.task.operators

    def version(self, operator: str) -> int:
        """The version of an operator's code that it has, or will have when it has carried out its orders."""
        came_with = self.task.versions.get(operator, 0) if self.task is not None else 0
        return max(came_with, self.versions.get(operator, 0))

    def begin(self, task: m.TaskBegun, switches: tuple[m.SwitchPoint, ...] = ()) -> None:
        """A task starts, or goes on after a lost connection, with the switches made in between."""
        if self.task is None or self.task.task != task.task:
            self.noted = set()
        self.task = task
        self.versions = {}
        for switch in switches:
            name = switch.place.operator
            self.versions[name] = max(switch.version, self.versions.get(name, 0))

    def end(self) -> None:
        """The task is over."""
        self.task = None
        self.stop, self.done = False, True
        self.versions = {}
        self.noted = set()


class WorkerRoster:
    """All workers known, in the order they came."""

    def __init__(self) -> None:
        self._members: dict[str, KnownWorker] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[KnownWorker]:
        return iter(list(self._members.values()))

    def get(self, name: str) -> KnownWorker:
        """A worker; a new one if it was not known."""
        return self._members.setdefault(name, KnownWorker(name))

    def drop(self, name: str) -> None:
        """Forget a worker."""
        self._members.pop(name, None)

    @property
    def busy(self) -> list[KnownWorker]:
        """Workers with a task."""
        return [w for w in self._members.values() if w.task is not None]

    def running(self, operator: str) -> list[KnownWorker]:
        """Workers whose task has this operator."""
        return [w for w in self._members.values() if w.runs(operator)]

    @property
    def all_stopped(self) -> bool:
        """Whether no worker processes anything."""
        return all(w.stopped for w in self._members.values() if w.task is not None)

    @property
    def all_going(self) -> bool:
        """Whether every worker with a task goes on."""
        return all(not w.stop and w.done for w in self._members.values() if w.task is not None)
