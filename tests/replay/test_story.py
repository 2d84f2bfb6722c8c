"""IcedTea's story (sections 3 and 4) on the demo's operators: why is Bob on the blacklist?

Bob pays $20 (x), Chris $10 (y), Bob ¥5,000 (z), and then Bob another 22 times. FE takes yen for dollars.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv
from samovar.demo import fraud
from samovar.replay.trace.model import ABSENT

X, Y, Z = 1, 2, 3
"""Payments are numbered from 1."""
PAYMENTS = [("Bob", 20.0, "USD"), ("Chris", 10.0, "USD"), ("Bob", 5000.0, "JPY")] + [
    ("Bob", 5.0 + i, "USD") for i in range(22)
]
OPERATORS = ("FE", "FD", "FF", "S")


def payments(folder: Path, cuts: list[int]) -> Path:
    folder.mkdir()
    day = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    table = pa.table(
        {
            "payment": pa.array(range(1, len(PAYMENTS) + 1), pa.int64()),
            "at": pa.array(
                [day + dt.timedelta(hours=i) for i in range(len(PAYMENTS))], pa.timestamp("us", "UTC")
            ),
            "customer": [who for who, _, _ in PAYMENTS],
            "amount": [amount for _, amount, _ in PAYMENTS],
            "currency": [currency for _, _, currency in PAYMENTS],
            "merchant": ["shop"] * len(PAYMENTS),
        }
    )
    start = 0
    for number, rows in enumerate(cuts):
        pq.write_table(table.slice(start, rows), folder / f"payments-{number}.parquet")
        start += rows
    return folder


@pytest.fixture(scope="module", params=[[25], [2, 3, 20]], ids=["one epoch", "three epochs"])
def past(request: Any, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("story")
    flow = fraud.build(payments(root / "payments", request.param))
    run = flow.run(spark=spark, record=root / "runs", epoch_bytes=1, progress=False)
    opened = sv.open(run.recording, spark=spark)
    yield opened
    opened.close()


def states(m: Any) -> dict[str, Any]:
    return {op: m.state(op) for op in OPERATORS}


def told(m: Any) -> dict[str, Any]:
    """The states as the figures draw them."""
    return {
        "highest": dict(m.state("FE")["highest"]),
        "blacklist": dict(m.state("FD")["blacklist"]),
        "frauds": m.state("FF")["frauds"],
        "approved": m.state("S")["rows"],
    }


def test_i1_shows_bobs_first_payment_processed_by_all(past: Any) -> None:
    m = past.jump("FE", tuples=1)
    assert told(m) == {"highest": {"Bob": 20.0}, "blacklist": {}, "frauds": 0, "approved": 1}
    assert m.last.operator == "FE"
    assert m.last.row["payment"] == X
    assert [out["highest"] for out in m.last.outputs] == [20.0]
    assert [(c.name, c.key, c.before, c.after) for c in m.last.changes] == [("highest", "Bob", ABSENT, 20.0)]
    assert m.pending("FE")[0].row["customer"] == "Chris"


def test_stepping_over_chris_adds_his_payment_and_approves_it(past: Any) -> None:
    i1 = past.jump("FE", tuples=1)
    s1 = i1.step_over("FE")
    assert told(s1) == {"highest": {"Bob": 20.0, "Chris": 10.0}, "blacklist": {}, "frauds": 0, "approved": 2}
    assert s1.last.row["payment"] == Y
    assert {(c.operator, c.key, c.before, c.after) for c in s1.changes} == {("FE", "Chris", ABSENT, 10.0)}
    assert [(s.operator, s.row["payment"]) for s in s1.steps] == [(op, Y) for op in OPERATORS]
    assert told(i1)["approved"] == 1  # the moment before stays as it was
    z = s1.pending("FE")[0]
    assert (z.row["payment"], z.row["amount"], z.row["currency"]) == (Z, 5000.0, "JPY")


def test_stepping_into_bobs_yen_payment_shows_the_wrong_dollars(past: Any) -> None:
    s1 = past.jump("FE", tuples=1).step_over("FE")
    s2 = s1.step_into("FE")
    assert told(s2) == {
        "highest": {"Bob": 5000.0, "Chris": 10.0},
        "blacklist": {},
        "frauds": 0,
        "approved": 2,
    }
    (z1,) = s2.pending("FD")
    assert (z1.row["payment"], z1.row["currency"], z1.row["dollars"]) == (Z, "JPY", 5000.0)
    assert s2.pending("FF") == []
    assert [(c.operator, c.name, c.key, c.before, c.after) for c in s2.changes] == [
        ("FE", "highest", "Bob", 20.0, 5000.0)
    ]


def test_stepping_out_of_it_blacklists_bob_and_counts_a_fraud(past: Any) -> None:
    s3 = past.jump("FE", tuples=1).step_over("FE").step_into("FE").step_out()
    assert told(s3) == {
        "highest": {"Bob": 5000.0, "Chris": 10.0},
        "blacklist": {"Bob": Z},
        "frauds": 1,
        "approved": 2,
    }
    assert {(c.operator, c.name, c.key, c.before, c.after) for c in s3.changes} == {
        ("FD", "blacklist", "Bob", ABSENT, Z),
        ("FF", "frauds", None, 0, 1),
    }


def test_operator_by_operator_is_the_same_as_stepping_out(past: Any) -> None:
    inside = past.jump("FE", tuples=2).step_into("FE")
    at_fd = inside.step_into("FD")
    assert told(at_fd)["blacklist"] == {"Bob": Z}
    assert told(at_fd)["frauds"] == 0
    assert [t.row["label"] for t in at_fd.pending("FF")] == ["Fraud"]
    at_ff = at_fd.step_into("FF")
    assert told(at_ff)["frauds"] == 1
    assert at_ff.pending("S") == []
    assert states(at_ff) == states(inside.step_out()) == states(past.jump("FE", tuples=3))


def test_the_snapshot_of_a_condition_shows_the_blacklist(past: Any) -> None:
    """I3': after x, y and z with all that came of them, not while z is still on its way."""
    i3 = past.jump("FE", tuples=3)
    assert i3.last.row["amount"] > 1000
    assert told(i3)["blacklist"] == {"Bob": Z}
    assert told(i3)["highest"] == {"Bob": 5000.0, "Chris": 10.0}
    assert told(i3)["frauds"] == 1


