"""The Python operators of W4 and W5: the code of ``benchmarks.logic`` as Samovar operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import samovar as sv
from benchmarks.logic import KnnSentiment, count_month, judged

__all__ = ["MonthlyCount", "SentimentAnalyzer", "TweetSentiment"]


class MonthlyCount(sv.Operator):
    """Counts tweets by month and says so at the end, in the order in which the months came up."""

    output = "month string, tweets bigint"
    counts = sv.MapState()

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """Count one tweet; nothing comes out yet."""
        count_month(self.counts, row["created_at"])
        return iter(())

    def finish(self, port: int = 0) -> Iterator[dict[str, Any]]:
        """One row a month."""
        for month, tweets in self.counts.items():
            yield {"month": month, "tweets": tweets}


class SentimentAnalyzer(sv.Operator):
    """The sentiment of each review by the reviews before it. Sensitive to the order of its input."""

    output = "asin string, overall double, sentiment string"

    def __init__(self, k: int = 7, window: int = 512) -> None:
        self.model = KnnSentiment(k, window)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """Predict, then learn."""
        overall = row["overall"]
        yield {
            "asin": row["asin"],
            "overall": overall,
            "sentiment": self.model.step(row["reviewText"], overall),
        }


class TweetSentiment(sv.Operator):
    """The sentiment of a tweet, with a mini-step before it is judged and one after."""

    output = "region bigint, sentiment double"
    stateless = True

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any] | None]:
        """Judge one tweet."""
        yield None
        value = judged(row["text"])
        yield None
        yield {"region": row["region"], "sentiment": value}
