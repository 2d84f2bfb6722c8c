"""What routes answer is in the OpenAPI description, from which the types of the pages are made."""

from __future__ import annotations

from tests.server.support import Served

LOOSE = {
    "GET /api/examples": "texts by name",
    "GET /api/files/{path}": "a file",
    "GET /api/workflows/{id}/export": "a file",
    "GET /api/workflows/{id}/versions/{number}": "holds a document, which has a JSON Schema of its own",
    "GET /api/recordings/{run}/charts": "has a form for each kind of chart",
}
"""Answers without a type of their own, and why."""


def test_every_answer_is_described(server: Served) -> None:
    schemas = {
        f"{method.upper()} {path}": answer["content"]["application/json"]["schema"]
        for path, operations in server.json("GET", "/openapi.json")["paths"].items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
        if status.startswith("2") and "application/json" in answer.get("content", {})
    }
    assert {route for route, schema in schemas.items() if "$ref" not in str(schema)} == set(LOOSE)


def test_an_answer_has_all_that_the_server_knows(server: Served) -> None:
    made = server.json("POST", "/api/workflows", json={"name": "described"})
    assert made.keys() == {"workflow", "people", "changed"}
    assert server.json("GET", "/api/workflows/described").keys() == {*made, "document", "layout", "ids"}
