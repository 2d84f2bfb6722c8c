"""Random programs over random tables: a run gives what plain Spark gives, for any epoch length, watched or not.

Names and types count as well; the order counts where a program ends in a sort. Programs are seeded: CI runs the same
few each time, `scripts/test --slow` more of them. A failure prints the program.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.oracle.generate import random_program
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE, assert_same, epoch_sizes, run_flow

import samovar as sv

COMMON = settings(
    deadline=None,
    database=None,
    # a program takes seconds, so there is no shrinking: a failing one is printed, and is small as it is
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def compare(spark: SparkSession, seed: int, *, steps: int) -> None:
    rnd = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="samovar-oracle-") as folder:
        program = random_program(rnd, spark, Path(folder), steps=rnd.randrange(2, steps + 1))
        note(program.text())
        expected = program.plain[-1].toArrow()
        for size in epoch_sizes(ONE_FILE, ALL_AT_ONCE, None, case=seed):
            flow = sv.Workflow("random")
            program.on_frames(flow)[-1].sink("S")
            run = run_flow(spark, flow, Path(folder) / "runs", epoch_bytes=size, interactive=size is None)
            how = "watched" if size is None else f"epochs of {size} bytes"
            assert_same(expected, run.result("S"), ordered=program.is_sorted, note=f"seed {seed}, {how}")


def test_programs_have_draws_and_unknown_functions_as_text_and_as_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = ""
    for seed in range(12):
        texts += random_program(random.Random(seed), spark, tmp_path / str(seed), steps=8).text()
    for word in ("(text)", "(Column)", "oracle_", "vector_sum", "sample(", "(True)", "(False)"):
        assert word in texts


@given(seed=st.integers(0, 1 << 32))
@settings(COMMON, max_examples=10, derandomize=True)
def test_random_programs_give_what_plain_spark_gives(spark: SparkSession, seed: int) -> None:
    compare(spark, seed, steps=7)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(seed=st.integers(0, 1 << 32))
@settings(COMMON, max_examples=300)
def test_many_random_programs_give_what_plain_spark_gives(spark: SparkSession, seed: int) -> None:
    compare(spark, seed, steps=12)
