"""``scripts/bench crashes``: what a `kill -9` loses, how soon a run commits, and how soon a modification is in force.

*slow*: an operator of 20 ms a tuple over 50,000 rows in one Parquet file (about a quarter of an hour of work). Seconds
from the start to the first commit; work lost by a kill after a minute; then the run is resumed, strict modifications
come at random instants, and each is timed from the call to the answer that the new logic is in force.

*quick*: an operator of 20 microseconds a tuple. The run is killed at random instants, and resumed each time, until it
has been killed often enough; then it runs to its end, and each row must be in the result exactly once.

Lost work is the time from the last commit to the kill; before the first commit of a process, from its start.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track
from rich.table import Table

import samovar as sv
from benchmarks.pauses import Quick
from benchmarks.session import machine
from samovar.record.log import EpochCommitted, read_log
from samovar.record.store import LOG

__all__ = ["main", "measure"]

SHAPES = {"slow": (50_000, 1), "quick": (3_000_000, 12)}
"""Rows, and files they lie in."""
MINUTE = 60.0


class Slow(sv.Operator):
    """Works 20 milliseconds on a tuple."""

    output = "x bigint, n bigint"
    seen = sv.MapState()
    version = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any]]:
        time.sleep(0.020)
        self.seen[row["x"] % 97] = row["x"]
        yield {"x": row["x"], "n": self.version}


class Slower(Slow):
    """The same in another version."""

    version = 1


def _flow(name: str, folder: Path) -> sv.Workflow:
    rows, files = SHAPES[name]
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for number in range(files):
            xs = range(rows * number // files, rows * (number + 1) // files)
            pq.write_table(
                pa.table({"x": xs, "y": xs, "key": [x % 8 for x in xs]}), folder / f"{number:05d}.parquet"
            )
    flow = sv.Workflow(f"crashes-{name}")
    operator = Slow() if name == "slow" else Quick()
    flow.read.parquet(str(folder), name="numbers").apply(operator, by="key", name="W").sink("S")
    return flow


class Driver:
    """A process that runs or resumes a workflow, and says when it began."""

    def __init__(self, name: str, root: Path, *more: str) -> None:
        command = [sys.executable, "-m", "benchmarks.crashes", "--driver", name, "--root", str(root), *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.began = float(self.line()["began"])

    def line(self) -> dict[str, Any]:
        """What the process says next."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        if not text:
            raise SystemExit(f"The driver ended with {self.process.wait()}.")
        said: dict[str, Any] = json.loads(text)
        return said

    def kill(self) -> float:
        """SIGKILL for the driver, its Java and its workers; returns when that was."""
        at = time.time()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return at


def _commits(root: Path, name: str) -> list[EpochCommitted]:
    log = root / "runs" / name / LOG
    return [fact for fact in read_log(log) if isinstance(fact, EpochCommitted)] if log.exists() else []


def _lost(driver: Driver, root: Path, name: str) -> float:
    killed = driver.kill()
    return killed - max([driver.began, *(fact.at for fact in _commits(root, name))])


def slow(root: Path, modifications: int, seed: int) -> dict[str, Any]:
    """First commit, kill after a minute, strict modifications after the resume."""
    driver = Driver("slow", root)
    time.sleep(max(0.0, driver.began + MINUTE - time.time()))
    lost = _lost(driver, root, "slow")
    commits = _commits(root, "slow")
    first = commits[0].at - driver.began
    driver = Driver("slow", root, "--modify", str(modifications), "--seed", str(seed))
    try:
        said = driver.line()
    finally:
        driver.kill()
    seconds = sorted(said["seconds"])
    resumed = _commits(root, "slow")[len(commits)].at - driver.began
    return {
        "first_commit": first,
        "epochs": len(commits),
        "longest_epoch": max(fact.seconds for fact in commits),
        "lost": lost,
        "first_commit_after_resume": resumed,
        "modifications": seconds,
        "modified_p95": seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))],
        "modified_worst": seconds[-1],
        "late": said["late"],
    }


