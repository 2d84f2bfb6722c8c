"""The state of a monitor: the matcher, which batches it has, when they came, and how far the sides are apart.

Guarantee: a batch is taken in once, by its number; after `take` it is in the checkpoint, if there is one, so a source
may forget it. Plain code over its arguments and a clock.

Not promised: safety with several threads; `samovar.diff.monitor` holds a lock.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from samovar.diff.comparison_errors import CheckpointProblem
from samovar.diff.event_values import OTHER, SIDES, Side
from samovar.diff.streams.monitor_checkpoint import Judge, Store
from samovar.diff.verdict import Verdict

if TYPE_CHECKING:
    from samovar.diff.streams.keyed_matchers import Counted

__all__ = ["Batch", "Comparison", "Metrics"]

Batch: TypeAlias = "pa.Table | Counted"
"""What a judge takes in at once: an Arrow table, or rows that stay in Spark."""


@dataclass(frozen=True)
class Metrics:
    """How far two streams agree so far. Mappings have an entry a side."""

    matched: int
    """Pairs of events that were matched."""
    seen: dict[Side, int]
    """Events received."""
    unmatched: dict[Side, int]
    """Events without a partner so far."""
    ahead: Side | None
    """The side that is ahead; None if none is."""
    lag_events: int
    """How many events the other side is behind."""
    lag_seconds: float
    """For how long the oldest event without a partner has been here."""
    batches: dict[Side, int]
    """Batches taken in since the monitor was started."""
    latency: dict[Side, float]
    """Seconds the last batch took: to fetch, to compare, and to save; without `waited`."""
    waited: dict[Side, float]
    """Seconds a side was held back in all, because it was too far ahead."""


@dataclass
class _Arrivals:
    """When events came: positions up to which, and times."""

    ends: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def add(self, end: int, when: float) -> None:
        self.ends.append(end)
        self.times.append(when)

    def when(self, position: int) -> float:
        """When the event at a position came."""
        return self.times[bisect_right(self.ends, position)]

    def forget(self, position: int) -> None:
        """Drop the times of events before this one."""
        at = bisect_right(self.ends, position)
        del self.ends[:at], self.times[:at]


class Comparison:
    """The state of a monitor."""

    def __init__(
        self,
        matcher: Judge,
        *,
        drift: int,
        store: Store | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._drift = drift
        self._store = store
        self._last: dict[Side, int] = dict.fromkeys(SIDES, -1)
        self.matcher: Judge = matcher
        self.verdict: Verdict | None = None
        """The difference found by the order of events; it stays, whatever follows."""
        if store is not None and (saved := store.load(matcher)) is not None:
            self.matcher, self._last, self.verdict = saved
        self._seen: dict[Side, int] = {s: self.matcher.seen(s) for s in SIDES}
        self._arrivals: dict[Side, _Arrivals] = {s: _Arrivals() for s in SIDES}
        self._reported: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._batches: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self.latency: dict[Side, float] = dict.fromkeys(SIDES, 0.0)
        self.waited: dict[Side, float] = dict.fromkeys(SIDES, 0.0)
        for side in SIDES:
            if self._seen[side]:
                self._arrivals[side].add(self._seen[side], clock())

    @property
    def is_saved(self) -> bool:
        """Whether there is a checkpoint."""
        return self._store is not None

    def has(self, side: Side, number: int) -> bool:
        """Whether a batch was taken in before. Raises if batches in between are missing."""
        expected = self._last[side] + 1
        if number > expected and self.verdict is None:
            raise CheckpointProblem(
                f"Expected batch {expected} of the {side} side, got {number}: the batches between were never compared.",
                hint="Parts of the checkpoint are of different runs. Start again with an empty folder.",
            )
        return number < expected

    def too_far(self, side: Side, rows: int) -> bool:
        """Whether `rows` more rows would bring a side further ahead than allowed. One batch alone never does."""
        ahead = self._seen[side] - self._seen[OTHER[side]]
        return ahead > 0 and ahead + rows > self._drift

    def take(self, side: Side, number: int, table: Batch) -> Verdict | None:
        """Take a batch in, once. The verdict if the order of events shows a difference."""
        if self.has(side, number):
            return self.verdict
        if self.verdict is None:
            self.verdict = self.matcher.push_batch(side, table)
        self._last[side] = number
        self._seen[side] += table.num_rows
        self._batches[side] += 1
        if table.num_rows:
            self._arrivals[side].add(self._seen[side], self._clock())
        for each in SIDES if self.verdict is None else ():
            oldest = self.matcher.oldest(each)
            self._arrivals[each].forget(self._seen[each] if oldest is None else oldest)
        if self._store is not None:
            self._store.save(self.matcher, self._last, self.verdict, changed=table.num_rows > 0)
        self.matcher.tidy()
        return self.verdict

    def decided_without(self, side: Side) -> bool:
        """Whether the end of a side decides: the other has more events than it."""
        return self._seen[OTHER[side]] > self._seen[side]

    def overdue(self, patience: float) -> Verdict | None:
        """The verdict if an event has been without a partner for `patience` seconds. Each event is reported once."""
        for side in SIDES:
            came = self._waits_since(side)
            if came is None or self._clock() - came[1] < patience:
                continue
            self._reported[side] = self.matcher.seen(side)
            verdict = self.matcher.if_ended()
            rest = verdict.rest[side]
            event = rest.event(rest.positions.index(came[0]))
            return replace(verdict, side=side, position=came[0], event=event, overdue_after=patience)
        return None

    def until_overdue(self, patience: float) -> float | None:
        """Seconds until an event is overdue if nothing comes; None if all have their partner."""
        came = [c[1] for side in SIDES if (c := self._waits_since(side)) is not None]
        return max(0.0, min(came) + patience - self._clock()) if came else None

    def metrics(self) -> Metrics:
        """How far the streams agree now."""
        unmatched: dict[Side, int] = {s: self.matcher.waiting(s) for s in SIDES}
        apart = self._seen["left"] - self._seen["right"]
        oldest = [
            self._arrivals[s].when(p)
            for s in SIDES
            if self.verdict is None and (p := self.matcher.oldest(s)) is not None
        ]
        return Metrics(
            matched=min(self.matcher.seen(s) - unmatched[s] for s in SIDES),
            seen=dict(self._seen),
            unmatched=unmatched,
            ahead=None if not apart else "left" if apart > 0 else "right",
            lag_events=abs(apart),
            lag_seconds=max(0.0, self._clock() - min(oldest)) if oldest else 0.0,
            batches=dict(self._batches),
            latency=dict(self.latency),
            waited=dict(self.waited),
        )

    def _waits_since(self, side: Side) -> tuple[int, float] | None:
        """The oldest event without a partner that was not reported, and when it came."""
        if self.verdict is not None:
            return None
        position = self.matcher.oldest(side, self._reported[side])
        return None if position is None else (position, self._arrivals[side].when(position))

    def close(self) -> None:
        """Release the checkpoint, so that another monitor can use it."""
        if self._store is not None:
            self._store.close()
