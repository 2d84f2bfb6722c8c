"""Functions written for PySpark DataFrames, as they stand in somebody's project, run unchanged on Frames."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from tests.conftest import ALL_SIZES
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE, assert_same, epoch_sizes, run_flow, write_files

import samovar as sv
from samovar.errors import SchemaProblem

# --- from a web shop's reporting job ------------------------------------------------------------------------------


def trim_strings(df: DataFrame) -> DataFrame:
    for name, kind in df.dtypes:
        if kind == "string":
            df = df.withColumn(name, F.trim(F.col(name)))
    return df


def with_age(df: DataFrame, today: dt.date) -> DataFrame:
    return df.withColumns(
        {
            "age_days": F.datediff(F.lit(today), df.ordered_on),
            "is_large": F.when(df["amount"] >= 100, True).otherwise(False),
        }
    )


def customer_report(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Turnover by country and segment, large customers first."""
    orders = orders.transform(trim_strings).transform(with_age, dt.date(2020, 6, 1))
    known = customers.filter(customers["country"].isNotNull())
    joined = orders.join(known, orders["customer_id"] == known["id"], "inner").drop(known["id"])
    segment = F.when(F.col("age_days") < 60, "new").when(joined.age_days < 90, "known").otherwise("old")
    return (
        joined.withColumn("segment", segment)
        .groupBy("country", "segment")
        .agg(
            F.count("*").alias("orders"),
            F.sum("amount").alias("turnover"),
            F.avg(F.col("amount")).alias("mean"),
            F.countDistinct("customer_id").alias("customers"),
            F.sum(F.col("is_large").cast("int")).alias("large"),
        )
        .orderBy(F.desc("turnover"), F.col("country").asc_nulls_last(), "segment")
    )


# --- from a data-cleaning module ----------------------------------------------------------------------------------


def clean(df: DataFrame, others: DataFrame) -> DataFrame:
    """Lower-case names, fill what is missing, newest row of each customer, flags from another table."""
    renamed = df.toDF(*[c.lower() for c in df.columns])
    filled = renamed.fillna({"channel": "unknown"}).dropna(subset=["amount"])
    newest = Window.partitionBy("customer_id").orderBy(F.col("ordered_on").desc(), F.col("id").desc())
    latest = filled.withColumn("rank", F.row_number().over(newest)).where(F.col("rank") == 1).drop("rank")
    flagged = latest.join(
        others.select(F.col("id").alias("customer_id"), F.lit(True).alias("registered")),
        "customer_id",
        "left",
    )
    cols = [c for c in flagged.columns if c not in ("channel", "registered")]
    return flagged.select(
        *cols,
        F.upper(flagged.channel).alias("channel"),
        F.coalesce(flagged["registered"], F.lit(False)).alias("registered"),
    ).replace("UNKNOWN", "-")


# --- from a feature pipeline --------------------------------------------------------------------------------------


