"""TPC-H queries written with Frame methods against plain PySpark, at a tiny scale, with users' settings of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.data import Data
from benchmarks.tpch import QUERIES
from pyspark.sql import SparkSession
from tests.choice import by_default
from tests.oracle.support import ALL_AT_ONCE, assert_same, epoch_sizes, run_flow

pytestmark = pytest.mark.usefixtures("users_settings")

ORDERED = {"q1", "q3", "q4", "q10", "q12"}


BY_DEFAULT = ["q1", "q4", "q6", "q10", "q14"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(0.005, tmp_path_factory.mktemp("tpch"))


@pytest.mark.parametrize("name", by_default(sorted(QUERIES, key=lambda q: int(q[1:])), BY_DEFAULT))
def test_a_query_gives_what_plain_spark_gives(
    name: str, spark: SparkSession, data: Data, tmp_path: Path
) -> None:
    query = QUERIES[name]
    data.ensure(query.inputs, progress=False)
    expected = query.plain(spark, data).toArrow()
    assert expected.num_rows
    # the larger files of this scale have 150 kB: the first size makes several epochs of some files each
    for size in epoch_sizes(500_000, ALL_AT_ONCE):
        run = run_flow(spark, query.samovar(data), tmp_path / "runs", epoch_bytes=size)
        assert_same(expected, run.result("S"), ordered=name in ORDERED, note=f"epochs of {size}")
