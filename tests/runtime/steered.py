"""Workflows for tests of steering: operators that go on when a test lets them, so that nothing depends on timing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import samovar as sv

WAIT = 60.0
"""Seconds after which a test gives up."""


class Gated(sv.Operator):
    """Counts tuples; at tuple `stop` it makes mini-steps until a file is there."""

    output = "x bigint, n bigint"
    seen = sv.MapState()

    def __init__(self, folder: str, stop: int = 5) -> None:
        self.folder = folder
        self.stop = stop
        self.n = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.n += 1
        self.seen[row["x"]] = self.n
        if row["x"] == self.stop:
            Path(self.folder, "arrived").touch()
            until = time.monotonic() + WAIT
            while not Path(self.folder, "go").exists() and time.monotonic() < until:
                time.sleep(0.002)
                yield
        yield {"x": row["x"], "n": self.n}


def numbers(folder: Path, rows: int = 20, files: int = 1, *, keys: int | None = None) -> str:
    """A folder of Parquet files with the numbers from 0 on; `keys`: and with their remainders as `k`."""
    made = folder / "in"
    made.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        xs = range(i * rows, (i + 1) * rows)
        columns = {"x": xs} if keys is None else {"x": xs, "k": [x % keys for x in xs]}
        pq.write_table(pa.table(columns), made / f"{i}.parquet")
    return str(made)


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    until = time.monotonic() + WAIT
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} did not come"
        time.sleep(0.002)
