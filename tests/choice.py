"""Which cases of a parametrised test are run by default; the others are run with `--slow`."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest

__all__ = ["by_default"]


def by_default(cases: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """All cases, for `pytest.mark.parametrize`; those that are not in `kept` are marked as slow."""
    return [case if case in kept else pytest.param(case, marks=pytest.mark.slow) for case in cases]
