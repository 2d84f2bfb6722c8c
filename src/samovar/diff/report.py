"""A verdict as text for a person: a table of the events that differ, differing cells between asterisks.

Equal rows are never shown. Unmatched events of the two sides that share most of their cells stand together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from samovar.diff.event_values import OTHER, Side, canonical

__all__ = ["Placed", "explain", "explain_tables", "most_alike"]

_SEARCHED = 200
_WIDEST = 40
Placed = tuple[int | None, Any]
"""An event with its position; a row of a table without an order has none."""


def explain(
    *,
    equivalent: bool,
    depends: str,
    side: Side | None,
    position: int | None,
    event: Any,
    against: Any,
    against_position: int | None,
    rest: Mapping[Side, Sequence[Placed]],
    limit: int,
    overdue: float | None = None,
) -> str:
    """The whole text. `overdue`: the seconds after which the event should have had its partner."""
    if equivalent or side is None or position is None:
        return f"The streams are equivalent ({depends})."
    left, right = list(rest.get("left", ())), list(rest.get("right", ()))
    lines = []
    if against_position is not None:
        other = OTHER[side]
        lines.append(f"The streams differ at event {position} of the {side} side ({depends}).")
        lines.append(
            f"It depends on event {against_position} of the {other} side,"
            " which has to come first and has no partner yet."
        )
        pair = {side: (position, event), other: (against_position, against)}
        lines += ["", *_table([(pair["left"], pair["right"])])]
        left = [p for p in left if p[0] != pair["left"][0]]
        right = [p for p in right if p[0] != pair["right"][0]]
        if left or right:
            lines += ["", f"Without a partner so far, besides: {_counts(left, right)}."]
    elif overdue is not None:
        lines.append(
            f"Event {position} of the {side} side has been without a partner for {overdue:g} s ({depends})."
        )
        lines.append(f"Without a partner: {_counts(left, right)}.")
    else:
        lines.append(f"The streams differ when both have ended ({depends}).")
        lines.append(f"Without a partner: {_counts(left, right)}.")
    pairs = _paired(left, right, limit)
    if pairs:
        lines += ["", *_table(pairs)]
    hidden = len(left) + len(right) - sum((a is not None) + (b is not None) for a, b in pairs)
    if hidden:
        lines.append(f"... and {hidden} more")
    return "\n".join(lines)


def explain_tables(
    *,
    equivalent: bool,
    depends: str,
    totals: Mapping[Side, int],
    counts: Mapping[Side, int],
    rest: Mapping[Side, Sequence[Any]],
    pairs: Sequence[tuple[Placed | None, Placed | None]],
    lines: int,
    limit: int,
) -> str:
    """A verdict on two tables."""
    sizes = f" {totals['left']:,} and {totals['right']:,} rows." if totals else ""
    if equivalent:
        return f"The tables are equivalent ({depends}).{sizes}"
    if pairs:
        first = min(p[0] for p in pairs[0] if p is not None and p[0] is not None)
        said = [f"The tables differ from row {first:,} on ({depends}).{sizes}"]
        if lines > 1:
            said = [f"The tables differ in {lines:,} places, first at row {first:,} ({depends}).{sizes}"]
        shown = list(pairs[:limit])
        said += ["", *_table(shown)]
        if lines > len(shown):
            said.append(f"... and {lines - len(shown):,} more")
        if any(a is not None and b is not None and _alike(a[1], b[1]) == 1.0 for a, b in shown):
            said += [
                "",
                "Rows without a marked cell are equal, but came before or after another row they depend on.",
            ]
        return "\n".join(said)
    total = counts["left"] + counts["right"]
    words = f"{counts['left']:,} only left, {counts['right']:,} only right"
    said = [f"The tables differ ({depends}).{sizes}", f"Rows without a partner: {words}."]
    placed = {s: [(None, e) for e in rest[s]] for s in ("left", "right")}
    chosen = _paired(placed["left"], placed["right"], limit)
    said += ["", *_table(chosen)]
    hidden = total - sum((a is not None) + (b is not None) for a, b in chosen)
    if hidden > 0:
        said.append(f"... and {hidden:,} more")
    return "\n".join(said)


def most_alike(event: Any, others: Sequence[Any]) -> Any:
    """The event that shares most cells with another, and at least half of them; None if there is none."""
    best = max(others[:_SEARCHED], key=lambda other: _alike(event, other), default=None)
    return best if best is not None and _alike(event, best) >= 0.5 else None


def _counts(left: Sequence[Placed], right: Sequence[Placed]) -> str:
    return f"{len(left)} left, {len(right)} right"


def _paired(
    left: Sequence[Placed], right: Sequence[Placed], limit: int
) -> list[tuple[Placed | None, Placed | None]]:
    """Rows to show: each with the event of the other side that is most like it, if one shares half of its cells."""
    pairs: list[tuple[Placed | None, Placed | None]] = []
    free = list(right[:_SEARCHED])
    for placed in left[:limit]:
        best = max(range(len(free)), key=lambda i: _alike(placed[1], free[i][1]), default=None)
        if best is not None and _alike(placed[1], free[best][1]) >= 0.5:
            pairs.append((placed, free.pop(best)))
        else:
            pairs.append((placed, None))
    pairs += [(None, placed) for placed in free[: max(0, limit - len(pairs))]]
    return pairs


def _alike(a: Any, b: Any) -> float:
    cells_a, cells_b = _cells(a), _cells(b)
    names = cells_a.keys() | cells_b.keys()
    same = sum(_same(cells_a, cells_b, name) for name in names)
    return same / len(names) if names else 0.0


def _same(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> bool:
    return name in a and name in b and bool(canonical(a[name]) == canonical(b[name]))


def _cells(event: Any) -> Mapping[str, Any]:
    return {str(k): v for k, v in event.items()} if isinstance(event, Mapping) else {"event": event}


def _table(pairs: Sequence[tuple[Placed | None, Placed | None]]) -> list[str]:
    """Lines of an aligned table, the two sides of a pair under each other."""
    columns: dict[str, None] = {}
    for pair in pairs:
        for placed in pair:
            if placed is not None:
                columns.update(dict.fromkeys(_cells(placed[1])))
    numbered = any(p is not None and p[0] is not None for pair in pairs for p in pair)
    rows = [["", *(["position"] if numbered else []), *columns]]
    for pair in pairs:
        for name, placed, partner in (("left", pair[0], pair[1]), ("right", pair[1], pair[0])):
            if placed is None:
                continue
            cells = _cells(placed[1])
            row = [name if partner is not None else f"only {name}", *([str(placed[0])] if numbered else [])]
            for column in columns:
                text = _text(cells[column]) if column in cells else "-"
                differs = partner is not None and not _same(cells, _cells(partner[1]), column)
                row.append(f"*{text}*" if differs else text)
            rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _text(value: Any) -> str:
    text = "null" if value is None else str(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
