"""Help for editors: SQL, remarks on code, trials."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.support import SMALL, Served

COLUMNS = [{"name": "amount", "type": "double"}, {"name": "who is", "type": "array<string>"}]


@pytest.mark.parametrize(
    ("sql", "form", "kind", "message", "hint"),
    [
        ("amount > 10", "condition", "boolean", None, None),
        ("amout > 10", "condition", None, "amout", "Did you mean 'amount'?"),
        ("amount", "condition", None, "BOOLEAN", None),
        ("`who is`[0]", "expression", "string", None, None),
        ("round(amount) AS r", "expression", "double", None, None),
        ("sum(amount) AS total", "expression", "double", None, None),
        ("roun(amount)", "expression", None, "roun", "Did you mean 'round'?"),
        ("amount >", "expression", None, "Expected an SQL expression", None),
        ("amount DESC NULLS LAST", "sort", None, None, None),
        ("*", "expression", None, None, None),
        ("", "expression", None, None, None),
    ],
)
def test_sql_is_checked_by_sparks_parser(
    engine_server: Served, sql: str, form: str, kind: str | None, message: str | None, hint: str | None
) -> None:
    found = engine_server.json("POST", "/api/sql", json={"sql": sql, "columns": COLUMNS, "form": form})
    assert found["type"] == kind
    if message is None:
        assert found["problem"] is None
    else:
        assert message.lower() in found["problem"]["message"].lower()
        if hint is not None:
            assert found["problem"]["hint"] == hint


def test_functions_are_listed_for_completion(engine_server: Served) -> None:
    names = {f["name"] for f in engine_server.json("GET", "/api/sql/functions")}
    assert {"sum", "date_add", "regexp_replace"} <= names
    assert len(names) > 300


def test_code_is_looked_at_without_running_it(server: Served) -> None:
    code = "open('/tmp/never', 'w')\nclass A(sv.Operator)\n    pass"
    found = server.json("POST", "/api/lint", json={"code": code})["problems"]
    assert [p["line"] for p in found] == [2]


DIVIDES = """
class A(sv.Operator):
    output = 'n int'

    def process(self, row, port=0):
        yield {'n': 12 // (row['n'] - %d)}
"""


def tried(server: Served, code: str) -> Any:
    operators = [
        *SMALL["operators"][:2],
        {"name": "P", "op": "python", "inputs": ["large"], "code": code},
        {"name": "S", "op": "sink", "inputs": ["P"]},
    ]
    made = server.json(
        "POST", "/api/workflows", json={"name": "tried", "document": {**SMALL, "operators": operators}}
    )
    return server.json("POST", f"/api/workflows/{made['workflow']}/try/P")


def test_an_operator_is_tried_on_ten_rows(engine_server: Served) -> None:
    found = tried(engine_server, DIVIDES % 3)
    assert found["given"] == [{"n": n} for n in range(4, 10)]
    assert [r["n"] for r in found["rows"]] == [12, 6, 4, 3, 2, 2]
    assert found["columns"] == [{"name": "n", "type": "int32"}]
    failed = tried(engine_server, DIVIDES % 5)
    assert failed["rows"] == []
    assert "ZeroDivisionError" in failed["error"]["message"]
    assert failed["error"]["operator"] == "P"
    wrong = tried(engine_server, "class A(")
    assert wrong["error"]["operator"] == "P"
