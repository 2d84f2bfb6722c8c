"""The verdict of a comparison, and the events that are left without a partner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from samovar.diff.event_values import OTHER, SIDES, Side, check_side, rows_of
from samovar.diff.report import Placed, explain_streams

__all__ = ["Rest", "Verdict", "at_end", "joined"]


@dataclass(frozen=True)
class Rest:
    """The unmatched events of a side with their positions; rows of a table become mappings when they are looked at."""

    positions: list[int]
    held: list[Any] | pa.Table

    @classmethod
    def of(cls, placed: Iterable[Placed | None]) -> Self:
        """The rest that holds these events, each with its position, in this order."""
        events = [p for p in placed if p is not None]
        return cls([position or 0 for position, _ in events], [event for _, event in events])

    @cached_property
    def events(self) -> list[Any]:
        """The events in order."""
        return self.held if isinstance(self.held, list) else rows_of(self.held)

    @property
    def placed(self) -> list[tuple[int, Any]]:
        """Each event with its position, in order."""
        return list(zip(self.positions, self.events, strict=True))

    def event(self, at: int) -> Any:
        """One event by its index; the other rows of a table are not converted."""
        return self.held[at] if isinstance(self.held, list) else rows_of(self.held.slice(at, 1))[0]

    def first(self, count: int) -> Rest:
        """The first events only, as mappings."""
        events = self.held[:count] if isinstance(self.held, list) else rows_of(self.held.slice(0, count))
        return Rest(self.positions[:count], events)


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
    """Seconds after which the comparison was given up, with neither a difference nor the end seen. None: decided."""
    overdue_after: float | None = None
    """Seconds that a monitor allowed `event` to find its partner, in vain. None: the verdict has another reason."""

    @property
    def undecided(self) -> bool:
        """Whether the comparison was given up before it came to an end."""
        return self.undecided_after is not None

    @property
    def pair(self) -> tuple[Placed, Placed] | None:
        """The event that decided and the event it was compared with, left before right; None without the latter."""
        if self.side is None or self.against_position is None:
            return None
        events: dict[Side, Placed] = {
            self.side: (self.position, self.event),
            OTHER[self.side]: (self.against_position, self.against),
        }
        return events["left"], events["right"]

    def unmatched(self, side: Side) -> list[Any]:
        """The events of a side without a partner when the verdict was reached, the one that decided it among them."""
        return self.rest.get(check_side(side), _EMPTY).events

    def explain(self, *, rows: int = 10) -> str:
        """The verdict for a person: where, which events, differing cells marked; at most `rows` rows of the rest."""
        return explain_streams(self, rows)

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
    placed = sorted((p for rest in rests for p in rest.placed), key=lambda placed: placed[0])
    return Rest.of(placed)
