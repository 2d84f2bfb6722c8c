"""The code in force, and a modification on its way. Pure data for `machine.py`.

How a modification comes into force:

- `strict`, or with an operator of Spark's plan: between two epochs. Unless the epoch under way is about to end, it is
  given up and done again with the new code.
- `backward`: all workers stop, all switch, all go on. A tuple in flight has old code behind it and new code before
  it.
- `none`: each worker switches at its next tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from samovar.control import events as e
from samovar.control import messages as m
from samovar.control.state.worker_roster import KnownWorker

__all__ = ["CodeVersions", "Modification"]


class CodeVersions:
    """All versions of the operators that were modified. Immutable."""

    def __init__(
        self,
        version: int = 0,
        codes: Mapping[str, tuple[m.CodeVersion, ...]] | None = None,
        native: tuple[str, ...] = (),
        newest: int | None = None,
    ) -> None:
        self.version = version
        self.all = dict(codes or {})
        self.native = native
        self.newest = version if newest is None else newest
        """The highest number given to a version so far, also to one that was taken back."""

    def newer(self, member: KnownWorker) -> dict[str, tuple[m.CodeVersion, ...]]:
        """The code that a worker's task lacks, version by version."""
        newer = {
            operator: tuple(c for c in codes if c.version > member.version(operator))
            for operator, codes in self.all.items()
            if member.runs(operator)
        }
        return {operator: codes for operator, codes in newer.items() if codes}

    def with_modification(self, modification: Modification) -> CodeVersions:
        """The code in force once a modification is."""
        changed = {n: (*self.all.get(n, ()), code) for n, code in modification.codes.items()}
        return CodeVersions(modification.version, {**self.all, **changed}, modification.native)

    def before(self, version: int) -> CodeVersions:
        """The code without a version and those after it."""
        kept = {n: tuple(c for c in codes if c.version < version) for n, codes in self.all.items()}
        kept = {n: codes for n, codes in kept.items() if codes}
        highest = max((c[-1].version for c in kept.values()), default=0)
        return CodeVersions(highest, kept, newest=self.newest)


class Modification:
    """A modification that is not in force everywhere yet."""

    def __init__(self, event: e.ModifyRequested, codes: CodeVersions) -> None:
        self.command = event.command
        self.version = codes.newest + 1
        self.codes = {n: m.CodeVersion(self.version, *body) for n, body in event.bodies.items()}
        self.native = event.native
        self.at_epoch_end = event.consistency == "strict" or bool(event.native)
        self.barrier = event.consistency == "backward" and not self.at_epoch_end
        """Whether all workers stop for it."""
        self.phase: Literal["asked", "spreading"] = "asked"
        self.waiting: set[str] = set()
        """Workers that have not reported their switch."""
        self.switched = False
        """Whether a worker has reported its switch."""
        self.epoch: int | None = None
        """The first epoch with the new logic, when that is known."""
        self.taken: Mapping[str, int] = {}
        """Tuples that its operators had taken before that, if it came into force between epochs."""

    def put_off(self) -> None:
        """It comes into force between epochs, whatever was asked for."""
        self.at_epoch_end, self.barrier = True, False

    def for_member(self, member: KnownWorker) -> dict[str, m.CodeVersion]:
        """The part of it that a worker's task needs."""
        return {
            n: code for n, code in self.codes.items() if member.runs(n) and member.version(n) < self.version
        }
