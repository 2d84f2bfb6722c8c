"""Texera's three workflows (its section 5) as pairs: a plain PySpark job and a Samovar workflow.

W1 joins tweets with places, keeps those with a word, judges their sentiment and averages it by region. W2 drops nulls
and duplicates from reviews and puts the result to reviews that were clean before. W3 joins trades with daily closing
prices and adds up the return of each trader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.data import Data
from benchmarks.logic import judged
from benchmarks.pairs import Pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import samovar as sv

__all__ = ["TEXERA"]


def w1_plain(spark: SparkSession, data: Data) -> DataFrame:
    from pyspark.sql import functions as F

    places = spark.read.parquet(data.path("places"))
    found = (
        spark.read.parquet(data.path("located_tweets"))
        .join(places, "place")
        .filter(F.lower("text").contains("love"))
        .select(F.floor((F.col("longitude") + 180) / 30).alias("region"), "text")
    )

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = pa.array([judged(text) for text in batch.column("text").to_pylist()], pa.float64())
            yield pa.RecordBatch.from_arrays([batch.column("region"), made], names=["region", "sentiment"])

    sentiments = found.mapInArrow(judge, "region bigint, sentiment double")
    return sentiments.groupBy("region").agg(
        F.count(F.lit(1)).alias("tweets"), F.avg("sentiment").alias("mean")
    )


def w1_samovar(data: Data) -> sv.Workflow:
    import samovar as sv
    from benchmarks.operators import TweetSentiment

    flow = sv.Workflow("texera-w1")
    places = flow.read.parquet(data.path("places"), name="places")
    (
        flow.read.parquet(data.path("located_tweets"), name="tweets")
        .join(places, on="place", name="located")
        .filter("contains(lower(text), 'love')", name="love")
        .selectExpr("floor((longitude + 180) / 30) AS region", "text", name="region")
        .apply(TweetSentiment(), name="sentiment")
        .groupBy("region")
        .agg("count(1) AS tweets", "avg(sentiment) AS mean", name="mean")
        .sink("S")
    )
    return flow


def w2_plain(spark: SparkSession, data: Data) -> DataFrame:
    raw = spark.read.parquet(data.path("raw_reviews"))
    return raw.dropna().dropDuplicates().union(spark.read.parquet(data.path("clean_reviews")))


def w2_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("texera-w2")
    raw = flow.read.parquet(data.path("raw_reviews"), name="raw")
    clean = flow.read.parquet(data.path("clean_reviews"), name="clean")
    raw.dropna(name="complete").dropDuplicates(name="once").union(clean, name="all").sink("S")
    return flow


def w3_plain(spark: SparkSession, data: Data) -> DataFrame:
    from pyspark.sql import functions as F

    trades, prices = (spark.read.parquet(data.path(name)) for name in ("trades", "prices"))
    gained = trades.join(prices, ["stock", "day"]).selectExpr("trader", "shares * (close - paid) AS gain")
    return gained.groupBy("trader").agg(F.count(F.lit(1)).alias("trades"), F.sum("gain").alias("total"))


def w3_samovar(data: Data) -> sv.Workflow:
    import samovar as sv

    flow = sv.Workflow("texera-w3")
    prices = flow.read.parquet(data.path("prices"), name="prices")
    (
        flow.read.parquet(data.path("trades"), name="trades")
        .join(prices, on=["stock", "day"], name="priced")
        .selectExpr("trader", "shares * (close - paid) AS gain", name="gain")
        .groupBy("trader")
        .agg("count(1) AS trades", "sum(gain) AS total", name="total")
        .sink("S")
    )
    return flow


TEXERA: Mapping[str, Pair] = MappingProxyType(
    {
        pair.name: pair
        for pair in (
            Pair("w1", "tweets by place, sentiment", ("located_tweets", "places"), w1_plain, w1_samovar),
            Pair("w2", "reviews cleaned and merged", ("raw_reviews", "clean_reviews"), w2_plain, w2_samovar),
            Pair("w3", "returns of traders", ("trades", "prices"), w3_plain, w3_samovar),
        )
    }
)
"""The workflows by name."""
