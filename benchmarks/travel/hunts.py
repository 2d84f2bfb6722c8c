"""Five bug hunts (after IcedTea's Table 3): from a wrong result or a failed run to the tuple that caused it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import samovar as sv
from benchmarks.travel.setting import Row, Setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HUNTS", "hunted", "hunts"]

TUPLES = 1_000_000
FILES = 16


@dataclass(frozen=True)
class Hunt:
    """A bug: at which share of the run it strikes, and whether it poisons the state or raises."""

    name: str
    share: float
    raises: bool

    def at(self, tuples: int) -> int:
        """The tuple that is to be found."""
        return int(tuples * self.share)


HUNTS = (
    Hunt("q1", 0.16, False),
    Hunt("q2", 0.38, False),
    Hunt("q3", 0.02, False),
    Hunt("q4", 0.18, True),
    Hunt("q5", 0.73, True),
)


class Balance:
    """The program under suspicion: balances by account, and a warning for overdrawn ones."""

    def __init__(self) -> None:
        self.balances: dict[str, float] = {}

    def step(self, account: str, amount: float | None) -> float:
        """Book an amount."""
        balance = self.balances.get(account, 0.0) + amount  # type: ignore[operator]
        self.balances[account] = balance
        return balance


class Booking(sv.Operator):
    """The same as an operator."""

    output = "id bigint, account string, balance double"
    balances = sv.MapState()

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """Book one amount."""
        balance = self.balances.get(row["account"], 0.0) + row["amount"]
        self.balances[row["account"]] = balance
        yield {"id": row["id"], "account": row["account"], "balance": balance}


def hunts(setting: Setting) -> list[Row]:
    """Seconds from the end of the run to the offending tuple, against a rerun of the plain job with a print."""
    return [setting.told(hunted(setting, hunt, TUPLES)) for hunt in HUNTS]


def hunted(setting: Setting, hunt: Hunt, tuples: int) -> Row:
    """One hunt, in a run of so many tuples."""
    setting.tick(f"hunt {hunt.name}")
    folder = setting.scratch / hunt.name
    _payments(folder, hunt, tuples)
    flow = sv.Workflow(hunt.name)
    booked = flow.read.parquet(str(folder), name="payments").apply(Booking(), name="booking")
    booked.groupBy("account").agg("count(1) AS payments", "max(balance) AS most", name="accounts").sink("S")
    start = time.perf_counter()
    run = flow.start(spark=setting.spark, record=setting.scratch / f"runs-{hunt.name}")
    try:
        run.wait(progress=False)
    except sv.SamovarError:
        assert hunt.raises
    ran = time.perf_counter() - start
    start = time.perf_counter()
    past = setting.open(run)
    if hunt.raises:
        moment = past.failure()
        found = moment.pending("booking")[0].row["id"]
    else:
        odd = max(past.result("S").to_pylist(), key=lambda row: row["most"])["account"]
        moment = past.first("booking", f"balances.get({odd!r}, 0.0) > 1e9")
        found = moment.last.row["id"]
    seconds = time.perf_counter() - start
    assert found == hunt.at(tuples), (found, hunt.at(tuples))
    past.close()
    return {
        "hunt": hunt.name,
        "bug": "raises" if hunt.raises else "poisons state",
        "at": f"{hunt.share:.0%}",
        "run s": ran,
        "found in s": seconds,
        "rerun with a print s": _rerun(setting.spark, folder, hunt),
        "found": f"tuple {found:,}",
    }


def _payments(folder: Path, hunt: Hunt, tuples: int) -> None:
    folder.mkdir(parents=True)
    chance = np.random.default_rng(7)
    amounts = chance.gamma(2.0, 50.0, tuples)
    accounts = [f"A{n:04d}" for n in range(2000)]
    chosen = chance.integers(0, len(accounts), tuples)
    at = hunt.at(tuples)
    table = pa.table(
        {
            "id": np.arange(tuples),
            "account": pa.array(accounts).take(pa.array(chosen)),
            "amount": pa.array([None if hunt.raises and i == at else a for i, a in enumerate(amounts)]),
        }
    )
    if not hunt.raises:
        amounts[at] = 1e12
        table = table.set_column(2, "amount", pa.array(amounts))
    size = tuples // FILES
    for i in range(FILES):
        pq.write_table(table.slice(i * size, size), folder / f"{i:05d}.parquet")


def _rerun(spark: SparkSession, folder: Path, hunt: Hunt) -> float:
    """The plain job once more with a print at what looks odd, as one would without Samovar."""

    def book(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model = Balance()
        for batch in batches:
            rows = batch.to_pylist()
            made = []
            for row in rows:
                if row["amount"] is None or row["amount"] > 1e9:
                    print("odd:", row)
                    row["amount"] = 0.0
                made.append(model.step(row["account"], row["amount"]))
            yield pa.RecordBatch.from_arrays(
                [batch.column("account"), pa.array(made)], ["account", "balance"]
            )

    start = time.perf_counter()
    df = spark.read.parquet(str(folder)).repartition(1).sortWithinPartitions("id")
    df.mapInArrow(book, "account string, balance double").groupBy("account").max("balance").toArrow()
    return time.perf_counter() - start
