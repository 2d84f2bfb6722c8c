"""`samovar attach`: a run of this process, joined from another one over its socket."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.cli.shop import Samovar
from tests.runtime.steered import WAIT, Gated, numbers, wait_for

import samovar as sv
from samovar import testing
from samovar.cli.attach.attach_interpreter import LIVE
from samovar.cli.attach.attach_screen import LiveScreen
from samovar.control.door import ADDRESS, Visit, read_address
from samovar.errors import ChannelProblem, RecordingError, UnknownName


def attach_in_a_process(run: Any, commands: str, *options: str) -> list[dict[str, Any]]:
    """What the commands answered, each in a line of JSON; asked by a process of its own."""
    said = subprocess.run(
        [
            sys.executable,
            "-m",
            "samovar.cli.main",
            "attach",
            str(run.recording),
            "--json",
            "-c",
            commands,
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.stdout, said.stderr
    return [json.loads(line) for line in said.stdout.splitlines()]


Attach = Callable[[Any, str], list[dict[str, Any]]]


@pytest.fixture
def attach(samovar: Samovar) -> Attach:
    """The same command in this process: it talks to the run over its socket."""

    def answers(run: Any, commands: str) -> list[dict[str, Any]]:
        said = samovar("attach", run.recording, "--json", "-c", commands)
        assert said.out, said.err
        return [json.loads(line) for line in said.out.splitlines()]

    return answers


def gated(tmp_path: Path) -> sv.Workflow:
    """Two epochs; in the second one 'G' waits at tuple 25."""
    flow = sv.Workflow("attached")
    rows = flow.read.parquet(numbers(tmp_path, rows=20, files=2), name="numbers")
    rows.apply(Gated(str(tmp_path), stop=25), name="G").sink("S")
    return flow


@pytest.fixture
def run(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """A run that waits inside its second epoch."""
    made = gated(tmp_path).start(spark=spark, record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    yield made
    (tmp_path / "go").touch()
    made.stop()


def test_another_process_pauses_looks_sets_breakpoints_and_goes_on(
    run: Any, tmp_path: Path, attach: Attach
) -> None:
    status, paused, seen, flying = attach_in_a_process(run, "status; pause; inspect G; flight G 2")
    assert (status["status"], status["epoch"]) == ("running", 1)
    assert paused["status"] == run.status == "paused"  # also when the visitor is gone
    states = {s["name"]: s for s in seen["states"]}
    assert states["n"]["items"] == [{"key": None, "value": 26}]
    assert states["seen"]["entries"] == 26
    assert not seen["consistent"]
    assert [r["x"] for r in flying["rows"]] == [25, 26]
    (tmp_path / "go").touch()
    made, listed, resumed, reached, stats = attach(run, "break G x == 31; breakpoints; resume; wait; stats")
    assert made["name"] == listed["breakpoints"][0]["name"]
    assert resumed["ok"]
    assert reached["reached"][0]["row"] == {"x": 31}
    assert {o["name"]: o["taken"] for o in stats["operators"]}["G"] >= 20
    refused, *_ = attach(run, "inspect nobody")
    assert refused["error"]["type"] == "UnknownName"
    marked, _, _ = attach(run, "interact G why; unwatch B1; resume")
    assert marked["interaction"] == "I1"
    assert run.result("S").to_pydict()["n"] == list(range(1, 41))


@pytest.mark.slow
def test_time_travel_reaches_the_epochs_committed_while_the_run_is_paused(run: Any, tmp_path: Path) -> None:
    paused, jumped, state, over = attach_in_a_process(
        run, "pause; jump G 7; state G n; over", "--master", "local[1]", "--conf", "spark.driver.memory=512m"
    )
    assert paused["status"] == "paused"
    assert jumped["moment"]["tuples"] == 7
    assert state["states"][0]["items"] == [{"key": None, "value": 7}]
    assert over["last"]["row"] == {"x": 7}
    assert run.status == "paused"


def test_every_live_command_has_a_drawing() -> None:
    flow = sv.Workflow("drawn")
    flow.read.parquet("nowhere", name="numbers").sink("S")
    screen = LiveScreen(Console(), flow.graph())
    assert [name for name in LIVE if name not in screen._shows] == []


class Picky(sv.Operator):
    output = "x bigint"
    seen = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.seen += 1
        if row["x"] in (3, 7, 9):
            raise ValueError(f"not {row['x']}")
        yield {"x": row["x"]}


MENDED = """\
import samovar as sv

