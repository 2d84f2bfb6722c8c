"""A workflow drawn in text: operators from top to bottom, edges as lanes on their left, as `git log --graph` has it.

    ● orders
    │ ● customers
    ├─╯
    ● joined
    ● S

Pure: names and edges in, lines out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    made = []
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
        made.append(mark + (ACROSS if place <= i < last else " "))
    return "".join(made).rstrip()


def describe(op: Op) -> str:
    """What an operator does, in a few words."""
    match op:
        case ops.Read():
            return f"read {op.format} {', '.join(op.path)}"
        case ops.Table():
            return f"table {op.table}"
        case ops.Filter():
            return f"filter {op.condition}"
        case ops.Select():
            return f"select {', '.join(op.columns)}"
        case ops.WithColumns():
            return f"with {', '.join(f'{k} = {v}' for k, v in op.columns.items())}"
        case ops.Rename():
            return f"rename {', '.join(f'{a} to {b}' for a, b in op.columns.items())}"
        case ops.Join():
            on = ", ".join(op.on) if op.on else op.condition or ""
            return f"{op.how} join on {on}" if on else f"{op.how} join"
        case ops.Aggregate():
            by = f" by {', '.join(op.keys)}" if op.keys else ""
            return f"{', '.join(op.aggregates)}{by}"
        case ops.Sort():
            return f"sort by {', '.join(op.keys)}"
        case ops.Limit():
            return f"limit {op.n}" if op.n is not None else f"offset {op.offset}"
        case ops.Python():
            return f"{op.class_name or 'python'}{f' by {chr(44).join(op.by)}' if op.by else ''}"
        case ops.Batches():
            return f"{op.form} {op.function}".strip()
        case ops.Generate():
            return f"generate {op.rows} rows"
        case ops.Query():
            return f"query {op.database or op.url or ''}: {op.sql}"
        case ops.Search():
            return f"search {', '.join(op.terms)} in {', '.join(op.columns)}"
        case ops.Clean():
            return f"clean {', '.join(op.columns)}"
        case ops.Chart():
            return f"{op.chart} chart of {', '.join(op.used.values())}"
        case ops.Write():
            return f"write {op.format} {op.path}"
        case _:
            return op.kind
