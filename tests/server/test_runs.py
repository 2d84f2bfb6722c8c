"""Runs over HTTP, on Spark: queued, followed, looked at, travelled in."""

from __future__ import annotations

import json
from typing import Any

import pytest
import websockets.sync.client as ws
from tests.server.support import SMALL, TOKEN, Served, filled

from samovar.server.documents import gallery
from samovar.server.runs.executions import ENDED

COUNTER = """
class Counter(sv.Operator):
    output = "n int, seen bigint"
    seen = sv.ValueState(0)
    last = sv.MapState()

    def process(self, row, port=0):
        self.seen += 1
        self.last[row["n"] % 3] = row["n"]
        yield {"n": row["n"], "seen": self.seen}
"""
COUNTING: dict[str, Any] = {
    "samovar": 1,
    "name": "counting",
    "operators": [
        {"name": "numbers", "op": "values", "schema": "n int", "rows": [[i] for i in range(10)]},
        {"name": "C", "op": "python", "inputs": ["numbers"], "code": COUNTER},
        {"name": "large", "op": "filter", "inputs": ["C"], "condition": "n >= 4"},
        {"name": "S", "op": "sink", "inputs": ["large"]},
    ],
}


def follow(server: Served, execution: str) -> list[dict[str, Any]]:
    """Everything the news say of an execution until it has ended."""
    told: list[dict[str, Any]] = []
    with ws.connect(f"ws://127.0.0.1:{server.port}/api/live?token={TOKEN}") as socket:
        while not told or told[-1]["status"] not in ENDED:
            news = json.loads(socket.recv(timeout=120))
            data = news["data"] if news["kind"] == "executions" else [news["data"]]
            told += [d for d in data if d.get("execution") == execution]
    return told


def start(server: Served, document: dict[str, Any]) -> dict[str, Any]:
    id = server.json("POST", "/api/workflows", json={"name": document["name"], "document": document})[
        "workflow"
    ]
    made: dict[str, Any] = server.json("POST", f"/api/workflows/{id}/run", json={"by": "Ana"})
    return made


@pytest.fixture(scope="module")
def run(engine_server: Served) -> str:
    ended = follow(engine_server, start(engine_server, COUNTING)["execution"])[-1]
    assert ended["status"] == "completed", ended
    return str(ended["run"])


def test_a_run_is_followed_by_everybody_to_its_end(engine_server: Served) -> None:
    asked = start(engine_server, SMALL)
    assert asked["status"] == "queued"
    told = follow(engine_server, asked["execution"])
    assert told[-1]["status"] == "completed"
    assert told[-1]["by"] == "Ana"
    counted = {o["name"]: (o["taken"], o["given"]) for o in told[-1]["progress"]["operators"]}
    assert counted["large"] == (10, 6)


def test_results_come_by_page_sorted_and_filtered(engine_server: Served, run: str) -> None:
    path = f"/api/recordings/{run}/results/S"
    whole = engine_server.json("GET", path)
    assert (whole["total"], [r["n"] for r in whole["rows"]]) == (6, [4, 5, 6, 7, 8, 9])
    assert [c["name"] for c in whole["columns"]] == ["n", "seen"]
    some = engine_server.json("GET", path, params={"start": 4, "count": 10})
    assert [r["n"] for r in some["rows"]] == [8, 9]
    down = engine_server.json(
        "GET", path, params={"sort": "n", "descending": True, "count": 2, "where": "n < 8"}
    )
    assert (down["total"], [r["n"] for r in down["rows"]]) == (4, [7, 6])
    wrong = engine_server.http.get(path, params={"where": "m <"})
    assert wrong.status_code == 422
    assert "SQL" in wrong.json()["error"]["message"]
    assert engine_server.http.get(path, params={"sort": "nn"}).status_code == 422
    assert engine_server.http.get(f"/api/recordings/{run}/results/T").status_code == 422


