"""Samovar: dataflow workflows on Apache Spark that can be paused, looked into, and travelled back in.

    import samovar as sv

    flow = sv.Workflow("shop")
    orders = flow.read.parquet("orders/")
    orders.filter("amount > 100").sink("S")
    run = flow.run()
    print(run.result("S"))

Importing this package imports no pyspark; that happens when something runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from samovar import errors
from samovar.errors import SamovarError
from samovar.graph.frame import Frame
from samovar.graph.grouped import GroupedFrame
from samovar.graph.logged_results import log_result
from samovar.graph.operator import Operator
from samovar.graph.state import ListState, MapState, ValueState
from samovar.graph.workflow import Workflow
from samovar.ids import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from samovar import diff
    from samovar.replay.moment import Moment
    from samovar.replay.past import Past
    from samovar.replay.past import open_recording as open
    from samovar.runtime.progress import OperatorProgress, Progress
    from samovar.runtime.run import Run
    from samovar.runtime.spark.session import spark_session

__all__ = [
    "Frame",
    "GroupedFrame",
    "ListState",
    "MapState",
    "Moment",
    "Operator",
    "OperatorProgress",
    "Past",
    "Progress",
    "Run",
    "SamovarError",
    "ValueState",
    "Workflow",
    "diff",
    "errors",
    "log_result",
    "open",
    "spark_session",
]

_LAZY = {
    "Run": ("samovar.runtime.run", "Run"),
    "Moment": ("samovar.replay.moment", "Moment"),
    "Past": ("samovar.replay.past", "Past"),
    "open": ("samovar.replay.past", "open_recording"),
    "Progress": ("samovar.runtime.progress", "Progress"),
    "OperatorProgress": ("samovar.runtime.progress", "OperatorProgress"),
    "spark_session": ("samovar.runtime.spark.session", "spark_session"),
}


def __getattr__(name: str) -> Any:
    if name == "diff":
        return importlib.import_module("samovar.diff")
    if name not in _LAZY:
        raise AttributeError(f"module 'samovar' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
