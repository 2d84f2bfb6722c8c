"""Fixtures for stories about runs that go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import samovar as sv
from samovar import testing

Start = Callable[..., sv.Run]


@pytest.fixture(params=["local", pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.starts_spark])])
def start(request: pytest.FixtureRequest) -> Start:
    """Starts a workflow: on threads of this process, and with `--slow` on Spark as well."""
    return local_start if request.param == "local" else spark_start(request.getfixturevalue("spark"))


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.starts_spark)])
def start_on_both(request: pytest.FixtureRequest) -> Start:
    """The same for the stories that run on Spark every time."""
    return local_start if request.param == "local" else spark_start(request.getfixturevalue("spark"))


def spark_start(spark: Any) -> Start:
    """Starts a workflow on a session."""
    return lambda flow, **options: flow.start(spark=spark, **options)


def local_start(flow: sv.Workflow, *, epoch_bytes: int | None = None, **options: Any) -> sv.Run:
    """The options of `Workflow.start`, with its default for the size of an epoch."""
    return testing.start(flow, epoch_bytes=epoch_bytes, **options)
