"""What is known of an epoch before it begins: how long it will take, how many tuples its Python operators get, and how
long Spark's tasks may take before they tell more."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.compile.strategy import EpochRange
from samovar.control.events import Forecast
from samovar.graph.operators.base import column_of
from samovar.runtime.epochs.pacer import Pacer
from samovar.runtime.epochs.run_context import RunContext
from samovar.runtime.sources.units import row_ranges

__all__ = ["forecast_of"]

Units = Mapping[str, tuple[int, int]]


def forecast_of(
    context: RunContext, covers: EpochRange, pace: Pacer, size: int, *, watching: bool, whole: bool
) -> Forecast:
    """The forecast of an epoch of that size. `whole`: it has to take all that is left, however long that takes."""
    plan = context.plan
    divisible = not whole and pace.fixed_bytes is None and sum(b - a for a, b in covers.units.values()) > 1
    rows = {}
    for name in plan.graph.ops if divisible else ():
        if plan.shape(name) == "python" and plan.placement.works(name, covers.low):
            n = _rows(context, name, covers.units)
            rows.update({} if n is None else {name: n})
    task_seconds = None
    if divisible and _is_native(context, covers):
        task_seconds = pace.task_seconds(size, _builds(context, covers), cold=context.cold)
    levels = range(covers.high + 1, plan.placement.levels)
    ends = not any(plan.placement.works(name, level) for name in plan.graph.ops for level in levels)
    return Forecast(
        expected=pace.seconds(size) if pace.seen else None,
        aim=pace.target(watching=watching) if divisible else None,
        rows=rows,
        last=covers.last and ends,
        task_seconds=task_seconds,
    )


def _is_native(context: RunContext, covers: EpochRange) -> bool:
    """Whether only Spark works in an epoch, and a shorter one would be done sooner: it has more units than cores.

    Rows that user code gets wait for a Python process to start first, and how fast it takes them is known to workers.
    """
    plan = context.plan
    if sum(b - a for a, b in covers.units.values()) <= context.cores:
        return False
    return not any(
        plan.shape(name) in ("python", "batches")
        or any(column_of(text) is not None for text in op.expressions())
        for name, op in plan.graph.ops.items()
        if any(plan.placement.works(name, level) for level in range(covers.low, covers.high + 1))
    )


def _builds(context: RunContext, covers: EpochRange) -> int:
    """Bytes of sources that an epoch reads whole, for its joins."""
    sizes = {name: source.size for name, source in context.sources.items()}
    levels = range(covers.low, covers.high + 1)
    return sum(context.plan.placement.build_weight(level, sizes) for level in levels)


def _rows(context: RunContext, name: str, units: Units) -> int | None:
    """The tuples that an operator takes in an epoch, where they are rows of files that tell how many they have."""
    numbers = [_given(context, up, units) for up in context.plan.graph.ops[name].inputs]
    known = [n for n in numbers if n is not None]
    return sum(known) if len(known) == len(numbers) else None


def _given(context: RunContext, name: str, units: Units) -> int | None:
    source = context.sources.get(name)
    if source is not None:
        ranges = row_ranges(source, range(*units.get(name, (0, 0))))
        return None if ranges is None else sum(n for _, _, n in ranges)
    return _rows(context, name, units) if context.plan.shape(name) in ("one", "union") else None
