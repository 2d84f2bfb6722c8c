"""What a comparison of two tables found: a verdict that knows how many rows there are, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samovar.diff.comparison_errors import SideProblem
from samovar.diff.event_values import OTHER, SIDES, Side, check_side
from samovar.diff.report import Placed, explain_tables, most_alike
from samovar.diff.verdict import Rest, Verdict

if TYPE_CHECKING:
    from samovar.diff.tables.table_inputs import Given
    from samovar.replay.moment import Moment

__all__ = ["TableVerdict", "Tables"]

Pair = tuple[Placed | None, Placed | None]


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
        """How many rows of a side have no partner. `unmatched` gives the first of them."""
        return self.counts.get(check_side(side), 0)

    def explain(self, *, rows: int = 10) -> str:
        """The verdict for a person: how many rows differ, and the first of them, differing cells marked."""
        return explain_tables(
            equivalent=self.equivalent,
            depends=self.depends,
            totals=self.totals,
            counts=self.counts,
            rest={s: self.unmatched(s) for s in SIDES},
            pairs=self.pairs,
            lines=self.lines,
            limit=rows,
        )

    def row(self, side: Side) -> Any:
        """The first row of a side that has no partner."""
        side = check_side(side)
        number = SIDES.index(side)
        found = next((p[number] for p in self.pairs if p[number] is not None), None)
        if found is not None:
            return found[1]
        events = self.unmatched(side)
        return events[0] if events else None

    def moment(self, side: Side = "left") -> Moment:
        """For a side that is a recording: the moment just before the first row without a partner was produced.

        An `sv.Moment`, from which the recording can be stepped through. Raises where the side is no recording, or has
        no such row.
        """
        side = check_side(side)
        row, other = self.row(side), OTHER[side]
        if row is None:
            raise SideProblem(
                f"Expected a row without a partner on the {side} side, found none.",
                hint=None if self else f'Ask the other side: moment("{other}").',
            )
        from samovar.diff.tables.cause import moment_before

        return moment_before(self.origins[side], row, self.origins[other], self._counterpart(side, row), side)

    def _counterpart(self, side: Side, row: Any) -> Any:
        """The row of the other side that the first row without a partner should have been, as far as one can tell."""
        number = SIDES.index(side)
        for pair in self.pairs:
            placed, partner = pair[number], pair[1 - number]
            if placed is not None:
                return None if partner is None else partner[1]
        return most_alike(row, self.unmatched(SIDES[1 - number]))


@dataclass(frozen=True)
class Tables:
    """Makes verdicts on two tables."""

    depends: str
    origins: Mapping[Side, Given]

    def same(self, totals: Mapping[Side, int]) -> TableVerdict:
        """They are equivalent."""
        return TableVerdict(True, depends=self.depends, totals=totals, origins=self.origins)

    def different(
        self, totals: Mapping[Side, int], counts: Mapping[Side, int], rest: Mapping[Side, Rest]
    ) -> TableVerdict:
        """Rows are left over, and no order matters."""
        side: Side = "left" if rest["left"].events else "right"
        return TableVerdict(
            False,
            side=side,
            event=rest[side].events[0],
            depends=self.depends,
            rest=rest,
            totals=totals,
            counts=counts,
            origins=self.origins,
        )

    def parting(
        self, totals: Mapping[Side, int], counts: Mapping[Side, int], pairs: Sequence[Pair], lines: int
    ) -> TableVerdict:
        """Lines part at these pairs of rows, the first one first."""
        left, right = pairs[0]
        first = left if left is not None else right
        assert first is not None
        other = right if left is not None else None
        placed = {s: [p[i] for p in pairs if p[i] is not None] for i, s in enumerate(SIDES)}
        rest = {
            s: Rest([p[0] or 0 for p in held if p], [p[1] for p in held if p]) for s, held in placed.items()
        }
        return TableVerdict(
            False,
            side="left" if left is not None else "right",
            position=first[0],
            event=first[1],
            against=None if other is None else other[1],
            against_position=None if other is None else other[0],
            depends=self.depends,
            rest=rest,
            totals=totals,
            counts=counts,
            pairs=pairs,
            lines=lines,
            origins=self.origins,
        )

    def matched(self, verdict: Verdict, counts: Mapping[Side, int]) -> TableVerdict:
        """What the matcher said."""
        if verdict.equivalent or verdict.side is None or verdict.position is None:
            return self.same({})
        pairs: list[Pair] = []
        if verdict.against_position is not None:
            pair = {verdict.side: (verdict.position, verdict.event)}
            pair[SIDES[1 - SIDES.index(verdict.side)]] = (verdict.against_position, verdict.against)
            pairs.append((pair["left"], pair["right"]))
        return TableVerdict(
            False,
            side=verdict.side,
            position=verdict.position,
            event=verdict.event,
            against=verdict.against,
            against_position=verdict.against_position,
            depends=verdict.depends,
            rest=verdict.rest,
            counts=counts,
            pairs=pairs,
            lines=len(pairs),
            origins=self.origins,
        )
