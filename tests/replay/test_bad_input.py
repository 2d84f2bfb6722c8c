"""What the past cannot answer: a clear error each, and a recording that is as it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import samovar as sv
from samovar.errors import (
    RecordingCorrupt,
    RecordingError,
    RecordingNotFound,
    SourceChanged,
    TimeTravelError,
    UnknownName,
)

ROWS = 8


class Sum(sv.Operator):
    """The running sum of n; 7 is too much for it if it is told so."""

    output = "n bigint, total bigint"
    total: Any = sv.ValueState(0)
    seen: Any = sv.MapState()

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        self.total += row["n"]
        self.seen[row["n"] % 3] = row["n"]
        yield {"n": row["n"], "total": self.total}


@pytest.fixture(scope="module")
def original(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with inputs and the recording of a run over them, in two epochs."""
    root = tmp_path_factory.mktemp("bad")
    (root / "in").mkdir()
    for i in range(2):
        pq.write_table(pa.table({"n": range(i * 4, i * 4 + 4)}), root / "in" / f"{i}.parquet")
    flow = sv.Workflow("sums")
    rows = flow.read.parquet(str(root / "in"), name="rows").filter("n <> 2", name="kept")
    rows.apply(Sum(), name="sum").sink("S")
    flow.run(spark=spark, record=root / "runs", epoch_bytes=1, progress=False)
    return root


@pytest.fixture(scope="module")
def shared(original: Path, spark: SparkSession) -> Iterator[Any]:
    """The past of the run, for tests that only ask."""
    past = sv.open(recording(original), spark=spark)
    yield past
    past.close()


@pytest.fixture
def past(shared: Any) -> Iterator[Any]:
    before = fingerprint(shared.path)
    yield shared
    assert fingerprint(shared.path) == before


def recording(root: Path) -> Path:
    (found,) = [p for p in (root / "runs").iterdir() if p.is_dir() and not p.name.startswith(".")]
    return found


def fingerprint(folder: Path) -> dict[str, str]:
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in ("LOCK", "WRITER")]
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.fixture
def copied(original: Path, tmp_path: Path) -> Path:
    """A recording of its own, to be damaged."""
    return Path(shutil.copytree(recording(original), tmp_path / recording(original).name))


# --- jumps ----------------------------------------------------------------------------------------------------------


def test_an_operator_that_is_not_there_is_named_with_what_is_near(past: Any) -> None:
    with pytest.raises(UnknownName, match=r"got 'summ'") as caught:
        past.jump("summ", tuples=1)
    assert "'sum'" in str(caught.value)
    m = past.jump("sum", tuples=1)
    for ask in (m.state, m.pending, m.step_over, m.step_into, m.can_step_over, m.why_not):
        with pytest.raises(UnknownName, match="got 'FX'"):
            ask("FX")


def test_a_moment_past_the_end_says_where_the_end_is(past: Any) -> None:
    with pytest.raises(TimeTravelError, match=r"at most 7 tuples of 'sum', got 8") as caught:
        past.jump("sum", tuples=8)
    assert "tuples=7" in str(caught.value.hint)
    assert caught.value.operator == "sum"
    with pytest.raises(TimeTravelError, match=r"at most 8 tuples of 'kept', got 1,000,000"):
        past.jump("kept", tuples=10**6)


def test_fewer_tuples_than_none_are_refused(past: Any) -> None:
    with pytest.raises(TimeTravelError, match=r"0 tuples or more, got -1"):
        past.jump("sum", tuples=-1)


@pytest.mark.parametrize("tuples", [1.5, "3", True])
def test_a_number_of_tuples_is_a_whole_number(past: Any, tuples: Any) -> None:
    with pytest.raises(TimeTravelError, match="whole number of tuples"):
        past.jump("sum", tuples=tuples)


@pytest.mark.parametrize("epoch", [-1, 3, 100])
def test_an_epoch_that_never_was_is_refused(past: Any, epoch: int) -> None:
    with pytest.raises(TimeTravelError, match=rf"an epoch from 0 to 2, got {epoch}"):
        past.jump(epoch=epoch)


