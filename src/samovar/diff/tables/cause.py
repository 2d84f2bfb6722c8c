"""From a row that differs to the moment it was made: for sides that are recordings.

A recording that was opened (`sv.open`) tells where a row came from (`why`) and can be gone to (`before`). Where both
sides are recordings, the ways of the row and of its counterpart are laid side by side: they part at the operator that
gave something else, and that is where the moment is. Else it is at the operator that gave the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from samovar.diff.comparison_errors import SideProblem
from samovar.diff.event_values import canonical

__all__ = ["moment_before"]


def moment_before(given: Any, row: Mapping[str, Any], other: Any, counterpart: Any, side: str) -> Any:
    """The moment just before the step that made a row, or made it differ from its counterpart."""
    past, sink = _past_of(given), getattr(given, "sink", None)
    if past is None or sink is None:
        raise SideProblem(
            f"Expected a recording on the {side} side, got a table without a past.",
            hint="Compare what sv.open('runs/...') gives with the other side.",
        )
    way = past.why(sink, dict(row), 200)
    theirs: Sequence[Any] = ()
    other_past = _past_of(other)
    if other_past is not None and counterpart is not None:
        theirs = other_past.why(other.sink, dict(counterpart), 200)
    number = _parting(way, theirs)
    producer = way[number].operator
    taken = way[number + 1] if number + 1 < len(way) else None
    if taken is None:  # a source gave it: the moment is before its first consumer, the sink, took it
        producer, taken = sink, way[number]
    return past.before(producer, epoch=taken.epoch, position=taken.position)


def _past_of(given: Any) -> Any:
    origin = getattr(given, "origin", None)
    return origin if hasattr(origin, "why") and hasattr(origin, "before") else None


def _parting(way: Sequence[Any], theirs: Sequence[Any]) -> int:
    """The number of the tuple at which two ways part: one the other side lacks, though it has what it was made from.

    The row itself, 0, where nothing is known. Behind an aggregate the ways of all that went into its group follow each
    other; the first of these that parts is the one.
    """
    known: dict[str, set[Any]] = {}
    for step in theirs:
        known.setdefault(step.operator, set()).add(canonical(dict(step.row)))

    def has(step: Any) -> bool:
        return canonical(dict(step.row)) in known.get(step.operator, ())

    for number, (step, origin) in enumerate(pairwise(way)):
        made_from = tuple(step.position)[: len(origin.position)] == tuple(origin.position)
        if made_from and not has(step) and has(origin):
            return number
    return 0
