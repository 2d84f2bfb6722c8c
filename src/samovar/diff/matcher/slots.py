"""Synchronising events and punctuations for whole batches: each row gets a slot, and slots decide.

A synchronising event cuts its stream: the slot of a row is how many of them came before it. Streams keep the order that
synchronisation asks for exactly if

- matched rows have the same slot,
- no unmatched row is in a slot that the other side has closed, that is, one below the number of synchronising events
  the other side has seen: what comes there from now on is in a later slot.

Punctuations that come in the order of their times are cut points in the same way, but only for late rows (those with an
earlier time than a punctuation before them). A row that is on time has no slot; it may move freely until the other side
has seen a punctuation later than it.

A plan is made before anything changes, so that a batch which does not fit leaves no trace. `fits` may be false where
the order is kept (punctuations out of order, or two different ones for one time), but never true where it is not: the
caller then goes through the batch event by event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from samovar.diff.comparison_errors import EventProblem
from samovar.diff.dependence import Predicate, Punctuating, Synchronising
from samovar.diff.event_values import OTHER, SIDES, Side, rows_of
from samovar.diff.matcher.queues import Flags, Ids, grouped
from samovar.diff.matcher.row_words import Words, hash_of, numbers_of
from samovar.diff.matcher.unmatched import Array, Pending

__all__ = ["Batch", "SlotPlan", "Slots", "slots_of"]

_BLOCKS = 256
"""Blocks of waiting rows a side: a punctuation looks at the bounds of each, and at rows where these do not decide."""
_BLOCK_ROWS = 1024
_LAST = int(np.iinfo(np.int64).max)
"""A slot, or a time in whole numbers, behind all others."""


@dataclass(frozen=True)
class Batch:
    """A batch being matched: which rows found a partner, and the partners' ids; which no longer count as waiting."""

    side: Side
    rows: pa.RecordBatch
    words: Mapping[str, Words]
    matched: Ids
    unmatched: Ids
    partners: Ids


@dataclass
class SlotPlan:
    """The changes that taking a batch in would make; each kind of slots adds its own."""

    fits: bool
    arrays: tuple[Array, ...]
    """What to keep of each row of the batch."""


class Slots:
    """The slots of one clause, both sides."""

    width = 1
    """How many arrays of `Pending` belong to this clause."""

    def plan(self, batch: Batch, other: Pending, at: int) -> SlotPlan:
        """Try a batch; the arrays of this clause on the other side start at `at`. Nothing changes yet."""
        raise NotImplementedError

    def commit(self, batch: Batch, plan: Any, first: int) -> None:
        """The batch is taken in; its unmatched rows have ids from `first` on."""
        raise NotImplementedError

    def packed(self, side: Side, pending: Pending, at: int) -> None:
        """Ids of a side have changed. Nothing to do for slots that do not refer to ids."""

    def emptied(self, side: Side) -> None:
        """No row of a side is waiting. Nothing to do for slots that only count."""


def slots_of(clause: Synchronising | Punctuating) -> Slots:
    """The slots that a clause needs: for all rows together, for groups, or for punctuations."""
    if isinstance(clause, Punctuating):
        return _Punctuations(clause)
    return _Groups(clause) if clause.within else _Segments(clause)


@dataclass
class _SegmentsPlan(SlotPlan):
    total: int


class _Segments(Slots):
    """Synchronisation of everything: slots never decrease along a stream."""

    def __init__(self, clause: Synchronising) -> None:
        self._by = clause.by
        self._seen = dict.fromkeys(SIDES, 0)

    def plan(self, batch: Batch, other: Pending, at: int) -> _SegmentsPlan:
        mine, theirs = self._seen[batch.side], self._seen[OTHER[batch.side]]
        flags = flags_of(self._by, batch.rows)
        counts: Ids = np.cumsum(flags)
        slots: Ids = counts - flags + mine
        total = mine + int(counts[-1])
        fits = _same_slots(batch, other, at, slots)
        if fits and len(batch.unmatched):
            fits = bool(slots[batch.unmatched[0]] >= theirs)
        if fits and total > mine:
            oldest = other.first_alive()
            fits = oldest is None or bool(other.arrays[at][oldest] >= total)
        return _SegmentsPlan(fits, (slots,), total)

    def commit(self, batch: Batch, plan: _SegmentsPlan, first: int) -> None:
        self._seen[batch.side] = plan.total


@dataclass
class _GroupsPlan(SlotPlan):
    totals: dict[int, int]
    matched: dict[tuple[int, int], int]
    waiting: dict[tuple[int, int], int]


