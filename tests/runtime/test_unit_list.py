"""Files cut into units: every row lies in one unit, in order, and its unit follows from its index in the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.positions import pack, unpack
from samovar.runtime.sources import unit_list
from samovar.runtime.sources.unit_list import Unit, UnitList, grain_of

counts = st.lists(st.integers(0, 60), min_size=1, max_size=6)
grains = st.integers(1, 20)


def files(rows: list[int]) -> list[Unit]:
    return [Unit(f"/f{i}", 1000 + 7 * i, 0.0, n) for i, n in enumerate(rows)]


def rows_of(units: UnitList) -> list[tuple[str, int]]:
    """File and index of each row, unit after unit."""
    each = (units[number] for number in range(len(units)))
    return [(unit.path, unit.first + row) for unit in each for row in range(unit.rows or 0)]


@given(counts, grains)
def test_units_have_all_rows_in_order_and_no_more_than_the_grain(rows: list[int], grain: int) -> None:
    spans = files(rows)
    units = UnitList(spans, grain)
    assert rows_of(units) == [(span.path, row) for span in spans for row in range(span.rows or 0)]
    assert all((units[number].rows or 0) <= grain for number in range(len(units)))
    assert len(units) == sum(max(1, -(-n // grain)) for n in rows)


@given(counts, grains)
def test_bytes_of_units_add_up_to_those_of_the_files(rows: list[int], grain: int) -> None:
    spans = files(rows)
    units = UnitList(spans, grain)
    assert units.ends[-1] == sum(span.size for span in spans)
    shares = [units[number].share for number in range(len(units))]
    assert units.ends == [sum(shares[:number]) for number in range(len(units) + 1)]


@given(counts, grains, st.data())
def test_some_units_are_read_file_by_file(rows: list[int], grain: int, data: st.DataObject) -> None:
    units = UnitList(files(rows), grain)
    start = data.draw(st.integers(0, len(units)))
    stop = data.draw(st.integers(start, len(units)))
    spans = units.spans_of(range(start, stop))
    wanted = [units[number] for number in range(start, stop)]
    assert len({span.path for _, span in spans}) == len(spans)
    assert [(span.path, span.first + row) for _, span in spans for row in range(span.rows or 0)] == [
        (unit.path, unit.first + row) for unit in wanted for row in range(unit.rows or 0)
    ]
    for number, span in spans:
        for row, place in enumerate(units.places(number, range(span.rows or 0))):
            of, within = unpack(place)
            assert (units[of].path, units[of].first + within) == (span.path, span.first + row)
    assert units.ranges_of(range(start, stop), 3) == [
        (3, pack(number, 0), unit.rows) for number, unit in zip(range(start, stop), wanted, strict=True)
    ]


@given(counts, grains, st.data())
def test_a_unit_gives_way_to_two_files_again_and_again(
    rows: list[int], grain: int, data: st.DataObject
) -> None:
    units = UnitList(files(rows), grain)
    content = rows_of(units)
    ends = units.ends[-1]
    for time in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(units) - 1))
        old = units[number]
        at = data.draw(st.integers(0, old.rows or 0))
        parts = [Unit(f"/cut{time}-0", 10, 0.0, at), Unit(f"/cut{time}-1", 20, 0.0, (old.rows or 0) - at)]
        before = [units[n] for n in range(len(units))]
        units = UnitList(units.split(number, parts), grain)
        assert [units[n] for n in range(len(units))] == [*before[:number], *parts, *before[number + 1 :]]
        ends += 30 - old.share
        assert units.ends[-1] == ends
        # what a file's units are numbered by: the number of a row's unit is the row's, by the grain, and a constant
        for _, span in units.spans_of(range(len(units))):
            assert span.first % grain == 0
    assert len(rows_of(units)) == len(content)


def test_a_file_whose_rows_are_not_counted_is_a_unit() -> None:
    units = UnitList([Unit("/a.csv", 10, 0.0), Unit("/b.csv", 5, 0.0)], 0)
    assert len(units) == 2
    assert units[1].path == "/b.csv"
    assert units.ends == [0, 10, 15]
    assert units.ranges_of(range(2), 0) is None
    with pytest.raises(IndexError, match="Expected a unit below 2, got 2"):
        units[2]


def test_small_files_are_not_cut_and_large_ones_into_a_bounded_number_of_units() -> None:
    assert grain_of(files([unit_list.SMALLEST_GRAIN] * 3)) == 0
    assert grain_of(files([unit_list.SMALLEST_GRAIN + 1, 3])) == unit_list.SMALLEST_GRAIN
    large = files([100_000_000, 3, 0])
    assert grain_of(large) == 5001
    assert len(UnitList(large, grain_of(large))) <= unit_list.MOST_UNITS + len(large)
