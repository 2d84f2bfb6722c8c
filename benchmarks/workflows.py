"""IcedTea's five workflows (Figure 15) as pairs: a hand-written PySpark batch job and a Samovar workflow.

W1 and W2 are TPC-H Q1 and Q10; W3 has parallel branches that meet in a join; W4 and W5 have Python operators
with state. The plain jobs of W4 and W5 run their Python code as one instance in source order, since the
result of such code depends on both: rows are put in the order (source, file, row) on one partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from benchmarks.data import Data
from benchmarks.logic import KnnSentiment, count_month
from benchmarks.pairs import Pair
from benchmarks.tpch import QUERIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import samovar as sv

__all__ = ["WORKFLOWS", "w4_samovar"]

# W3: in which states do people who write about fires also write about the climate, and how much?


def w3_plain(spark: SparkSession, data: Data) -> DataFrame:
    tweets = spark.read.parquet(data.path("tweets"))
    text = F.lower("text")
    voices = (
        tweets.filter(text.contains("climate"))
        .groupBy("user_name")
        .agg(F.count(F.lit(1)).alias("climate_tweets"), F.max("followers").alias("reach"))
    )
    fires = tweets.filter(
        (F.col("lang") == "en") & text.contains("fire") & F.col("location").rlike(", [A-Z]{2}$")
    ).select("user_name", F.substring_index("location", ", ", -1).alias("state"), "retweet_count")
    return (
        fires.join(voices, "user_name")
        .groupBy("state")
        .agg(
            F.count(F.lit(1)).alias("fire_tweets"),
            F.sum("climate_tweets").alias("climate_tweets"),
            F.sum("retweet_count").alias("retweets"),
            F.max("reach").alias("reach"),
        )
        .orderBy(F.desc("fire_tweets"), "state")
    )


def w3_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("w3")
    tweets = flow.read.parquet(data.path("tweets"), name="tweets")
    voices = (
        tweets.filter("contains(lower(text), 'climate')", name="climate")
        .groupBy("user_name")
        .agg("count(1) AS climate_tweets", "max(followers) AS reach", name="voices")
    )
    fires = tweets.filter(
        "lang = 'en' AND contains(lower(text), 'fire') AND location RLIKE ', [A-Z]{2}$'", name="fire"
    ).selectExpr("user_name", "substring_index(location, ', ', -1) AS state", "retweet_count", name="state")
    (
        fires.join(voices, on="user_name", name="both")
        .groupBy("state")
        .agg(
            "count(1) AS fire_tweets",
            "sum(climate_tweets) AS climate_tweets",
            "sum(retweet_count) AS retweets",
            "max(reach) AS reach",
            name="by_state",
        )
        .orderBy("fire_tweets", "state", ascending=[False, True], name="ranking")
        .sink("S")
    )
    return flow


# W4: how many tweets a month say happy or glad? A tweet that says both counts for both.


def _monthly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts: dict[str, int] = {}
    for batch in batches:
        for created_at in batch.column("created_at").to_pylist():
            count_month(counts, created_at)
    yield pa.RecordBatch.from_pydict(
        {"month": pa.array(counts.keys(), pa.string()), "tweets": pa.array(counts.values(), pa.int64())}
    )


def w4_plain(spark: SparkSession, data: Data) -> DataFrame:
    tweets = spark.read.parquet(data.path("tweets")).select(
        "id",
        "created_at",
        "text",
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.row_index").alias("row"),
    )
    happy = tweets.filter(F.lower("text").contains("happy")).withColumn("branch", F.lit(0))
    glad = tweets.filter(F.lower("text").contains("glad")).withColumn("branch", F.lit(1))
    return (
        happy.union(glad)
        .repartition(1)
        .sortWithinPartitions("file", "row", "branch")
        .select("id", "created_at", "text")
        .mapInArrow(_monthly, "month string, tweets bigint")
    )


def w4_samovar(data: Data, words: tuple[str, str] = ("happy", "glad")) -> sv.Workflow:
    import samovar as sv
    from benchmarks.operators import MonthlyCount

    flow = sv.Workflow("w4")
    tweets = flow.read.parquet(data.path("tweets"), name="tweets").select("id", "created_at", "text")
    first, second = (tweets.filter(f"contains(lower(text), '{word}')", name=word) for word in words)
    first.union(second).apply(MonthlyCount(), name="monthly").sink("S")
    return flow


# W5: how many reviews are positive, neutral, negative, as judged by the reviews before them?


def _sentiments(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    model = KnnSentiment()
    for batch in batches:
        texts, ratings = batch.column("reviewText").to_pylist(), batch.column("overall").to_pylist()
        sentiments = [model.step(text, overall) for text, overall in zip(texts, ratings, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [batch.column("asin"), batch.column("overall"), pa.array(sentiments, pa.string())],
            names=["asin", "overall", "sentiment"],
        )


def w5_plain(spark: SparkSession, data: Data) -> DataFrame:
    def source(number: int, name: str) -> DataFrame:
        return spark.read.parquet(data.path(name)).select(
            "asin",
            "overall",
            "reviewText",
            F.lit(number).alias("source"),
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.row_index").alias("row"),
        )

    return (
        source(0, "all_beauty")
        .union(source(1, "luxury_beauty"))
        .repartition(1)
        .sortWithinPartitions("source", "file", "row")
        .select("asin", "overall", "reviewText")
        .mapInArrow(_sentiments, "asin string, overall double, sentiment string")
        .groupBy("sentiment")
        .agg(F.count(F.lit(1)).alias("reviews"), F.avg("overall").alias("mean_rating"))
    )


def w5_samovar(data: Data) -> sv.Workflow:
    import samovar as sv
    from benchmarks.operators import SentimentAnalyzer

    flow = sv.Workflow("w5")
    every = flow.read.parquet(data.path("all_beauty"), name="all_beauty").select(
        "asin", "overall", "reviewText"
    )
    luxury = flow.read.parquet(data.path("luxury_beauty"), name="luxury").select(
        "asin", "overall", "reviewText"
    )
    (
        every.union(luxury)
        .apply(SentimentAnalyzer(), name="sentiment")
        .groupBy("sentiment")
        .agg("count(1) AS reviews", "avg(overall) AS mean_rating", name="counts")
        .sink("S")
    )
    return flow


WORKFLOWS: Mapping[str, Pair] = MappingProxyType(
    {
        pair.name: pair
        for pair in (
            replace(QUERIES["q1"], name="w1", title="TPC-H Q1"),
            replace(QUERIES["q10"], name="w2", title="TPC-H Q10"),
            Pair("w3", "tweets, branches and a join", ("tweets",), w3_plain, w3_samovar),
            Pair("w4", "tweets, monthly count UDF", ("tweets",), w4_plain, w4_samovar),
            Pair("w5", "reviews, KNN sentiment", ("all_beauty", "luxury_beauty"), w5_plain, w5_samovar),
        )
    }
)
"""The workflows by name."""
