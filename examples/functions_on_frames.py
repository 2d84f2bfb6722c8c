"""Three functions as they might stand in somebody's PySpark project, applied unchanged to a DataFrame and to a Frame.

None of them knows of Samovar. `main` runs them both ways and compares.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.sql import functions as F

import samovar as sv

ORDERS = "order_id int, customer string, country string, amount double, discount double, placed timestamp"
ORDER_ROWS = [
    (1, " Bob ", "jp", 5000.0, None, "2026-03-16 20:08:56"),
    (2, "Chris", "US", 10.0, 0.1, "2026-03-16 20:07:45"),
    (2, "Chris", "US", 10.0, 0.1, "2026-03-16 20:07:45"),
    (3, "dana", None, 250.0, 0.25, "2026-03-17 08:00:00"),
    (4, "Chris", "US", None, None, "2026-03-18 09:30:00"),
    (5, "Dana", "de", 120.0, None, "2026-03-19 12:00:00"),
]
RATES = "country string, currency string, rate double"
RATE_ROWS = [("JP", "JPY", 0.0067), ("US", "USD", 1.0), ("DE", "EUR", 1.08)]


# --- the project's functions --------------------------------------------------------------------------------


def clean_orders(df: Any, required: tuple[str, ...] = ("order_id", "amount")) -> Any:
    """Normalise names and countries, fill gaps, drop duplicates and rows that lack something needed."""
    missing = [c for c in required if c not in df.columns]
    if missing:
        raise ValueError(f"missing columns: {missing}")
    return (
        df.withColumn("customer", F.initcap(F.trim(F.col("customer"))))
        .withColumn("country", F.upper(F.col("country")))
        .fillna({"discount": 0.0, "country": "US"})
        .dropna(subset=list(required))
        .dropDuplicates(["order_id"])
    )


def in_dollars(orders: Any, rates: Any) -> Any:
    """Convert to dollars by country, and sort the orders into sizes."""
    joined = orders.join(rates, orders["country"] == rates["country"], "left").drop(rates["country"])
    net = F.col("amount") * (F.lit(1.0) - F.col("discount")) * F.coalesce(F.col("rate"), F.lit(1.0))
    return joined.withColumn("dollars", F.round(net, 2)).withColumn(
        "size",
        F.when(F.col("dollars") >= 100, "large").when(F.col("dollars") >= 20, "medium").otherwise("small"),
    )


def by_customer(df: Any, min_orders: int = 1) -> Any:
    """Totals of each customer, with the day of the last order."""
    totals = df.groupBy("customer").agg(
        F.count("*").alias("orders"),
        F.sum("dollars").alias("spent"),
        F.max(F.to_date("placed")).alias("last_day"),
        F.sum(F.when(F.col("size") == "large", 1).otherwise(0)).alias("large_orders"),
    )
    return totals.filter(F.col("orders") >= min_orders).select(
        "customer", "orders", F.round("spent", 2).alias("spent"), "last_day", "large_orders"
    )


# --- both ways ----------------------------------------------------------------------------------------------


def report(orders: Any, rates: Any) -> Any:
    """The three together; `orders` and `rates` are DataFrames or Frames."""
    return by_customer(in_dollars(clean_orders(orders), rates))


def build(orders: Any = None, rates: Any = None) -> sv.Workflow:
    """The functions on Frames. Their Columns need a live Spark session."""
    spark = sv.spark_session()
    flow = sv.Workflow("functions-on-frames")
    orders = spark.createDataFrame(ORDER_ROWS, _as_text(ORDERS)) if orders is None else orders
    rates = spark.createDataFrame(RATE_ROWS, RATES) if rates is None else rates
    report(_timed(flow.read.frame(orders, name="orders")), flow.read.frame(rates, name="rates")).sink("S")
    return flow


def plain() -> list[tuple[Any, ...]]:
    """The functions on DataFrames."""
    spark = sv.spark_session()
    orders = _timed(spark.createDataFrame(ORDER_ROWS, _as_text(ORDERS)))
    return [tuple(row) for row in report(orders, spark.createDataFrame(RATE_ROWS, RATES)).collect()]


def _as_text(schema: str) -> str:
    return schema.replace("placed timestamp", "placed string")


def _timed(df: Any) -> Any:
    return df.withColumn("placed", F.col("placed").cast("timestamp"))


def main() -> None:
    result = build().run().result("S")
    recorded = [tuple(row.values()) for row in result.to_pylist()]
    print(result.to_pandas().to_string())
    print("the same as on DataFrames:", Counter(recorded) == Counter(plain()))


if __name__ == "__main__":
    main()
