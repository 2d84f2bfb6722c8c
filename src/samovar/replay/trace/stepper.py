"""Where a cursor in a trace may go next. Pure: counters in, counters out.

A cursor is a number of processed steps for each operator. It is *sound* when every processed tuple was produced by a
step that is processed too. A step advances the counters to the least sound cursor that contains the wanted steps.
`within` names the operators a person looks at (IcedTea's G): tuples from other operators are there whenever they are
needed, and are taken along in the recorded order (section 5.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from samovar.replay.trace.model import Step, StepKey, Trace

__all__ = ["Counts", "Overlap", "advanced", "everything", "next_step", "open_steps", "overlap", "waiting"]

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Overlap:
    """Why a tuple cannot be stepped over: a step of another tuple's scope comes before the end of its scope."""

    operator: str
    """The operator whose tuple was to be stepped over."""
    step: StepKey
    """The step that would have to be done as well: another tuple of the same operator."""
    at: StepKey
    """The step, downstream, that belongs to the other tuple and comes first."""


def everything(trace: Trace) -> dict[str, int]:
    """The cursor behind the last step of all operators."""
    return {op: len(steps) for op, steps in trace.steps.items()}


def next_step(trace: Trace, counts: Counts, operator: str, within: AbstractSet[str]) -> StepKey | None:
    """An operator's next step, if its tuple is there to be processed."""
    key = (operator, counts.get(operator, 0))
    return key if key in trace and _given(trace, counts, key, within) else None


def waiting(trace: Trace, counts: Counts, operator: str, within: AbstractSet[str]) -> list[StepKey]:
    """An operator's tuples that have been produced and not yet processed, in order."""
    steps = trace.steps.get(operator, ())[counts.get(operator, 0) :]
    return [s.key for s in steps if s.taken is not None and _given(trace, counts, s.key, within)]


def _given(trace: Trace, counts: Counts, key: StepKey, within: AbstractSet[str]) -> bool:
    step = trace.step(key)
    if step.taken is None:  # the end of the input: when everything before has come
        ups = trace.edges.upstream(step.operator)
        return all(counts.get(up, 0) >= len(trace.steps.get(up, ())) for up in ups if up in within)
    producer = trace.producer(step)
    return producer is None or producer[0] not in within or _done(counts, producer)


def advanced(trace: Trace, counts: Counts, wanted: Iterable[StepKey]) -> dict[str, int]:
    """The least sound cursor that is not before `counts` and has processed the wanted steps."""
    reached = {op: counts.get(op, 0) for op in trace.steps}
    todo = list(wanted)
    while todo:
        operator, number = todo.pop()
        start = reached.get(operator, 0)
        if number < start:
            continue
        reached[operator] = number + 1
        for step in trace.steps[operator][start : number + 1]:
            todo += (k for k in _needed(trace, step) if not _done(reached, k))
    return reached


def _needed(trace: Trace, step: Step) -> list[StepKey]:
    """The steps that must come before a step: its tuple's producer; at the end of the input, all steps upstream."""
    if step.taken is None:
        ups = trace.edges.upstream(step.operator)
        return [(up, len(trace.steps[up]) - 1) for up in ups if trace.steps.get(up)]
    producer = trace.producer(step)
    return [] if producer is None else [producer]


def open_steps(trace: Trace, counts: Counts, root: StepKey) -> set[StepKey]:
    """The steps in the scope of a step that are still to be done."""
    return {key for key in trace.scope([root]) if not _done(counts, key)}


def overlap(trace: Trace, counts: Counts, key: StepKey) -> Overlap | None:
    """Why a step cannot be stepped over; None when it can."""
    operator, number = key
    scope = trace.scope([key])
    reached = advanced(trace, counts, scope)
    if reached[operator] <= number + 1:
        return None
    others = {n: trace.scope([(operator, n)]) - scope for n in range(number + 1, reached[operator])}
    last = {op: max(n for o, n in scope if o == op) for op, _ in scope}
    for op in trace.steps:  # first look for a tuple of another scope before the end of this scope
        for n in range(counts.get(op, 0), last.get(op, 0)):
            for other, strangers in others.items():
                if (op, n) in strangers:
                    return Overlap(operator, (operator, other), (op, n))
    other = reached[operator] - 1  # else the scopes overlap at operators that are not behind this one
    ways = [k for op in trace.steps for k in sorted(others[other]) if k[0] == op != operator]
    at = next((k for k in ways if not _done(counts, k) and _done(reached, k)), (operator, other))
    return Overlap(operator, (operator, other), at)


def _done(counts: Counts, key: StepKey) -> bool:
    return key[1] < counts.get(key[0], 0)
