"""Topic count: documents arrive word by word, and only an end-of-file marker says where one ends.

The topic of a document is the one most of its words have. Looking up a word's topic is what takes time, so words
should be looked up in parallel; but a marker reaches only one of the workers. The wrong program runs the sequential
operator on several workers. The right one numbers the documents first, and then needs no markers.

    python examples/diffstream/topics.py
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Window
from pyspark.sql import functions as F

from samovar.diff import check, ordered, plain, rows, shake

WORDS = "at int not null, word string, ends boolean not null"
FOUND = "document int, topic int"
TOPICS = 4


def topic_of(word: str) -> int:
    """The topic of a word: a look into a key-value store that every worker has."""
    return zlib.crc32(word.encode()) % TOPICS


def most_frequent(counts: Counter[int]) -> int:
    """The topic with most words; the smallest of several."""
    return min(counts, key=lambda topic: (-counts[topic], topic))


def documents(words: Iterator[tuple[str | None, bool]]) -> Iterator[tuple[int, int]]:
    """The sequential operator: count topics until the document ends."""
    counts: Counter[int] = Counter()
    number = 0
    for word, ends in words:
        if word is not None:
            counts[topic_of(word)] += 1
        if ends:
            yield number, most_frequent(counts) if counts else -1
            counts.clear()
            number += 1


def sequential(words: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference, in plain Python."""
    read = ((row["word"], row["ends"]) for row in sorted(words, key=lambda row: row["at"]))
    return [{"document": n, "topic": topic} for n, topic in documents(read)]


def wrong_parallel(df: Any) -> Any:
    """The sequential operator on several workers: a marker ends a document for one of them only."""

    def work(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        read = ((w, e) for f in frames for w, e in zip(f["word"], f["ends"], strict=True))
        yield pd.DataFrame(list(documents(read)), columns=["document", "topic"])

    return df.repartition(3, "at").sortWithinPartitions("at").mapInPandas(work, FOUND).orderBy("document")


def right_parallel(df: Any) -> Any:
    """Number the documents, look words up in parallel, count by document and topic."""

    @F.pandas_udf("int")  # type: ignore[call-overload]
    def looked_up(words: pd.Series) -> pd.Series:
        return words.map(topic_of)

    before = Window.orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
    ended = F.coalesce(F.sum(F.col("ends").cast("int")).over(before), F.lit(0)).cast("int")
    numbered = df.withColumn("document", ended)
    last = numbered.filter("ends").select("document")
    counts = (
        numbered.filter("word IS NOT NULL")
        .repartition(4)
        .groupBy("document", looked_up("word").alias("topic"))
        .count()
        .groupBy("document")
        .agg(F.min(F.struct(-F.col("count"), "topic")).getField("topic").alias("topic"))
    )
    joined = last.join(counts, "document", "left").fillna({"topic": -1})
    return joined.select("document", "topic").orderBy("document")


def random_words() -> Any:
    """Up to 16 words with a marker here and there."""
    words = ["tea", "samovar", "sugar", "lemon", "cup", None]
    values = {"word": words, "at": list(range(1000))}
    return rows(WORDS, sorted_by="at", values=values, max_size=16).map(_in_a_row)


def _in_a_row(drawn: Any) -> Any:
    for number, row in enumerate(drawn):
        row["at"] = number
    return drawn


def some_words(count: int = 90) -> list[dict[str, Any]]:
    """Documents of nine words."""
    return [{"at": n, "word": f"word {n * 7 % 31}", "ends": n % 9 == 8} for n in range(count)]


def main() -> None:
    """Both parallel programs against the reference."""
    for program in (wrong_parallel, right_parallel):
        print(f"--- {program.__name__}")
        print(check(program, plain(sequential), random_words(), depends=ordered, examples=15, seconds=15))
        print(shake(program, some_words(), depends=ordered, runs=8))


if __name__ == "__main__":
    main()
