"""Short epochs under control: one that takes too long is cut, a modification says what became of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Start
from tests.runtime.steered import WAIT, Gated, numbers, wait_for
from tests.runtime.test_control_modify import Stamped, stamped

import samovar as sv
from samovar.runtime.run_thread import RunThread


class Slow(sv.Operator):
    """Counts, and takes its time for each tuple."""

    output = "x bigint, n bigint"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.n = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        time.sleep(self.seconds)
        self.n += 1
        yield {"x": row["x"], "n": self.n}


def slow(tmp_path: Path, files: int, seconds: float) -> sv.Workflow:
    flow = sv.Workflow("slow")
    rows = flow.read.parquet(numbers(tmp_path, files=files), name="numbers")
    rows.apply(Slow(seconds), name="W").sink("S")
    return flow


@pytest.fixture
def aim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs aim at half a second."""
    pacer_of = RunThread._pacer
    monkeypatch.setattr(RunThread, "_pacer", lambda self, level: replace(pacer_of(self, level), aim=0.5))


@pytest.mark.usefixtures("aim")
def test_an_epoch_that_takes_too_long_is_done_again_shorter(start: Start, tmp_path: Path) -> None:
    """All of the input is as small as a first epoch."""
    run = start(slow(tmp_path, files=40, seconds=0.01), record=tmp_path / "runs")
    result = run.result("S").to_pydict()
    assert sorted(result["x"]) == list(range(800))
    assert result["n"] == list(range(1, 801))
    assert len(run.history.epochs) >= 4
    assert max(epoch.counters["W"].given for epoch in run.history.epochs) < 400
    assert "epoch 0 was given up" in run.progress.note
    assert "done again shorter" in run.progress.note


@pytest.mark.usefixtures("aim")
def test_one_file_that_takes_too_long_goes_on(start: Start, tmp_path: Path) -> None:
    run = start(slow(tmp_path, files=1, seconds=0.1), record=tmp_path / "runs")
    assert run.result("S").num_rows == 20
    assert run.progress.note == ""


def test_a_strict_modification_returns_since_when_it_is_in_force(start: Start, tmp_path: Path) -> None:
    run = start(stamped(tmp_path), record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")  # in the second epoch
    modified = run.modify({"V": Stamped(2)})
    assert (modified.epoch, dict(modified.taken), modified.exact, modified.late) == (
        1,
        {"V": 20},
        True,
        False,
    )
    assert str(modified) == "in force since tuple 21 of V (epoch 1)"
    (tmp_path / "go").touch()
    assert run.result("S").to_pydict()["version"] == [1] * 20 + [2] * 40


def test_a_modification_inside_an_epoch_returns_about_where_workers_are(start: Start, tmp_path: Path) -> None:
    flow = sv.Workflow("gated")
    rows = flow.read.parquet(numbers(tmp_path), name="numbers")
    rows.apply(Gated(str(tmp_path)), name="G").sink("S")
    run = start(flow, record=tmp_path / "runs")
    wait_for(tmp_path / "arrived")
    run.pause()
    modified = run.modify({"G": Gated(str(tmp_path), stop=-1)}, consistency="backward")
    assert (modified.epoch, modified.exact, modified.late) == (0, False, False)
    assert modified.taken["G"] <= 6
    assert str(modified).startswith("in force since about tuple ")
    (tmp_path / "go").touch()
    run.resume()
    assert run.result("S").to_pydict()["n"] == list(range(1, 21))


@pytest.mark.parametrize("consistency", ["strict", "none"])
def test_a_modification_after_the_last_epoch_is_too_late_and_returns_so(
    start: Start, tmp_path: Path, consistency: Any
) -> None:
    run = start(stamped(tmp_path), record=tmp_path / "runs", epoch_bytes=1 << 40)
    wait_for(tmp_path / "arrived")
    run.pause(mode="aligned")
    (tmp_path / "go").touch()
    assert run.wait_until("paused", timeout=WAIT) == "paused"
    modified = run.modify({"V": Stamped(2)}, consistency=consistency)
    assert modified.late
    assert str(modified) == "too late: the last epoch was committed before"
    run.resume()
    assert set(run.result("S").to_pydict()["version"]) == {1}


def test_a_modification_at_any_time_is_in_force_or_too_late(start: Start, tmp_path: Path) -> None:
    """What is returned is what the rows show."""
    for number in range(8):
        folder = tmp_path / str(number)
        flow = sv.Workflow("race")
        rows = flow.read.parquet(numbers(folder, files=3), name="numbers")
        rows.apply(Slow(0.002), name="W").drop("n").apply(Stamped(1), name="V").sink("S")
        run = start(flow, record=folder / "runs", epoch_bytes=1)
        time.sleep(0.04 * number)
        try:
            modified = run.modify({"V": Stamped(2)})
        except sv.errors.CommandRefused:
            modified = None
        version = run.result("S").to_pydict()["version"]
        if modified is None or modified.late:
            assert version == [1] * 60
        else:
            assert version == [1] * modified.taken["V"] + [2] * (60 - modified.taken["V"])
