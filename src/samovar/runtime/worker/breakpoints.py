"""Breakpoints inside a worker: each tuple of an operator that has one is looked at, before and after it is processed.

A tuple loop without breakpoints pays nothing: an operator's `process` is wrapped only while it has one. A condition on
the tuple stops the worker before the tuple is processed; a condition that names a state, afterwards. A breakpoint that
counts tuples stops the worker when its credit is used up: the coordinator shares the count among the workers. A
condition that raises for a tuple (`None > 3`) does not hold for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any

from samovar.control import messages as m
from samovar.graph.operator import Operator
from samovar.positions import counting_partition
from samovar.record.state_files import dumps
from samovar.runtime.exchange.partition import partition_number
from samovar.runtime.exchange.plain_states import states_of
from samovar.text import shown

if TYPE_CHECKING:
    from samovar.runtime.worker.chain import Chain
    from samovar.runtime.worker.task_control import TaskControl

__all__ = ["TaskBreakpoints"]


class _Breakpoint:
    """A breakpoint in a chain, with its compiled condition or with what it has counted."""

    def __init__(self, order: m.Breakpoint, used: int, *, wants: bool = False) -> None:
        self.order = order
        self.used = used
        """How many tuples it has counted in this task."""
        self.credit = 0
        """Up to which count the worker may go on."""
        self.wants = wants
        """Whether the worker waits for more credit."""
        self.code: CodeType | None = None
        if order.condition:
            self.code = compile(order.condition, f"<breakpoint {order.name}>", "eval")

    def holds(self, instance: Operator, row: Mapping[str, Any], port: int) -> bool:
        """Whether a tuple meets the condition."""
        assert self.code is not None
        try:
            # Columns by their names, then states, which win over columns.
            return bool(eval(self.code, {**row, **states_of(instance), "row": row, "port": port}))
        except Exception:
            return False


class TaskBreakpoints:
    """The breakpoints of one task."""

    def __init__(self, control: TaskControl, chain: Chain) -> None:
        self.control = control
        self.chain = chain
        self._stages: dict[int, list[_Breakpoint]] = {}
        self._last: tuple[str, int, int, int] | None = None

    def __bool__(self) -> bool:
        return bool(self._stages)

    def _all(self) -> Iterator[_Breakpoint]:
        return (point for points in self._stages.values() for point in points)

    def set(self, orders: tuple[m.Breakpoint, ...], names: list[str]) -> None:
        """Replace all breakpoints. Counts of those that stay are kept; their credit is void."""
        known = {point.order.name: point for point in self._all()}
        self._stages = {}
        for order in orders:
            if order.operator not in names:
                continue
            stage = names.index(order.operator)
            taken, produced = self.chain.counts(stage)
            point = _Breakpoint(order, taken if order.counts == "taken" else produced)
            if (before := known.get(order.name)) is not None:
                point = _Breakpoint(order, before.used, wants=before.wants)
            self._stages.setdefault(stage, []).append(point)

    def counted(self) -> list[m.TuplesCounted]:
        """The counts so far of all breakpoints that count."""
        counting = [p for p in self._all() if p.order.counts]
        return [m.TuplesCounted(breakpoint=p.order.name, used=p.used, wants=p.wants) for p in counting]

    def credit(self, name: str, upto: int) -> None:
        """Let a breakpoint count up to a number before the worker stops."""
        for point in self._all():
            if point.order.name == name:
                point.credit = max(point.credit, upto)

    def around(self, stage: int, process: Callable[..., Any]) -> Callable[..., Any]:
        """An operator's `process` that checks the operator's breakpoints before and after each tuple."""

        def watched(row: dict[str, Any], port: int = 0) -> Iterator[Any]:
            self._check(stage, row, port, behind=False)
            out = process(row) if self.chain.task.stages[stage].ports == 1 else process(row, port)
            yield from out or ()
            self._check(stage, row, port, behind=True)

        return watched

    def _check(self, stage: int, row: dict[str, Any], port: int, *, behind: bool) -> None:
        """Stop at breakpoints that are reached. `behind`: the tuple is processed already."""
        for point in self._stages.get(stage, ()):
            if point.order.counts:
                # Before a tuple is processed it is in the operator's count already, and does not count here yet.
                begun = int(not behind and point.order.counts == "taken")
                point.used = self._counted(point, stage) - begun
                self._need_credit(point, stage, port, behind=behind)
            elif point.order.late == behind and point.holds(self.chain.loaded[stage].instance, row, port):
                self._reach(point, stage, row, port)

    def _need_credit(self, point: _Breakpoint, stage: int, port: int, *, behind: bool) -> None:
        if point.used < point.credit:
            return
        point.wants = True
        name = point.order.name

        def current() -> list[_Breakpoint]:  # the breakpoint may be replaced or taken away meanwhile
            return [p for p in self._stages.get(stage, ()) if p.order.name == name]

        def may_go_on() -> bool:
            return all(p.used < p.credit for p in current())

        counted = m.TuplesCounted(breakpoint=name, used=point.used, wants=True)
        self.control.wait_for_credit(counted, may_go_on, (stage, port, self._number(stage, port)), behind)
        for p in current():
            p.wants = False

    def _reach(self, point: _Breakpoint, stage: int, row: dict[str, Any], port: int) -> None:
        number = self._number(stage, port)
        here = (point.order.name, stage, port, number)
        if here == self._last:  # the tuple is processed again, because it raised
            return
        self._last = here
        task, bucket = self.chain.task, self.chain.bucket or 0
        if (
            not task.stateful
        ):  # tuples of a stateless operator belong to no bucket: they are counted by partition
            bucket = counting_partition(bucket, partition_number())
        place = m.TuplePlace(task.stages[stage].name, task.epoch, bucket, port, number)
        reached = m.Reached(
            breakpoint=point.order.name, place=place, shown=shown(row, 600), row=dumps(dict(row))
        )
        self.control.reach(reached, (stage, port, number), point.order.late)

    def _counted(self, point: _Breakpoint, stage: int) -> int:
        """How many tuples the operator has taken, with the current one, or produced in this task."""
        chain = self.chain
        taken, produced = chain.counts(stage)
        feed = chain.feed if stage == 0 else None
        if feed is not None and feed.kept is not None:  # the plain loop keeps its counts in locals
            taken = chain.passed[0][0] + feed.before + feed.taken
            produced += len(chain.rows) - feed.kept
        return taken if point.order.counts == "taken" else produced

    def _number(self, stage: int, port: int) -> int:
        """The number of the current tuple on its port, in its bucket."""
        feed = self.chain.feed
        if stage == 0 and feed is not None and feed.kept is not None:
            return feed.before + feed.taken - 1
        return self.chain.taken[stage][port] - 1
