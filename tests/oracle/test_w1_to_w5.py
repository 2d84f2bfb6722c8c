"""The five workflows of IcedTea's Figure 15 against hand-written PySpark jobs, at a tiny scale and two epoch sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.data import Data
from benchmarks.workflows import WORKFLOWS
from pyspark.sql import SparkSession
from tests.choice import by_default
from tests.oracle.support import ALL_AT_ONCE, assert_same, epoch_sizes, run_flow

ORDERED = {"w1", "w2", "w3"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(0.001, tmp_path_factory.mktemp("w"))


# w1 and w2 are queries of TPC-H, which test_tpch.py runs
@pytest.mark.parametrize("name", by_default(sorted(WORKFLOWS), ["w3", "w4", "w5"]))
def test_a_workflow_gives_what_the_plain_job_gives(
    name: str, spark: SparkSession, data: Data, tmp_path: Path
) -> None:
    pair = WORKFLOWS[name]
    data.ensure(pair.inputs, progress=False)
    expected = pair.plain(spark, data).toArrow()
    assert expected.num_rows
    for size in epoch_sizes(200_000, ALL_AT_ONCE):
        run = run_flow(spark, pair.samovar(data), tmp_path / "runs", epoch_bytes=size)
        assert_same(expected, run.result("S"), ordered=name in ORDERED, note=f"epochs of {size}")
