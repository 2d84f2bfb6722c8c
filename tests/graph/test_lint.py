"""Remarks on code that is not run."""

from __future__ import annotations

import pytest

from samovar.graph.lint import remarks

GOOD = """
import math
from collections import Counter

LIMIT = 3

def helper(x):
    return math.floor(x) + LIMIT

class A(sv.Operator):
    output = "a int"
    seen = sv.MapState()

    def __init__(self, floor=0.0):
        self.floor = floor

    def process(self, row, port=0):
        counts = Counter(k for k in row)
        total = sum(v for v in [helper(n) for n in counts.values()])
        try:
            yield {"a": total}
        except ValueError as error:
            raise RuntimeError(str(error)) from error
"""


def test_sound_code_has_no_remarks() -> None:
    assert remarks(GOOD) == []
    assert remarks("from math import *\nx = floor(1)") == []


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        (
            "class A(sv.Operator):\n    output = 'a int'\n    def process(self, row port=0):\n        yield",
            3,
            "syntax",
        ),
        (GOOD.replace("import math", ""), 8, "'math'"),
        (GOOD.replace("helper(n)", "helpr(n)"), 19, "'helpr'"),
        (GOOD.replace('    output = "a int"\n', ""), 10, "`output`"),
        ("class A(sv.Operator):\n    output = 'a int'\n", 1, "process"),
        ("x = 'a\0b'", 1, "null"),
    ],
)
def test_what_would_fail_is_told_with_its_line(code: str, line: int, message: str) -> None:
    found = remarks(code)
    assert [r.line for r in found] == [line]
    assert message in found[0].message
