"""Streams of rows for tests of the matcher."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from samovar.diff import Dependence, Matcher, Verdict

SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("city", pa.int32()),
        ("mark", pa.bool_()),
        ("time", pa.int64()),
        ("amount", pa.float64()),
        ("note", pa.string()),
    ]
)
Row = dict[str, Any]
Pushes = list[tuple[Any, list[Row]]]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def stream(rng: random.Random, size: int) -> list[Row]:
    """Rows with repeats, nulls and NaN; times go up, marks mostly with them."""
    rows = []
    time = 0
    for _ in range(size):
        time += rng.random() < 0.4
        mark = rng.random() < 0.12
        rows.append(
            {
                "key": rng.choice([0, 1, 2, None]),
                "city": rng.randrange(3),
                "mark": mark,
                "time": time - (0 if mark else rng.choice([0, 0, 0, 1, 3])),
                "amount": rng.choice([0.0, -0.0, 1.5, float("nan"), None]),
                "note": rng.choice(["", "a", "ab", None]),
            }
        )
    return rows


def reordered(
    rng: random.Random, rows: list[Row], depends: Dependence, swaps: int, wrong: float
) -> list[Row]:
    """Another order that the dependence allows; with a chance of `wrong` for each swap, one that it does not."""
    rows = list(rows)
    for _ in range(swaps if len(rows) > 1 else 0):
        i = rng.randrange(len(rows) - 1)
        if not depends.depends(rows[i], rows[i + 1]) or rng.random() < wrong:
            rows[i], rows[i + 1] = rows[i + 1], rows[i]
    return rows


def cut(rng: random.Random, left: list[Row], right: list[Row], largest: int) -> Pushes:
    """Both sides in pieces of up to `largest` rows, in a random order of arrival."""
    pushes: Pushes = []
    rest = {"left": left, "right": right}
    while rest["left"] or rest["right"]:
        side = rng.choice(["left", "right"])
        size = rng.randint(0, largest)
        pushes.append((side, rest[side][:size]))
        rest[side] = rest[side][size:]
    return pushes


def outcome(matcher: Matcher, verdict: Verdict) -> tuple[Any, ...]:
    """All that two ways to the same verdict must agree in."""
    rest = [verdict.rest[side].positions for side in verdict.rest]
    return verdict.equivalent, verdict.side, verdict.position, verdict.against_position, rest
