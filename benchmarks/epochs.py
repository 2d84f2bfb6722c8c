"""What one more epoch costs: W1 (native) and W5 (a Python operator) over the same rows, cut into 1 to 64 epochs.

The marginal cost is the slope of a line through (epochs, seconds), fitted by least squares over all rounds. The data
lie in so many files that every epoch has at least as many splits as the machine has cores. Runs of all lengths and the
plain job take turns in each round; the first rounds warm up and are dropped.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.data import Data, default_root
from benchmarks.equal import difference
from benchmarks.session import machine, session
from benchmarks.workflows import WORKFLOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FineData", "main", "measure", "slope"]

FILES = 128
"""Files of each table: two for each of 64 epochs."""
TARGETS = {"w1": 0.050, "w5": 0.100}
"""Seconds that one more epoch may cost."""


@dataclass(frozen=True)
class FineData(Data):
    """The data sets of a scale, rewritten into `FILES` files of equal rows; made once, beside the others."""

    def path(self, name: str) -> str:
        """The folder of the finer files."""
        return str(self.root / f"fine-{FILES}" / f"scale-{self.scale:g}" / name)

    def size(self, *names: str) -> int:
        """Bytes of the finer files."""
        return sum(file.stat().st_size for name in names for file in Path(self.path(name)).glob("*.parquet"))

    def cut(self, names: Sequence[str]) -> None:
        """Make the finer files that are missing."""
        self.ensure(names)
        for name in names:
            target = Path(self.path(name))
            if target.is_dir():
                continue
            whole = pq.read_table(Data.path(self, name))
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                for number in range(FILES):
                    first, behind = (whole.num_rows * i // FILES for i in (number, number + 1))
                    piece = whole.slice(first, behind - first)
                    pq.write_table(piece, Path(scratch) / f"part-{number:05d}.parquet")
                Path(scratch).rename(target)
                Path(scratch).mkdir()  # what the context manager removes


def slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The line through (epochs, seconds) with the least squares: seconds an epoch, and seconds of none."""
    mean_x, mean_y = (statistics.fmean(p[i] for p in points) for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    cost = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return cost, mean_y - cost * mean_x


def measure(
    spark: SparkSession, name: str, data: FineData, counts: Sequence[int], *, runs: int, warmups: int
) -> dict[str, Any]:
    """Seconds of each number of epochs and of the plain job, round by round; the results are compared."""
    pair = WORKFLOWS[name]
    data.cut(pair.inputs)
    total = data.size(*pair.inputs)
    plain: list[float] = []
    taken: dict[int, list[tuple[int, float]]] = {count: [] for count in counts}
    for number in range(1 - warmups, runs + 1):
        turns: list[int | None] = [None, *counts]
        first = number % len(turns)
        expected = None
        results = []
        for count in turns[first:] + turns[:first]:
            gc.collect()
            with tempfile.TemporaryDirectory(prefix="samovar-epochs-", ignore_cleanup_errors=True) as scratch:
                start = time.perf_counter()
                if count is None:
                    pair.plain(spark, data).write.parquet(f"{scratch}/plain")
                    seconds = time.perf_counter() - start
                    expected = pq.read_table(f"{scratch}/plain")
                    if number > 0:
                        plain.append(seconds)
                    continue
                size = total + 1 if count == 1 else -(-total // count)
                run = pair.samovar(data).run(spark=spark, record=scratch, epoch_bytes=size, progress=False)
                seconds = time.perf_counter() - start
                results.append(run.result("S"))
                if number > 0:
                    taken[count].append((run.progress.epoch, seconds))
        assert expected is not None
        for result in results:
            if problem := difference(expected, result):
                raise SystemExit(f"{name} differs from the plain job. {problem}")
    points = [(float(epochs), seconds) for rounds in taken.values() for epochs, seconds in rounds]
    cost, none = slope(points)
    return {
        "workflow": name,
        "plain": plain,
        "rounds": {str(count): rounds for count, rounds in taken.items()},
        "epoch_seconds": cost,
        "no_epoch_seconds": none,
        "target": TARGETS.get(name),
    }


def report(console: Console, measured: Sequence[dict[str, Any]], scale: float) -> None:
    """A table of medians, and the slopes."""
    table = Table(title=f"Seconds by number of epochs, scale {scale:g}")
    for heading in ("workflow", "epochs", "seconds", "against plain", "ms an epoch more than one"):
        table.add_column(heading, justify="left" if heading == "workflow" else "right")
    for one in measured:
        plain = statistics.median(one["plain"])
        table.add_row(one["workflow"], "plain job", f"{plain:.2f}", "1", "")
        alone: tuple[float, float] | None = None
        for rounds in one["rounds"].values():
            epochs = statistics.median(e for e, _ in rounds)
            seconds = statistics.median(s for _, s in rounds)
            alone = alone or (epochs, seconds)
            more = epochs - alone[0]
            each = f"{1000 * (seconds - alone[1]) / more:.0f}" if more else ""
            table.add_row("", f"{epochs:.0f}", f"{seconds:.2f}", f"{seconds / plain:.2f}", each)
    console.print(table)
    for one in measured:
        target = f" (aim: {1000 * one['target']:.0f})" if one["target"] else ""
        console.print(f"{one['workflow']}: one more epoch costs {1000 * one['epoch_seconds']:.0f} ms{target}")


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m benchmarks epochs``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks epochs", description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--scale", type=float, help="default: 1 for w1, 0.25 for w5")
    add("--workflows", default="w1,w5", help="such as w1 (default: w1,w5)")
    add("--counts", default="1,2,4,8,16,32,64", help="numbers of epochs")
    add("--runs", type=int, default=3, help="timed rounds after the warm-up (default: 3)")
    add("--warmups", type=int, default=1, help="rounds that are dropped (default: 1)")
    add("--json", type=Path, metavar="FILE", help="write every sample and the machine's description")
    add("--data", type=Path, metavar="DIR", default=default_root(), help="where data sets are cached")
    options = parser.parse_args(argv)
    counts = [int(n) for n in options.counts.split(",")]
    console = Console() if sys.stdout.isatty() else Console(width=120)
    spark = session()
    measured = []
    try:
        for name in options.workflows.split(","):
            scale = options.scale or {"w1": 1.0, "w5": 0.25}.get(name, 1.0)
            data = replace(FineData(scale), root=options.data)
            measured.append(measure(spark, name, data, counts, runs=options.runs, warmups=options.warmups))
            report(console, measured[-1:], scale)
    finally:
        spark.stop()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        document = {"benchmark": "epochs", "machine": machine(), "workflows": measured}
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0
