"""A recording as people handle it, without time travel: what it holds, and going on with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from samovar.errors import RecordingError
from samovar.graph.workflow import Workflow
from samovar.record.store import History, Recording
from samovar.runtime.chart_points import chart_data
from samovar.runtime.epochs.epoch import RunContext
from samovar.runtime.exchange.code_switch import SwitchRecord, read_switch_records
from samovar.runtime.live.expression_change import expressions_at, plan_with
from samovar.runtime.live.modification import code_at
from samovar.runtime.plans import plans_of
from samovar.runtime.progress import Progress
from samovar.runtime.rollback import take_up
from samovar.runtime.run import Run
from samovar.runtime.sources.rejected_rows import read_rejected
from samovar.runtime.spark.session import spark_session
from samovar.runtime.summary import past_progress, read_result, status_of
from samovar.runtime.workflow_file import read_graph, read_workflow

__all__ = ["Past"]


class Past:
    """A recording opened for looking at. Takes no lock; sees what is committed when asked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._recording = Recording.open(path)

    def __repr__(self) -> str:
        return f"Past({str(self._recording.path)!r})"

    @property
    def id(self) -> str:
        """The run's name."""
        return self._recording.run_id

    @property
    def path(self) -> Path:
        """The folder of the recording."""
        return self._recording.path

    @property
    def history(self) -> History:
        """Committed epochs, published results, the end."""
        return self._recording.history()

    @property
    def status(self) -> str:
        """completed, failed, stopped; `running` while a process writes it, else `interrupted`."""
        return status_of(self._recording)

    @property
    def workflow(self) -> Workflow:
        """The workflow as it was, rebuilt from the recording. Runs no operator code."""
        return read_workflow(self._recording)

    @property
    def progress(self) -> Progress:
        """Counters as of the last committed epoch."""
        return past_progress(self._recording)

    def result(self, sink: str = "S") -> pa.Table:
        """The rows a sink kept, as a pyarrow Table: all of them, or those of the epochs committed so far."""
        return read_result(self._recording, self.history, read_graph(self._recording), sink)

    @property
    def switches(self) -> list[tuple[int, SwitchRecord]]:
        """Where operators switched to other code inside an epoch: the epoch, and `operator`, `bucket` (its key
        partition), `version` and `tuples` (how many it had taken of the epoch in that partition).
        """
        epochs = [e for e in self.history.epochs if e.switched]
        return [
            (e.epoch, t)
            for e in epochs
            for t in read_switch_records(self._recording.checked_folder(e, "switches"))
        ]

    def chart(self, name: str) -> dict[str, Any]:
        """What a `chart` operator shows of the epochs committed so far: its series and points, as plain data."""
        return chart_data(self._recording, self.history, read_graph(self._recording), name)

    def rejected(self, source: str) -> pa.Table:
        """Rows of a source that did not parse: file, line, text."""
        return read_rejected(self._recording, source)

    def sizes(self) -> dict[str, int]:
        """Bytes by kind."""
        return self._recording.sizes()

    def resume(
        self,
        spark: SparkSession | None = None,
        *,
        flow: Workflow | None = None,
        master: str | None = None,
        conf: dict[str, str] | None = None,
        interactive: bool | None = None,
    ) -> Run:
        """Go on after the last committed epoch. Inputs must be as they were.

        The files of all committed epochs are read first. Where one is damaged or gone, the run goes on before the epoch
        it belongs to, and says so: in the log, in `run.progress.note` and as a warning of the logger `samovar`.
        """
        recording = Recording.open(self._recording.path, write=True)
        try:
            history = recording.history()
            if history.started is None:
                raise RecordingError(
                    "The recording holds no start of a run.", hint="Start the workflow anew."
                )
            session = spark if spark is not None else spark_session(master=master, conf=conf)
            found = plans_of(recording, history, session, flow=flow)
            settings = dict(history.started.options)
            notice = take_up(recording, history, found.plan.graph)
            code = (
                code_at(recording, history, found.code, len(history.epochs)) if flow is None else found.code
            )
            own = expressions_at(recording, history, code, len(history.epochs)) if flow is None else {}
            plan = plan_with(session, found.plan, found.sources, own)
            context = RunContext(session, plan, found.sources, recording, history, code, recording.run_id)
            context.expressions = own
        except BaseException:
            recording.close()
            raise
        made = Run(recording)
        if notice:
            made._warn(notice)
        made._begin(context, settings.get("epoch_bytes"), interactive)
        return made
