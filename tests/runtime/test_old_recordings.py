"""Recordings of earlier layouts: what has another name today is still read."""

from __future__ import annotations

from pathlib import Path

from samovar.graph import operators as ops
from samovar.record.store import Recording
from samovar.runtime.workflow_file import read_graph


def test_key_partitions_are_read_under_their_old_name(tmp_path: Path) -> None:
    recording = Recording.create(tmp_path / "run")
    operators = [
        {"name": "v", "op": "values", "schema": "a int"},
        {"name": "p", "op": "python", "inputs": ["v"], "by": ["a"], "workers": 3},
    ]
    recording.write_json("workflow.json", {"samovar": 1, "name": "w", "operators": operators})
    read = read_graph(recording).ops["p"]
    recording.close()
    assert isinstance(read, ops.Python)
    assert read.key_partitions == 3
