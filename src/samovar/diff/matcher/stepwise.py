"""The matcher one event at a time: any dependence, any equality. It is also what decides when batches disagree.

Why it is right. An event x of one side can only be matched with the earliest unmatched equal event y of the other side:
by compatibility y depends on whatever x depends on, so x waits for no event of its own side if y is there, and of
several equal events the earliest depends on the fewest. So the only question is whether some event before y on the
other side (any event, if there is no y) depends on x. If so, no continuation makes the streams equivalent. The
unmatched events are the least that any matcher has to keep.

With a tolerance or `accepts`, an event may have several possible partners. Where a key forces the partner there is
nothing to choose. Elsewhere the pairs settled in the present segment (between two synchronising events) are kept, and a
new event may re-settle them along an augmenting path: the matching stays a largest one, and the verdict exact.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from samovar.diff.comparison_errors import DependenceProblem
from samovar.diff.dependence import Dependence
from samovar.diff.equality import Equality
from samovar.diff.event_values import OTHER, SIDES, Side, canonical
from samovar.diff.matcher.axioms import Samples
from samovar.diff.matcher.indexes import FunctionIndex, Index, KeyIndex, SynchronisingIndex, index_of
from samovar.diff.verdict import Verdict

__all__ = ["Relational", "SettledPair", "Stepwise", "make_stepwise"]

Marks = tuple[Any, ...]
"""What each index needs to know of an event."""


class Stepwise:
    """For an equality in the strict sense. Not for use by several threads."""

    def __init__(self, depends: Dependence, equal: Equality, samples: Samples) -> None:
        self.waiting: dict[Side, dict[int, Any]] = {side: {} for side in SIDES}
        self._equal = equal
        self._has_key = equal.has_key
        self._key_of = canonical if equal == Equality() else equal.key_of
        self._samples = samples if samples.active else None
        self._indexes: tuple[Index, ...] = tuple(index_of(c, self.waiting) for c in depends.clauses)
        self._noting = [(i, x) for i, x in enumerate(self._indexes) if not isinstance(x, FunctionIndex)]
        self._unmarked = (None,) * len(self._indexes)
        self._marks: Mapping[Side, dict[int, Marks]] = {side: {} for side in SIDES}
        self._keys: Mapping[Side, dict[Any, deque[int]]] = {side: {} for side in SIDES}
        self._removed = dict.fromkeys(SIDES, 0)

    def push(self, side: Side, position: int, event: Any) -> Verdict | None:
        """Take an event in. Returns the difference, if there is one; the matcher takes no event after it."""
        if self._samples is not None:
            self._samples.see(event)
        other = OTHER[side]
        key, partner = None, None
        if self._has_key:
            key = self._key_of(event)
            queue = self._keys[other].get(key)
            partner = queue[0] if queue else None
        elif self.waiting[other]:
            partner = self._partner(side, event)
        marks = tuple([index.mark(event) for index in self._indexes]) if self._noting else self._unmarked
        if self.waiting[other]:
            blocker = None
            for number, index in enumerate(self._indexes):
                first = index.first(other, marks[number], event, partner if blocker is None else blocker)
                blocker = first if first is not None else blocker
            if blocker is not None:
                self._add(side, position, event, key, marks)
                return self._difference(side, position, event, blocker)
        if partner is None:
            self._add(side, position, event, key, marks)
        else:
            self._remove(other, partner, key, event, marks)
        return None

    def _difference(self, side: Side, position: int, event: Any, blocker: int) -> Verdict:
        """No continuation makes the streams equivalent, since this event came while the blocker still waits."""
        against = self.waiting[OTHER[side]][blocker]
        return Verdict(
            False, side=side, position=position, event=event, against=against, against_position=blocker
        )

    def _partner(self, side: Side, event: Any) -> int | None:
        others = self.waiting[OTHER[side]].items()
        return next((position for position, waiting in others if self._fits(side, event, waiting)), None)

    def _fits(self, side: Side, event: Any, waiting: Any) -> bool:
        return self._equal.equal(*((event, waiting) if side == "left" else (waiting, event)))

    def _add(self, side: Side, position: int, event: Any, key: Any, marks: Marks) -> None:
        """The event waits from now on."""
        self.waiting[side][position] = event
        self._marks[side][position] = marks
        if self._has_key:
            keys = self._keys[side]
            if key in keys:
                keys[key].append(position)
            else:
                keys[key] = deque((position,))
        for number, index in self._noting:
            index.add(side, position, marks[number])

    def _remove(
        self, side: Side, position: int, key: Any, event: Any, marks: Marks | None
    ) -> tuple[Any, Marks]:
        """A waiting event is matched with `event`, which must have the same marks. Returns the event and its marks."""
        partner = self.waiting[side].pop(position)
        known = self._marks[side].pop(position)
        if marks is not None and known != marks:
            raise DependenceProblem(
                "Expected a dependence that fits the equality, got events that are equal (a and b), but differ in what"
                " the dependence looks at.",
                events=(event, partner),
            )
        self._removed[side] += 1
        if self._removed[side] > 2 * len(self.waiting[side]) + 64:
            # a walk over a dict also visits the places of removed entries: copy it once these are many
            self.waiting[side] = dict(self.waiting[side])
            self._removed[side] = 0
        if self._has_key:
            keys = self._keys[side]
            queue = keys[key]
            queue.popleft()
            if not queue:
                del keys[key]
        for number, index in self._noting:
            index.remove(side, position, known[number])
        return partner, known


class SettledPair(NamedTuple):
    """A pair that may still be settled otherwise."""

    positions: Mapping[Side, int]
    events: Mapping[Side, Any]


class Relational(Stepwise):
    """For a tolerance or `accepts`: relations that are not an equality."""

    def __init__(self, depends: Dependence, equal: Equality, samples: Samples) -> None:
        super().__init__(depends, equal, samples)
        self._forcing = next((i for i, x in enumerate(self._indexes) if isinstance(x, KeyIndex)), None)
        self._synchronising = next((x for x in self._indexes if isinstance(x, SynchronisingIndex)), None)
        self._free: Mapping[Side, dict[Any, OrderedDict[int, Any]]] = {side: {} for side in SIDES}
        """Waiting events that do not synchronise, by group and by what possible partners share."""
        self._settled: dict[Any, dict[Any, Mapping[Side, dict[int, SettledPair]]]] = {}
        """Settled pairs by group, by what possible partners share, and by the position on each side."""

    def push(self, side: Side, position: int, event: Any) -> Verdict | None:
        """Take an event in. Returns the difference, if there is one; the matcher takes no event after it."""
        if self._samples is not None:
            self._samples.see(event)
        marks = tuple([index.mark(event) for index in self._indexes])
        if self._forcing is not None:
            return self._push_forced(side, position, event, marks)
        return self._push_free(side, position, event, marks)

    def settled(self) -> Iterator[SettledPair]:
        """The pairs that may still be settled otherwise."""
        for cells in self._settled.values():
            for cell in cells.values():
                yield from cell["left"].values()

    def settle(self, pair: SettledPair) -> None:
        """Restore a pair that `settled` returned before a checkpoint."""
        event = pair.events["left"]
        self._bind(*self._cell(event, tuple([index.mark(event) for index in self._indexes])), pair)

    def _push_forced(self, side: Side, position: int, event: Any, marks: Marks) -> Verdict | None:
        other = OTHER[side]
        blocker, partner = None, None
        for number, (index, mark) in enumerate(zip(self._indexes, marks, strict=True)):
            first = index.first(other, mark, event, None)
            if first is not None and (blocker is None or first < blocker):
                blocker = first
            if number == self._forcing:
                partner = first
        if blocker is None:
            self._add(side, position, event, None, marks)
            return None
        if blocker != partner or not self._fits(side, event, self.waiting[other][blocker]):
            self._add(side, position, event, None, marks)
            return self._difference(side, position, event, blocker)
        self._remove(other, blocker, None, event, marks)
        return None

    def _push_free(self, side: Side, position: int, event: Any, marks: Marks) -> Verdict | None:
        other = OTHER[side]
        group, cell = self._cell(event, marks)
        index = self._synchronising
        limit = None
        if index is not None:
            limit = index.first(other, marks[0], event, None)
            synchronises = marks[0][0]
            if synchronises and limit is None:
                self._add(side, position, event, None, marks)
                return None
            if synchronises and limit is not None:
                # the partner of a synchronising event can only be the next event of the other side
                partner = self.waiting[other][limit]
                if self._marks[other][limit] != marks or not self._fits(side, event, partner):
                    self._add(side, position, event, None, marks)
                    return self._difference(side, position, event, limit)
                self._remove(other, limit, None, event, marks)
                self._settled.pop(group, None)
                return None
            if index.first(side, marks[0], event, None) is not None:  # ahead of the other side
                self._place(side, position, event, marks, group, cell)
                return None
        if self._augment(side, position, event, group, cell, limit):
            return None
        self._place(side, position, event, marks, group, cell)
        return None if limit is None else self._difference(side, position, event, limit)

    def _augment(
        self, side: Side, position: int, event: Any, group: Any, cell: Any, limit: int | None
    ) -> bool:
        """Find the event a partner, if need be by pairing settled events differently. False if there is no way."""
        other = OTHER[side]
        free: Mapping[int, Any] = self._free[other].get((group, cell), {})
        pairs = self._settled.get(group, {}).get(cell, {"left": {}, "right": {}})[other]
        reached: dict[int, tuple[int, Any]] = {}  # a settled event of the other side: by which event of ours
        queue: deque[tuple[int, Any]] = deque([(position, event)])
        while queue:
            ours, our_event = queue.popleft()
            for theirs, their_event in free.items():
                if limit is not None and theirs >= limit:
                    break
                if self._fits(side, our_event, their_event):
                    self._remove(other, theirs, None, our_event, None)
                    self._flip(side, (ours, our_event), (theirs, their_event), reached, group, cell)
                    return True
            for theirs, pair in pairs.items():
                if theirs not in reached and self._fits(side, our_event, pair.events[other]):
                    reached[theirs] = (ours, our_event)
                    queue.append((pair.positions[side], pair.events[side]))
        return False

    def _flip(
        self,
        side: Side,
        ours: tuple[int, Any],
        theirs: tuple[int, Any],
        reached: dict[int, tuple[int, Any]],
        group: Any,
        cell: Any,
    ) -> None:
        other = OTHER[side]
        while True:
            pairs = self._settled.get(group, {}).get(cell)
            before = pairs[side].pop(ours[0], None) if pairs is not None else None
            if before is not None and pairs is not None:
                del pairs[other][before.positions[other]]
            pair = SettledPair({side: ours[0], other: theirs[0]}, {side: ours[1], other: theirs[1]})
            self._bind(group, cell, pair)
            if before is None:
                return
            theirs = (before.positions[other], before.events[other])
            ours = reached[theirs[0]]

    def _bind(self, group: Any, cell: Any, pair: SettledPair) -> None:
        cells = self._settled.setdefault(group, {})
        if cell not in cells:
            cells[cell] = {"left": {}, "right": {}}
        for side in SIDES:
            cells[cell][side][pair.positions[side]] = pair

    def _cell(self, event: Any, marks: Marks) -> tuple[Any, Any]:
        group = marks[0][1] if marks and isinstance(self._indexes[0], SynchronisingIndex) else ()
        return group, self._equal.key_of(event)

    def _place(self, side: Side, position: int, event: Any, marks: Marks, group: Any, cell: Any) -> None:
        self._add(side, position, event, None, marks)
        self._free[side].setdefault((group, cell), OrderedDict())[position] = event

    def _remove(
        self, side: Side, position: int, key: Any, event: Any, marks: Marks | None
    ) -> tuple[Any, Marks]:
        partner, known = super()._remove(side, position, key, event, marks)
        place = self._cell(partner, known)
        waiting = self._free[side].get(place)
        if waiting is not None and position in waiting:
            del waiting[position]
            if not waiting:
                del self._free[side][place]
        return partner, known


def make_stepwise(depends: Dependence, equal: Equality, samples: Samples) -> Stepwise:
    """The stepwise matcher that fits the equality."""
    return (Relational if equal.is_relation else Stepwise)(depends, equal, samples)
