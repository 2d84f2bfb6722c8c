"""A trace: the computation steps of a stretch of an epoch, and the arithmetic of positions that ties them together.

A tuple is named by the operator that gave it and its position. An operator's steps are its input tuples in the order in
which it took them; a step's outputs carry the position of its input as a prefix (see `parent_of`). Pure: no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samovar.positions import END, Position, input_of, padded

__all__ = ["ABSENT", "Edges", "StateChange", "Step", "StepKey", "Trace", "Tuple", "parent_of"]

StepKey = tuple[str, int]
"""An operator and the number of its step in the trace."""


class _Absent:
    """In place of a value, where there was none."""

    def __repr__(self) -> str:
        return "absent"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "ABSENT"  # pickled by name: a process has only one


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Tuple:
    """A row on its way through the workflow, with the operator that produced it and its position."""

    operator: str
    """The operator that gave it."""
    position: Position
    row: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True)
class StateChange:
    """What a step changed in a state: `before` or `after` is ABSENT where a key came or went."""

    operator: str
    name: str
    """The state's name: an attribute of a Python operator, `groups`, `rows`, ..."""
    key: Any
    """The key of a map or the index of a list; None for a plain value."""
    before: Any
    after: Any
    keyed: bool = False
    """Whether `key` is a key even if it is None, as a map's may be."""

    @property
    def whole(self) -> bool:
        """Whether the value itself was replaced, not an entry of it."""
        return self.key is None and not self.keyed


@dataclass(frozen=True, slots=True)
class Step:
    """One computation step: an operator takes a tuple (None: the end of its input), and produces tuples."""

    operator: str
    number: int
    port: int
    taken: Tuple | None
    outputs: tuple[Tuple, ...] = ()

    @property
    def row(self) -> Mapping[str, Any] | None:
        """The row that was processed; None for the step at the end of the input."""
        return None if self.taken is None else self.taken.row

    @property
    def key(self) -> StepKey:
        return self.operator, self.number


@dataclass(frozen=True)
class Edges:
    """The operators of a trace: which of them feed which, and how positions are built."""

    inputs: Mapping[str, tuple[str, ...]]
    shapes: Mapping[str, str]
    width: Mapping[str, int]
    probe: Mapping[str, int]
    """For joins: the port whose tuples are steps; the other side is state."""
    order: Mapping[str, str] = field(default_factory=dict)
    """`arrival` for operators whose order was logged."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """The place of each operator in the workflow: it is part of the positions of rows produced at the end of input."""

    def consumers(self, name: str) -> list[tuple[str, int]]:
        """The operators that take an operator's output as steps, each with the port."""
        return [
            (op, port)
            for op, ups in self.inputs.items()
            for port, up in enumerate(ups)
            if up == name and self.probe.get(op, port) == port
        ]

    def ports(self, name: str) -> list[int]:
        """The ports of an operator whose tuples are steps."""
        if name in self.probe:
            return [self.probe[name]]
        return list(range(len(self.inputs[name])))

    def downstream(self, name: str) -> set[str]:
        """The operator and all behind it (IcedTea's G)."""
        behind = {name}
        for op, ups in self.inputs.items():
            if behind & set(ups):
                behind.add(op)
        return behind

    def upstream(self, name: str) -> list[str]:
        """All operators before one; those that feed it directly come first."""
        before = list(dict.fromkeys(self.inputs.get(name, ())))
        for up in before:
            before += [u for u in self.inputs.get(up, ()) if u not in before]
        return before


def parent_of(edges: Edges, name: str, position: Position) -> tuple[int, Position] | None:
    """From a tuple of an operator's output, the port and position of the input tuple it came from.

    None when it came from no single tuple: at the end of the input, or from a function over batches.
    """
    ups = edges.inputs[name]
    if not ups or position[0] == END + edges.ranks.get(name, 0):
        return None
    widths = [edges.width[up] for up in ups]
    return input_of(edges.shapes[name], position, widths, edges.probe.get(name, 0))


