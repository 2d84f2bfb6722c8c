"""What each kind of look promises: direct ones may show what Texera's Figure 5 does, snapshots never."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Start
from tests.runtime.stamping import SlowNetwork
from tests.runtime.steered import WAIT, numbers, wait_for

import samovar as sv
from samovar.control import messages as m


class Counts(sv.Operator):
    """Counts its tuples, slowly; at one of them it waits for a file."""

    output = "x bigint"

    def __init__(self, folder: str = "", stop: int = -1, seconds: float = 0.0) -> None:
        self.folder, self.stop, self.seconds = folder, stop, seconds
        self.n = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.n += 1
        time.sleep(self.seconds)
        if row["x"] == self.stop:
            Path(self.folder, "arrived").touch()
            until = time.monotonic() + WAIT
            while not Path(self.folder, "go").exists() and time.monotonic() < until:
                time.sleep(0.002)
                yield
        yield {"x": row["x"]}


def n(found: Any) -> int:
    """How many tuples an operator has taken, over its key partitions."""
    return sum(part.state["n"] for part in found.parts)


def test_between_stages_a_direct_look_shows_tuples_nobody_sent(start_on_both: Start, tmp_path: Path) -> None:
    flow = sv.Workflow("stages")
    rows = flow.read.parquet(numbers(tmp_path, 20, files=2), name="numbers")
    given = rows.apply(Counts(), name="A").drop("nothing", name="all")  # two stages
    given.apply(Counts(str(tmp_path), stop=30), name="B").sink("S")
    run = start_on_both(flow, record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")  # in the second epoch: A is done with it, B is at its 31st tuple
    assert (n(run.inspect("A")), n(run.inspect("B"))) == (20, 31)
    found = run.snapshot()
    assert (n(found["A"]), n(found["B"])) == (40, 31)
    assert found["A"].consistent
    assert found["B"].consistent
    assert run.status == "running"
    run.pause()
    found = run.snapshot("B", "A")  # a pause is left as it is
    assert (n(found["A"]), n(found["B"])) == (40, 31)
    assert run.status == "paused"
    (tmp_path / "go").touch()
    run.resume()
    assert run.result("S").num_rows == 40
    assert n(run.snapshot("B")["B"]) == 40


def test_while_tuples_flow_a_late_question_shows_figure_5_and_a_snapshot_never(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delay(message: m.ToWorker) -> float:
        late = isinstance(message, m.StateWanted) and message.operator == "B"
        return 0.05 if late else 0.0

    SlowNetwork(monkeypatch, delay)
    flow = sv.Workflow("chained")
    rows = flow.read.parquet(numbers(tmp_path, 1500), name="numbers")
    rows.apply(Counts(seconds=0.002), name="A").apply(Counts(), name="B").sink("S")
    run = start(flow, record=tmp_path / "runs")
    desk = run.desk
    assert desk.wait_for(lambda: bool(desk.busy), WAIT)
    direct = [(n(run.inspect("A")), n(run.inspect("B"))) for _ in range(5)]
    assert any(b > a for a, b in direct)  # A's state does not show that it sent what B took
    looks = [run.snapshot("A", "B")]
    while len(looks) < 8:
        while n(run.inspect("A")) <= n(looks[-1]["A"]):
            assert run.status == "running"
        looks.append(run.snapshot("A", "B"))
    assert all(0 <= n(look["A"]) - n(look["B"]) <= 1 for look in looks)
    assert n(looks[-1]["A"]) > n(looks[0]["A"])  # it did not stand still in between
    assert run.status == "running"
    assert run.result("S").num_rows == 1500