def test_a_jump_needs_a_number_of_tuples_or_an_epoch_and_not_both(past: Any) -> None:
    with pytest.raises(TimeTravelError, match="'sum'"):
        past.jump("sum")
    with pytest.raises(TimeTravelError, match="both"):
        past.jump("sum", tuples=1, epoch=0)
    with pytest.raises(TimeTravelError, match="operator"):
        past.jump(tuples=3)


def test_a_source_takes_no_tuples(past: Any) -> None:
    with pytest.raises(TimeTravelError, match="'rows'") as caught:
        past.jump("rows", tuples=1)
    assert caught.value.operator == "rows"


# --- steps ----------------------------------------------------------------------------------------------------------


def test_stepping_with_nothing_pending_says_where_tuples_wait(past: Any) -> None:
    m = past.jump("sum", tuples=1)
    with pytest.raises(TimeTravelError, match="a tuple waiting at 'S', found none") as caught:
        m.step_over("S")
    assert "sum" in str(caught.value.hint)
    with pytest.raises(TimeTravelError, match="waiting at 'S'"):
        m.step_into("S")
    assert not m.can_step_over("S")
    assert "S" in m.why_not("S")


def test_stepping_at_the_end_of_the_run_says_so(past: Any) -> None:
    m = past.jump()
    for step in (m.step_over, m.step_into):
        with pytest.raises(TimeTravelError, match="'sum'") as caught:
            step("sum")
        assert "end of the run" in str(caught.value.hint)
    assert not m.can_step_over("sum")


def test_stepping_out_with_nothing_open_says_how_to_get_in(past: Any) -> None:
    with pytest.raises(TimeTravelError, match="none is open") as caught:
        past.jump("sum", tuples=2).step_out()
    assert "step_into" in str(caught.value.hint)
    done = past.jump("sum", tuples=2).step_into("sum").step_out()
    with pytest.raises(TimeTravelError, match="none is open"):
        done.step_out()
    with pytest.raises(TimeTravelError, match="none is open"):
        past.jump("sum", tuples=2).step_over("sum").step_out()


def test_nothing_lies_before_the_beginning(past: Any) -> None:
    for m in (past.jump("sum", tuples=0), past.jump(epoch=0), past.jump("sum", tuples=1).step_back()):
        with pytest.raises(TimeTravelError, match="beginning of the run"):
            m.step_back()


def test_a_failed_step_leaves_the_moment_as_it_was(past: Any) -> None:
    m = past.jump("sum", tuples=3)
    before = dict(m.state("sum"))
    with pytest.raises(TimeTravelError):
        m.step_into("S")
    assert dict(m.state("sum")) == before
    assert m.step_over("sum").last.row["n"] == 4


# --- inputs that are not what they were -----------------------------------------------------------------------------


@pytest.fixture
def own(original: Path, spark: SparkSession, tmp_path: Path) -> Path:
    """A run of its own, whose inputs may be changed."""
    shutil.copytree(original / "in", tmp_path / "in")
    flow = sv.Workflow("sums")
    flow.read.parquet(str(tmp_path / "in"), name="rows").apply(Sum(), name="sum").sink("S")
    flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    return tmp_path


def test_a_changed_or_missing_source_is_told_before_anything_is_computed(
    own: Path, spark: SparkSession
) -> None:
    file = own / "in" / "1.parquet"
    stat, data = file.stat(), file.read_bytes()
    before = fingerprint(recording(own))
    file.write_bytes(data + b"x")
    with pytest.raises(SourceChanged, match=r"1\.parquet of source 'rows' has changed"):
        sv.open(recording(own), spark=spark).jump("sum", tuples=1)
    file.unlink()
    past = sv.open(recording(own), spark=spark)
    with pytest.raises(SourceChanged, match=r"1\.parquet of source 'rows' is gone"):
        past.jump("sum", tuples=1)
    assert fingerprint(recording(own)) == before
    assert past.result("S").num_rows == ROWS  # what was kept can still be read
    file.write_bytes(data)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert past.jump("sum", tuples=3).state("sum")["total"] == 3
    past.close()


