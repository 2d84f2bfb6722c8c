"""`sv.open`: a recording one can look at, resume, and travel in."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import SparkSession

from samovar.errors import TimeTravelError, UnknownName
from samovar.positions import Position
from samovar.record.log import Interaction
from samovar.replay import jumps
from samovar.replay.moment import Moment
from samovar.replay.provenance import Origin, find_origins
from samovar.replay.queries import Predicate, find_first, log_rows
from samovar.replay.replay_session import ReplaySession
from samovar.replay.trace.tracer import Tracer
from samovar.runtime.plans import plans_of
from samovar.runtime.recorded_run import Past as Recorded
from samovar.runtime.spark.session import spark_session
from samovar.runtime.workflow_file import read_graph

__all__ = ["Past", "open_recording"]


class Past(Recorded):
    """A recording opened for looking at. Takes no lock; sees what was committed when it was opened."""

    def __init__(
        self, path: str | os.PathLike[str], *, spark: SparkSession | None = None, flow: Any = None
    ) -> None:
        super().__init__(path)
        self._spark = spark
        self._flow = flow
        self._opened: ReplaySession | None = None
        self._lock = threading.Lock()

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
                spark = self._spark if self._spark is not None else spark_session()
                plans = plans_of(self._recording, history, spark, flow=self._flow)
                self._opened = ReplaySession(Tracer(spark, plans, self._recording, history))
            return self._opened

    @property
    def interactions(self) -> list[Interaction]:
        """The moments that were marked while the run went on, in the order of time."""
        return sorted(self.history.interactions, key=lambda i: (i.at, i.id))

    def jump(
        self,
        to: str | Interaction | None = None,
        *,
        tuples: int | None = None,
        epoch: int | None = None,
    ) -> Moment:
        """Go to a moment: `jump("FE", tuples=42)`, `jump(epoch=7)` (its start), `jump("I3")`, or the end: `jump()`."""
        session = self._session
        if isinstance(to, str) and tuples is None and epoch is None:
            known = {one.id: one for one in self.interactions}
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
        """The moment just before an operator took a tuple: `why` returns its epoch and position."""
        return self._after(operator, epoch, tuple(position)).step_back()

    def jump_cost(self, to: str | Interaction) -> jumps.JumpCost:
        """What a jump to an interaction is expected to take (`.seconds`), and the bytes kept for it (`.bytes`)."""
        history = self.history
        made = to if isinstance(to, Interaction) else next((i for i in self.interactions if i.id == to), None)
        if made is None:
            raise UnknownName(str(to), [i.id for i in self.interactions], what="an interaction of the run")
        return jumps.jump_cost(self._recording, history, read_graph(self._recording), made)

    def failure(self) -> Moment | None:
        """For a failed run: the moment just before the tuple that failed; None when the run did not fail at one."""
        if self.history.failed is None:
            return None
        cursor = jumps.before_failure(self._session)
        return None if cursor is None else Moment(self._session, cursor)

    # --- questions --------------------------------------------------------------------------------------------------

    def first(self, operator: str, predicate: Predicate) -> Moment | None:
        """The first moment where something holds; None when it never did.

        For a Python operator a Python expression over its states' names (and `row`), or a callable of its state; for an
        aggregate SQL over its groups; for other operators SQL over the rows they take, or, where it names columns that
        only those have, over the rows they give: a join is asked over the columns of both sides.
        """
        cursor = find_first(self._session, operator, predicate)
        return None if cursor is None else Moment(self._session, cursor)

    def why(self, sink: str, row: Mapping[str, Any] | int, limit: int = 20) -> list[Origin]:
        """The tuples that led to a row of a sink: the row's own way first, then what went into its groups.

        `row` is the row or some of its columns (the first that matches counts), or its number in the result.
        """
        return find_origins(self._session, sink, row, limit)

    def log(self, operator: str, expression: str, where: str | None = None) -> pa.Table:
        """An expression (SQL) over the tuples the operator takes, as if it had been logged: epoch, port, value.

        One that names columns which only its output has is over the rows it gives.
        """
        return log_rows(self._session, operator, expression, where)

    def close(self) -> None:
        """Give back what time travel has kept."""
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
