"""Counts the tasks that Spark has finished in the epoch under way, a few times a second, on a thread of its own.

Costs nothing in epochs shorter than `EVERY`, beside Python workers (which report by themselves), and with Spark
Connect, which does not tell; elsewhere two calls of Java and one for each running job and stage, about 5 ms together.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from samovar.control.desk import Desk
from samovar.control.events import StageTasks, TasksCounted

__all__ = ["TaskTracker"]

log = logging.getLogger("samovar.steering")

EVERY = 0.25
"""Seconds between two counts at least: an epoch that takes too long is given up after a second and a half at the
soonest."""
COUNTS = 8
"""Counts before an epoch is judged: one of many bytes is judged late, and need not be asked about so often."""


class TaskTracker:
    """Reports the tasks of a run's epochs to its desk. The jobs of an attempt are in the group of its name."""

    def __init__(self, spark: SparkSession, desk: Desk) -> None:
        self._desk = desk
        context = getattr(spark, "sparkContext", None)
        self._tracker: Callable[[], Any] | None = getattr(context, "statusTracker", None)
        self._cores = int(getattr(context, "defaultParallelism", 1))
        self._every = EVERY
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, name: str, task_seconds: float) -> None:
        """Count the tasks of an epoch that is about to begin; `name`: of the run, `task_seconds`: see `Forecast`."""
        self._every = max(EVERY, task_seconds / COUNTS)
        if self._thread is None and self._tracker is not None:
            self._thread = threading.Thread(target=self._work, name=f"samovar-tasks-{name}", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Count no more."""
        self._closed.set()

    def _work(self) -> None:
        assert self._tracker is not None
        tracker, before, due = None, None, 0.0
        ended: set[int] = set()
        while not self._closed.wait(EVERY):
            attempt = self._desk.counted_by_tasks
            if attempt is None or attempt != before:  # it has just begun, and may be short
                before, ended, due = attempt, set(), 0.0
                continue
            if time.monotonic() < due:
                continue
            due = time.monotonic() + self._every - EVERY / 2
            try:
                tracker = tracker or self._tracker()
                stages = running_stages(tracker, attempt, ended, self._cores)
            except Exception:  # a session that died ends the epoch as well
                log.debug("tasks could not be counted", exc_info=True)
                continue
            if stages and not self._closed.is_set():
                self._desk.report(TasksCounted(attempt=attempt, stages=stages))


def running_stages(tracker: Any, group: str, ended: set[int], cores: int) -> dict[int, StageTasks]:
    """The stages that Spark is running for the jobs of a group; `ended`: jobs that need not be asked about again.

    Spark's number of tasks at work is not asked for: it lags behind by as much as ten seconds.
    """
    stages: set[int] = set()
    for number in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(number) if number not in ended else None
        if job is None or job.status != "RUNNING":
            ended.add(number)
        else:
            stages.update(job.stageIds)
    running = stages.intersection(tracker.getActiveStageIds()) if stages else stages
    infos = [tracker.getStageInfo(number) for number in sorted(running)]
    return {
        info.stageId: StageTasks(done, min(cores, info.numTasks - done), info.numTasks)
        for info in infos
        if info is not None
        for done in [info.numCompletedTasks]
        if done < info.numTasks
    }
