"""When are two events equal? The equality of a comparison, as data.

The default compares all cells: NaN equals NaN, null equals null, a map's order of entries has no meaning. Two kinds are
relations and not equalities, because a ~ b and b ~ c do not imply a ~ c: a tolerance for floats, and `accepts`. With
these an event may have several possible partners; the matcher then keeps settled pairs as long as they may be settled
otherwise, so that its verdict does not depend on the order of arrival.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from samovar.diff.comparison_errors import EqualityProblem, called, repeated
from samovar.diff.event_values import SIDES, Side, canonical, cells
from samovar.text import shown

__all__ = ["Equality", "Tolerance", "accepts", "as_equality", "equality"]

_FLOAT = ("float",)


@dataclass(frozen=True)
class Tolerance:
    """Floats a and b are near if |a - b| <= absolute + relative * max(|a|, |b|)."""

    absolute: float = 0.0
    relative: float = 0.0
    columns: tuple[tuple[str, float], ...] | None = None
    """The absolute tolerance by column; None means `absolute` for every float."""
    exact: tuple[str, ...] = ()
    """Columns compared exactly all the same: those the dependence looks at."""

    def of(self, column: str) -> float | None:
        """The absolute tolerance of a column if it has one; None for a column compared exactly."""
        if column in self.exact:
            return None
        if self.columns is None:
            return self.absolute
        return dict(self.columns).get(column)

    def near(self, a: Any, b: Any, absolute: float) -> bool:
        """Whether two cells of a tolerant column agree; cells that are not both numbers must be equal."""
        if canonical(a) == canonical(b):
            return True
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return False
        if math.isinf(a) or math.isinf(b) or a != a or b != b:
            return False
        return abs(a - b) <= absolute + self.relative * max(abs(a), abs(b))


@dataclass(frozen=True)
class Equality:
    """One equality; at most one of `key`, `function` and `accepting` is set."""

    columns: tuple[str, ...] | None = None
    tolerance: Tolerance | None = None
    key: Callable[[Any], Any] | None = None
    function: Callable[[Any, Any], Any] | None = None
    accepting: Callable[[Any, Any], Any] | None = None
    reference: Side = "right"

    @property
    def is_relation(self) -> bool:
        """Whether an event may have partners that are not partners of each other's."""
        return self.tolerance is not None or self.accepting is not None

    @property
    def has_key(self) -> bool:
        """Whether equal events have equal keys and the reverse."""
        return self.function is None and not self.is_relation

    @property
    def in_columns(self) -> bool:
        """Whether columns alone decide, so that batches can be compared without Python for each row."""
        return self.key is None and self.function is None and self.accepting is None

    @property
    def tolerant_columns(self) -> tuple[str, ...]:
        """The columns for which a tolerance is named."""
        return () if self.tolerance is None else tuple(c for c, _ in self.tolerance.columns or ())

    def key_of(self, event: Any) -> Any:
        """For `has_key`: what equal events share. For a relation: what possible partners share."""
        if self.key is not None:
            return canonical(called("key function", EqualityProblem, self.key, event))
        if self.accepting is not None:
            return None
        if self.tolerance is None:
            if self.columns is not None:
                return cells(event, self.columns, "compared by equality")
            return canonical(event)
        if not isinstance(event, Mapping):
            return _FLOAT if type(event) is float else canonical(event)
        names = self.columns if self.columns is not None else tuple(event)
        values = cells(event, names, "compared by equality")
        tolerance, is_near = self.tolerance, _is_float if self.tolerance.columns is None else _is_number
        return frozenset(
            (c, _FLOAT if is_near(v) and tolerance.of(c) is not None else v)
            for c, v in zip(names, values, strict=True)
        )

    def equal(self, left: Any, right: Any) -> bool:
        """Whether two events are equal; for `accepts`, whether the reference accepts the output."""
        if self.accepting is not None:
            pair = (left, right) if self.reference == "left" else (right, left)
            return bool(called("accepts function", EqualityProblem, self.accepting, *pair))
        if self.function is not None:
            return bool(called("equality", EqualityProblem, self.function, left, right))
        if self.tolerance is None:
            return bool(self.key_of(left) == self.key_of(right))
        if not isinstance(left, Mapping) or not isinstance(right, Mapping):
            return self.tolerance.near(left, right, self.tolerance.absolute)
        if self.key_of(left) != self.key_of(right):
            return False
        names = self.columns if self.columns is not None else tuple(left)
        return all(
            self.tolerance.near(left[c], right[c], absolute)
            for c in names
            if (absolute := self.tolerance.of(c)) is not None
        )

    def exact_in(self, columns: tuple[str, ...]) -> Equality:
        """The same, but with no tolerance in these columns unless it names them."""
        if self.tolerance is None or self.tolerance.columns is not None:
            return self
        return replace(self, tolerance=replace(self.tolerance, exact=columns))

    def describe(self) -> str:
        """A few words for a person."""
        if self.accepting is not None:
            return "accepted by a function"
        if self.function is not None or self.key is not None:
            return "equal by a function"
        words = "equal" if self.columns is None else f"equal in {', '.join(self.columns)}"
        return words if self.tolerance is None else f"{words}, floats within a tolerance"


