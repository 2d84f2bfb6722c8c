"""``scripts/bench monitor``: the Yahoo streaming benchmark, with and without a monitor.

Two queries of Structured Streaming parse ad events, keep the views and join them with their campaigns: one in a single
partition, one in several. Without a monitor each hands its micro-batches to a sink that drops them; with one, they are
compared; in parts, they are compared on the executors. Both queries run at once, to the end of what is there, and
events are counted on both sides. The ways take turns, each round beginning with another one; a first round warms up and
does not count. What a way loses is the median over the rounds, each against the unmonitored queries of its round.

``--soak MINUTES`` runs two endless streams under a monitor with a checkpoint instead, and tells how memory went.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.session import machine, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Measured", "growth", "lost", "main", "measure", "programs", "soak", "write_events"]

_EVENT = "ad_id string, event_type string, event_time bigint, user_id string"
_ADS = 1_000
_LOST = 0.05
_NOW = {"availableNow": True}
_COLLECTIONS = 45
"""How often a soak looks at the heap: a collection holds everything up for a moment."""


@dataclass(frozen=True)
class Measured:
    """One execution of both programs."""

    way: str
    seconds: float
    events: int
    """Of both sides."""

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds


def write_events(spark: SparkSession, folder: Path, events: int, files: int) -> None:
    """Events as JSON in the lines of files, one file a micro-batch."""
    from pyspark.sql import functions as F

    kinds = F.array(*map(F.lit, ("view", "click", "purchase")))
    made = spark.range(0, events, 1, files).select(
        F.to_json(
            F.struct(
                F.concat(F.lit("user "), F.col("id") * 7919 % 100).alias("user_id"),
                F.concat(F.lit("ad "), F.col("id") * 104_729 % _ADS).alias("ad_id"),
                F.element_at(kinds, (F.col("id") % 3 + 1).cast("int")).alias("event_type"),
                (F.col("id") * 1000).alias("event_time"),
            )
        ).alias("value")
    )
    made.write.mode("overwrite").text(str(folder))
    for number, file in enumerate(sorted(folder.glob("*.txt"))):
        os.utime(file, (1_000_000_000 + number,) * 2)


def programs(spark: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    """The sequential program and the parallel one."""
    from pyspark.sql import functions as F

    campaigns = spark.range(_ADS).select(
        F.concat(F.lit("ad "), F.col("id")).alias("ad_id"), (F.col("id") / 10).cast("int").alias("campaign")
    )

    def program(events: DataFrame) -> DataFrame:
        parsed = events.select(F.from_json("value", _EVENT).alias("event")).select("event.*")
        views = parsed.filter("event_type = 'view'").select("ad_id", "event_time")
        return views.join(F.broadcast(campaigns), "ad_id").select("ad_id", "campaign", "event_time")

    events = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    return program(events.coalesce(1)), program(events.repartition(2))


def alone(left: DataFrame, right: DataFrame) -> None:
    """Both queries, compared by nobody."""
    with tempfile.TemporaryDirectory() as folder:
        queries = [
            df.writeStream.format("noop")
            .option("checkpointLocation", f"{folder}/{name}")
            .trigger(availableNow=True)
            .start()
            for name, df in (("left", left), ("right", right))
        ]
        for query in queries:
            query.awaitTermination()


def monitored(left: DataFrame, right: DataFrame) -> None:
    """Both queries under a monitor."""
    from samovar.diff import monitor

    assert monitor(left, right, trigger=_NOW, drift=1_000_000).wait().equivalent


def monitored_with_checkpoint(left: DataFrame, right: DataFrame) -> None:
    """The same, and it could be taken up again."""
    from samovar.diff import monitor

    with tempfile.TemporaryDirectory() as folder:
        assert monitor(left, right, trigger=_NOW, drift=1_000_000, checkpoint=folder).wait().equivalent


def monitored_in_parts(left: DataFrame, right: DataFrame) -> None:
    """Compared by key, on the executors."""
    from samovar.diff import keyed, monitor

    with tempfile.TemporaryDirectory() as folder:
        verdict = monitor(
            left,
            right,
            trigger=_NOW,
            drift=1_000_000,
            checkpoint=folder,
            depends=keyed("event_time"),
            parts=2,
        ).wait()
    assert verdict.equivalent


WAYS = {
    "no monitor": alone,
    "monitor": monitored,
    "monitor, checkpoint": monitored_with_checkpoint,
    "monitor, 2 parts": monitored_in_parts,
}


def measure(spark: SparkSession, folder: Path, events: int, rounds: int) -> list[Measured]:
    """Every way, round by round; each round begins with another way."""
    made = []
    names = list(WAYS)
    for turn in range(rounds):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            way = WAYS[name]
            left, right = programs(spark, folder)
            gc.collect()
            start = time.perf_counter()
            way(left, right)
            made.append(Measured(name, time.perf_counter() - start, 2 * events))
            print(f"round {turn} {name}: {made[-1].seconds:.2f} s", file=sys.stderr)
    return made


def lost(results: Sequence[Measured]) -> dict[str, float]:
    """The share of the throughput that each way loses: the median over rounds."""
    by = {way: [m.seconds for m in results if m.way == way] for way in WAYS}
    return {
        way: statistics.median(1 - base / mine for base, mine in zip(by["no monitor"], seconds, strict=True))
        for way, seconds in by.items()
    }


def soak(spark: SparkSession, minutes: float, *, rows: int = 20_000) -> dict[str, Any]:
    """Two endless streams under a monitor: how many events were compared, and memory over time, in MiB.

    `driver` and `java` are what the processes hold; `heap` is what is left of Java's heap after a collection.
    """
    import psutil

    from samovar.diff import keyed, monitor

    def stream() -> DataFrame:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
        return source.option("numPartitions", 1).load().selectExpr("value", "value % 1000 AS key")

    mine = psutil.Process()
    every = {"driver": [mine], "java": [p for p in mine.children(recursive=True) if "java" in p.name()]}
    samples: dict[str, list[float]] = {name: [] for name in (*every, "heap")}
    unmatched: list[int] = []
    pause = minutes * 60 / _COLLECTIONS
    with tempfile.TemporaryDirectory() as folder:
        with monitor(
            stream(), stream().repartition(2, "key"), depends=keyed("key"), checkpoint=folder, drift=10 * rows
        ) as watched:
            end = time.monotonic() + minutes * 60
            collected = time.monotonic()
            while time.monotonic() < end and watched.status == "running":
                watched.wait(1.0)
                unmatched.append(sum(watched.metrics.unmatched.values()))
                for name, processes in every.items():
                    samples[name].append(sum(p.memory_info().rss for p in processes) / 2**20)
                if time.monotonic() - collected >= pause:
                    samples["heap"].append(_heap(spark))
                    collected = time.monotonic()
            metrics = watched.metrics
        if watched.error is not None:
            raise watched.error
    return {
        "matched": metrics.matched,
        "status": watched.status,
        "unmatched": unmatched,
        "memory": samples,
        "growth": {name: growth(found) for name, found in samples.items()},
    }


def _heap(spark: SparkSession) -> float:
    """MiB that Java's objects take, after a collection."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def growth(samples: Sequence[float]) -> float:
    """How much more there was in the last third than in the second, by their medians: the first warms up."""
    third = max(1, len(samples) // 3)
    return statistics.median(samples[-third:]) - statistics.median(samples[third : 2 * third] or samples)


def main(argv: Sequence[str]) -> int:
    """Run it; 1 if a monitor cost more than 5 % of the throughput."""
    parser = argparse.ArgumentParser(prog="benchmarks monitor", description=__doc__)
    parser.add_argument("--events", type=int, default=3_000_000, help="for each side")
    parser.add_argument("--files", type=int, default=6, help="micro-batches for each side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="watch memory for so long instead")
    parser.add_argument("--json", type=Path, help="where to write all measurements")
    arguments = parser.parse_args(argv)
    spark = session(master="local[2]")
    if arguments.soak:
        found = soak(spark, arguments.soak)
        _write(arguments.json, found)
        grown = ", ".join(f"{name} {mib:+.1f} MiB" for name, mib in found["growth"].items())
        print(f"{found['matched']:,} pairs matched; from the second third to the last: {grown}")
        return int(found["status"] != "stopped")
    with tempfile.TemporaryDirectory() as place:
        warm, folder = Path(place) / "warm", Path(place) / "events"
        write_events(spark, warm, 20_000, 2)
        measure(spark, warm, 20_000, 1)
        write_events(spark, folder, arguments.events, arguments.files)
        measure(spark, folder, arguments.events, 1)
        results = measure(spark, folder, arguments.events, arguments.rounds)
    rates = {way: statistics.median(m.rate for m in results if m.way == way) for way in WAYS}
    shares = lost(results)
    table = Table("", "events/s", "lost")
    for way, rate in rates.items():
        table.add_row(way, f"{rate:,.0f}", f"{shares[way]:.1%}")
    Console(width=100).print(table)
    _write(arguments.json, {"results": [asdict(m) for m in results], "lost": shares})
    return int(shares["monitor"] > _LOST)


def _write(path: Path | None, found: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps({"machine": machine(), **found}, indent=1))
