"""`sv.open`: a recording one can look at, resume, and travel in."""

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
from samovar.record.log import Interaction
from samovar.record.store import History, Recording
from samovar.replay.condition_watch import SERVICES
from samovar.replay.jump_costs import JumpCost, jump_cost
from samovar.replay.moment import Moment
from samovar.replay.provenance import Origin, find_origins
from samovar.replay.queries import Predicate, find_first, log_rows
from samovar.replay.state.windows import Travel
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
    """A recording opened for looking at. Takes no lock; sees what was committed when it was opened."""

    def __init__(
        self, path: str | os.PathLike[str], *, spark: SparkSession | None = None, flow: Any = None
    ) -> None:
        self._recording = Recording.open(path)
        self._spark = spark
        self._flow = flow
        self._made: Travel | None = None
        self._guard = threading.Lock()

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
        return result_frame(self._session(), self._recording, self.history, read_graph(self._recording), sink)

    @property
    def switches(self) -> list[tuple[int, SwitchRecord]]:
        """Where operators switched to other code inside an epoch: the epoch, and `operator`, `bucket` (its key
        partition), `version` and `tuples` (how many it had taken of the epoch in that partition).

        >>> past.switches
        []
        """
        epochs = [e for e in self.history.epochs if e.switched]
        return [
            (e.epoch, t)
            for e in epochs
            for t in read_switch_records(self._recording.checked_folder(e, "switches"))
        ]

    def chart(self, name: str) -> dict[str, Any]:
        """What a `chart` operator shows of the epochs committed so far: its series and points, as plain data.

        >>> sv.open(charted.recording).chart("by customer")["kind"]
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

        spark, master, conf, interactive: as for `Workflow.start`. flow: the workflow, where the recording cannot tell
        it.

        >>> past.resume().wait(60).status
        'completed'
        """
        return resume(
            self.path,
            SERVICES,
            spark=spark,
            flow=flow,
            master=master,
            conf=conf,
            interactive=interactive,
        )

    # --- going to a moment ------------------------------------------------------------------------------------------

    def _session(self) -> SparkSession:
        return self._spark if self._spark is not None else spark_session()

    @property
    def _travel(self) -> Travel:
        with self._guard:
            if self._made is None:
                history = self.history
                if not history.epochs and history.failed is None:
                    raise TimeTravelError(
                        "No epoch of this run was committed: there is no past to go to.",
                        hint="Resume the run, or start it anew.",
                    )
                session = self._session()
                found = plans_of(self._recording, history, session, flow=self._flow)
                self._made = Travel(
                    Tracer(
                        session,
                        found.plan,
                        found.tracing,
                        found.sources,
                        self._recording,
                        history,
                        found.code,
                    )
                )
            return self._made

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
        travel = self._travel
        if isinstance(to, Interaction):
            return self._jump_interaction(travel, to)
        if to is not None and tuples is None and epoch is None:
            found = next((i for i in self.interactions if i.id == to), None)
            if found is not None:
                return self._jump_interaction(travel, found)
            if to not in travel.operators:
                known = [i.id for i in self.interactions]
                raise UnknownName(to, [*known, *travel.operators], what="an interaction or an operator")
        if epoch is not None:
            if to is not None or tuples is not None:
                raise TimeTravelError("Expected an epoch, or an operator and tuples; got both.")
            return self._jump_epoch(travel, epoch)
        if to is None:
            if tuples is not None:
                raise TimeTravelError(
                    "Expected an operator whose tuples are counted, got none.",
                    hint=f"jump('FE', tuples={tuples})",
                )
            stretch, counts = travel.end()
            return Moment(travel, stretch, counts)
        if tuples is None:
            raise TimeTravelError(
                f"Expected how many tuples '{to}' has processed.", hint=f"jump('{to}', tuples=42)"
            )
        stretch, counts, last = travel.after(to, tuples)
        return Moment(travel, stretch, counts, last=last, operator=to)

    def _jump_interaction(self, travel: Travel, made: Interaction) -> Moment:
        if made.position is not None:
            return self._jump_position(travel, made.operator, made.epoch, tuple(made.position))
        stretch, counts, last = travel.after(made.operator, made.tuples or 0)
        return Moment(travel, stretch, counts, last=last, operator=made.operator)

    def _jump_position(
        self, travel: Travel, operator: str, epoch: int | None, position: tuple[int, ...]
    ) -> Moment:
        """Right after an operator took the tuple at a position."""
        if operator not in travel.operators:
            raise UnknownName(operator, list(travel.operators), what="an operator")
        numbers = (
            i for i, s in enumerate(travel.segments) if s.epoch == epoch and travel.taken_in(s, operator)
        )
        number = next(numbers, None)
        if number is None:
            raise TimeTravelError(f"Expected an epoch in which '{operator}' took tuples, got {epoch}.")
        stretch, counts, last = travel.around(number, operator, position)
        return Moment(travel, stretch, counts, last=last, operator=operator)

    def before(self, operator: str, *, epoch: int, position: Sequence[int]) -> Moment:
        """The moment just before an operator took a tuple.

        epoch, position: the tuple's, as `why` tells them.

        >>> origin = past.why("S", {"amount": 60.0})[0]
        >>> past.before(origin.operator, epoch=origin.epoch, position=origin.position).epoch
        0
        """
        return self._jump_position(self._travel, operator, epoch, tuple(position)).step_back()

    def jump_cost(self, to: str | Interaction) -> JumpCost:
        """What a jump to an interaction is expected to take (`.seconds`), and the bytes kept for it (`.bytes`).

        >>> past.jump_cost("I1")
        Traceback (most recent call last):
            ...
        samovar.errors.UnknownName: Expected an interaction of the run, got 'I1'.
        """
        history = self.history
        made = to if isinstance(to, Interaction) else next((i for i in self.interactions if i.id == to), None)
        if made is None:
            raise UnknownName(str(to), [i.id for i in self.interactions], what="an interaction of the run")
        return jump_cost(self._recording, history, read_graph(self._recording), made)

    def failure(self) -> Moment | None:
        """For a failed run: the moment just before the tuple that failed; None when the run did not fail at one.

        >>> past.failure() is None
        True
        """
        if self.history.failed is None:
            return None
        travel = self._travel
        found = travel.failing()
        if found is None:
            return None
        stretch, counts, operator = found
        return Moment(travel, stretch, counts, operator=operator)

    def _jump_epoch(self, travel: Travel, epoch: int) -> Moment:
        count = len(self.history.epochs)
        if not 0 <= epoch <= count:
            raise TimeTravelError(
                f"Expected an epoch from 0 to {count}, got {epoch}.",
                hint=f"The run has {count} epochs; {count} is its end.",
            )
        failed = travel.failed_segment() if epoch == count else None
        if epoch == count and failed is None:
            stretch, counts = travel.end()
            return Moment(travel, stretch, counts)
        number = failed if failed is not None else travel.first_of(epoch)
        stretch = travel.opening(number)
        return Moment(travel, stretch, dict.fromkeys(stretch.traced.trace.steps, 0))

    # --- questions --------------------------------------------------------------------------------------------------

    def first(self, operator: str, predicate: Predicate) -> Moment | None:
        """The first moment where something holds; None when it never did.

        predicate: for a Python operator a Python expression over its states' names (and `row`), or a callable of its
            state; for an aggregate SQL over its groups; for other operators SQL over the rows they take, or, where it
            names columns that only those have, over the rows they give: a join is asked over the columns of both sides.

        >>> past.first("H", "len(highest) == 2").last.row["customer"]
        'Ann'
        """
        travel = self._travel
        found = find_first(travel, operator, predicate)
        if found is None:
            return None
        stretch, counts, last = found
        return Moment(travel, stretch, counts, last=last, operator=operator)

    def why(self, sink: str, row: Mapping[str, Any] | int, limit: int = 20) -> list[Origin]:
        """The tuples that led to a row of a sink: the row's own way first, then what went into its groups.

        row: the row or some of its columns (the first that matches counts), or its number in the result.
        limit: how many tuples at most.

        >>> [origin.operator for origin in past.why("S", {"amount": 60.0}, limit=2)]
        ['S', 'H']
        """
        return find_origins(self._travel, sink, row, limit)

    def log(self, operator: str, expression: str, where: str | None = None) -> pa.Table:
        """An expression over the tuples an operator takes, as if it had been logged: epoch, port, value.

        expression: SQL; if it names columns that only the output has, it is over the rows the operator gives.
        where: SQL that selects tuples.

        >>> past.log("H", "amount * 2", where="amount > 100")["value"].to_pylist()
        [220.0, 240.0]
        """
        return log_rows(self._travel, operator, expression, where)

    def close(self) -> None:
        """Release what time travel has kept.

        >>> past.close()
        """
        if self._made is not None:
            self._made.close()
            self._made = None

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