def test_moments_are_gone_to_stepped_from_and_looked_at(engine_server: Served, run: str) -> None:
    base = f"/api/recordings/{run}"
    at = engine_server.json("POST", f"{base}/jump", json={"operator": "C", "tuples": 5})
    assert at["counters"]["C"] == {"taken": [5], "given": 5}
    assert at["last"]["row"] == {"n": 4}
    state = engine_server.json("GET", f"{base}/moments/{at['moment']}/state/C")["state"]
    assert state["seen"] == {"kind": "value", "value": 5}
    assert sorted(state["last"]["entries"]) == [[0, 3], [1, 4], [2, 2]]
    assert [t["row"]["n"] for t in engine_server.json("GET", f"{base}/moments/{at['moment']}/pending/C")][
        :2
    ] == [5, 6]

    into = _step(engine_server, base, at, "into", "C")
    assert into["counters"]["C"]["taken"] == [6]
    assert into["counters"]["large"]["taken"] == [5]
    changed = {(c["name"], str(c["key"])): (c["before"], c["after"]) for c in into["changes"]}
    assert changed[("seen", "None")] == (5, 6)
    assert changed[("last", "2")] == (2, 5)
    out = _step(engine_server, base, into, "out")
    assert out["counters"]["large"]["taken"] == [6]
    over = _step(engine_server, base, out, "over", "C")
    assert over["counters"]["S"]["taken"] == [3]
    back = _step(engine_server, base, over, "back")
    assert back["counters"] == out["counters"]
    assert engine_server.json("GET", f"{base}/moments/{at['moment']}")["counters"] == at["counters"]
    lines = engine_server.json("GET", f"{base}/moments/{over['moment']}/lines/C")
    assert any("self.seen += 1" in line["text"] for line in lines)


def test_a_moment_has_an_address_that_leads_there_again(engine_server: Served, run: str) -> None:
    base = f"/api/recordings/{run}"
    at = engine_server.json("POST", f"{base}/jump", json={"operator": "C", "tuples": 5})
    assert at["address"] == {"to": {"operator": "C", "tuples": 5}, "steps": []}
    into = _step(engine_server, base, _step(engine_server, base, at, "over", "C"), "into", "C")
    again = engine_server.json("POST", f"{base}/visit", json=into["address"])
    assert again["moment"] != into["moment"]
    assert {k: again[k] for k in ("counters", "last", "changes", "address")} == {
        k: into[k] for k in ("counters", "last", "changes", "address")
    }
    assert _step(engine_server, base, into, "back")["address"]["steps"] == [["over", "C"]]
    asked = engine_server.json("POST", f"{base}/first", json={"operator": "C", "predicate": "seen >= 7"})
    assert asked["found"]["address"]["to"] == {"operator": "C", "tuples": 7}
    never = {"to": {"operator": "C", "predicate": "seen > 99"}}
    assert engine_server.http.post(f"{base}/visit", json=never).status_code == 422


def test_what_changed_a_value_last_and_the_scope_of_a_tuple_are_found(
    engine_server: Served, run: str
) -> None:
    base = f"/api/recordings/{run}"
    end = engine_server.json("POST", f"{base}/jump", json={"operator": "C", "tuples": 9})["moment"]
    asked = {"operator": "C", "name": "last", "key": 1, "keyed": True}
    found = engine_server.json("POST", f"{base}/moments/{end}/last_change", json=asked)["found"]
    assert found["last"]["row"] == {"n": 7}
    assert found["address"]["to"] == {"operator": "C", "tuples": 8}
    value = engine_server.json(
        "POST", f"{base}/moments/{end}/last_change", json={"operator": "C", "name": "seen"}
    )
    assert value["found"]["last"]["row"] == {"n": 8}
    odd = engine_server.http.post(f"{base}/moments/{end}/last_change", json={**asked, "key": [1]})
    assert odd.status_code == 422

    at = engine_server.json("POST", f"{base}/jump", json={"operator": "C", "tuples": 3})["moment"]
    path = f"{base}/moments/{at}/scope"
    dropped = engine_server.json("POST", path, json={"of": "taken"})
    assert dropped["operators"] == ["C", "large", "numbers"]  # the filter took it and gave nothing
    waiting = engine_server.json("POST", path, json={"of": "pending", "operator": "C", "number": 1})
    assert waiting["operators"] == ["C", "S", "large", "numbers"]
    assert [t["row"]["n"] for t in waiting["tuples"]] == [4, 4, 4]
    missing = engine_server.http.post(path, json={"of": "given", "number": 900})
    assert missing.status_code == 422


