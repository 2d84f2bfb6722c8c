"""Forks: the tuples before the moment by the old logic, the rest by the new one, from the state the old one left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.record.store import Recording
from samovar.runtime.rollback import whole_epochs
from samovar.runtime.workflow_file import read_graph

ROWS = 20


class Tally(sv.Operator):
    output = "x bigint, total bigint"
    total = sv.ValueState(0)

    def __init__(self, weight: int = 1) -> None:
        self.weight = weight

    def process(self, row: Any, port: int = 0) -> Any:
        self.total += self.weight * row["x"]
        yield {"x": row["x"], "total": self.total}


def expected(cut: int, weight: int, edited: int | None = None) -> list[dict[str, int]]:
    total, made = 0, []
    for i in range(ROWS):
        x = edited if edited is not None and i == cut else i
        total += x * (1 if i < cut else weight)
        made.append({"x": x, "total": total})
    return made


@pytest.mark.parametrize("epoch_bytes", [pytest.param(None, marks=pytest.mark.slow), 1])
def test_a_fork_goes_on_from_any_tuple(epoch_bytes: int | None, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(2):
        pq.write_table(pa.table({"x": range(10 * i, 10 * i + 10)}), tmp_path / "in" / f"{i}.parquet")
    flow = sv.Workflow("tally")
    tally = flow.read.parquet(str(tmp_path / "in"), name="n").apply(Tally(), name="T")
    tally.filter("x >= 0", name="F").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, epoch_bytes=epoch_bytes)
    past = sv.open(run.recording, spark=spark)
    for cut in (0, 13):
        fork = past.jump("T", tuples=cut).fork({"T": Tally(weight=100)})
        assert fork.result("S").to_pylist() == expected(cut, 100)
    within = sv.open(fork.recording, spark=spark)
    for tuples in (5, 13, 14, 18):  # also before the fork, where the old logic was at work
        told = within.jump("T", tuples=tuples).state("T")["total"]
        assert told == expected(13, 100)[tuples - 1]["total"]
    within.close()
    corrected = past.jump("T", tuples=10).fork(row={"x": 1000})  # the first of its epoch
    assert corrected.result("S").to_pylist() == expected(10, 1, edited=1000)
    filtered = past.jump("F", tuples=15).fork({"F": "x < 0"})
    assert [row["x"] for row in filtered.result("S").to_pylist()] == list(range(15))
    within = sv.open(filtered.recording, spark=spark)
    assert [within.jump("F", tuples=n).state("F")["given"] for n in (11, 15, 19)] == [11, 15, 15]
    within.close()
    assert run.result("S").to_pylist() == expected(0, 1)  # the parent is as it was
    left = len(list((tmp_path / "runs").iterdir()))
    for bad in ({"nope": Tally()}, {"T": "x > 1"}, {"F": ["a", "b"]}):
        with pytest.raises(sv.SamovarError):
            past.jump("T", tuples=5).fork(bad)
    assert len(list((tmp_path / "runs").iterdir())) == left


def test_a_fork_of_a_run_whose_results_were_published_is_whole(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(2):
        pq.write_table(pa.table({"x": range(10 * i, 10 * i + 10)}), tmp_path / "in" / f"{i}.parquet")
    flow = sv.Workflow("tally")
    tally = flow.read.parquet(str(tmp_path / "in"), name="n").apply(Tally(), name="T")
    tally.write.parquet(str(tmp_path / "out"), name="W")
    tally.sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, epoch_bytes=1)
    past = sv.open(run.recording, spark=spark)
    fork = past.jump(epoch=1).fork({"T": Tally(weight=100)})
    assert fork.result("S").to_pylist()[:10] == run.result("S").to_pylist()[:10]
    recording = Recording.open(str(fork.recording))
    history = recording.history()
    assert any(name.startswith("results/S/") for name in history.epochs[0].files)
    assert whole_epochs(recording, history, read_graph(recording)) == (len(history.epochs), [])
    past.close()
