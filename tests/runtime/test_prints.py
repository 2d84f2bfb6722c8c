"""Fingerprints: the same however rows are cut, other ones for other rows."""

from __future__ import annotations

import itertools
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.errors import ReplayDiffers
from samovar.runtime.exchange.fingerprints import BLOCK, EVERY, Fingerprints, difference_in

ROWS: list[tuple[Any, ...]] = [(i, f"row {i}", i / 7) for i in range(3 * EVERY)]


def of(rows: list[tuple[Any, ...]], cuts: list[int]) -> list[int]:
    prints = Fingerprints("op")
    places = [0, *sorted(c % (len(rows) + 1) for c in cuts), len(rows)]
    for start, stop in itertools.pairwise(places):
        prints.add(rows[start:stop])
    return prints.checksums


@given(st.lists(st.integers(0, 4 * EVERY), max_size=8))
def test_cuts_do_not_matter(cuts: list[int]) -> None:
    assert of(ROWS, cuts) == of(ROWS, [])
    assert len(of(ROWS, cuts)) == 3
    single = Fingerprints("op")
    for row in ROWS:
        single.add_one(row)
    assert single.checksums == of(ROWS, [])


def test_equal_values_of_other_objects_have_the_same_print() -> None:
    copied = [(i, "".join(["row ", str(i)]), float(str(x))) for i, _, x in ROWS]
    assert of(copied, []) == of(ROWS, [])
    batch = Fingerprints("op")
    batch.add_batch(pa.RecordBatch.from_pylist([{"a": a, "b": b, "c": c} for a, b, c in ROWS]))
    assert batch.checksums == of(ROWS, [])


def test_a_replay_stops_at_the_first_block_that_differs() -> None:
    recorded = of(ROWS, [])
    Fingerprints("op", recorded).add(ROWS)
    Fingerprints("op", recorded, start=EVERY - 10).add(ROWS[EVERY - 10 :])
    Fingerprints("op", recorded, start=10).add(
        [("other",)] * (BLOCK - 10)
    )  # a block whose start was not seen
    changed = [*ROWS[: EVERY + 3], (-1, "", 0.0), *ROWS[EVERY + 4 :]]
    with pytest.raises(ReplayDiffers, match=f"'op'.*{EVERY + 1} to {EVERY + BLOCK}") as found:
        Fingerprints("op", recorded).add(changed)
    told = difference_in(f"PythonException: ... samovar.errors.ReplayDiffers: {found.value}\n at org.apache")
    assert told is not None
    assert told.operator == "op"
    assert difference_in("something else") is None


def test_dates_have_prints_too() -> None:
    rows: list[tuple[Any, ...]] = [(date(2026, 1, 1), i) for i in range(EVERY)]
    assert of(rows, [10, 70]) == of(rows, [])
