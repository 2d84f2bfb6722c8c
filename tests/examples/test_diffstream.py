"""The case studies of DiffStream: bugs are found, and nothing is taken for one that is none."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.conftest import ALL_SIZES

from samovar.diff import check, equality, ordered, plain, shake

SLOW = bool(os.environ.get(ALL_SIZES))
RUNS = 9 if SLOW else 3
"""Ways to run a program that is right: as it is, its input reversed, in three partitions; with `--slow`, more."""
SHRINKING = 5.0 if SLOW else 1.0
"""Seconds to look for a smaller input on which a wrong program fails."""
FOLDER = Path(__file__).parents[2] / "examples" / "diffstream"


def study(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"diffstream_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    by_value(module)
    return module


def by_value(module: ModuleType) -> None:
    """Workers cannot import a module that was loaded from a file."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)


def test_taxi_distance_on_random_input(spark: Any) -> None:
    taxi = study("taxi")
    reference = plain(taxi.sequential)
    right = check(
        taxi.divided_first,
        reference,
        taxi.random_positions(),
        depends=taxi.IN_ORDER,
        examples=5 if SLOW else 3,
        spark=spark,
    )
    assert right, right.explain()
    wrong = check(
        taxi.projected_first,
        reference,
        taxi.random_positions(),
        depends=taxi.IN_ORDER,
        seed=2,  # it finds the bug on a few positions at once
        seconds=SHRINKING,
        spark=spark,
    )
    assert not wrong
    assert 2 <= len(wrong.inputs["0"]) <= 4, wrong.explain()


def test_taxi_distance_on_fixed_input(spark: Any) -> None:
    taxi = study("taxi")
    given = taxi.some_positions()
    assert len(given) <= 100

    def both(first: Any) -> Any:
        return lambda df: taxi.distances(first(df))

    same = equality(tolerance=1e-9)
    assert check(both(taxi.divided_first), both(lambda df: df), given, equal=same, spark=spark)
    assert not check(both(taxi.projected_first), both(lambda df: df), given, equal=same, spark=spark)
    right = shake(
        taxi.divided_first, given, depends=taxi.IN_ORDER, arrives=taxi.IN_ORDER, runs=RUNS, spark=spark
    )
    assert right, right.explain()
    wrong = shake(taxi.projected_first, given, depends=taxi.IN_ORDER, arrives=taxi.IN_ORDER, spark=spark)
    assert not wrong, wrong.explain()
    assert wrong.executions <= 20


def test_topic_count(spark: Any) -> None:
    topics = study("topics")
    reference = plain(topics.sequential)
    given = topics.some_words()
    assert check(topics.right_parallel, reference, given, depends=ordered, spark=spark)
    right = check(
        topics.right_parallel,
        reference,
        topics.random_words(),
        depends=ordered,
        examples=4 if SLOW else 2,
        spark=spark,
    )
    assert right, right.explain()
    wrong = check(
        topics.wrong_parallel,
        reference,
        topics.random_words(),
        depends=ordered,
        seconds=SHRINKING,
        spark=spark,
    )
    assert not wrong
    assert len(wrong.inputs["0"]) <= 12, wrong.explain()


REDUCERS = study("reducers")


@pytest.mark.parametrize("pattern", REDUCERS.PATTERNS, ids=lambda p: p.name)
def test_a_row_of_figure_12(spark: Any, pattern: Any) -> None:
    items = REDUCERS.some_items()
    assert len(items) <= 100
    found = shake(pattern.program, items, spark=spark)
    assert not found
    assert found.executions <= 20
    if pattern.assumption is not None:
        calm = shake(pattern.program, pattern.assumption(items), runs=RUNS, spark=spark)
        assert calm, calm.explain()
    if pattern.tolerant is not None:
        calm = shake(pattern.program, items, equal=pattern.tolerant(items), runs=RUNS, spark=spark)
        assert calm, calm.explain()


def test_accepting_does_not_mean_accepting_all(spark: Any) -> None:
    items = REDUCERS.some_items()
    wrong = REDUCERS.reducer("k int, x int, y int", lambda pairs: {"x": pairs[0][0], "y": pairs[0][1]})
    assert not shake(wrong, items, equal=REDUCERS.any_largest(items), spark=spark)


def test_the_yahoo_benchmark_sequential_against_parallel(spark: Any) -> None:
    yahoo = study("yahoo")
    inputs = {"events": yahoo.events(2_000), "campaigns": yahoo.campaigns()}
    found = check(yahoo.parallel, plain(yahoo.sequential), inputs, equal=None, spark=spark)
    assert found, found.explain()
    assert found.left is not None
    assert len(found.left.rows()) > 500