def test_notes_are_pinned_to_moments_and_taken_back(engine_server: Served, run: str) -> None:
    base = f"/api/recordings/{run}"
    at = engine_server.json("POST", f"{base}/jump", json={"operator": "C", "tuples": 4})
    given = {"by": "Ana", "moment": at["moment"], "text": " look here "}
    note = engine_server.json("POST", f"{base}/notes", json=given)
    assert (note["text"], note["by"], note["address"]) == ("look here", "Ana", at["address"])
    assert engine_server.http.post(f"{base}/notes", json={**given, "text": " "}).status_code == 400
    assert note in engine_server.json("GET", f"{base}/notebook")
    engine_server.json("DELETE", f"{base}/notes/{note['id']}")
    assert note not in engine_server.json("GET", f"{base}/notebook")
    assert engine_server.http.delete(f"{base}/notes/{note['id']}").status_code == 404


def _step(
    server: Served, base: str, at: dict[str, Any], how: str, operator: str | None = None
) -> dict[str, Any]:
    given = {"moment": at["moment"], "how": how, "operator": operator}
    made: dict[str, Any] = server.json("POST", f"{base}/step", json=given)
    return made


def test_when_something_became_true_is_found(engine_server: Served, run: str) -> None:
    path = f"/api/recordings/{run}/first"
    found = engine_server.json("POST", path, json={"operator": "C", "predicate": "seen >= 7"})["found"]
    assert found["counters"]["C"]["taken"] == [7]
    assert engine_server.json("POST", path, json={"operator": "C", "predicate": "seen > 99"})["found"] is None


