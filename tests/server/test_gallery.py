"""The gallery of examples, and a server that gives Spark's memory back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.support import Served
from tests.server.test_runs import follow

from samovar.server.documents.gallery import EXAMPLES, write_example

GALLERY = [name for name in EXAMPLES if name != "fraud"]


@pytest.mark.parametrize("name", GALLERY)
def test_every_example_is_sound(engine_server: Served, name: str, tmp_path: Path) -> None:
    document = write_example(name, tmp_path)
    checked = engine_server.json("POST", "/api/check?deep=true", json=document)
    assert checked["problems"] == []
    assert set(checked["schemas"]) == {o["name"] for o in document["operators"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_every_example_runs_and_shows_something(engine_server: Served, name: str) -> None:
    id = engine_server.json("POST", f"/api/examples/{name}")["workflow"]
    asked = engine_server.json("POST", f"/api/workflows/{id}/run", json={})
    ended = follow(engine_server, asked["execution"])[-1]
    assert ended["status"] == "completed", ended
    charts = engine_server.json("GET", f"/api/recordings/{ended['run']}/charts")
    assert charts
    for chart in charts:
        assert chart.get("error") is None, chart
        assert any(s["points"] for s in chart["series"]), chart["name"]
    recording = engine_server.json("GET", f"/api/recordings/{ended['run']}")
    for sink in recording["sinks"]:
        assert engine_server.json("GET", f"/api/recordings/{ended['run']}/results/{sink}")["total"] > 0, sink


def test_an_example_has_its_story_on_the_canvas(server: Served) -> None:
    from pycrdt import Map

    id = server.json("POST", "/api/examples/taxi")["workflow"]
    with server.parts.rooms.use(id) as room:
        (comment,) = room.doc.get("comments", type=Map).values()
        assert "kilometres" in str(comment["text"])
        top = min(place[1] for place in room.read().layout.values())
        assert comment["y"] + comment["height"] < top


IDLE = """
import os, sys, time
from samovar.server.spark_service import Engine

def java():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parts = open(f"/proc/{pid}/stat").read().rsplit(")", 1)
            if "java" in parts[0] and parts[1].split()[0] != "Z" and int(parts[1].split()[1]) == os.getpid():
                found.append(pid)
        except OSError:
            pass
    return found

engine = Engine("local[1]", {"spark.ui.enabled": "false"})
assert engine.idle == 0
first = engine.session()
assert first.range(3).count() == 3
assert engine.idle >= 0 and len(java()) == 1, java()
engine.rest()
assert not engine.ready and java() == [], java()
assert engine.session().range(4).count() == 4
assert len(java()) == 1
engine.close()
print("rested")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_resting_engine_has_no_java_process_and_starts_again() -> None:
    done = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, timeout=200)
    assert done.stdout.strip().endswith("rested"), done.stdout + done.stderr
