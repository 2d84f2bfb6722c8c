"""How long an epoch is. Pure: sizes and seconds in, sizes out.

An epoch costs a fixed time over its work. While nobody watches, epochs grow until that time is at most `share` of the
epoch; while somebody watches, an epoch aims at `watched` seconds. The fixed time is estimated from epochs of different
size by a least-squares line, and is at least `floor`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Pacer"]

BUILD_RATE = 400 << 20
NATIVE_RATE = 60 << 20
SLOW_RATE = 8 << 20
"""Bytes a second of build sides joined with again, of native and of Python work, before anything is measured."""


@dataclass
class Pacer:
    """Chooses the next epoch's size in bytes from the epochs so far."""

    first_bytes: int = 1792 << 20
    first_watched: int = 64 << 20
    share: float = 0.03
    watched: float = 1.0
    floor: float = 0.4
    longest: float = 60.0
    fixed_bytes: int | None = None
    """Set: every epoch has this size (tests, and people who want it)."""
    guess: int = NATIVE_RATE
    """Bytes a second before anything is measured."""
    seen: list[tuple[int, float]] = field(default_factory=list)
    ahead: int = 0
    """Size of a first epoch that did more than its share of work (it read build sides), if there was one."""

    @classmethod
    def for_level(
        cls, build_bytes: int, *, python: bool, filtered: bool = False, fixed_bytes: int | None = None
    ) -> Pacer:
        """A pacer for a level that takes build sides of that size whole, and may run Python operators.

        An epoch that joins with a large build side spends time on it whatever its own size, so epochs start longer.
        Python operators are slow for their bytes, so epochs start shorter, unless a filter before them (`filtered`)
        leaves them few rows.
        """
        floor = cls.floor + build_bytes / BUILD_RATE
        if python:
            first = cls.first_bytes if filtered else 256 << 20
            guess = NATIVE_RATE if filtered else SLOW_RATE
            return cls(first, first_watched=16 << 20, floor=floor, fixed_bytes=fixed_bytes, guess=guess)
        first = max(
            cls.first_bytes, int(floor / cls.share * NATIVE_RATE) if build_bytes > cls.first_bytes / 4 else 0
        )
        return cls(first_bytes=first, floor=floor, fixed_bytes=fixed_bytes)

    def observe(self, size: int, seconds: float, *, prepares: bool = False) -> None:
        """An epoch of that size took that long. `prepares`: it did work that later epochs will not repeat."""
        if prepares:
            self.ahead = size
        elif size > 0:
            self.seen.append((size, seconds))
            del self.seen[:-8]

    def next_bytes(self, remaining: int, *, watching: bool) -> int:
        """The next epoch's size; a small rest is taken along."""
        if self.fixed_bytes is not None:
            return min(self.fixed_bytes, remaining)
        if not self.seen:
            start = self.first_watched if watching else self.first_bytes
            chosen = float(max(start, self.ahead if watching else 3 * self.ahead))
        else:
            overhead, rate = self.estimate()
            aim = self.watched if watching else min(max(overhead / self.share, self.watched), self.longest)
            chosen = max(aim - overhead, aim / 2) * rate
            growth = 8 if max(t for _, t in self.seen) < 4.0 else 3  # a long one is no place for a bold guess
            chosen = min(chosen, growth * max(s for s, _ in self.seen))
        return remaining if remaining < 1.35 * chosen else max(int(chosen), 1)

    def seconds(self, size: int) -> float:
        """How long an epoch of that size will take; a guess before anything is measured."""
        if not self.seen:
            return size / self.guess
        overhead, rate = self.estimate()
        return overhead + size / rate

    def longest_seconds(self, size: int) -> float:
        """How long an epoch of that size may take: before anything is measured, twice the guess."""
        return self.seconds(size) * (1 if self.seen else 2)

    def estimate(self) -> tuple[float, float]:
        """Fixed seconds an epoch, and bytes a second of the rest."""
        sizes = [s for s, _ in self.seen]
        times = [t for _, t in self.seen]
        mean_s, mean_t = sum(sizes) / len(sizes), sum(times) / len(times)
        spread = sum((s - mean_s) ** 2 for s in sizes)
        overhead = self.floor
        if spread > (0.2 * mean_s) ** 2 * len(sizes):
            slope = sum((s - mean_s) * (t - mean_t) for s, t in self.seen) / spread
            overhead = min(max(mean_t - slope * mean_s, self.floor), 0.5 * mean_t)
        rate = mean_s / max(mean_t - overhead, 0.1 * mean_t, 1e-6)
        return overhead, rate
