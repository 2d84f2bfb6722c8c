"""A process of its own on a cluster: W1 to W5 and TPC-H queries at a tiny scale, each against its plain job.

`python -m tests.e2e.cluster_suite SPEC` with `master`, `conf`, `data` (a folder), `record`, `names`; prints a line a
workflow: its name, then `equal` or what differs, and how many epochs were done again.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from tests.e2e.child import die_with_parent


def main(spec: dict[str, Any]) -> int:
    """Run all the workflows named; 1 when one differs."""
    from benchmarks.data import Data
    from benchmarks.equal import difference
    from benchmarks.tpch import QUERIES
    from benchmarks.workflows import WORKFLOWS

    import samovar as sv
    from samovar.runtime.spark.session import spark_session

    die_with_parent()
    logging.basicConfig(level=logging.WARNING)
    spark = spark_session(spec["master"], spec["conf"])
    data = Data(0.001, root=Path(spec["data"]))
    pairs = {**QUERIES, **WORKFLOWS}
    failed = 0
    for name in spec["names"]:
        pair = pairs[name]
        run = pair.samovar(data).start(
            spark=spark, record=spec["record"], run_id=name, epoch_bytes=spec["epoch_bytes"]
        )
        got = run.wait(progress=False).result("S")
        found = difference(pair.plain(spark, data).toArrow(), got)
        epochs = len(sv.open(Path(spec["record"]) / name).history.epochs)
        failed += found is not None
        sys.stdout.write(f"{name} {found or 'equal'} in {epochs} epochs\n")
        sys.stdout.flush()
    spark.stop()
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
