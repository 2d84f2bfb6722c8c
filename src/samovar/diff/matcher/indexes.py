"""Indexes over the unmatched events of both sides, one for each clause of a dependence, event by event.

An index answers one question: which is the first unmatched event of a side that depends on a given event, among those
before a given position? Keys and synchronisation answer at once, however many events wait; a punctuation looks at
the waiting events, any other event at the waiting punctuations; a function is asked about one waiting event after
another.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from samovar.diff.comparison_errors import DependenceProblem
from samovar.diff.dependence import Clause, Function, Key, Punctuating, Synchronising, before
from samovar.diff.event_values import SIDES, Side, cells

__all__ = ["FunctionIndex", "Index", "KeyIndex", "SynchronisingIndex", "Waiting", "index_of"]

Waiting = Mapping[Side, dict[int, Any]]
"""The unmatched events of each side by position, in order."""

_PURPOSE = "used by the dependence"
_MANY = 10_000_000
"""Pairs a function may be asked about before a warning names the alternative: a few seconds of asking."""


class Index(Protocol):
    """The index of one clause. A mark is what the clause needs to know of an event."""

    def mark(self, event: Any) -> Any:
        """Read an event; events that are equal must have the same mark."""

    def first(self, side: Side, mark: Any, event: Any, limit: int | None) -> int | None:
        """The position of the first unmatched event of a side, before `limit`, that depends on this event."""

    def add(self, side: Side, position: int, mark: Any) -> None:
        """An event waits from now on. Positions of a side increase."""

    def remove(self, side: Side, position: int, mark: Any) -> None:
        """A waiting event, which depends on no earlier one, is matched."""


class KeyIndex:
    """A queue for each key. An event that is matched is the head of its queue."""

    def __init__(self, clause: Key) -> None:
        self.mark = clause.of
        self._queues: Mapping[Side, dict[Any, deque[int]]] = {side: {} for side in SIDES}

    def first(self, side: Side, mark: Any, event: Any, limit: int | None) -> int | None:
        queue = self._queues[side].get(mark)
        return queue[0] if queue and (limit is None or queue[0] < limit) else None

    def add(self, side: Side, position: int, mark: Any) -> None:
        queues = self._queues[side]
        if mark in queues:
            queues[mark].append(position)
        else:
            queues[mark] = deque((position,))

    def remove(self, side: Side, position: int, mark: Any) -> None:
        queue = self._queues[side][mark]
        queue.popleft()
        if not queue:
            del self._queues[side][mark]


@dataclass
class _Group:
    """The waiting events of one synchronised group, and those among them that synchronise."""

    all: OrderedDict[int, None] = field(default_factory=OrderedDict)
    synchronising: deque[int] = field(default_factory=deque)


class SynchronisingIndex:
    """For each group the waiting events in order. A mark is whether the event synchronises, and its group."""

    def __init__(self, clause: Synchronising) -> None:
        self.clause = clause
        self._groups: Mapping[Side, dict[Any, _Group]] = {side: {} for side in SIDES}

    def mark(self, event: Any) -> tuple[bool, Any]:
        within = self.clause.within
        return self.clause.by.test(event), cells(event, within, _PURPOSE) if within else ()

    def first(self, side: Side, mark: tuple[bool, Any], event: Any, limit: int | None) -> int | None:
        group = self._groups[side].get(mark[1])
        if group is None:
            return None
        first = next(iter(group.all)) if mark[0] else next(iter(group.synchronising), None)
        return first if first is not None and (limit is None or first < limit) else None

    def add(self, side: Side, position: int, mark: tuple[bool, Any]) -> None:
        group = self._groups[side].get(mark[1])
        if group is None:
            group = self._groups[side][mark[1]] = _Group()
        group.all[position] = None
        if mark[0]:
            group.synchronising.append(position)

    def remove(self, side: Side, position: int, mark: tuple[bool, Any]) -> None:
        group = self._groups[side][mark[1]]
        del group.all[position]
        if mark[0]:
            group.synchronising.popleft()
        if not group.all:
            del self._groups[side][mark[1]]


class _PunctuatingIndex:
    """The times of waiting events, and of waiting punctuations. A mark is whether it is one, and its time."""

    def __init__(self, clause: Punctuating) -> None:
        self.clause = clause
        self._all: Mapping[Side, OrderedDict[int, Any]] = {side: OrderedDict() for side in SIDES}
        self._punctuations: Mapping[Side, OrderedDict[int, Any]] = {side: OrderedDict() for side in SIDES}

    def mark(self, event: Any) -> tuple[bool, Any]:
        try:
            time = event[self.clause.time]
        except (KeyError, TypeError, IndexError, AttributeError, ValueError):
            time = cells(event, (self.clause.time,), "the time of the dependence")[0]
        if time is not None and time != time:
            time = None
        return self.clause.by.test(event) and time is not None, time

    def first(self, side: Side, mark: tuple[bool, Any], event: Any, limit: int | None) -> int | None:
        punctuates, time = mark
        earliest = None
        for position, other in self._punctuations[side].items():
            if limit is not None and position >= limit:
                break
            if before(time, other):
                earliest = limit = position
                break
        if punctuates:
            for position, other in self._all[side].items():
                if limit is not None and position >= limit:
                    break
                if before(other, time):
                    return position
        return earliest

    def add(self, side: Side, position: int, mark: tuple[bool, Any]) -> None:
        self._all[side][position] = mark[1]
        if mark[0]:
            self._punctuations[side][position] = mark[1]

    def remove(self, side: Side, position: int, mark: tuple[bool, Any]) -> None:
        del self._all[side][position]
        if mark[0]:
            del self._punctuations[side][position]


class FunctionIndex:
    """No index: the function is asked about each waiting event in turn. It needs no mark of an event."""

    def __init__(self, clause: Function, waiting: Waiting) -> None:
        self._function = clause.function
        self._waiting = waiting
        self._asked = 0
        """Pairs the function was asked about in walks through all waiting events."""

    def mark(self, event: Any) -> Any:
        return None

    def first(self, side: Side, mark: Any, event: Any, limit: int | None) -> int | None:
        function, waiting = self._function, self._waiting[side]
        if limit is not None and next(iter(waiting)) == limit:
            return None
        try:
            if limit is None or function(event, waiting[limit]):
                # it ends at `limit` at the latest, whose event depends on this one
                for position, other in waiting.items():
                    if function(event, other):
                        return None if position == limit else position
                self._count(len(waiting))
                return None
            for position, other in waiting.items():
                if position == limit:
                    break
                if function(event, other):
                    return position
        except Exception as error:
            raise self._raised(error, event, waiting) from error
        return None

    def _count(self, pairs: int) -> None:
        if self._asked < _MANY <= self._asked + pairs:
            warnings.warn(
                f"The dependence is a function, which was asked about {_MANY:,} pairs of events. If dependent events"
                " agree in something, name it: keyed('taxi'), or keyed(by=function) with a function of one event.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._asked += pairs

    def _raised(self, error: Exception, event: Any, waiting: Mapping[int, Any]) -> DependenceProblem:
        """Find the pair on which the function raises."""
        for other in waiting.values():
            try:
                self._function(event, other)
            except Exception as again:
                error = again
                break
        message = f"The dependence raised {type(error).__name__}: {error}"
        return DependenceProblem(message, events=(event, other))

    def add(self, side: Side, position: int, mark: Any) -> None:
        """Nothing to do: the matcher keeps the waiting events."""

    def remove(self, side: Side, position: int, mark: Any) -> None:
        """Nothing to do: the matcher keeps the waiting events."""


def index_of(clause: Clause, waiting: Waiting) -> Index:
    """The index of a clause; `waiting` is what the matcher keeps, for a clause that cannot be indexed."""
    if isinstance(clause, Key):
        return KeyIndex(clause)
    if isinstance(clause, Synchronising):
        return SynchronisingIndex(clause)
    if isinstance(clause, Punctuating):
        return _PunctuatingIndex(clause)
    return FunctionIndex(clause, waiting)
