"""`samovar runs`."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from pathlib import Path

import pytest
from tests.cli.shop import Samovar


def test_an_empty_folder_says_how_to_get_a_recording(samovar: Samovar, tmp_path: Path) -> None:
    said = samovar("runs", "--dir", tmp_path)
    assert said.code == 0
    assert "samovar demo" in said.out


def test_recordings_are_listed_with_what_they_hold(samovar: Samovar, recorded: Path) -> None:
    said = samovar("runs", "--dir", recorded.parent)
    assert recorded.name in said.out
    assert "completed" in said.out
    (told,) = json.loads(samovar("runs", "--dir", recorded.parent, "--json").out)
    assert told["run"] == recorded.name
    assert told["workflow"] == "shop"
    assert told["tuples"] == 4  # the row that did not parse is not one
    assert told["bytes"] > 0
    assert told["damage"] is None


@pytest.mark.parametrize("damage", ["line", "newer", "empty", "workflow"])
def test_a_damaged_recording_does_not_hide_the_others(
    samovar: Samovar, recorded: Path, tmp_path: Path, damage: str
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    shutil.copytree(recorded, good)
    shutil.copytree(recorded, bad)
    log = bad / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    if damage == "line":
        lines[1] = lines[1].replace(b'"epoch"', b'"epich"', 1)
        log.write_bytes(b"".join(lines))
    elif damage == "newer":
        body = re.sub(rb'"reader":\d+', b'"reader":99', lines[0][9:-1])
        log.write_bytes(b"%08x %s\n" % (zlib.crc32(body), body) + b"".join(lines[1:]))
    elif damage == "empty":
        log.write_bytes(b"")
    else:
        (bad / "workflow.json").write_text("{")
    said = samovar("runs", "--dir", tmp_path)
    assert said.code == 0, said.err
    assert "good" in said.out
    told = {r["run"]: r for r in json.loads(samovar("runs", "--dir", tmp_path, "--json").out)}
    assert told["good"]["status"] == "completed"
    assert told["bad"]["status"] == ("interrupted" if damage == "empty" else "damaged")
