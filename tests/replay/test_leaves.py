"""Where leaf tuples lie, against a list of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samovar.positions import Position, RowRange
from samovar.replay.trace.leaves import Leaves
from samovar.replay.trace.segments import Segment

COMMON = settings(deadline=None, database=None, max_examples=300)
SEGMENT = Segment(0, 0, 0, 0, {}, first=True, last=True)
UNIT = 64
"""Places from one unit of the tests to the next."""


class Told(Leaves):
    """Leaves at runs that a test tells."""

    def __init__(self, told: list[RowRange]) -> None:
        self.told = told
        self._sums = {}

    def runs(self, segment: Segment) -> list[RowRange]:
        return self.told


@st.composite
def runs(draw: st.DrawFn) -> list[RowRange]:
    sources = draw(st.integers(1, 3))
    return [
        (source, unit * UNIT, draw(st.integers(0, UNIT - 1)))
        for source in range(sources)
        for unit in range(draw(st.integers(0, 4)))
    ]


def every(told: list[RowRange]) -> list[Position]:
    return [(source, first + i) for source, first, rows in told for i in range(rows)]


@given(runs(), st.data())
@COMMON
def test_positions_so_many_tuples_away_are_those_of_the_list(
    told: list[RowRange], data: st.DataObject
) -> None:
    found, places = Told(told), every(told)
    count = data.draw(st.integers(0, len(places) + 2))
    at = data.draw(st.sampled_from(places)) if places else None
    behind = [p for p in places if at is None or p >= at]
    assert found.after(SEGMENT, at, count) == (behind[count] if count < len(behind) else None)
    ahead = [p for p in places if at is None or p < at]
    back = found.before(SEGMENT, at, count + 1)
    if back is None:
        assert len(ahead) <= count + 1
    else:
        assert sum(p >= back for p in ahead) == count + 1
    if at is not None:
        assert found.rows_before(SEGMENT, at) == len(ahead)


@given(runs(), st.integers(0, 5), st.data())
@COMMON
def test_edges_leave_at_least_so_many_tuples_and_less_than_a_chunk_more(
    told: list[RowRange], bits: int, data: st.DataObject
) -> None:
    found, places = Told(told), every(told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Leaves, "smallest", bits)
        count = data.draw(st.integers(1, len(places) + 2))
        at = data.draw(st.sampled_from(places)) if places else None
        after, before = found.edge_after(SEGMENT, at, count), found.edge_before(SEGMENT, at, count)
    rest = [p for p in places if at is None or p >= at]
    if after is None:
        assert len(rest) < count + (1 << bits)
    else:
        assert count <= sum(p < after for p in rest) < count + (1 << bits)
        assert after[1] % (1 << bits) == 0
        assert rest[-1] >= after  # something is left behind it
    ahead = [p for p in places if at is None or p < at]
    if before is None:
        assert len(ahead) < count + (1 << bits)
    else:
        assert count <= sum(p >= before for p in ahead) < count + (1 << bits)
        assert before[1] % (1 << bits) == 0
        assert ahead[0] < before


class Looked(Leaves):
    """Leaves whose positions a job finds; several tuples may have the same one."""

    def __init__(self, places: list[Position]) -> None:
        self.places = places
        self.look = self._look

    def runs(self, segment: Segment) -> None:
        return None

    def _look(self, segment: Segment, low: Position | None, count: int | None) -> list[Position]:
        return [p for p in self.places if low is None or p >= low][:count]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4)), max_size=12).map(sorted), st.data())
@COMMON
def test_edges_never_lie_between_tuples_of_one_position(places: list[Position], data: st.DataObject) -> None:
    found = Looked(places)
    count = data.draw(st.integers(1, len(places) + 2))
    at = data.draw(st.sampled_from(places)) if places else None
    behind = [p for p in places if at is None or p >= at]
    after = found.edge_after(SEGMENT, at, count)
    fitting = [p for p in behind if sum(q < p for q in behind) >= count]
    assert after == (fitting[0] if fitting else None)
    ahead = [p for p in places if at is None or p < at]
    before = found.edge_before(SEGMENT, at, count)
    if before is None:
        assert len([p for p in ahead if p != places[0]]) <= count
    else:
        assert sum(p >= before for p in ahead) >= count
        assert sum(p > before for p in ahead) < count
        assert before > places[0]
