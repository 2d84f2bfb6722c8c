"""Which tuples led to a row: its own way, what it was joined with, and what went into its groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, str]:
    made = {
        "sales": {"item": [1, 2, 1, 3], "shop": ["a", "b", "b", "c"], "price": [5, 7, 9, 11]},
        "items": {"item": [1, 2, 2], "label": ["tea", "jam", "old jam"], "maker": ["x", "y", "z"]},
        "shops": {"shop": ["a", "b"], "town": ["Ulm", "Bonn"]},
    }
    for name, columns in made.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return {name: str(tmp_path / f"{name}.parquet") for name in made}


def ways(past: Any, sink: str, row: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(o.operator, dict(o.row)) for o in past.why(sink, row)]


def test_a_joined_row_came_from_both_sides(spark: Any, tables: dict[str, str], tmp_path: Path) -> None:
    flow = sv.Workflow("joined")
    items = flow.read.parquet(tables["items"], name="items").selectExpr(
        "item", "upper(label) AS label", name="up"
    )
    shops = flow.read.parquet(tables["shops"], name="shops")
    sales = flow.read.parquet(tables["sales"], name="sales").filter("price < 10", name="cheap")
    sales.join(items, on="item", name="named").join(shops, on="shop", how="left", name="placed").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    with_past = sv.open(run.recording, spark=spark)
    found = ways(with_past, "S", {"label": "OLD JAM"})
    assert [name for name, _ in found] == ["placed", "named", "cheap", "sales", "shops", "up", "items"]
    told = dict(found)
    assert told["items"] == {"item": 2, "label": "old jam", "maker": "z"}  # the one of two that matched
    assert told["shops"] == {"shop": "b", "town": "Bonn"}
    assert told["sales"] == {"item": 2, "shop": "b", "price": 7}
    with_past.close()


def test_without_a_match_there_is_no_other_side(spark: Any, tables: dict[str, str], tmp_path: Path) -> None:
    flow = sv.Workflow("unmatched")
    shops = flow.read.parquet(tables["shops"], name="shops")
    flow.read.parquet(tables["sales"], name="sales").join(shops, on="shop", how="left", name="placed").sink(
        "S"
    )
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    past = sv.open(run.recording, spark=spark)
    assert [name for name, _ in ways(past, "S", {"shop": "c"})] == ["placed", "sales"]
    assert [name for name, _ in ways(past, "S", {"price": 9})] == ["placed", "sales", "shops"]
    past.close()


def test_a_build_side_that_ended_leads_to_what_went_into_its_group(
    spark: Any, tables: dict[str, str], tmp_path: Path
) -> None:
    flow = sv.Workflow("share")
    sales = flow.read.parquet(tables["sales"], name="sales")
    totals = sales.groupBy("shop").agg("sum(price) AS total", name="totals")
    sales.join(totals, on="shop", name="both").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    past = sv.open(run.recording, spark=spark)
    found = ways(past, "S", {"price": 7})
    assert found[:3] == [
        ("both", {"shop": "b", "item": 2, "price": 7, "total": 16}),
        ("sales", {"item": 2, "shop": "b", "price": 7}),
        ("totals", {"shop": "b", "total": 16}),
    ]
    assert [row["price"] for name, row in found[3:] if name == "sales"] == [7, 9]
    past.close()
