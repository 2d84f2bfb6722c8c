"""What Samovar costs: W1 to W5 as plain PySpark batch jobs and as Samovar workflows, in one session.

Variants take turns, and each round begins with another one, so that neither a change in the machine's mood nor what
a run leaves behind (garbage, caches) always hits the same variant; the first rounds warm up and are dropped. A plain
run counts from building its DataFrame to its result written as Parquet; a Samovar run from building the workflow to the
end of ``run``. In every round the results are compared, and a difference ends the benchmark. `--uncounted` adds runs
without counters in Spark's plans, which a user cannot have: what they cost is the difference.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.data import Data, default_root
from benchmarks.equal import difference
from benchmarks.pairs import Pair
from benchmarks.session import machine, session
from benchmarks.workflows import WORKFLOWS
from samovar.record.store import Recording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Overhead", "Recorded", "Spread", "main", "measure", "recorded_bytes"]

PLAIN, RECORDED, UNRECORDED, UNCOUNTED = "plain", "recorded", "unrecorded", "uncounted"
_HEADINGS = (
    "workflow",
    "plain s",
    "recorded s",
    "ratio (IQR)",
    "unrecorded s",
    "recording (IQR)",
    "log",
    "deltas",
    "input",
)


class ResultsDiffer(Exception):
    """A Samovar run and the plain job of the same round disagree; the message says where."""


@dataclass(frozen=True)
class Spread:
    """Samples with their median and quartiles."""

    samples: tuple[float, ...]
    median: float
    q1: float
    q3: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Quartiles are those of the samples themselves (inclusive); one sample is its own quartiles."""
        if len(samples) == 1:
            return cls(tuple(samples), samples[0], samples[0], samples[0])
        q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(tuple(samples), median, q1, q3)


@dataclass(frozen=True)
class Recorded:
    """Bytes that a run left on disk."""

    log: int
    deltas: int
    results: int


@dataclass(frozen=True)
class Overhead:
    """One workflow's numbers. ``ratios`` are those of single rounds, which are neighbours in time."""

    workflow: str
    title: str
    seconds: dict[str, Spread]
    ratios: dict[str, Spread]
    recorded: Recorded | None
    input_bytes: int

    def ratio(self, variant: str, base: str) -> float:
        """The ratio of two variants' median times."""
        return self.seconds[variant].median / self.seconds[base].median

    def as_json(self) -> dict[str, Any]:
        """Everything measured, and the ratios that count, as plain data."""
        summary: dict[str, Any] = {}
        if RECORDED in self.seconds:
            extra = self.seconds[RECORDED].median - self.seconds[PLAIN].median
            summary = {
                "ratio": self.ratio(RECORDED, PLAIN),
                "ratio_unrecorded": self.ratio(UNRECORDED, PLAIN),
                "ratio_recording": self.ratio(RECORDED, UNRECORDED),
                "extra_seconds": extra,
            }
        if self.recorded is not None:
            summary["log_share_of_input"] = self.recorded.log / self.input_bytes
        return {**asdict(self), **summary}


def recorded_bytes(recording: Path) -> Recorded:
    """What a recording holds: the log, what jumps and forks start from (state, marks, rows), and the results."""
    sizes = Recording(recording).sizes()
    state = sum(sizes[kind] for kind in ("deltas", "state", "stash", "marks"))
    return Recorded(sizes["log"], state, sizes["results"])


def measure(
    spark: SparkSession,
    pair: Pair,
    data: Data,
    *,
    runs: int = 5,
    warmups: int = 2,
    plain_only: bool = False,
    uncounted: bool = False,
    tick: Callable[[str], None] = lambda _: None,
) -> Overhead:
    """``runs`` timed rounds of a pair after ``warmups`` that are dropped.

    ``tick`` hears of each run before it starts. Raises ``ResultsDiffer`` at the first difference.
    """
    variants = [PLAIN] if plain_only else [PLAIN, RECORDED, UNRECORDED, *([UNCOUNTED] if uncounted else [])]
    times: dict[str, list[float]] = {variant: [] for variant in variants}
    recorded: Recorded | None = None
    for number in range(1 - warmups, runs + 1):
        results: dict[str, pa.Table] = {}
        first = number % len(variants)
        for variant in variants[first:] + variants[:first]:
            tick(f"{pair.name} {variant}, " + (f"run {number} of {runs}" if number > 0 else "warming up"))
            gc.collect()
            with tempfile.TemporaryDirectory(prefix="samovar-bench-", ignore_cleanup_errors=True) as scratch:
                if variant == PLAIN:
                    seconds, results[variant] = _time_plain(spark, pair, data, Path(scratch) / "result")
                else:
                    record = Path(scratch) if variant in (RECORDED, UNCOUNTED) else None
                    with _without_counters() if variant == UNCOUNTED else nullcontext():
                        seconds, results[variant], left = _time_samovar(spark, pair, data, record)
                    recorded = recorded if left is None or variant == UNCOUNTED else left
            if number > 0:
                times[variant].append(seconds)
        for variant in variants[1:]:
            problem = difference(results[PLAIN], results[variant])
            if problem:
                raise ResultsDiffer(f"{pair.name} ({variant}) differs from the plain job. {problem}")
    ratios = {
        f"{variant}/{base}": Spread.of([a / b for a, b in zip(times[variant], times[base], strict=True)])
        for variant, base in (
            (RECORDED, PLAIN),
            (UNRECORDED, PLAIN),
            (RECORDED, UNRECORDED),
            (UNCOUNTED, PLAIN),
        )
        if variant in times
    }
    seconds_by = {variant: Spread.of(samples) for variant, samples in times.items()}
    return Overhead(pair.name, pair.title, seconds_by, ratios, recorded, data.size(*pair.inputs))


