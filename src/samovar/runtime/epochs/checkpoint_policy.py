"""Marks: places inside an epoch where the state of Python operators is kept, so that a jump need not start before.

A mark is a leaf position. When an operator's next tuple lies at or behind it, the operator's changes since the mark
before are written. All operators of a level have the same marks, so that what all of them wrote at one is a consistent
cut. How many an epoch gets follows from tau: a jump costs `JUMP` seconds and the work since the mark before. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from samovar.positions import Position, RowRange

__all__ = ["JUMP", "Policy", "mark_count", "mark_positions"]

Policy = Literal["tau", "every", "none"]
"""When marks are made: so that a jump takes at most tau seconds; every `EVERY` tuples; never."""

JUMP = 1.0
"""Seconds a jump takes besides computing what lies between the mark and the moment: an eighth of tau, or less."""
EVERY = 1000
"""Tuples between marks, for the policy `every`."""
LEAST = 100
"""Tuples between marks at least, for the policy `tau`."""
MOST = 256
"""Marks in an epoch at most."""


def mark_count(policy: Policy, tau: float, rows: int, seconds: float) -> int:
    """How many marks an epoch of so many tuples gets that will take so many seconds."""
    if policy == "none":
        return 0
    if policy == "every":
        return min(rows // EVERY, MOST)
    spacing = max(tau / 8, 0.05)
    return min(max(0, round(seconds / spacing) - 1), rows // LEAST, MOST)


def mark_positions(stretches: Sequence[RowRange], count: int) -> tuple[Position, ...]:
    """That many positions, with about as many tuples between each two of them."""
    rows = sum(n for _, _, n in stretches)
    made: list[Position] = []
    before = 0
    for source, first, own in stretches:
        while len(made) < count and (at := rows * (len(made) + 1) // (count + 1)) < before + own:
            made.append((source, first + at - before))
        before += own
    return tuple(made)
