"""One job written twice: by hand in plain PySpark, and as a Samovar workflow with the same logic.

The plain side is the yardstick, so it is what a competent user would write today. The Samovar side has one
sink, "S". Samovar is imported only when a workflow is built; the plain sides run without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.data import Data

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import samovar as sv

__all__ = ["Pair"]

Plain: TypeAlias = "Callable[[SparkSession, Data], DataFrame]"
Built: TypeAlias = "Callable[[Data], sv.Workflow]"


@dataclass(frozen=True)
class Pair:
    """A job's name, what it shows, the data sets it reads, and its two versions."""

    name: str
    title: str
    inputs: tuple[str, ...]
    plain: Plain
    samovar: Built
