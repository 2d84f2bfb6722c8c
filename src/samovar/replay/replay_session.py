"""A recording opened for time travel: its segments and operators, the windows traced from it, the states in them."""

from __future__ import annotations

from samovar.errors import UnknownName
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.replay.state.timelines import Timelines
from samovar.replay.state.windows import Windows
from samovar.replay.trace.segments import Segment, gives_here, leaves_of, segments_of
from samovar.replay.trace.tracer import Tracer

__all__ = ["ReplaySession"]


class ReplaySession:
    """What every question about the past asks. Safe for several threads."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.history = tracer.history
        self.plan = tracer.plan
        self.leaves = tracer.leaves
        self.segments: list[Segment] = segments_of(tracer.history.epochs)
        self.windows = Windows(tracer, self.segments)
        self.timelines = Timelines(tracer)

    def close(self) -> None:
        """End what goes on in the background, and remove what was computed again."""
        self.windows.close()
        self.tracer.close()

    # --- operators --------------------------------------------------------------------------------------------------

    @property
    def operators(self) -> list[str]:
        return list(self.plan.graph.ops)

    def op(self, name: str) -> Op:
        """An operator of the run; raises when there is none of that name."""
        if name not in self.plan.graph.ops:
            raise UnknownName(name, self.operators, what="an operator of the run")
        return self.plan.graph.ops[name]

    def is_python(self, name: str) -> bool:
        """Whether an operator runs Python code tuple by tuple."""
        return isinstance(self.op(name), ops.Python)

    # --- segments ---------------------------------------------------------------------------------------------------

    def works_in(self, segment: Segment, operator: str) -> bool:
        """Whether an operator takes tuples in a segment."""
        return bool(self.tracer.edges(segment.level).inputs.get(operator))

    def taken_in(self, segment: Segment, operator: str) -> int:
        """How many tuples an operator took in a segment, by the log."""
        if segment.epoch >= len(self.history.epochs):
            return 0  # it failed: nothing of it was counted
        counters = self.history.epochs[segment.epoch].counters.get(operator)
        if counters is None or not self.works_in(segment, operator):
            return 0
        ports = self.tracer.edges(segment.level).ports(operator)
        return sum(counters.taken[p] for p in ports if p < len(counters.taken))

    def failed_segment(self) -> Segment | None:
        """The segment of the epoch that failed, if one did; it is the last one from then on."""
        fact = self.history.failed
        if fact is None:
            return None
        high = fact.level + fact.levels - 1
        number = len(self.segments)
        segment = Segment(fact.epoch, fact.level, fact.level, high, fact.units, fact.first, fact.last, number)
        if not self.segments or self.segments[-1] != segment:
            self.segments.append(segment)
        return self.segments[-1]

    def giving_leaves(self, segment: Segment) -> list[str]:
        """Leaves whose tuples count as given in a segment."""
        plan, level = self.tracer.tracing, segment.level
        return [leaf for leaf in leaves_of(plan, level) if gives_here(plan, leaf, level)]
