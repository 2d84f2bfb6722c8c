"""Which counters come for free, and where a counter must be added to the plan.

A counter in Spark's plan (`observe`) costs about a tenth of a scan-heavy job, so it is the last resort: Parquet footers
tell what sources give and what sinks take, Python workers count for themselves, an aggregate carries the number of rows
of each group, and operators that give one row for one row hand counts on. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from samovar.compile.plan import Plan
from samovar.compile.sqltext import SqlTextError, function_names, tokenise
from samovar.graph import operators as ops

__all__ = [
    "Counted",
    "Measured",
    "add_up",
    "counted_apart",
    "may_skip_rows",
    "needs_counter",
    "stored_in",
    "tallying",
]

Measured = Mapping[tuple[str, int | None], int]
"""(operator, None): rows it gave; (operator, port): rows it took on a port."""
Counted = tuple[tuple[int, ...], int]
"""Rows an operator took on each port, and rows it gave."""


def stored_in(plan: Plan, low: int, high: int) -> frozenset[str]:
    """Operators whose input, or result, is written in an epoch over the levels `low` to `high`."""
    placement = plan.placement
    stored = set()
    for name in plan.graph.ops:
        at = placement.level[name]
        if not low <= at <= high:
            continue
        if placement.ends(name):
            streaming = low == high and bool(placement.sources(at))
            if streaming or any(level > high for level in placement.streams[name] | placement.whole[name]):
                stored.add(name)
        elif placement.is_sink(name):
            stored.add(name)
    return frozenset(stored)


def may_skip_rows(plan: Plan, tail: str, stored: frozenset[str]) -> bool:
    """Whether Spark may not ask for all rows of a stateful Python operator: behind it is a join or a limit."""
    if plan.shape(tail) != "python":
        return False
    waiting = [tail]
    while waiting:
        for consumer, _ in plan.graph.consumers(waiting.pop()):
            if plan.shape(consumer) in ("join", "limit"):
                return True
            if consumer not in stored:
                waiting.append(consumer)
    return False


def needs_counter(
    plan: Plan, name: str, level: int | None, stored: frozenset[str], known: frozenset[str]
) -> bool:
    """Whether the rows an operator gives must be counted in the plan.

    `stored` are operators whose input or output is written in this epoch, or that count their input themselves; `known`
    those whose output is counted.
    """
    shape = plan.shape(name)
    op = plan.graph.ops[name]
    if name in known or shape in ("one", "union", "python", "sink") or isinstance(op, ops.Sort):
        return False
    return level is None or not _told(plan, name, level, stored)


def tallying(plan: Plan, low: int, high: int, stored: frozenset[str]) -> frozenset[str]:
    """Aggregates of an epoch that store no deltas in it, but count the rows of each group on the side.

    Their sum is what the aggregate took, if all groups are read: what follows must not stop early. Not where that is
    known already.
    """
    return frozenset(
        name
        for name, op in plan.graph.ops.items()
        if isinstance(op, ops.Aggregate)
        and plan.shape(name) == "accumulate"
        and low <= plan.placement.level[name] <= high
        and name not in stored
        and not plan.ordered(name)
        and plan.shape(_made_by(plan, op.inputs[0])) in ("some", "many", "join", "limit", "batches")
        and _read_to_the_end(plan, name)
    )


def _made_by(plan: Plan, name: str) -> str:
    """The operator that decides how many rows another one gives."""
    while plan.shape(name) == "one":
        name = plan.graph.ops[name].inputs[0]
    return name


def _read_to_the_end(plan: Plan, name: str) -> bool:
    """Whether nothing behind an operator can have enough of its rows: no join, limit or function over batches."""
    for consumer, _ in plan.graph.consumers(name):
        shape = plan.shape(consumer)
        if shape in ("join", "batches") or (shape == "limit" and not plan.aligned(consumer)):
            return False
        if not _read_to_the_end(plan, consumer):
            return False
    return True


def counted_apart(plan: Plan, name: str) -> bool:
    """Whether a job of its own counts an operator's rows for less than a counter in the plan would cost.

    True for plain comparisons on columns of Parquet files: such a job reads those columns alone, while a counter in
    front of a join makes Spark copy every row. Not for functions or patterns, which would be computed twice, nor for
    conditions that leave few rows to copy.
    """
    op = plan.graph.ops[name]
    if not isinstance(op, ops.Filter | ops.DropNa):
        return False
    if isinstance(op, ops.Filter) and _leaves_few(op.condition):
        return False
    while not isinstance(op, ops.Read):
        if not isinstance(op, ops.Filter | ops.DropNa | ops.Select | ops.Rename | ops.Drop | ops.Alias):
            return False
        for text in op.expressions():
            words = {w.lower() for w in re.findall(r"\w+", text)}
            if function_names(text) - {"and", "or", "not", "in"} or words & {
                "like",
                "rlike",
                "ilike",
                "regexp",
            }:
                return False
        op = plan.graph.ops[op.inputs[0]]
    return op.format == "parquet"


def _leaves_few(condition: str) -> bool:
    """Whether a condition looks as if few rows meet it: a value that is asked for, or bounds on both sides."""
    try:
        words = [token.lower for token in tokenise(condition)]
    except SqlTextError:
        return False
    if {"or", "not", "<>", "!="} & set(words):
        return False
    bounds = sum(word in ("<", "<=", ">", ">=") for word in words)
    return bounds > 1 or bool({"=", "==", "<=>", "in", "between"} & set(words))


def _told(plan: Plan, name: str, level: int, stored: frozenset[str]) -> bool:
    """Whether a consumer on this level tells how many rows it took."""
    if name in plan.placement.stashed and plan.placement.level[name] == level:
        return True
    for consumer, _ in plan.graph.consumers(name):
        if not plan.placement.works(consumer, level):
            continue
        shape = plan.shape(consumer)
        if shape == "python" or consumer in stored:
            return True
        if shape == "one" and _told(plan, consumer, level, stored):
            return True
    return False


def add_up(
    plan: Plan,
    measured: Measured,
    low: int,
    high: int,
    *,
    first: bool = True,
    before: Mapping[str, int] | None = None,
) -> dict[str, Counted]:
    """The counters of an epoch over the levels `low` to `high`, handing what was measured up and down the edges.

    What is only computed again on a higher level, or read back from a stash, was counted when it first flowed. `first`:
    whether it is the level's first epoch, which takes build sides whole; `before`: rows given in earlier epochs.
    """
    placement = plan.placement
    out = {n: v for (n, port), v in measured.items() if port is None}
    taken = {(n, port): v for (n, port), v in measured.items() if port is not None}
    working = {n for n in plan.graph.ops if _works(plan, n, low, high)}
    for name in reversed(list(plan.graph.ops)):  # what consumers took tells what their inputs gave
        for consumer, port in plan.graph.consumers(name):
            if name not in out and (consumer, port) in taken:
                out[name] = taken[consumer, port]
        if name in working and _hands_on(plan, name) and name in out:
            taken.setdefault((name, 0), out[name])
    for name, op in plan.graph.ops.items():  # what inputs gave tells the rest
        if name in working:
            for port, up in enumerate(op.inputs):
                taken_whole = _is_build(plan, name, port) or not any(
                    placement.works(name, at) for at in range(low, high + 1)
                )
                if taken_whole and not _counts(plan, up, low, high):
                    taken.setdefault((name, port), (before or {}).get(up, 0) if first else 0)
                elif up in out:
                    taken.setdefault((name, port), out[up])
        ins = [taken.get((name, port)) for port in range(len(op.inputs))]
        if name in out:
            continue
        if ins and None not in ins and (_hands_on(plan, name) or plan.shape(name) == "union"):
            out[name] = sum(i for i in ins if i is not None)
        elif plan.shape(name) in ("source", "python") or placement.ends(name) or name in placement.stashed:
            out[name] = 0  # nothing was read of it, or it is not its turn
    counted: dict[str, Counted] = {}
    for name, op in plan.graph.ops.items():
        first_time = _counts(plan, name, low, high)
        gave = out.get(name, 0) if first_time else 0
        took = tuple(
            taken.get((name, p), 0) if _takes(plan, name, low, high) else 0 for p in range(len(op.inputs))
        )
        if gave or any(took):
            counted[name] = (took, gave)
    return counted


def _works(plan: Plan, name: str, low: int, high: int) -> bool:
    """Whether an operator processes rows on these levels: slice by slice, or its whole input for a build side."""
    placement = plan.placement
    if any(placement.works(name, at) for at in range(low, high + 1)):
        return True
    return not placement.streams[name] and any(low <= at <= high for at in placement.whole[name])


def _is_build(plan: Plan, name: str, port: int) -> bool:
    return name in plan.placement.build and port == plan.placement.build_port(name)


def _hands_on(plan: Plan, name: str) -> bool:
    return plan.shape(name) in ("one", "sink") or isinstance(plan.graph.ops[name], ops.Sort)


def _counts(plan: Plan, name: str, low: int, high: int) -> bool:
    """Whether what an operator gives in these levels is given for the first time."""
    placement = plan.placement
    if placement.free(name) or placement.ends(name):
        levels = placement.streams[name] or placement.whole[name]
        return bool(levels) and low <= min(levels) <= high
    return low <= placement.level[name] <= high


def _takes(plan: Plan, name: str, low: int, high: int) -> bool:
    if plan.placement.ends(name):
        return low <= plan.placement.level[name] <= high
    return _counts(plan, name, low, high)
