"""How long epochs become: pure, from sizes and seconds."""

from __future__ import annotations

import random

import pytest

from samovar.runtime.epochs.pacer import Pacer

MB = 1 << 20


def run(
    pacer: Pacer, total: int, *, fixed: float, rate: float, watching: bool = False, noise: float = 0.0
) -> list[float]:
    """The epochs of a source of that size, on a machine with that fixed cost and rate: seconds of each."""
    rnd = random.Random(7)
    left, seconds = total, []
    while left > 0:
        size = min(pacer.next_bytes(left, watching=watching), left)
        assert size > 0
        took = (fixed + size / rate) * (1 + noise * rnd.uniform(-1, 1))
        pacer.observe(size, took)
        seconds.append(took)
        left -= size
        assert len(seconds) < 10_000
    return seconds


def test_a_fixed_size_is_kept_and_never_exceeds_what_is_left() -> None:
    pacer = Pacer(fixed_bytes=10)
    assert pacer.next_bytes(1000, watching=False) == 10
    assert pacer.next_bytes(4, watching=True) == 4
    pacer.observe(10, 100.0)
    assert pacer.next_bytes(1000, watching=False) == 10


@pytest.mark.parametrize("rate", [20 * MB, 200 * MB])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_overhead_stays_a_small_share_when_nobody_watches(rate: float, noise: float) -> None:
    seconds = run(Pacer(), 40_000 * MB, fixed=0.3, rate=rate, noise=noise)
    overhead = 0.3 * len(seconds) / sum(seconds)
    assert overhead <= 0.08
    assert max(seconds) <= 90


def test_epochs_are_short_while_somebody_watches() -> None:
    seconds = run(Pacer(), 4_000 * MB, fixed=0.1, rate=100 * MB, watching=True)
    assert all(s < 2.5 for s in seconds[1:])


def test_a_small_rest_is_taken_along() -> None:
    pacer = Pacer(first_bytes=100)
    assert pacer.next_bytes(130, watching=False) == 130
    assert pacer.next_bytes(1000, watching=False) == 100


def test_an_epoch_grows_at_most_eightfold() -> None:
    pacer = Pacer()
    pacer.observe(MB, 0.001)
    assert pacer.next_bytes(1 << 40, watching=False) <= 8 * MB


def test_the_fixed_cost_is_found_from_epochs_of_different_size() -> None:
    pacer = Pacer(floor=0.01)
    for size in (10 * MB, 40 * MB, 80 * MB):
        pacer.observe(size, 0.5 + size / (100 * MB))
    overhead, rate = pacer.estimate()
    assert overhead == pytest.approx(0.5, rel=0.2)
    assert rate == pytest.approx(100 * MB, rel=0.2)


def test_an_epoch_without_bytes_teaches_nothing() -> None:
    pacer = Pacer()
    pacer.observe(0, 5.0)
    assert pacer.seen == []


def test_a_guess_may_be_half_of_what_an_epoch_takes() -> None:
    pacer = Pacer(guess=MB)
    assert pacer.longest_seconds(10 * MB) == 2 * pacer.seconds(10 * MB) == 20
    pacer.observe(10 * MB, 30.0)
    assert pacer.longest_seconds(10 * MB) == pacer.seconds(10 * MB) == pytest.approx(30)
