"""How long an epoch is. Pure: sizes and seconds in, sizes out.

Every epoch aims at `aim` seconds (`watched` while somebody watches), whatever its run does: what a crash loses, when a
modification is in force and how far a jump computes follow from it. The first epoch of a level is small, since nobody
knows how slow its rows are; from then on sizes follow the measured rate, `GROWTH` times the largest so far at most. An
epoch that joins with a large build side again spends a fixed time whatever its size: it aims at `OVERHEADS` times that.

The fixed time is estimated from epochs of different size by a least-squares line, and is at least `floor`. It is kept
while sizes do not differ: else the fixed cost of short epochs would pass for work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Pacer"]

BUILD_RATE = 400 << 20
NATIVE_RATE = 60 << 20
SLOW_RATE = 8 << 20
"""Bytes a second of build sides joined with again, of native and of Python work, before anything is measured."""
GROWTH = 6
"""Three epochs from the first one to the aim, where an operator takes microseconds a tuple; one more estimate before
each step, where its tuples get slower on the way."""
OVERHEADS = 4
"""An epoch aims at so many times its fixed cost at least: three quarters of its time are work."""
LONGEST = 20.0
"""Seconds: the aim of an epoch with the largest fixed cost. Longer ones would lose too much at a crash."""
SHORTEST = 0.35
"""Seconds of work in an epoch that pauses have made shorter, at least; and twice its fixed cost."""
HALVINGS = 3
"""From two seconds down to `SHORTEST`."""
PROBE = 0.6
"""The size before, against that of an epoch that finds the fixed cost: different enough to tell it from noise. That
epoch is the larger one: one more short epoch would cost more than it tells."""
UNKNOWN = 4.0
"""An epoch given up when nobody knew how long it would take counts as one that would have taken so many times the time
it worked. Growing back takes one epoch, and giving up a second time costs another three aims."""

FIRST_TASK = 1.5
"""Seconds that Spark's tasks may work in a first epoch, however few bytes it has, before one must have finished. The
first stage of a process takes one, of which half is Java's loading of classes; later ones a tenth."""
COLD = 3.0
"""The same in a session that has just started, where bytes may take twice as long as well: Java compiles meanwhile."""
SLOWEST = 2
"""Times the guess that an epoch may take before anything is measured."""
TASK_AIMS = 3
"""Aims that an epoch of a measured rate may take before one of Spark's tasks has finished."""


