"""The verdict on two tables: how many rows there are, which of them differ, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samovar.diff.comparison_errors import SideProblem
from samovar.diff.event_values import OTHER, SIDES, Side, check_side
from samovar.diff.report import Pair, explain_tables, most_alike
from samovar.diff.verdict import Verdict

if TYPE_CHECKING:
    from samovar.diff.tables.table_inputs import Given
    from samovar.replay.moment import Moment

__all__ = ["TableVerdict"]


@dataclass(frozen=True)
class TableVerdict(Verdict):
    """Whether two tables are equivalent; if not, the rows that differ.

    Where no order matters, rows have no `position`. Where one does, the first difference of each key counts, and
    `event` and `against` are the rows there; a row too much is one difference, though all rows after it have moved.
    """

    totals: Mapping[Side, int] = field(default_factory=dict)
    counts: Mapping[Side, int] = field(default_factory=dict)
    pairs: Sequence[Pair] = ()
    lines: int = 0
    origins: Mapping[Side, Given] = field(default_factory=dict, repr=False)

    def rows(self, side: Side) -> int | None:
        """How many rows a side has; None where that was not counted."""
        return self.totals.get(check_side(side))

    def count(self, side: Side) -> int:
        """How many rows of a side have no partner. `unmatched` returns the first of them."""
        return self.counts.get(check_side(side), 0)

    def explain(self, *, rows: int = 10) -> str:
        """The verdict for a person: how many rows differ, and the first of them, differing cells marked."""
        return explain_tables(self, rows)

    def row(self, side: Side) -> Any:
        """The first row of a side that has no partner."""
        return self._first(check_side(side))[0]

    def moment(self, side: Side = "left") -> Moment:
        """For a side that is a recording: the moment just before the first row without a partner was produced.

        An `sv.Moment`, from which the recording can be stepped through. Raises where the side is not a recording, or
        has no such row.
        """
        row, counterpart = self._first(check_side(side))
        other = OTHER[side]
        if row is None:
            raise SideProblem(
                f"Expected a row without a partner on the {side} side, found none.",
                hint=None if self else f'Ask the other side: moment("{other}").',
            )
        from samovar.diff.tables.cause import moment_before

        return moment_before(self.origins[side], row, self.origins[other], counterpart, side)

    def _first(self, side: Side) -> tuple[Any, Any]:
        """The first row of a side without a partner, and the row of the other side that is most probably its
        counterpart; None for either that does not exist."""
        number = SIDES.index(side)
        for pair in self.pairs:
            placed, partner = pair[number], pair[1 - number]
            if placed is not None:
                return placed[1], None if partner is None else partner[1]
        rows = self.unmatched(side)
        return (rows[0], most_alike(rows[0], self.unmatched(OTHER[side]))) if rows else (None, None)
