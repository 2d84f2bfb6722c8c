"""Differences over HTTP: two runs compared, rows side by side, the way to the cause; columns in figures."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.support import Served
from tests.server.test_runs import COUNTER, COUNTING, follow, start

OTHER = COUNTER.replace("self.seen += 1", "self.seen += 1 if row['n'] != 6 else 2")


@pytest.fixture(scope="module")
def runs(engine_server: Served) -> tuple[str, str]:
    server = engine_server
    first = start(server, COUNTING)
    ended = [follow(server, first["execution"])[-1]]
    id = first["workflow"]
    version = server.json("POST", f"/api/workflows/{id}/versions", json={"name": "before", "by": "Ana"})
    changed = [{**op, "code": OTHER} if op["name"] == "C" else op for op in COUNTING["operators"]]
    server.json("PUT", f"/api/workflows/{id}", json={**COUNTING, "operators": changed})
    for options in ({}, {"version": version["version"]}):
        asked = server.json("POST", f"/api/workflows/{id}/run", json={"by": "Ana", **options})
        ended.append(follow(server, asked["execution"])[-1])
    assert [e["status"] for e in ended] == ["completed"] * 3
    same = server.json("POST", "/api/compare", json={"left": ended[0]["run"], "right": ended[2]["run"]})
    assert same["equivalent"], same["explanation"]  # the version ran as it was
    return str(ended[0]["run"]), str(ended[1]["run"])


def test_two_runs_are_compared_and_the_cause_is_gone_to(engine_server: Served, runs: tuple[str, str]) -> None:
    server = engine_server
    asked: dict[str, Any] = {"left": runs[0], "right": runs[1], "order": "keys", "keys": ["n"]}
    found = server.json("POST", "/api/compare", json=asked)
    assert not found["equivalent"]
    assert found["rows"] == {"left": 6, "right": 6}
    assert found["pairs"][0] == {
        "left": {"n": 6, "seen": 7},
        "right": {"n": 6, "seen": 8},
        "differ": ["seen"],
    }
    for side, run in zip(("left", "right"), runs, strict=True):
        cause = server.json("POST", f"/api/comparisons/{found['comparison']}/cause", json={"side": side})
        assert (cause["run"], cause["operator"]) == (run, "C")
        assert cause["moment"]["counters"]["C"]["taken"] == [6]
        waiting = server.json("GET", f"/api/recordings/{run}/moments/{cause['moment']['moment']}/pending/C")
        assert waiting[0]["row"] == {"n": 6}
    alike = server.json("POST", "/api/compare", json={**asked, "columns": ["n"]})
    assert alike["equivalent"]
    loose = server.json("POST", "/api/compare", json={"left": runs[0], "right": runs[1]})
    assert [p["differ"] for p in loose["pairs"]] == [["seen"]] * 4


def test_comparisons_that_cannot_be_are_refused(engine_server: Served, runs: tuple[str, str]) -> None:
    server = engine_server
    both = {"left": runs[0], "right": runs[1]}
    assert server.http.post("/api/compare", json={**both, "right": "none"}).status_code == 404
    assert server.http.post("/api/compare", json={**both, "order": "keys"}).status_code == 400
    assert server.http.post("/api/compare", json={**both, "sink": "T"}).status_code in (400, 422)
    assert server.http.post("/api/comparisons/none/cause", json={}).status_code == 404


def test_columns_are_told_in_figures(engine_server: Served, runs: tuple[str, str]) -> None:
    path = f"/api/recordings/{runs[0]}/results/S/statistics"
    by_name = {c["name"]: c for c in engine_server.json("GET", path)}
    assert by_name["n"] == {
        "name": "n",
        "type": "int",
        "rows": 6,
        "nulls": 0,
        "distinct": 6,
        "least": 4,
        "greatest": 9,
        "mean": 6.5,
    }
    some = engine_server.json("GET", path, params={"where": "n > 7"})
    assert [c["rows"] for c in some] == [2, 2]
    ranges = engine_server.json("GET", f"{path}/seen")
    assert (len(ranges), sum(r["rows"] for r in ranges)) == (10, 6)
    assert engine_server.http.get(path, params={"where": "m <"}).status_code == 422
    assert engine_server.http.get(f"{path}/m").json()["error"]["hint"]
