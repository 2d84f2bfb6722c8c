"""The matcher for Arrow batches and structured dependences: whole arrays at a time, no Python for each row.

Why it is right. Which events are partners does not depend on the dependence: the k-th event of a kind on one side
belongs to the k-th event of that kind on the other (`samovar.diff.matcher.stepwise`). A key of the dependence makes it
simpler still: the r-th event of a key belongs to the r-th event of that key, and they have to be equal. So partners
come from queues: by key if the dependence has one, else by the hash of the whole row. What remains is to see that no
two dependent events swapped places, clause by clause: a further key must name the same partners, and slots must agree
(`samovar.diff.matcher.slots`).

A batch is taken in whole or not at all. If anything is not as it should be, be it a difference between the streams or
two different rows with the same hash, `push` returns False and nothing has changed: the caller goes through that batch
event by event, which gives the exact place. So hashes decide nothing by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from samovar.diff.dependence import Dependence, Key, Punctuating, Synchronising
from samovar.diff.equality import Equality
from samovar.diff.event_values import OTHER, SIDES, Side, rows_of
from samovar.diff.matcher.queues import Grouped, Ids, Queues, SingleQueue, Taken, grouped
from samovar.diff.matcher.row_words import Layout, Words, hash_of
from samovar.diff.matcher.slots import Batch, SlotPlan, Slots, slots_of
from samovar.diff.matcher.unmatched import Array, Pending, Spill

__all__ = ["LARGEST", "Columnar", "Unmatched", "can_compare_columns"]

LARGEST = 1 << 17
"""Rows taken in at once: beyond this, arrays leave the processor's cache."""
_SMALLEST = 1 << 10
"""A piece of at most this many rows is not cut further: the event that does not fit is searched event by event."""
Unmatched = Mapping[Side, tuple[Ids, pa.Table | None]]
"""The unmatched rows of each side with their positions; no table for no rows."""


def can_compare_columns(depends: Dependence, equal: Equality) -> bool:
    """Whether batches can be matched without Python for each row."""
    if not depends.structured or not equal.in_columns:
        return False
    keys = [c for c in depends.clauses if isinstance(c, Key)]
    if equal.columns is not None and any(key.by is not None for key in keys):
        return False  # the function may look at a column that is not compared: only single events show that
    return equal.tolerance is None or bool(keys)


