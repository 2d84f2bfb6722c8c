"""Loss of power: a disk as it was at the instant of a commit resumes to the right result, from that very epoch.

The recording lies on an ext4 file system in a file (a loop device), which writes nothing by itself for five minutes:
what was not flushed is lost in a copy of that file, as on a disk whose power goes. Copies are taken right after a
commit, and mounted in place of the original. Needs the right to mount.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.e2e.flows import build, everything, payments

import samovar as sv
from samovar.record.log import RunResumed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = 96 << 20


def _command(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def _mounted(image: Path, at: Path) -> Iterator[Path]:
    """`commit=300`: the journal is written every 300 s only, or when somebody flushes."""
    _command("mount", "-o", "loop,commit=300", str(image), str(at))
    try:
        yield at
    finally:
        _command("umount", "--lazy", str(at))


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A file with an empty ext4 file system in it."""
    if os.geteuid() or not all(shutil.which(tool) for tool in ("mkfs.ext4", "mount", "umount")):
        pytest.skip("needs root and mkfs.ext4, to mount a file system of its own")
    image, probe = tmp_path / "disk", tmp_path / "probe"
    with image.open("wb") as file:
        file.truncate(SIZE)
    _command("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
    probe.mkdir()
    try:
        with _mounted(image, probe):
            pass
    except OSError as error:
        pytest.skip(f"needs loop devices: {error}")
    return image


def _power_goes(disk: Path, folder: Path, spark: SparkSession, *, files: int, copies: int, seed: int) -> None:
    at = folder / "at"
    at.mkdir()
    commits = sorted(random.Random(seed).sample(range(1, files + 2), copies))
    taken: dict[int, Path] = {}
    with _mounted(disk, at):
        source = payments(at / "in", files=files, rows=40)
        os.sync()  # the input is not what is tested
        run = build(source, at / "out").start(spark=spark, record=at / "runs", run_id="r", epoch_bytes=1)

        def committed(progress: Any) -> None:
            if progress.epoch in commits:
                taken[progress.epoch] = folder / f"copy-{progress.epoch}"
                _command("cp", "--sparse=always", str(disk), str(taken[progress.epoch]))

        run.on_progress(committed)
        run.wait(240, progress=False)
        expected = everything(sv.open(at / "runs" / "r"), at / "out")
    assert sorted(taken) == commits
    for epoch, copy in taken.items():
        with _mounted(copy, at):
            past = sv.open(at / "runs" / "r", spark=spark)
            assert len(past.history.epochs) == epoch
            past.resume(spark).wait(240, progress=False)
            facts = past._recording.facts()
            assert [(f.epoch, f.damaged) for f in facts if isinstance(f, RunResumed)] == [(epoch, ())]
            assert everything(past, at / "out") == expected
            past.close()
        copy.unlink()


def test_a_disk_without_power_since_a_commit_resumes_to_the_right_result(
    disk: Path, tmp_path: Path, spark: SparkSession
) -> None:
    _power_goes(disk, tmp_path, spark, files=2, copies=2, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_twenty_disks_without_power_resume_to_the_right_result(
    disk: Path, tmp_path: Path, spark: SparkSession
) -> None:
    _power_goes(disk, tmp_path, spark, files=24, copies=20, seed=2)
