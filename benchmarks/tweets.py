"""Generated tweets: the 34 attributes of a real tweet record, about 1.2 KB each as JSON.

They stand in for IcedTea's Dataset 2 (1 M tweets of November 2019 to April 2020). Tweets lie in time order,
as in an archive; a few users write most of them; some users care about the climate and write about it more
often; holiday wishes and the Australian fires have their season.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.words import Ints, Zipf, joined, listed, maybe, random_strings, vocabulary

__all__ = ["SCHEMA", "TWEETS_AT_SCALE_1", "tweets"]

TWEETS_AT_SCALE_1 = 1_000_000

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("created_at", pa.timestamp("us", "UTC")),
        ("text", pa.string()),
        ("source", pa.string()),
        ("truncated", pa.bool_()),
        ("lang", pa.string()),
        ("in_reply_to_status_id", pa.int64()),
        ("in_reply_to_user_id", pa.int64()),
        ("in_reply_to_user_name", pa.string()),
        ("is_quote_status", pa.bool_()),
        ("possibly_sensitive", pa.bool_()),
        ("quote_count", pa.int32()),
        ("reply_count", pa.int32()),
        ("retweet_count", pa.int32()),
        ("favorite_count", pa.int32()),
        ("hashtags", pa.list_(pa.string())),
        ("geo_latitude", pa.float64()),
        ("geo_longitude", pa.float64()),
        ("place_name", pa.string()),
        ("place_country_code", pa.string()),
        ("user_id", pa.int64()),
        ("user_name", pa.string()),
        ("user_display_name", pa.string()),
        ("location", pa.string()),
        ("user_url", pa.string()),
        ("user_description", pa.string()),
        ("user_profile_image_url", pa.string()),
        ("user_created_at", pa.timestamp("us", "UTC")),
        ("user_verified", pa.bool_()),
        ("followers", pa.int32()),
        ("friends", pa.int32()),
        ("listed", pa.int32()),
        ("favourites", pa.int32()),
        ("statuses", pa.int32()),
    ]
)

_START_US = 1_572_566_400_000_000  # 2019-11-01 UTC
_END_US = 1_588_291_200_000_000  # 2020-05-01 UTC
_SNOWFLAKE_MS = 1_288_834_974_657  # the epoch of Twitter's ids
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class _Topic:
    """Phrases that turn up in a tweet with some chance, another one in season (days from November 1)."""

    phrases: tuple[str, ...]
    chance: float
    season: tuple[int, int] = (0, 0)
    in_season: float = 0.0
    green: bool = False  # mostly the matter of users who care about the climate


_TOPICS = (
    _Topic(("happy", "Happy", "so happy", "happy for you"), 0.016),
    _Topic(("happy birthday", "Happy Birthday", "HAPPY BIRTHDAY"), 0.010),
    _Topic(("happy new year", "Happy New Year"), 0.0003, (60, 64), 0.15),
    _Topic(("Happy Thanksgiving", "happy thanksgiving"), 0.0001, (26, 29), 0.08),
    _Topic(("merry christmas", "happy holidays", "Merry Christmas"), 0.0005, (50, 57), 0.05),
    _Topic(("glad", "so glad", "Glad"), 0.007),
    _Topic(("climate change", "Climate change", "#climatechange"), 0.012, green=True),
    _Topic(("climate crisis", "climate action", "the climate"), 0.006, green=True),
    _Topic(("fire", "on fire", "Fire"), 0.012),
    _Topic(
        ("bushfires", "bush fires", "wildfire", "the fires in australia"), 0.002, (55, 85), 0.025, green=True
    ),
)
_CLIENTS = tuple(
    f'<a href="{url}" rel="nofollow">{label}</a>'
    for url, label in (
        ("http://twitter.com/download/iphone", "Twitter for iPhone"),
        ("http://twitter.com/download/android", "Twitter for Android"),
        ("https://mobile.twitter.com", "Twitter Web App"),
        ("https://about.twitter.com/products/tweetdeck", "TweetDeck"),
        ("http://instagram.com", "Instagram"),
        ("https://buffer.com", "Buffer"),
    )
)
_LANGUAGES = ("en", "es", "pt", "ja", "und", "fr", "tr", "ar", "in", "de")
_LANGUAGE_SHARES = (0.66, 0.09, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02, 0.02, 0.01)
_PLACES = listed(
    "Los Angeles, CA|New York, NY|Chicago, IL|Houston, TX|Atlanta, GA|Brooklyn, NY|Dallas, TX|"
    "San Francisco, CA|Seattle, WA|Boston, MA|Philadelphia, PA|Phoenix, AZ|Austin, TX|Miami, FL|"
    "Denver, CO|San Diego, CA|Portland, OR|Washington, DC|Las Vegas, NV|Charlotte, NC|Orlando, FL|"
    "Detroit, MI|Nashville, TN|Columbus, OH|San Antonio, TX|Minneapolis, MN|Baltimore, MD|"
    "New Orleans, LA|Sacramento, CA|Tampa, FL|Pittsburgh, PA|St Louis, MO|Cleveland, OH|"
    "Cincinnati, OH|Indianapolis, IN|Milwaukee, WI|Kansas City, MO|Raleigh, NC|Salt Lake City, UT|"
    "Louisville, KY|Memphis, TN|Richmond, VA|Oklahoma City, OK|Jacksonville, FL|Birmingham, AL|"
    "Honolulu, HI|Albuquerque, NM|Boise, ID|Omaha, NE|Des Moines, IA|London, England|Lagos, Nigeria|"
    "Toronto, Ontario|Sydney, New South Wales|Mumbai, India|Nairobi, Kenya|Manchester, England|"
    "Johannesburg, South Africa|Earth|worldwide|she/her|everywhere|in your head|Planet Earth",
    separator="|",
)
_FIRST = listed(
    "Alex Sam Maria Jo Chris Taylor Kim Pat Ana Lee Dana Robin Max Noor Ivy Omar Lena Raj Mei Tom"
)
_LAST = listed(
    "Smith Garcia Lee Brown Patel Nguyen Kim Rossi Silva Cohen Khan Lopez Ali Novak Okafor Berg Wang Diaz"
)
_DESCRIPTIONS = 20_000


def tweets(seed: int, chunk: int, chunks: int, rows: int, users: int) -> pa.Table:
    """Slice ``chunk`` of the half year cut into ``chunks``: ``rows`` tweets by ``users`` users."""
    rng = np.random.default_rng([seed, 1, chunk])
    span = (_END_US - _START_US) / chunks
    created = np.sort(_START_US + ((chunk + rng.random(rows)) * span).astype(np.int64))
    author = _activity(users).draw(rng, rows)
    popularity = rng.pareto(1.2, rows)
    reply = rng.random(rows) < 0.3
    addressee = _activity(users).draw(rng, rows)
    geo = rng.random(rows) < 0.02
    home = _spread(author, 5) % len(_PLACES)
    place = pa.array(_PLACES).take(pa.array(home))
    columns: dict[str, pa.Array] = {
        "id": pa.array(((created // 1000 - _SNOWFLAKE_MS) << 22) | rng.integers(0, 1 << 22, rows)),
        "created_at": pa.array(created // 1_000_000 * 1_000_000, SCHEMA.field("created_at").type),
        "text": _text(rng, created, author, maybe(_user_name(addressee), reply)),
        "source": pa.array(_CLIENTS).take(
            pa.array(np.minimum(rng.geometric(0.5, rows) - 1, len(_CLIENTS) - 1))
        ),
        "truncated": pa.array(rng.random(rows) < 0.05),
        "lang": pa.array(_LANGUAGES).take(pa.array(rng.choice(len(_LANGUAGES), rows, p=_LANGUAGE_SHARES))),
        "in_reply_to_status_id": pa.array(
            ((created // 1000 - _SNOWFLAKE_MS - rng.integers(1, _DAY_US // 1000, rows)) << 22), mask=~reply
        ),
        "in_reply_to_user_id": pa.array(_user_id(addressee), mask=~reply),
        "in_reply_to_user_name": maybe(_user_name(addressee), reply),
        "is_quote_status": pa.array(rng.random(rows) < 0.12),
        "possibly_sensitive": pa.array(rng.random(rows) < 0.02, mask=rng.random(rows) < 0.5),
        "quote_count": pa.array((popularity * 0.1).clip(max=1e5).astype(np.int32)),
        "reply_count": pa.array((popularity * 0.5).clip(max=1e5).astype(np.int32)),
        "retweet_count": pa.array((popularity * 1.5).clip(max=1e6).astype(np.int32)),
        "favorite_count": pa.array((popularity * 5.0).clip(max=1e6).astype(np.int32)),
        "hashtags": _hashtags(rng, rows),
        "geo_latitude": pa.array(rng.uniform(25, 49, rows).round(6), mask=~geo),
        "geo_longitude": pa.array(rng.uniform(-124, -67, rows).round(6), mask=~geo),
        "place_name": maybe(place, geo),
        "place_country_code": maybe(pa.array(["US"] * rows), geo),
    }
    columns |= _user_columns(author, place)
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _text(rng: np.random.Generator, created: Ints, author: Ints, addressee: pa.Array) -> pa.Array:
    rows = len(created)
    day = (created - _START_US) // _DAY_US
    # One user in ten is green and writes of it six times as often as the average user does.
    interest = np.where(_spread(author, 9) % 10 == 0, 6.0, 4 / 9)
    planted = []
    for topic in _TOPICS:
        first, last = topic.season
        chance = np.where((day >= first) & (day < last), topic.in_season, topic.chance)
        planted.append((rng.random(rows) < chance * (interest if topic.green else 1.0), topic.phrases))
    lengths = rng.negative_binomial(3, 0.13, rows).clip(3, 50)
    words = vocabulary(tuple(phrase for topic in _TOPICS for phrase in topic.phrases))
    body = words.sentences(rng, lengths, planted)
    link = maybe(joined(" https://t.co/", random_strings(rng, rows, 10)), rng.random(rows) < 0.45)
    return joined(joined("@", addressee, " "), body, link, skip_nulls=True)


def _hashtags(rng: np.random.Generator, rows: int) -> pa.Array:
    words = vocabulary()
    counts = np.where(rng.random(rows) < 0.8, 0, rng.integers(1, 5, rows))
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    ids = 150 + rng.integers(0, 2000, int(counts.sum()))
    return pa.ListArray.from_arrays(offsets, words.words.take(pa.array(ids)))


def _user_columns(author: Ints, place: pa.Array) -> dict[str, pa.Array]:
    """A user's columns are a function of the user's number, so that they agree between tweets."""
    fame = (1e9 / (1.0 + _spread(author, 1) % 1_000_000_000)) ** 0.9
    first = pa.array(_FIRST).take(pa.array(_spread(author, 2) % len(_FIRST)))
    last = pa.array(_LAST).take(pa.array(_spread(author, 3) % len(_LAST)))
    picture = pc.cast(pa.array(_spread(author, 4)), pa.string())
    joined_at = 1_230_768_000_000_000 + _spread(author, 6) % (10 * 365 * 86_400) * 1_000_000

    def count(factor: float, limit: float) -> pa.Array:
        return pa.array((fame * factor).clip(max=limit).astype(np.int32))

    return {
        "user_id": pa.array(_user_id(author)),
        "user_name": _user_name(author),
        "user_display_name": pc.binary_join_element_wise(first, last, " "),
        "location": maybe(place, _spread(author, 7) % 10 < 7),
        "user_url": maybe(
            joined("https://t.co/", pc.utf8_slice_codeunits(picture, 0, 10)), _spread(author, 8) % 3 == 0
        ),
        "user_description": _descriptions().take(pa.array(_spread(author, 10) % _DESCRIPTIONS)),
        "user_profile_image_url": joined(
            "https://pbs.twimg.com/profile_images/", picture, "/", picture, "_normal.jpg"
        ),
        "user_created_at": pa.array(joined_at, SCHEMA.field("user_created_at").type),
        "user_verified": pa.array(_spread(author, 11) % 200 == 0),
        "followers": count(90.0, 1e8),
        "friends": count(60.0, 5000),
        "listed": count(0.8, 1e6),
        "favourites": count(900.0, 1e6),
        "statuses": count(1500.0, 2e6),
    }


def _spread(values: Ints, salt: int) -> Ints:
    """A well-mixed non-negative number for each value (the finaliser of SplitMix64)."""
    x = values.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return (mixed >> np.uint64(1)).astype(np.int64)


def _user_id(user: Ints) -> Ints:
    return _spread(user, 12) % 1_000_000_000_000_000_000


def _user_name(user: Ints) -> pa.Array:
    """A handle: a word and the user's number, hence unique."""
    words = vocabulary().words
    return joined(
        words.take(pa.array(200 + _spread(user, 13) % 15_000)), pc.cast(pa.array(user), pa.string())
    )


@cache
def _activity(users: int) -> Zipf:
    return Zipf.over(users, exponent=0.8, shift=20.0)


@cache
def _descriptions() -> pa.Array:
    rng = np.random.default_rng([_DESCRIPTIONS, 2])
    return vocabulary().sentences(rng, rng.integers(0, 30, _DESCRIPTIONS))
