"""Breakpoints, and the tuples that reached one. Pure data for `machine.py`.

A condition is looked at by the workers, tuple by tuple. A count is of all workers together, so none of them can know
when it is reached: each has *credit* for some tuples, asks for more when it has used it up, and waits when there is
none. Credit comes in shares of what is left, down to single tuples: the run stands when exactly as many tuples are
processed as were asked for. A worker whose task ends gives back what it did not use; so does one that vanishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from samovar.control import messages as m

__all__ = ["ActiveBreakpoint", "BreakpointRegistry"]


@dataclass
class ActiveBreakpoint:
    """A breakpoint that stands. `limit`: the number of tuples, for one that counts."""

    breakpoint: m.Breakpoint
    limit: int = 0
    hits: int = 0
    used: dict[str, int | None] = field(default_factory=dict)
    """Tuples that each worker's task has counted; None: not reported yet."""
    ceiling: dict[str, int] = field(default_factory=dict)
    """The number up to which each worker may count."""
    command: str = ""
    """The command that set it, while it waits until all workers have the breakpoint."""
    unarmed: set[str] = field(default_factory=set)
    """Workers that have not confirmed it yet."""
    asking: dict[str, None] = field(default_factory=dict)
    """Workers that wait for credit, in the order they asked."""

    def forget(self, worker: str) -> None:
        """A worker's task is over."""
        self.unarmed.discard(worker)
        self.used.pop(worker, None)
        self.withdraw(worker)

    def withdraw(self, worker: str) -> None:
        """A worker's credit is void; it asks again."""
        self.ceiling.pop(worker, None)
        self.asking.pop(worker, None)


class BreakpointRegistry:
    """The breakpoints of a run, by name."""

    def __init__(self) -> None:
        self.active: dict[str, ActiveBreakpoint] = {}
        self.at: list[m.Reached] = []
        """What was reached since the run went on last: where it is paused now."""
        self.totals: Mapping[str, tuple[int, int]] = {}
        """Tuples that operators have taken and given in committed epochs."""
        self._done: dict[str, tuple[int, int]] = {}
        """And in tasks of this attempt that have ended."""
        self._seen: set[tuple[str, m.TuplePlace]] = set()
        self._unanswered: list[str] = []
        """Commands that set a breakpoint which is gone before all workers had it."""

    @property
    def all(self) -> tuple[m.Breakpoint, ...]:
        """The breakpoints that stand."""
        return tuple(s.breakpoint for s in self.active.values())

    def of(self, operators: tuple[str, ...]) -> tuple[m.Breakpoint, ...]:
        """The breakpoints that concern a task with these operators."""
        return tuple(b for b in self.all if b.operator in operators and not b.at_end)

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """Tuples that operators have taken and given up to now, without the tasks under way."""
        return _added(self.totals, self._done)

    @property
    def done(self) -> Mapping[str, tuple[int, int]]:
        """Tuples that operators have taken and given in tasks of this attempt that have ended."""
        return self._done

    def counted(self, one: ActiveBreakpoint) -> int:
        """How many tuples were counted, as far as is known."""
        taken, given = self.counts.get(one.breakpoint.operator, (0, 0))
        ended = taken if one.breakpoint.counts == "taken" else given
        return ended + sum(n or 0 for n in one.used.values())

    # --- epochs and tasks -------------------------------------------------------------------------------------------

    def begin(self, totals: Mapping[str, tuple[int, int]]) -> None:
        """An attempt begins: what was counted in the one before does not count, or is among the totals."""
        self.totals = totals
        self._done = {}
        for one in self.active.values():
            one.used, one.ceiling, one.asking = {}, {}, {}

    def armed(self, worker: str, names: tuple[str, ...]) -> None:
        """A worker confirms breakpoints."""
        for name in names:
            if name in self.active:
                self.active[name].unarmed.discard(worker)

    def commands(self, *, waiting: bool = True) -> list[str]:
        """Commands that wait until their breakpoint stands everywhere; or those that need not wait any more."""
        gone = [] if waiting else list(self._unanswered)
        return gone + [s.command for s in self.active.values() if s.command and bool(s.unarmed) == waiting]

    def remove(self, name: str) -> bool:
        """A breakpoint stands no more; returns whether it stood."""
        one = self.active.pop(name, None)
        if one is not None and one.command:
            self._unanswered.append(one.command)
        return one is not None

    def answered(self, command: str) -> None:
        """A command waits no more."""
        self._unanswered = [other for other in self._unanswered if other != command]
        for one in self.active.values():
            one.command = "" if one.command == command else one.command

    def expect(self, worker: str, operators: tuple[str, ...]) -> None:
        """A worker is sent its breakpoints: it will report what it has counted."""
        for one in self.active.values():
            if one.breakpoint.counts and one.breakpoint.operator in operators:
                one.withdraw(worker)  # and not `forget`: the worker has yet to confirm the breakpoint
                one.used[worker] = None

    def ended(self, counts: Mapping[str, tuple[int, int]]) -> None:
        """A task has ended, with these counts."""
        self._done = _added(self._done, counts)

    def forget(self, worker: str) -> None:
        """A worker has no task any more."""
        for one in self.active.values():
            one.forget(worker)

    # --- counting ---------------------------------------------------------------------------------------------------

    def count(self, worker: str, report: m.TuplesCounted) -> None:
        """A worker reports what it has counted."""
        one = self.active.get(report.breakpoint)
        if one is None or worker not in one.used:
            return
        one.used[worker] = report.used
        if report.wants:
            one.asking[worker] = None

    def grants(self) -> list[tuple[str, m.Credit]]:
        """Credit for the workers that ask, as far as there is some: the worker, and its credit."""
        grants = []
        for one in self.active.values():
            while one.asking and None not in one.used.values():
                promised = sum(max(n or 0, one.ceiling.get(w, 0)) - (n or 0) for w, n in one.used.items())
                left = one.limit - self.counted(one) - promised
                if left <= 0:
                    break
                worker = next(iter(one.asking))
                del one.asking[worker]
                used = one.used[worker] or 0
                if one.ceiling.get(worker, 0) <= used:
                    share = left // (2 * len(one.used)) if len(one.used) > 1 else left
                    one.ceiling[worker] = used + max(1, share)
                grants.append((worker, m.Credit(breakpoint=one.breakpoint.name, upto=one.ceiling[worker])))
        return grants

    def full(self) -> list[m.Reached]:
        """Counts that have been reached; these breakpoints stand no more."""
        reached = []
        for name, one in list(self.active.items()):
            if one.breakpoint.counts and one.limit <= self.counted(one):
                self.remove(name)
                place = m.TuplePlace(one.breakpoint.operator, -1, 0, 0, self.counted(one))
                reached.append(m.Reached(breakpoint=name, place=place))
        self.at += reached
        return reached

    # --- conditions -------------------------------------------------------------------------------------------------

    def reach(self, reached: m.Reached) -> bool:
        """A tuple meets a condition. False: it was reported before, or the breakpoint was removed."""
        one = self.active.get(reached.breakpoint)
        key = (reached.breakpoint, reached.place)
        if one is None or key in self._seen:
            return False
        self._seen.add(key)
        one.hits += 1
        self.at.append(reached)
        return True


def _added(
    counts: Mapping[str, tuple[int, int]], more: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Two counts of tuples taken and given, added by operator."""
    totals = dict(counts)
    for name, (taken, given) in more.items():
        before = totals.get(name, (0, 0))
        totals[name] = (before[0] + taken, before[1] + given)
    return totals
