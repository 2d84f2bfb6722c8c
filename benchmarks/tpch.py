"""TPC-H queries 1, 3, 4, 6, 10, 12 and 14 as pairs: plain PySpark, and Frame methods with SQL strings.

Parameters are the validation values of the specification. Join keys are renamed alike before a join, so that
both versions join on a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.data import Data
from benchmarks.pairs import Pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import samovar as sv

__all__ = ["QUERIES"]

_REVENUE = "l_extendedprice * (1 - l_discount)"


def q1_plain(spark: SparkSession, data: Data) -> DataFrame:
    price, discount, tax = F.col("l_extendedprice"), F.col("l_discount"), F.col("l_tax")
    return (
        spark.read.parquet(data.path("lineitem"))
        .filter(F.col("l_shipdate") <= F.lit("1998-09-02").cast("date"))
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            F.sum("l_quantity").alias("sum_qty"),
            F.sum(price).alias("sum_base_price"),
            F.sum(price * (1 - discount)).alias("sum_disc_price"),
            F.sum(price * (1 - discount) * (1 + tax)).alias("sum_charge"),
            F.avg("l_quantity").alias("avg_qty"),
            F.avg(price).alias("avg_price"),
            F.avg(discount).alias("avg_disc"),
            F.count(F.lit(1)).alias("count_order"),
        )
        .orderBy("l_returnflag", "l_linestatus")
    )


def q1_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("q1")
    (
        flow.read.parquet(data.path("lineitem"))
        .filter("l_shipdate <= DATE '1998-09-02'")
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            "sum(l_quantity) AS sum_qty",
            "sum(l_extendedprice) AS sum_base_price",
            f"sum({_REVENUE}) AS sum_disc_price",
            f"sum({_REVENUE} * (1 + l_tax)) AS sum_charge",
            "avg(l_quantity) AS avg_qty",
            "avg(l_extendedprice) AS avg_price",
            "avg(l_discount) AS avg_disc",
            "count(1) AS count_order",
        )
        .orderBy("l_returnflag", "l_linestatus")
        .sink("S")
    )
    return flow


def q3_plain(spark: SparkSession, data: Data) -> DataFrame:
    day = F.lit("1995-03-15").cast("date")
    customer = spark.read.parquet(data.path("customer")).filter(F.col("c_mktsegment") == "BUILDING")
    orders = spark.read.parquet(data.path("orders")).filter(F.col("o_orderdate") < day)
    lineitem = spark.read.parquet(data.path("lineitem")).filter(F.col("l_shipdate") > day)
    return (
        customer.join(orders, customer.c_custkey == orders.o_custkey)
        .join(lineitem, F.col("l_orderkey") == F.col("o_orderkey"))
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(F.sum(F.col("l_extendedprice") * (1 - F.col("l_discount"))).alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .orderBy(F.desc("revenue"), "o_orderdate")
        .limit(10)
    )


def q3_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("q3")
    customer = (
        flow.read.parquet(data.path("customer"))
        .filter("c_mktsegment = 'BUILDING'")
        .selectExpr("c_custkey AS o_custkey")
    )
    orders = (
        flow.read.parquet(data.path("orders"))
        .filter("o_orderdate < DATE '1995-03-15'")
        .selectExpr("o_orderkey AS l_orderkey", "o_custkey", "o_orderdate", "o_shippriority")
    )
    lineitem = (
        flow.read.parquet(data.path("lineitem"))
        .filter("l_shipdate > DATE '1995-03-15'")
        .select("l_orderkey", "l_extendedprice", "l_discount")
    )
    (
        customer.join(orders, on="o_custkey")
        .join(lineitem, on="l_orderkey")
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(f"sum({_REVENUE}) AS revenue")
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .orderBy("revenue", "o_orderdate", ascending=[False, True])
        .limit(10)
        .sink("S")
    )
    return flow


def q4_plain(spark: SparkSession, data: Data) -> DataFrame:
    orders = spark.read.parquet(data.path("orders")).filter(
        (F.col("o_orderdate") >= F.lit("1993-07-01").cast("date"))
        & (F.col("o_orderdate") < F.lit("1993-10-01").cast("date"))
    )
    late = spark.read.parquet(data.path("lineitem")).filter(F.col("l_commitdate") < F.col("l_receiptdate"))
    return (
        orders.join(late, orders.o_orderkey == late.l_orderkey, "left_semi")
        .groupBy("o_orderpriority")
        .agg(F.count(F.lit(1)).alias("order_count"))
        .orderBy("o_orderpriority")
    )


def q4_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("q4")
    orders = flow.read.parquet(data.path("orders")).filter(
        "o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'"
    )
    late = (
        flow.read.parquet(data.path("lineitem"))
        .filter("l_commitdate < l_receiptdate")
        .selectExpr("l_orderkey AS o_orderkey")
    )
    (
        orders.select("o_orderkey", "o_orderpriority")
        .join(late, on="o_orderkey", how="left_semi")
        .groupBy("o_orderpriority")
        .agg("count(1) AS order_count")
        .orderBy("o_orderpriority")
        .sink("S")
    )
    return flow


def q6_plain(spark: SparkSession, data: Data) -> DataFrame:
    return (
        spark.read.parquet(data.path("lineitem"))
        .filter(
            (F.col("l_shipdate") >= F.lit("1994-01-01").cast("date"))
            & (F.col("l_shipdate") < F.lit("1995-01-01").cast("date"))
            & F.expr("l_discount BETWEEN 0.05 AND 0.07")
            & (F.col("l_quantity") < 24)
        )
        .agg(F.sum(F.col("l_extendedprice") * F.col("l_discount")).alias("revenue"))
    )


def q6_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("q6")
    (
        flow.read.parquet(data.path("lineitem"))
        .filter("l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'")
        .filter("l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24")
        .groupBy()
        .agg("sum(l_extendedprice * l_discount) AS revenue")
        .sink("S")
    )
    return flow


_Q10_CUSTOMER = ("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
_Q10_OUTPUT = ("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")


def q10_plain(spark: SparkSession, data: Data) -> DataFrame:
    customer = spark.read.parquet(data.path("customer"))
    nation = spark.read.parquet(data.path("nation"))
    orders = spark.read.parquet(data.path("orders")).filter(
        (F.col("o_orderdate") >= F.lit("1993-10-01").cast("date"))
        & (F.col("o_orderdate") < F.lit("1994-01-01").cast("date"))
    )
    returned = spark.read.parquet(data.path("lineitem")).filter(F.col("l_returnflag") == "R")
    return (
        returned.join(orders, returned.l_orderkey == orders.o_orderkey)
        .join(customer, customer.c_custkey == orders.o_custkey)
        .join(nation, nation.n_nationkey == customer.c_nationkey)
        .groupBy(*_Q10_CUSTOMER)
        .agg(F.sum(F.col("l_extendedprice") * (1 - F.col("l_discount"))).alias("revenue"))
        .select(*_Q10_OUTPUT)
        .orderBy(F.desc("revenue"))
        .limit(20)
    )


def q10_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("q10")
    customer = flow.read.parquet(data.path("customer")).selectExpr(
        "c_custkey", "c_name", "c_acctbal", "c_phone", "c_address", "c_comment", "c_nationkey AS n_nationkey"
    )
    nation = flow.read.parquet(data.path("nation")).select("n_nationkey", "n_name")
    orders = (
        flow.read.parquet(data.path("orders"))
        .filter("o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'")
        .selectExpr("o_orderkey AS l_orderkey", "o_custkey AS c_custkey")
    )
    returned = (
        flow.read.parquet(data.path("lineitem"))
        .filter("l_returnflag = 'R'")
        .select("l_orderkey", "l_extendedprice", "l_discount")
    )
    (
        returned.join(orders, on="l_orderkey")
        .join(customer, on="c_custkey")
        .join(nation, on="n_nationkey")
        .groupBy(*_Q10_CUSTOMER)
        .agg(f"sum({_REVENUE}) AS revenue")
        .select(*_Q10_OUTPUT)
        .orderBy("revenue", ascending=False)
        .limit(20)
        .sink("S")
    )
    return flow


def q12_plain(spark: SparkSession, data: Data) -> DataFrame:
    orders = spark.read.parquet(data.path("orders"))
    lineitem = spark.read.parquet(data.path("lineitem")).filter(
        F.col("l_shipmode").isin("MAIL", "SHIP")
        & (F.col("l_commitdate") < F.col("l_receiptdate"))
        & (F.col("l_shipdate") < F.col("l_commitdate"))
        & (F.col("l_receiptdate") >= F.lit("1994-01-01").cast("date"))
        & (F.col("l_receiptdate") < F.lit("1995-01-01").cast("date"))
    )
    urgent = F.col("o_orderpriority").isin("1-URGENT", "2-HIGH")
    return (
        orders.join(lineitem, orders.o_orderkey == lineitem.l_orderkey)
        .groupBy("l_shipmode")
        .agg(
            F.sum(F.when(urgent, 1).otherwise(0)).alias("high_line_count"),
            F.sum(F.when(~urgent, 1).otherwise(0)).alias("low_line_count"),
        )
        .orderBy("l_shipmode")
    )


def q12_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("q12")
    orders = flow.read.parquet(data.path("orders")).selectExpr("o_orderkey AS l_orderkey", "o_orderpriority")
    lineitem = (
        flow.read.parquet(data.path("lineitem"))
        .filter(
            "l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate"
        )
        .filter("l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'")
        .select("l_orderkey", "l_shipmode")
    )
    urgent = "o_orderpriority IN ('1-URGENT', '2-HIGH')"
    (
        orders.join(lineitem, on="l_orderkey")
        .groupBy("l_shipmode")
        .agg(
            f"sum(CASE WHEN {urgent} THEN 1 ELSE 0 END) AS high_line_count",
            f"sum(CASE WHEN NOT ({urgent}) THEN 1 ELSE 0 END) AS low_line_count",
        )
        .orderBy("l_shipmode")
        .sink("S")
    )
    return flow


_PROMO_REVENUE = (
    f"100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_REVENUE} ELSE 0 END) / sum({_REVENUE})"
    " AS promo_revenue"
)


def q14_plain(spark: SparkSession, data: Data) -> DataFrame:
    part = spark.read.parquet(data.path("part"))
    lineitem = spark.read.parquet(data.path("lineitem")).filter(
        (F.col("l_shipdate") >= F.lit("1995-09-01").cast("date"))
        & (F.col("l_shipdate") < F.lit("1995-10-01").cast("date"))
    )
    return lineitem.join(part, lineitem.l_partkey == part.p_partkey).agg(F.expr(_PROMO_REVENUE))


def q14_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("q14")
    part = flow.read.parquet(data.path("part")).selectExpr("p_partkey AS l_partkey", "p_type")
    lineitem = (
        flow.read.parquet(data.path("lineitem"))
        .filter("l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'")
        .select("l_partkey", "l_extendedprice", "l_discount")
    )
    lineitem.join(part, on="l_partkey").groupBy().agg(_PROMO_REVENUE).sink("S")
    return flow


QUERIES: Mapping[str, Pair] = MappingProxyType(
    {
        pair.name: pair
        for pair in (
            Pair("q1", "pricing summary report", ("lineitem",), q1_plain, q1_samovar),
            Pair("q3", "shipping priority", ("customer", "orders", "lineitem"), q3_plain, q3_samovar),
            Pair("q4", "order priority checking", ("orders", "lineitem"), q4_plain, q4_samovar),
            Pair("q6", "forecasting revenue change", ("lineitem",), q6_plain, q6_samovar),
            Pair(
                "q10", "returned items", ("customer", "nation", "orders", "lineitem"), q10_plain, q10_samovar
            ),
            Pair("q12", "shipping modes", ("orders", "lineitem"), q12_plain, q12_samovar),
            Pair("q14", "promotion effect", ("part", "lineitem"), q14_plain, q14_samovar),
        )
    }
)
"""The queries by name."""
