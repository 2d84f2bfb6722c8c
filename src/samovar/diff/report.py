"""A verdict as text for a person: a table of the events that differ, differing cells between asterisks.

Equal rows are never shown. Unmatched events of the two sides that share most of their cells stand together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from samovar.diff.event_values import OTHER, canonical
from samovar.text import shortened

if TYPE_CHECKING:
    from samovar.diff.tables.table_verdict import TableVerdict
    from samovar.diff.verdict import Verdict

__all__ = ["Pair", "Placed", "aligned", "explain_streams", "explain_tables", "most_alike"]

_SEARCHED = 200
"""Events of the other side that are tried as the counterpart of an event: each costs a comparison of all cells."""
_WIDEST = 40
"""Characters of a cell, so that a few columns fit on a line."""
Placed = tuple[int | None, Any]
"""An event with its position; a row of a table without an order has none."""
Pair = tuple[Placed | None, Placed | None]
"""An event of the left side and its counterpart on the right."""


def explain_streams(verdict: Verdict, limit: int) -> str:
    """A verdict on two streams; at most `limit` events without a partner a side."""
    depends, rest = verdict.depends, verdict.rest
    if verdict.undecided_after is not None:
        counts = ", ".join(f"{len(r.positions)} {side}" for side, r in rest.items())
        return (
            f"Undecided after {verdict.undecided_after:g} s: no difference so far ({depends}).\n"
            f"Without a partner yet: {counts}."
        )
    side, position = verdict.side, verdict.position
    if verdict.equivalent or side is None or position is None:
        return f"The streams are equivalent ({depends})."
    left, right = (rest[s].placed if s in rest else [] for s in ("left", "right"))
    if (pair := verdict.pair) is not None:
        left = [p for p in left if p[0] != pair[0][0]]
        right = [p for p in right if p[0] != pair[1][0]]
        lines = [
            f"The streams differ at event {position} of the {side} side ({depends}).",
            f"It depends on event {verdict.against_position} of the {OTHER[side]} side,"
            " which has to come first and has no partner yet.",
            "",
            *_table([pair]),
        ]
        if left or right:
            lines += ["", f"Without a partner so far, besides: {len(left)} left, {len(right)} right."]
    else:
        lines = [f"The streams differ when both have ended ({depends})."]
        if verdict.overdue_after is not None:
            seconds = f"{verdict.overdue_after:g} s"
            lines = [
                f"Event {position} of the {side} side has been without a partner for {seconds} ({depends})."
            ]
        lines.append(f"Without a partner: {len(left)} left, {len(right)} right.")
    return "\n".join([*lines, *_shown(left, right, len(left) + len(right), limit)])


def explain_tables(verdict: TableVerdict, limit: int) -> str:
    """A verdict on two tables; at most `limit` pairs of rows that differ."""
    depends, totals, pairs, places = verdict.depends, verdict.totals, verdict.pairs, verdict.lines
    sizes = f" {totals['left']:,} and {totals['right']:,} rows." if totals else ""
    if verdict.equivalent:
        return f"The tables are equivalent ({depends}).{sizes}"
    if not pairs:
        counts = verdict.counts
        left, right = ([(None, row) for row in verdict.unmatched(s)] for s in ("left", "right"))
        lines = [
            f"The tables differ ({depends}).{sizes}",
            f"Rows without a partner: {counts['left']:,} only left, {counts['right']:,} only right.",
        ]
        return "\n".join([*lines, *_shown(left, right, counts["left"] + counts["right"], limit)])
    first = min(p[0] for p in pairs[0] if p is not None and p[0] is not None)
    lines = [f"The tables differ from row {first:,} on ({depends}).{sizes}"]
    if places > 1:
        lines = [f"The tables differ in {places:,} places, first at row {first:,} ({depends}).{sizes}"]
    shown = list(pairs[:limit])
    lines += ["", *_table(shown)]
    if places > len(shown):
        lines.append(f"... and {places - len(shown):,} more")
    if any(a is not None and b is not None and _alike(a[1], b[1]) == 1.0 for a, b in shown):
        text = "Rows without a marked cell are equal, but came before or after another row they depend on."
        lines += ["", text]
    return "\n".join(lines)


def most_alike(event: Any, others: Sequence[Any]) -> Any:
    """The event that shares most cells with another, and at least half of them; None if there is none."""
    at = _most_alike(event, others)
    return None if at is None else others[at]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _shown(left: Sequence[Placed], right: Sequence[Placed], total: int, limit: int) -> list[str]:
    """The first unmatched events, each beside the event of the other side that is most like it."""
    pairs: list[Pair] = []
    free = list(right[:_SEARCHED])
    for placed in left[:limit]:
        at = _most_alike(placed[1], [event for _, event in free])
        pairs.append((placed, None if at is None else free.pop(at)))
    pairs += [(None, placed) for placed in free[: max(0, limit - len(pairs))]]
    hidden = total - sum(placed is not None for pair in pairs for placed in pair)
    lines = ["", *_table(pairs)] if pairs else []
    return [*lines, f"... and {hidden:,} more"] if hidden > 0 else lines


def _most_alike(event: Any, others: Sequence[Any]) -> int | None:
    shares = [_alike(event, other) for other in others[:_SEARCHED]]
    best = max(shares, default=0.0)
    return shares.index(best) if best >= 0.5 else None


def _alike(a: Any, b: Any) -> float:
    """The share of cells in which two events agree."""
    cells_a, cells_b = _cells(a), _cells(b)
    names = cells_a.keys() | cells_b.keys()
    return sum(_same(cells_a, cells_b, name) for name in names) / len(names) if names else 0.0


def _same(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> bool:
    return name in a and name in b and bool(canonical(a[name]) == canonical(b[name]))


def _cells(event: Any) -> Mapping[str, Any]:
    return {str(k): v for k, v in event.items()} if isinstance(event, Mapping) else {"event": event}


def _table(pairs: Sequence[Pair]) -> list[str]:
    """Lines of an aligned table, the two sides of a pair under each other."""
    every = [placed for pair in pairs for placed in pair if placed is not None]
    columns = dict.fromkeys(name for _, event in every for name in _cells(event))
    numbered = any(position is not None for position, _ in every)
    rows = [["", *(["position"] if numbered else []), *columns]]
    for left, right in pairs:
        for name, placed, partner in (("left", left, right), ("right", right, left)):
            if placed is None:
                continue
            cells = _cells(placed[1])
            row = [name if partner is not None else f"only {name}", *([str(placed[0])] if numbered else [])]
            for column in columns:
                text = _text(cells[column]) if column in cells else "-"
                differs = partner is not None and not _same(cells, _cells(partner[1]), column)
                row.append(f"*{text}*" if differs else text)
            rows.append(row)
    return aligned(rows)


def _text(value: Any) -> str:
    return shortened("null" if value is None else str(value).replace("\n", "\\n"), _WIDEST)
