"""A tuple that raises stops its run in place; whatever is decided, every other tuple counts once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runtime.conftest import Start
from tests.runtime.steered import WAIT, numbers

import samovar as sv
from samovar.errors import CommandRefused, UnknownName


class Fussy(sv.Operator):
    """Divides by the distance to some numbers; changes its state and gives a row before it raises."""

    output = "x bigint, y bigint, n bigint"
    seen = sv.MapState()
    last = sv.ListState()

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.n = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.n += 1
        self.last.append(row["x"])
        self.seen.setdefault(row["x"] % 3, []).append(row["x"])
        number = sv.log_result(lambda: self.n * 10)
        yield {"x": row["x"], "y": -1, "n": number}
        for bad in self.bad:
            yield {"x": row["x"], "y": 100 // (row["x"] - bad), "n": self.n}


class Sums(sv.Operator):
    """Behind another in a chain: what it took must be undone with the other's tuple."""

    output = "x bigint, total bigint"

    def __init__(self) -> None:
        self.total = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.total += row["n"]
        yield {"x": row["x"], "total": self.total}


def fussy(tmp_path: Path, *bad: int, rows: int = 12, **options: Any) -> sv.Workflow:
    flow = sv.Workflow("fussy")
    made = flow.read.parquet(numbers(tmp_path, rows, **options), name="numbers")
    made.apply(Fussy(*bad), name="F").apply(Sums(), name="T").sink("S")
    return flow


def expected(xs: list[int], bad: int) -> list[tuple[int, int]]:
    """What comes out for these tuples, none of them the bad one."""
    made, total = [], 0
    for n, x in enumerate(xs, 1):
        for given in (n * 10, n):
            total += given
            made.append((x, total))
    return made


def rows_of(run: Any) -> list[tuple[int, int]]:
    table = run.result("S").to_pydict()
    return list(zip(table["x"], table["total"], strict=True))


def held(run: Any) -> Any:
    assert run.wait_until("holding", timeout=WAIT) == "holding", run.error
    return run.held


def test_a_held_tuple_tells_everything_and_can_be_skipped(start: Start, tmp_path: Path) -> None:
    run = start(fussy(tmp_path, 7), record=tmp_path / "runs", on_error="hold")
    found = held(run)
    assert (found.operator, found.row, found.epoch) == ("F", {"x": 7}, 0)
    assert "ZeroDivisionError" in found.error
    assert "100 // (row" in found.traceback
    assert found.locals["bad"] == "7"
    assert "'n': 8" in found.state
    with pytest.raises(CommandRefused, match="Expected a paused run"):
        run.resume()
    run.skip()
    assert rows_of(run) == expected([x for x in range(12) if x != 7], 7)
    rejected = run.rejected("F").to_pylist()
    assert [(r["epoch"], r["row"]) for r in rejected] == [(0, {"x": 7})]
    assert "ZeroDivisionError" in rejected[0]["error"]
    assert run.history.totals()["F"].taken == (12,)


def test_replays_and_forks_leave_a_skipped_tuple_out_as_well(spark: Any, tmp_path: Path) -> None:
    run = fussy(tmp_path, 7).start(spark=spark, record=tmp_path / "runs", on_error="hold")
    held(run)
    run.skip()
    run.wait(progress=False)
    past = sv.open(str(run.recording), spark=spark)
    moment = past.jump("F", tuples=12)  # computed again, with the same tuple left out
    assert moment.state("F")["n"] == 11
    assert moment.state("F")["last"] == [x for x in range(12) if x != 7]
    assert past.jump("F", tuples=8).state("F")["n"] == 7
    fork = past.jump("F", tuples=10).fork({"T": Sums()})
    assert rows_of(fork) == expected([x for x in range(12) if x != 7], 7)


def test_an_edited_tuple_is_processed_once_from_the_state_before_it(start: Start, tmp_path: Path) -> None:
    run = start(fussy(tmp_path, 7), record=tmp_path / "runs", on_error="hold")
    held(run)
    with pytest.raises(UnknownName):
        run.retry(row={"z": 1})
    run.retry(row={"x": 70})
    xs = [70 if x == 7 else x for x in range(12)]
    assert rows_of(run) == expected(xs, 7)
    assert run.inspect("F").state["last"] == xs


