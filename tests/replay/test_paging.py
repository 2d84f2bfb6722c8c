"""States too large to load: their groups stay in Spark, and pages of them come in order and selected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.replay.conftest import Recordings

import samovar as sv
from samovar.replay.state import group_states
from samovar.replay.state.group_states import StoredGroups

ROWS = 120


class Last(sv.Operator):
    output = "k bigint, x bigint"
    last = sv.MapState()

    def process(self, row: Any, port: int = 0) -> Any:
        self.last[row["k"]] = row["x"]
        yield {"k": row["k"], "x": row["x"]}


@pytest.fixture
def past(spark: Any, recordings: Recordings) -> Iterator[sv.Past]:
    def record(folder: Path) -> None:
        (folder / "in").mkdir()
        for i in range(2):
            xs = range(i * ROWS // 2, (i + 1) * ROWS // 2)
            pq.write_table(pa.table({"k": [x % 40 for x in xs], "x": xs}), folder / "in" / f"{i}.parquet")
        flow = sv.Workflow("groups")
        rows = flow.read.parquet(str(folder / "in"), name="n").apply(Last(), name="L")
        rows.groupBy("k").agg("sum(x) AS total", name="A").sink("S")
        flow.run(spark=spark, record=folder / "runs", progress=False, epoch_bytes=1)

    with sv.open(recordings.shared("paging", record), spark=spark) as opened:
        yield opened


def groups(tuples: int) -> dict[int, dict[str, int]]:
    made: dict[int, dict[str, int]] = {}
    for x in range(tuples):
        group = made.setdefault(x % 40, {"total": 0, "rows": 0})
        group["total"] += x
        group["rows"] += 1
    return made


@pytest.mark.parametrize("few", [10, 1000])
def test_pages_of_groups(past: sv.Past, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_states, "FEW", few)
    moment = past.jump("A", tuples=70)
    held = moment.state("A")["groups"]
    assert isinstance(getattr(held, "base", held), StoredGroups) == (few == 10)
    expected = groups(70)
    assert held[7] == expected[7]
    assert held[35] == expected[35]
    assert len(held) == 40
    assert dict(held) == expected
    assert moment.page("A", start=10, count=3) == [(k, expected[k]) for k in (10, 11, 12)]
    for step in (moment, moment.step_over("A"), moment.step_over("A").step_over("A")):
        done = sum(step.counters["A"].taken)
        large = sorted((k, g) for k, g in groups(done).items() if g["total"] > 90)
        assert step.page("A", where="total > 90") == large
        for change in step.changes:
            assert change.operator != "A" or change.after == groups(done)[change.key]
    with pytest.raises(sv.errors.TimeTravelError, match="nonsense"):
        moment.page("A", where="nonsense > 1")
    with pytest.raises(sv.errors.UnknownName):
        moment.page("A", "other")


def test_pages_of_a_python_operators_map(past: sv.Past) -> None:
    moment = past.jump("L", tuples=100)
    expected = {x % 40: x for x in range(100)}
    assert moment.page("L", start=2, count=2) == [(2, expected[2]), (3, expected[3])]
    late = moment.page("L", "last", where="value >= 95 and key != 99")
    assert late == [(k, v) for k, v in expected.items() if v >= 95]
    for bad in ("value >", "missing == 1"):
        with pytest.raises(sv.errors.TimeTravelError, match="key"):
            moment.page("L", where=bad)
    with pytest.raises(sv.errors.TimeTravelError, match="start=-1"):
        moment.page("L", start=-1)
