"""Marks: where they lie, and what is left out when keeping the state costs too much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.runtime.epochs.checkpoint_policy import EVERY, MOST, mark_count, mark_positions
from samovar.runtime.worker.marker import Marker


class Rows:
    def __init__(self, places: list[tuple[int, ...]]) -> None:
        self.places = places

    def place(self, i: int) -> tuple[int, ...]:
        return self.places[i]


def test_a_longer_epoch_and_a_shorter_tau_have_more_marks() -> None:
    assert mark_count("tau", 2.0, 10**6, 0.25) == 0
    assert mark_count("tau", 2.0, 10**6, 20.0) == 79
    assert mark_count("tau", 10.0, 10**6, 20.0) == 15
    assert mark_count("none", 0.1, 10**6, 100.0) == 0
    assert mark_count("every", 2.0, 10 * EVERY, 0.0) == 10
    assert mark_count("every", 2.0, 10**9, 0.0) == MOST
    assert mark_count("tau", 0.1, 10, 100.0) == 0  # too few tuples to be worth it


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(0, 20))
def test_marks_lie_evenly_between_the_tuples(sizes: list[int], count: int) -> None:
    stretches = [(i // 2, (i % 2) << 20, n) for i, n in enumerate(sizes)]
    every = [(s, first + i) for s, first, n in stretches for i in range(n)]
    marks = mark_positions(stretches, count)
    assert len(marks) == count
    assert list(marks) == sorted(marks)
    for number, mark in enumerate(marks, 1):
        assert mark in every
        assert every.index(mark) == len(every) * number // (count + 1)


@given(
    st.lists(st.integers(0, 30), max_size=20).map(sorted),
    st.lists(st.integers(0, 30), max_size=6).map(sorted),
    st.integers(1, 7),
)
def test_rows_are_cut_at_every_mark_they_reach(places: list[int], marks: list[int], batch: int) -> None:
    marker = Marker([(m,) for m in marks])
    seen: list[Any] = []

    def write(number: int) -> None:
        seen.append(("mark", number))

    for start in range(0, len(places), batch):
        own = places[start : start + batch]
        rows = Rows([(p, 0) for p in own])
        for first, stop in marker.cut(rows, 0, len(own), write):
            seen += own[first:stop]
    wanted: list[Any] = []
    left = list(enumerate(marks, 1))
    for place in places:
        while left and left[0][1] <= place:
            wanted.append(("mark", left.pop(0)[0]))
        wanted.append(place)
    kept = {s for s in seen if isinstance(s, tuple)}
    assert [w for w in wanted if not isinstance(w, tuple) or w in kept] == seen
    assert marker.passed == len(marks) - len(left)


def test_marks_that_cost_too_much_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    marker = Marker([(i,) for i in range(100)])

    def write(number: int) -> None:
        now[0] += 1.0  # a second each

    rows = Rows([(i,) for i in range(100)])
    for _ in marker.cut(rows, 0, 100, write):
        now[0] += 1.0  # each row takes as long
    assert marker.passed == 100
    assert 2 <= len(marker.written) <= 4
