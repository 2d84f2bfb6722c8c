"""A run that goes on, steered over HTTP: paused, looked into, helped over a tuple, given other logic."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import websockets.sync.client as ws
from tests.server.support import TOKEN, Served

WAIT = 180.0
GATED = """
import time
from pathlib import Path


class Gated(sv.Operator):
    output = "n int, seen bigint"
    seen = sv.ValueState(0)
    last = sv.MapState()

    def process(self, row, port=0):
        self.seen += 1
        self.last[row["n"] % 3] = row["n"]
        if row["n"] == 5:
            Path({folder!r}, "arrived").touch()
            until = time.monotonic() + 60
            while not Path({folder!r}, "go").exists() and time.monotonic() < until:
                time.sleep(0.002)
                yield
        yield {{"n": row["n"], "seen": self.seen}}
"""
FUSSY = """
class Fussy(sv.Operator):
    output = "n int, part int"

    def process(self, row, port=0):
        yield {"n": row["n"], "part": 100 // (row["n"] - 5)}
"""


CHATTY = """
class Chatty(sv.Operator):
    output = "n int"

    def process(self, row, port=0):
        if row["n"] in (2, 7):
            print("here comes", row["n"])
        yield dict(row)
"""


def document(code: str) -> dict[str, Any]:
    return {
        "samovar": 1,
        "name": "steered",
        "operators": [
            {"name": "numbers", "op": "values", "schema": "n int", "rows": [[i] for i in range(10)]},
            {"name": "P", "op": "python", "inputs": ["numbers"], "code": code},
            {"name": "S", "op": "sink", "inputs": ["P"]},
        ],
    }


def start(server: Served, code: str, **options: Any) -> str:
    made = server.json("POST", "/api/workflows", json={"name": "steered", "document": document(code)})
    asked = server.json("POST", f"/api/workflows/{made['workflow']}/run", json={"by": "Ana", **options})
    return str(asked["execution"])


def until(server: Served, execution: str, there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first news of an execution for which something holds."""
    with ws.connect(f"ws://127.0.0.1:{server.port}/api/live?token={TOKEN}") as socket:
        while True:
            news = json.loads(socket.recv(timeout=WAIT))
            if news["kind"] == "notebook":
                continue
            told = news["data"] if isinstance(news["data"], list) else [news["data"]]
            found = next((e for e in told if e["execution"] == execution and there(e)), None)
            if found is not None:
                return dict(found)


def arrived(path: Path) -> None:
    end = time.monotonic() + WAIT
    while not (path / "arrived").exists():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_pause_is_seen_by_all_and_the_operator_can_be_looked_into(
    engine_server: Served, tmp_path: Path
) -> None:
    server = engine_server
    execution = start(server, GATED.format(folder=str(tmp_path)))
    base = f"/api/executions/{execution}"
    arrived(tmp_path)
    counting = until(server, execution, lambda e: bool(e["live"].get("P", {}).get("taken")))
    assert counting["live"]["P"]["taken"] >= 5  # the epoch is not over: its tuples are counted as they go
    paused = server.json("POST", f"{base}/pause", json={"by": "Bob"})
    assert (paused["status"], paused["paused_by"]) == ("paused", "Bob")

    seen = server.json("POST", f"{base}/inspect", json={"by": "Cem", "operator": "P"})
    assert seen["state"]["seen"] == {"kind": "value", "value": 6}
    assert sorted(seen["state"]["last"]["entries"]) == [[0, 3], [1, 4], [2, 5]]
    assert not seen["consistent"]
    assert seen["in_flight"][0] == {"n": 5}
    assert server.http.post(f"{base}/inspect", json={"operator": "numbers"}).status_code == 400

    late = until(server, execution, lambda e: True)  # somebody who joins now is told all of it
    assert [(d["by"], d["did"]) for d in late["deeds"]] == [
        ("Ana", "asked for the run"),
        ("Bob", "paused it"),
        ("Cem", "looked into P"),
    ]
    (tmp_path / "go").touch()
    going = server.json("POST", f"{base}/resume", json={"by": "Ana"})
    assert going["paused_by"] is None
    ended = until(server, execution, lambda e: e["status"] == "completed")
    refused = server.http.post(f"{base}/pause", json={"by": "Bob"})
    assert refused.status_code == 409
    assert "completed" in refused.json()["error"]["message"]
    kept = server.json("GET", f"/api/recordings/{ended['run']}/notebook")
    assert [e["did"] for e in kept] == ["asked for the run", "paused it", "looked into P", "let it go on"]


def test_other_logic_is_in_force_after_a_pause(engine_server: Served, tmp_path: Path) -> None:
    server = engine_server
    code = GATED.format(folder=str(tmp_path))
    execution = start(server, code)
    base = f"/api/executions/{execution}"
    arrived(tmp_path)
    server.json("POST", f"{base}/pause", json={"by": "Ana"})
    wrong = {"by": "Ana", "changes": {"P": code.replace("n int, seen", "m int, seen")}}
    answer = server.http.post(f"{base}/modify", json=wrong)
    assert answer.status_code == 422
    assert answer.json()["error"]["operator"] == "P"
    better = code.replace("self.seen += 1", "self.seen += 100")
    server.json("POST", f"{base}/modify", json={"by": "Bob", "changes": {"P": better}})
    (tmp_path / "go").touch()
    server.json("POST", f"{base}/resume", json={"by": "Ana"})
    ended = until(server, execution, lambda e: e["status"] == "completed")
    assert (ended["deeds"][2]["by"], ended["deeds"][2]["did"]) == (
        "Bob",
        "changed P (strict): in force since tuple 1 of P (epoch 0)",
    )
    rows = server.json("GET", f"/api/recordings/{ended['run']}/results/S")["rows"]
    assert rows[-1]["seen"] == 1000


def test_a_tuple_that_raised_is_held_shown_and_mended(engine_server: Served) -> None:
    server = engine_server
    execution = start(server, FUSSY, on_error="hold")
    base = f"/api/executions/{execution}"
    holding = until(server, execution, lambda e: e["status"] == "holding")
    assert [(h["operator"], h["error"].split(":")[0]) for h in holding["held"]] == [
        ("P", "ZeroDivisionError")
    ]
    (held,) = server.json("GET", f"{base}/held")
    assert held["row"] == {"n": 5}
    assert 'row["n"] - 5' in held["traceback"]
    assert server.http.post(f"{base}/retry", json={"row": {"m": 1}}).status_code in (400, 422)
    server.json("POST", f"{base}/retry", json={"by": "Bob", "row": {"n": 6}})
    ended = until(server, execution, lambda e: e["status"] == "completed")
    assert ended["held"] == []
    assert ended["deeds"][-1]["did"] == "had a held tuple processed again with n changed"
    rows = server.json("GET", f"/api/recordings/{ended['run']}/results/S")["rows"]
    assert [r["n"] for r in rows] == [0, 1, 2, 3, 4, 6, 6, 7, 8, 9]


def test_a_held_tuple_is_left_out(engine_server: Served) -> None:
    server = engine_server
    execution = start(server, FUSSY, on_error="hold")
    until(server, execution, lambda e: e["status"] == "holding")
    server.json("POST", f"/api/executions/{execution}/skip", json={"by": "Bob", "all_like_it": True})
    ended = until(server, execution, lambda e: e["status"] == "completed")
    rows = server.json("GET", f"/api/recordings/{ended['run']}/results/S")["rows"]
    assert [r["n"] for r in rows] == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_tuples_that_meet_a_condition_and_moments_are_marked(engine_server: Served, tmp_path: Path) -> None:
    server = engine_server
    execution = start(server, GATED.format(folder=str(tmp_path)))
    base = f"/api/executions/{execution}"
    arrived(tmp_path)
    assert server.http.post(f"{base}/watch", json={"operator": "P", "condition": "m = 8"}).status_code < 500
    server.json("POST", f"{base}/watch", json={"by": "Ana", "operator": "P", "condition": "n = 8"})
    marked = server.json("POST", f"{base}/interact", json={"by": "Bob", "operator": "P", "note": "here"})
    (tmp_path / "go").touch()
    ended = until(server, execution, lambda e: e["status"] == "completed")
    found = server.json("GET", f"/api/recordings/{ended['run']}")["interactions"]
    assert {i["id"]: i.get("note") for i in found}[marked["interaction"]] == "here"
    assert [i["by"] for i in found if i.get("by") == "condition"] == ["condition"]


def test_a_breakpoint_pauses_the_run_at_its_tuple(engine_server: Served, tmp_path: Path) -> None:
    server = engine_server
    execution = start(server, GATED.format(folder=str(tmp_path)))
    base = f"/api/executions/{execution}"
    arrived(tmp_path)
    asked = {"by": "Ana", "operator": "P", "condition": "n == 7"}
    (watch,) = server.json("POST", f"{base}/break", json=asked)["watches"]
    (tmp_path / "go").touch()
    paused = until(server, execution, lambda e: e["status"] == "paused" and bool(e["reached"]))
    assert (paused["reached"][0]["operator"], paused["reached"][0]["row"]) == ("P", {"n": 7})
    assert paused["paused_by"] is None
    left = server.json("DELETE", f"{base}/watches/{watch['name']}", params={"by": "Bob"})
    assert left["watches"] == []
    server.json("POST", f"{base}/resume", json={"by": "Bob"})
    assert until(server, execution, lambda e: e["status"] == "completed")["reached"] == []


def test_a_run_that_is_paused_can_be_stopped(engine_server: Served, tmp_path: Path) -> None:
    server = engine_server
    execution = start(server, GATED.format(folder=str(tmp_path)))
    arrived(tmp_path)
    server.json("POST", f"/api/executions/{execution}/pause", json={"by": "Ana"})
    stopped = server.json("POST", f"/api/executions/{execution}/stop", json={"by": "Bob"})
    assert (stopped["status"], stopped["deeds"][-1]["did"]) == ("stopped", "stopped it")


def test_what_operators_print_is_told_line_by_line(engine_server: Served) -> None:
    execution = start(engine_server, CHATTY)
    done = until(engine_server, execution, lambda e: e["status"] == "completed" and e["printed"] >= 2)
    lines = engine_server.json("GET", f"/api/executions/{execution}/console")
    assert [(one["operator"], one["epoch"], one["text"]) for one in lines] == [
        ("P", 0, "here comes 2"),
        ("P", 0, "here comes 7"),
    ]
    assert done["printed"] == 2
    assert all(one["at"] > 0 for one in lines)
    assert engine_server.http.get("/api/executions/none/console").status_code == 404


@pytest.mark.parametrize("obstacle", ["a full notebook", "a notebook that cannot be written"])
def test_a_run_is_paused_and_stopped_whatever_its_notebook_says(
    engine_server: Served, tmp_path: Path, obstacle: str
) -> None:
    execution = start(engine_server, GATED.format(folder=str(tmp_path)))
    arrived(tmp_path)
    at = f"/api/executions/{execution}"
    run = engine_server.json("GET", at)["run"]
    file = engine_server.parts.workspace.notebooks / f"{run}.jsonl"
    if obstacle == "a full notebook":
        entry = '{{"kind": "did", "id": "i{0}", "at": 1.0, "by": "", "did": "looked"}}\n'
        file.write_text("".join(entry.format(i) for i in range(6000)))
    else:
        file.unlink()
        file.mkdir()
    assert engine_server.json("POST", f"{at}/pause", json={"by": "Bob"})["status"] in ("paused", "pausing")
    stopped = engine_server.json("POST", f"{at}/stop", json={"by": "Bob"})
    assert stopped["status"] == "stopped"
    assert [d["did"] for d in stopped["deeds"]][-2:] == ["paused it", "stopped it"]
    if file.is_dir():
        file.rmdir()
