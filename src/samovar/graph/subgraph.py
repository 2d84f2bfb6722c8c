"""Parts of a workflow: what is enabled, and what leads to an operator. Pure; knows no Spark."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from samovar.errors import UnknownName
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op

__all__ = ["enabled", "up_to"]


def enabled(all_ops: Mapping[str, Op]) -> dict[str, Op]:
    """The operators that take part. What reads from a disabled operator with one input reads that input instead; a
    disabled operator with none or several is left out together with all that comes after it.
    """
    if all(op.enabled for op in all_ops.values()):
        return dict(all_ops)
    found: dict[str, str | None] = {}

    def stands_for(name: str) -> str | None:
        """The operator whose rows are read in the place of `name`; None: there are none."""
        if name not in found:
            found[name] = None  # a circle ends here, and is told where edges are checked
            op = all_ops[name]
            if op.enabled:
                found[name] = name if all(stands_for(up) is not None for up in op.inputs) else None
            elif len(op.inputs) == 1:
                found[name] = stands_for(op.inputs[0])
        return found[name]

    made: dict[str, Op] = {}
    for name, op in all_ops.items():
        if stands_for(name) == name:
            ups = tuple(str(stands_for(up)) for up in op.inputs)
            made[name] = op if ups == op.inputs else msgspec.structs.replace(op, inputs=ups)
    return made


def up_to(all_ops: Mapping[str, Op], name: str) -> dict[str, Op]:
    """An operator and what leads to it; a sink `<name>_result` is added unless it is one."""
    if name not in all_ops:
        raise UnknownName(name, all_ops)
    wanted: set[str] = set()
    waiting = [name]
    while waiting:
        at = waiting.pop()
        if at not in wanted:
            wanted.add(at)
            waiting += all_ops[at].inputs
    made = {n: op for n, op in all_ops.items() if n in wanted}
    if not isinstance(all_ops[name], ops.SINKS):
        sink, number = f"{name}_result", 1
        while sink in all_ops:
            number += 1
            sink = f"{name}_result_{number}"
        made[sink] = ops.Sink(name=sink, inputs=(name,))
    return made
