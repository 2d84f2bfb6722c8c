"""Generated product reviews: the attributes of the Amazon review data, about 350 bytes each.

They stand in for IcedTea's Dataset 3: the categories All Beauty (371 K reviews) and Luxury Beauty (574 K). A
review's words lean towards its rating, more or less clearly, so a nearest-neighbour model does better than
chance and still errs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.words import Ints, Vocabulary, Zipf, joined, listed, maybe, random_strings, vocabulary

__all__ = ["CATEGORIES", "SCHEMA", "Category", "reviews"]

SCHEMA = pa.schema(
    [
        ("overall", pa.float64()),
        ("verified", pa.bool_()),
        ("reviewTime", pa.string()),
        ("reviewerID", pa.string()),
        ("asin", pa.string()),
        ("title", pa.string()),
        ("brand", pa.string()),
        ("style", pa.map_(pa.string(), pa.string())),
        ("reviewerName", pa.string()),
        ("reviewText", pa.string()),
        ("summary", pa.string()),
        ("unixReviewTime", pa.int64()),
        ("vote", pa.int32()),
        ("image", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Category:
    """One source of reviews: how many at scale 1, of how many products, and how happy its customers are."""

    number: int
    rows_at_scale_1: int
    products: int
    ratings: tuple[float, float, float, float, float]


CATEGORIES: Mapping[str, Category] = MappingProxyType(
    {
        "all_beauty": Category(0, 371_000, 32_000, (0.14, 0.06, 0.08, 0.13, 0.59)),
        "luxury_beauty": Category(1, 574_000, 12_000, (0.10, 0.06, 0.09, 0.15, 0.60)),
    }
)

_NEGATIVE = listed(
    "waste disappointed broke terrible awful return horrible refund worst useless smell cheap bad "
    "burned itchy greasy stopped leaked fake allergic money rash dry junk garbage sticky avoid poor "
    "disgusting angry"
)
_NEUTRAL = listed(
    "okay average decent fine alright expected maybe somewhat mediocre price bit though however "
    "guess normal fair so-so nothing special works mild slightly middle acceptable"
)
_POSITIVE = listed(
    "love great perfect amazing soft excellent favorite wonderful recommend beautiful best nice "
    "smooth gentle fresh lovely awesome glow happy fantastic silky pleased quality works gift shiny "
    "lasting worth clean"
)
_LEXICONS = (_NEGATIVE, _NEUTRAL, _POSITIVE)
_SUMMARIES = pa.array(["One Star", "Two Stars", "Three Stars", "Four Stars", "Five Stars"])
_STYLES = pa.array(["Size:", "Color:", "Scent Name:", "Style Name:"])
_MONTHS = np.array([f"{month:02d}" for month in range(1, 13)])
_FIRST_DAY = 12_784  # 2005-01-01
_DAYS = 5_000


def reviews(seed: int, category: str, chunk: int, rows: int) -> pa.Table:
    """Chunk ``chunk`` of a category, ``rows`` reviews; in no order of time, as in the published files."""
    kind = CATEGORIES[category]
    rng = np.random.default_rng([seed, 2, kind.number, chunk])
    stars = rng.choice(5, rows, p=kind.ratings)
    product = _popularity(kind.products).draw(rng, rows)
    day = _FIRST_DAY + (_DAYS * np.sqrt(rng.random(rows))).astype(np.int64)
    votes = rng.geometric(0.3, rows)
    columns = {
        "overall": pa.array(stars + 1.0),
        "verified": pa.array(rng.random(rows) < 0.88),
        "reviewTime": _american(day),
        "reviewerID": joined("A", pc.utf8_upper(random_strings(rng, rows, 13, symbols=26))),
        "asin": _catalogue(category, "asin").take(pa.array(product)),
        "title": _catalogue(category, "title").take(pa.array(product)),
        "brand": _catalogue(category, "brand").take(pa.array(product % 997)),
        "style": _style(rng, rows),
        "reviewerName": maybe(_words(rng, np.full(rows, 2)), rng.random(rows) < 0.99),
        "reviewText": maybe(_text(rng, stars), rng.random(rows) < 0.998),
        "summary": _summary(rng, stars),
        "unixReviewTime": pa.array(day * 86_400),
        "vote": pa.array(votes.astype(np.int32), mask=rng.random(rows) < 0.86),
        "image": _images(rng, rows),
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _text(rng: np.random.Generator, stars: Ints) -> pa.Array:
    mood = np.array([0, 0, 1, 2, 2])[stars]
    # One review in eight speaks in another mood than its rating (irony, mixed feelings, a slip).
    mood = np.where(rng.random(len(stars)) < 0.125, rng.integers(0, 3, len(stars)), mood)
    lengths = rng.lognormal(2.75, 0.85, len(stars)).astype(np.int64).clip(1, 400)
    return _vocabulary().mixed(rng, lengths, _LEXICONS, mood, 0.25)


def _summary(rng: np.random.Generator, stars: Ints) -> pa.Array:
    written = _words(rng, rng.integers(1, 7, len(stars)))
    return pc.if_else(pa.array(rng.random(len(stars)) < 0.4), _SUMMARIES.take(pa.array(stars)), written)


def _style(rng: np.random.Generator, rows: int) -> pa.Array:
    present = rng.random(rows) < 0.35
    entries = int(present.sum())
    offsets = np.concatenate(([0], np.cumsum(present)))
    # A null offset marks a null map; its entries run to the next offset that is not null.
    starts = pa.array(offsets, pa.int32(), mask=np.concatenate((~present, [False])))
    keys = _STYLES.take(pa.array(rng.integers(0, len(_STYLES), entries)))
    return pa.MapArray.from_arrays(starts, keys, joined(" ", _words(rng, np.full(entries, 2))))


def _images(rng: np.random.Generator, rows: int) -> pa.Array:
    counts = np.where(rng.random(rows) < 0.97, 0, rng.integers(1, 4, rows))
    total = int(counts.sum())
    links = joined(
        "https://images-na.ssl-images-amazon.com/images/I/", random_strings(rng, total, 11), "._SY88.jpg"
    )
    return pa.ListArray.from_arrays(pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32()), links)


def _american(day: Ints) -> pa.Array:
    """Dates as the data set has them: ``09 5, 2015``."""
    dates = pa.array(day.astype("datetime64[D]"))
    months = pa.array(_MONTHS).take(pc.subtract(pc.month(dates), 1))
    days, years = pc.cast(pc.day(dates), pa.string()), pc.cast(pc.year(dates), pa.string())
    return joined(months, " ", days, ", ", years)


def _words(rng: np.random.Generator, lengths: Ints) -> pa.Array:
    return _vocabulary().sentences(rng, lengths)


@cache
def _vocabulary() -> Vocabulary:
    return vocabulary(tuple(dict.fromkeys(word for lexicon in _LEXICONS for word in lexicon)))


@cache
def _popularity(products: int) -> Zipf:
    return Zipf.over(products, exponent=0.9, shift=5.0)


@cache
def _catalogue(category: str, column: str) -> pa.Array:
    kind = CATEGORIES[category]
    rng = np.random.default_rng([kind.number, len(column), ord(column[0])])
    if column == "asin":
        return joined("B0", pc.utf8_upper(random_strings(rng, kind.products, 8, symbols=26)))
    return _words(rng, rng.integers(5, 12, kind.products) if column == "title" else np.full(997, 1))
