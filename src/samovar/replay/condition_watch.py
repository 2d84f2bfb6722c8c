"""Interactions by condition: after each epoch, the tuples that meet it are searched and logged with their positions.

The search runs beside the epochs that follow, on a thread of its own; the run waits for it only at its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

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


@dataclass(eq=False)
class Watch:
    """A condition on the input or the output of an operator, searched for in every epoch."""

    context: RunContext
    interactions: Interactions
    operator: str
    condition: str
    limit: int
    reached: Callable[[str, int, str, int], None] | None = None
    """Called before the next epoch begins if an epoch has such tuples, with the operator, the epoch, the interaction
    of the first tuple and how many there are."""

    def __post_init__(self) -> None:
        graph = self.context.plan.graph
        if self.operator not in graph.ops:
            raise UnknownName(self.operator, graph.ops, what="an operator of the run")
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
        """Search an epoch that has just been committed."""
        epochs = list(self.context.history.epochs)
        looking = self._pool.submit(self._look, fact, epochs)
        self._running.append(looking)
        if self.reached is not None and looking.exception() is None and (marked := looking.result()):
            self.reached(self.operator, fact.epoch, marked[0].id, len(marked))

    def finish(self) -> None:
        """Wait until all epochs are searched."""
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
                matches = matching_tuples(
                    session, segment, self.operator, self.condition, self._asked, self.limit
                )
                marked += [
                    Interaction(
                        id=self.interactions.new_id(),
                        at=fact.at,
                        operator=self.operator,
                        epoch=fact.epoch,
                        position=at,
                        note=self.condition,
                        by="condition",
                    )
                    for _, at in matches
                ]
        finally:
            tracer.close()
        if marked and context.recording.log is not None:
            noted = InteractionsMade(at=time.time(), made=tuple(marked))
            context.recording.log.append(noted)
            context.history.add(noted)
        return marked


SERVICES = Services(watch=Watch, door=open_door)
"""The services of every run: watches need the replay package, which lies above the runtime."""
