"""Memory of a monitor over a long time."""

from __future__ import annotations

import os
from typing import Any

import pytest

MINUTES = float(os.environ.get("SAMOVAR_SOAK_MINUTES", "30"))
"""How long to watch: SAMOVAR_SOAK_MINUTES=2 for a first impression."""


@pytest.mark.slow
@pytest.mark.timeout(MINUTES * 60 + 300)
def test_the_memory_of_a_monitor_stays_flat(spark: Any) -> None:
    from benchmarks.monitor import soak

    found = soak(spark, MINUTES)
    assert found["status"] == "stopped"  # by us: no difference, no failure
    assert found["matched"] > MINUTES * 100_000
    assert found["growth"]["driver"] < 20, found["growth"]
    assert len(found["memory"]["heap"]) >= 15
    # Spark itself keeps its last thousand jobs: some tens of MiB, until they are that many
    assert found["growth"]["heap"] < 64, found["memory"]["heap"]
    assert max(found["unmatched"]) < 500_000
