"""Recordings of earlier layouts are read: options under their old names, and a whole recording made before the move."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import samovar as sv
from samovar.graph import operators as ops
from samovar.record.store import Recording
from samovar.runtime.workflow_file import read_graph

DATA = Path(__file__).with_name("data")


def test_key_partitions_are_read_under_their_old_name(tmp_path: Path) -> None:
    recording = Recording.create(tmp_path / "run")
    operators = [
        {"name": "v", "op": "values", "schema": "a int"},
        {"name": "p", "op": "python", "inputs": ["v"], "by": ["a"], "workers": 3},
    ]
    recording.write_json("workflow.json", {"samovar": 1, "name": "w", "operators": operators})
    read = read_graph(recording).ops["p"]
    recording.close()
    assert isinstance(read, ops.Python)
    assert read.key_partitions == 3


def unpacked(folder: Path) -> Path:
    """The recording `data/flat-layout` with its inputs in a folder, as if it had been made there.

    It was made when `samovar.runtime` had no rooms: the operator's code in it names classes by where they lay then.
    """
    recording = folder / "old"
    shutil.copytree(DATA / "flat-layout", recording)
    shutil.copytree(DATA / "flat-layout-inputs", folder / "inputs")
    sources = recording / "sources.json"
    sources.write_text(sources.read_text().replace("INPUTS", str(folder / "inputs")))
    for path, _, changed, *_ in json.loads(sources.read_text())["payments"]["files"]:
        os.utime(path, (changed, changed))
    log = recording / "log.jsonl"
    started, *others = log.read_bytes().splitlines(keepends=True)
    fact = json.loads(started[9:])
    fact["files"]["sources.json"] = [sources.stat().st_size, zlib.crc32(sources.read_bytes())]
    body = json.dumps(fact, separators=(",", ":")).encode()
    log.write_bytes(b"%08x %s\n" % (zlib.crc32(body), body) + b"".join(others))
    return recording


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the recording holds code of Python 3.11")
def test_a_recording_made_before_the_rooms_opens_and_can_be_travelled_in(spark: Any, tmp_path: Path) -> None:
    with sv.open(str(unpacked(tmp_path)), spark=spark) as past:
        assert past.status == "completed"
        totals = {row["customer"]: row["total"] for row in past.result("S").to_pylist()}
        assert totals == {"ann": 28.0, "bob": 14.0, "cem": 21.0}
        moment = past.jump("FE", tuples=6)
        assert dict(moment.state("FE")["highest"]) == {"ann": 4.0, "bob": 5.0, "cem": 3.0}
        assert moment.step_over("FE").step_back().state("FE") == moment.state("FE")
