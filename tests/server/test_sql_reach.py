"""SQL of the workbench stays in the workspace: no file by name, no call of Java, wherever SQL is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.support import SMALL, Served
from tests.server.test_runs import follow, start

from samovar.errors import OutsideWorkspace
from samovar.server.documents.sql_reach import check_sql
from samovar.server.spark_service import Engine

JAVA = [
    "reflect('java.lang.System', 'getProperty', 'user.home') = 'x'",
    "REFLECT /* a /* b */ c */ ('java.lang.System', 'getProperty', 'user.home') = 'x'",
    "reflect--\n('java.lang.System', 'getProperty', 'user.home') = 'x'",
    "`reflect`('java.lang.System', 'getProperty', 'user.home') = 'x'",
    "system.builtin.java_method('java.lang.System', 'getProperty', 'user.home') = 'x'",
    "r'\\' = try_reflect('java.lang.System', 'getProperty', 'user.home') or 'x' = ''",
    "IDENTIFIER('refl' || 'ect')('java.lang.System', 'getProperty', 'user.home') = 'x'",
]


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "secret.txt"
    path.write_text("hunter2\n")
    return path


def on_files(path: Path) -> list[str]:
    return [
        f"(select max(value) from text.`{path}`) is null",
        f"(from `text`.`{path}` |> select max(value)) is null",
        f"exists (table text.`{path}`)",
        f"(select max(value) from /* */ text.`{path}`) is null",
        f"(select max(value) from values (1) t(n), text.`{path}`) is null",
    ]


@pytest.fixture(scope="module")
def run(engine_server: Served) -> str:
    ended = follow(engine_server, start(engine_server, SMALL)["execution"])[-1]
    assert ended["status"] == "completed", ended
    return str(ended["run"])


def test_filters_of_results_read_no_other_file(engine_server: Served, run: str, secret: Path) -> None:
    path = f"/api/recordings/{run}/results/S"
    for where in [*JAVA, *on_files(secret)]:
        for at in (path, f"{path}/statistics", f"{path}/statistics/n"):
            answer = engine_server.http.get(at, params={"where": where})
            assert answer.status_code in (403, 422), (where, at, answer.text)
            assert "hunter2" not in answer.text
    assert engine_server.json("GET", path, params={"where": "n > 8"})["total"] == 1


def test_documents_call_no_java_and_query_no_file(engine_server: Served, secret: Path) -> None:
    for text in [*JAVA, *on_files(secret)]:
        document: dict[str, Any] = {**SMALL, "name": "reaching"}
        document["operators"] = [dict(op) for op in SMALL["operators"]]
        document["operators"][1]["condition"] = text
        found = engine_server.json("POST", "/api/check", params={"deep": True}, json=document)["problems"]
        assert [p["operator"] for p in found] == ["large"], (text, found)
        told = engine_server.json("POST", "/api/sql", json={"sql": text, "form": "condition"})
        assert told["problem"] is not None, text
    made = engine_server.http.post("/api/workflows", json={"name": "reaching", "document": document})
    if made.status_code == 201:  # what only the session can tell is refused when it is run
        asked = engine_server.json("POST", f"/api/workflows/{made.json()['workflow']}/run", json={})
        assert follow(engine_server, asked["execution"])[-1]["status"] == "failed"


@pytest.mark.parametrize("text", JAVA)
def test_calls_of_java_are_seen_in_any_writing(text: str) -> None:
    with pytest.raises(OutsideWorkspace, match="reaches outside"):
        check_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "reflected > 1 and identifier = 'a'",
        "extract(year from day) = 2024",
        "trim(both from name) = 'a' and text.field > 1",
        "from_json(body, 'a int').a = 1 or json.a = 2",
    ],
)
def test_ordinary_sql_is_let_through(text: str) -> None:
    check_sql(text)


def test_a_session_that_was_brought_along_gets_its_setting_back(spark: Any) -> None:
    key = "spark.sql.runSQLOnFiles"
    session = spark.newSession()
    assert session.conf.get(key) == "true"
    engine = Engine(session=session)
    assert engine.session().conf.get(key) == "false"
    engine.close()
    assert session.conf.get(key) == "true"
