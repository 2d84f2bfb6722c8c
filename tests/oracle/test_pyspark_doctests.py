"""PySpark's documentation examples on Frames: the same rows as on DataFrames, at any length of an epoch.

The session is the user's own (see `doctest_frames.py`). With `--slow` every
statement of `pyspark.sql.dataframe`, `group`, `column` and `window`, and an example of each function.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.starts_spark
ROOT = Path(__file__).parents[2]

LEAST = {"dataframe": 165, "group": 23, "column": 50, "window": 8, "functions": 480}
"""Results that must be equal in every mode when all docstrings of a module are executed."""

UNSUPPORTED = {
    "looks at a plan or runs it": """explain executionInfo inputFiles isLocal isStreaming rdd sameSemantics
        semanticHash sparkSession storageLevel checkpoint localCheckpoint foreach foreachPartition""",
    "views and SQL over frames": """createGlobalTempView createOrReplaceGlobalTempView createOrReplaceTempView
        createTempView registerTempTable spark.sql exists scalar lateralJoin asTable""",
    "statistics whose columns depend on the data, or are approximate": """approxQuantile corr cov crosstab describe
        freqItems sampleBy stat summary""",
    "partitions, of which an epoch has its own": "repartitionById repartitionByRange sortWithinPartitions",
    "the side of a join to read whole is chosen with build=": "broadcast",
    "not written yet": """colRegex groupingSets melt nearestByJoin to toJSON transpose unpivot withMetadata zip
        zipWithIndex metadataColumn""",
    "Python code on groups: frame.apply(YourOperator(), by=...)": """apply applyInArrow applyInPandas
        applyInPandasWithState cogroup transformWithState transformWithStateInPandas""",
    "catalogs, streams and other libraries": """insertInto mergeInto observe pandas_api plot saveAsTable withWatermark
        writeStream writeTo bucketBy clusterBy sortBy jdbc dropDuplicatesWithinWatermark""",
}
"""Methods that Frames lack, by the reason why."""

_PARTITIONS = "tells partitions, which an epoch has of its own"

_DRAWN = "draws follow the positions of rows here, and partitions in Spark"
_FILES = "follows the partitions of its input; in these tests the rows lie in files (see test_samples.py)"

KNOWN = {
    (r"rand|randn|randstr|uniform|shuffle", ""): _DRAWN,
    (
        r"percentile|approx_percentile|percentile_approx",
        "value",
    ): f"its table is made with randn(42): {_DRAWN}",
    (r"DataFrame\.(sample|randomSplit)|monotonically_increasing_id", ""): _FILES,
    (r"DataFrame\.(coalesce|repartition)|spark_partition_id", "partition"): _PARTITIONS,
    (r"listagg_distinct|string_agg_distinct", ""): "distinct values have no order of their own",
    (r"input_file_name", ""): "the file is another one in these tests",
    (r"Column\.isin", "isin("): "a frame as a subquery: refused, with a semi join as the hint",
    (r"histogram_numeric", ""): "is approximate, by how rows were cut",
    (r".*sketch.*", "b'"): "the bytes of a sketch depend on how rows were cut",
}
"""A docstring (an expression) and a part of a statement, or of what was said, that need not be equal: the reason."""


def report_of(module: str, folder: Path, *options: str) -> dict[str, Any]:
    """What became of the examples of a module, in a process of its own."""
    out = folder / f"{module}.json"
    command = [sys.executable, "-m", "tests.oracle.doctest_frames", module, "--out", str(out), *options]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    made: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return made


def unexpected(entries: Iterable[list[str]], met: set[tuple[str, str]]) -> list[str]:
    """What the list has no reason for; entries of it that were needed are added to `met`."""
    left = []
    for docstring, source, said in entries:
        keys = [
            (name, part)
            for name, part in KNOWN
            if re.fullmatch(name, docstring) and (part in source or part in said)
        ]
        met.update(keys)
        if not keys:
            left.append(f"{docstring}: {source}\n    {said}")
    return left


def check(report: dict[str, Any], least: int) -> set[tuple[str, str]]:
    met: set[tuple[str, str]] = set()
    wrong = unexpected([*report["differs"], *report["refused"], *report["errors"]], met)
    assert not wrong, "\n".join(wrong)
    listed = {name for names in UNSUPPORTED.values() for name in names.split()}
    assert set(report["unsupported"]) <= listed, "a method that no reason is given for"
    for mode, equal in report["compared"].items():
        assert equal >= least, f"{mode}: only {equal} results were compared"
    return met


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_some_examples_of_functions_are_right_on_frames(tmp_path: Path) -> None:
    check(report_of("functions", tmp_path, "--every", "100"), 4)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("module", LEAST)
def test_all_examples_are_right_on_frames(module: str, tmp_path: Path) -> None:
    report = report_of(module, tmp_path)
    met = check(report, LEAST[module])
    equal = [
        name
        for name, part in KNOWN
        if (name, part) not in met and any(re.fullmatch(name, d) for d in report["docstrings"])
    ]
    assert not equal, f"is equal now, take it off the list: {', '.join(equal)}"
