"""What all epochs of a run share: what is fixed, what operators do now, how far the run has come.

A `RunContext` is frozen. What changes lies in two parts of it: `logic` changes when somebody modifies the run,
`progress` with each epoch. The epoch that is being run is `progress.present`, which stays when the epoch has failed, so
that the failure can be explained.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from samovar.compile.plan import Plan
from samovar.compile.strategy import EpochRange
from samovar.record.store import History, Recording
from samovar.runtime.epochs.checkpoint_policy import Policy
from samovar.runtime.epochs.kept_frames import BuildSides
from samovar.runtime.exchange.decisions import RecordedDecision
from samovar.runtime.exchange.user_errors import Failure
from samovar.runtime.live.run_control import Steering
from samovar.runtime.sources.units import Source
from samovar.runtime.spark.shared_storage import SharedStorage

__all__ = ["Logic", "PresentEpoch", "RunContext", "RunProgress"]

COLD_FOR = 15.0
"""Seconds since Spark's start in which Java is still loading classes and compiling."""


@dataclass
class Logic:
    """What operators do now."""

    plan: Plan
    code: dict[str, bytes]
    """Python operators, pickled."""
    expressions: dict[str, bytes] = field(default_factory=dict)
    """Native operators whose expressions were modified on the way."""
    code_versions: dict[str, int] = field(default_factory=dict)
    """Versions of operators' code that was modified on the way, as workers and the desk count them."""


@dataclass
class PresentEpoch:
    """The epoch that is being run, over all attempts at it."""

    covers: EpochRange
    working: str | None = None
    """The operator whose rows were being written when the last attempt failed."""
    failed: tuple[str, Failure] | None = None
    """The attempt in which user code failed, and the failure."""
    mended: list[RecordedDecision] = field(default_factory=list)
    """Rows that Spark failed on, with what was decided about them."""
    interrupted: int = 0
    """Attempts that pauses cancelled, of an epoch that cannot be shorter."""


@dataclass
class RunProgress:
    """How far a run has come, and what is kept from epoch to epoch."""

    history: History
    storage: SharedStorage | None = None
    """Whether all workers see the run's folders; None: not checked yet."""
    build_sides: BuildSides = field(default_factory=BuildSides)
    present: PresentEpoch | None = None
    """None before the first epoch."""
    nothing: dict[str, tuple[Plan, DataFrame]] = field(default_factory=dict)
    """Outputs without rows, by operator, with the plan they were made for: one takes a tenth of planning an epoch."""


@dataclass(frozen=True)
class RunContext:
    """A run on Spark. `tag` marks its Spark jobs."""

    spark: SparkSession
    sources: dict[str, Source]
    recording: Recording
    tag: str
    logic: Logic
    progress: RunProgress
    steering: Steering | None = None
    """Pauses the run, looks into its workers and decides; None: nothing can."""

    @property
    def plan(self) -> Plan:
        """The plan of the next epoch."""
        return self.logic.plan

    @property
    def code(self) -> dict[str, bytes]:
        """The code of Python operators in the next epoch."""
        return self.logic.code

    @property
    def history(self) -> History:
        """What is committed."""
        return self.progress.history

    @property
    def tau(self) -> float:
        """Seconds within which a jump shall be answered."""
        return float(self._options.get("tau", 2.0))

    @property
    def marks_policy(self) -> Policy:
        """When the state is kept inside an epoch."""
        chosen: Policy = self._options.get("marks") or self._options.get("checkpoints", "tau")
        return chosen

    @property
    def holds(self) -> bool:
        """Whether a tuple that raises waits for a decision."""
        return self._options.get("on_error") == "hold"

    @property
    def _options(self) -> dict[str, Any]:
        return self.history.started.options if self.history.started is not None else {}

    @property
    def cores(self) -> int:
        """How many tasks can run at once, as far as is known; 1 where the session does not tell."""
        context = getattr(self.spark, "sparkContext", None)
        if context is None:
            return 1
        return int(context.defaultParallelism) // int(self.spark.conf.get("spark.task.cpus", "1") or 1)

    @property
    def cold(self) -> bool:
        """Whether Spark has just started, so that everything takes longer; False where the session does not tell."""
        context = getattr(self.spark, "sparkContext", None)
        return context is not None and time.time() - getattr(context, "startTime", 0) / 1000 < COLD_FOR

    def describe(self, text: str | None) -> None:
        """What the Spark UI shows for the jobs that follow, on this thread; None: nothing."""
        context = getattr(self.spark, "sparkContext", None)
        if context is not None:
            context.setJobDescription(text and f"{self.plan.graph.name}: {text}")

    def group(self, name: str | None) -> None:
        """The job group of the jobs that follow, on this thread: an attempt's, so that its jobs can be found."""
        context = getattr(self.spark, "sparkContext", None)
        if context is not None:
            context.setLocalProperty("spark.jobGroup.id", name)

    def check_storage(self) -> None:
        """Raise StorageNotShared when workers do not see the run's folders; quick while the cluster is as it was."""
        storage = self.progress.storage
        if storage is not None:
            storage.check()
            return
        python = any(self.plan.shape(n) in ("python", "batches") for n in self.plan.graph.ops)
        storage = self.progress.storage = SharedStorage(self.spark, self.recording.path, python=python)
        storage.check()
        storage.check_sources(self.sources.values())
