"""Generated inputs keep what they promise."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from samovar.diff import Rows, rows
from samovar.diff.comparison_errors import ProgramProblem
from samovar.errors import EnvironmentProblem


def drawn(strategy: Any, examples: int = 60) -> list[Rows]:
    made: list[Rows] = []

    @seed(1)
    @settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def take(value: Rows) -> None:
        made.append(value)

    take()
    return made


def test_rows_of_every_type_become_a_dataframe(spark: Any) -> None:
    schema = (
        "a int not null, b bigint, c double, d string, e boolean, f date, g timestamp, h decimal(5,2), i binary,"
        " j array<int>, k map<string,double>, l struct<x:smallint,y:string>, m timestamp_ntz, n tinyint, o float"
    )
    tables = drawn(rows(schema, max_size=5, odd_floats=True), 20)
    largest = max(tables, key=len)
    df = spark.createDataFrame(largest.table())
    assert df.count() == len(largest)
    assert all(row["a"] is not None for table in tables for row in table)
    assert any(row["b"] is None for table in tables for row in table)


def test_few_keys_sorted_late_and_functional(spark: Any) -> None:
    strategy = rows(
        "taxi int, ts timestamp not null, x int, y int, z int",
        keyed={"taxi": 2},
        late={"ts": 2},
        functional={"y": "x", "z": lambda row: (row["taxi"] or 0) + 1},
        nulls=False,
    )
    tables = drawn(strategy)
    assert max(map(len, tables)) > 5
    late = 0
    for table in tables:
        assert len({row["taxi"] for row in table}) <= 2
        assert len({(row["x"], row["y"]) for row in table}) == len({row["x"] for row in table})
        assert all(row["z"] == row["taxi"] + 1 for row in table)
        times = [row["ts"] for row in table]
        late += times != sorted(times)
        order = sorted(range(len(times)), key=lambda i: times[i])
        assert all(i - place <= 2 for i, place in enumerate(order)) or len(set(times)) < len(times)
    assert 0 < late < len(tables)


def test_sorted_rows_and_chosen_values(spark: Any) -> None:
    strategy = rows(
        "ts timestamp, kind string, n int",
        sorted_by=["ts", "n"],
        values={"kind": ["word", "end"], "n": st.integers(5, 7)},
        min_size=1,
    )
    for table in drawn(strategy, 30):
        assert {row["kind"] for row in table} <= {"word", "end"}
        keys = [(row["ts"] or datetime.datetime.min.replace(tzinfo=datetime.UTC), row["n"]) for row in table]
        assert keys == sorted(keys)


def test_without_hypothesis_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'samovar\[test\]'"):
        rows("taxi int")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keyed": {"taxy": 2}}, "got 'taxy'.\nHint: Did you mean 'taxi'"),
        ({"functional": {"taxi": "ix"}}, "Expected a column of the schema"),
        ({"min_size": 5, "max_size": 2}, "Expected 0 <= min_size <= max_size"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments: Any, message: str) -> None:
    with pytest.raises(ProgramProblem, match=message):
        rows("taxi int, x int", **arguments)
