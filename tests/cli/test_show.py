"""`samovar show`."""

from __future__ import annotations

import json
import pickle
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shop import Samovar

from samovar.record.log import Log, RunEnded


def test_a_run_is_shown_with_workflow_counters_and_sizes(samovar: Samovar, recorded: Path) -> None:
    said = samovar("show", "latest", "--dir", recorded.parent)
    assert said.code == 0, said.err
    assert "completed" in said.out
    assert "● tally" in said.out
    assert "filter amount > 10" in said.out
    assert "1 row of 'orders' did not parse" in said.out
    assert "multiLine=True" in said.out
    assert "results" in said.out.splitlines()[-1]


@pytest.mark.parametrize("name", ["path", "id", "prefix"])
def test_a_run_is_found_by(samovar: Samovar, recorded: Path, name: str) -> None:
    named = {"path": recorded, "id": recorded.name, "prefix": recorded.name[:9]}[name]
    assert json.loads(samovar("show", named, "--dir", recorded.parent, "--json").out)["run"] == recorded.name


def test_a_prefix_of_several_is_refused(samovar: Samovar, recorded: Path, tmp_path: Path) -> None:
    for name in ("shop-1", "shop-2"):
        shutil.copytree(recorded, tmp_path / name)
    said = samovar("show", "shop", "--dir", tmp_path)
    assert said.code == 1
    assert "shop-1, shop-2" in said.err
    missing = samovar("show", "shpo-1", "--dir", tmp_path)
    assert "Did you mean 'shop-1'?" in missing.err
    assert "No recordings in" in samovar("show", "--dir", tmp_path / "empty").err


def test_json_has_everything(samovar: Samovar, recorded: Path) -> None:
    told = json.loads(samovar("show", recorded, "--json", "--epochs").out)
    assert told["status"] == "completed"
    assert [op["name"] for op in told["operators"]][:2] == ["orders", "tally"]
    assert told["operators"][1]["inputs"] == ["orders"]
    assert told["rejected"] == {"orders": 1}
    assert told["epochs"][0]["epoch"] == 0
    assert told["sizes"]["log"] > 0
    assert told["results"]["all"]["published"] is True


def test_rows_of_a_sink(samovar: Samovar, recorded: Path) -> None:
    said = samovar("show", recorded, "S", "--rows", 2)
    assert "the first 2" in said.out
    assert "Bob" in said.out
    told = json.loads(samovar("show", recorded, "S", "--json").out)
    assert [row["total"] for row in told["head"]][:2] == [20.0, 5020.0]
    assert "written to" in samovar("show", recorded, "all").out
    assert "Did you mean 'S'?" in samovar("show", recorded, "s").err


def test_epochs_log_code_and_rejected(samovar: Samovar, recorded: Path) -> None:
    assert "tuples in" in samovar("show", recorded, "--epochs").out
    log = samovar("show", recorded, "--log").out
    assert "run-started" in log
    assert "run-ended" in log
    facts = json.loads(samovar("show", recorded, "--log", "--json").out)
    assert facts[0]["fact"] == "run-started"
    assert "class Tally" in samovar("show", recorded, "--code", "tally").out
    assert json.loads(samovar("show", recorded, "--code", "tally", "--json").out)["operator"] == "tally"
    assert "an operator with Python code" in samovar("show", recorded, "--code", "large").err
    assert "line 6: oops,Bob,much" in samovar("show", recorded, "--rejected", "orders").out


def test_a_failed_run_shows_its_error_and_how_to_go_on(
    samovar: Samovar, recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "failed"
    shutil.copytree(recorded, copy)
    log = Log(copy / "log.jsonl")
    log.append(
        RunEnded(at=1.0, status="failed", error="Operator 'tally' raised ValueError", operator="tally")
    )
    log.close()
    said = samovar("show", copy)
    assert "Operator 'tally' raised ValueError" in said.out
    assert "samovar run --resume failed" in said.out


def test_a_damaged_recording_is_shown_as_far_as_it_goes(
    samovar: Samovar, recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "damaged"
    shutil.copytree(recorded, copy)
    with (copy / "log.jsonl").open("ab") as file:
        file.write(b"00000000 {}\n")
    said = samovar("show", copy)
    assert said.code == 0, said.err
    assert "damaged" in said.out
    assert "● tally" in said.out


def test_looking_unpickles_nothing(samovar: Samovar, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    for arguments in (
        [],
        ["S"],
        ["--epochs"],
        ["--log"],
        ["--code", "tally"],
        ["--rejected", "orders"],
        ["--json"],
    ):
        assert samovar("show", recorded, *arguments).code == 0


class Planted:
    """Runs code when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_a_planted_pickle_is_not_run(samovar: Samovar, recorded: Path, tmp_path: Path) -> None:
    copy, mark = tmp_path / "evil-1", tmp_path / "ran"
    shutil.copytree(recorded, copy)
    body = pickle.dumps([Planted(mark)])
    for epoch in (copy / "epochs").iterdir():
        (epoch / "decisions").mkdir()
        (epoch / "decisions" / "x.pkl").write_bytes(body)
    (copy / "sources.json").write_text("{}")  # so that any name is looked up among the decisions
    lines = []
    for line in (
        (copy / "log.jsonl").read_bytes().splitlines()
    ):  # whoever plants a file can name it in the log
        fact = json.loads(line[9:])
        if fact["fact"] == "run-started":
            fact["files"]["sources.json"] = [2, zlib.crc32(b"{}")]
        elif fact["fact"] == "epoch":
            fact["files"]["decisions/x.pkl"] = [len(body), zlib.crc32(body)]
        text = json.dumps(fact, separators=(",", ":")).encode()
        lines.append(b"%08x %s\n" % (zlib.crc32(text), text))
    (copy / "log.jsonl").write_bytes(b"".join(lines))
    said = samovar("show", copy, "--rejected", "orders")
    assert not mark.exists()
    assert said.code == 1
    assert "x.pkl: it was not opened" in said.err