class Mended(sv.Operator):
    output = "x bigint"
    seen = sv.ValueState(0)

    def process(self, row, port=0):
        yield {"x": -row["x"]}
"""


def test_held_tuples_are_seen_edited_skipped_and_mended_from_outside(tmp_path: Path, attach: Attach) -> None:
    flow = sv.Workflow("held")
    flow.read.parquet(numbers(tmp_path, rows=10), name="numbers").apply(Picky(), name="P").sink("S")
    run = testing.start(flow, record=tmp_path / "runs", on_error="hold")
    assert run.wait_until("holding", timeout=WAIT) == "holding"
    held, _, second, _, third = attach(run, "held; retry x=100; wait holding; skip; wait holding")
    assert held["held"][0]["row"] == {"x": 3}
    assert "ValueError: not 3" in held["held"][0]["traceback"]
    assert second["held"][0]["row"] == {"x": 7}
    assert third["held"][0]["row"] == {"x": 9}
    (tmp_path / "mended.py").write_text(MENDED)
    (fixed,) = attach(run, f"fix P={tmp_path / 'mended.py'}:Mended")
    assert fixed["ok"], fixed
    assert sorted(run.result("S").to_pydict()["x"]) == sorted(-x for x in range(10))


PICKY = """\
import samovar as sv

class Picky(sv.Operator):
    output = "x bigint"
    seen = sv.ValueState(0)

    def process(self, row, port=0):
        self.seen += 1
        if row["x"] in (3, 7):
            raise ValueError(f"not {row['x']}")
        yield {"x": row["x"]}

def build():
    flow = sv.Workflow("picky")
    flow.read.parquet("in", name="numbers").apply(Picky(), name="P").sink("S")
    return flow
"""


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.ours, theirs = pty.openpty()
        self.said = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "samovar.cli.main", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm", "SAMOVAR_CACHE": str(cwd)},
            start_new_session=True,
        )
        os.close(theirs)

    def expect(self, text: bytes, seconds: float = 120.0) -> None:
        until = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < until, self.said[-3000:]
            if select.select([self.ours], [], [], 0.5)[0]:
                self.said += os.read(self.ours, 1 << 16)
        self.said = self.said[self.said.index(text) + len(text) :]

    def type(self, line: str) -> None:
        os.write(self.ours, line.encode() + b"\r")


@pytest.mark.slow
def test_a_run_that_holds_leaves_a_prompt_and_goes_on_when_all_is_decided(tmp_path: Path) -> None:
    numbers(tmp_path, rows=10)
    (tmp_path / "picky.py").write_text(PICKY)
    at = Terminal("run", "picky.py", "--hold", "--conf", "spark.ui.enabled=false", cwd=tmp_path)
    try:
        at.expect(b"not 3")
        at.expect(b"P>")  # what is typed before the prompt is there gets lost
        at.type("retry x=30")
        at.expect(b"not 7")
        at.expect(b"P>")  # what is typed before the prompt is there gets lost
        at.type("skip")
        at.expect(b"recorded in")
        assert at.process.wait(60) == 0
    finally:
        at.process.kill()
        os.close(at.ours)
    (made,) = (tmp_path / "runs").iterdir()
    assert sorted(sv.open(made).result("S").to_pydict()["x"]) == [0, 1, 2, 4, 5, 6, 8, 9, 30]


def test_only_who_knows_the_secret_comes_in_and_only_while_it_runs(tmp_path: Path) -> None:
    run = testing.start(gated(tmp_path), record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    folder = Path(run.recording)
    assert os.stat(folder / ADDRESS).st_mode & 0o777 == 0o600
    address, name, secret = read_address(folder)
    with pytest.raises(ChannelProblem, match="did not let us in"):
        Visit(address, name, bytes(32))
    visit = Visit(address, name, secret)
    assert visit.ask("status")["status"] == "running"
    with pytest.raises(UnknownName, match="dance"):
        visit.ask("dance")
    with socket.create_connection(address) as stranger:
        stranger.sendall(b"\xff" * 100)  # no request: it is sent away, and nobody else
        assert visit.ask("stop")["status"] == "stopped"
    assert run.wait_until("stopped", timeout=WAIT) == "stopped"
    run.wait_ended(WAIT)
    with pytest.raises(RecordingError, match="which does not"):
        read_address(folder)
