"""Addresses for recordings: paths and file: addresses are taken, those of object stores and HDFS refused everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import samovar as sv
from samovar.cli.main import app
from samovar.errors import StorageProblem
from samovar.record.addresses import local_folder
from samovar.server.workspace import Workspace


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        ("runs", "runs"),
        ("/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file:/a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        (Path("file:///a/b"), "/a/b"),
        ("a:b/c", "a:b/c"),
        ("./s3a:/b", "s3a:/b"),
    ],
)
def test_paths_and_file_addresses_are_folders(address: Any, folder: str) -> None:
    assert local_folder(address) == Path(folder)


REMOTE = [
    "s3a://bucket/runs",
    "hdfs://nn:8020/runs",
    "abfss://c@a.net/x",
    "file://host/a",
    Path("gs://b/runs"),
]


@pytest.mark.parametrize("address", REMOTE, ids=str)
@pytest.mark.parametrize(
    "use",
    [
        lambda address: _flow().start(record=address),
        lambda address: sv.open(address),
        lambda address: Workspace(address),
    ],
    ids=["start", "open", "workspace"],
)
def test_other_addresses_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: Any, use: Callable[[Any], Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageProblem, match="Expected a folder of a file system") as caught:
        use(address)
    assert "all hosts share" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []  # no folder with an odd name


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "flow.py", "--record", "s3a://bucket/runs"],
        ["runs", "--dir", "hdfs://nn/runs"],
        ["show", "s3a://bucket/runs/r1"],
    ],
    ids=" ".join,
)
def test_the_command_line_refuses_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(
        "import samovar as sv\nflow = sv.Workflow('w')\nflow.values('n bigint', [(1,)], name='v').sink('S')\n"
    )
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, StorageProblem), done.output
    assert [p.name for p in tmp_path.iterdir()] == ["flow.py"]


def _flow() -> sv.Workflow:
    flow = sv.Workflow("w")
    flow.values("n bigint", [(1,)], name="v").sink("S")
    return flow
