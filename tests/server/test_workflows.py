"""Workflows over HTTP: made, read, replaced, checked, versioned, deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.support import SMALL, Served

from samovar.errors import WorkspaceError
from samovar.graph.document import load
from samovar.graph.schema import KINDS
from samovar.server.documents.document_form import read_comments, write_comment, write_comments
from samovar.server.workspace import Workspace


def new(server: Served, document: dict[str, Any] = SMALL, name: str = "small") -> str:
    made: str = server.json("POST", "/api/workflows", json={"name": name, "document": document})["workflow"]
    return made


def test_the_palette_has_every_operator_with_a_schema_its_start_fits(server: Served) -> None:
    import jsonschema

    kinds = server.json("GET", "/api/operators")
    assert {k["op"] for k in kinds} == set(KINDS)
    for kind in kinds:
        assert kind["summary"]
        assert kind["group"] != "Others"
        partial = {**kind["schema"], "required": []}
        for start in (kind["start"], *(p["start"] for p in kind["presets"])):
            jsonschema.validate(start, partial)


def test_a_document_comes_back_as_it_was_given(server: Served) -> None:
    id = new(server)
    found = server.json("GET", f"/api/workflows/{id}")
    assert load(found["document"])._ops == load(SMALL)._ops
    assert set(found["layout"]) == {"numbers", "large", "S"}
    exported = server.http.get(f"/api/workflows/{id}/export").text
    assert load(exported)._ops == load(SMALL)._ops
    program = server.http.get(f"/api/workflows/{id}/export?format=python").text
    assert "large = numbers.filter('n >= 4', name='large')" in program


def test_workflows_of_one_name_get_ids_apart(server: Served) -> None:
    first, second = new(server, name="twin"), new(server, name="twin")
    assert (first, second) == ("twin", "twin-2")
    listed = [w["workflow"] for w in server.json("GET", "/api/workflows")]
    assert {first, second} <= set(listed)
    assert server.http.delete(f"/api/workflows/{second}").status_code == 204
    assert server.http.get(f"/api/workflows/{second}").status_code == 404


def test_a_replaced_document_keeps_the_ids_of_operators_that_stay(server: Served) -> None:
    id = new(server)
    before = server.json("GET", f"/api/workflows/{id}")["ids"]
    changed = {
        **SMALL,
        "operators": [*SMALL["operators"][:2], {"name": "T", "op": "sink", "inputs": ["large"]}],
    }
    after = server.json("PUT", f"/api/workflows/{id}", json=changed)["ids"]
    assert after["large"] == before["large"]
    assert "S" not in after


def test_a_version_is_restored_as_it_was(server: Served) -> None:
    id = new(server)
    saved = server.json("POST", f"/api/workflows/{id}/versions", json={"name": "first", "by": "Ana"})
    server.json("PUT", f"/api/workflows/{id}", json={**SMALL, "operators": SMALL["operators"][:1]})
    assert len(server.json("GET", f"/api/workflows/{id}")["document"]["operators"]) == 1
    server.json("POST", f"/api/workflows/{id}/versions/{saved['version']}/restore")
    assert load(server.json("GET", f"/api/workflows/{id}")["document"])._ops == load(SMALL)._ops
    listed = server.json("GET", f"/api/workflows/{id}/versions")
    assert [(v["name"], v["by"]) for v in listed] == [("first", "Ana")]
    assert server.http.post(f"/api/workflows/{id}/versions/9/restore").status_code == 404


def test_comments_are_kept_with_a_version(server: Served) -> None:
    id = new(server)
    with server.parts.rooms.use(id) as room:
        write_comment(room.doc, "why it is so")
        kept = read_comments(room.doc)
    saved = server.json("POST", f"/api/workflows/{id}/versions", json={"name": "first", "by": "Ana"})
    with server.parts.rooms.use(id) as room:
        write_comments(room.doc, [{**kept[0], "text": "something else"}])
        write_comment(room.doc, "one more")
        assert {c["text"] for c in read_comments(room.doc)} == {"something else", "one more"}
    server.json("POST", f"/api/workflows/{id}/versions/{saved['version']}/restore")
    with server.parts.rooms.use(id) as room:
        assert read_comments(room.doc) == kept


def test_every_operator_is_told_its_own_fault(server: Served) -> None:
    document = {
        "samovar": 1,
        "name": "wrong",
        "operators": [
            {"name": "v", "op": "values", "schema": "id int", "rows": [[1]]},
            {"name": "f", "op": "filter", "inputs": ["v"], "conditon": "id > 1"},
            {"name": "after", "op": "distinct", "inputs": ["f"]},
            {"name": "j", "op": "join", "inputs": ["v"]},
            {"name": "u", "op": "no_such"},
        ],
    }
    problems = server.json("POST", "/api/check", json=document)["problems"]
    assert {p["operator"] for p in problems} == {"f", "j", "u"}
    assert next(p for p in problems if p["operator"] == "f")["hint"] == "Did you mean 'condition'?"


@pytest.mark.parametrize(
    "body", [{}, {"samovar": 1}, {"samovar": 1, "name": "x", "operators": ["no", 1]}, {"samovar": 9}]
)
def test_documents_that_are_none_are_answered_not_crashed_on(server: Served, body: dict[str, Any]) -> None:
    assert server.http.post("/api/check", json=body).status_code in (200, 422)
    given = {"name": "x", "document": body}
    answer = server.http.post("/api/workflows", json=given)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


def test_a_name_that_cannot_be_is_refused_with_a_hint(server: Served) -> None:
    answer = server.http.post("/api/workflows", json={"name": "../x"})
    assert answer.status_code == 422
    assert "letters" in answer.json()["error"]["message"]


def test_files_are_written_whole_listed_read_and_deleted(server: Served) -> None:
    server.json("PUT", "/api/files/shop/orders.csv", content=b"id,amount\n1,5\n")
    listed = {f["path"]: f["bytes"] for f in server.json("GET", "/api/files")}
    assert listed["shop/orders.csv"] == 14
    assert server.http.get("/api/files/shop/orders.csv").content == b"id,amount\n1,5\n"
    answer = server.http.get("/api/files/shop/order.csv")
    assert answer.status_code == 404
    assert answer.json()["error"]["hint"] == "Did you mean 'shop/orders.csv'?"
    assert server.http.delete("/api/files/shop").status_code == 204
    assert server.json("GET", "/api/files") == []


def test_without_pages_the_server_says_how_to_build_them(server: Served, tmp_path: Path) -> None:
    answer = server.http.get("/")
    assert answer.status_code in (200, 503)
    if answer.status_code == 503:
        assert "scripts/setup" in answer.text


def test_one_server_at_a_time_works_on_a_workspace(workspace_folder: Path) -> None:
    first = Workspace(workspace_folder)
    with pytest.raises(WorkspaceError, match="Another server"):
        Workspace(workspace_folder)
    first.close()
    Workspace(workspace_folder).close()
