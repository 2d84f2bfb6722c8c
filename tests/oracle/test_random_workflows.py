"""Random programs over random tables: a run gives what plain Spark gives, for any epoch length, watched or not.

Names and types count as well; the order counts where a program ends in a sort. Programs are seeded: CI runs the same
few each time, `scripts/test --slow` more of them. A failure prints the program.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, currently_in_test_context, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.oracle.generate import random_program
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE, assert_same, run_flow

import samovar as sv

COMMON = settings(
    deadline=None,
    database=None,
    # a program takes seconds, so there is no shrinking: a failing one is printed, and is small as it is
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def compare(spark: SparkSession, seeds: Sequence[int], sizes: Sequence[int | None], *, steps: int) -> None:
    """Programs side by side in one workflow, with a sink each."""
    with tempfile.TemporaryDirectory(prefix="samovar-oracle-") as folder:
        programs = {}
        for seed in seeds:
            rnd = random.Random(seed)
            made = random_program(rnd, spark, Path(folder) / str(seed), steps=rnd.randrange(2, steps + 1))
            programs[seed] = made, made.plain[-1].toArrow()
        for size in sizes:
            flow = sv.Workflow("random")
            for seed, (program, _) in programs.items():
                frames = [
                    flow.read.parquet(p, name=f"source {seed} {i}") for i, p in enumerate(program.paths)
                ]
                for step in program.steps:
                    frames.append(step.frame(*(frames[i] for i in step.inputs)))
                frames[-1].sink(f"S {seed}")
            how = "watched" if size is None else f"epochs of {size} bytes"
            told = "\n\n".join(program.text() for program, _ in programs.values())
            say = note if currently_in_test_context() else print
            say(f"{how}\n{told}")
            run = run_flow(spark, flow, Path(folder) / "runs", epoch_bytes=size, interactive=size is None)
            for seed, (program, expected) in programs.items():
                result = run.result(f"S {seed}")
                assert_same(expected, result, ordered=program.is_sorted, note=f"seed {seed}, {how}")


def test_programs_have_draws_and_unknown_functions_as_text_and_as_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    missing = {"(text)", "(Column)", "oracle_", "vector_sum", "sample(", "(True)", "(False)"}
    for seed in (1, 28):
        text = random_program(random.Random(seed), spark, tmp_path / str(seed), steps=8).text()
        missing = {word for word in missing if word not in text}
    assert not missing


SIZES = (ONE_FILE, ALL_AT_ONCE, None)


@pytest.mark.parametrize("seeds", [range(2), range(2, 4), range(4, 6)], ids=str)
def test_random_programs_give_what_plain_spark_gives(spark: SparkSession, seeds: range) -> None:
    compare(spark, seeds, [SIZES[seeds[0] // 2]], steps=7)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(seed=st.integers(0, 1 << 32))
@settings(COMMON, max_examples=300)
def test_many_random_programs_give_what_plain_spark_gives(spark: SparkSession, seed: int) -> None:
    compare(spark, [seed], SIZES, steps=12)
