"""Trying an operator on a few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.oracle.support import write_files

import samovar as sv
from samovar.errors import OperatorFailed, WorkflowError
from samovar.runtime.trial import try_operator


class Twice(sv.Operator):
    output = "n bigint"

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at

    def process(self, row: Any, port: int = 0) -> Any:
        if row["n"] == self.fails_at:
            raise ValueError("seven is bad luck")
        yield {"n": row["n"] * 2}
        yield {"n": row["n"]}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_files(tmp_path_factory.mktemp("n") / "t", pa.table({"n": list(range(5_000))}), 4)


def flow_of(path: str, operator: Twice) -> sv.Workflow:
    flow = sv.Workflow("trial")
    read = flow.read.parquet(path, name="read")
    read.filter("n % 2 = 1", name="odd").apply(operator, name="twice").sink("S")
    return flow


def test_an_operator_is_tried_on_the_first_rows_that_come_to_it(spark: SparkSession, numbers: str) -> None:
    found = try_operator(flow_of(numbers, Twice()), "twice", spark=spark, rows=3)
    assert found.error is None
    assert [t.column("n").to_pylist() for t in found.given] == [[1, 3, 5]]
    assert found.result is not None
    assert found.result.column("n").to_pylist() == [2, 1, 6, 3, 10, 5]
    source = try_operator(flow_of(numbers, Twice()), "read", spark=spark, rows=2)
    assert source.result is not None
    assert source.result.num_rows == 2


def test_what_it_raises_is_told_with_the_tuple(spark: SparkSession, numbers: str) -> None:
    found = try_operator(flow_of(numbers, Twice(fails_at=7)), "twice", spark=spark)
    assert found.result is None
    assert found.given[0].num_rows == 10
    assert isinstance(found.error, OperatorFailed)
    assert found.error.operator == "twice"
    assert "seven is bad luck" in found.error.message


def test_a_sink_has_nothing_to_try(spark: SparkSession, numbers: str, tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match="gives rows"):
        try_operator(flow_of(numbers, Twice()), "S", spark=spark)
