"""From a row that differs to the moment before it was produced: for sides that are recordings.

A recording knows where a row came from (`Past.why`) and can go there (`Past.before`). Where both sides are recordings,
the origins of the row and of its counterpart are laid side by side: they part at the operator that produced something
else, and the moment is there. Otherwise the moment is at the operator that produced the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from samovar.diff.comparison_errors import SideProblem
from samovar.diff.event_values import canonical
from samovar.diff.tables.table_inputs import Given
from samovar.replay.moment import Moment
from samovar.replay.provenance import Origin

__all__ = ["moment_before"]

_ORIGINS = 200
"""Tuples of a row's past to look at: an aggregate's group may have any number, and the first that differs is enough."""


def moment_before(
    origin: Given, row: Mapping[str, Any], other: Given, counterpart: Mapping[str, Any] | None, side: str
) -> Moment:
    """The moment just before the step that produced a row, or made it differ from its counterpart."""
    past, sink = origin.past, origin.sink
    if past is None or sink is None:
        raise SideProblem(
            f"Expected a recording on the {side} side, got a table without a past.",
            hint="Compare sv.open('runs/...') with the other side.",
        )
    ours = past.why(sink, dict(row), _ORIGINS)
    theirs: Sequence[Origin] = ()
    if other.past is not None and other.sink is not None and counterpart is not None:
        theirs = other.past.why(other.sink, dict(counterpart), _ORIGINS)
    number = _parting(ours, theirs)
    producer = ours[number].operator
    taken = ours[number + 1] if number + 1 < len(ours) else None
    if taken is None:  # the tuple came from a source: stop before its first consumer, the sink, took it
        producer, taken = sink, ours[number]
    return past.before(producer, epoch=taken.epoch, position=taken.position)


def _parting(ours: Sequence[Origin], theirs: Sequence[Origin]) -> int:
    """The number of the tuple at which origins part: the other side lacks it, though it has what the tuple came from.

    0, the row itself, where nothing is known. Behind an aggregate the origins of all tuples of its group follow each
    other; the first of these that parts counts.
    """
    known: dict[str, set[Any]] = {}
    for step in theirs:
        known.setdefault(step.operator, set()).add(canonical(dict(step.row)))

    def has(step: Origin) -> bool:
        return canonical(dict(step.row)) in known.get(step.operator, ())

    for number, (step, origin) in enumerate(pairwise(ours)):
        derived = tuple(step.position)[: len(origin.position)] == tuple(origin.position)
        if derived and not has(step) and has(origin):
            return number
    return 0