class Columnar:
    """Both sides. Not for use by several threads."""

    def __init__(
        self, depends: Dependence, equal: Equality, *, spill_bytes: int, spill_folder: Path | None
    ) -> None:
        self.layout = Layout(equal, (*depends.columns, *(equal.columns or ())))
        self.pending = {side: Pending(Spill(spill_bytes, spill_folder)) for side in SIDES}
        self._equal = equal
        self._keys = [c for c in depends.clauses if isinstance(c, Key)]
        self._ordered = self._keys == [Key()]
        self._single: Mapping[Side, SingleQueue] = {side: SingleQueue() for side in SIDES}
        count = 0 if self._ordered else max(1, len(self._keys))
        self._queues: Mapping[Side, list[Queues]] = {side: [Queues() for _ in range(count)] for side in SIDES}
        self._slots: list[Slots] = [
            slots_of(c) for c in depends.clauses if isinstance(c, (Synchronising, Punctuating))
        ]

    def push(self, side: Side, rows: pa.RecordBatch, positions: Ids) -> int:
        """Take rows in, piece by piece, and return how many. Fewer than all: the next piece needs a closer look.

        A piece that cannot be taken in is tried in ever smaller ones, so that few rows have to be looked at closely.
        """
        self.layout.fit(rows.schema)
        rows = _decoded(rows)
        start, size = 0, LARGEST
        while start < rows.num_rows:
            piece = rows.slice(start, size)
            if self._push(side, piece, positions[start : start + size]):
                start += piece.num_rows
            elif piece.num_rows <= _SMALLEST:
                break
            else:
                size = max(_SMALLEST, piece.num_rows // 2)
        return start

    def unmatched(self) -> Unmatched:
        """The rows without a partner."""
        return {side: pending.table() for side, pending in self.pending.items()}

    def _push(self, side: Side, rows: pa.RecordBatch, positions: Ids) -> bool:
        other = self.pending[OTHER[side]]
        words, nulls = self.layout.words(rows)
        by_name = dict(zip((c.name for c in self.layout.columns), words, strict=True))
        groups = self._grouped(rows, words, nulls, by_name)
        taken = self._find(side, groups, rows.num_rows)
        if taken is None:
            return False
        partners = taken[0].ids
        matched = np.flatnonzero(partners >= 0)
        unmatched = np.flatnonzero(partners < 0)
        partners = partners[matched]
        if len(matched) and not self._equal_rows(side, rows, [*words, *nulls], matched, partners):
            return False
        batch = Batch(side, rows, by_name, matched, unmatched, partners)
        other.kill(partners)
        try:
            plans = self._plans(batch, len(words) + len(nulls))
        except BaseException:
            other.revive(partners)
            raise
        if plans is None:
            other.revive(partners)
            return False
        self._commit(batch, positions, [*words, *nulls], groups, taken, plans)
        return True

    def _plans(self, batch: Batch, at: int) -> list[SlotPlan] | None:
        """The plan of each clause with slots; None if one of them does not fit."""
        plans: list[SlotPlan] = []
        for slots in self._slots:
            plan = slots.plan(batch, self.pending[OTHER[batch.side]], at)
            if not plan.fits:
                return None
            plans.append(plan)
            at += slots.width
        return plans

    def _grouped(
        self, rows: pa.RecordBatch, words: list[Words], nulls: list[Words], by_name: Mapping[str, Words]
    ) -> list[Grouped]:
        if self._ordered:
            return []
        if self._keys:
            return [
                grouped(hash_of([by_name[c] for c in key.columns]) if key.by is None else _hashes(key, rows))
                for key in self._keys
            ]
        return [grouped(hash_of([*words, *nulls]))]

    def _find(self, side: Side, groups: list[Grouped], count: int) -> list[Taken] | None:
        """The partners waiting on the other side, by each key; None if keys disagree about them."""
        other = OTHER[side]
        if self._ordered:
            return [Taken(self._single[other].find(count), ())]
        taken = [q.find(g) for q, g in zip(self._queues[other], groups, strict=True)]
        return None if any((t.ids != taken[0].ids).any() for t in taken[1:]) else taken

    def _equal_rows(
        self, side: Side, rows: pa.RecordBatch, words: Sequence[Words], matched: Ids, partners: Ids
    ) -> bool:
        other = self.pending[OTHER[side]]
        every = len(matched) == rows.num_rows
        columns = self.layout.columns
        for number, mine in enumerate(words):
            here = mine if every else mine[matched]
            there = other.arrays[number][partners]
            tolerance = columns[number].tolerance if number < len(columns) else None
            if tolerance is None:
                if not np.array_equal(here, there):
                    return False
            elif not self._near(here, there, tolerance, columns[number].kind):
                return False
        if not self.layout.hashed:
            return True
        return self.layout.confirm(rows if every else rows.take(pa.array(matched)), other.rows(partners))

    def _near(self, here: Words, there: Words, absolute: float, kind: str) -> bool:
        relative = self._equal.tolerance.relative if self._equal.tolerance is not None else 0.0
        far = np.flatnonzero(here != there)
        view = np.float64 if kind == "float" else np.int64
        a, b = here[far].view(view).astype(np.float64), there[far].view(view).astype(np.float64)
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return False
        return bool((np.abs(a - b) <= absolute + relative * np.maximum(np.abs(a), np.abs(b))).all())

    def _commit(
        self,
        batch: Batch,
        positions: Ids,
        words: Sequence[Words],
        groups: list[Grouped],
        taken: list[Taken],
        plans: Sequence[SlotPlan],
    ) -> None:
        side, other = batch.side, OTHER[batch.side]
        mine = self.pending[side]
        first = mine.length
        if len(batch.matched):
            self._single[other].take(len(batch.matched))
            for queues, part in zip(self._queues[other], taken, strict=False):  # no queues for `ordered`
                queues.take(part)
        if len(batch.unmatched):
            arrays: list[Array] = [*words, *(a for plan in plans for a in plan.arrays)]
            rows = batch.rows
            if len(batch.matched):
                arrays = [a[batch.unmatched] for a in arrays]
                positions = positions[batch.unmatched]
                rows = rows.take(pa.array(batch.unmatched))
            first = mine.append(arrays, positions, rows)
            self._enqueue(batch, first, groups)
        for slots, plan in zip(self._slots, plans, strict=True):
            slots.commit(batch, plan, first)
        if len(batch.matched):
            self._tidy(other, len(words))

    def _enqueue(self, batch: Batch, first: int, groups: list[Grouped]) -> None:
        side = batch.side
        self._single[side].add(first, len(batch.unmatched))
        alive = self.pending[side].alive
        for queues, group in zip(self._queues[side], groups, strict=True):
            order = group.order
            keys = group.keys[group.group]
            if len(batch.matched):
                waits = np.zeros(len(order), np.bool_)
                waits[batch.unmatched] = True
                kept = waits[order]
                ids = (np.cumsum(waits) - 1)[order[kept]] + first
                queues.add(keys[kept], ids, alive)
            else:
                queues.add(keys, order + first, alive)

    def _tidy(self, side: Side, at: int) -> None:
        """Free the memory of matched rows."""
        pending = self.pending[side]
        if not pending.alive_count:
            pending.reset()
            for queues in self._queues[side]:
                queues.clear()
            self._single[side].renumber()
            for slots in self._slots:
                slots.emptied(side)
            return
        alive = pending.alive
        new_ids = pending.pack()
        if new_ids is None:
            return
        for queues in self._queues[side]:
            queues.renumber(alive, new_ids)
        self._single[side].renumber()
        for slots in self._slots:
            slots.packed(side, pending, at)
            at += slots.width


def _hashes(key: Key, rows: pa.RecordBatch) -> Words:
    """Hashes of the values of a key function. Equal keys have equal hashes; others with one hash are seen later."""
    keys = map(key.of, rows_of(rows))
    # in Python -1 and -2 have the same hash
    return np.fromiter((hash((k, k == -1)) for k in keys), np.int64, rows.num_rows).view(np.uint64)


def _decoded(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Without dictionaries: batches may have different ones, and files of several batches cannot."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            plain = field.with_type(field.type.value_type)
            rows = rows.set_column(number, plain, rows.column(number).dictionary_decode())
    return rows
