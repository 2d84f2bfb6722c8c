"""The documentation keeps its word: its examples run, and every option of every command is in it.

A Python block runs here if the line before it is `<!-- runnable -->`; the blocks of a page are one program. They find a
folder of payments and a file of orders in the current folder.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

import samovar as sv
from samovar.cli import main as main_module
from samovar.demo.payments import write_payments
from samovar.runtime.progress import Status

ROOT = Path(__file__).parents[2]
RUNNABLE = re.compile(r"^<!-- runnable -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md") if RUNNABLE.search(p.read_text("utf-8"))
)


def execute(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a program in a folder that has something to read."""
    monkeypatch.chdir(folder)
    write_payments(folder / "payments", 2_000, files=2)
    (folder / "orders.csv").write_text("id,customer,amount\n1,Bob,20\n2,Chris,150\n")
    file = folder / "page.py"
    file.write_text(code)
    return runpy.run_path(str(file), run_name="page")


def test_the_example_of_the_readme(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = FIRST_PYTHON.search((ROOT / "README.md").read_text("utf-8"))
    assert found is not None
    left = execute(found[1], tmp_path, monkeypatch)
    suspects = left["run"].result("S").to_pylist()
    assert {"Bob"} <= {row["customer"] for row in suspects}
    assert all(row["amount"] > 1000 for row in suspects)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of(page: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = RUNNABLE.findall((ROOT / page).read_text("utf-8"))
    execute("\n\n".join(blocks), tmp_path, monkeypatch)


def test_there_are_pages_that_run() -> None:
    assert {"docs/tutorial.md", "docs/how-to/write-a-python-operator.md"} <= set(PAGES)


@pytest.mark.parametrize("verb", main_module.VERBS)
def test_every_option_of_a_command_is_in_the_reference(verb: str) -> None:
    text = (ROOT / "docs/reference/cli.md").read_text("utf-8")
    start = text.index(f"## samovar {verb}")
    section = text[start : text.find("\n## ", start + 4)]
    command: Any = main_module._load(verb)
    options = [o for p in command.params for o in p.opts if isinstance(p, typer.core.TyperOption)]
    assert [o for o in options if o != "--help" and f"`{o}" not in section] == []


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/python-api.md").read_text("utf-8")
    assert [name for name in sv.__all__ if f"sv.{name}" not in text] == []


def test_every_status_is_in_the_reference() -> None:
    lines = (ROOT / "docs/reference/python-api.md").read_text("utf-8").splitlines()
    of_run = next(line for line in lines if line.startswith("| `id`, `status`, `error` |"))
    of_past = next(line for line in lines if line.startswith("| `id`, `path`, `status` |"))
    statuses = set(get_args(Status))
    assert {name for name in statuses if f"`{name}`" in of_run} == statuses - {"interrupted"}
    assert "`interrupted`" in of_past
