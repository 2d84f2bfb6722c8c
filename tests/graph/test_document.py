"""Documents: what is written is read back the same; what cannot be read says where and why."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from samovar.errors import (
    CyclicWorkflow,
    DocumentError,
    DuplicateName,
    UnconnectedPort,
    UnknownName,
    WorkflowError,
)
from samovar.graph import operators as ops
from samovar.graph.code import operator_from_code
from samovar.graph.document import dump, json_schema, load, to_document
from samovar.graph.operator import Operator
from samovar.graph.operators.base import Op, expr
from samovar.graph.schema import FIELDS, KINDS
from samovar.graph.workflow import Workflow

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
FACTOR = 3


class Triple(Operator):
    output = "a int"

    def __init__(self, plus: int = 0) -> None:
        self.plus = plus

    def process(self, row, port=0):
        yield {"a": row["a"] * FACTOR + self.plus}


def as_they_are(batches):
    yield from batches


V = ops.Values(name="v", schema="a int", rows=((1,), (2,)))
W = ops.Values(name="w", schema="a int")
EVERY: list[Op] = [
    V,
    W,
    ops.Read(name="read", format="csv", path=("x/", "y z.csv"), schema="a int", options={"header": "true"}),
    ops.Table(name="table", table="db.t"),
    ops.Select(name="select", inputs=("v",), columns=("a", "a + 1 AS b", "explode(x): y")),
    ops.Filter(name="filter", inputs=("v",), condition="a > 1 AND b = 'it''s' -- # no comment"),
    ops.WithColumns(name="with", inputs=("v",), columns={"b": "a * 2", "on": "1", "yes": "2", "1": "3"}),
    ops.Rename(name="rename", inputs=("v",), columns={"a": "b"}),
    ops.ToDF(name="to_df", inputs=("v",), names=("x",)),
    ops.Drop(name="drop", inputs=("v",), columns=("a",)),
    ops.DropNa(name="drop_na", inputs=("v",), how="all", thresh=2, subset=("a",)),
    ops.FillNa(name="fill", inputs=("v",), value={"a": 1, "b": "x", "c": True, "d": 1.5}),
    ops.FillNa(name="fill_inf", inputs=("v",), value=math.inf, subset=("a",)),
    ops.Replace(name="replace", inputs=("v",), pairs=((1, None), ("on", "off"), (-math.inf, 0.5))),
    ops.Alias(name="alias", inputs=("v",), alias="t"),
    ops.Distinct(name="distinct", inputs=("v",)),
    ops.DropDuplicates(name="dd", inputs=("v",), subset=("a",)),
    ops.Union(name="union", inputs=("v", "w"), by_name=True, allow_missing=True),
    ops.SetOperation(name="set", inputs=("v", "w"), kind_of_set="exceptAll"),
    ops.Join(name="join", inputs=("v", "w"), on=("a",), how="left", build="right"),
    ops.Join(name="join2", inputs=("v", "w"), condition="v.a = w.a"),
    ops.Aggregate(
        name="agg",
        inputs=("v",),
        keys=("a",),
        aggregates=("count(*) AS n",),
        pivot="b",
        pivot_values=(1, "x"),
    ),
    ops.Sort(name="sort", inputs=("v",), keys=("a DESC",)),
    ops.Limit(name="limit", inputs=("v",), n=3, offset=1),
    ops.Sample(name="sample", inputs=("v",), fraction=0.25, seed=7, start=0.5),
    ops.Generate(name="generate", rows=10, columns={"id": "id", "x": "u * 2"}, seed=3),
    ops.Query(name="query", sql="SELECT 1", database="a b.db", options={"user": "ana"}),
    ops.Search(
        name="search",
        inputs=("v",),
        columns=("a", "b"),
        terms=("it's", "\\d+"),
        how="regex",
        require="all",
        case_sensitive=True,
        invert=True,
    ),
    ops.Clean(name="clean", inputs=("v",), columns=("a",), steps=("spaces", "lower"), as_type="date"),
    ops.Sentiment(name="sentiment", inputs=("v",), column="a", into="mood"),
    ops.Train(
        name="train",
        inputs=("v",),
        model="naive_bayes",
        label="b",
        text="a",
        features=("c",),
        params={"alpha": 1},
    ),
    ops.Predict(name="predict", inputs=("v", "w"), into="guess", type="string"),
    ops.Split(name="split", inputs=("v",), weights=(0.5, 0.25, 0.25), part=2, seed=9),
    ops.Python(
        name="python",
        inputs=("v", "w"),
        code="class A(sv.Operator):\n    output = 'a int'\n\n    x = '''\n  : # \n'''\n",
        class_name="A",
        params={"n": 5, "names": ["a", "on"], "deep": {"x": [1, {"y": None}]}},
        by=("a",),
        order="arrival",
        workers=2,
    ),
    ops.Batches(
        name="batches", inputs=("v",), schema="a int", form="pandas", code="def f(i): yield", function="f"
    ),
]
EVERY += [ops.Sink(name=f"S_{op.name}", inputs=(op.name,)) for op in EVERY]
EVERY.append(
    ops.Chart(
        name="chart",
        inputs=("v",),
        chart="bar",
        x="a",
        y="b",
        by="c",
        measure="avg",
        bins=5,
        top=7,
        title="t",
    )
)
EVERY.append(
    ops.Write(
        name="write",
        inputs=("v",),
        format="csv",
        path="out/",
        mode="append",
        options={"sep": ";"},
        partition_by=("a",),
    )
)


def test_the_examples_cover_every_operator() -> None:
    assert {op.kind for op in EVERY} == set(KINDS)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_every_operator_comes_back_equal(form: Any) -> None:
    flow = Workflow.of("every one", EVERY)
    text = dump(flow, form)
    loaded = load(text)
    assert list(loaded.graph().ops.values()) == list(flow.graph().ops.values())
    assert loaded.name == flow.name
    assert dump(loaded, form) == text
    document = to_document(flow)
    assert json.loads(json.dumps(document)) == document
    assert load(document)._ops == flow.graph().ops


def test_yaml_is_written_for_people() -> None:
    flow = Workflow("shop")
    v = flow.values("id int, tags array<string>", [(1, ["a", "b"]), (2, None)], name="orders")
    w = flow.read.parquet("more/", name="more")
    v.join(w, "id", name="both").filter("length(" + "x" * 150 + ") > 1", name="long").sink("S")
    assert dump(flow) == (
        "samovar: 1\n"
        "name: shop\n"
        "operators:\n"
        "  - name: orders\n"
        "    op: values\n"
        "    schema: id int, tags array<string>\n"
        "    rows:\n"
        "      - [1, [a, b]]\n"
        "      - [2, null]\n"
        "  - name: more\n"
        "    op: read\n"
        "    format: parquet\n"
        "    path: [more/]\n"
        "  - name: both\n"
        "    op: join\n"
        "    inputs: [orders, more]\n"
        "    on: [id]\n"
        "  - name: long\n"
        "    op: filter\n"
        "    inputs: [both]\n"
        f"    condition: length({'x' * 150}) > 1\n"
        "  - name: S\n"
        "    op: sink\n"
        "    inputs: [long]\n"
    )


def test_code_is_a_block() -> None:
    flow = Workflow("w")
    flow.values("a int", [(1,)], name="v").apply(Triple(2), name="T").mapInArrow(as_they_are, "a int").sink(
        "S"
    )
    text = dump(flow)
    assert (
        "    code: |\n      from __future__ import annotations\n      from samovar.graph.operator import Operator\n"
        in text
    )
    assert '\n      class Triple(Operator):\n          output = "a int"\n' in text
    assert "    class: Triple\n    params:\n      plus: 2\n" in text


def test_python_to_document_to_python_behaves_the_same() -> None:
    flow = Workflow("w")
    flow.values("a int", [(1,)], name="v").apply(Triple(2), name="T").sink("S")
    for form in ("yaml", "json"):
        op = load(dump(flow, form)).graph().ops["T"]  # type: ignore[arg-type]
        assert isinstance(op, ops.Python)
        made = operator_from_code(op)
        assert list(made.process({"a": 5}) or ()) == [{"a": 17}]
        assert dump(load(dump(flow, form))) == dump(flow)  # type: ignore[arg-type]


def test_loading_runs_no_code() -> None:
    flow = load(
        "samovar: 1\nname: w\noperators:\n  - {name: v, op: values, schema: a int}\n"
        "  - {name: p, op: python, input: v, code: 'raise SystemExit', class: A}\n  - {name: S, op: sink, input: p}\n"
    )
    assert flow.graph().ops["p"].code == "raise SystemExit"  # type: ignore[attr-defined]


# --- what a document may leave short --------------------------------------------------------------------------------


def one(kind: str, /, **fields: Any) -> Op:
    """A single operator `x` over sources `v` and `w`, through YAML."""
    document = {
        "samovar": 1,
        "name": "w",
        "operators": [
            {"name": "v", "op": "values", "schema": "a int"},
            {"name": "w", "op": "values", "schema": "a int"},
            {"name": "x", "op": kind, **fields},
        ],
    }
    return load(yaml.safe_dump(document, sort_keys=False))._ops["x"]


@pytest.mark.parametrize(
    ("made", "field", "value"),
    [
        (lambda: one("filter", input="v", condition="true"), "inputs", ("v",)),
        (lambda: one("filter", inputs="v", condition="true"), "inputs", ("v",)),
        (lambda: one("read", format="csv", path="p/"), "path", ("p/",)),
        (
            lambda: one("read", format="csv", options={"header": True, "n": 3}),
            "options",
            {"header": "true", "n": "3"},
        ),
        (lambda: one("join", inputs=["v", "w"], on="a"), "on", ("a",)),
        (lambda: one("python", input="v", by="a"), "by", ("a",)),
        (lambda: one("values", schema="a int, b double", rows=[{"b": 2, "a": 1}]), "rows", ((1, 2.0),)),
        (lambda: one("sample", input="v", fraction=1), "fraction", 1.0),
    ],
)
def test_short_forms(made: Any, field: str, value: Any) -> None:
    assert getattr(made(), field) == value


def test_words_of_yaml_1_1_stay_words() -> None:
    text = (
        "samovar: 1\nname: w\noperators:\n  - {name: v, op: values, schema: 'a string', "
        "rows: [[yes], [12:30], [2024-01-31], [on], [1_000]]}\n  - {name: w, op: values, schema: a string}\n"
        "  - name: j\n    op: join\n    inputs: [v, w]\n    on: a\n"
    )
    flow = load(text)
    assert flow._ops["j"].on == ("a",)  # type: ignore[attr-defined]
    assert flow._ops["v"].rows == (("yes",), ("12:30",), ("2024-01-31",), ("on",), ("1_000",))  # type: ignore[attr-defined]
    assert load(
        yaml.safe_load(text.replace("rows: [[yes], [12:30], [2024-01-31], [on], [1_000]]", "rows: []"))
    )._ops["j"].on == ("a",)  # type: ignore[attr-defined]


# --- rows -----------------------------------------------------------------------------------------------------------

ROWS: list[tuple[str, Any]] = [
    ("date", date(2024, 1, 31)),
    ("timestamp", datetime(2024, 1, 31, 12, 30, 0, 250)),
    ("timestamp", datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
    ("timestamp_ntz", datetime(1, 1, 1)),
    ("time", time(1, 2, 3, 4)),
    ("interval day to second", -timedelta(days=1, hours=2, microseconds=5)),
    ("decimal(38,18)", Decimal("-12345678901234567890.123456789012345678")),
    ("binary", b"\x00\xff text"),
    ("double", math.nan),
    ("float", -math.inf),
    ("double", 1e300),
    ("double", 0.1),
    ("bigint", 2**62),
    ("boolean", True),
    ("string", ""),
    ("string", "null"),
    ("string", "2024-01-31"),
    ("string", "yes"),
    ("string", "1e3"),
    ("string", " two\nlines \t é \u2028 🫖"),
    ("int", None),
    ("array<date>", [date(2024, 1, 1), None]),
    ("map<string, decimal(4,1)>", {"a": Decimal("1.5"), "": None}),
    ("map<int, string>", {1: "x", 2: None}),
    ("map<date, array<binary>>", {date(2024, 1, 1): [b"x"]}),
    ("struct<a: int, `b c`: struct<d: date>>", (1, (date(2024, 1, 1),))),
    ("struct<a: int, b: timestamp>", {"a": 1, "b": datetime(2024, 1, 1)}),
    ("array<struct<k: string, v: array<map<string, double>>>>", [("x", [{"y": math.inf}])]),
    ("variant", {"free": [1, "x"]}),
]


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize(("of", "value"), ROWS)
def test_cells_come_back_as_the_objects_they_were(of: str, value: Any, form: Any) -> None:
    flow = Workflow("w")
    flow.values(f"id int, x {of} NOT NULL COMMENT 'a, b'", [(1, value)], name="v").sink("S")
    text = dump(flow, form)
    (row,) = load(text).graph().ops["v"].rows  # type: ignore[attr-defined]
    assert repr(row) == repr((1, value))
    if form == "json":
        json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


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


def test_a_column_needs_the_compilers_help() -> None:
    flow = Workflow("w")
    flow.values("a int", [], name="v").filter(FakeColumn(), name="f").sink("S")
    with pytest.raises(
        WorkflowError, match=r"Operator 'f' \(filter\) holds the PySpark Column \(a > 1\)"
    ) as caught:
        to_document(flow.graph())
    assert "SQL string" in str(caught.value)
    made = to_document(flow.graph(), sql=lambda op, text: f"/* {op.name} */ {text}")
    assert made["operators"][1]["condition"] == "/* f */ (a > 1)"
    assert type(made["operators"][1]["condition"]) is str
    with pytest.raises(WorkflowError, match="no SQL text"):
        to_document(flow, sql=lambda op, text: None)
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


# --- files and paths ------------------------------------------------------------------------------------------------

SMALL = """\
samovar: 1
name: w
operators:
  - {name: r, op: read, format: csv, path: [data/, /abs/x, "s3://b/x", "file:/y"]}
  - {name: S, op: write, input: r, format: csv, path: out/}