class Trace:
    """Steps of all operators over a stretch of an epoch. `steps[op][n]` is the n-th step of that stretch."""

    def __init__(self, edges: Edges, steps: Mapping[str, Sequence[Step]]) -> None:
        self.edges = edges
        self.steps: dict[str, tuple[Step, ...]] = {op: tuple(s) for op, s in steps.items()}
        self._made_by: dict[tuple[str, Position], StepKey] = {}
        self._taken_by: dict[tuple[str, int, Position], StepKey] = {}
        for op, of_operator in self.steps.items():
            for step in of_operator:
                for out in step.outputs:
                    self._made_by[op, out.position] = step.key
                if step.taken is not None:
                    self._taken_by[op, step.port, step.taken.position] = step.key

    @classmethod
    def of(
        cls,
        edges: Edges,
        given: Mapping[str, Sequence[Tuple]],
        *,
        ends: Mapping[str, Sequence[Tuple]] | None = None,
        arrivals: Mapping[str, Mapping[tuple[int, Position], int]] | None = None,
    ) -> Trace:
        """Steps from the output of each operator. `ends`: the output of operators at the end of their input.

        `arrivals`: for operators that take tuples as they arrive, the place of each (port, position) in that order.
        """
        steps: dict[str, list[Step]] = {}
        arrived: set[str] = set()
        """Operators whose output is not in the order of positions."""
        for op, ups in edges.inputs.items():
            if not ups:
                continue
            outputs: dict[tuple[int, Position], list[Tuple]] = {}
            for output in given.get(op, ()):
                parent = parent_of(edges, op, output.position)
                if parent is not None:
                    outputs.setdefault(parent, []).append(output)
            taken = [(port, t) for port in edges.ports(op) for t in given.get(ups[port], ())]
            places = (arrivals or {}).get(op)
            if (
                places is None and len(ups) == 1 and ups[0] in arrived
            ):  # in the order of the operator before it
                outputs_before = (out for step in steps[ups[0]] for out in step.outputs)
                places = {(0, out.position): i for i, out in enumerate(outputs_before)}
            wide = max((edges.width[up] for up in ups), default=0)
            if places is not None:
                taken.sort(key=lambda pt: places.get((pt[0], pt[1].position), END))
            else:
                taken.sort(key=lambda pt: (padded(pt[1].position, wide), pt[0]))
            steps[op] = [
                Step(op, i, port, t, tuple(outputs.get((port, t.position), ())))
                for i, (port, t) in enumerate(taken)
            ]
            if ends is not None and op in ends:
                steps[op].append(Step(op, len(steps[op]), 0, None, tuple(ends[op])))
            if places is not None:
                arrived.add(op)
        return cls(edges, steps)

    def step(self, key: StepKey) -> Step:
        return self.steps[key[0]][key[1]]

    def __contains__(self, key: StepKey) -> bool:
        return key[1] < len(self.steps.get(key[0], ()))

    def producer(self, step: Step) -> StepKey | None:
        """The step that produced this step's tuple; None when it comes from outside the trace."""
        return None if step.taken is None else self.producer_of(step.taken)

    def producer_of(self, given: Tuple) -> StepKey | None:
        """The step that produced a tuple; None when it comes from outside the trace."""
        return self._made_by.get((given.operator, given.position))

    def consumers(self, given: Tuple) -> list[StepKey]:
        """The steps that take a tuple."""
        steps = (
            self._taken_by.get((op, port, given.position))
            for op, port in self.edges.consumers(given.operator)
        )
        return [key for key in steps if key is not None]

    def scope(self, keys: Iterable[StepKey]) -> set[StepKey]:
        """Some steps and all steps on tuples that follow from theirs (IcedTea, Definition 4.4)."""
        scope = set(keys)
        waiting = list(scope)
        while waiting:
            for out in self.step(waiting.pop()).outputs:
                new = [k for k in self.consumers(out) if k not in scope]
                scope.update(new)
                waiting += new
        return scope
