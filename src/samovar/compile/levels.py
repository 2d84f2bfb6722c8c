"""Levels: which operators work together, and what must have ended before.

A blocking edge (into a join's build side, out of an aggregate or a sort) ends with its input. Operators are placed on
levels so that everything an operator waits for ended on a lower level; a level is run as a sequence of epochs over its
sources. Pure code over shapes and sizes: no Spark.

Three ways bring rows over a blocking edge or to a higher level:

- *again*: a chain of stateless native operators over files, or over a blocking operator's output, is computed again on
  the level that needs it. Reading twice with pruned columns costs less than storing wide rows.
- *whole*: a join's build side that is such a chain, or joins of such chains, and small against the probe side, is not
  cut into epochs: the first epoch of the join's level takes it whole.
- *stash*: anything else is written as it is produced and read back as a source of the higher level.

A join with a large build side does its work again in each epoch. Where few rows are left of the probe side, because a
join before it took most of them out, these rows are stashed, and the join is *deferred* to a level of its own, which
has few epochs.

An operator with a volatile expression (`rand()`, `uuid()`, the present time) is computed once and never again: its
output is stashed, so that everything behind it and every replay sees the values that were.

What is computed once works on the lowest level that asks for it, so that a stash is needed only where several do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from samovar.compile.shapes import Shape
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph

__all__ = ["Placement", "Side", "place"]

Side = Literal["left", "right"]

SMALL = 64 << 20
"""A build side of at most this many bytes is always taken whole: less than what a level more and a stash cost."""
SHARE = 0.5
"""A build side of at most this share of the probe side's bytes is taken whole.

The level's first epoch takes it on top of its own slice: a larger one would make that epoch the longest by far.
"""
HEAVY = 32 << 20
"""A build side from this many bytes on takes a second of a core or more in each epoch that joins with it."""
MANY = 512 << 20
"""A probe side of fewer bytes is one epoch or two, so that nothing is joined often."""
AGGREGATED = 0.1
"""The guessed size of an aggregate against its input. It decides between the sides of a join: a rough guess will do."""

_FREE: frozenset[Shape] = frozenset({"source", "one", "some", "many", "union"})
"""Shapes that can be computed again on another level: what they give depends on nothing but the rows they take."""
_ENDING: frozenset[Shape] = frozenset({"accumulate", "keep"})
"""Shapes that give their output when their input has ended."""


@dataclass(frozen=True)
class Placement:
    """Where every operator works.

    `level`: the level an operator processes its input on. `streams`: the levels on which an operator's output flows in
    epochs. `whole`: the levels on which its whole output is taken at once. `stashed`: operators whose output is written
    for a higher level. `build`: each join's build side; `inline`: joins whose build side is taken whole; `deferred`:
    those of them whose probe side is stashed.
    """

    shapes: Mapping[str, Shape]
    level: Mapping[str, int]
    streams: Mapping[str, frozenset[int]]
    whole: Mapping[str, frozenset[int]]
    stashed: frozenset[str]
    build: Mapping[str, Side]
    inline: frozenset[str]
    levels: int
    fixed: frozenset[str] = frozenset()
    """Operators that would give something else if they were computed again: a replay reads what they gave."""
    deferred: frozenset[str] = frozenset()

    def free(self, name: str) -> bool:
        """Whether the operator is computed again on every level that needs it, instead of once."""
        return self.shapes[name] in _FREE and name not in self.stashed

    def ends(self, name: str) -> bool:
        """Whether the operator gives its output only when its input has ended."""
        return self.shapes[name] in _ENDING

    def works(self, name: str, level: int) -> bool:
        """Whether the operator processes tuples, slice by slice, on a level."""
        if self.free(name):
            return level in self.streams[name]
        return self.level[name] == level and (
            bool(self.streams[name]) or self.ends(name) or self.is_sink(name)
        )

    def is_sink(self, name: str) -> bool:
        """Whether the operator keeps a result."""
        return self.shapes[name] == "sink"

    def sources(self, level: int) -> list[str]:
        """Operators whose output comes from storage in slices on this level: file sources and stashes."""
        return [
            n
            for n, shape in self.shapes.items()
            if level in self.streams[n] and (shape == "source" or self.is_read_back(n, level))
        ]

    def is_read_back(self, name: str, level: int) -> bool:
        """Whether the operator's output is read from its stash on a level."""
        return name in self.stashed and level > self.level[name]

    def build_port(self, name: str) -> int:
        """The port of a join's build side; the other one is the probe side's."""
        return 0 if self.build[name] == "left" else 1

    def build_weight(self, level: int, sizes: Mapping[str, int]) -> int:
        """Bytes of sources that this level's first epoch takes whole."""
        return sum(size for name, size in sizes.items() if level in self.whole.get(name, ()))


