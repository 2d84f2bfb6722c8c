"""CSV files in the workbench: read as they were written, and what does not parse is shown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracle.test_csv_records import D1
from tests.server.support import Served
from tests.server.test_runs import follow, start

from samovar.server.documents.catalogue import catalogue


def preset() -> dict[str, Any]:
    """What the palette's `csv files` starts with."""
    read = next(kind for kind in catalogue() if kind["op"] == "read")
    found: dict[str, Any] = next(p["start"] for p in read["presets"] if p["title"] == "csv files")
    return found


def workflow(name: str, **fields: Any) -> dict[str, Any]:
    source = {**preset(), "name": "csv_files", "op": "read", "path": [f"{name}.csv"], **fields}
    sink = {"name": "S", "op": "sink", "inputs": ["csv_files"]}
    return {"samovar": 1, "name": name, "operators": [source, sink]}


def ended(server: Served, document: dict[str, Any], body: str) -> dict[str, Any]:
    server.http.put(f"/api/files/{document['name']}.csv", content=body.encode()).raise_for_status()
    told = follow(server, start(server, document)["execution"])[-1]
    assert told["status"] == "completed", told
    return told


def test_the_palettes_source_reads_what_spreadsheets_write(engine_server: Served) -> None:
    told = ended(engine_server, workflow("d1"), D1)
    page = engine_server.json("GET", f"/api/recordings/{told['run']}/results/S")
    assert page["rows"] == [
        {"id": 1, "note": 'say "hi", ok', "n": 10},
        {"id": 2, "note": "plain, comma", "n": 20},
        {"id": 3, "note": "multi\nline", "n": 30},
        {"id": 4, "note": "x", "n": 40},
    ]
    assert told["progress"]["rejected"] == {}


def test_rows_that_do_not_parse_are_listed_with_file_and_line(engine_server: Served) -> None:
    document = workflow("bad", schema="id int, note string, n int")
    told = ended(engine_server, document, 'id,note,n\n1,"a\nb",1\nx,"c\nd",2\n3,e,3\n4,f,4,5\n')
    assert told["progress"]["rejected"] == {"csv_files": 2}
    path = f"/api/recordings/{told['run']}/rejected"
    assert engine_server.json("GET", f"{path}/csv_files") == {
        "operator": "csv_files",
        "total": 2,
        "rows": [
            {"file": "bad.csv", "line": 4, "text": 'x,"c\nd",2'},
            {"file": "bad.csv", "line": 7, "text": "4,f,4,5"},
        ],
    }
    one = engine_server.json("GET", f"{path}/csv_files", params={"count": 1})
    assert (one["total"], len(one["rows"])) == (2, 1)
    assert engine_server.json("GET", f"{path}/S")["rows"] == []
    assert engine_server.http.get(f"{path}/none").status_code == 422


@pytest.mark.parametrize(("separator", "named"), [(";", "sep to ;"), ("\t", "sep to \\t"), ("|", "sep to |")])
def test_another_separator_is_noticed_and_named(engine_server: Served, separator: str, named: str) -> None:
    document = workflow("other")
    body = "id,note,n\n1,a,2\n".replace(",", separator)
    engine_server.http.put("/api/files/other.csv", content=body.encode()).raise_for_status()
    id = engine_server.json("POST", "/api/workflows", json={"name": "other", "document": document})[
        "workflow"
    ]
    found = engine_server.json("GET", f"/api/workflows/{id}/check")["problems"]
    assert [p["operator"] for p in found] == ["csv_files"]
    assert "one column" in found[0]["message"]
    assert named in found[0]["hint"]
    document["operators"][0]["options"]["sep"] = separator
    id = engine_server.json("POST", "/api/workflows", json={"name": "mended", "document": document})[
        "workflow"
    ]
    assert engine_server.json("GET", f"/api/workflows/{id}/check")["problems"] == []
