"""Other logic for a run that goes on: no tuple meets old and new logic, and time travel runs each epoch's own code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Start, spark_start
from tests.runtime.steered import WAIT, Gated, numbers, wait_for

import samovar as sv
from samovar.errors import RunError, UnknownName, WorkflowError


class Stamped(sv.Operator):
    """Stamps its version on each tuple and counts."""

    output = "x bigint, version bigint, n bigint"

    def __init__(self, version: int) -> None:
        self.version = version
        self.n = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.n += 1
        yield {"x": row["x"], "version": self.version, "n": self.n}


class Renamed(sv.Operator):
    """The same with its counter under another name."""

    output = "x bigint, version bigint, n bigint"

    def __init__(self) -> None:
        self.count = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.count += 1
        yield {"x": row["x"], "version": 3, "n": self.count}


class Wider(sv.Operator):
    output = "x bigint, y bigint"


def stamped(tmp_path: Path) -> sv.Workflow:
    flow = sv.Workflow("stamped")
    rows = flow.read.parquet(numbers(tmp_path, files=3), name="numbers")
    rows.apply(Gated(str(tmp_path), stop=25), name="G").drop("n").apply(Stamped(1), name="V").sink("S")
    return flow


def modified_inside(start: Start, tmp_path: Path) -> sv.Run:
    run = start(stamped(tmp_path), record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    run.pause()  # in the second epoch: it will be done again
    run.modify({"V": Stamped(2)})
    (tmp_path / "go").touch()
    run.resume()
    table = run.result("S").to_pydict()
    assert table["version"] == [1] * 20 + [2] * 40
    assert table["n"] == list(range(1, 61))
    return run


def test_new_logic_is_in_force_from_an_epoch_on_and_takes_the_state_over(
    start: Start, tmp_path: Path
) -> None:
    run = modified_inside(start, tmp_path)
    assert run.inspect("V").state == {"version": 2, "n": 60}


def test_time_travel_runs_each_epochs_own_code(spark: Any, tmp_path: Path) -> None:
    run = modified_inside(spark_start(spark), tmp_path)
    past = sv.open(str(run.recording), spark=spark)
    assert past.jump("V", tuples=10).state("V") == {"version": 1, "n": 10}
    assert past.jump("V", tuples=30).state("V") == {"version": 2, "n": 30}
    assert past.jump("V", tuples=10).step_into("V").last.outputs[0]["version"] == 1
    assert past.jump("V", tuples=30).step_into("V").last.outputs[0]["version"] == 2


def test_a_long_epoch_is_done_again_with_the_new_logic_although_nothing_is_paused(
    start_on_both: Start, tmp_path: Path
) -> None:
    """The whole input is one epoch, which would end only when it may."""
    run = start_on_both(stamped(tmp_path), record=tmp_path / "runs", epoch_bytes=1 << 40)
    wait_for(tmp_path / "arrived")
    run.modify({"V": Stamped(2)})
    (tmp_path / "go").touch()
    table = run.result("S").to_pydict()
    assert table["version"] == [2] * 60
    assert table["n"] == list(range(1, 61))
    assert len(run.history.epochs) == 1


def test_a_transfer_turns_the_old_state_into_the_new(start: Start, tmp_path: Path) -> None:
    run = start(stamped(tmp_path), record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    run.pause()
    run.modify({"V": Renamed()}, transfer=lambda old: {"count": old["n"]})
    (tmp_path / "go").touch()
    run.resume()
    table = run.result("S").to_pydict()
    assert table["version"] == [1] * 20 + [3] * 40
    assert table["n"] == list(range(1, 61))


def test_what_cannot_be_put_into_force_changes_nothing(start: Start, tmp_path: Path) -> None:
    run = start(stamped(tmp_path), record=tmp_path / "runs", epoch_bytes=1)
    wait_for(tmp_path / "arrived")
    with pytest.raises(WorkflowError, match="Expected x:bigint"):
        run.modify({"V": Wider()})
    with pytest.raises(UnknownName):
        run.modify({"W": Stamped(2)})
    with pytest.raises(RunError, match="could not be handed"):
        run.modify({"V": Renamed()}, transfer=lambda old: {"count": old["nothing"]})
    (tmp_path / "go").touch()
    assert set(run.result("S").to_pydict()["version"]) == {1}


class Raises(Stamped):
    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        if row["x"] == 27:
            raise ValueError("not this one")
        yield from super().process(row, port)


def test_a_held_tuple_is_tried_again_with_mended_logic(start: Start, tmp_path: Path) -> None:
    flow = sv.Workflow("mended")
    rows = flow.read.parquet(numbers(tmp_path, files=3), name="numbers")
    rows.apply(Raises(1), name="V").sink("S")
    run = start(flow, record=tmp_path / "runs", epoch_bytes=1, on_error="hold")
    assert run.wait_until("holding", timeout=WAIT) == "holding"
    assert run.held is not None
    assert run.held.row == {"x": 27}
    run.modify({"V": Stamped(2)})
    table = run.result("S").to_pydict()
    assert table["x"] == list(range(60))
    assert table["n"] == list(range(1, 61))
    assert table["version"] == [1] * 20 + [2] * 40
