"""The pytest plugin, in test runs of its own inside this process, on the session that is there."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import pytest

pytest_plugins = ["pytester"]

_INSTALLED = any(e.value == "samovar.pytest_plugin" for e in entry_points(group="pytest11"))
PLUGIN = ["-p", "no:cacheprovider", *([] if _INSTALLED else ["-p", "samovar.pytest_plugin"])]
"""An environment made before the plugin was declared does not load it by itself."""


def test_tables_and_programs_in_tests(spark: Any, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from samovar.diff import keyed, plain, rows

        def test_equal(assert_equivalent, samovar_spark):
            df = samovar_spark.range(5)
            assert_equivalent(df, df.repartition(2))

        def test_different(assert_equivalent, samovar_spark):
            df = samovar_spark.range(5)
            assert_equivalent(df, df.filter("id <> 3"))

        def test_programs(assert_equivalent):
            twice = lambda df: df.selectExpr("x * 2 AS x")
            expected = plain(lambda given: [{"x": row["x"] * 2} for row in given])
            assert_equivalent(twice, expected, rows("x int", nulls=False, values={"x": [1, 2]}))

        def test_options_are_passed_on(assert_equivalent, samovar_spark):
            left = samovar_spark.createDataFrame([(1, 1), (1, 2)], "k int, v int").coalesce(1)
            assert_equivalent(left, left.orderBy("v", ascending=False), depends=keyed("k"))
        """
    )
    found = pytester.runpytest_inprocess(*PLUGIN, "--samovar-examples=2", "-q")
    found.assert_outcomes(passed=2, failed=2)
    found.stdout.fnmatch_lines(["*The tables differ (independent). 5 and 4 rows.*", "*only left*3*"])
    found.stdout.fnmatch_lines(["*The tables differ from row 0 on (in order for each k).*"])
    found.stdout.no_fnmatch_line("*assertions.py*raise AssertionError*")


def test_a_wrong_option_is_refused(spark: Any, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(assert_equivalent): pass")
    found = pytester.runpytest_inprocess(*PLUGIN, "--samovar-seed=x")
    found.stdout.fnmatch_lines(["*Expected a whole number for --samovar-seed, got 'x'.*"])
