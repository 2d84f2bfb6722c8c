"""First-in, first-out queues by key, for whole arrays of keys at once.

Entries lie in runs, oldest first, each sorted by key and, within a key, by age. A stream that lags behind finds its
partners in the oldest runs, so these stay as they were added. Once looking up has walked through many, small runs are
merged into larger ones: then looking up n keys costs n times the logarithm of what is queued, and adding an entry
costs a logarithm on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samovar.diff.matcher.row_words import Words

__all__ = ["Grouped", "Ids", "Queues", "Taken", "grouped"]

_FEW = 4
"""Runs that a look-up may walk through at no charge: further ones count towards the next merge."""
_MOST = 256
"""Runs at which a merge is due in any case."""

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Grouped:
    """An array of keys sorted, and cut into groups of equal keys."""

    order: Ids
    """Places in the array, sorted by key and then by place."""
    starts: Ids
    """Where in `order` each group starts."""
    group: Ids
    """The group of each place in `order`."""
    keys: Words
    """The key of each group."""

    @property
    def sizes(self) -> Ids:
        """How many places each group has."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def ranks(self) -> Ids:
        """For each place in `order`, how many of its group are before it."""
        return np.arange(len(self.order)) - self.starts[self.group]


def grouped(keys: Words) -> Grouped:
    """Sort an array of at least one key and cut it into groups."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    fresh = _fresh(ranked)
    starts = np.flatnonzero(fresh)
    return Grouped(order, starts, np.cumsum(fresh) - 1, ranked[starts])


def _fresh(ranked: Words) -> Flags:
    """Of at least one sorted key, those that differ from the key before."""
    fresh = np.empty(len(ranked), np.bool_)
    fresh[0] = True
    np.not_equal(ranked[1:], ranked[:-1], out=fresh[1:])
    return fresh


class _Run:
    """Sorted entries. `begins` moves on as entries are taken."""

    def __init__(self, keys: Words, ids: Ids) -> None:
        self.all_keys = keys
        self.ids = ids
        self.begins = np.flatnonzero(_fresh(keys))
        self.ends = np.append(self.begins[1:], len(keys))
        self.keys = keys[self.begins]
        self.left = len(keys)


@dataclass(frozen=True)
class Taken:
    """Entries that `find` returned and `take` will remove: for each run the groups, and how many entries of each."""

    ids: Ids
    """For each key asked for, in the order asked, the entry found; -1 for none."""
    parts: Sequence[tuple[_Run, Ids, Ids]]


class Queues:
    """The unmatched rows of one side: a queue for each key."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._walked = 0
        """Runs looked through since the last merge, beyond a few for each look-up."""

    def find(self, asked: Grouped) -> Taken:
        """The next entries of each queue, the first for the first place that asks; nothing is taken out."""
        ids = np.full(len(asked.order), -1, np.int64)
        if not self._runs:
            return Taken(ids, ())
        parts = []
        need = asked.sizes
        ranks = asked.ranks
        in_order = np.full(len(asked.order), -1, np.int64)
        for number, run in enumerate(self._runs, 1):
            self._walked += number > _FEW
            at = np.searchsorted(run.keys, asked.keys)
            at[at == len(run.keys)] = 0
            there = run.keys[at] == asked.keys
            count = np.minimum(need, np.where(there, run.ends[at] - run.begins[at], 0))
            some = np.flatnonzero(count)
            if not len(some):
                continue
            parts.append((run, at[some], count[some]))
            mine = (ranks >= 0) & (ranks < count[asked.group])
            groups = asked.group[mine]
            in_order[mine] = run.ids[run.begins[at[groups]] + ranks[mine]]
            need = need - count
            if not need.any():
                break
            ranks = ranks - count[asked.group]
        ids[asked.order] = in_order
        return Taken(ids, parts)

    def take(self, taken: Taken) -> None:
        """Remove entries that `find` returned."""
        for run, groups, counts in taken.parts:
            run.begins[groups] += counts
            run.left -= int(counts.sum())
        if not all(run.left for run, _, _ in taken.parts):
            self._runs = [run for run in self._runs if run.left]

    def add(self, keys: Words, ids: Ids, alive: Flags) -> None:
        """Queue entries: keys in sorted order, their ids ascending within a key, all newer than the entries before."""
        if not len(keys):
            return
        self._runs.append(_Run(keys, ids))
        if len(self._runs) > _MOST or self._walked > len(self._runs):
            self._merge(alive)

    def _merge(self, alive: Flags) -> None:
        """Neighbours as one, until each run is more than twice as long as the next."""
        self._walked = 0
        runs: list[_Run] = []
        for run in self._runs:
            runs.append(run)
            while len(runs) > 1 and runs[-2].left <= 2 * runs[-1].left:
                newer, older = runs.pop(), runs.pop()
                parts = [(r.all_keys[kept], r.ids[kept]) for r in (older, newer) for kept in [alive[r.ids]]]
                keys = np.concatenate([k for k, _ in parts])
                ids = np.concatenate([i for _, i in parts])
                order = np.argsort(keys, kind="stable")
                runs.append(_Run(keys[order], ids[order]))
        self._runs = runs

    def renumber(self, alive: Flags, new_ids: Ids) -> None:
        """Ids have changed; entries that were taken are dropped."""
        runs = []
        for run in self._runs:
            if run.left == len(run.ids):  # a stream that lags behind leaves most runs as they were
                run.ids = new_ids[run.ids]
                runs.append(run)
                continue
            kept = alive[run.ids]
            if kept.any():
                runs.append(_Run(run.all_keys[kept], new_ids[run.ids[kept]]))
        self._runs = runs

    def clear(self) -> None:
        """Remove all entries."""
        self._runs = []


class SingleQueue:
    """The queue of `ordered`: one key, so that entries are taken in the order of their ids."""

    def __init__(self) -> None:
        self._next = 0
        self._end = 0

    def find(self, asked: int) -> Ids:
        """The next entries; -1 for none."""
        ids = np.full(asked, -1, np.int64)
        count = min(asked, self._end - self._next)
        ids[:count] = np.arange(self._next, self._next + count)
        return ids

    def take(self, count: int) -> None:
        """Remove the next `count` entries."""
        self._next += count

    def add(self, first: int, count: int) -> None:
        """Queue `count` ids from `first` on."""
        if self._next == self._end:
            self._next = first
        self._end = first + count

    def renumber(self) -> None:
        """Ids have changed: what is left starts at 0."""
        self._next, self._end = 0, self._end - self._next
