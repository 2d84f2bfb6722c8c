"""Documents: what is written is read back the same, in every form; the published schema describes them."""

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
from tests.graph.documents import EVERY, SMALL, one

from samovar.graph import operators as ops
from samovar.graph.code import operator_from_code
from samovar.graph.document import dump, json_schema, load, to_document
from samovar.graph.operator import Operator
from samovar.graph.operators.base import Op
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
        (lambda: one("python", input="v", by="a", workers=3), "key_partitions", 3),  # its old name
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


# --- files and paths ------------------------------------------------------------------------------------------------


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
    known = {f"{kind}.{f.encode_name}" for kind, t in KINDS.items() for f in msgspec.structs.fields(t)}
    assert {key for key in FIELDS if "." in key} <= known


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
