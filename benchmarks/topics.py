"""DiffStream's topic count (its section 5.2) at size: the sequential program and the parallel one, with a real look-up.

Words of documents arrive one by one, a marker ends a document, and the topic of a document is the one most of its
words have. A word's topic is looked up in a key-value store, a file of SQLite that every worker opens. The example
`examples/diffstream/topics.py` has the same two programs small, and tests them against each other.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["make", "parallel", "sequential"]

WORDS = 10_000
TOPICS = 20
FOUND = "document int, topic int"


def make(folder: Path, documents: int, words: int) -> tuple[Path, Path]:
    """A store of topics, and documents of so many words each, as Parquet."""
    chance = np.random.default_rng(11)
    store = folder / "topics.db"
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE topics (word TEXT PRIMARY KEY, topic INTEGER) WITHOUT ROWID")
        rows = ((f"word{n}", int(t)) for n, t in enumerate(chance.integers(0, TOPICS, WORDS)))
        connection.executemany("INSERT INTO topics VALUES (?, ?)", rows)
    connection.close()
    target = folder / "words"
    target.mkdir()
    for document in range(documents):
        chosen = chance.integers(0, WORDS, words)
        table = pa.table(
            {
                "at": np.arange(document * words, (document + 1) * words),
                "word": [f"word{n}" for n in chosen],
                "ends": np.arange(words) == words - 1,
            }
        )
        pq.write_table(table, target / f"{document:05d}.parquet")
    return store, target


class _Topics:
    """Looks words up, one query each."""

    def __init__(self, store: str) -> None:
        self._ask = sqlite3.connect(f"file:{store}?mode=ro", uri=True, check_same_thread=False).cursor()

    def of(self, word: str) -> int:
        return int(self._ask.execute("SELECT topic FROM topics WHERE word = ?", (word,)).fetchone()[0])


def _most(counts: Counter[int]) -> int:
    return min(counts, key=lambda topic: (-counts[topic], topic))


def sequential(spark: SparkSession, store: Path, words: Path) -> DataFrame:
    """One worker goes through all words in order."""
    where = str(store)

    def count(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        topics = _Topics(where)
        counts: Counter[int] = Counter()
        number = 0
        for frame in frames:
            made = []
            for word, ends in zip(frame["word"], frame["ends"], strict=True):
                counts[topics.of(word)] += 1
                if ends:
                    made.append((number, _most(counts)))
                    counts.clear()
                    number += 1
            yield pd.DataFrame(made, columns=["document", "topic"])

    in_order = spark.read.parquet(str(words)).coalesce(1).sortWithinPartitions("at")
    return in_order.mapInPandas(count, FOUND)


def parallel(spark: SparkSession, store: Path, words: Path, workers: int) -> DataFrame:
    """Documents are numbered by their markers, words looked up by so many workers, and counted by document."""
    from pyspark.sql import functions as F

    where = str(store)
    read = spark.read.parquet(str(words))
    ends = sorted(row["at"] for row in read.filter("ends").select("at").collect())

    def look_up(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        topics = _Topics(where)
        for frame in frames:
            numbers = np.searchsorted(ends, frame["at"].to_numpy())
            looked_up = [topics.of(word) for word in frame["word"]]
            yield pd.DataFrame({"document": numbers.astype("int32"), "topic": looked_up})

    found: Any = read.repartition(workers).mapInPandas(look_up, FOUND).groupBy("document", "topic").count()
    best = F.min(F.struct(-F.col("count"), "topic")).getField("topic").cast("int").alias("topic")
    return found.groupBy("document").agg(best).orderBy("document")