def test_steps_that_cannot_be_are_told_with_a_hint(engine_server: Served, run: str) -> None:
    base = f"/api/recordings/{run}"
    end = engine_server.json("POST", f"{base}/jump", json={})
    answer = engine_server.http.post(
        f"{base}/step", json={"moment": end["moment"], "how": "over", "operator": "C"}
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["kind"] == "TimeTravelError"
    lost = engine_server.http.post(f"{base}/step", json={"moment": "m99999", "how": "back"})
    assert lost.status_code == 404
    assert engine_server.http.post("/api/recordings/none/jump", json={}).status_code == 404
    assert engine_server.http.post(f"{base}/jump", json={"operator": "D", "tuples": 1}).status_code == 422


def test_a_fork_runs_with_other_code_from_its_moment(engine_server: Served, run: str) -> None:
    base = f"/api/recordings/{run}"
    at = engine_server.json("POST", f"{base}/jump", json={"operator": "C", "tuples": 5})
    changes = {"C": COUNTER.replace("self.seen += 1", "self.seen += 100")}
    asked = engine_server.json(
        "POST", f"{base}/moments/{at['moment']}/fork", json={"changes": changes, "by": "Bob"}
    )
    ended = follow(engine_server, asked["execution"])[-1]
    assert ended["status"] == "completed", ended
    rows = engine_server.json("GET", f"/api/recordings/{ended['run']}/results/S")["rows"]
    assert [r["seen"] for r in rows] == [5, 105, 205, 305, 405, 505]
    assert engine_server.json("GET", f"/api/recordings/{ended['run']}")["parent"] == run


def test_an_error_in_an_operator_names_it(engine_server: Served) -> None:
    broken = json.loads(json.dumps(COUNTING).replace("self.seen += 1", "1 / (row['n'] - 6)"))
    ended = follow(engine_server, start(engine_server, broken)["execution"])[-1]
    assert ended["status"] == "failed"
    assert ended["error"]["operator"] == "C"
    assert "ZeroDivisionError" in ended["error"]["message"]
    found = engine_server.json("POST", f"/api/recordings/{ended['run']}/failure")["found"]
    assert found["counters"]["C"]["taken"] == [6]
    again = engine_server.json("POST", f"/api/recordings/{ended['run']}/visit", json=found["address"])
    assert again["counters"] == found["counters"]


def test_a_queued_run_can_be_stopped_before_it_starts(engine_server: Served) -> None:
    first = start(engine_server, COUNTING)
    second = start(engine_server, COUNTING)
    stopped = engine_server.json("POST", f"/api/executions/{second['execution']}/stop", json={"by": "Bob"})
    assert (stopped["status"], stopped["stopped_by"], stopped["run"]) == ("stopped", "Bob", None)
    assert follow(engine_server, first["execution"])[-1]["status"] == "completed"


def test_a_run_that_goes_on_is_stopped_for_everybody(engine_server: Served) -> None:
    slow = COUNTER.replace("self.seen += 1", "self.seen += 1\n        __import__('time').sleep(20)")
    asked = start(
        engine_server, json.loads(json.dumps(COUNTING).replace(json.dumps(COUNTER), json.dumps(slow)))
    )
    with ws.connect(f"ws://127.0.0.1:{engine_server.port}/api/live?token={TOKEN}") as socket:
        status = ""
        while status != "running":
            news = json.loads(socket.recv(timeout=60))["data"]
            status = next(
                (n["status"] for n in _listed(news) if n.get("execution") == asked["execution"]), status
            )
        stopped = engine_server.json("POST", f"/api/executions/{asked['execution']}/stop", json={"by": "Bob"})
        assert (stopped["status"], stopped["stopped_by"]) == ("stopped", "Bob")
        while status != "stopped":
            news = json.loads(socket.recv(timeout=60))["data"]
            status = next(
                (n["status"] for n in _listed(news) if n.get("execution") == asked["execution"]), status
            )


def _listed(news: Any) -> list[dict[str, Any]]:
    return news if isinstance(news, list) else [news]


def test_a_workflow_that_cannot_run_is_refused_at_once(engine_server: Served) -> None:
    unfinished = {**SMALL, "operators": SMALL["operators"][:2]}
    id = engine_server.json("POST", "/api/workflows", json={"name": "open", "document": unfinished})[
        "workflow"
    ]
    answer = engine_server.http.post(f"/api/workflows/{id}/run", json={})
    assert answer.status_code == 422
    assert "sink" in answer.json()["error"]["message"]


def test_spark_checks_columns_and_tells_what_each_operator_gives(engine_server: Served) -> None:
    wrong = json.loads(json.dumps(COUNTING).replace("n >= 4", "m >= 4"))
    checked = engine_server.json("POST", "/api/check", json=wrong)
    assert checked["deep"]
    assert [p["operator"] for p in checked["problems"]] == ["large"]
    assert checked["schemas"]["C"] == [{"name": "n", "type": "int"}, {"name": "seen", "type": "bigint"}]


def test_the_example_runs_and_bobs_tuple_is_found(
    engine_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "_ROWS", 4_000)  # Bob's payments are among any number of rows
    id = engine_server.json("POST", "/api/examples/fraud")["workflow"]
    asked = engine_server.json("POST", f"/api/workflows/{id}/run", json={})
    ended = follow(engine_server, asked["execution"])[-1]
    assert ended["status"] == "completed", ended
    question = {"operator": "FD", "predicate": "'Bob' in blacklist"}
    found = engine_server.json("POST", f"/api/recordings/{ended['run']}/first", json=question)["found"]
    assert found["last"]["row"]["currency"] == "JPY"
    assert engine_server.http.post("/api/examples/frod").json()["error"]["hint"] == "Did you mean 'fraud'?"


DRAWN: dict[str, Any] = {
    "samovar": 1,
    "name": "drawn",
    "operators": [
        {"name": "made", "op": "generate", "rows": 100, "columns": {"who": "id % 4", "text": "'some tea'"}},
        {"name": "some", "op": "filter", "inputs": ["made"], "condition": "who < 2"},
        {"name": "none", "op": "filter", "inputs": ["some"], "condition": "false", "enabled": False},
        {"name": "bars", "op": "chart", "inputs": ["none"], "chart": "bar", "x": "who"},
        {"name": "odd", "op": "chart", "inputs": ["made"], "chart": "histogram", "x": "text"},
    ],
}


def test_charts_are_drawn_and_disabled_operators_passed_by(engine_server: Served) -> None:
    ended = follow(engine_server, start(engine_server, DRAWN)["execution"])[-1]
    assert ended["status"] == "completed", ended
    bars, odd = engine_server.json("GET", f"/api/recordings/{ended['run']}/charts")
    assert bars["series"] == [{"name": None, "points": [[0, 25.0], [1, 25.0]]}]
    assert odd["error"]["kind"] == "RunError"
    assert "numbers" in odd["error"]["message"]


def test_a_run_up_to_an_operator_keeps_its_rows(engine_server: Served) -> None:
    made = engine_server.json("POST", "/api/workflows", json={"name": "drawn", "document": DRAWN})
    asked = engine_server.json("POST", f"/api/workflows/{made['workflow']}/run", json={"to": "some"})
    ended = follow(engine_server, asked["execution"])[-1]
    assert ended["status"] == "completed", ended
    page = engine_server.json("GET", f"/api/recordings/{ended['run']}/results/some_result")
    assert page["total"] == 50
    refused = engine_server.http.post(f"/api/workflows/{made['workflow']}/run", json={"to": "sone"})
    assert refused.json()["error"]["hint"] == "Did you mean 'some'?"


NONSENSE: list[Any] = [
    None,
    [],
    {},
    "x",
    {"name": "\u0000", "by": 1},
    {
        "moment": "m1",
        "how": "over",
        "operator": "\ud83d",
        "tuples": -1,
        "epoch": -1,
        "predicate": "(",
        "name": "x",
    },
    {"operator": "C", "tuples": 10**30, "predicate": "1/0", "changes": {"C": "class"}, "row": {"z": 1}},
    {
        "samovar": 1,
        "name": "x",
        "operators": [None, {"name": 5}, {"name": "a", "op": "values", "schema": "((", "rows": 3}],
    },
]


@pytest.mark.slow
def test_no_route_fails_on_nonsense(engine_server: Served, run: str) -> None:
    at = engine_server.json("POST", f"/api/recordings/{run}/jump", json={"operator": "C", "tuples": 2})[
        "moment"
    ]
    known = {"run": run, "moment": at, "operator": "C", "sink": "S", "number": "1"}
    engine_server.json("POST", "/api/workflows", json={"name": "target", "document": SMALL})
    tried = 0
    for places in (known, dict.fromkeys(known, "no%20such%2f..")):
        for method, path in filled(
            engine_server.app, {"id": "target", "path": "a/b", "name": "none", **places}
        ):
            starts = path.endswith(("/run", "/fork"))  # what they can read would start a run
            for body in NONSENSE[:2] if starts else NONSENSE:
                query = {"start": "-1", "count": "0", "where": "(", "sort": "?", "limit": "-5"}
                answer = engine_server.http.request(
                    method,
                    path,
                    content=json.dumps(body),
                    headers={"content-type": "application/json"},
                    params=query if body else None,
                )
                tried += 1
                assert answer.status_code < 500 or path == "/", (method, path, body, answer.text)
    assert tried > 300
