"""TPC-H query 1, the pricing summary report, on a small `lineitem` table that this file makes itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import samovar as sv

ROWS = 20_000


def make_lineitem(folder: Path, rows: int = ROWS, files: int = 4) -> Path:
    """Line items of TPC-H's shape, the same every time, as several Parquet files."""
    random = np.random.default_rng(1)
    shipped = np.datetime64("1992-01-02") + random.integers(0, 2_500, rows).astype("timedelta64[D]")
    flag = np.where(shipped <= np.datetime64("1995-06-17"), random.choice(["A", "R"], rows), "N")
    table = pa.table(
        {
            "l_quantity": random.integers(1, 51, rows).astype(float),
            "l_extendedprice": random.uniform(900, 105_000, rows).round(2),
            "l_discount": random.integers(0, 11, rows) / 100,
            "l_tax": random.integers(0, 9, rows) / 100,
            "l_returnflag": flag,
            "l_linestatus": np.where(shipped > np.datetime64("1995-06-17"), "O", "F"),
            "l_shipdate": pa.array(shipped, pa.date32()),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        part = table.slice(number * rows // files, rows // files)
        pq.write_table(part, folder / f"lineitem-{number}.parquet")
    return folder


def build(lineitem: Path | None = None) -> sv.Workflow:
    """The query over a folder of line items; made in a temporary folder when none is given."""
    folder = lineitem or make_lineitem(Path(tempfile.gettempdir()) / "samovar-tpch-q1-small")
    flow = sv.Workflow("tpch-q1-small")
    shipped = flow.read.parquet(folder, name="lineitem").filter(
        "l_shipdate <= date '1998-09-02'", name="shipped"
    )
    summed = shipped.groupBy("l_returnflag", "l_linestatus").agg(
        "sum(l_quantity) AS sum_qty",
        "sum(l_extendedprice) AS sum_base_price",
        "sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price",
        "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge",
        "avg(l_quantity) AS avg_qty",
        "avg(l_extendedprice) AS avg_price",
        "avg(l_discount) AS avg_disc",
        "count(*) AS count_order",
        name="summary",
    )
    summed.orderBy("l_returnflag", "l_linestatus", name="sort").sink("S")
    return flow


def main() -> None:
    print(build().run().result("S").to_pandas().to_string())


if __name__ == "__main__":
    main()
