"""The stretches of a run that can be traced, from its log alone: an epoch on one level. Pure: no Spark.

An epoch that closed several levels in one plan has a segment for each of them: what ended on one level flows on the
next, so time inside the epoch goes level by level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from samovar.compile.levels import Placement
from samovar.compile.plan import Plan
from samovar.graph import operators as ops
from samovar.record.log import EpochCommitted
from samovar.replay.trace.model import Edges

__all__ = ["Segment", "edges_of", "gives_here", "leaves_of", "only_native", "segments_of"]


@dataclass(frozen=True)
class Segment:
    """One level of one epoch. `low` to `high` are the levels the epoch covered as one plan."""

    epoch: int
    level: int
    low: int
    high: int
    units: Mapping[str, tuple[int, int]]
    first: bool
    last: bool
    number: int = field(default=0, compare=False)
    """Its place among the segments of the run."""

    def __hash__(self) -> int:
        return hash((self.epoch, self.level))


def segments_of(epochs: Sequence[EpochCommitted]) -> list[Segment]:
    """All segments of a run, in the order of time."""
    segments: list[Segment] = []
    begun: set[int] = set()
    for fact in epochs:
        high = fact.level + fact.levels - 1
        for level in range(fact.level, high + 1):
            lowest = level == fact.level
            segments.append(
                Segment(
                    fact.epoch,
                    level,
                    fact.level,
                    high,
                    fact.units,
                    first=level not in begun,
                    last=fact.last if lowest else True,
                    number=len(segments),
                )
            )
            begun.add(level)
    return segments


def leaves_of(plan: Plan, level: int) -> list[str]:
    """Operators whose output is read from storage on a level: sources, stashes, and operators of lower levels."""
    placement = plan.placement
    leaves = []
    for name, shape in placement.shapes.items():
        if level not in placement.streams[name]:
            continue
        stored = name in placement.stashed and level > placement.level[name]
        ended = placement.ends(name) and level > placement.level[name]
        if shape == "source" or stored or ended:
            leaves.append(name)
    return leaves


def gives_here(plan: Plan, name: str, level: int) -> bool:
    """Whether a leaf's tuples count as its output on a level: those of a stash were counted before."""
    placement = plan.placement
    if placement.ends(name):
        return level == min(placement.streams[name])
    return placement.shapes[name] == "source"


def edges_of(plan: Plan, level: int) -> Edges:
    """The operators that work on a level; those that read from storage there (leaves) have no inputs."""
    placement = plan.placement
    leaves = leaves_of(plan, level)
    inputs: dict[str, tuple[str, ...]] = {}
    shapes: dict[str, str] = {}
    probe: dict[str, int] = {}
    for name, op in plan.graph.ops.items():
        if name in leaves:
            inputs[name] = ()
        elif _works(placement, name, level):
            inputs[name] = op.inputs
            if name in placement.build:
                probe[name] = 1 if placement.build[name] == "left" else 0
        else:
            continue
        shapes[name] = "opaque" if isinstance(op, ops.Batches) else plan.shape(name)
    order = {n: op.order for n, op in plan.graph.ops.items() if isinstance(op, ops.Python) and n in inputs}
    ranks = {n: i for i, n in enumerate(plan.graph.ops)}
    return Edges(inputs, shapes, dict(plan.width), probe, order, ranks)


def only_native(plan: Plan, level: int, name: str) -> bool:
    """Whether an operator's rows on a level follow from leaf tuples one by one: no Python operator or limit before."""
    edges = edges_of(plan, level)
    todo = [name]
    while todo:
        at = todo.pop()
        if not edges.inputs.get(at):
            continue
        if isinstance(plan.graph.ops[at], ops.Python | ops.Batches | ops.Limit):
            return False
        todo += [edges.inputs[at][port] for port in edges.ports(at)]
    return True


def _works(placement: Placement, name: str, level: int) -> bool:
    if placement.ends(name):
        return placement.level[name] == level
    return placement.works(name, level)
