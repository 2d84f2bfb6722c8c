"""`sv.log_result`: a call is made once in a run; a replay gets its result, and makes no call."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samovar as sv
from samovar.graph.logged_results import Results, log_result, using


class Lucky(sv.Operator):
    """Adds a number drawn by chance; writes down each draw, so that a test can count them."""

    output = "x bigint, drawn double"
    total = sv.ValueState(0.0)

    def __init__(self, diary: str) -> None:
        self.diary = diary

    def draw(self) -> float:
        with Path(self.diary).open("a") as file:
            file.write("drawn\n")
        return random.SystemRandom().random()

    def process(self, row: Any, port: int = 0) -> Any:
        drawn = sv.log_result(self.draw)
        self.total += drawn
        yield {"x": row["x"], "drawn": drawn}

    def finish(self, port: int = 0) -> Any:
        yield {"x": -1, "drawn": sv.log_result(self.draw)}


def test_a_replay_gives_what_the_run_gave_and_makes_no_call(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(3):
        pq.write_table(pa.table({"x": range(10 * i, 10 * i + 10)}), tmp_path / "in" / f"{i}.parquet")
    diary = tmp_path / "diary"
    flow = sv.Workflow("lucky")
    flow.read.parquet(str(tmp_path / "in"), name="numbers").apply(Lucky(str(diary)), name="L").sink("S")
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False, epoch_bytes=1)
    drawn = {row["x"]: row["drawn"] for row in run.result("S").to_pylist()}
    calls = len(diary.read_text().splitlines())
    assert calls == 31

    past = sv.open(run.recording, spark=spark)
    for tuples in (1, 15, 30):
        moment = past.jump("L", tuples=tuples)
        assert moment.last is not None
        assert moment.last.outputs[0]["drawn"] == drawn[tuples - 1]
        assert abs(moment.state("L")["total"] - sum(drawn[x] for x in range(tuples))) < 1e-9
    assert past.jump().pending("S") == []
    lines = past.jump("L", tuples=15).lines("L")
    assert drawn[14] in [line.locals.get("drawn") for line in lines]
    assert len(diary.read_text().splitlines()) == calls


def test_outside_of_a_run_it_is_a_plain_call() -> None:
    assert log_result(divmod, 7, 2) == (3, 1)


def test_more_calls_than_in_the_run_are_told() -> None:
    with using(Results([1])):
        assert log_result(lambda: 5) == 1
        with pytest.raises(RuntimeError, match="not deterministic"):
            log_result(lambda: 5)
