"""`sv.open`: a recording to look at, to resume, and to travel in."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from samovar.errors import TimeTravelError, UnknownName
from samovar.graph.workflow import Workflow
from samovar.positions import Position
from samovar.record.log import Interaction
from samovar.record.store import History, Recording
from samovar.replay import jumps
from samovar.replay.condition_watch import SERVICES
from samovar.replay.moment import Moment
from samovar.replay.provenance import Origin, find_origins
from samovar.replay.queries import Predicate, find_first, log_rows
from samovar.replay.replay_session import ReplaySession
from samovar.replay.trace.tracer import Tracer
from samovar.runtime.chart_points import chart_data
from samovar.runtime.exchange.code_switch import SwitchRecord, read_switch_records
from samovar.runtime.plans import plans_of
from samovar.runtime.progress import Progress, Status
from samovar.runtime.run import Run
from samovar.runtime.sources.rejected_rows import read_rejected
from samovar.runtime.spark.session import spark_session
from samovar.runtime.start import resume
from samovar.runtime.summary import past_progress, read_result, result_frame, status_of
from samovar.runtime.workflow_file import read_graph, read_workflow

__all__ = ["Past", "open_recording"]


class Past:
    """An open recording. Takes no lock.

    Results and counters are read from the recording at each call; time travel sees the epochs that were committed when
    it was first used.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, spark: SparkSession | None = None, flow: Any = None
    ) -> None:
        self._recording = Recording.open(path)
        self._spark = spark
        self._flow = flow
        self._opened: ReplaySession | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Past({str(self._recording.path)!r})"

    @property
    def id(self) -> str:
        """The run's name.

        >>> past.id
        'shop-1'
        """
        return self._recording.run_id

    @property
    def path(self) -> Path:
        """The folder of the recording.

        >>> past.path.name
        'shop-1'
        """
        return self._recording.path

    @property
    def history(self) -> History:
        """Committed epochs, published results, the end.

        >>> len(past.history.epochs)
        1
        """
        return self._recording.history()

    @property
    def status(self) -> Status:
        """completed, failed, stopped; `running` while a process writes it, else `interrupted`.

        >>> past.status
        'completed'
        """
        return status_of(self._recording)

    @property
    def workflow(self) -> Workflow:
        """The workflow as it was, rebuilt from the recording. Runs no operator code.

        >>> list(past.workflow.graph().ops)
        ['orders', 'large', 'H', 'S']
        """
        return read_workflow(self._recording)

    @property
    def progress(self) -> Progress:
        """Counters as of the last committed epoch.

        >>> past.progress.operators[2].taken
        10
        """
        return past_progress(self._recording)

    def result(self, sink: str = "S") -> pa.Table:
        """The rows a sink kept, as a pyarrow Table: all of them, or those of the epochs committed so far.

        >>> past.result("S").num_rows
        10
        """
        return read_result(self._recording, self.history, read_graph(self._recording), sink)

    def dataframe(self, sink: str = "S") -> DataFrame:
        """The rows a sink kept, as a Spark DataFrame over the recording's files.

        >>> past.dataframe("S").filter("amount > 100").count()
        2
        """
        return result_frame(
            self._chosen_spark(), self._recording, self.history, read_graph(self._recording), sink
        )

    @property
    def switches(self) -> list[tuple[int, SwitchRecord]]:
        """Where operators switched to other code inside an epoch: the epoch, and `operator`, `bucket` (its key
        partition), `version` and `tuples` (how many it had taken of the epoch in that partition).

        >>> past.switches
        []
        """
        epochs = [e for e in self.history.epochs if e.switched]
        return [
            (e.epoch, switch)
            for e in epochs
            for switch in read_switch_records(self._recording.checked_folder(e, "switches"))
        ]

    def chart(self, name: str) -> dict[str, Any]:
        """The picture of a `chart` operator from the epochs committed so far: its series and points, as plain data.

        >>> sv.open(charted.recording).chart("by customer")["chart"]
        'bar'
        """
        return chart_data(self._recording, self.history, read_graph(self._recording), name)

    def rejected(self, source: str) -> pa.Table:
        """Rows of a source that did not parse: file, line, text.

        >>> past.rejected("orders").num_rows
        0
        """
        return read_rejected(self._recording, source)

    def sizes(self) -> dict[str, int]:
        """Bytes by kind.

        >>> past.sizes()["results"] > 0
        True
        """
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

        spark, master, conf, interactive: as for `Workflow.start`. flow: the workflow, where the recording does not hold
        all of it (Columns without a SQL form).

        >>> past.resume().wait(60).status
        'completed'
        """
        return resume(
            self.path, SERVICES, spark=spark, flow=flow, master=master, conf=conf, interactive=interactive
        )

    # --- going to a moment ------------------------------------------------------------------------------------------

    def _chosen_spark(self) -> SparkSession:
        return self._spark if self._spark is not None else spark_session()

    @property
    def _session(self) -> ReplaySession:
        with self._lock:
            if self._opened is None:
                history = self.history
                if not history.epochs and history.failed is None:
                    raise TimeTravelError(
                        "No epoch of this run was committed: there is no past to go to.",
                        hint="Resume the run, or start it again.",
                    )
                spark = self._chosen_spark()
                plans = plans_of(self._recording, history, spark, flow=self._flow)
                self._opened = ReplaySession(Tracer(spark, plans, self._recording, history))
            return self._opened

    @property
    def interactions(self) -> list[Interaction]:
        """The moments that were marked while the run went on, in the order of time.

        >>> [interaction.id for interaction in past.interactions]
        []
        """
        return sorted(self.history.interactions, key=lambda i: (i.at, i.id))

    def jump(
        self,
        to: str | Interaction | None = None,
        *,
        tuples: int | None = None,
        epoch: int | None = None,
    ) -> Moment:
        """Go to a moment. Without arguments: to the end.

        to: the name of an interaction, or an operator. tuples: how many tuples that operator has processed.
        epoch: the epoch at whose start to be.

        >>> past.jump("H", tuples=4).last.row["amount"]
        60.0
        >>> past.jump(epoch=0).epoch
        0
        """
        session = self._session
        if isinstance(to, str) and tuples is None and epoch is None:
            known = {interaction.id: interaction for interaction in self.interactions}
            if to not in known and to not in session.operators:
                raise UnknownName(to, [*known, *session.operators], what="an interaction or an operator")
            to = known.get(to, to)
        if isinstance(to, Interaction):
            if to.position is not None:
                return self._after(to.operator, to.epoch, tuple(to.position))
            return Moment(session, jumps.after_tuples(session, to.operator, to.tuples or 0))
        if epoch is not None:
            if to is not None or tuples is not None:
                raise TimeTravelError("Expected an epoch, or an operator and tuples; got both.")
            return Moment(session, jumps.epoch_start(session, epoch))
        if to is None:
            if tuples is not None:
                raise TimeTravelError(
                    "Expected an operator whose tuples are counted, got none.",
                    hint=f"jump('FE', tuples={tuples})",
                )
            return Moment(session, jumps.run_end(session))
        if tuples is None:
            raise TimeTravelError(
                f"Expected how many tuples '{to}' has processed.", hint=f"jump('{to}', tuples=42)"
            )
        return Moment(session, jumps.after_tuples(session, to, tuples))

    def _after(self, operator: str, epoch: int | None, position: Position) -> Moment:
        """Right after an operator took the tuple at a position."""
        session = self._session
        session.op(operator)
        for segment in session.segments:
            if segment.epoch == epoch and session.taken_in(segment, operator):
                return Moment(session, jumps.after_tuple(session, segment, operator, position))
        raise TimeTravelError(f"Expected an epoch in which '{operator}' took tuples, got {epoch}.")

    def before(self, operator: str, *, epoch: int, position: Sequence[int]) -> Moment:
        """The moment just before an operator took a tuple.

        epoch, position: the tuple's, as `why` tells them.

        >>> origin = past.why("S", {"amount": 60.0})[0]
        >>> past.before("S", epoch=origin.epoch, position=origin.position).operator
        'S'
        """
        return self._after(operator, epoch, tuple(position)).step_back()

    def jump_cost(self, to: str | Interaction) -> jumps.JumpCost:
        """How long a jump to an interaction is expected to take (`.seconds`), and the bytes kept for it (`.bytes`).

        >>> past.jump_cost("I1")
        Traceback (most recent call last):
            ...
        samovar.errors.UnknownName: Expected an interaction of the run, got 'I1'.
        Hint: Known: none.
        """
        history = self.history
        known = {interaction.id: interaction for interaction in self.interactions}
        interaction = to if isinstance(to, Interaction) else known.get(to)
        if interaction is None:
            raise UnknownName(str(to), known, what="an interaction of the run")
        return jumps.jump_cost(self._recording, history, read_graph(self._recording), interaction)

    def failure(self) -> Moment | None:
        """For a failed run: the moment just before the tuple that failed; None when the run did not fail at one.

        >>> past.failure() is None
        True
        """
        if self.history.failed is None:
            return None
        cursor = jumps.before_failure(self._session)
        return None if cursor is None else Moment(self._session, cursor)

    # --- questions --------------------------------------------------------------------------------------------------

    def first(self, operator: str, predicate: Predicate) -> Moment | None:
        """The first moment where a predicate holds; None when it never did.

        predicate: for a Python operator a Python expression over its states' names (and `row`), or a callable of its
            state; for an aggregate SQL over its groups; for other operators SQL over the rows they take, or over the
            rows they produce, where it names columns that only those have: for a join, the columns of both sides.

        >>> past.first("H", "len(highest) == 2").last.row["customer"]
        'Ann'
        """
        cursor = find_first(self._session, operator, predicate)
        return None if cursor is None else Moment(self._session, cursor)

    def why(self, sink: str, row: Mapping[str, Any] | int, limit: int = 20) -> list[Origin]:
        """The tuples that led to a row of a sink: the row's way back first, then the tuples of its groups.

        row: the row or some of its columns (the first that matches counts), or its number in the result.
        limit: how many tuples at most.

        >>> [origin.operator for origin in past.why("S", {"amount": 60.0}, limit=2)]
        ['H', 'large']
        """
        return find_origins(self._session, sink, row, limit)

    def log(self, operator: str, expression: str, where: str | None = None) -> pa.Table:
        """An expression over the tuples an operator takes, as if it had been logged: epoch, port, value.

        expression: SQL; if it names columns that only the output has, it is over the rows the operator produces.
        where: SQL that selects tuples.

        >>> past.log("H", "amount * 2", where="amount > 100")["value"].to_pylist()
        [220.0, 240.0]
        """
        return log_rows(self._session, operator, expression, where)

    def close(self) -> None:
        """Free the memory and the files that time travel has used.

        >>> past.close()
        """
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def open_recording(
    path: str | os.PathLike[str], *, spark: SparkSession | None = None, flow: Any = None
) -> Past:
    """Open a recording to look at it, travel in it, or resume it.

    `spark` is the session that computes what was not kept (default: one is started when needed). `flow` is the
    workflow, for recordings whose Columns have no SQL form.
    """
    return Past(path, spark=spark, flow=flow)
