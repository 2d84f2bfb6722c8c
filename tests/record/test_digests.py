"""Digests of files: what was sealed is told when it changed, in any bit; what was not touched is not read again."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from samovar.errors import RecordingCorrupt
from samovar.record import digests
from samovar.record.digests import check, problem_of, seal


def _folder(at: Path) -> Path:
    made = at / "epochs" / "000000-aa"
    for name, size in {
        "results/S/part-0.parquet": 3_000,
        "results/W/day=1/part-0.csv": 100,
        "state/FE/0000.delta": 50,
        "state/FE/0000.mark0001": 50,
        "state/FE/arrival-0.arrow": 70,
        "decisions/rows.pkl": 20,
        "errors/0.failure": 10,
        "results/S/_SUCCESS": 0,
        "results/S/.part-0.parquet.crc": 12,
    }.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(name).randbytes(size))
    return made


def test_all_files_that_have_no_checksum_of_their_own_are_digested(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    assert sorted(seal(folder)) == [
        "decisions/rows.pkl",
        "results/S/part-0.parquet",
        "results/W/day=1/part-0.csv",
        "state/FE/arrival-0.arrow",
    ]
    assert not list(folder.rglob("*.crc"))


def test_any_flipped_bit_is_told_with_the_files_name(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    file = folder / "results/S/part-0.parquet"
    digest = seal(folder)["results/S/part-0.parquet"]
    whole = file.read_bytes()
    for bit in random.Random(5).sample(range(8 * len(whole)), 60):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        with pytest.raises(RecordingCorrupt, match=r"part-0\.parquet does not match its checksum") as caught:
            check(file, digest)
        assert "resume" in (caught.value.hint or "")
    file.write_bytes(whole)
    check(file, digest)


def test_a_file_cut_short_or_gone_is_told(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    file = folder / "results/S/part-0.parquet"
    digest = seal(folder)["results/S/part-0.parquet"]
    os.truncate(file, 0)
    assert problem_of(file, digest) == f"Expected 3000 bytes in {file}, found 0."
    file.unlink()
    assert problem_of(file, digest) == f"{file} is gone."


def test_a_file_is_read_once_and_again_when_it_was_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(tmp_path)
    sealed = seal(folder)
    read: list[int] = []
    crc = digests._crc
    monkeypatch.setattr(digests, "_crc", lambda file: read.append(1) or crc(file))
    for name, digest in sealed.items():
        check(folder / name, digest)
    assert not read
    file = folder / "decisions/rows.pkl"
    times = file.stat()
    file.write_bytes(file.read_bytes()[::-1])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # as old as it was, by its looks
    assert problem_of(file, sealed["decisions/rows.pkl"]) is not None
    assert len(read) == 1
