"""One writer also where file locks are not kept: the second is refused, and one that was not refused cannot do harm."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from samovar.errors import RecordingInUse
from samovar.record import lease
from samovar.record.log import FORMAT, EpochCommitted, Log, RunEnded, RunStarted, read_log
from samovar.record.store import Recording

STARTED = RunStarted(at=1.0, format=FORMAT, run="r", workflow="w", samovar="0", spark="4", python="3.11.7")


def _epoch(number: int, attempt: str) -> EpochCommitted:
    return EpochCommitted(at=2.0, epoch=number, level=0, attempt=attempt)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    made = Recording.create(tmp_path / "r")
    assert made.log is not None
    made.log.append(STARTED)
    made.close()
    return made.path


_HOLD = """
import sys
from samovar.record.store import Recording
held = Recording.open(sys.argv[1], write=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_where_locks_are_not_kept(recording: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(recording)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        (recording / "LOCK").unlink()  # a new file has a lock of its own: as if there were none
        with pytest.raises(RecordingInUse, match="Another process writes"):
            Recording.open(recording, write=True)
        assert Recording.open(recording).is_written()
        other.kill()
        other.wait()
    assert not Recording.open(recording).is_written()
    Recording.open(recording, write=True).close()
    assert not (recording / "WRITER").exists()


def test_of_two_writers_the_one_that_comes_second_writes_nothing(recording: Path) -> None:
    first, second = Log(recording / "log.jsonl"), Log(recording / "log.jsonl")
    first.append(_epoch(0, "aa"))
    with pytest.raises(RecordingInUse, match="has written the log"):
        second.append(_epoch(0, "bb"))
    first.append(RunEnded(at=3.0, status="completed"))
    first.close()
    second.close()
    assert [getattr(f, "attempt", "") for f in read_log(recording / "log.jsonl")] == ["", "aa", ""]


def test_of_many_writers_at_once_each_fact_is_of_one_and_the_log_stays_sound(recording: Path) -> None:
    logs = [Log(recording / "log.jsonl") for _ in range(8)]
    start, refused = threading.Barrier(len(logs)), []

    def write(number: int) -> None:
        start.wait()
        try:
            for epoch in range(20):
                logs[number].append(_epoch(epoch, f"{number}"))
        except RecordingInUse:
            refused.append(number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(len(logs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log.close()
    _, *facts = read_log(recording / "log.jsonl")
    assert len(refused) == len(logs) - 1
    assert [f.epoch for f in facts if isinstance(f, EpochCommitted)] == list(range(20))
    assert len({f.attempt for f in facts if isinstance(f, EpochCommitted)}) == 1


def test_a_log_that_was_replaced_is_not_written(recording: Path) -> None:
    log = Log(recording / "log.jsonl")
    shutil.copy(recording / "log.jsonl", recording / "copy")
    os.replace(recording / "copy", recording / "log.jsonl")
    with pytest.raises(RecordingInUse):
        log.append(_epoch(0, "aa"))
    log.close()


def test_whoever_was_taken_for_dead_stops_before_it_writes(recording: Path) -> None:
    first = Recording.open(recording, write=True)
    assert first.log is not None
    (recording / "WRITER").unlink()
    (recording / "LOCK").unlink()
    second = Recording.open(recording, write=True)
    with pytest.raises(RecordingInUse):
        first.log.append(_epoch(0, "aa"))
    first.close()
    assert second.log is not None
    second.log.append(_epoch(0, "bb"))
    second.close()


def _elsewhere(recording: Path) -> Path:
    """A lease that a process on another machine holds, or held."""
    path = recording / "WRITER"
    path.write_text(json.dumps({"token": "x", "host": "far", "machine": "far 1", "pid": 1, "began": "1"}))
    return path


def test_a_writer_on_another_machine_is_known_by_its_signs_of_life(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "PATIENCE", 1.0)
    path, over = _elsewhere(recording), threading.Event()

    def live() -> None:
        while not over.wait(0.05):
            os.utime(path)

    alive = threading.Thread(target=live)
    alive.start()
    try:
        with pytest.raises(RecordingInUse):
            Recording.open(recording, write=True)
    finally:
        over.set()
        alive.join()
    Recording.open(recording, write=True).close()  # no sign any more


def test_a_copy_of_a_recording_that_is_being_written_can_be_written(recording: Path) -> None:
    held = Recording.open(recording, write=True)
    copy = recording.with_name("copy")
    shutil.copytree(recording, copy)
    Recording.open(copy, write=True).close()
    held.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its files were not closed
def test_a_recording_that_was_forgotten_is_nobodys(recording: Path) -> None:
    held = Recording.open(recording, write=True)
    assert held.is_written()
    del held
    gc.collect()
    Recording.open(recording, write=True).close()


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_lease_that_cannot_be_read_is_nobodys(recording: Path, content: str) -> None:
    (recording / "WRITER").write_text(content)
    Recording.open(recording, write=True).close()
