"""The log: facts come back as they went in; what a crash or a bad disk leaves is recognised."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import msgspec
import pytest

from samovar.errors import RecordingCorrupt, RecordingTooNew, StorageProblem
from samovar.record.log import (
    FORMAT,
    Counters,
    EpochCommitted,
    Fact,
    Log,
    ResultPublished,
    RunEnded,
    RunResumed,
    RunStarted,
    StateFile,
    read_log,
)

STARTED = RunStarted(
    at=1.0, format=FORMAT, run="r", workflow="w", samovar="0", spark="4", python="3", options={"buckets": 4}
)
EPOCH = EpochCommitted(
    at=2.5,
    epoch=0,
    level=0,
    attempt="1f3a",
    units={"paid": (0, 3)},
    counters={"FE": Counters((3, 4), 5)},
    state={"FE": (StateFile(0, True, 100, 7),)},
    rejected={"paid": 2},
    bytes=12,
)
FACTS: list[Fact] = [
    STARTED,
    EPOCH,
    RunResumed(at=3.0, epoch=1),
    ResultPublished(at=4.0, operator="S", path="out\nput/ä", files=3),
    RunEnded(at=5.0, status="failed", error="line\nbreak", operator="FE"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def _write(path: Path, facts: list[Fact]) -> None:
    log = Log(path)
    for fact in facts:
        log.append(fact)
    log.close()


def test_facts_come_back_in_order_and_unchanged(path: Path) -> None:
    _write(path, FACTS)
    assert list(read_log(path)) == FACTS


def test_a_log_opened_again_goes_on_after_the_last_fact(path: Path) -> None:
    _write(path, FACTS[:2])
    _write(path, FACTS[2:])
    assert list(read_log(path)) == FACTS


def test_a_fact_is_on_disk_when_append_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(path.stat().st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    log = Log(path)
    for n, fact in enumerate(FACTS, 1):
        log.append(fact)
        assert len(synced) == n
        assert synced[-1] == path.stat().st_size
        assert list(read_log(path)) == FACTS[:n]
    log.close()


def test_a_last_line_cut_at_any_byte_is_dropped_and_written_over(path: Path) -> None:
    _write(path, FACTS[:2])
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for length in range(start, len(whole)):
        path.write_bytes(whole[:length])
        assert list(read_log(path)) == FACTS[:1]
        _write(path, [FACTS[2]])
        assert list(read_log(path)) == [FACTS[0], FACTS[2]]


def test_damage_in_the_middle_is_reported_with_the_number_of_sound_facts(path: Path) -> None:
    _write(path, FACTS)
    data = bytearray(path.read_bytes())
    third = sum(len(line) + 1 for line in bytes(data).split(b"\n")[:2])
    data[third + 20] ^= 1
    path.write_bytes(data)
    facts = read_log(path)
    assert [next(facts), next(facts)] == FACTS[:2]
    with pytest.raises(RecordingCorrupt, match="Line 3 of") as caught:
        next(facts)
    assert caught.value.hint == "The 2 facts before it are sound."


def test_every_flipped_bit_of_a_fact_is_noticed(path: Path) -> None:
    _write(path, FACTS[:2])
    whole = path.read_bytes()
    end = whole.index(b"\n")
    for at in range(end):
        for bit in (0, 5):
            data = bytearray(whole)
            data[at] ^= 1 << bit
            path.write_bytes(data)
            with pytest.raises(RecordingCorrupt):
                list(read_log(path))


def test_a_newer_format_is_refused_before_its_facts_are_read(path: Path) -> None:
    newer = msgspec.structs.replace(STARTED, format=FORMAT + 1)
    _write(path, [newer, EPOCH])
    with pytest.raises(
        RecordingTooNew, match=f"format {FORMAT + 1}; this Samovar reads up to {FORMAT}"
    ) as caught:
        list(read_log(path))
    assert "Update Samovar" in (caught.value.hint or "")


def test_a_full_disk_leaves_no_part_of_a_fact(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(path)
    log.append(FACTS[0])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StorageProblem, match="No space left"):
            log.append(FACTS[1])
    assert list(read_log(path)) == FACTS[:1]
    log.append(FACTS[2])
    log.close()
    assert list(read_log(path)) == [FACTS[0], FACTS[2]]


def test_an_empty_log_holds_no_facts(path: Path) -> None:
    Log(path).close()
    assert list(read_log(path)) == []


def _line(body: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(body), body)


def test_a_fact_of_a_kind_that_is_not_known_asks_for_a_newer_samovar(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path)
    log.append(STARTED)
    log.close()
    with path.open("ab") as file:
        file.write(_line(b'{"fact":"epoch-dreamt","at":2.0,"of":"sheep"}'))
    with pytest.raises(RecordingTooNew, match="'epoch-dreamt'") as caught:
        list(read_log(path))
    assert STARTED.samovar in (caught.value.hint or "")
    assert "Update Samovar" in (caught.value.hint or "")


def test_a_known_fact_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(_line(msgspec.json.encode(STARTED)) + _line(b'{"fact":"epoch","at":2.0,"epoch":"one"}'))
    with pytest.raises(RecordingCorrupt, match=r"Line 2 of .* is not a valid 'epoch' fact"):
        list(read_log(path))


@pytest.mark.parametrize(
    ("format", "reader", "opens"),
    [(FORMAT + 1, 0, False), (FORMAT + 1, FORMAT, True), (FORMAT + 1, FORMAT + 1, False)],
)
def test_a_newer_format_says_which_readers_it_needs(
    tmp_path: Path, format: int, reader: int, opens: bool
) -> None:
    path = tmp_path / "log.jsonl"
    first = msgspec.structs.replace(STARTED, format=format, reader=reader)
    path.write_bytes(_line(msgspec.json.encode(first)))
    if opens:
        assert list(read_log(path)) == [first]
        return
    with pytest.raises(RecordingTooNew, match=f"reads up to {FORMAT}"):
        list(read_log(path))


def test_every_bit_of_a_log_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path)
    log.append(STARTED)
    log.append(EpochCommitted(at=2.0, epoch=0, level=0, attempt="aa"))
    log.close()
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises((RecordingCorrupt, RecordingTooNew)):
            list(read_log(path))
