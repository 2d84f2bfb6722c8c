"""Documents that cannot be read, and workflows that cannot be written: the error says where and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.graph.documents import SMALL, V, one

from samovar.errors import (
    CyclicWorkflow,
    DocumentError,
    DuplicateName,
    UnconnectedPort,
    UnknownName,
    WorkflowError,
)
from samovar.graph import operators as ops
from samovar.graph.document import dump, load, to_document
from samovar.graph.operators.base import Op, expr
from samovar.graph.workflow import Workflow

# --- cells ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "cell", "message"),
    [
        ("date", "31.1.2024", "expected a date such as 2024-01-31, got '31.1.2024'"),
        ("timestamp", 5, "expected a timestamp"),
        ("int", "5", "expected a whole number, got '5'"),
        ("int", True, "expected a whole number"),
        ("double", "x", "expected a number"),
        ("decimal(3,1)", "x", "expected a decimal number"),
        ("binary", "?", "expected bytes as base64 text"),
        ("boolean", 1, "expected true or false"),
        ("string", 1, "expected text, got 1"),
        ("array<int>", 1, "expected a list"),
        ("map<string,int>", [1], "expected a mapping"),
        ("struct<a:int>", {"b": 1}, "expected the fields a, got 'b'"),
        ("struct<a:int>", [1, 2], "with the fields a"),
    ],
)
def test_cells_that_do_not_fit_say_where(of: str, cell: Any, message: str) -> None:
    with pytest.raises(DocumentError, match="row 1, column 'x'") as caught:
        one("values", schema=f"x {of}", rows=[[None], [cell]])
    assert message in str(caught.value)


def test_a_cell_that_cannot_be_written_is_named() -> None:
    flow = Workflow("w")
    flow.values("x variant", [(object(),)], name="v").sink("S")
    with pytest.raises(WorkflowError, match="Operator 'v': row 0, column 'x': a object cannot be written"):
        dump(flow)


# --- what has no textual form ---------------------------------------------------------------------------------------


class FakeColumn:
    def cast(self, to: str) -> None: ...

    def alias(self, name: str) -> None: ...

    def __str__(self) -> str:
        return "Column<'(a > 1)'>"


def test_a_column_without_sql_text_cannot_be_written() -> None:
    flow = Workflow("w")
    flow.values("a int", [], name="v").filter(FakeColumn(), name="f").sink("S")
    with pytest.raises(
        WorkflowError, match=r"Operator 'f' \(filter\) holds the PySpark Column \(a > 1\)"
    ) as caught:
        to_document(flow.graph())
    assert "SQL string" in str(caught.value)
    assert isinstance(expr(FakeColumn()), str)


def test_a_live_dataframe_cannot_be_written() -> None:
    class FakeDataFrame:
        schema = None

    flow = Workflow("w")
    flow.read.frame(FakeDataFrame(), name="df").sink("S")
    with pytest.raises(WorkflowError, match=r"Operator 'df' reads a live DataFrame(.|\n)*flow.values"):
        dump(flow)
    with pytest.raises(DocumentError, match="cannot come from a document"):
        one("frame")


def test_operators_without_source_are_named() -> None:
    flow = Workflow("w")
    flow.values("a int", [], name="v").mapInArrow(lambda it: it, "a int", name="m").sink("S")
    with pytest.raises(WorkflowError, match="Operator 'm': A lambda"):
        dump(flow)


# --- bad input ------------------------------------------------------------------------------------------------------


def refused(document: Any, error: type[WorkflowError] = DocumentError) -> str:
    with pytest.raises(error) as caught:
        load(document)
    text = str(caught.value)
    assert len(text.splitlines()) <= 8
    assert "Traceback" not in text
    return text


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "fraud.yaml").write_text(SMALL)
    assert "Did you mean" in refused(tmp_path / "fruad.yaml")
    assert "No such file" in refused("nowhere/at/all.yaml")
    assert "Is a directory" in refused(tmp_path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("samovar: 1\nname: [w\noperators: x\n", ["not readable as YAML: line 3, column", "    operators: x", "^"]),
        ("samovar: 1\nname: w\n\toperators: []\n", ["line 3, column 1", "not tabs"]),
        ("samovar: 1\nname: w\nname: v\noperators: []\n", ["line 3, column 1", "the key 'name' comes twice"]),
        ("samovar: 1\nname: w\noperators: [!!python/object:os.system {}]", ["line 3, column 13"]),
        ("samovar: 1\nname: *nothing\n", ["line 2, column 7"]),
        ("samovar: 1\nname: \x07\n", ["line 2, column 7"]),
        ('{"samovar": 1,\n "name": }', ["not readable as JSON: line 2, column 10", '     "name": }']),
        ('{"samovar": 1, "samovar": 2}', ["'samovar' comes twice"]),
        ("just a text\nof two lines", ["expected a mapping with samovar, name and operators"]),
        ("- a\n- b\n", ["got a list"]),
        ("\n", ["got nothing"]),
        ("name: w\noperators: []\n", ["expected the document's version", "samovar: 1"]),
        ("samovar: 2\nname: w\noperators: []\n", ["version 1 in 'samovar', got 2", "newer Samovar"]),
        ("samovar: one\nname: w\n", ["got 'one'"]),
        ("samovar: true\nname: w\n", ["got True"]),
        ("samovar: 1\nname: w\noperator: []\n", ["got 'operator'", "Did you mean 'operators'"]),
        ("samovar: 1\noperators: []\n", ["expected the workflow's name in 'name', got nothing"]),
        ("samovar: 1\nname: w\n", ["expected a list in 'operators', got nothing"]),
        ("samovar: 1\nname: w\noperators: {a: b}\n", ["expected a list in 'operators', got a mapping"]),
        ("samovar: 1\nname: w\noperators:\n  - a\n", ["line 4", "operator number 1 to be a mapping", "got 'a'"]),
        ("samovar: 1\nname: w\noperators:\n  - op: sink\n", ["Operator number 1", "line 4", "expected its name"]),
    ],
)  # fmt: skip
def test_unreadable_documents_say_where(text: str, parts: list[str]) -> None:
    message = refused(text)
    for part in parts:
        assert part in message


def test_text_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"samovar: 1\nname: \xff\n")
    assert "not UTF-8 text (line 2)" in refused(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("kind", "fields", "parts"),
    [
        ("filtr", {"input": "v"}, ["expected a known operator in 'op', got 'filtr'", "Did you mean 'filter'"]),
        ("zzz", {}, ["Known: read, table"]),
        (5, {}, ["got 5"]),
        ("filter", {"input": "v", "conditon": "x"}, ["'filter' has no field 'conditon'", "Did you mean 'condition'"]),
        ("distinct", {"input": "v", "zzz": "x"}, ["Its fields: name, inputs"]),
        ("filter", {"input": "v"}, ["'filter' needs the field 'condition'", "amount > 100"]),
        ("filter", {"input": "v", "inputs": ["v"], "condition": "x"}, ["got both"]),
        ("filter", {"input": "v", "condition": 5}, ["field 'condition': expected text, got 5"]),
        ("filter", {"input": 5, "condition": "x"}, ["field 'inputs': expected a list, got 5"]),
        ("select", {"input": "v", "columns": {"a": "b"}}, ["expected a list, got a mapping"]),
        ("select", {"input": "v", "columns": ["a", 5]}, ["field 'columns[1]': expected text, got a whole number"]),
        ("join", {"inputs": ["v", "w"], "how": "lefft"}, ["expected one of inner, left", "Did you mean 'left'"]),
        ("join", {"inputs": ["v", "w"], "build": "lft"}, ["expected one of left, right"]),
        ("limit", {"input": "v", "n": "three"}, ["field 'n': expected a whole number, got 'three'"]),
        ("fill_na", {"input": "v", "value": [1]}, ["field 'value'"]),
        ("values", {"schema": "a int", "rows": [[1, 2]]}, ["Expected rows of 1 values"]),
        ("values", {"schema": "a int", "rows": [{"b": 1}]}, ["no column 'b'"]),
        ("values", {"schema": "a int", "rows": [5]}, ["Expected row 0 to be"]),
        ("values", {"schema": 5, "rows": [5]}, ["field 'schema': expected text"]),
        ("python", {"input": "v", "order": "random"}, ["expected one of canonical, arrival"]),
        ("python", {"input": "v", "params": [1]}, ["field 'params': expected a mapping, got a list"]),
    ],
)  # fmt: skip
def test_bad_operators_are_named_with_their_line(kind: Any, fields: dict[str, Any], parts: list[str]) -> None:
    document = {"samovar": 1, "name": "w", "operators": [{"name": "v", "op": "values", "schema": "a int"},
                {"name": "w", "op": "values", "schema": "a int"}, {"name": "x", "op": kind, **fields}]}  # fmt: skip
    message = refused(yaml.safe_dump(document, sort_keys=False))
    for part in ["Operator 'x'", "the document, line 10", *parts]:
        assert part in message
    assert "line" not in refused(document).split(":")[0]


@pytest.mark.parametrize(
    ("operators", "error", "message"),
    [
        ([V, V], DuplicateName, "already has an operator 'v'"),
        ([ops.Sink(name="S", inputs=("vv",)), V], UnknownName, "an operator to feed 'S', got 'vv'"),
        ([ops.Sink(name="S")], UnconnectedPort, "Operator 'S' (sink) has 1 input port(s), 0 connected"),
        (
            [ops.Distinct(name="a", inputs=("b",)), ops.Distinct(name="b", inputs=("a",))],
            CyclicWorkflow,
            "circle",
        ),
        ([ops.Table(name="a/b", table="t")], WorkflowError, "Expected an operator name"),
    ],
)
def test_edges_and_names_are_checked_as_in_python(operators: list[Op], error: Any, message: str) -> None:
    document = {"samovar": 1, "name": "w", "operators": [msgspec.to_builtins(op) for op in operators]}
    assert message in refused(document, error)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(WorkflowError, match="format="):
        dump(load(SMALL), "toml")  # type: ignore[arg-type]
    assert "got int" in refused(5)


def test_aliases_are_taken_unless_they_stand_for_far_more_than_is_written() -> None:
    text = (
        "samovar: 1\nname: w\noperators:\n"
        "  - &source {name: a, op: values, schema: n int, rows: &rows [[1], [2]]}\n"
        "  - {<<: *source, name: b}\n"
        "  - {name: c, op: values, schema: n int, rows: *rows}\n"
        "  - {name: u, op: union, inputs: [a, b, c]}\n"
        "  - {name: S, op: sink, inputs: [u]}\n"
    )
    assert load(text).graph().ops["c"] == msgspec.structs.replace(load(text).graph().ops["a"], name="c")
    lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    text = "\n".join(["samovar: 1", "a0: &a0 [x, x, x]", *lines, "operators: *a8", ""])
    with pytest.raises(DocumentError, match=r"aliases make .* parts"):
        load(text)
    with pytest.raises(DocumentError, match="part of"):
        load("samovar: 1\nname: w\noperators: &a [*a]\n")