@dataclass
class Pacer:
    """Chooses the next epoch's size in bytes from the epochs so far."""

    first_bytes: int = 240 << 20
    aim: float = 2.0
    watched: float = 1.0
    floor: float = 0.15
    fixed_bytes: int | None = None
    """Set: every epoch has this size (tests, and people who want it)."""
    guess: int = NATIVE_RATE
    """Bytes a second before anything is measured."""
    seen: list[tuple[int, float]] = field(default_factory=list)
    last: tuple[int, float] | None = None
    """Size and seconds of the last epoch, by itself."""
    ahead: int = 0
    """Size of a first epoch that did more than its share of work (it read build sides), if there was one."""
    bound: int | None = None
    """The size of the next epoch at most, after one was given up because it took too long."""
    halvings: int = 0
    """How often the next epoch is halved, because pauses cancelled the ones before."""
    calm: float = 0.0
    """Seconds of epochs since then that no pause met. So many as an epoch aims at take one halving back: pauses a
    second apart find epochs short, and keep them so."""
    fixed: float | None = None
    """The fixed time as estimated last."""

    @classmethod
    def for_level(
        cls, build_bytes: int, *, python: bool, filtered: bool = False, fixed_bytes: int | None = None
    ) -> Pacer:
        """A pacer for a level that takes build sides of that size whole, and may run Python operators.

        `python`: whether user code runs for its rows. Python may be slow for their bytes, so epochs start small; larger
        where a filter before it (`filtered`) leaves it few rows. What Spark does by itself, in some four seconds as
        far as can be guessed, is one epoch: its build sides would have to be kept for a second one. An epoch that
        joins with a large build side starts larger.
        """
        floor = cls.floor + build_bytes / BUILD_RATE
        first, guess = cls.first_bytes, NATIVE_RATE
        if python:
            first, guess = (32 << 20, NATIVE_RATE) if filtered else (1 << 19, SLOW_RATE)
        first = max(first, int((floor - cls.floor) * guess))
        return cls(first, floor=floor, fixed_bytes=fixed_bytes, guess=guess)

    # --- what has happened ------------------------------------------------------------------------------------------

    def observe(
        self, size: int, seconds: float, *, prepares: bool = False, paused: bool = False, ahead: bool = False
    ) -> None:
        """An epoch of that size took that long. `prepares`: it did work that later epochs will not repeat; `paused`:
        somebody waits for its end, so that epochs do not grow again yet; `ahead`: some of its work was done while the
        epoch before it ran, so that only both together tell how long an epoch takes."""
        alone = size, seconds
        if ahead and self.last is not None:
            size, seconds = (size + self.last[0]) // 2, (seconds + self.last[1]) / 2
        self.last = None if prepares else alone
        self.bound = None
        self.calm = 0.0 if paused else self.calm + seconds
        if self.halvings and self.calm >= self.aim:
            self.halvings, self.calm = self.halvings - 1, 0.0
        if prepares:
            self.ahead = size
        elif size > 0:
            self.seen.append((size, seconds))
            del self.seen[:-8]
            self.fixed = self._intercept(self.fixed)

    def overran(self, size: int, worked: float, expected: float | None, least: int | None = None) -> None:
        """An epoch of that size was given up after `worked` seconds; it would have taken `expected`, if known.

        The next one is as short as one that somebody watches: it comes late already. `least`: of native work, the size
        below which an epoch is not done sooner; so long is the next one where nobody knows anything.
        """
        would = expected if expected is not None else UNKNOWN * worked
        bound = min(int(size * self.watched / max(would, 1e-6)), size // 2)
        if least is not None:
            bound = max(bound, least) if expected is not None or self.seen else least
        self.bound = max(1, bound)

    def interrupted(self) -> None:
        """A pause cancelled an epoch."""
        self.halvings, self.calm = min(self.halvings + 1, HALVINGS), 0.0

    @property
    def knows(self) -> bool:
        """Whether the next epoch's size can be chosen before the present one has ended. Rows that user code processes
        may be of any speed, so the epoch behind a first one waits for its time."""
        return bool(self.seen) or self.fixed_bytes is not None or self.guess == NATIVE_RATE

    # --- what comes next --------------------------------------------------------------------------------------------

    def target(self, *, watching: bool) -> float:
        """Seconds that the next epoch should take."""
        overhead = self.estimate()[0] if self.seen else self.floor
        return max(self.watched if watching else self.aim, min(OVERHEADS * overhead, LONGEST))

    def next_bytes(self, remaining: int, *, watching: bool) -> int:
        """The next epoch's size; a small rest is taken along."""
        if self.fixed_bytes is not None:
            return min(self.fixed_bytes, remaining)
        chosen = self._measured(watching) if self.seen else float(max(self.first_bytes, 3 * self.ahead))
        if self.bound is not None:
            return min(remaining, self.bound, max(int(chosen), 1))
        if self.halvings:
            overhead, rate = self.estimate() if self.seen else (0.0, 0.0)
            least = max(SHORTEST, 2 * overhead) * rate
            chosen = min(chosen, max(chosen / 2**self.halvings, least))
        return remaining if remaining < 1.35 * chosen else max(int(chosen), 1)

    def _measured(self, watching: bool) -> float:
        overhead, rate = self.estimate()
        aim = self.target(watching=watching)
        chosen = min(max(aim - overhead, aim / 2) * rate, GROWTH * max(size for size, _ in self.seen))
        last = self.seen[-1][0]
        # epochs of one size do not show what they cost beside their size
        return last / PROBE if self.fixed is None and PROBE * last < chosen < last / PROBE else chosen

    def seconds(self, size: int) -> float:
        """How long an epoch of that size will take; a guess before anything is measured."""
        if not self.seen:
            return size / self.guess
        overhead, rate = self.estimate()
        return overhead + size / rate

    def longest_seconds(self, size: int) -> float:
        """How long an epoch of that size may take: before anything is measured, twice the guess."""
        return self.seconds(size) * (1 if self.seen else SLOWEST)

    def task_seconds(self, size: int, builds: int, *, cold: bool) -> float:
        """Seconds that Spark's tasks may work before one of them has finished, in an epoch of native work.

        Before anything is measured it may also have to read build sides of so many bytes, which no shorter epoch would
        save; and an epoch of two tasks finishes none before its end.
        """
        if self.seen:
            return TASK_AIMS * max(self.target(watching=False), self.seconds(size))
        seconds = SLOWEST * (size + builds) / NATIVE_RATE
        return max(COLD, 2 * seconds) if cold else max(FIRST_TASK, seconds)

    def estimate(self) -> tuple[float, float]:
        """Fixed seconds an epoch, and bytes a second of the rest."""
        mean_s, mean_t = (sum(values) / len(self.seen) for values in zip(*self.seen, strict=True))
        overhead = min(self.floor if self.fixed is None else self.fixed, 0.9 * min(t for _, t in self.seen))
        return overhead, mean_s / max(mean_t - overhead, 1e-6)

    def _intercept(self, before: float | None) -> float | None:
        """The fixed time by the epochs seen; that before, if their sizes do not differ enough to tell."""
        sizes, times = zip(*self.seen, strict=True)
        mean_s, mean_t = sum(sizes) / len(sizes), sum(times) / len(times)
        spread = sum((s - mean_s) ** 2 for s in sizes)
        if spread <= (0.2 * mean_s) ** 2 * len(sizes):
            return before
        slope = sum((s - mean_s) * (t - mean_t) for s, t in self.seen) / spread
        return float(max(self.floor, min(mean_t - slope * mean_s, 0.9 * min(times))))
