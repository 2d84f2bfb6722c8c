"""``scripts/bench pauses``: how long a direct pause takes on real Spark, from the call to all workers stopped.

Pauses come at random instants. *python*: a stateful Python operator like W5's slow one, which works milliseconds on
each tuple and makes mini-steps, in one epoch. *native*: epochs that Spark runs by itself, which are cancelled and done
again, with pauses about a second apart: more frequent ones wait for epochs, as they are meant to. *aligned* stands
beside them: pauses at the end of the python run's epochs.

*mixed* is a run of both parts, with epochs as they come: paused at random about once a second, and, beside that, every
0.1 to 0.5 seconds from its start to its end, against the same run left alone. Time is that of the run without pauses.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import samovar as sv
from benchmarks.session import machine

__all__ = ["Latency", "Often", "Slow", "main", "measure", "mixed_flow", "paused_often"]

_SLOW = "aggregate(sequence(1L, 300000L + x), 0L, (a, b) -> (a * 31 + b) % 1000003)"


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the call of pause to its return."""

    workload: str
    pauses: int
    median: float
    p95: float
    worst: float


@dataclass(frozen=True)
class Often:
    """A run that is paused all the time: its seconds without the pauses, and those of the same run left alone."""

    alone: float
    paused: float
    pauses: int
    epochs: int
    complete: bool
    """Whether each row is in the result exactly once."""

    @property
    def ratio(self) -> float:
        return self.paused / self.alone


class Quick(sv.Operator):
    """Works about twenty microseconds on a tuple."""

    output = "x bigint, y bigint"
    seen = sv.MapState()

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        until = time.perf_counter() + 2e-5
        while time.perf_counter() < until:
            pass
        self.seen[row["x"] % 97] = row["y"]
        yield {"x": row["x"], "y": row["y"]}


class Slow(sv.Operator):
    """Works about four milliseconds on a tuple, in mini-steps of one."""

    output = "x bigint, n bigint"
    seen = sv.MapState()

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        for _ in range(4):
            until = time.perf_counter() + 0.001
            while time.perf_counter() < until:
                pass
            yield
        self.seen[row["x"] % 97] = row["x"]
        yield {"x": row["x"], "n": len(self.seen)}


def _python(folder: Path) -> sv.Workflow:
    flow = sv.Workflow("pauses-python")
    flow.read.parquet(str(folder), name="numbers").apply(Slow(), by="key", name="W").sink("S")
    return flow


def _native(folder: Path) -> sv.Workflow:
    flow = sv.Workflow("pauses-native")
    flow.read.parquet(str(folder), name="numbers").selectExpr("x", f"{_SLOW} AS y").sink("S")
    return flow


def mixed_flow(folder: Path, files: int, rows: int) -> sv.Workflow:
    """A workflow in which Spark works about as long as a Python operator, over new files."""
    folder.mkdir(parents=True)
    for number in range(files):
        xs = range(number * rows, (number + 1) * rows)
        pq.write_table(pa.table({"x": xs, "key": [x % 8 for x in xs]}), folder / f"{number:05d}.parquet")
    work = "aggregate(sequence(1L, 40L + x % 7), 0L, (a, b) -> (a * 31 + b) % 1000003)"
    flow = sv.Workflow("pauses-mixed")
    rows_read = flow.read.parquet(str(folder), name="numbers").selectExpr("x", "key", f"{work} AS y")
    rows_read.apply(Quick(), by="key", name="W").sink("S")
    return flow


def paused_often(
    spark: SparkSession,
    flow: sv.Workflow,
    folder: Path,
    *,
    gap: tuple[float, float],
    seed: int,
    most: int = 10_000,
) -> tuple[Often, list[float]]:
    """Run a workflow alone, then paused so many seconds after each resume; also the milliseconds of each pause."""
    chance = random.Random(seed)
    alone = time.perf_counter()
    rows = flow.run(spark=spark, record=folder, progress=False).result("S").num_rows
    alone = time.perf_counter() - alone
    samples: list[float] = []
    began, still = time.perf_counter(), 0.0
    run: Any = flow.start(spark=spark, record=folder)
    while len(samples) < most and not run.wait_ended(chance.uniform(*gap)):
        at = time.perf_counter()
        try:
            run.pause()
            if run.wait_until("paused", timeout=120) != "paused":
                break
        except sv.errors.CommandRefused:
            break
        stands = time.perf_counter()
        samples.append(1000 * (stands - at))
        time.sleep(0.05)
        still += time.perf_counter() - stands
        run.resume()
    xs = run.result("S").column("x").to_pylist()
    paused = time.perf_counter() - began - still
    complete = len(xs) == rows == len(set(xs))
    return Often(alone, paused, len(samples), len(run.history.epochs), complete), samples


