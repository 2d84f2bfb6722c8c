"""Pauses of a run that only Spark works on, again and again: the machine and the pacer, on a made-up clock."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control.machine import Machine
from samovar.runtime.epochs.pacer import Pacer

MB = 1 << 20
CANCELLING = 0.04
"""Seconds that Spark takes to cancel jobs."""


class Engine:
    """Runs epochs of a source of bytes, at a rate and with a fixed cost an epoch."""

    def __init__(self, seconds: float, *, fixed: float, rate: float = 50 * MB, noise: float = 0.1) -> None:
        self.machine = Machine()
        self.pacer = Pacer(32 << 20)
        self.left = int(seconds * rate)
        self.fixed, self.rate, self.noise = fixed, rate, noise
        self.rnd = random.Random(3)
        self.time = 0.0
        self.worked = 0.0
        self.longest = 0.0
        self.waits: list[float] = []
        self.lost: list[float] = []
        self._names = 0

    def run(self, gaps: Iterator[float]) -> None:
        """To the end; a pause comes so many seconds after each resume."""
        number, pause = 0, next(gaps)
        while self.left > 0:
            size = min(self.pacer.next_bytes(self.left, watching=False), self.left)
            seconds = (self.fixed + size / self.rate) * (1 + self.noise * self.rnd.uniform(-1, 1))
            self.longest = max(self.longest, seconds)
            expected = self.pacer.seconds(size) if self.pacer.seen else None
            began = self.time
            begun = e.EpochBegun(epoch=number, attempt=str(self.time), at=began, expected=expected, aim=2.0)
            self.machine.handle(begun, began)
            paused = began + seconds > pause
            cancelled = paused and self._pause(pause)
            if cancelled:
                self.time = pause + CANCELLING
                self.lost.append(pause - began)
                self.machine.handle(e.EpochGivenUp(epoch=number), self.time)
                self.pacer.interrupted()
            else:
                self.time = began + seconds
                self.machine.handle(e.EpochDone(epoch=number), self.time)
                self.pacer.observe(size, seconds, paused=paused)
                self.left -= size
                number += 1
            self.worked += self.time - began
            if paused:
                assert self.machine.state == "paused"
                self.waits.append(self.time - pause)
                self.time += 10.0
                self.machine.handle(e.ResumeRequested(command=self._name()), self.time)
                pause = self.time + next(gaps)

    def _pause(self, at: float) -> bool:
        out = self.machine.handle(e.PauseRequested(command=self._name()), at)
        return any(isinstance(one, i.CancelEpoch) for one in out)

    def _name(self) -> str:
        self._names += 1
        return f"c{self._names}"


def gaps(low: float, high: float, seed: int = 1) -> Iterator[float]:
    rnd = random.Random(seed)
    while True:
        yield rnd.uniform(low, high)


def never() -> Iterator[float]:
    yield float("inf")


@pytest.mark.parametrize("fixed", [0.05, 0.1, 0.15])
@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_is_paused_all_the_time_ends_in_twice_its_time(fixed: float, seed: int) -> None:
    alone, paused = Engine(30, fixed=fixed), Engine(30, fixed=fixed)
    alone.run(never())
    paused.run(gaps(0.1, 0.5, seed))
    assert paused.worked <= 2 * alone.worked
    assert max(paused.lost) <= 2.0


@pytest.mark.parametrize("around", [(0.5, 1.5), (0.9, 1.1), (2.0, 6.0)])
def test_pauses_about_a_second_apart_or_more_wait_for_no_epoch(around: tuple[float, float]) -> None:
    waits: list[float] = []
    for seed in range(8):
        engine = Engine(120, fixed=0.1)
        engine.run(gaps(*around, seed))
        waits += engine.waits
        assert max(engine.lost) <= 2.0
    assert sorted(waits)[int(0.95 * len(waits))] <= 0.1


def test_epochs_are_of_full_length_again_when_nobody_pauses_any_more() -> None:
    engine = Engine(120, fixed=0.1)
    few = gaps(0.1, 0.5)
    engine.run(iter([*(next(few) for _ in range(20)), float("inf")]))
    assert engine.longest > 1.5
    assert engine.pacer.halvings == 0
