"""Python operators for oracle tests: small, stateful, and sensitive to the order of their input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import samovar as sv

__all__ = ["CountedBatches", "Echo", "Mapped", "Order", "Ports", "RunningByKey", "Totals", "Twice"]

Row = dict[str, Any]


class Order(sv.Operator):
    """Numbers the rows it sees: its output tells their order."""

    output = "tag string, seq int"
    seen = sv.ValueState(0)

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        self.seen += 1  # type: ignore[operator, assignment]
        yield None
        yield {"tag": str(row["tag"]), "seq": self.seen}


class Totals(sv.Operator):
    """Passes rows on with a running sum, and gives the total at the end."""

    output = "tag string, total bigint"

    def __init__(self) -> None:
        self.total = 0
        self.rows: list[str] = []

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        self.total += row["n"] or 0
        self.rows.append(str(row["tag"]))
        yield {"tag": str(row["tag"]), "total": self.total}

    def finish(self, port: int = 0) -> Iterator[Row]:
        yield {"tag": f"end of {len(self.rows)}", "total": self.total}


class RunningByKey(sv.Operator):
    """For each key, how many rows came and their running sum; at the end how many rows this instance saw."""

    output = "k int, tag string, nth int, total bigint"
    counts = sv.MapState()
    sums = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        k = row["k"]
        self.counts[k] = self.counts.get(k, 0) + 1
        self.sums[k] = self.sums.get(k, 0) + (row["n"] or 0)
        yield {"k": k, "tag": str(row["tag"]), "nth": self.counts[k], "total": self.sums[k]}

    def finish(self, port: int = 0) -> Iterator[Row]:
        yield {"k": -1, "tag": "end", "nth": sum(self.counts.values()), "total": 0}


class Twice(sv.Operator):
    """Stateless: each row none, one or two times."""

    output = "tag string, n bigint"
    stateless = True

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        for i in range((row["n"] or 0) % 3):
            yield {"tag": f"{row['tag']}.{i}", "n": (row["n"] or 0) + i}


class Ports(sv.Operator):
    """Says which port each row came by, in order."""

    output = "tag string, port int, seq int"
    log = sv.ListState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.log.append(port)
        yield {"tag": str(row["tag"]), "port": port, "seq": len(self.log)}

    def finish(self, port: int = 0) -> Iterator[Row]:
        yield {"tag": f"end {port}", "port": port, "seq": sum(1 for p in self.log if p == port)}


class Mapped(sv.Operator):
    """Takes and gives maps, structs, arrays, decimals and instants."""

    output = "tag string, m map<string,int>, s struct<a:int,b:array<double>>, d decimal(10,2), t timestamp, day date"

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        m = None if row["m"] is None else {**row["m"], "new": len(row["m"])}
        yield {**row, "m": m}


class Echo(sv.Operator):
    """Gives each row back; counts on a plain attribute."""

    output = "tag string, n bigint"

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.count += 1
        yield {"tag": str(row["tag"]), "n": row["n"]}


class CountedBatches(sv.Operator):
    """The batch form: passes batches on and gives the number of rows at the end."""

    output = "tag string, n bigint"
    rows = sv.ValueState(0)

    def process_batch(self, batch: Any, port: int = 0) -> Iterator[Any]:
        self.rows += batch.num_rows  # type: ignore[operator, assignment]
        yield batch.select(["tag", "n"])

    def finish(self, port: int = 0) -> Iterator[Row]:
        yield {"tag": "rows", "n": self.rows}