def test_a_source_that_goes_away_while_somebody_looks_is_told(own: Path, spark: SparkSession) -> None:
    past = sv.open(recording(own), spark=spark)
    past.jump("sum", tuples=1)
    shutil.rmtree(own / "in")
    past._session.windows._kept.clear()
    with pytest.raises(SourceChanged, match=r"'rows' is gone"):
        past.jump("sum", tuples=2)
    past.close()


# --- damaged recordings ---------------------------------------------------------------------------------------------


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))


def state_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"SVS1")


def test_a_damaged_state_file_is_named_and_what_lies_before_stays_usable(
    copied: Path, spark: SparkSession
) -> None:
    first, second = state_files(copied)
    whole = first.read_bytes()
    damage(second)
    past = sv.open(copied, spark=spark)
    assert past.jump("sum", tuples=2).state("sum")["total"] == 1
    past.close()
    damage(first)
    past = sv.open(copied, spark=spark)
    with pytest.raises(RecordingCorrupt, match=rf"{first.name} does not match its checksum"):
        past.jump("sum", tuples=5).state("sum")
    past.close()
    first.write_bytes(whole)
    past = sv.open(copied, spark=spark)
    assert past.jump("sum", tuples=3).state("sum")["total"] == 4
    past.close()


def test_a_state_file_that_is_gone_is_told(copied: Path, spark: SparkSession) -> None:
    state_files(copied)[0].unlink()
    past = sv.open(copied, spark=spark)
    with pytest.raises(RecordingCorrupt):
        past.jump("sum", tuples=5).state("sum")
    past.close()


def log_of(folder: Path) -> Path:
    (found,) = [p for p in folder.iterdir() if p.is_file() and p.name.startswith("log")]
    return found


def test_a_damaged_log_is_told(copied: Path, spark: SparkSession) -> None:
    damage(log_of(copied))
    with pytest.raises(RecordingCorrupt, match="checksum"):
        sv.open(copied, spark=spark).jump("sum", tuples=1)


def test_a_log_cut_short_keeps_the_epochs_before_the_cut(copied: Path, spark: SparkSession) -> None:
    log = log_of(copied)
    lines = log.read_bytes().split(b"\n")
    second = next(i for i, line in enumerate(lines) if b'"epoch":1' in line)
    log.write_bytes(b"\n".join(lines[:second]) + b"\n" + lines[second][: len(lines[second]) // 2])
    past = sv.open(copied, spark=spark)
    assert past.jump("sum", tuples=3).state("sum")["total"] == 4
    with pytest.raises(TimeTravelError, match="at most 3 tuples"):
        past.jump("sum", tuples=4)
    past.close()


def test_a_run_without_a_committed_epoch_has_no_past(copied: Path, spark: SparkSession) -> None:
    log = log_of(copied)
    lines = log.read_bytes().split(b"\n")
    first = next(i for i, line in enumerate(lines) if b'"epoch":0' in line)
    log.write_bytes(b"\n".join(lines[:first]) + b"\n")
    with pytest.raises(TimeTravelError, match="no past to go to"):
        sv.open(copied, spark=spark).jump("sum", tuples=0)


@pytest.mark.parametrize("content", [b"\x80\x05nonsense", b"", None])
def test_code_that_cannot_be_loaded_is_named(
    copied: Path, spark: SparkSession, content: bytes | None
) -> None:
    (file,) = (copied / "code").glob("*.pkl")
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    past = sv.open(copied, spark=spark)
    with pytest.raises(RecordingError, match="code of operator 'sum' cannot be loaded") as caught:
        past.jump("sum", tuples=1)
    assert caught.value.operator == "sum"
    assert past.result("S").num_rows == ROWS - 1


def test_a_folder_without_a_recording_is_told(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(RecordingNotFound):
        sv.open(tmp_path / "nothing", spark=spark)
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file.json").write_text(json.dumps({}))
    with pytest.raises(RecordingNotFound):
        sv.open(tmp_path / "else", spark=spark)
