"""``scripts/bench memory``: the driver's memory does not grow with the input.

A workflow with a keyed Python operator, a filter, an aggregate and a large result runs on a loopback cluster, so that
the driver's Java process is apart from the executors'. For each scale a fresh driver process reports how much its
Python process grew at its peak over the size before the run, and the most its Java heap held after a collection.
Scale 1 is 1 M payments (14 MB of Parquet); epochs have the same size at every scale.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

__all__ = ["Measured", "main", "measure"]

_ROOT = Path(__file__).resolve().parent.parent
_ROWS_AT_SCALE_1 = 1_000_000
_FILE_ROWS = 20_000
_EPOCH_FILES = 5


@dataclass(frozen=True)
class Measured:
    """What one driver needed. MB are 10^6 bytes."""

    scale: float
    rows: int
    input_mb: float
    epochs: int
    seconds: float
    python_base_mb: float
    python_growth_mb: float
    heap_mb: float
    """The most that the driver's Java heap held right after a collection."""
    java_rss_mb: float


def measure(master: str, conf: Mapping[str, str], scale: float, folder: Path) -> Measured:
    """Run the workflow at a scale in a process of its own."""
    source = _payments(folder / f"in-{scale:g}", max(_FILE_ROWS, int(_ROWS_AT_SCALE_1 * scale)))
    collections = folder / f"gc-{scale:g}.log"
    settings = {
        **conf,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": f"-Xlog:gc:file={collections}",
    }
    spec = {"master": master, "conf": settings, "source": str(source), "folder": str(folder), "scale": scale}
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", "--child", json.dumps(spec)],
        env=environ,
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    after = [int(m.group(1)) for m in re.finditer(r"\d+M->(\d+)M\(", collections.read_text())]
    size = sum(f.stat().st_size for f in source.iterdir())
    return Measured(
        scale=scale, input_mb=round(size / 1e6, 1), heap_mb=max(after, default=0) * 1.048576, **told
    )


def _payments(folder: Path, rows: int) -> Path:
    random = np.random.default_rng(11)
    folder.mkdir(parents=True)
    for number in range(rows // _FILE_ROWS):
        table = pa.table(
            {
                "id": np.arange(number * _FILE_ROWS, (number + 1) * _FILE_ROWS),
                "customer": [f"c{c}" for c in random.integers(0, 2000, _FILE_ROWS)],
                "amount": random.uniform(1, 1000, _FILE_ROWS).round(2),
            }
        )
        pq.write_table(table, folder / f"{number:05d}.parquet")
    return folder


def _child(spec: dict[str, Any]) -> dict[str, Any]:
    import samovar as sv
    from samovar.runtime.spark.session import spark_session

    class Highest(sv.Operator):
        output = "id bigint, customer string, amount double, highest double"
        highest: Any = sv.MapState()

        def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
            best = max(row["amount"], self.highest.get(row["customer"], 0.0))
            self.highest[row["customer"]] = best
            yield {**row, "highest": best}

    spark = spark_session(spec["master"], spec["conf"])
    folder = Path(spec["folder"])
    flow = sv.Workflow("memory")
    paid = flow.read.parquet(spec["source"], name="paid")
    kept = paid.apply(Highest(), by="customer", name="highest").filter("amount > 10", name="kept")
    kept.groupBy("customer").agg("count(1) AS n", "sum(amount) AS total", name="by").sink("S")
    kept.sink("T")
    size = sum(f.stat().st_size for f in sorted(Path(spec["source"]).iterdir())[:_EPOCH_FILES])
    spark.range(10).count()
    base = psutil.Process().memory_info().rss
    started = time.perf_counter()
    run = flow.start(spark=spark, record=folder / "runs", run_id=f"scale-{spec['scale']:g}", epoch_bytes=size)
    run.wait(progress=False)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    java = next(p for p in psutil.Process().children(recursive=True) if "java" in p.name())
    history = sv.open(folder / "runs" / run.id).history
    told = {
        "rows": history.totals()["paid"].given,
        "epochs": len(history.epochs),
        "seconds": round(seconds, 2),
        "python_base_mb": round(base / 1e6, 1),
        "python_growth_mb": round(max(0, peak - base) / 1e6, 1),
        "java_rss_mb": round(java.memory_info().rss / 1e6, 1),
    }
    spark.stop()
    return told


def main(argv: Sequence[str]) -> int:
    """Measure the scales one after the other, print a table, write JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench memory", description=__doc__)
    parser.add_argument("--scales", default="0.1,1", help="scales, by commas (1: a million payments)")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        print(json.dumps(_child(json.loads(options.child))))
        return 0
    from tests.e2e.cluster import Cluster

    from benchmarks.session import machine

    with tempfile.TemporaryDirectory(prefix="samovar-bench-") as name:
        folder = Path(name)
        with Cluster(folder / "cluster") as cluster:
            found = [
                measure(cluster.master, cluster.conf, float(s), folder) for s in options.scales.split(",")
            ]
    table = Table(title="Memory of the driver (MB)")
    for column in (
        "scale",
        "rows",
        "input",
        "epochs",
        "s",
        "Python before",
        "Python growth",
        "Java heap",
        "Java RSS",
    ):
        table.add_column(column, justify="right")
    for m in found:
        table.add_row(
            f"{m.scale:g}",
            f"{m.rows:,}",
            f"{m.input_mb:.1f}",
            str(m.epochs),
            f"{m.seconds:.1f}",
            f"{m.python_base_mb:.0f}",
            f"{m.python_growth_mb:.1f}",
            f"{m.heap_mb:.0f}",
            f"{m.java_rss_mb:.0f}",
        )
    Console().print(table)
    if options.json:
        report = {"benchmark": "memory", "machine": machine(), "results": [asdict(m) for m in found]}
        Path(options.json).write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
