"""What the next epoch takes: about the wanted size, to the end of a file where one is near, and always something."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from samovar.runtime.epochs.level_stream import ABOUT, LevelStream, take


def stream(*files: int, taken: int = 0, name: str = "s", unit: int = 10) -> LevelStream:
    """A source of files, cut into units of ten bytes."""
    sizes = [[min(unit, size - low) for low in range(0, size, unit)] or [0] for size in files]
    edges = [0, *accumulate(map(len, sizes))]
    return LevelStream(name, [0, *accumulate(n for file in sizes for n in file)], taken, edges)


def whole(*files: int, taken: int = 0, name: str = "s") -> LevelStream:
    return LevelStream(name, [0, *accumulate(files)], taken)


def taken_by(streams: list[LevelStream], wanted: int) -> list[tuple[int, int]]:
    units, size = take(streams, wanted)
    assert size == sum(s.ends[units[s.name][1]] - s.ends[units[s.name][0]] for s in streams)
    return [units[s.name] for s in streams]


def test_an_epoch_ends_inside_a_file_that_is_clearly_larger() -> None:
    assert taken_by([stream(1000)], 100) == [(0, 10)]
    assert taken_by([stream(1000, taken=10)], 105) == [(10, 20)]


def test_an_epoch_takes_the_rest_of_a_file_if_it_is_about_the_wanted_size() -> None:
    assert taken_by([stream(150, 1000)], 100) == [(0, 15)]
    assert taken_by([stream(160, 1000)], 100) == [(0, 10)]


def test_an_epoch_ends_at_the_end_of_a_file_if_it_has_about_the_wanted_size_by_then() -> None:
    assert taken_by([stream(70, 1000)], 100) == [(0, 7)]
    assert taken_by([stream(40, 1000)], 100) == [(0, 10)]


def test_whole_files_are_never_cut_and_never_too_many() -> None:
    assert taken_by([whole(60, 60, 60)], 100) == [(0, 1)]
    assert taken_by([whole(60, 60, 60)], 120) == [(0, 2)]
    assert taken_by([whole(60, 60, 60, taken=1)], 1) == [(1, 2)]


def test_a_source_begins_in_an_epoch_in_which_the_one_before_has_ended() -> None:
    streams = [stream(100, taken=6, name="a"), stream(200, name="b")]
    assert taken_by(streams, 100) == [(6, 10), (0, 6)]
    assert taken_by(streams, 45) == [(6, 10), (0, 0)]
    assert taken_by(streams, 30) == [(6, 10), (0, 0)]
    assert taken_by(streams, 20) == [(6, 8), (0, 0)]


@given(
    st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(0, 500),
    st.booleans(),
)
def test_every_unit_is_taken_once_and_epochs_are_about_the_wanted_size(
    sources: list[list[int]], wanted: int, cut: bool
) -> None:
    streams = [(stream if cut else whole)(*files, name=str(i)) for i, files in enumerate(sources)]
    while any(s.taken < s.units for s in streams):
        units, size = take(streams, wanted)
        assert any(a < b for a, b in units.values())
        largest = max(b - a for s in streams for a, b in zip(s.ends, s.ends[1:], strict=False))
        assert size <= max(wanted * ABOUT, largest)
        for i, s in enumerate(streams):
            start, stop = units[s.name]
            assert start == s.taken
            if stop > start:
                assert all(units[other.name][1] == other.units for other in streams[:i])
        streams = [LevelStream(s.name, s.ends, units[s.name][1], s.edges) for s in streams]
