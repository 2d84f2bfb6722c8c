"""Breakpoints inside a worker: each tuple of an operator that has one is looked at, before and after it is processed.

A tuple loop without breakpoints pays nothing: an operator's `process` is wrapped only while one stands. A condition on
the tuple stops the worker before it is processed; one that names a state, after. Counting stops it when it has used up
its credit. A condition that raises for a tuple (`None > 3`) is not met by it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any

from samovar.control import messages as m
from samovar.graph.operator import Operator
from samovar.graph.state import declared
from samovar.positions import counting_partition
from samovar.record.state_files import dumps
from samovar.runtime.exchange.partition import partition_number
from samovar.text import shown

if TYPE_CHECKING:
    from samovar.runtime.worker.chain import Chain
    from samovar.runtime.worker.task_control import TaskControl

__all__ = ["TaskBreakpoints"]


class _One:
    """A breakpoint in a chain: with its code, or with what it has counted."""

    def __init__(self, made: m.Breakpoint, used: int) -> None:
        self.made = made
        self.used = used
        self.upto = 0
        self.wants = False
        self.code: CodeType | None = None
        if made.condition:
            self.code = compile(made.condition, f"<breakpoint {made.name}>", "eval")

    def holds(self, instance: Operator, row: Mapping[str, Any], port: int) -> bool:
        """Whether a tuple meets the condition."""
        assert self.code is not None
        try:
            return bool(eval(self.code, _names(self.code, instance, row, port)))
        except Exception:
            return False


def _names(code: CodeType, instance: Operator, row: Mapping[str, Any], port: int) -> dict[str, Any]:
    """States by their names, then columns; declared states that nobody has looked at are not made by looking."""
    own = vars(instance)
    kinds = declared(type(instance))
    unseen = {n: kinds[n].wrap(copy.deepcopy(kinds[n].initial)) for n in kinds if n not in own}
    return {**row, **unseen, **own, "row": row, "port": port}


class TaskBreakpoints:
    """The breakpoints of one task."""

    def __init__(self, control: TaskControl, chain: Chain) -> None:
        self.control = control
        self.chain = chain
        self._stages: dict[int, list[_One]] = {}
        self._last: tuple[str, int, int, int] | None = None

    def __bool__(self) -> bool:
        return bool(self._stages)

    def set(self, standing: tuple[m.Breakpoint, ...], names: list[str]) -> None:
        """The breakpoints that stand from now on. Credit given before is void; what was counted is not."""
        known = {one.made.name: one for ones in self._stages.values() for one in ones}
        self._stages = {}
        for made in standing:
            if made.operator not in names:
                continue
            stage = names.index(made.operator)
            before = known.get(made.name)
            which = 0 if made.counts == "taken" else 1
            one = _One(made, before.used if before is not None else self.chain.counts(stage)[which])
            one.wants = before is not None and before.wants
            self._stages.setdefault(stage, []).append(one)

    def counted(self) -> list[m.TuplesCounted]:
        """What was counted so far."""
        counting = [one for ones in self._stages.values() for one in ones if one.made.counts]
        return [m.TuplesCounted(breakpoint=o.made.name, used=o.used, wants=o.wants) for o in counting]

    def credit(self, name: str, upto: int) -> None:
        """So many may be counted."""
        for ones in self._stages.values():
            for one in ones:
                if one.made.name == name:
                    one.upto = max(one.upto, upto)

    def around(self, stage: int, process: Callable[..., Any]) -> Callable[..., Any]:
        """An operator's `process`, with a look before and after."""

        def watched(row: dict[str, Any], port: int = 0) -> Iterator[Any]:
            self._before(stage, row, port)
            out = process(row) if self.chain.task.stages[stage].ports == 1 else process(row, port)
            yield from out or ()
            self._after(stage, row, port)

        return watched

    def _before(self, stage: int, row: dict[str, Any], port: int) -> None:
        for one in self._stages.get(stage, ()):
            if one.made.counts:
                one.used = self._counted(one, stage) - int(one.made.counts == "taken")
                self._need_credit(one, stage, port)
            elif not one.made.late and one.holds(self.chain.loaded[stage].instance, row, port):
                self._reach(one, stage, row, port)

    def _after(self, stage: int, row: dict[str, Any], port: int) -> None:
        for one in self._stages.get(stage, ()):
            if one.made.counts:
                one.used = self._counted(one, stage)
                self._need_credit(one, stage, port, behind=True)
            elif one.made.late and one.holds(self.chain.loaded[stage].instance, row, port):
                self._reach(one, stage, row, port)

    def _need_credit(self, one: _One, stage: int, port: int, *, behind: bool = False) -> None:
        if one.used < one.upto:
            return
        one.wants = True
        name = one.made.name

        def there() -> bool:
            now = next((o for o in self._stages.get(stage, ()) if o.made.name == name), None)
            return now is None or now.used < now.upto

        counted = m.TuplesCounted(breakpoint=name, used=one.used, wants=True)
        self.control.wait_for_credit(counted, there, (stage, port, self._number(stage, port)), behind)
        for now in self._stages.get(stage, ()):
            now.wants = False if now.made.name == name else now.wants

    def _reach(self, one: _One, stage: int, row: dict[str, Any], port: int) -> None:
        number = self._number(stage, port)
        here = (one.made.name, stage, port, number)
        if here == self._last:  # it is tried again after it raised
            return
        self._last = here
        task, bucket = self.chain.task, self.chain.bucket or 0
        if not task.stateful:  # its tuples are nobody's: they are counted by partition
            bucket = counting_partition(bucket, partition_number())
        place = m.TuplePlace(task.stages[stage].name, task.epoch, bucket, port, number)
        reached = m.Reached(
            breakpoint=one.made.name, place=place, shown=shown(row, 600), row=dumps(dict(row))
        )
        self.control.reach(reached, (stage, port, number), one.made.late)

    def _counted(self, one: _One, stage: int) -> int:
        """What the operator has taken, with the tuple at hand, or given in this task."""
        chain = self.chain
        taken, given = chain.counts(stage)
        feeding = chain.feed if stage == 0 else None
        if feeding is not None and feeding.kept is not None:
            taken = chain.passed[0][0] + feeding.before + feeding.taken
            given += len(chain.rows) - feeding.kept
        return taken if one.made.counts == "taken" else given

    def _number(self, stage: int, port: int) -> int:
        """The number of the tuple at hand on its port, in its bucket."""
        feeding = self.chain.feed
        if stage == 0 and feeding is not None and feeding.kept is not None:
            return feeding.before + feeding.taken - 1
        return self.chain.taken[stage][port] - 1
