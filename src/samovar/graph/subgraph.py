"""Parts of a workflow: the enabled operators, and those that lead to an operator. Pure; knows no Spark."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from samovar.errors import UnknownName
from samovar.graph import operators as ops
from samovar.graph.operator_names import unused
from samovar.graph.operators.base import Op

__all__ = ["enabled", "up_to"]


def enabled(all_ops: Mapping[str, Op]) -> dict[str, Op]:
    """The operators that take part. Consumers of a disabled operator with one input read that input instead; a disabled
    operator with none or several inputs is dropped together with all operators behind it.
    """
    if all(op.enabled for op in all_ops.values()):
        return dict(all_ops)
    substitutes: dict[str, str | None] = {}

    def stands_for(name: str) -> str | None:
        """The operator whose rows are read in the place of `name`; None when it is dropped."""
        if name not in substitutes:
            substitutes[name] = None  # ends the recursion in a circle, which the check of edges reports
            op = all_ops[name]
            if op.enabled:
                substitutes[name] = name if all(stands_for(up) is not None for up in op.inputs) else None
            elif len(op.inputs) == 1:
                substitutes[name] = stands_for(op.inputs[0])
        return substitutes[name]

    taking_part: dict[str, Op] = {}
    for name, op in all_ops.items():
        if stands_for(name) == name:
            ups = tuple(str(stands_for(up)) for up in op.inputs)
            taking_part[name] = op if ups == op.inputs else msgspec.structs.replace(op, inputs=ups)
    return taking_part


def up_to(all_ops: Mapping[str, Op], name: str) -> dict[str, Op]:
    """An operator and what leads to it; a sink `<name>_result` is added unless it is one."""
    if name not in all_ops:
        raise UnknownName(name, all_ops)
    needed: set[str] = set()
    waiting = [name]
    while waiting:
        at = waiting.pop()
        if at not in needed:
            needed.add(at)
            waiting += all_ops[at].inputs
    part = {n: op for n, op in all_ops.items() if n in needed}
    if not isinstance(all_ops[name], ops.SINKS):
        sink = unused(f"{name}_result", all_ops)
        part[sink] = ops.Sink(name=sink, inputs=(name,))
    return part
