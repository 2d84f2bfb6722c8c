"""Recordings that several tests look at: each is made once in a session, and no test changes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Record = Callable[[Path], object]
"""Makes a run in a folder, recorded below `runs` there."""


class Recordings:
    """The recordings by name. A test that damages, resumes or forks one works on a copy."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def shared(self, name: str, record: Record) -> Path:
        """The path of a recording, which is made when the first test asks for it. Its inputs lie two folders up."""
        folder = self._root / name
        if not folder.exists():
            folder.mkdir()
            try:
                record(folder)
            except BaseException:
                shutil.rmtree(folder)  # the next test makes it again, and fails for its own sake
                raise
        (path,) = (p for p in (folder / "runs").iterdir() if p.is_dir() and not p.name.startswith("."))
        return path

    def copy(self, name: str, record: Record, folder: Path) -> Path:
        """A copy of a recording in a folder; it reads the inputs of the original."""
        original = self.shared(name, record)
        return Path(shutil.copytree(original, folder / "runs" / original.name))


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    return Recordings(tmp_path_factory.mktemp("recordings"))
