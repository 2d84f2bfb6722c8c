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


@pytest.mark.parametrize("rate", [MB // 10, 20 * MB, 200 * MB, 2000 * MB])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_epochs_are_of_two_seconds_at_every_rate(rate: float, noise: float) -> None:
    first = 1 if rate < 20 * MB else 32
    seconds = run(Pacer(first * MB), int(60 * rate), fixed=0.1, rate=rate, noise=noise)
    usual = sorted(seconds[3:-1])
    assert 1.5 <= usual[len(usual) // 2] <= 2.5
    assert max(seconds[1:]) <= 4.5


def test_the_first_epoch_is_small_and_larger_beside_a_large_build_side() -> None:
    python = Pacer.for_level(0, python=True)
    assert python.next_bytes(1 << 40, watching=False) == MB // 2
    assert Pacer.for_level(0, python=True, filtered=True).next_bytes(1 << 40, watching=False) == 32 * MB
    # what Spark does by itself in a few seconds is one epoch
    assert 128 * MB <= Pacer.for_level(0, python=False).next_bytes(1 << 40, watching=False) <= 256 * MB
    joined = Pacer.for_level(4 << 30, python=False)
    assert joined.next_bytes(1 << 40, watching=False) > 256 * MB
    assert joined.target(watching=False) > 20 * joined.aim / 4


@pytest.mark.parametrize(("fixed", "low", "high"), [(0.1, 1.5, 2.5), (1.0, 2.5, 6.0), (2.0, 4.5, 10.0)])
def test_an_epoch_with_a_fixed_cost_is_a_few_times_as_long(fixed: float, low: float, high: float) -> None:
    seconds = run(Pacer(), 40_000 * MB, fixed=fixed, rate=200 * MB, noise=0.1)
    usual = sorted(seconds[3:-1])
    assert low <= usual[len(usual) // 2] <= high


def test_an_epoch_that_takes_too_long_is_done_again_at_the_measured_rate() -> None:
    pacer = Pacer()
    pacer.overran(1000, 2.5, 100.0)
    assert pacer.next_bytes(10_000, watching=False) == 10
    pacer.overran(20, 2.1, None)  # nobody knows how long it would have taken
    assert pacer.next_bytes(10_000, watching=False) < 5
    pacer.observe(4, 2.0)
    assert 2 <= pacer.next_bytes(10_000, watching=False) <= 6


def test_native_work_of_unknown_speed_is_done_again_as_a_unit_for_each_core() -> None:
    pacer = Pacer.for_level(0, python=False)
    pacer.overran(100 * MB, 2.0, None, least=MB)
    assert pacer.next_bytes(1000 * MB, watching=False) == MB
    pacer.overran(100 * MB, 2.0, 50.0, least=MB)
    assert pacer.next_bytes(1000 * MB, watching=False) == 2 * MB
    pacer.overran(100 * MB, 2.0, 1000.0, least=MB)
    assert pacer.next_bytes(1000 * MB, watching=False) == MB  # a shorter one would not be done sooner


def test_tasks_are_waited_for_as_long_as_bytes_may_take_before_anything_is_measured() -> None:
    pacer = Pacer.for_level(0, python=False)
    assert pacer.task_seconds(300_000, 0, cold=False) == 1.5
    assert pacer.task_seconds(300_000, 0, cold=True) == 3.0
    assert pacer.task_seconds(240 * MB, 0, cold=False) == 8.0
    assert pacer.task_seconds(240 * MB, 0, cold=True) == 16.0
    assert pacer.task_seconds(240 * MB, 600 * MB, cold=False) == 28.0  # build sides are read first
    pacer.observe(MB, 2.0)
    assert pacer.task_seconds(MB, 600 * MB, cold=False) == pytest.approx(6.0)


def test_an_epoch_that_a_pause_cancelled_is_half_as_long_the_next_time_and_grows_when_none_comes() -> None:
    pacer = Pacer()
    for size in (10 * MB, 40 * MB, 80 * MB, 95 * MB):
        pacer.observe(size, 0.1 + size / (50 * MB))
    full = pacer.next_bytes(1 << 40, watching=False)
    pacer.interrupted()
    assert pacer.next_bytes(1 << 40, watching=False) == pytest.approx(full / 2, rel=0.01)
    for _ in range(20):
        pacer.interrupted()
    least = pacer.next_bytes(1 << 40, watching=False)
    assert 0.2 <= least / (50 * MB) <= 0.5
    pacer.observe(least, 0.4, paused=True)  # somebody waited for its end
    assert pacer.next_bytes(1 << 40, watching=False) == pytest.approx(least, rel=0.2)
    for _ in range(30):
        size = pacer.next_bytes(1 << 40, watching=False)
        pacer.observe(size, 0.1 + size / (50 * MB))
    assert pacer.next_bytes(1 << 40, watching=False) == pytest.approx(full, rel=0.2)


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
