"""The Yahoo streaming benchmark: ad events are parsed, filtered for views, and joined with their campaigns.

The sequential program goes through the events one by one, the parallel one is Spark's. What follows counts views by
campaign and window, so no order matters: `independent`.

    python examples/diffstream/yahoo.py
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as F

from samovar.diff import check, plain, shake

EVENT = "ad_id string, event_type string, event_time bigint, user_id string"
KINDS = ("view", "click", "purchase")


def events(count: int, ads: int = 40, seed: int = 1) -> list[dict[str, Any]]:
    """Events as lines of JSON, some of which do not parse, and some of ads that no campaign has."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        event = {
            "user_id": f"user {chance.randrange(100)}",
            "ad_id": f"ad {chance.randrange(ads + 2)}",
            "event_type": chance.choice(KINDS),
            "event_time": 1_000 * number,
        }
        made.append({"value": json.dumps(event) if number % 50 else "{"})
    return made


def campaigns(ads: int = 40, each: int = 10) -> list[dict[str, Any]]:
    """Which campaign an ad belongs to."""
    return [{"ad_id": f"ad {n}", "campaign_id": n // each} for n in range(ads)]


def sequential(events: list[dict[str, Any]], campaigns: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One event after the other."""
    campaign = {row["ad_id"]: row["campaign_id"] for row in campaigns}
    for row in events:
        try:
            event = json.loads(row["value"])
        except ValueError:
            continue
        if event["event_type"] == "view" and event["ad_id"] in campaign:
            yield {
                "ad_id": event["ad_id"],
                "campaign_id": campaign[event["ad_id"]],
                "event_time": event["event_time"],
            }


def parallel(events: Any, campaigns: Any) -> Any:
    """The same on all cores."""
    parsed = events.repartition(2).select(F.from_json("value", EVENT).alias("event")).select("event.*")
    views = parsed.filter("event_type = 'view'").select("ad_id", "event_time")
    return views.join(F.broadcast(campaigns), "ad_id").select("ad_id", "campaign_id", "event_time")


def main() -> None:
    """Sequential against parallel, and the parallel one shaken."""
    inputs = {"events": events(5_000), "campaigns": campaigns()}
    print(check(parallel, plain(sequential), inputs))
    print(shake(parallel, {**inputs, "events": events(100)}, runs=8))


if __name__ == "__main__":
    main()