def features(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Per customer: totals by channel, share of the whole, tags; customers without orders included."""
    a = orders.alias("o")
    tags = a.select(F.col("o.customer_id"), F.explode("o.tags").alias("tag")).distinct()
    tag_counts = tags.groupBy("customer_id").agg(F.count(F.lit(1)).alias("tag_count"))
    totals = orders.groupBy("customer_id").agg(
        F.sum("amount").alias("total"), F.max("ordered_on").alias("last")
    )
    per_channel = orders.groupBy("customer_id").pivot("channel", ["web", "shop"]).agg(F.sum("amount"))
    wide = (
        customers.join(totals, customers.id == totals.customer_id, how="left")
        .drop(totals.customer_id)
        .join(tag_counts.withColumnRenamed("customer_id", "id"), on=["id"], how="left")
        .join(per_channel.withColumnRenamed("customer_id", "id"), on="id", how="left")
    )
    for name in ("web", "shop"):
        wide = wide.withColumn(f"{name}_share", F.round(F.col(name) / F.col("total"), 4)).drop(name)
    return wide.filter((F.col("total") > 0) | F.col("total").isNull()).sort("id")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("shop")
    n = 40
    orders = pa.table(
        {
            "id": pa.array(range(n), pa.int64()),
            "customer_id": pa.array([i * 7 % 9 if i % 11 else None for i in range(n)], pa.int64()),
            "ordered_on": [dt.date(2020, 3, 1) + dt.timedelta(days=i * 2) for i in range(n)],
            "amount": pa.array([(i * 37 % 150) + 0.5 if i % 8 else None for i in range(n)]),
            "channel": [[" web", "shop ", None][i % 3] for i in range(n)],
            "tags": pa.array([["x", "y", "x"][: i % 4] for i in range(n)], pa.list_(pa.string())),
        }
    )
    customers = pa.table(
        {
            "id": pa.array(range(11), pa.int64()),
            "country": [["DE", "FR", None, "PL"][i % 4] for i in range(11)],
            "name": [f"customer {i}" for i in range(11)],
        }
    )
    return write_files(root / "orders", orders, 2), write_files(root / "customers", customers, 1)


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tables: tuple[str, str]) -> list[DataFrame]:
    """The tables in plain Spark, in one partition each: nothing is shuffled."""
    return [spark.read.parquet(path).coalesce(1) for path in tables]


def both(
    spark: SparkSession,
    paths: tuple[str, ...],
    plain: list[DataFrame],
    function: Callable[..., Any],
    tmp_path: Path,
    *,
    sizes: tuple[int | None, ...],
    ordered: bool = False,
) -> None:
    expected = function(*plain).toArrow()
    assert expected.num_rows
    for size in sizes:
        flow = sv.Workflow("shop")
        function(*(flow.read.parquet(p) for p in paths)).sink("S")
        result = run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size).result("S")
        assert_same(expected, result, ordered=ordered, note=f"epochs of {size}")


@pytest.mark.parametrize(("function", "ordered"), [(customer_report, True), (clean, False), (features, True)])
def test_a_function_for_dataframes_runs_unchanged_on_frames(
    function: Callable[..., Any],
    ordered: bool,
    spark: SparkSession,
    tables: tuple[str, str],
    plain: list[DataFrame],
    tmp_path: Path,
) -> None:
    both(spark, tables, plain, function, tmp_path, sizes=epoch_sizes(), ordered=ordered)


# --- columns told apart by where they came from -------------------------------------------------------------------


def chosen_after_a_join(o: Any, c: Any) -> Any:
    return o.join(c, o["customer_id"] == c["id"]).select(o["id"], c["id"].alias("cid"), c["name"])


def three_tables(o: Any, c: Any) -> Any:
    sums = o.groupBy(o["customer_id"].alias("id")).agg(F.sum("amount").alias("total"))
    two = o.join(c, o.customer_id == c.id, "left").drop(c.id)
    return two.join(sums, two["customer_id"] == sums["id"], "left").drop(sums["id"]).drop("tags")


def sorted_then_joined(o: Any, c: Any) -> Any:
    recent = o.sort(o["ordered_on"].desc()).filter(o["amount"] > 20)
    return recent.join(c, recent["customer_id"] == c["id"]).select(recent["id"], c["name"])


def added_then_joined(o: Any, c: Any) -> Any:
    more = o.withColumn("double", o["amount"] * 2)
    return (
        more.join(c, more["customer_id"] == c["id"])
        .filter(more["double"] > 50)
        .select(more["id"], c["country"])
    )


def aliases_of_one_table(o: Any, c: Any) -> Any:
    return (
        c.alias("a")
        .join(c.alias("b"), F.col("a.country") == F.col("b.country"))
        .select("a.name", F.col("b.id").alias("i"))
    )


def struct_fields(o: Any, c: Any) -> Any:
    nested = c.select("id", F.struct("country", "name").alias("who"))
    return nested.select(nested["who.name"], nested.who.getField("country").alias("land"), "who.*").drop(
        "name", "x"
    )


def all_columns_of_one_side(o: Any, c: Any) -> Any:
    return (
        o.alias("o").join(c.alias("c"), F.expr("o.customer_id = c.id")).select("c.*", "o.amount").limit(1000)
    )


def sorted_by_qualified_columns(o: Any, c: Any) -> Any:
    joined = o.join(c, o["customer_id"] == c["id"]).drop(c["id"])
    return joined.select(o["id"], c["name"], o["amount"]).orderBy(o["amount"].desc_nulls_last(), o["id"])


def grouped_after_a_left_join(o: Any, c: Any) -> Any:
    return (
        c.join(o, c["id"] == o["customer_id"], "left")
        .groupBy(c["id"], c.name)
        .agg(F.sum(o["amount"]).alias("total"), F.max(o["id"]).alias("last"))
    )


def grouped_by_computed_columns(o: Any, c: Any) -> Any:
    """As the first example of PySpark's DataFrame: both sides are computed, and both have a name."""
    people = o.select(o["customer_id"], F.concat(F.lit("order "), o["id"]).alias("name"), "amount")
    groups = c.selectExpr("id", "upper(name) AS name", "country")
    joined = people.filter(people.amount > 10).join(groups, people.customer_id == groups.id)
    return joined.groupBy(groups.name, "country").agg({"amount": "avg", "id": "max"})


def outer_join_of_aliases(o: Any, c: Any) -> Any:
    pairs = c.alias("a").join(c.alias("b"), F.col("a.id") == F.col("b.id") + 3, "outer")
    return pairs.select("a.name", F.col("b.name").alias("other"), "b.id")


def sorted_then_dropped(o: Any, c: Any) -> Any:
    return o.join(c, o["customer_id"] == c["id"]).sort("amount").drop(c["id"]).select("id", "name")


def sorted_by_both_sides(o: Any, c: Any) -> Any:
    joined = o.join(c, o["customer_id"] == c["id"], "outer")
    ordered = joined.orderBy(c["id"].desc_nulls_last(), o["id"].asc_nulls_first())
    return ordered.filter(o["id"].isNull() | (c["id"] > 0)).select(o["id"], c["id"].alias("cid"))


def windowed_by_one_side(o: Any, c: Any) -> Any:
    rank = F.row_number().over(Window.partitionBy(c["id"]).orderBy(o["id"].desc()))
    joined = o.join(c, o["customer_id"] == c["id"])
    return joined.withColumn("rank", rank).filter("rank = 1").select(o["id"], c["id"].alias("cid"), "rank")


def joined_with_what_was_joined(o: Any, c: Any) -> Any:
    sums = o.groupBy(o["customer_id"].alias("of")).agg(F.sum("amount").alias("amount")).orderBy("of")
    both = o.join(sums, o["customer_id"] == sums["of"]).join(c, o["customer_id"] == c["id"])
    return both.groupBy(o["customer_id"], c["name"]).agg(
        F.sum(o["amount"]).alias("sum"), F.max(sums["amount"]).alias("total")
    )


def distinct_pairs(o: Any, c: Any) -> Any:
    joined = o.join(c, o["customer_id"] == c["id"]).select(o["customer_id"], c["id"], o["id"])
    return joined.drop(o["id"]).distinct().orderBy(c["id"])


def udfs_of_columns(o: Any, c: Any) -> Any:
    longer = F.udf(lambda name: None if name is None else name + "!", "string")
    more = o.withColumn("next", F.udf(lambda n: n + 1, "bigint")(o.id))
    joined = more.join(c, more["customer_id"] == c["id"])
    return joined.select(more["next"], longer(c["name"]).alias("name"), longer(c.country).alias("land"))


def udfs_of_both_sides_grouped(o: Any, c: Any) -> Any:
    add = F.udf(lambda a, b: a + b, "bigint")
    joined = o.join(c, o["customer_id"] == c["id"]).orderBy(add(o["id"], c["id"]))
    return joined.groupBy(add(c["id"], F.lit(1)).alias("k")).agg(F.sum(add(o["id"], c["id"])).alias("s"))


def pandas_udfs_of_columns(o: Any, c: Any) -> Any:
    @F.pandas_udf("double")
    def doubled(v: pd.Series) -> pd.Series:
        return v * 2

    @F.pandas_udf("double")
    def mean(v: pd.Series) -> float:
        return float(v.mean())

    more = o.select("customer_id", doubled(o["amount"]).alias("double"))
    return more.groupBy("customer_id").agg(mean(more["double"]).alias("mean"))


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(grouped_after_a_left_join, marks=pytest.mark.slow),
        grouped_by_computed_columns,
        outer_join_of_aliases,
        pytest.param(sorted_then_dropped, marks=pytest.mark.slow),
        pytest.param(sorted_by_both_sides, marks=pytest.mark.slow),
        pytest.param(windowed_by_one_side, marks=pytest.mark.slow),
        pytest.param(joined_with_what_was_joined, marks=pytest.mark.slow),
        pytest.param(distinct_pairs, marks=pytest.mark.slow),
        pytest.param(udfs_of_columns, marks=pytest.mark.slow),
        udfs_of_both_sides_grouped,
        pandas_udfs_of_columns,
        chosen_after_a_join,
        three_tables,
        sorted_then_joined,
        pytest.param(added_then_joined, marks=pytest.mark.slow),
        pytest.param(aliases_of_one_table, marks=pytest.mark.slow),
        struct_fields,
        all_columns_of_one_side,
        sorted_by_qualified_columns,
    ],
)
def test_columns_are_told_apart_by_their_frame(
    function: Callable[..., Any],
    spark: SparkSession,
    tables: tuple[str, str],
    plain: list[DataFrame],
    tmp_path: Path,
) -> None:
    # which column is meant is settled before a run begins: epochs are cut with --slow alone
    sizes = (ONE_FILE, ALL_AT_ONCE) if os.environ.get(ALL_SIZES) else (ALL_AT_ONCE,)
    both(
        spark, tables, plain, function, tmp_path, sizes=sizes, ordered=function is sorted_by_qualified_columns
    )


def test_two_columns_of_one_name_cannot_reach_a_sink_or_python(
    spark: SparkSession, tables: tuple[str, str], tmp_path: Path
) -> None:
    for python in (False, True):
        flow = sv.Workflow("shop")
        o, c = (flow.read.parquet(p) for p in tables)
        joined = o.join(c, o["customer_id"] == c["id"])
        end = joined.mapInArrow(lambda batches: batches, "id bigint") if python else joined
        end.sink("S")
        with pytest.raises(SchemaProblem, match="two columns named 'id'"):
            flow.start(spark=spark, record=tmp_path / "runs")
