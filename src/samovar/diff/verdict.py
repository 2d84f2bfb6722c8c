"""What a comparison found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from samovar.diff.event_values import SIDES, Side, check_side, rows_of
from samovar.diff.report import explain

__all__ = ["Rest", "Verdict", "at_end", "joined"]


@dataclass(frozen=True)
class Rest:
    """The unmatched events of a side with their positions; rows of a table become mappings when they are looked at."""

    positions: list[int]
    held: list[Any] | pa.Table

    @cached_property
    def events(self) -> list[Any]:
        """The events in order."""
        return self.held if isinstance(self.held, list) else rows_of(self.held)

    def event(self, at: int) -> Any:
        """One of them; the others stay as they are."""
        return self.held[at] if isinstance(self.held, list) else rows_of(self.held.slice(at, 1))[0]


_EMPTY = Rest([], [])


@dataclass(frozen=True)
class Verdict:
    """Whether two streams are equivalent; if not, where they part.

    `side` and `position` (counted from 0 on that side) name the event at which it became certain, `event` is that
    event, and `against` the event of the other side that it was compared with: one that depends on it and should have
    been matched before. Where the streams only differ in what is left at their end, `event` is the first event
    left over, and `against` is None.
    """

    equivalent: bool
    side: Side | None = None
    position: int | None = None
    event: Any = None
    against: Any = None
    against_position: int | None = None
    depends: str = ""
    rest: Mapping[Side, Rest] = field(default_factory=dict, repr=False)
    undecided_after: float | None = None
    """Seconds after which nobody waited any longer; neither difference nor end was seen. None: decided."""
    overdue_after: float | None = None
    """Seconds that a monitor gave an event to find its partner; `event` did not. None: another reason."""

    @property
    def undecided(self) -> bool:
        """Whether the comparison was given up before it came to an end."""
        return self.undecided_after is not None

    def unmatched(self, side: Side) -> list[Any]:
        """The events of a side without a partner when the verdict was reached, the one that decided it among them."""
        return self.rest.get(check_side(side), _EMPTY).events

    def explain(self, *, rows: int = 10) -> str:
        """The verdict for a person: where, which events, differing cells marked; at most so many rows of the rest."""
        if self.undecided_after is not None:
            counts = ", ".join(f"{len(r.positions)} {side}" for side, r in self.rest.items())
            return (
                f"Undecided after {self.undecided_after:g} s: no difference so far ({self.depends}).\n"
                f"Without a partner yet: {counts}."
            )
        return explain(
            equivalent=self.equivalent,
            depends=self.depends,
            side=self.side,
            position=self.position,
            event=self.event,
            against=self.against,
            against_position=self.against_position,
            overdue=self.overdue_after,
            rest={side: list(zip(r.positions, r.events, strict=True)) for side, r in self.rest.items()},
            limit=rows,
        )

    def __bool__(self) -> bool:
        return self.equivalent


def at_end(rest: Mapping[Side, Rest], depends: str) -> Verdict:
    """The verdict on streams that have ended, given what is left of them."""
    side = next((s for s in SIDES if rest[s].positions), None)
    if side is None:
        return Verdict(True, depends=depends)
    first = rest[side]
    return Verdict(
        False, side=side, position=first.positions[0], event=first.event(0), depends=depends, rest=rest
    )


def joined(rests: Iterable[Rest]) -> Rest:
    """Several rests of one side as one, in the order of positions."""
    placed = [(p, e) for rest in rests for p, e in zip(rest.positions, rest.events, strict=True)]
    placed.sort(key=lambda one: one[0])
    return Rest([p for p, _ in placed], [e for _, e in placed])