class _Groups(Slots):
    """Synchronisation within groups. Python runs once for each group and slot of a batch, not for each row."""

    def __init__(self, clause: Synchronising) -> None:
        self._by = clause.by
        self._within = clause.within
        self._seen: Mapping[Side, dict[int, int]] = {side: {} for side in SIDES}
        self._waiting: Mapping[Side, dict[int, dict[int, int]]] = {side: {} for side in SIDES}
        """How many rows wait, by group and slot."""

    def plan(self, batch: Batch, other: Pending, at: int) -> _GroupsPlan:
        there = OTHER[batch.side]
        groups = grouped(hash_of([batch.words[c] for c in self._within]))
        flags = flags_of(self._by, batch.rows)[groups.order].astype(np.int64)
        earlier = np.cumsum(flags) - flags
        keys = groups.keys.tolist()
        mine = np.array([self._seen[batch.side].get(k, 0) for k in keys])
        theirs = np.array([self._seen[there].get(k, 0) for k in keys])
        totals = mine + np.add.reduceat(flags, groups.starts)
        slots = np.empty(len(flags), np.int64)
        slots[groups.order] = earlier - earlier[groups.starts][groups.group] + mine[groups.group]
        group = np.empty(len(flags), np.int64)
        group[groups.order] = groups.group
        fits = not (slots[batch.unmatched] < theirs[group[batch.unmatched]]).any()
        fits = fits and _same_slots(batch, other, at, slots)
        matched = _counted(group[batch.matched], slots[batch.matched], keys)
        if fits:
            for number in np.flatnonzero(totals > mine).tolist():
                key, total = keys[number], int(totals[number])
                cells = self._waiting[there].get(key, {})
                fits = fits and all(
                    slot >= total or count == matched.get((key, slot), 0) for slot, count in cells.items()
                )
        waiting = _counted(group[batch.unmatched], slots[batch.unmatched], keys)
        return _GroupsPlan(fits, (slots,), dict(zip(keys, totals.tolist(), strict=True)), matched, waiting)

    def commit(self, batch: Batch, plan: _GroupsPlan, first: int) -> None:
        here, there = self._seen[batch.side], self._seen[OTHER[batch.side]]
        ours, theirs = self._waiting[batch.side], self._waiting[OTHER[batch.side]]
        for (key, slot), count in plan.waiting.items():
            cells = ours.setdefault(key, {})
            cells[slot] = cells.get(slot, 0) + count
        for (key, slot), count in plan.matched.items():
            cells = theirs[key]
            cells[slot] -= count
            if not cells[slot]:
                del cells[slot]
            if not cells:
                del theirs[key]
        for key, total in plan.totals.items():
            if total == there.get(key, 0) and key not in ours and key not in theirs:
                here.pop(key, None)
                there.pop(key, None)
            elif total:
                here[key] = total


@dataclass
class _PunctuationsPlan(SlotPlan):
    total: int
    latest: Any


@dataclass
class _Block:
    """A stretch of ids, and bounds below the times and the slots of those in it that wait."""

    first: int
    end: int
    time: Any
    slot: int