"""


def test_paths_of_a_file_are_relative_to_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "a.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    for path in ("flows/a.yaml", Path("flows/a.yaml"), tmp_path / "flows" / "a.yaml"):
        found = load(path)._ops
        folder = tmp_path / "flows"
        assert found["r"].path == (f"{folder}/data/", "/abs/x", "s3://b/x", "file:/y")  # type: ignore[attr-defined]
        assert found["S"].path == f"{folder}/out/"  # type: ignore[attr-defined]
    again = load(dump(load("flows/a.yaml"), relative_to="flows"))
    assert again._ops == load(SMALL)._ops


def test_paths_of_text_and_data_are_left_as_they_are() -> None:
    assert load(SMALL)._ops["S"].path == "out/"  # type: ignore[attr-defined]
    assert load(SMALL.encode())._ops["S"].path == "out/"  # type: ignore[attr-defined]
    assert load(SMALL, folder="/f")._ops["S"].path == "/f/out/"  # type: ignore[attr-defined]
    assert Workflow.from_document(SMALL)._ops == load(SMALL)._ops


def test_a_json_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\ufeff" + dump(load(SMALL), "json"), encoding="utf-8")
    assert load(tmp_path / "a.json", folder="/f").graph().ops.keys() == {"r", "S"}


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


# --- random workflows -----------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
LISTS = st.lists(TEXTS, max_size=3).map(tuple)


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    made: list[Op] = [ops.Values(name="n0", schema="a string", rows=tuple((t,) for t in draw(LISTS)))]
    for i in range(1, draw(st.integers(1, 6))):
        up = st.sampled_from([op.name for op in made])
        first, second, text, texts = draw(up), draw(up), draw(TEXTS), draw(LISTS)
        choice = draw(
            st.sampled_from(
                [
                    ops.Filter(name=f"n{i}", inputs=(first,), condition=text),
                    ops.Select(name=f"n{i}", inputs=(first,), columns=texts),
                    ops.WithColumns(name=f"n{i}", inputs=(first,), columns=dict.fromkeys(texts, text)),
                    ops.Join(name=f"n{i}", inputs=(first, second), on=texts),
                    ops.Python(
                        name=f"n{i}", inputs=(first, second), code=text * 3, params={text: list(texts)}
                    ),
                    ops.Replace(name=f"n{i}", inputs=(first,), pairs=tuple((t, text) for t in texts)),
                ]
            )
        )
        made.append(choice)
    made += [ops.Sink(name=f"S_{op.name}", inputs=(op.name,)) for op in made]
    return Workflow.of("random", made)


@given(workflows())
def test_random_workflows_come_back_equal(flow: Workflow) -> None:
    for form in ("yaml", "json"):
        assert load(dump(flow, form))._ops == dict(flow.graph().ops)  # type: ignore[arg-type]


# --- the published schema -------------------------------------------------------------------------------------------


def test_the_published_schema_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "samovar.graph.document"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    published = (REFERENCE / "workflow.schema.json").read_text()
    assert done.stdout == published, (
        "write it anew: python -m samovar.graph.document > docs/reference/workflow.schema.json"
    )
    assert json.loads(published) == json_schema()


def test_the_schema_describes_every_operator_and_field() -> None:
    made = json_schema()
    assert set(made["$defs"]) == set(KINDS)
    for kind, described in made["$defs"].items():
        assert described["description"], kind
        for field, about in described["properties"].items():
            assert about.get("description"), (kind, field)
    known = {(kind, f.encode_name) for kind, t in KINDS.items() for f in msgspec.structs.fields(t)}
    assert {key for key in FIELDS if key[0]} <= known


def test_the_schema_takes_what_load_takes() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft202012Validator(json_schema())
    check.validate(to_document(Workflow.of("w", EVERY)))
    check.validate(yaml.load(SMALL, Loader=yaml.SafeLoader))
    for operator in ({"name": "x", "op": "filtr"}, {"name": "x", "op": "filter", "condition": "a"}):
        assert not check.is_valid({"samovar": 1, "name": "w", "operators": [operator]})
    assert not check.is_valid({"samovar": 2, "name": "w", "operators": []})


def test_the_reference_lists_every_operator_and_field() -> None:
    text = (REFERENCE / "document.md").read_text()
    for kind, op_type in KINDS.items():
        section = text.split(f"\n### `{kind}`\n")[1].split("\n### ")[0]
        for field in msgspec.structs.fields(op_type):
            if field.encode_name not in ("name", "inputs", "enabled"):
                assert f"| `{field.encode_name}` |" in section, (kind, field.encode_name)


def test_the_example_of_the_reference_loads_and_its_code_runs() -> None:
    text = (REFERENCE / "document.md").read_text()
    example = text.split("```yaml\n")[1].split("```")[0]
    graph = load(example).graph()
    assert len(graph.ops) >= 6
    assert load(dump(graph))._ops == dict(graph.ops)
    op = graph.ops["FE"]
    assert isinstance(op, ops.Python)
    made = operator_from_code(op)
    assert list(made.process({"customer": "Bob", "amount": 2.0}) or ()) == [
        {"customer": "Bob", "amount": 2.0, "highest": 5.0}
    ]
