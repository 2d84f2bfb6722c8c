"""Nothing but counters and small deltas passes through the driver: its memory does not grow with the input."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.memory import measure
from tests.e2e.cluster import Cluster

PYTHON_MB = 40
"""How much more the driver's Python process may grow on ten times the input, which is ten times the epochs."""
JAVA_MB = 80
"""The same for what the driver's Java heap holds after a collection."""


@pytest.mark.slow
def test_driver_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        small = measure(cluster.master, cluster.conf, 0.1, tmp_path)
        large = measure(cluster.master, cluster.conf, 1.0, tmp_path)
    assert large.rows == 10 * small.rows
    assert large.epochs > 5 * small.epochs
    assert large.python_growth_mb - small.python_growth_mb < PYTHON_MB, (small, large)
    assert large.heap_mb - small.heap_mb < JAVA_MB, (small, large)
