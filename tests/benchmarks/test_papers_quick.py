"""All experiments of the papers at their small size: every part is measured, every figure has its table, in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.papers import EXPERIMENTS

ROOT = Path(__file__).parents[2]
LONGEST = 15 * 60


@pytest.mark.slow
@pytest.mark.timeout(2 * LONGEST)
def test_the_quick_size_measures_every_part_within_fifteen_minutes(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "papers", "--quick"]
    folders = ["--results", str(results), "--docs", str(tmp_path / "docs")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), *_path()]))}

    done = subprocess.run(
        [*command, *folders], cwd=ROOT, env=environ, check=False, stderr=subprocess.PIPE, text=True
    )

    assert done.returncode == 0, done.stderr[-4000:]
    parts = json.loads(results.read_text())["parts"]
    assert set(parts) == {f"{e.name}/{part}" for e in EXPERIMENTS for part in e.parts("quick")}
    assert sum(part["seconds"] for part in parts.values()) < LONGEST
    page = (tmp_path / "docs" / "results.md").read_text(encoding="utf-8")
    assert "Not measured in this file" not in page
    assert all(f"`{figure.id}`" in page for e in EXPERIMENTS if e.parts("quick") for figure in e.figures)


def _path() -> list[str]:
    return [os.environ.get("PYTHONPATH", "")]
