"""What the tests of bad input share: small inputs, and one check of what every error must be like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.errors import SamovarError

ROWS = 12


def payments(folder: Path, *, files: int = 2) -> str:
    """Twelve payments in some Parquet files; the amounts are whole, one quantity is 0, one text is no number."""
    folder.mkdir(parents=True, exist_ok=True)
    each = ROWS // files
    for f in range(files):
        ids = range(f * each, (f + 1) * each)
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "customer": [f"c{i % 3}" for i in ids],
                "amount": [float(i) for i in ids],
                "qty": pa.array([0 if i == 7 else 1 for i in ids], pa.int32()),
                "text": ["seven" if i == 7 else str(i) for i in ids],
                "items": [[1] if i == 7 else [1, 2] for i in ids],
            }
        )
        pq.write_table(table, folder / f"{f}.parquet")
    return str(folder)


def flow_of(path: str) -> tuple[sv.Workflow, sv.Frame]:
    flow = sv.Workflow("shop")
    return flow, flow.read.parquet(path, name="src")


def refused(flow: sv.Workflow, tmp_path: Path, kind: type[SamovarError], **options: Any) -> SamovarError:
    """The error with which a workflow ends; checks that it fits one screen, shows no stack, and leaves nothing half."""
    runs = tmp_path / "runs"
    with pytest.raises(kind) as caught:
        flow.run(record=runs, progress=False, **options)
    return checked(caught.value, runs)


def checked(error: SamovarError, runs: Path | None = None) -> SamovarError:
    text = str(error)
    assert len(text.splitlines()) <= 25, text
    assert len(text) < 3000, text
    for sign in ("\tat ", "org.apache", "py4j", "SQLSTATE", "JVM stacktrace", "pyspark.zip"):
        assert sign not in text, text
    if runs is not None and runs.exists():
        for run in runs.iterdir():
            past = sv.open(run)
            assert past.status == "failed"
            left = sorted(p.name for p in (run / "epochs").iterdir())
            assert len(left) == len(past.history.epochs), left
    return error