def test_i4_shows_twenty_three_frauds_all_of_them_bobs(past: Any) -> None:
    i4 = past.jump("FE", tuples=len(PAYMENTS))
    assert told(i4) == {
        "highest": {"Bob": 5000.0, "Chris": 10.0},
        "blacklist": {"Bob": Z},
        "frauds": 23,
        "approved": 2,
    }
    assert states(i4) == states(past.jump())


def test_stepping_back_undoes_each_step(past: Any) -> None:
    way = [past.jump("FE", tuples=1)]
    way.append(way[-1].step_over("FE"))
    way.append(way[-1].step_into("FE"))
    way.append(way[-1].step_into("FD"))
    way.append(way[-1].step_out())
    way.append(way[-1].step_over("FE"))
    seen = [told(m) for m in way]
    m = way[-1]
    for earlier, wanted in zip(reversed(way[:-1]), reversed(seen[:-1]), strict=True):
        m = m.step_back()
        assert m == earlier
        assert told(m) == wanted
    assert told(m.step_back()) == {"highest": {}, "blacklist": {}, "frauds": 0, "approved": 0}


def test_back_from_a_jump_goes_tuple_by_tuple_over_the_blacklisting(past: Any) -> None:
    m = past.jump("FE", tuples=4)
    found = []
    while dict(m.state("FD")["blacklist"]):
        found.append(m.last.row["payment"])
        m = m.step_back()
    assert found == [4, Z]
    assert told(m)["frauds"] == 0


def test_the_scope_of_bobs_first_payment_is_four_tuples(past: Any) -> None:
    """x, and what FE, FD and FF made of it (Figure 9)."""
    m = past.jump("FE", tuples=0)
    x = m.pending("FE")[0]
    assert [t.operator for t in m.scope(x)] == ["payments", "FE", "FD", "FF"]
    assert {t.row["payment"] for t in m.scope(x)} == {X}


def test_every_payment_can_be_stepped_over(past: Any) -> None:
    m = past.jump("FE", tuples=0)
    for number in range(1, len(PAYMENTS) + 1):
        assert m.can_step_over("FE")
        assert m.why_not("FE") is None
        m = m.step_over("FE")
        assert m.last.row["payment"] == number
        assert m.counters["FE"].taken == (number,)
    assert told(m)["frauds"] == 23
