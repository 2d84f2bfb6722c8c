"""A workflow drawn in text: operators from top to bottom, edges as lanes on their left, as `git log --graph` has it.

    ● orders
    │ ● customers
    ├─╯
    ● joined
    ● S

Pure: names and edges in, lines out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samovar.graph import operators as ops
from samovar.graph.operators.base import Op

__all__ = ["PictureLine", "describe", "draw"]

NODE, UP, MERGE, OPEN, CROSS, ACROSS = "●", "│", "╯", "╮", "┼", "─"


@dataclass(frozen=True)
class PictureLine:
    """A line of the drawing; `operator` names the operator that stands on it, if one does."""

    lanes: str
    operator: str | None = None


def draw(inputs: Mapping[str, Sequence[str]]) -> list[PictureLine]:
    """Draw a DAG given as operator to inputs, in topological order."""
    feeds: dict[str, list[str]] = {name: [] for name in inputs}
    for name, ups in inputs.items():
        for up in dict.fromkeys(ups):
            feeds[up].append(name)
    lanes: list[str | None] = []  # the operator each lane leads to
    lines: list[PictureLine] = []
    for name in inputs:
        arriving = [i for i, target in enumerate(lanes) if target == name]
        place = arriving[0] if arriving else _free(lanes)
        if len(arriving) > 1:
            lines.append(PictureLine(_joint(lanes, place, arriving[1:], MERGE)))
            for i in arriving[1:]:
                lanes[i] = None
        _grow(lanes, place)
        lanes[place] = name
        marks = [NODE if i == place else UP if target else " " for i, target in enumerate(lanes)]
        lines.append(PictureLine(" ".join(marks).rstrip(), name))
        onward = feeds[name]
        lanes[place] = onward[0] if onward else None
        opened = []
        for target in onward[1:]:
            at = _free(lanes, after=place)
            _grow(lanes, at)
            lanes[at] = target
            opened.append(at)
        if opened:
            lines.append(PictureLine(_joint(lanes, place, opened, OPEN)))
        while lanes and lanes[-1] is None:
            lanes.pop()
    return lines


def _free(lanes: Sequence[str | None], after: int = -1) -> int:
    return next((i for i, target in enumerate(lanes) if target is None and i > after), len(lanes))


def _grow(lanes: list[str | None], place: int) -> None:
    lanes.extend([None] * (place + 1 - len(lanes)))


def _joint(lanes: Sequence[str | None], place: int, others: Sequence[int], end: str) -> str:
    """The line on which lanes join (or leave) the one at `place`, which lies to their left."""
    last = max(others)
    middle = {"╯": "┴", "╮": "┬"}[end]
    marks = []
    for i, target in enumerate(lanes):
        if i == place:
            mark = "├"
        elif i == last:
            mark = end
        elif i in others:
            mark = middle
        elif place < i < last:
            mark = CROSS if target else ACROSS
        else:
            mark = UP if target else " "
        marks.append(mark + (ACROSS if place <= i < last else " "))
    return "".join(marks).rstrip()


_DESCRIPTIONS: dict[type[Op], Callable[[Any], str]] = {
    ops.Read: lambda op: f"read {op.format} {', '.join(op.path)}",
    ops.Table: lambda op: f"table {op.table}",
    ops.Filter: lambda op: f"filter {op.condition}",
    ops.Select: lambda op: f"select {', '.join(op.columns)}",
    ops.WithColumns: lambda op: f"with {', '.join(f'{k} = {v}' for k, v in op.columns.items())}",
    ops.Rename: lambda op: f"rename {', '.join(f'{a} to {b}' for a, b in op.columns.items())}",
    ops.Join: lambda op: f"{op.how} join" + _after(" on ", op.on or ([op.condition] if op.condition else ())),
    ops.Aggregate: lambda op: ", ".join(op.aggregates) + _after(" by ", op.keys),
    ops.Sort: lambda op: f"sort by {', '.join(op.keys)}",
    ops.Limit: lambda op: f"limit {op.n}" if op.n is not None else f"offset {op.offset}",
    ops.Python: lambda op: (op.class_name or "python") + _after(" by ", op.by),
    ops.Batches: lambda op: f"{op.form} {op.function}".strip(),
    ops.Generate: lambda op: f"generate {op.rows} rows",
    ops.Query: lambda op: f"query {op.database or op.url or ''}: {op.sql}",
    ops.Search: lambda op: f"search {', '.join(op.terms)} in {', '.join(op.columns)}",
    ops.Clean: lambda op: f"clean {', '.join(op.columns)}",
    ops.Chart: lambda op: f"{op.chart} chart of {', '.join(op.used.values())}",
    ops.Write: lambda op: f"write {op.format} {op.path}",
}


def describe(op: Op) -> str:
    """What an operator does, in a few words."""
    description = _DESCRIPTIONS.get(type(op))
    return op.kind if description is None else description(op)


def _after(word: str, names: Sequence[str] | None) -> str:
    return f"{word}{', '.join(names)}" if names else ""
