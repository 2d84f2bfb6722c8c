"""A server for tests of routes: one without Spark, and one on the session of the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.support import Served, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("workspace")) as served:
        yield served


@pytest.fixture(scope="module")
def engine_server(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("workspace"), spark) as served:
        yield served


@pytest.fixture
def workspace_folder(tmp_path: Path) -> Path:
    return tmp_path / "workspace"
