"""A process of its own that steers a run on a cluster, from pause to breakpoint; prints what it saw as JSON.

`python -m tests.e2e.cluster_control SPEC` with `master`, `conf`, `folder`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.e2e.child import die_with_parent


def main(spec: dict[str, Any]) -> int:
    """Pause, look, set a breakpoint, go on; 0 when the results are those of an undisturbed run."""
    from tests.runtime.test_control_random import rows_of, workflow

    from samovar.runtime.spark.session import spark_session

    die_with_parent()
    folder = Path(spec["folder"])
    spark = spark_session(spec["master"], spec["conf"])
    expected = rows_of(workflow(folder, 0.0).run(spark=spark, record=False, progress=False))
    run: Any = workflow(folder, 0.04).start(spark=spark, record=folder / "runs")
    while len({f.worker for f in run.figures}) < 2 and run.status == "running":
        time.sleep(0.02)
    began = time.perf_counter()
    run.pause()
    took = time.perf_counter() - began
    seen = run.inspect("A")
    flying = run.in_flight("A", limit=1)
    run.break_at("A", tuples=200)
    run.resume()
    status = run.wait_until("paused", timeout=60)
    reached = [r.note for r in run.reached]
    run.resume()
    same = rows_of(run) == expected
    said = {
        "pause_ms": round(1000 * took, 1),
        "workers": len({p.worker for p in seen.parts if p.worker}),
        "in_flight": len(flying.rows) + flying.more,
        "status": status,
        "reached": reached,
        "same": same,
    }
    sys.stdout.write(f"said {json.dumps(said)}\n")
    sys.stdout.flush()
    spark.stop()
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
