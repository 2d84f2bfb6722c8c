"""A recording's folder: one process writes it, what was not committed does not count, sizes are told by kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import samovar as sv
from samovar.errors import (
    RecordingCorrupt,
    RecordingError,
    RecordingInUse,
    RecordingNotFound,
    RecordingTooNew,
    StorageProblem,
)
from samovar.record.log import FORMAT, Counters, EpochCommitted, Log, RunEnded, RunResumed, RunStarted
from samovar.record.store import History, Recording, find_recordings, slug_unique

STARTED = RunStarted(at=1.0, format=FORMAT, run="r", workflow="w", samovar="0", spark="4", python="3")


def _epoch(number: int, attempt: str = "aa", **more: object) -> EpochCommitted:
    return EpochCommitted(at=2.0, epoch=number, level=0, attempt=attempt, **more)  # type: ignore[arg-type]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with one committed epoch, closed."""
    made = Recording.create(tmp_path / "r")
    assert made.log is not None
    made.log.append(STARTED)
    fact = _epoch(0)
    (made.epoch_folder(fact) / "results" / "S").mkdir(parents=True)
    (made.epoch_folder(fact) / "results" / "S" / "part.parquet").write_bytes(b"x" * 10)
    made.log.append(fact)
    made.close()
    return made.path


_HOLD = """
import sys
from samovar.record.store import Recording
held = Recording.open(sys.argv[1], write=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_on_the_same_recording_is_refused_until_the_first_is_gone(recording: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(recording)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RecordingInUse, match="Another process writes") as caught:
            Recording.open(recording, write=True)
        assert "samovar show" in (caught.value.hint or "")
        past = sv.open(recording)  # looking is allowed
        assert past.status == "running"
        assert len(past.history.epochs) == 1
        other.kill()
        other.wait()
    assert sv.open(recording).status == "interrupted"
    Recording.open(recording, write=True).close()


def test_a_lock_is_given_up_by_close(recording: Path) -> None:
    first = Recording.open(recording, write=True)
    with pytest.raises(RecordingInUse):
        Recording.open(recording, write=True)
    first.close()
    Recording.open(recording, write=True).close()


def test_attempts_that_were_not_committed_are_swept_when_the_recording_is_opened_for_writing(
    recording: Path,
) -> None:
    for name in ("000000-bb", "000001-cc"):
        (recording / "epochs" / name / "state").mkdir(parents=True)
        (recording / "epochs" / name / "state" / "0000.delta").write_bytes(b"half")
    Recording.open(recording)
    assert len(list((recording / "epochs").iterdir())) == 3  # a reader touches nothing
    Recording.open(recording, write=True).close()
    assert [p.name for p in (recording / "epochs").iterdir()] == ["000000-aa"]


def test_sizes_tell_bytes_by_kind(recording: Path) -> None:
    folder = recording / "epochs" / "000000-aa"
    for kind, size in {"state": 20, "deltas": 30, "stash": 40, "rejected": 50}.items():
        (folder / kind / "op").mkdir(parents=True)
        (folder / kind / "op" / "f").write_bytes(b"x" * size)
    (folder / "state" / "op" / "0000.mark0001").write_bytes(b"x" * 25)
    for kind, size in {"inputs": 60, "code": 70}.items():
        (recording / kind).mkdir()
        (recording / kind / "f").write_bytes(b"x" * size)
    sizes = Recording.open(recording).sizes()
    assert sizes.pop("log") == (recording / "log.jsonl").stat().st_size
    assert sizes == {
        "results": 10,
        "state": 20,
        "marks": 25,
        "deltas": 30,
        "stash": 40,
        "rejected": 50,
        "inputs": 60,
        "code": 70,
        "other": 0,
    }


def test_a_recording_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    made = Recording.create(tmp_path / "r")
    assert made.log is not None
    made.log.append(msgspec.structs.replace(STARTED, format=FORMAT + 1))
    made.close()
    for write in (False, True):
        with pytest.raises(RecordingTooNew, match="Update Samovar"):
            Recording.open(made.path, write=write)
    with pytest.raises(RecordingTooNew):
        sv.open(made.path)


def test_an_existing_folder_is_not_taken_for_a_new_recording(recording: Path) -> None:
    with pytest.raises(StorageProblem, match="exists already"):
        Recording.create(recording)


def test_what_is_no_recording_is_said_so_and_a_folder_of_runs_is_recognised(recording: Path) -> None:
    with pytest.raises(RecordingNotFound, match="found none"):
        Recording.open(recording / "epochs")
    with pytest.raises(RecordingNotFound, match="folder of runs"):
        Recording.open(recording.parent)
    assert find_recordings(recording.parent) == [recording]
    assert find_recordings(recording / "nowhere") == []


def test_an_epoch_that_is_missing_or_there_twice_is_damage() -> None:
    for numbers in ([0, 2], [0, 0], [1]):
        with pytest.raises(RecordingCorrupt, match="Expected epoch"):
            History.of([STARTED, *(_epoch(n) for n in numbers)])


def test_totals_add_up_epochs_that_used_different_ports() -> None:
    history = History.of(
        [
            STARTED,
            _epoch(0, counters={"J": Counters((3,), 1)}),
            _epoch(1, counters={"J": Counters((2, 5), 4), "K": Counters((1,), 1)}),
        ]
    )
    assert history.totals() == {"J": Counters((5, 5), 5), "K": Counters((1,), 1)}


def test_a_resume_takes_back_the_end() -> None:
    ended = RunEnded(at=3.0, status="failed")
    assert History.of([STARTED, ended]).ended == ended
    assert History.of([STARTED, ended, RunResumed(at=4.0, epoch=0)]).ended is None


def test_json_is_written_whole_and_damage_is_reported(recording: Path) -> None:
    store = Recording.open(recording)
    store.write_json("workflow.json", {"a": [1, 2]})
    assert store.read_json("workflow.json") == {"a": [1, 2]}
    (recording / "workflow.json").write_text('{"a": ')
    with pytest.raises(RecordingCorrupt, match="cannot be read"):
        store.read_json("workflow.json")


def test_folder_names_of_operators_are_plain_and_differ() -> None:
    names = ["FE", "a b", "a/b", "a.b", "_x", ".x", "x", "ä", ".."]
    slugs = [slug_unique(n) for n in names]
    assert len(set(slugs)) == len(names)
    assert all("/" not in s and not s.startswith((".", "_")) and s for s in slugs)


def test_a_log_without_a_start_cannot_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    Log(tmp_path / "r" / "log.jsonl").close()
    (tmp_path / "r" / "epochs").mkdir()
    with pytest.raises(RecordingError, match="no start"):
        sv.open(tmp_path / "r").resume()
