"""What the examples in docstrings find: a small shop, and runs of it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import samovar as sv

ROWS = [(i, ("Ann", "Bob", "Chris")[i % 3], 10.0 * (i + 1)) for i in range(12)]
SCHEMA = "id int, customer string, amount double"


class Highest(sv.Operator):
    """The highest order of each customer; may be slow, and does not take orders below zero."""

    output = "customer string, amount double"
    highest = sv.MapState()

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def process(self, row: Any, port: int = 0) -> Any:
        if not self.highest:
            print("the first order")  # noqa: T201
        if row["amount"] < 0:
            raise ValueError("an order below zero")
        if row["amount"] > self.highest.get(row["customer"], 0.0):
            self.highest[row["customer"]] = row["amount"]
            yield {"customer": row["customer"], "amount": row["amount"]}
        if self.seconds:
            time.sleep(self.seconds)


def frames() -> dict[str, Any]:
    """Names for the examples of frames."""
    flow = sv.Workflow("shop")
    orders = flow.values(SCHEMA, ROWS, name="orders")
    customers = flow.values("name string, country string", [("Ann", "FR")], name="customers")
    return {
        "sv": sv,
        "warnings": warnings,
        "Highest": Highest,
        "flow": flow,
        "orders": orders,
        "customers": customers,
    }


def shop(rows: list[Any] = ROWS) -> sv.Workflow:
    """The workflow that the examples run."""
    flow = sv.Workflow("shop")
    orders = flow.values(SCHEMA, rows, name="orders")
    orders.filter("amount > 20 OR amount < 0", name="large").apply(Highest(), name="H").sink("S")
    return flow


def finished(spark: Any, folder: Path) -> sv.Run:
    """A run that is complete."""
    return shop().run(spark=spark, record=folder, run_id="shop-1", progress=False)


def going(spark: Any, folder: Path) -> sv.Run:
    """A run that goes on for minutes, at work in its Python operator."""
    flow = sv.Workflow("shop")
    orders = {"id": "id", "customer": "'Ann'", "amount": "CAST(id % 100 AS DOUBLE)"}
    flow.generate(50_000, orders, name="orders").apply(Highest(0.005), name="H").sink("S")
    run = flow.start(spark=spark, record=folder)
    until = time.monotonic() + 60
    while not run.figures and time.monotonic() < until:
        time.sleep(0.05)
    return run


def holding(spark: Any, folder: Path) -> sv.Run:
    """A run that holds an order, and then another."""
    rows = [(i, c, -1.0 if i in (4, 8) else amount) for i, c, amount in ROWS]
    return shop(rows).start(spark=spark, record=folder, on_error="hold")


def charted(spark: Any, folder: Path) -> sv.Run:
    """A run with a chart."""
    flow = sv.Workflow("shop")
    orders = flow.values(SCHEMA, ROWS, name="orders")
    orders.chart("bar", "customer", "amount", measure="sum", name="by customer")
    return flow.run(spark=spark, record=folder, progress=False)