def test_a_replay_meets_the_edited_tuple(spark: Any, tmp_path: Path) -> None:
    run = fussy(tmp_path, 7).start(spark=spark, record=tmp_path / "runs", on_error="hold")
    held(run)
    run.retry(row={"x": 70})
    xs = [70 if x == 7 else x for x in range(12)]
    assert rows_of(run) == expected(xs, 7)
    past = sv.open(str(run.recording), spark=spark)
    assert past.jump("F", tuples=12).state("F")["last"] == xs
    assert past.jump("F", tuples=8).state("F")["last"][-1] == 70


def test_a_tuple_tried_again_is_held_again_and_counts_once(start: Start, tmp_path: Path) -> None:
    run = start(fussy(tmp_path, 7), record=tmp_path / "runs", on_error="hold")
    first = held(run)
    for _ in range(3):
        run.retry()
        again = held(run)
        assert again.row == first.row
        assert again.state == first.state
    run.skip()
    assert rows_of(run) == expected([x for x in range(12) if x != 7], 7)


def test_all_like_it_are_skipped_and_kept(start: Start, tmp_path: Path) -> None:
    flow = fussy(tmp_path, 3, 5, rows=6, files=2)
    run = start(flow, record=tmp_path / "runs", on_error="hold", epoch_bytes=1)
    assert held(run).row == {"x": 3}
    run.skip(all_like_it=True)
    run.wait(progress=False)
    assert [r["row"]["x"] for r in run.rejected("F").to_pylist()] == [3, 5]
    assert sorted({x for x, _ in rows_of(run)}) == [x for x in range(12) if x not in (3, 5)]


def test_a_held_run_can_be_inspected_paused_and_stopped(start: Start, tmp_path: Path) -> None:
    run = start(fussy(tmp_path, 7), record=tmp_path / "runs", on_error="hold")
    held(run)
    assert run.inspect("F").state["n"] == 8
    run.pause()
    assert run.status == "paused"
    run.stop()
    assert run.status == "stopped"


def test_a_run_that_was_stopped_while_it_held_is_resumed_and_holds_again(spark: Any, tmp_path: Path) -> None:
    run = fussy(tmp_path, 7).start(spark=spark, record=tmp_path / "runs", on_error="hold")
    held(run)
    run.stop()
    again = sv.open(str(run.recording)).resume(spark=spark)
    assert held(again).row == {"x": 7}
    again.skip()
    assert rows_of(again) == expected([x for x in range(12) if x != 7], 7)


class Decoder(sv.Operator):
    """Reads a text as a number, as Texera's section 3.4.2 has it: the encoder wrote some in another way."""

    output = "id bigint, value bigint"
    stateless = True

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        yield {"id": row["id"], "value": int(row["code"], 16)}


def test_the_decoder_meets_what_the_encoder_wrote_wrongly(start: Start, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    codes = ["0x0f", "0x10", "fifteen", "0x12", "-", "0x14"]
    pq.write_table(pa.table({"id": range(6), "code": codes}), tmp_path / "in" / "0.parquet")
    flow = sv.Workflow("decoder")
    flow.read.parquet(str(tmp_path / "in"), name="coded").apply(Decoder(), name="D").sink("S")
    run = start(flow, record=tmp_path / "runs", on_error="hold")
    found = held(run)
    assert found.row == {"id": 2, "code": "fifteen"}
    assert "invalid literal" in found.error
    run.retry(row={"code": "0x0f"})
    assert held(run).row == {"id": 4, "code": "-"}
    run.skip()
    assert sorted(run.result("S").to_pydict()["value"]) == [15, 15, 16, 18, 20]
    past = sv.open(str(run.recording))
    assert past.rejected("D").to_pydict()["row"] == [{"id": 4, "code": "-"}]
    assert len(past.history.epochs) == 1


def test_decisions_outlive_the_process(spark: Any, tmp_path: Path) -> None:
    flow = fussy(tmp_path, 3, 5, 9, rows=12)
    run = flow.start(spark=spark, record=tmp_path / "runs", on_error="hold")
    assert held(run).row == {"x": 3}
    run.retry(row={"x": 30})
    assert held(run).row == {"x": 5}
    run.skip(all_like_it=True)
    run.wait(progress=False)
    first = rows_of(run)
    recording = Path(str(run.recording))
    lines = (recording / "log.jsonl").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"fact":"epoch"' not in line and b'"fact":"run-ended"' not in line]
    (recording / "log.jsonl").write_bytes(
        b"".join(kept)
    )  # as if the process had died before the epoch counted
    again = sv.open(recording).resume(spark=spark)
    again.wait(progress=False)
    assert rows_of(again) == first
    assert [r["row"]["x"] for r in again.rejected("F").to_pylist()] == [5, 9]
