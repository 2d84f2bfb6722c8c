"""Texera's three workflows against hand-written PySpark jobs, at a tiny scale and two epoch sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.data import Data
from benchmarks.texera import TEXERA
from pyspark.sql import SparkSession
from tests.oracle.support import ALL_AT_ONCE, assert_same, epoch_sizes, run_flow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(0.004, tmp_path_factory.mktemp("texera"))


@pytest.mark.parametrize("name", sorted(TEXERA))
def test_a_workflow_gives_what_the_plain_job_gives(
    name: str, spark: SparkSession, data: Data, tmp_path: Path
) -> None:
    pair = TEXERA[name]
    data.ensure(pair.inputs, progress=False)
    expected = pair.plain(spark, data).toArrow()
    assert expected.num_rows
    for size in epoch_sizes(150_000, ALL_AT_ONCE):
        run = run_flow(spark, pair.samovar(data), tmp_path / "runs", epoch_bytes=size)
        assert_same(expected, run.result("S"), ordered=False, note=f"epochs of {size}")
