"""What a worker gets: a chain of operators in one epoch, and the states they start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as attribute

import pyarrow as pa

from samovar.positions import Position
from samovar.runtime.exchange.code_switch import CodeSwitch
from samovar.runtime.exchange.decisions import RecordedDecision

__all__ = ["MARK_SHARE", "Control", "Stage", "Task", "Version"]

MARK_SHARE = 0.02
"""The share of a run's time that keeping states at marks may take: more would show beside the plain Spark job."""

Control = tuple[tuple[str, int], str, bytes]
"""How a task reaches the coordinator: its address, the run, the secret."""


@dataclass(frozen=True)
class Version:
    """A state to start from: files to apply in order, from the first full one; `tokens` name the state after each."""

    files: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Stage:
    """One operator of a chain as a worker needs it."""

    name: str
    code: bytes
    """The operator instance, pickled by value."""
    schema: pa.Schema
    folder: str
    """Where this attempt's state files go; empty for a stateless operator."""
    versions: Mapping[int, Version]
    ports: int = 1
    rank: int = 0
    """Its place in the workflow: what operators produce at the end of their input comes in this order."""
    results: Mapping[int, str] = attribute(default_factory=dict)
    """In a replay: for each bucket the file that holds what `log_result` returned."""
    given: Mapping[int, int] = attribute(default_factory=dict)
    """In a replay from a mark on: for each bucket how many tuples it produced before."""
    anew: bool = False
    """In an epoch that does part of a past epoch again, to be committed: its output gets fingerprints of its own."""


@dataclass(frozen=True)
class Task:
    """A chain of operators in one epoch."""

    run: str
    epoch: int
    token: str
    """Names the state after this epoch: the attempt."""
    stages: tuple[Stage, ...]
    positions: int
    """Parts of the position of the chain's output; 0: rows go without positions."""
    stateful: bool
    errors: str
    """Folder for failures."""
    sign: str = ""
    """A file of the driver's: a worker that does not see it writes where the driver does not look; empty: no check."""
    arrival: bool = False
    arrivals: str = ""
    """In a replay: the folder that holds the logged order of arrival."""
    signs: bool = False
    """Whether each partition leaves a file when it is read to its end: Spark may skip rows that nothing asks for."""
    marks: tuple[Position, ...] = ()
    """Positions at which the state is kept on the way."""
    mark_share: float = MARK_SHARE
    """The share of the time that this may take; marks that would cost more are skipped."""
    arrow: bool = False
    """Whether a function of the user's returns Arrow batches, which are checked."""
    control: Control | None = attribute(default=None, repr=False)
    """Who steers the run; None: nobody."""
    hold: bool = False
    """Whether a tuple that raises waits for a decision."""
    decided: tuple[RecordedDecision, ...] = ()
    """In a replay: tuples that were skipped or replaced."""
    switches: tuple[CodeSwitch, ...] = ()
    """In a replay: where operators switched to other code."""
    saves: bool = True
    """Whether states are written when a bucket is done."""
    code_versions: Mapping[str, int] = attribute(default_factory=dict)
    """Versions of operators' code, where it is not the code the run began with."""

    @property
    def order_log(self) -> str:
        """The folder for the order of arrival."""
        return self.arrivals or self.stages[0].folder
