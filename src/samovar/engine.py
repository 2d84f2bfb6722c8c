"""What `Workflow` reaches when something runs: the layers above it, put together. Importing this imports pyspark."""

from __future__ import annotations

from typing import Any

from samovar.graph.workflow import Workflow
from samovar.replay.condition_watch import SERVICES
from samovar.runtime import start as runs
from samovar.runtime.plans import as_sql, schema
from samovar.runtime.run import Run

__all__ = ["as_sql", "schema", "start"]


def start(flow: Workflow, **options: Any) -> Run:
    """Start a run; see `Workflow.start`."""
    return runs.start(flow, SERVICES, **options)
