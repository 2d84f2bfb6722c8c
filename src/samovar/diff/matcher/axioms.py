"""Is a dependence one, is an equality one, and do they fit? Checked on samples, with a counter-example in the error.

Columns are checked at once: a dependence may only look at columns that the equality compares, and compares exactly.
Functions are checked on pairs and triples of the first events, and on ever rarer ones after that. This finds mistakes;
it proves nothing.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from samovar.diff.comparison_errors import DependenceProblem, EqualityProblem
from samovar.diff.dependence import Dependence, Function, Key, Punctuating, Synchronising
from samovar.diff.equality import Equality

__all__ = ["Samples", "check_columns"]

_FIRST = 24
_KEPT = 8


def check_columns(depends: Dependence, equal: Equality) -> None:
    """Raise if a dependence names a column by which equal events can differ."""
    if equal.columns is not None:
        loose = [c for c in depends.columns if c not in equal.columns]
        if loose:
            raise DependenceProblem(
                f"Expected a dependence on compared columns ({', '.join(equal.columns)}), got one on '{loose[0]}':"
                " equal events could differ there, and the order between them would be arbitrary.",
                hint=f"Compare '{loose[0]}', too.",
            )
    tolerance = equal.tolerance
    if tolerance is not None and tolerance.columns is not None:
        near = [c for c in depends.columns if tolerance.of(c) is not None]
        if near:
            raise DependenceProblem(
                f"Expected a dependence on columns compared exactly, got one on '{near[0]}', which has a tolerance.",
                hint=f"Leave '{near[0]}' out of the tolerances.",
            )
    if equal.is_relation and not any(isinstance(c, Key) for c in depends.clauses):
        others = [c for c in depends.clauses if not isinstance(c, Synchronising)]
        if others or len(depends.clauses) > 1:
            kind = "a punctuated" if others and isinstance(others[0], Punctuating) else "another"
            raise EqualityProblem(
                f"Expected, with a tolerance or `accepts`, the dependence ordered, keyed, independent or one"
                f" synchronised, got {kind} one: {depends.describe()}.",
                hint="Add keyed(...) with |, or compare with an equality, such as equality(key=...).",
            )


class Samples:
    """A few events kept to try the functions on. Costs nothing where there is no function to try."""

    def __init__(self, depends: Dependence, equal: Equality) -> None:
        functions = [c for c in depends.clauses if isinstance(c, Function)]
        of_one = [c.by for c in depends.clauses if isinstance(c, Key)]
        of_one += [c.by.function for c in depends.clauses if isinstance(c, (Synchronising, Punctuating))]
        self._depends = depends
        self._equal = equal
        self._functions = functions
        self._compatible = (
            bool(functions)
            or any(of_one)
            or (bool(depends.clauses) and not equal.in_columns and not equal.is_relation)
        )
        self.active = self._compatible or equal.function is not None
        self._kept: list[Any] = []
        self._seen = 0
        self._next = 0

    def see(self, event: Any) -> None:
        """Try the functions on this event and those kept, if it is this event's turn."""
        self._seen += 1
        if self._seen <= self._next:
            return
        if self._seen > _FIRST:
            self._next = self._seen * 2
        for other in (event, *self._kept):
            self._pair(event, other)
        if self._equal.function is not None:
            self._triples(event)
        if len(self._kept) < _KEPT:
            self._kept.append(event)
        else:
            self._kept[self._seen % _KEPT] = event

    def _pair(self, a: Any, b: Any) -> None:
        for clause in self._functions:
            there, back = clause.ask(a, b), clause.ask(b, a)
            if there != back:
                raise DependenceProblem(
                    f"Expected a symmetric dependence, got {there} for (a, b) and {back} for (b, a).",
                    events=(a, b),
                )
        if self._equal.is_relation:
            return
        same = self._equal.equal(a, b)
        if self._equal.function is not None:
            if a is b and not same:
                raise EqualityProblem("Expected an event to equal itself, got False for (a, a).", events=(a,))
            if same != self._equal.equal(b, a):
                raise EqualityProblem(
                    f"Expected a symmetric equality, got {same} for (a, b) and {not same} for (b, a).",
                    hint="Use accepts(function) if one side is the reference.",
                    events=(a, b),
                )
        if same and self._compatible and a is not b:
            for c in (a, b, *self._kept):
                if self._depends.depends(a, c) != self._depends.depends(b, c):
                    raise DependenceProblem(
                        "Expected a dependence that fits the equality: a equals b, but only one of them depends on c.",
                        events=(a, b, c),
                    )

    def _triples(self, a: Any) -> None:
        for b, c in product(self._kept, repeat=2):
            for first, middle, last in ((a, b, c), (b, a, c)):
                if (
                    self._equal.equal(first, middle)
                    and self._equal.equal(middle, last)
                    and not self._equal.equal(first, last)
                ):
                    raise EqualityProblem(
                        "Expected a transitive equality: a equals b and b equals c, but a does not equal c.",
                        hint="For numbers that are near each other, use equality(tolerance=...).",
                        events=(first, middle, last),
                    )
