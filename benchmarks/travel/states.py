"""Bytes that travel for 100 step-overs of an aggregate with a large state (IcedTea, section 7.7)."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from pyspark.sql.classic.dataframe import DataFrame

from benchmarks.travel.setting import Row, Setting, stopwatch

__all__ = ["large_state", "states"]

TUPLES = 500_000
STEPS = 100


def states(setting: Setting) -> list[Row]:
    """W3's aggregate grouped by text, after 500,000 tuples: each tweet is a group of its own."""
    return [{**large_state(setting, TUPLES), "paper, naive": 4_300_000_000}]


def large_state(setting: Setting, tuples: int) -> Row:
    """Steps behind so many tuples."""
    import samovar as sv

    setting.pair("w3")
    flow = sv.Workflow("large")
    tweets = flow.read.parquet(setting.data.path("tweets"), name="tweets").select("id", "text", "followers")
    keyed = tweets.selectExpr("concat(id, text) AS text", "followers", name="unique")
    keyed.groupBy("text").agg("count(1) AS tweets", "max(followers) AS reach", name="groups").sink("S")
    run = setting.run(flow)
    past = setting.open(run)
    moved = _Moved()
    with patch.object(DataFrame, "toArrow", moved.counting(DataFrame.toArrow)):
        with stopwatch() as jump:
            moment = past.jump("groups", tuples=tuples)
        before = moved.total
        with stopwatch() as steps:
            for _ in range(STEPS):
                moment = moment.step_over("groups")
                assert len(moment.changes) == 1
    size = sum(len(str(k)) + 24 for k in moment.state("groups")["groups"])
    past.close()
    return {
        "state": "groups of an aggregate",
        "state bytes": size,
        "steps": STEPS,
        "bytes moved": moved.total - before,
        "bytes of the jump": before,
        "jump s": jump[0],
        "steps s": steps[0],
    }


class _Moved:
    """Counts what comes from Spark to the driver."""

    def __init__(self) -> None:
        self.total = 0

    def counting(self, fetch: Any) -> Any:
        def counted(df: DataFrame) -> Any:
            table = fetch(df)
            self.total += table.nbytes
            return table

        return counted
