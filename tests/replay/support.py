"""Traces made without Spark: small workflows whose tuples, parents and orders are known from how they were made.

`Made` simulates operators one after the other, gives every output the position the engine would give it, and writes
down which step made it. Tests compare what `Trace` and `stepping` find from positions with what is written down here.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from samovar.positions import END, Position
from samovar.replay.trace.model import Edges, StepKey, Trace, Tuple

__all__ = ["Made", "Node", "cursors", "descendants", "least", "random_made", "sound"]


@dataclass(frozen=True)
class Node:
    """One operator: its shape, its inputs, and for Python operators whether it gives rows at the end."""

    shape: str
    inputs: tuple[str, ...] = ()
    finish: int = -1
    """How many tuples it gives at the end of its input; -1: it has no step there."""
    probe: int = 0


@dataclass
class Made:
    """A workflow that ran: the trace, and the truth about it."""

    nodes: Mapping[str, Node]
    edges: Edges
    trace: Trace
    parents: dict[tuple[str, Position], StepKey | None] = field(default_factory=dict)
    """Which step made a tuple; None for tuples of sources."""

    @classmethod
    def of(
        cls,
        nodes: Mapping[str, Node],
        *,
        rows: int | Mapping[str, int] = 2,
        rnd: random.Random | None = None,
        arrival: bool | Mapping[str, list[tuple[int, Position]]] = False,
    ) -> Made:
        """Run the operators. `arrival`: ports are merged at random, or as told, first in first out on each edge."""
        width = _widths(nodes)
        ranks = {n: i for i, n in enumerate(nodes)}
        given: dict[str, list[Position]] = {}
        ends: dict[str, list[Tuple]] = {}
        parents: dict[tuple[str, Position], StepKey | None] = {}
        arrivals: dict[str, dict[tuple[int, Position], int]] = {}
        sources = [n for n, node in nodes.items() if node.shape == "source"]
        for name, node in nodes.items():
            if node.shape == "source":
                count = rows if isinstance(rows, int) else rows[name]
                given[name] = [(sources.index(name), i) for i in range(count)]
                parents.update({(name, at): None for at in given[name]})
                continue
            ports = [node.probe] if node.shape == "join" else range(len(node.inputs))
            queues = {p: [(p, at) for at in given[node.inputs[p]]] for p in ports}
            wide = max(width[up] for up in node.inputs)
            if arrival is False:
                order = sorted(
                    itertools.chain(*queues.values()), key=lambda pa: (_fill(pa[1], wide, -1), pa[0])
                )
            elif arrival is True:
                assert rnd is not None
                order = _merged(rnd, queues)
            else:
                order = arrival.get(name) or list(itertools.chain(*queues.values()))
            if arrival is not False:
                arrivals[name] = {pa: i for i, pa in enumerate(order)}
            given[name] = []
            for number, (port, at) in enumerate(order):
                for out in _outputs(node, name, width, port, at, rnd):
                    given[name].append(out)
                    parents[name, out] = (name, number)
            if node.finish >= 0:
                last = [
                    _fill((END + ranks[name], 0, child), width[name], 0)[: width[name]]
                    for child in range(node.finish)
                ]
                ends[name] = [_tuple(name, at) for at in last]
                given[name] += last
                parents.update({(name, at): (name, len(order)) for at in last})
        probe = {n: node.probe for n, node in nodes.items() if node.shape == "join"}
        edges = Edges(
            {n: node.inputs for n, node in nodes.items()},
            {n: node.shape for n, node in nodes.items()},
            width,
            probe,
            dict.fromkeys(arrivals, "arrival"),
            ranks,
        )
        tuples = {n: [_tuple(n, at) for at in places] for n, places in given.items()}
        trace = Trace.of(edges, tuples, ends=ends, arrivals=arrivals or None)
        return cls(nodes, edges, trace, parents)

    @property
    def steps(self) -> list[StepKey]:
        return [s.key for own in self.trace.steps.values() for s in own]


def _tuple(name: str, at: Position) -> Tuple:
    return Tuple(name, at, {"at": f"{name}{at}"})


def _fill(at: Position, width: int, value: int) -> Position:
    return (*at, *([value] * (width - len(at))))


def _widths(nodes: Mapping[str, Node]) -> dict[str, int]:
    width: dict[str, int] = {}
    for name, node in nodes.items():
        ins = [width[up] for up in node.inputs]
        match node.shape:
            case "source":
                width[name] = 2
            case "many":
                width[name] = ins[0] + 1
            case "python":
                width[name] = max(ins) + (len(ins) > 1) + 1
            case "union":
                width[name] = max(ins) + 1
            case "join":
                width[name] = sum(ins)
            case _:
                width[name] = ins[0]
    return width


def _outputs(
    node: Node, name: str, width: Mapping[str, int], port: int, at: Position, rnd: random.Random | None
) -> list[Position]:
    def some(most: int) -> int:
        return rnd.randrange(most + 1) if rnd is not None else 1

    wide = max(width[up] for up in node.inputs)
    match node.shape:
        case "one":
            return [at]
        case "some":
            return [at] * some(1)
        case "many":
            return [(*at, i) for i in range(some(2))]
        case "python":
            base = at if len(node.inputs) == 1 else (*_fill(at, wide, -1), port)
            return [(*base, i) for i in range(some(2))]
        case "union":
            return [(*_fill(at, wide, -1), port)]
        case "join":
            other = width[node.inputs[1 - node.probe]]
            return [(*at, *([i] * other)) for i in range(some(2))]
    return []  # a sink


def _merged(
    rnd: random.Random, queues: Mapping[int, list[tuple[int, Position]]]
) -> list[tuple[int, Position]]:
    left = {p: list(q) for p, q in queues.items() if q}
    made = []
    while left:
        port = rnd.choice(sorted(left))
        made.append(left[port].pop(0))
        if not left[port]:
            del left[port]
    return made


def random_made(rnd: random.Random, *, arrival: bool = False, most: int = 5, rows: int = 3) -> Made:
    """A random workflow of a few operators over one or two sources."""
    nodes: dict[str, Node] = {"s0": Node("source")}
    if rnd.random() < 0.4:
        nodes["s1"] = Node("source")
    for i in range(rnd.randrange(1, most + 1)):
        known = [n for n, node in nodes.items() if node.shape != "sink"]
        shape = rnd.choice(["one", "some", "many", "python", "python", "union", "join", "sink"])
        if shape in ("union", "join") or (shape == "python" and rnd.random() < 0.3):
            inputs = (rnd.choice(known), rnd.choice(known))
        else:
            inputs = (rnd.choice(known[-2:]),)
        finish = rnd.choice([-1, 0, 1, 2]) if shape == "python" else -1
        nodes[f"n{i}"] = Node(shape, inputs, finish, probe=rnd.randrange(2))
    counts = {n: rnd.randrange(rows + 1) for n, node in nodes.items() if node.shape == "source"}
    return Made.of(nodes, rows=counts, rnd=rnd, arrival=arrival)


# --- the truth, by brute force --------------------------------------------------------------------------------------


def descendants(made: Made, key: StepKey) -> set[StepKey]:
    """All steps on tuples made, over any number of steps, from what a step took."""
    found = {key}
    while True:
        more = {
            s.key
            for own in made.trace.steps.values()
            for s in own
            if s.taken is not None and made.parents[s.taken.operator, s.taken.position] in found
        }
        if more <= found:
            return found
        found |= more


def sound(made: Made, counts: Mapping[str, int]) -> bool:
    """Whether everything processed was given by something processed, and no input ended before all of it came."""
    for op, done in counts.items():
        for step in made.trace.steps[op][:done]:
            if step.taken is None:
                if any(counts[up] < len(made.trace.steps[up]) for up in _before(made, op)):
                    return False
                continue
            parent = made.parents[step.taken.operator, step.taken.position]
            if parent is not None and parent[1] >= counts[parent[0]]:
                return False
    return True


def _before(made: Made, op: str) -> set[str]:
    found = set(made.nodes[op].inputs)
    found |= {u for up in found for u in _before(made, up)}
    return found & set(made.trace.steps)


def cursors(made: Made) -> list[dict[str, int]]:
    """All sound cursors of a small trace."""
    names = list(made.trace.steps)
    ranges = [range(len(made.trace.steps[n]) + 1) for n in names]
    every = (dict(zip(names, c, strict=True)) for c in itertools.product(*ranges))
    return [c for c in every if sound(made, c)]


def least(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The smallest number of each operator over some cursors."""
    every = list(found)
    return {op: min(c[op] for c in every) for op in every[0]}