def place(
    graph: Graph,
    shapes: Mapping[str, Shape],
    volatile: frozenset[str],
    sizes: Mapping[str, int],
    *,
    defers: bool = True,
) -> Placement:
    """Place every operator. `sizes` are the sources' bytes; `volatile` operators are never computed twice; `defers`:
    whether joins may be deferred, which recordings of older versions did not know."""
    fixed = frozenset(n for n in volatile if shapes[n] not in (*_ENDING, "sink", "source"))
    weight = _weights(graph, shapes, sizes)
    build: dict[str, Side] = {}
    inline: set[str] = set()
    deferred: set[str] = set()
    wholeable: dict[str, bool] = {}
    level: dict[str, int] = {}
    ready: dict[str, int] = {}
    """The lowest level on which an operator's output can be read."""
    for name, op in graph.ops.items():  # from sources to sinks: an operator waits for its inputs
        shape = shapes[name]
        inputs = op.inputs
        calm = name not in volatile
        if shape == "source":
            level[name] = ready[name] = 0
            wholeable[name] = True
        elif isinstance(op, ops.Join) and shape == "join":
            build[name] = _build_side(op, weight)
            b, p = (inputs[0], inputs[1]) if build[name] == "left" else (inputs[1], inputs[0])
            # what comes out of a blocking operator is there whole: no epochs could be made of it that begin earlier
            ended = any(shapes[u.name] in _ENDING for u in graph.upstream(b)) or shapes[b] in _ENDING
            if wholeable[b] and (
                shapes[b] == "source" or ended or weight[b] <= max(SMALL, SHARE * weight[p])
            ):
                inline.add(name)
                if (
                    defers
                    and weight[b] >= HEAVY
                    and weight[p] >= MANY
                    and _leaves_few(graph, shapes, build, p)
                ):
                    deferred.add(name)
            level[name] = max(ready[p] + (name in deferred), ready[b] if name in inline else ready[b] + 1)
            ready[name] = level[name] + (name in fixed)
            wholeable[name] = calm and name in inline and wholeable[p]
        else:
            level[name] = max(ready[up] for up in inputs)
            ready[name] = level[name] + (shape in _ENDING or name in fixed)
            wholeable[name] = (shape in _ENDING) or (
                calm and shape in _FREE and all(wholeable[u] for u in inputs)
            )
    free = {n for n in graph.ops if shapes[n] in _FREE and wholeable[n]}
    streams: dict[str, set[int]] = {n: set() for n in graph.ops}
    whole: dict[str, set[int]] = {n: set() for n in graph.ops}
    stashed: set[str] = set()
    for name in reversed(
        list(graph.ops)
    ):  # from sinks to sources: consumers decide on which levels rows are wanted
        for consumer, port in graph.consumers(name):
            is_build = consumer in build and port == (0 if build[consumer] == "left" else 1)
            flows = bool(streams[consumer])
            if (
                consumer in free and consumer not in stashed
            ):  # computed again wherever it is wanted, and its input too
                streams[name] |= streams[consumer]
                whole[name] |= whole[consumer]
            elif is_build and consumer in inline:
                whole[name] |= whole[consumer] | ({level[consumer]} if flows else set())
            elif is_build:
                streams[name].add(level[name])
                whole[name].add(level[consumer])
                stashed.add(name)
            elif consumer in build:
                streams[name] |= {level[consumer]} if flows else set()
                if flows and consumer in deferred:
                    streams[name].add(level[name])
                    stashed.add(name)
                whole[name] |= whole[consumer]
            else:
                streams[name].add(level[consumer])
        if (
            name in fixed and streams[name] | whole[name]
        ):  # computed once, on its own level, and read from there
            streams[name].add(level[name])
            stashed.add(name)
        once = shapes[name] not in _ENDING and name not in free
        if once and streams[name] and name not in stashed:
            level[name] = max(level[name], min(streams[name]))  # nothing asks for it before
        if once and any(at > level[name] for at in streams[name]):
            stashed.add(name)
    count = max(level.values()) + 1
    return Placement(
        dict(shapes),
        level,
        {n: frozenset(s) for n, s in streams.items()},
        {n: frozenset(s) for n, s in whole.items()},
        frozenset(stashed),
        build,
        frozenset(inline),
        count,
        fixed & stashed,
        frozenset(deferred),
    )


def _leaves_few(graph: Graph, shapes: Mapping[str, Shape], build: Mapping[str, Side], name: str) -> bool:
    """Whether few of a stream's rows come out of an operator, as far as can be guessed: on their way is a join that
    drops the rows without a partner, and its build side has been filtered."""
    while shapes[name] in _FREE | {"join"} and len(graph.ops[name].inputs) > 0:
        op = graph.ops[name]
        if shapes[name] == "union":
            return all(_leaves_few(graph, shapes, build, up) for up in op.inputs)
        if not isinstance(op, ops.Join):
            name = op.inputs[0]
            continue
        b, p = op.inputs if build[name] == "left" else reversed(op.inputs)
        filtered = any(shapes[u] == "some" for u in (b, *(u.name for u in graph.upstream(b))))
        if filtered and op.how in ("inner", "semi"):
            return True
        name = p
    return False


def _build_side(op: ops.Join, weight: Mapping[str, float]) -> Side:
    if op.how in ("left", "semi", "anti"):
        return "right"
    if op.how == "right":
        return "left"
    if op.build:
        return op.build
    left, right = op.inputs
    return "left" if weight[left] < weight[right] else "right"


def _weights(graph: Graph, shapes: Mapping[str, Shape], sizes: Mapping[str, int]) -> dict[str, float]:
    """A guess of each operator's output in bytes: its sources' bytes, and less behind an aggregate."""
    weight: dict[str, float] = {}
    for name, op in graph.ops.items():
        shape = shapes[name]
        if shape == "source":
            weight[name] = float(sizes.get(name, 0))
        else:
            total = sum(weight[up] for up in op.inputs)
            weight[name] = total * (AGGREGATED if shape == "accumulate" else 1.0)
    return weight
