"""A session that the user made with `SparkSession.builder`, in a process of its own: Samovar must not disturb it.

Some of PySpark's own examples are run there as well, the others with `--slow` (`test_pyspark_doctests.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.oracle.test_pyspark_doctests import check

pytestmark = pytest.mark.starts_spark

PROGRAM = """
from pyspark.errors import AnalysisException
from tests.conftest import plain_session

spark = plain_session({"spark.ui.enabled": False})
assert spark.range(3).count() == 3
before = dict(spark.conf.getAll)

import samovar as sv

flow = sv.Workflow("own")
df = flow.read.frame(spark.createDataFrame([("Tom", 80), ("Alice", None)], ["name", "height"]))
df.select(df.name).orderBy(df.name.desc()).sink("S")
run = flow.run(spark=spark, record=False, progress=False)
assert run.result("S").to_pylist() == [{"name": "Tom"}, {"name": "Alice"}], run.result("S")

flow = sv.Workflow("wrong")
df = flow.read.frame(spark.range(3))
df.select(df.id + 1, "nope").sink("S")
try:
    flow.run(spark=spark, record=False, progress=False)
except sv.SamovarError as error:
    assert "nope" in str(error) and "id" in str(error), error
else:
    raise AssertionError("an unknown column went through")

try:
    spark.range(3).select("nope")
except AnalysisException as error:
    assert error.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION", error
else:
    raise AssertionError("an unknown column went through in plain PySpark")
assert spark.range(3).count() == 3
after = dict(spark.conf.getAll)
assert after == before, sorted(set(after.items()) ^ set(before.items()))
print("all as it should be")

import sys
from tests.oracle.doctest_frames import main
main(["dataframe", "--only", "^DataFrame.groupBy$", "--out", sys.argv[1]])
"""


@pytest.mark.timeout(600)
def test_errors_results_and_some_of_pysparks_examples_are_right_in_a_session_of_the_users_own(
    tmp_path: Path,
) -> None:
    root = Path(__file__).parents[2]
    report = tmp_path / "report.json"
    command = [sys.executable, "-c", PROGRAM, str(report)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=500, check=False)
    assert done.stdout.strip() == "all as it should be", done.stderr[-3000:]
    check(json.loads(report.read_text(encoding="utf-8")), least=4)
