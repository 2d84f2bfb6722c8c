"""Shared by the tests of bad input."""

from __future__ import annotations

import pytest

from samovar.runtime.failures import row_search


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(row_search, "PATIENCE", 600.0)
