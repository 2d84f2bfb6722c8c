"""The order of arrival, for operators that take their tuples in that order: logged once, followed by every replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from samovar.files import new_file
from samovar.ids import CONTROL, HIDDEN
from samovar.runtime.exchange.partition import partition_number

__all__ = ["in_arrival_order"]


def in_arrival_order(folder: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Log the order in which rows arrived; a task run again in the same attempt takes them in the logged order."""
    log = Path(folder) / f"arrival-{partition_number()}.arrow"
    if log.exists():
        rows = list(batches)
        if not rows:
            return
        table = pa.Table.from_batches(rows)
        with pa.OSFile(str(log)) as file:
            logged = pa.ipc.open_file(file).read_all()
        arrived = {tuple(r.values()): i for i, r in enumerate(logged.to_pylist())}
        keys = zip(*(table.column(n).to_pylist() for n in logged.schema.names), strict=True)
        places = [arrived[key] for key in keys]
        order = sorted(range(len(places)), key=places.__getitem__)
        yield from table.take(order).to_batches()
        return
    seen: list[pa.RecordBatch] = []
    for batch in batches:
        names = [
            n
            for n in batch.schema.names
            if n.startswith(HIDDEN) and n != CONTROL and not n.startswith("__sv_v")
        ]
        seen.append(batch.select(names))
        yield batch
    if seen:
        with new_file(log) as path, pa.ipc.new_file(str(path), seen[-1].schema) as writer:
            for part in seen:
                writer.write_batch(part)
