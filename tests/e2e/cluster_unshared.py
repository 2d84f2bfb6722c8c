"""A process of its own on a cluster of which some workers see other folders: what becomes of each run, as JSON lines.

`python -m tests.e2e.cluster_unshared SPEC` with `master`, `conf`, `temp` and `cache` (the driver's folders for
temporary files and chunks) and `cases`, a list of {"name", "kind", "source" (a folder of `flows.payments`), "record" (a
folder or false), "epoch_bytes", "large" (the size from which on files are cut into chunks)}. Kinds: "python" (a keyed
operator), "raises" (one that raises on a customer's payment), "native" (a filter and an aggregate), "csv" (a filter
alone), "values" (rows in the workflow) and "trial". Each line says how the run ended: `status` and `rows`, or `error`
(a class) and `text`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.e2e.child import die_with_parent

import samovar as sv


class Nth(sv.Operator):
    """By customer: the how-manieth payment this is. Raises on some customer's.

    With a folder as `gate`, it says there that it waits, and goes on when `passed` is there.
    """

    output = "id bigint, customer string, nth bigint"
    seen: Any = sv.MapState()

    def __init__(self, wrong: str = "", gate: str = "") -> None:
        self.wrong = wrong
        self.gate = gate

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        if self.gate:
            Path(self.gate, "waits").touch()
            while not Path(self.gate, "passed").exists():
                time.sleep(0.02)
        if row["customer"] == self.wrong:
            raise ValueError(f"no payments of {self.wrong}, please")
        self.seen[row["customer"]] = nth = self.seen.get(row["customer"], 0) + 1
        yield {"id": row["id"], "customer": row["customer"], "nth": nth}


def flow_of(kind: str, source: Path, gate: str = "") -> sv.Workflow:
    """A workflow of some kind."""
    flow = sv.Workflow(kind)
    if kind == "values":
        flow.values("i bigint", [(i,) for i in range(100)], name="src").sink("S")
    elif kind == "csv":
        flow.read.csv(str(source), header=True, name="src").filter("id >= 0", name="F").sink("S")
    elif kind == "native":
        rows = flow.read.parquet(str(source), name="src").filter("amount > 3", name="F")
        rows.groupBy("customer").agg("count(1) AS n", name="A").sink("S")
    else:
        operator = Nth("c7" if kind == "raises" else "", gate)
        flow.read.parquet(str(source), name="src").apply(operator, by="customer", name="nth").sink("S")
    return flow


def _outcome(spark: Any, spec: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    from samovar.runtime.trial import try_operator

    os.environ.pop("SAMOVAR_LARGE_FILE", None)
    if "large" in case:
        os.environ["SAMOVAR_LARGE_FILE"] = str(case["large"])
    flow = flow_of(case["kind"], Path(case["source"]), case.get("gate", ""))
    committed: list[int] = []
    try:
        if case["kind"] == "trial":
            trial = try_operator(flow, "nth", spark=spark)
            if trial.error is not None:
                raise trial.error
            return {"status": "tried", "rows": trial.result.num_rows if trial.result is not None else None}
        record = case["record"] and Path(case["record"])
        run = flow.start(
            spark=spark,
            record=record,
            run_id=case["name"],
            epoch_bytes=case.get("epoch_bytes"),
            interactive=False,
        )
        run.on_progress(lambda p: committed.append(p.epoch))
        run.wait(200, progress=False)
        return {"status": run.status, "rows": run.result("S").num_rows, "epochs": len(committed)}
    except sv.SamovarError as error:
        return {"error": type(error).__name__, "text": str(error), "epochs": len(committed)}


def main(spec: dict[str, Any]) -> int:
    """Run all cases, one after the other, in one session."""
    from samovar.runtime.spark.session import spark_session

    die_with_parent()
    logging.basicConfig(level=logging.WARNING)
    tempfile.tempdir, os.environ["SAMOVAR_CACHE"] = spec["temp"], spec["cache"]
    spark = spark_session(spec["master"], spec["conf"])
    for case in spec["cases"]:
        said = _outcome(spark, spec, case)
        sys.stdout.write(f"outcome {json.dumps({'name': case['name'], **said})}\n")
        sys.stdout.flush()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
