"""Interactions by condition: after each epoch, the tuples that met it are searched and logged with their positions.

The search runs beside the epochs that follow, on a thread of its own; the run waits for it only at its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from samovar.errors import TimeTravelError, UnknownName
from samovar.record.log import EpochCommitted, Interaction, InteractionsMade
from samovar.record.store import History
from samovar.replay.conditions import ConditionRows, condition_rows
from samovar.replay.queries import matching_tuples
from samovar.replay.replay_session import ReplaySession
from samovar.replay.trace.tracer import Tracer
from samovar.runtime.epochs.run_context import RunContext
from samovar.runtime.live.interactions import Interactions
from samovar.runtime.live.remote_commands import open_door
from samovar.runtime.plans import Plans, plans_of
from samovar.runtime.run_thread import Services

__all__ = ["SERVICES", "Watch"]

log = logging.getLogger("samovar.watch")


class Watch:
    """A condition on the tuples an operator takes, or on what it gives for them, searched in every epoch."""

    def __init__(
        self,
        context: RunContext,
        interactions: Interactions,
        operator: str,
        condition: str,
        limit: int,
        reached: Callable[[str, int, str, int], None] | None = None,
    ) -> None:
        """`reached`: called before the next epoch begins when one has such tuples, with the operator, the epoch, the
        first one's interaction and their number."""
        graph = context.plan.graph
        if operator not in graph.ops:
            raise UnknownName(operator, graph.ops, what="an operator of the run")
        self.context = context
        self.interactions = interactions
        self.operator = operator
        self.condition = condition
        self.limit = limit
        self.reached = reached
        self._asked = self._checked()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="samovar-watch")
        self._running: list[Future[list[Interaction]]] = []
        self._plans: Plans | None = None

    def _checked(self) -> ConditionRows:
        plan = self.context.plan
        asked = condition_rows(self.context.spark, plan, self.operator, self.condition)
        if plan.placement.ends(self.operator) and asked.rows == "given":
            taken = [f.name for up in plan.graph.ops[self.operator].inputs for f in plan.schemas[up].fields]
            raise TimeTravelError(
                f"'{self.operator}' gives its rows when its input has ended: expected a condition over what it takes "
                f"({', '.join(taken)}), got {self.condition!r}.",
                operator=self.operator,
                hint="Watch the operator behind it, or ask afterwards: sv.open(run.recording).first(...).",
            )
        return asked

    def committed(self, fact: EpochCommitted) -> None:
        """Look through an epoch that has just been committed."""
        epochs = list(self.context.history.epochs)
        looking = self._pool.submit(self._look, fact, epochs)
        self._running.append(looking)
        if self.reached is not None and looking.exception() is None and (marked := looking.result()):
            self.reached(self.operator, fact.epoch, marked[0].id, len(marked))

    def finish(self) -> None:
        """Wait until all epochs are looked through."""
        for future in self._running:
            try:
                future.result()
            except Exception:
                log.warning("watch on %s: an epoch could not be searched", self.operator, exc_info=True)
        self._pool.shutdown()

    def _look(self, fact: EpochCommitted, epochs: list[EpochCommitted]) -> list[Interaction]:
        context = self.context
        history = History(started=context.history.started, epochs=epochs)
        if self._plans is None:
            self._plans = plans_of(context.recording, history, context.spark)
        tracer = Tracer(context.spark, self._plans, context.recording, history)
        session = ReplaySession(tracer)
        marked: list[Interaction] = []
        try:
            for segment in session.segments:
                if segment.epoch != fact.epoch or not session.taken_in(segment, self.operator):
                    continue
                found = matching_tuples(
                    session, segment, self.operator, self.condition, self._asked, self.limit
                )
                for _, at in found:
                    marked.append(
                        Interaction(
                            id=self.interactions.new_id(),
                            at=fact.at,
                            operator=self.operator,
                            epoch=fact.epoch,
                            position=at,
                            note=self.condition,
                            by="condition",
                        )
                    )
        finally:
            tracer.close()
        if marked and context.recording.log is not None:
            noted = InteractionsMade(at=time.time(), made=tuple(marked))
            context.recording.log.append(noted)
            context.history.add(noted)
        return marked


SERVICES = Services(watch=Watch, door=open_door)
"""What every run gets: watches need replay, which lies above the runs."""