def quick(root: Path, kills: int, seed: int) -> dict[str, Any]:
    """Lost work of each kill; whether the run is complete in the end."""
    chance = random.Random(seed)
    lost = []
    for _ in track(range(kills), "kill -9", console=Console(stderr=True)):
        driver = Driver("quick", root)
        time.sleep(chance.uniform(0.5, 5.0))
        lost.append(_lost(driver, root, "quick"))
    driver = Driver("quick", root)
    complete = bool(driver.line()["complete"])
    driver.kill()
    return {"lost": lost, "worst": max(lost), "complete": complete, "epochs": len(_commits(root, "quick"))}


def measure(kills: int, modifications: int, seed: int) -> dict[str, Any]:
    """Both runs, as plain data."""
    with tempfile.TemporaryDirectory(prefix="samovar-crashes-", ignore_cleanup_errors=True) as name:
        return {"slow": slow(Path(name), modifications, seed), "quick": quick(Path(name), kills, seed)}


def _drive(name: str, root: Path, modifications: int, seed: int) -> int:
    """The process that is killed."""
    spark = sv.spark_session(master="local[2]", conf={"spark.ui.enabled": "false"})
    flow = _flow(name, root / name)
    spark.range(10).mapInArrow(lambda batches: batches, "id bigint").count()  # Spark and its workers are warm
    print(json.dumps({"began": time.time()}), flush=True)
    recording = root / "runs" / name
    if (recording / LOG).exists() and any(read_log(recording / LOG)):
        run = sv.open(recording).resume(spark, flow=flow)
    else:  # a kill may come before the first fact is written
        shutil.rmtree(recording, ignore_errors=True)
        run = flow.start(spark=spark, record=root / "runs", run_id=name)
    if modifications:
        chance, seconds, late = random.Random(seed), [], 0
        for number in range(modifications):
            run.wait_ended(chance.uniform(1.0, 4.0))
            began = time.perf_counter()
            late += run.modify({"W": Slower() if number % 2 == 0 else Slow()}, consistency="strict").late
            seconds.append(time.perf_counter() - began)
        print(json.dumps({"seconds": seconds, "late": late}), flush=True)
        run.wait_ended(600)
    xs = run.wait(progress=False).result("S").column("x").to_pylist()
    print(json.dumps({"complete": len(xs) == SHAPES[name][0] == len(set(xs))}), flush=True)
    return 0


def report(console: Console, measured: Mapping[str, Any]) -> None:
    """A table of what was asked for and what was measured."""
    one, many = measured["slow"], measured["quick"]
    table = Table(title="crashes")
    for heading in ("", "at most", "measured"):
        table.add_column(heading, justify="left" if not heading else "right")
    for what, most, value in (
        ("20 ms a tuple: first commit", "5 s", f"{one['first_commit']:.2f} s"),
        ("20 ms a tuple: work lost by a kill after 60 s", "5 s", f"{one['lost']:.2f} s"),
        ("20 ms a tuple: longest epoch", "", f"{one['longest_epoch']:.2f} s ({one['epochs']} epochs)"),
        ("20 ms a tuple: first commit after the resume", "5 s", f"{one['first_commit_after_resume']:.2f} s"),
        (
            f"strict modification in force, p95 of {len(one['modifications'])}",
            "2 s",
            f"{one['modified_p95']:.2f} s (worst {one['modified_worst']:.2f} s)",
        ),
        (f"work lost by a kill, worst of {len(many['lost'])}", "3 s", f"{many['worst']:.2f} s"),
        ("each row exactly once after all kills", "yes", "yes" if many["complete"] else "NO"),
    ):
        table.add_row(what, most, value)
    console.print(table)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write JSON if asked to."""
    parser = argparse.ArgumentParser(prog="bench crashes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--modifications", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None)
    for hidden in ("--driver", "--root"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--modify", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.driver:
        return _drive(options.driver, Path(options.root), options.modify, options.seed)
    measured = measure(options.kills, options.modifications, options.seed)
    report(Console(), measured)
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": machine(), **measured}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
