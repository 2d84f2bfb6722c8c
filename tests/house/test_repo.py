"""The repository as a newcomer meets it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ["scripts/setup", "scripts/demo", "scripts/test", "scripts/check", "scripts/bench", ".ci/run"]
LINKS = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def repository_files() -> list[Path]:
    """Files under version control or about to be: what git does not ignore."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def texts() -> list[tuple[Path, str]]:
    found = []
    for file in repository_files():
        try:
            found.append((file.relative_to(ROOT), file.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_can_be_run_and_stop_at_the_first_failure(name: str) -> None:
    script = ROOT / name
    assert os.access(script, os.X_OK)
    content = script.read_text(encoding="utf-8")
    assert content.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in content
    subprocess.run(["bash", "-n", str(script)], check=True)


FOLDERS = {"home": r"\w+/", "Users": r"\w+/", "root": "", "work": r"\w+", "tmp": r"\w+/"}
"""Folders that one machine has, and what stands below them."""


def test_no_paths_of_one_machine() -> None:
    homes = "|".join(rf"/{name}/{below}" for name, below in FOLDERS.items())
    pattern = re.compile(homes)
    offending = [
        f"{file}:{number}: {line.strip()[:100]}"
        for file, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert offending == []


def test_no_package_registry_is_wired_in() -> None:
    """Where packages come from is for the user's pip, uv and npm to say."""
    hosts = re.compile(
        r"pypi\.org|pythonhosted\.org|registry\.npmjs\.org|yarnpkg\.com|--index-url|--extra-index-url"
    )
    lock_files = {"package-lock.json", "uv.lock"}
    offending = [
        str(file)
        for file, text in texts()
        if file.name not in lock_files
        and file.as_posix() != "tests/house/test_repo.py"
        and hosts.search(text)
    ]
    assert offending == []


def test_changelog_has_the_current_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{version}]" in changelog


@pytest.mark.parametrize(
    "name", ["LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "tests/README.md"]
)
def test_what_every_project_has_is_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 0


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{file}: {target}"
        for file, text in texts()
        if file.suffix == ".md"
        for target in LINKS.findall(text)
        if not re.match(r"\w+:", target) and not (ROOT / file).parent.joinpath(target).exists()
    ]
    assert broken == []


def test_readme_names_the_two_commands_first() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index("scripts/demo") < readme.index("scripts/test") < readme.index("import samovar")
