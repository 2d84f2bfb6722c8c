"""A workflow with one of everything, and its input: what the tests that kill processes run.

`payments` makes the input, `build` the workflow, `everything` what is compared between two runs of it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import samovar as sv

__all__ = ["Enrich", "Gate", "Rank", "build", "everything", "file_bytes", "payments"]


class Enrich(sv.Operator):
    """One instance, in source order: each payment with the customer's highest so far and its place in the stream."""

    output = "id bigint, customer string, amount double, highest double, place bigint"
    highest = sv.MapState()  # type: ignore[var-annotated]
    count = sv.ValueState(0)  # type: ignore[var-annotated]

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        best = max(row["amount"], self.highest.get(row["customer"], 0.0))
        self.highest[row["customer"]] = best
        self.count += 1
        yield {**row, "highest": best, "place": self.count}


class Rank(sv.Operator):
    """By customer: the how-manieth payment this is, and at the end how many there were."""

    output = "id bigint, customer string, amount double, highest double, place bigint, nth bigint"
    seen = sv.MapState()  # type: ignore[var-annotated]

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.seen[row["customer"]] = nth = self.seen.get(row["customer"], 0) + 1
        yield {**row, "nth": nth}

    def finish(self, port: int = 0) -> Iterator[dict[str, Any]]:
        """One row a customer."""
        for customer, count in self.seen.items():
            yield {"id": -1, "customer": customer, "amount": 0.0, "highest": 1e6, "place": 0, "nth": count}


class Gate(sv.Operator):
    """Passes rows on. Writes its process id to `<name>.pid`; at the row with id `at`, waits until `passed` is there.

    With the files `passed` in place it waits for nothing: that is the undisturbed run.
    """

    output = Enrich.output

    def __init__(self, folder: str, name: str, at: int = -1) -> None:
        self.folder = folder
        self.name = name
        self.at = at

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        passed = os.path.join(self.folder, "passed")
        if not os.path.exists(passed):
            mark = os.path.join(self.folder, f"{self.name}.pid")
            if not os.path.exists(mark) or Path(mark).read_text() != str(os.getpid()):
                temporary = f"{mark}.{os.getpid()}"
                Path(temporary).write_text(str(os.getpid()))
                os.replace(temporary, mark)
            if row["id"] == self.at:
                with open(os.path.join(self.folder, f"{self.name}.waits"), "w") as file:
                    file.write(str(os.getpid()))
                while not os.path.exists(passed):
                    time.sleep(0.01)
        yield dict(row)


def payments(folder: Path, *, files: int = 10, rows: int = 300, seed: int = 7) -> Path:
    """Parquet files of made-up payments; returns the folder."""
    made = random.Random(seed)
    folder.mkdir(parents=True)
    for file in range(files):
        table = pa.table(
            {
                "id": list(range(file * rows, (file + 1) * rows)),
                "customer": [f"c{made.randrange(20)}" for _ in range(rows)],
                "amount": [round(made.uniform(1, 1000), 2) for _ in range(rows)],
            }
        )
        pq.write_table(table, folder / f"{file:03d}.parquet")
    return folder


def build(source: Path, target: Path | None = None, *, gates: Path | None = None, at: int = 0) -> sv.Workflow:
    """Source, Python operator with state, keyed Python operator, filter; then an aggregate, a sink and a target.

    With `gates`, the run waits in mid-epoch, at the payment numbered `at`, between the two Python operators.
    """
    flow = sv.Workflow("payments")
    paid = flow.read.parquet(str(source), name="paid")
    # two filters in a row: what the first gives is counted inside Spark's plan, before a shuffle
    some = paid.filter("amount > 3", name="some").filter("amount < 998", name="most")
    rich = some.apply(Enrich(), name="enrich")
    if gates is not None:
        rich = rich.apply(Gate(str(gates), "first"), name="first")
        rich = rich.apply(Gate(str(gates), "second", at), by="customer", name="second")
    ranked = rich.apply(Rank(), by="customer", name="rank")
    kept = ranked.filter("highest > 500", name="kept")
    by = kept.groupBy("customer").agg("count(1) AS n", "sum(place) AS places", "max(nth) AS nth", name="by")
    by.sink("S")
    kept.filter("nth % 3 = 0", name="third").sink("T")
    if target is not None:
        kept.select("id", "customer", "nth", name="short").write.parquet(str(target), name="W")
    return flow


def everything(past: sv.Past, target: Path | None = None) -> dict[str, Any]:
    """What two runs over the same input must have in common: results, counters of each epoch, published rows."""
    history = past.history
    made: dict[str, Any] = {
        "status": past.status,
        "S": sorted(map(repr, past.result("S").to_pylist())),
        "T": sorted(map(repr, past.result("T").to_pylist())),
        "epochs": [e.epoch for e in history.epochs],
        "units": [e.units for e in history.epochs],
        "counters": [e.counters for e in history.epochs],
        "totals": history.totals(),
    }
    if target is not None:
        files = sorted(target.rglob("*.parquet"))
        made["files"] = len(files)
        made["W"] = sorted(map(repr, pa.concat_tables(pq.read_table(f) for f in files).to_pylist()))
    return made


def file_bytes(source: Path) -> int:
    """The bytes of a file of the input: epochs of that size take a file each."""
    return max(file.stat().st_size for file in source.iterdir())