class _Punctuations(Slots):
    """Rows have a slot (-1 for a row on time) and a time."""

    width = 2

    def __init__(self, clause: Punctuating) -> None:
        self._clause = clause
        self._seen = dict.fromkeys(SIDES, 0)
        self._latest: dict[Side, Any] = dict.fromkeys(SIDES, None)
        self._blocks: dict[Side, list[_Block]] = {side: [] for side in SIDES}

    def plan(self, batch: Batch, other: Pending, at: int) -> _PunctuationsPlan:
        mine, latest = self._seen[batch.side], self._latest[batch.side]
        there = OTHER[batch.side]
        times = numbers_of(batch.rows.column(self._clause.time))
        flags = flags_of(self._clause.by, batch.rows) & (times != _never(times))
        places = np.flatnonzero(flags)
        slots = np.full(len(times), -1, np.int64)
        if not len(places):
            late = times < latest if latest is not None else np.zeros(len(times), np.bool_)
            slots[late] = mine
            total = mine
            fits = True
        else:
            points = times[places]
            fits = bool((points[1:] >= points[:-1]).all()) and (latest is None or bool(points[0] >= latest))
            counts = np.cumsum(flags)
            seen = counts - flags
            total = mine + len(places)
            # the last entry stands for "none so far", since a row before all punctuations looks up index -1
            known = np.append(points, points[:1] if latest is None else latest)
            late = times < known[seen - 1]
            if latest is None:
                late &= seen > 0
            marked = late | flags
            slots[marked] = seen[marked] + mine
            latest = points[-1]
        fits = fits and _same_slots(batch, other, at, slots)
        if fits and len(batch.unmatched):
            theirs, their_latest = self._seen[there], self._latest[there]
            waiting, when = slots[batch.unmatched], times[batch.unmatched]
            closed = (waiting >= 0) & (waiting < theirs)
            if their_latest is not None:
                closed |= (waiting < 0) & (when < their_latest)
            fits = not closed.any()
        if fits and len(places):
            fits = all(
                (block.time >= latest and block.slot >= total) or self._open(block, other, at, latest, total)
                for block in self._blocks[there]
            )
        return _PunctuationsPlan(fits, (slots, times), total, latest)

    def commit(self, batch: Batch, plan: _PunctuationsPlan, first: int) -> None:
        self._seen[batch.side] = plan.total
        self._latest[batch.side] = plan.latest
        if len(batch.unmatched):
            slots, times = (a[batch.unmatched] for a in plan.arrays)
            blocks = self._blocks[batch.side]
            blocks.append(_block(first, slots, times))
            if len(blocks) > _BLOCKS:
                self._blocks[batch.side] = _halved(blocks)

    def packed(self, side: Side, pending: Pending, at: int) -> None:
        slots, times = (a[: pending.length] for a in pending.arrays[at : at + 2])
        size = max(_BLOCK_ROWS, pending.length // (_BLOCKS // 4))
        starts = np.arange(0, pending.length, size)
        on_time = slots < 0
        times = np.minimum.reduceat(np.where(on_time, times, _never(times)), starts)
        marks = np.minimum.reduceat(np.where(on_time, _LAST, slots), starts)
        self._blocks[side] = [
            _Block(first, min(first + size, pending.length), time, mark)
            for first, time, mark in zip(starts.tolist(), times.tolist(), marks.tolist(), strict=True)
        ]

    def emptied(self, side: Side) -> None:
        self._blocks[side] = []

    def _open(self, block: _Block, other: Pending, at: int, latest: Any, total: int) -> bool:
        """Whether no waiting row of a block is closed by these punctuations; bounds are raised on the way."""
        alive = other.alive[block.first : block.end]
        slots, times = (a[block.first : block.end][alive] for a in other.arrays[at : at + 2])
        now = _block(block.first, slots, times)
        if now.time < latest or now.slot < total:
            return False
        block.time, block.slot = now.time, now.slot
        return True


def _same_slots(batch: Batch, other: Pending, at: int, slots: Ids) -> bool:
    """Whether matched rows have the same slot as their partners."""
    if not len(batch.matched):
        return True
    return bool((other.arrays[at][batch.partners] == slots[batch.matched]).all())


def _block(first: int, slots: Ids, times: npt.NDArray[Any]) -> _Block:
    on_time = slots < 0
    marked = slots[~on_time]
    time = times[on_time].min() if on_time.any() else _never(times)
    slot = int(marked.min()) if len(marked) else _LAST
    return _Block(first, first + len(slots), time, slot)


def _halved(blocks: list[_Block]) -> list[_Block]:
    """Half as many blocks, each of two neighbours."""
    pairs = zip(blocks[::2], [*blocks[1::2], None], strict=False)
    return [
        a if b is None else _Block(a.first, b.end, min(a.time, b.time), min(a.slot, b.slot)) for a, b in pairs
    ]


def _never(times: npt.NDArray[Any]) -> Any:
    return np.inf if times.dtype.kind == "f" else _LAST


def _counted(groups: Ids, slots: Ids, keys: list[int]) -> dict[tuple[int, int], int]:
    if not len(groups):
        return {}
    cells, counts = np.unique(np.stack([groups, slots]), axis=1, return_counts=True)
    return {(keys[g], s): c for g, s, c in zip(*cells.tolist(), counts.tolist(), strict=True)}


def flags_of(by: Predicate, batch: pa.RecordBatch) -> Flags:
    """Which rows have a property. A function is called for each row; columns are looked at as a whole."""
    if by.function is not None:
        return np.fromiter((by.test(row) for row in rows_of(batch)), np.bool_, batch.num_rows)
    result: Flags | None = None
    for name, allowed in by.columns:
        column = batch.column(name)
        try:
            if allowed == (True,) and pa.types.is_boolean(column.type):
                matches = column
            elif len(allowed) == 1 and allowed[0] is not None and allowed[0] != ("NaN",):
                matches = pc.equal(column, pa.scalar(allowed[0], column.type))
            else:
                values = [float("nan") if v == ("NaN",) else v for v in allowed]
                matches = pc.is_in(column, value_set=pa.array(values, column.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise EventProblem(
                f"Expected values of the type of '{name}' ({column.type}) in the dependence, got {allowed!r}: {error}."
            ) from error
        flags: Flags = pc.fill_null(matches, False).to_numpy(zero_copy_only=False)
        result = flags if result is None else result & flags
    return np.zeros(batch.num_rows, np.bool_) if result is None else result