def _time_plain(spark: SparkSession, pair: Pair, data: Data, target: Path) -> tuple[float, pa.Table]:
    start = time.perf_counter()
    pair.plain(spark, data).write.parquet(str(target))
    seconds = time.perf_counter() - start
    return seconds, pq.read_table(target)


def _time_samovar(
    spark: SparkSession, pair: Pair, data: Data, record: Path | None
) -> tuple[float, pa.Table, Recorded | None]:
    start = time.perf_counter()
    run = pair.samovar(data).run(spark=spark, record=str(record) if record else False, progress=False)
    seconds = time.perf_counter() - start
    left = recorded_bytes(Path(run.recording)) if run.recording else None
    return seconds, run.result("S"), left


@contextmanager
def _without_counters() -> Iterator[None]:
    """Runs in this block add no counter to Spark's plans, and make no job of its own to count."""
    with (
        patch("samovar.runtime.epochs.row_counts.needs_counter", return_value=False),
        patch("samovar.runtime.epochs.row_counts.tallying", return_value=frozenset()),
    ):
        yield


def report(console: Console, overheads: Sequence[Overhead], scale: float) -> None:
    """A table: median seconds, median ratios with the quartiles of single rounds, and sizes."""
    table = Table(title=f"Samovar against plain PySpark, scale {scale:g}")
    uncounted = any(UNCOUNTED in overhead.seconds for overhead in overheads)
    for heading in (*_HEADINGS, *(["without counters s"] if uncounted else [])):
        table.add_column(heading, justify="left" if heading == "workflow" else "right")
    for overhead in overheads:
        table.add_row(
            f"{overhead.workflow} {overhead.title}",
            _seconds(overhead, PLAIN),
            _seconds(overhead, RECORDED),
            _ratio(overhead, RECORDED, PLAIN),
            _seconds(overhead, UNRECORDED),
            _ratio(overhead, RECORDED, UNRECORDED),
            _bytes(overhead.recorded.log) if overhead.recorded else "-",
            _bytes(overhead.recorded.deltas) if overhead.recorded else "-",
            _bytes(overhead.input_bytes),
            *([_seconds(overhead, UNCOUNTED)] if uncounted else []),
        )
    console.print(table)


def _seconds(overhead: Overhead, variant: str) -> str:
    spread = overhead.seconds.get(variant)
    return f"{spread.median:.2f} ±{(spread.q3 - spread.q1) / 2:.2f}" if spread else "-"


def _ratio(overhead: Overhead, variant: str, base: str) -> str:
    spread = overhead.ratios.get(f"{variant}/{base}")
    return f"{overhead.ratio(variant, base):.3f} ({spread.q1:.3f}-{spread.q3:.3f})" if spread else "-"


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m benchmarks overhead``; exits with 1 when results differ."""
    options = _parser().parse_args(argv)
    errors = Console(stderr=True)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    data = Data(options.scale, options.data)
    pairs = options.workflows
    data.ensure(name for pair in pairs for name in pair.inputs)
    spark = session(master=options.master, memory=options.memory)
    overheads: list[Overhead] = []
    try:
        with errors.status("starting") as status:
            counts = {"runs": options.runs, "warmups": options.warmups, "uncounted": options.uncounted}
            for pair in pairs:
                measured = measure(
                    spark, pair, data, **counts, plain_only=options.plain_only, tick=status.update
                )
                overheads.append(measured)
    except ResultsDiffer as problem:
        errors.print(f"[red]{problem}[/red]")
        return 1
    finally:
        spark.stop()
        if overheads:
            report(console, overheads, options.scale)
        if options.json and overheads:
            _write_json(options.json, overheads, options)
    return 0


def _write_json(target: Path, overheads: Sequence[Overhead], options: argparse.Namespace) -> None:
    document = {
        "benchmark": "overhead",
        "machine": machine(),
        "master": options.master,
        "scale": options.scale,
        "runs": options.runs,
        "workflows": [overhead.as_json() for overhead in overheads],
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(target.name + ".tmp")
    scratch.write_text(json.dumps(document, indent=2) + "\n")
    shutil.move(scratch, target)


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks overhead", description=summary)
    add = parser.add_argument
    add("--scale", type=float, default=1.0, help="1 is TPC-H SF1, 1 M tweets, 945 K reviews (default: 1)")
    add("--workflows", type=_pairs, default=",".join(WORKFLOWS), help="such as w1,w3 (default: all)")
    add("--runs", type=_positive, default=5, help="timed rounds after the warm-up (default: 5)")
    add("--warmups", type=_positive, default=2, help="rounds that are dropped (default: 2)")
    add("--json", type=Path, metavar="FILE", help="write every sample and the machine's description")
    add("--data", type=Path, metavar="DIR", default=default_root(), help="where data sets are cached")
    add("--master", default="local[*]", help="Spark master (default: local[*])")
    add("--memory", default="4g", help="the driver's memory (default: 4g)")
    add("--uncounted", action="store_true", help="also runs without counters, to see what they cost")
    add("--plain-only", action="store_true", help="time the plain jobs alone")
    return parser


def _pairs(names: str) -> list[Pair]:
    chosen = [name.strip().lower() for name in names.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in WORKFLOWS]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(WORKFLOWS)}, got {names!r}")
    return [WORKFLOWS[name] for name in chosen]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return int(text)
