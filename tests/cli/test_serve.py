"""`samovar serve` as a process: it prints a link, answers there, and says what is missing."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from samovar.cli.main import main


@pytest.mark.starts_spark
def test_it_prints_a_link_that_works_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "samovar.cli.main",
        "serve",
        "--port",
        "0",
        "--workspace",
        str(tmp_path / "w"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "?token=" in line, line + process.stdout.read()
        link = line.split()[-1]
        with httpx.Client(follow_redirects=True, trust_env=False) as browser:
            assert browser.get(link).status_code in (200, 503)  # 503: the pages are not built
            assert browser.get(link.partition("?")[0] + "api/workflows").json() == []
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130, -signal.SIGINT)
    finally:
        process.kill()
        process.communicate()


def test_without_its_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "pycrdt" else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(SystemExit) as ended:
        main(["serve"])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "pycrdt" in said
    assert "samovar[server]" in said