def equality(
    *,
    columns: Iterable[str] | None = None,
    tolerance: float | Mapping[str, float] | None = None,
    relative: float | None = None,
    key: Callable[[Any], Any] | None = None,
) -> Equality:
    """An equality by columns, with a tolerance for floats (absolute, by column, relative), or by a key function."""
    if key is not None:
        if columns is not None or tolerance is not None or relative is not None:
            raise EqualityProblem("Expected either a key function or columns and tolerances, got both.")
        return Equality(key=key)
    if isinstance(columns, str):
        raise EqualityProblem(f"Expected a list of columns, got {columns!r}.", hint=f"Write [{columns!r}].")
    names = None if columns is None else tuple(columns)
    if names is not None and (not names or repeated(names) is not None):
        raise EqualityProblem(f"Expected at least one column and none twice, got {list(names)}.")
    if tolerance is None and relative is None:
        return Equality(columns=names)
    by_column: dict[str, float] = dict(tolerance) if isinstance(tolerance, Mapping) else {}
    absolute = 0.0 if tolerance is None or isinstance(tolerance, Mapping) else float(tolerance)
    for amount in (absolute, relative or 0.0, *by_column.values()):
        if not amount >= 0 or math.isinf(amount):
            raise EqualityProblem(f"Expected a tolerance of 0 or more, got {amount!r}.")
    unknown = sorted(set(by_column) - set(names)) if names is not None else []
    if names is not None and unknown:
        raise EqualityProblem(
            f"Expected tolerances of compared columns ({', '.join(names)}), got one for '{unknown[0]}'."
        )
    amounts = tuple(sorted((c, float(t)) for c, t in by_column.items()))
    tolerant = amounts if isinstance(tolerance, Mapping) else None
    return Equality(columns=names, tolerance=Tolerance(absolute, relative or 0.0, tolerant))


def accepts(function: Callable[[Any, Any], Any], *, reference: Side = "right") -> Equality:
    """For programs with several right answers: `function(reference, output)` returns whether the output is accepted."""
    if not callable(function):
        raise EqualityProblem(
            f"Expected a function of a reference event and an output event, got {function!r}."
        )
    if reference not in SIDES:
        raise EqualityProblem(f"Expected reference='left' or 'right', got {reference!r}.")
    return Equality(accepting=function, reference=reference)


def as_equality(value: Any) -> Equality:
    """What `equal=` may be: nothing, an `Equality`, or a function of two events."""
    if value is None:
        return Equality()
    if isinstance(value, Equality):
        return value
    if callable(value):
        return Equality(function=value)
    hint = f"Write equality(columns={value!r})." if isinstance(value, (list, tuple)) else None
    raise EqualityProblem(f"Expected an equality or a function of two events, got {shown(value)}.", hint=hint)


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or value == ("NaN",)


def _is_number(value: Any) -> bool:
    return _is_float(value) or (isinstance(value, int) and not isinstance(value, bool))
