"""Values of tuples as plain data: they come back as they were, and reading them runs nothing."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.types import VariantVal

from samovar.errors import RecordingCorrupt, WorkflowError
from samovar.record.plain_values import from_plain, to_plain
from samovar.runtime.exchange.code_switch import SwitchRecord, read_switch_records, write_switch_records
from samovar.runtime.exchange.decisions import RecordedDecision, read_decisions, write_decisions

zones = st.just(None) | st.integers(-720, 720).map(lambda m: timezone(timedelta(minutes=m)))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.times()
    | st.datetimes(timezones=zones)
    | st.timedeltas()
    | st.decimals(allow_nan=False)
)
keys = scalars.filter(lambda v: v is not None)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=3)
        | st.frozensets(scalars, max_size=3)
        | st.sets(scalars, max_size=3)
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, dict):
        return all(
            same(x, y)
            for pair, other in zip(a.items(), b.items(), strict=True)
            for x, y in [*zip(pair, other, strict=True)]
        )
    if isinstance(a, list | tuple):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return not isinstance(a, Decimal | datetime) or str(a) == str(b)


@given(values)
def test_any_value_comes_back_with_its_type(value: Any) -> None:
    assert same(from_plain(to_plain(value)), value)


def test_values_of_other_libraries_come_back_as_pythons_own() -> None:
    row = {"n": np.int64(3), "x": np.float32(0.5), "r": Row(a=1, b="x"), "b": bytearray(b"ab")}
    assert from_plain(to_plain(row)) == {"n": 3, "x": 0.5, "r": (1, "x"), "b": b"ab"}
    variant = VariantVal(b"\x0c\x01", b"\x01\x00\x00")
    back = from_plain(to_plain(variant))
    assert (back.value, back.metadata) == (variant.value, variant.metadata)


def test_what_is_no_plain_value_is_refused() -> None:
    with pytest.raises(WorkflowError, match="Expected plain values"):
        to_plain({"a": object()})


DECIDED = RecordedDecision(
    "F",
    3,
    0,
    17,
    "edit",
    {"day": date(2024, 1, 31), "at": datetime(2024, 1, 31, 12, tzinfo=UTC), "price": Decimal("12.50")},
    "ValueError: no",
    {"day": None, "raw": b"\x00\xff", "at": time(1, 2), "m": [("k", 1)]},
)


def test_decisions_and_switches_come_back(tmp_path: Path) -> None:
    write_decisions(tmp_path, "F-0003-00000", [DECIDED])
    assert read_decisions(tmp_path) == (DECIDED,)
    assert read_decisions(tmp_path, ["G"]) == ()
    turned = [SwitchRecord("F", 3, 2, 40), SwitchRecord("G", 0, 1, 0, ((0, 5), (0, 6, 1)))]
    write_switch_records(tmp_path, "F", turned, None)
    assert read_switch_records(tmp_path) == turned


class Planted:
    """Runs code when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize(
    "damaged", [{}, {"no": 1}, {"date": 5}, {"date": "x"}, {"decimal": "x"}, {"dict": [1]}]
)
def test_damaged_values_are_refused(damaged: Any) -> None:
    with pytest.raises(RecordingCorrupt):
        from_plain([damaged])


@pytest.mark.parametrize(
    ("folder", "read"), [("decisions", read_decisions), ("switches", read_switch_records)]
)
@pytest.mark.parametrize("name", ["x.pkl", "x.msgpack"])
def test_a_pickle_in_their_place_is_not_run(tmp_path: Path, folder: str, read: Any, name: str) -> None:
    mark = tmp_path / "ran"
    (tmp_path / folder).mkdir()
    (tmp_path / folder / name).write_bytes(pickle.dumps([Planted(mark)]))
    with pytest.raises(RecordingCorrupt, match=name):
        read(tmp_path)
    assert not mark.exists()