def sampled(
    spark: SparkSession, flow: sv.Workflow, folder: Path, *, pauses: int, seed: int, mode: str, ready: bool
) -> list[float]:
    """Milliseconds of each pause. `ready`: wait for a Python worker to be at work first."""
    chance = random.Random(seed)
    epoch_bytes = 1 if mode == "aligned" else 1 << 40 if ready else None
    run: Any = flow.start(spark=spark, record=folder, epoch_bytes=epoch_bytes)
    tracker = spark.sparkContext.statusTracker()
    made: list[float] = []
    try:
        while len(made) < pauses and run.status == "running":
            while run.status == "running" and not (
                run.in_flight("W").rows if ready else tracker.getActiveJobsIds()
            ):
                time.sleep(0.005)
            time.sleep(chance.uniform(0.0, 0.15) if ready else chance.uniform(0.5, 1.5))
            if run.status != "running":
                break
            began = time.perf_counter()
            run.pause(mode=mode)
            if run.wait_until("paused", timeout=120) != "paused":
                break
            made.append(1000 * (time.perf_counter() - began))
            run.resume()
    finally:
        run.stop()
    return made


def _summed(workload: str, samples: Sequence[float]) -> Latency:
    ordered = sorted(samples)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return Latency(workload, len(ordered), statistics.median(ordered), p95, ordered[-1])


def measure(pauses: int = 100, seed: int = 1) -> dict[str, Any]:
    """The three workloads, as plain data. Texera's workflows and IcedTea's W5 are in `benchmarks papers`."""
    spark = sv.spark_session(master="local[2]", conf={"spark.ui.enabled": "false"})
    made: list[Latency] = []
    with tempfile.TemporaryDirectory(prefix="samovar-pauses-") as name:
        root = Path(name)
        for part, rows, files in (("many", 100_000, 1), ("native", 100, 200), ("cut", 100, 400)):
            (root / part).mkdir()
            for i in range(files):
                xs = range(i * rows, (i + 1) * rows)
                table = pa.table({"x": xs, "key": [x % 8 for x in xs]})
                pq.write_table(table, root / part / f"{i:05d}.parquet")
        for workload, flow, number, mode in (
            ("python", _python(root / "many"), pauses, "direct"),
            ("native", _native(root / "native"), pauses, "direct"),
            ("aligned", _python(root / "cut"), max(1, pauses // 5), "aligned"),
        ):
            samples = sampled(
                spark,
                flow,
                root / "runs",
                pauses=number,
                seed=seed,
                mode=mode,
                ready=workload != "native",
            )
            made.append(_summed(workload, samples))
        mixed = mixed_flow(root / "mixed", 120, 10_000)
        _, samples = paused_often(spark, mixed, root / "runs", gap=(0.5, 1.5), seed=seed, most=60)
        made.append(_summed("mixed, a second apart", samples))
        often, samples = paused_often(spark, mixed, root / "runs", gap=(0.1, 0.5), seed=seed)
        made.append(_summed("mixed, all the time", samples))
    return {"pauses": [asdict(one) for one in made], "often": {**asdict(often), "ratio": often.ratio}}


def main(argv: Sequence[str]) -> int:
    """Measure, print a table, and write JSON if asked to."""
    parser = argparse.ArgumentParser(
        prog="bench pauses", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--pauses", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args(argv)
    measured = measure(options.pauses, options.seed)
    made = [Latency(**one) for one in measured["pauses"]]
    often = measured["often"]
    table = Table(title="pause, ms from the call to all stopped")
    for title in ("workload", "pauses", "p50", "p95", "worst"):
        table.add_column(title, justify="left" if title == "workload" else "right")
    for one in made:
        table.add_row(
            one.workload, str(one.pauses), f"{one.median:.1f}", f"{one.p95:.1f}", f"{one.worst:.1f}"
        )
    Console().print(table)
    Console().print(
        f"paused all the time: {often['paused']:.1f} s beside {often['pauses']} pauses, alone {often['alone']:.1f} s: "
        f"{often['ratio']:.2f} times"
    )
    if options.json is not None:
        written = {"machine": machine(), **measured}
        options.json.write_text(json.dumps(written, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
