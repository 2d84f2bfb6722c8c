"""What is wrong with a document, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from samovar.server.documents.document_check import check

PROCESS = "def process(self, row, port=0):\n        "
BODIES = {
    PROCESS + '{"n": 1}': "makes a row and drops it",
    PROCESS + 'return {"n": 1}': "returns a row instead of yielding it",
    "stateless = True\n    k = sv.ValueState(0)\n    " + PROCESS + "yield row": "declares state",
    "seen = {1: 1}\n    " + PROCESS + "self.seen[1] = 2\n        yield row": "is shared by all",
}


@pytest.mark.parametrize("body", BODIES)
def test_code_that_does_otherwise_than_it_says_is_a_problem_of_its_operator(
    spark: SparkSession, tmp_path: Path, body: str
) -> None:
    code = f'import samovar as sv\n\nclass A(sv.Operator):\n    output = "n int"\n    {body}\n'
    operators = [
        {"name": "src", "op": "values", "schema": "n int", "rows": [[1]]},
        {"name": "X", "op": "python", "inputs": ["src"], "class": "A", "code": code},
        {"name": "S", "op": "sink", "inputs": ["X"]},
    ]
    (problem,) = check({"samovar": 1, "name": "w", "operators": operators}, tmp_path, spark).problems
    assert problem.operator == "X"
    assert BODIES[body] in problem.message
    assert problem.hint


def test_a_column_that_a_result_cannot_hold_is_a_problem_of_the_sink(
    spark: SparkSession, tmp_path: Path
) -> None:
    operators = [
        {"name": "src", "op": "values", "schema": "n int", "rows": [[1]]},
        {"name": "X", "op": "select", "inputs": ["src"], "columns": ["make_ym_interval(n) AS y"]},
        {"name": "S", "op": "sink", "inputs": ["X"]},
    ]
    (problem,) = check({"samovar": 1, "name": "w", "operators": operators}, tmp_path, spark).problems
    assert (problem.operator, problem.kind) == ("S", "SchemaProblem")
    assert "'y' (interval year to month)" in problem.message
