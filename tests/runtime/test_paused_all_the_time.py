"""A run on Spark that is paused and resumed again and again makes progress, and its pauses are short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.pauses import mixed_flow, paused_often

pytestmark = [pytest.mark.slow, pytest.mark.starts_spark]


def test_a_run_paused_every_fraction_of_a_second_ends_in_twice_its_time(spark: Any, tmp_path: Path) -> None:
    flow = mixed_flow(tmp_path / "in", 40, 10_000)
    flow.run(spark=spark, record=tmp_path / "warm", progress=False)
    often, _ = paused_often(spark, flow, tmp_path / "runs", gap=(0.1, 0.5), seed=1)
    assert often.complete
    assert often.pauses >= 10
    assert often.ratio <= 2.0, often


def test_pauses_about_a_second_apart_are_short(spark: Any, tmp_path: Path) -> None:
    """`scripts/bench pauses` measures them on a quiet machine; here the machine may be busy."""
    flow = mixed_flow(tmp_path / "in", 40, 10_000)
    flow.run(spark=spark, record=tmp_path / "warm", progress=False)
    often, samples = paused_often(spark, flow, tmp_path / "runs", gap=(0.5, 1.5), seed=1)
    assert often.complete
    ordered = sorted(samples)
    assert ordered[len(ordered) // 2] <= 100
    assert ordered[int(0.95 * len(ordered))] <= 500
