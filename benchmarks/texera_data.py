"""The data of Texera's workflows, generated: tweets with places, reviews with nulls and duplicates, trades and prices.

Sizes are the paper's where it states them: 700 K tweets, 67,000 reviews and 4,500 clean ones, prices from April to July
2017 and the trades of 68 traders.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.reviews import reviews
from benchmarks.tweets import tweets

__all__ = ["ROWS_AT_SCALE_1", "rows_of"]

_DAY_ONE = 17_257  # 2017-04-01
_DAYS = 83  # trading days
_STOCKS = 500
_TRADERS = 68
ROWS_AT_SCALE_1 = {
    "located_tweets": 700_000,
    "places": 5_000,
    "raw_reviews": 67_000,
    "clean_reviews": 4_500,
    "trades": 200_000,
    "prices": _STOCKS * _DAYS,
}
"""Rows at scale 1. The paper does not say how many places, stocks and trades it had."""


def rows_of(name: str, seed: int, chunk: int, chunks: int, rows: int) -> pa.Table:
    """Rows of a data set of Texera's."""
    chance = np.random.default_rng([seed, 7, sorted(ROWS_AT_SCALE_1).index(name), chunk])
    if name == "located_tweets":
        made = tweets(seed, chunk, chunks, rows, max(500, rows * chunks // 4)).select(["id", "text"])
        return made.append_column("place", pa.array(chance.integers(0, ROWS_AT_SCALE_1["places"], rows)))
    if name == "places":
        place = _numbers(name, chunk, chunks)
        columns = {"place": place, "longitude": chance.uniform(-180, 180, rows)}
        return pa.table({**columns, "latitude": chance.uniform(-90, 90, rows)})
    if name in ("raw_reviews", "clean_reviews"):
        made = reviews(seed, "luxury_beauty", chunk, rows).select(
            ["reviewerID", "asin", "overall", "reviewText"]
        )
        if name == "clean_reviews":
            return made.filter(made["reviewText"].is_valid())
        once = rows * 4 // 5
        return pa.concat_tables([made.slice(0, once), made.slice(0, rows - once)])  # one in four comes twice
    if name == "prices":
        number = _numbers(name, chunk, chunks)
        close = 20 + chance.gamma(3.0, 30.0, rows)
        return pa.table(
            {"stock": number % _STOCKS, "day": _DAY_ONE + number // _STOCKS, "close": close.round(2)}
        )
    return pa.table(
        {
            "trade": np.arange(rows) + chunk * 1_000_000_000,
            "trader": chance.integers(0, _TRADERS, rows),
            "stock": chance.integers(0, _STOCKS, rows),
            "day": _DAY_ONE + chance.integers(0, _DAYS, rows),
            "shares": chance.integers(1, 500, rows),
            "paid": (20 + chance.gamma(3.0, 30.0, rows)).round(2),
        }
    )


def _numbers(name: str, chunk: int, chunks: int) -> npt.NDArray[np.int64]:
    """The numbers of a chunk's rows in a data set that has the same size at every scale."""
    total = ROWS_AT_SCALE_1[name]
    return np.arange(total * chunk // chunks, total * (chunk + 1) // chunks)
