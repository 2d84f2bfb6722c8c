"""Which pairs of events must keep their order? Dependences, as data.

A dependence is a union of clauses. Structured clauses name columns and are compiled to an index; a function of two
events is a clause, too, and is asked for every pair that needs it. A dependence has to be symmetric, and must not tell
apart events that the equality does not (`samovar.diff.matcher.axioms`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from samovar.diff.comparison_errors import DependenceProblem, called, repeated
from samovar.diff.event_values import canonical, cells
from samovar.text import shown

__all__ = [
    "Clause",
    "Dependence",
    "Function",
    "Key",
    "Predicate",
    "Punctuating",
    "Synchronising",
    "as_dependence",
    "before",
    "independent",
    "keyed",
    "ordered",
    "punctuated",
    "synchronised",
]

_PURPOSE = "used by the dependence"
By = str | Mapping[str, Any] | Callable[[Any], Any]


@dataclass(frozen=True)
class Predicate:
    """A property of one event: a true column, columns with given values, or a function of the event."""

    columns: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    """Column and the values it may have."""
    function: Callable[[Any], Any] | None = None

    def test(self, event: Any) -> bool:
        """Whether the event has the property; null counts as no."""
        if self.function is None:
            values = cells(event, tuple(c for c, _ in self.columns), _PURPOSE)
            return all(v in allowed for v, (_, allowed) in zip(values, self.columns, strict=True))
        return bool(called("predicate of the dependence", DependenceProblem, self.function, event))

    def describe(self) -> str:
        """A few words for a person."""
        if self.function is not None:
            return "a function"
        return " and ".join(
            c if values == (True,) else f"{c} = {' or '.join(map(repr, values))}"
            for c, values in self.columns
        )


@dataclass(frozen=True)
class Key:
    """Events with the same values in these columns, or the same `by`, depend on each other; without either, all do."""

    columns: tuple[str, ...] = ()
    by: Callable[[Any], Any] | None = None

    def of(self, event: Any) -> Any:
        """The key of an event."""
        if self.by is None:
            return cells(event, self.columns, _PURPOSE) if self.columns else ()
        return canonical(called("key function of the dependence", DependenceProblem, self.by, event))


@dataclass(frozen=True)
class Synchronising:
    """An event that fulfils `by` depends on every event that has the same values in the columns `within`."""

    by: Predicate
    within: tuple[str, ...] = ()


@dataclass(frozen=True)
class Punctuating:
    """A punctuation (an event that fulfils `by`) depends on the events with an earlier time."""

    time: str
    by: Predicate


@dataclass(frozen=True)
class Function:
    """Two events depend on each other if the function returns true for them."""

    function: Callable[[Any, Any], Any]

    def ask(self, a: Any, b: Any) -> bool:
        """Call the function; an error shows the pair."""
        return bool(called("dependence", DependenceProblem, self.function, a, b))


Clause = Key | Synchronising | Punctuating | Function


@dataclass(frozen=True)
class Dependence:
    """A union of clauses; none means that no order matters. `a | b` is the union of two."""

    clauses: tuple[Clause, ...] = ()

    def __or__(self, other: Any) -> Dependence:
        return Dependence(_simplest((*self.clauses, *as_dependence(other).clauses)))

    def __ror__(self, other: Any) -> Dependence:
        return as_dependence(other) | self

    @property
    def structured(self) -> bool:
        """Whether every clause has an index."""
        return not any(isinstance(c, Function) for c in self.clauses)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at, as far as it names them."""
        names: list[str] = []
        for clause in self.clauses:
            if isinstance(clause, Key):
                names += clause.columns
            elif isinstance(clause, (Synchronising, Punctuating)):
                names += clause.within if isinstance(clause, Synchronising) else (clause.time,)
                names += (column for column, _ in clause.by.columns)
        return tuple(dict.fromkeys(names))

    def depends(self, a: Any, b: Any) -> bool:
        """The definition, for one pair. Indexes must agree with it."""
        return any(_holds(clause, a, b) for clause in self.clauses)

    def describe(self) -> str:
        """A few words for a person."""
        return "; ".join(map(_words, self.clauses)) or "independent"


def as_dependence(value: Any) -> Dependence:
    """What `depends=` may be: a dependence, or a symmetric function of two events."""
    if isinstance(value, Dependence):
        return value
    if any(value is maker for maker in (keyed, synchronised, punctuated)):
        raise DependenceProblem(f"Expected a dependence, got the function {value.__name__}.", hint="Call it.")
    if callable(value):
        return Dependence((Function(value),))
    hint = f"Write keyed({value!r})." if isinstance(value, str) else "For example ordered, or keyed('taxi')."
    raise DependenceProblem(
        f"Expected a dependence or a function of two events, got {shown(value)}.", hint=hint
    )


independent = Dependence()
"""No order matters: two streams are equivalent if they hold the same events as often."""

ordered = Dependence((Key(),))
"""Every order matters."""


def keyed(*columns: str, by: Callable[[Any], Any] | None = None) -> Dependence:
    """In order for each key, free across keys. Null is a key like any other.

    The key is the values of some columns, which is fastest, or what a function of an event returns: `keyed(by=zone)`.
    Its answer must depend on the event alone, and be the same for equal events.
    """
    if by is not None:
        if columns or not callable(by):
            raise DependenceProblem(
                f"Expected columns or a function of an event as the key, got {shown(columns or by)}.",
                hint="For both, return them from the function: keyed(by=lambda e: (e['city'], zone(e))).",
            )
        return Dependence((Key(by=by),))
    return Dependence((Key(_names(columns, "keyed('taxi')")),))


def synchronised(
    base: Any = independent, *, by: By, within: str | tuple[str, ...] | list[str] = ()
) -> Dependence:
    """`base`, and besides an event that fulfils `by` depends on all (of the same `within`), such as an end of day.

    `by` is a column that is true, a mapping from column to value (or list of values), or a function of an event; the
    first two need no Python for each row.
    """
    names = (within,) if isinstance(within, str) else tuple(within)
    return as_dependence(base) | Dependence(
        (Synchronising(_predicate(by), names and _names(names, "within='city'")),)
    )


def punctuated(*, time: str, by: By) -> Dependence:
    """A punctuation depends on the events with an earlier time, and on no other: a watermark. `by`: see `synchronised`.

    Fastest where punctuations come in the order of their times. An event or punctuation without a time depends on none.
    """
    return Dependence((Punctuating(_names((time,), "time='ts'")[0], _predicate(by)),))


def before(a: Any, b: Any) -> bool:
    """Whether a time is before another; false if one is missing."""
    if a is None or b is None:
        return False
    try:
        return bool(a < b)
    except TypeError as error:
        raise DependenceProblem(
            f"Expected times that compare, got {a!r} and {b!r}.", hint="Give the time column one type."
        ) from error


def _holds(clause: Clause, a: Any, b: Any) -> bool:
    if isinstance(clause, Function):
        return clause.ask(a, b)
    if isinstance(clause, Key):
        return bool(clause.of(a) == clause.of(b))
    if isinstance(clause, Synchronising):
        return (clause.by.test(a) or clause.by.test(b)) and _same(clause.within, a, b)
    time_a, time_b = (cells(e, (clause.time,), "the time of the dependence")[0] for e in (a, b))
    return (clause.by.test(a) and before(time_b, time_a)) or (clause.by.test(b) and before(time_a, time_b))


def _same(columns: tuple[str, ...], a: Any, b: Any) -> bool:
    return not columns or cells(a, columns, _PURPOSE) == cells(b, columns, _PURPOSE)


def _simplest(clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
    """Without clauses that another one contains: a key of more columns, or anything beside `ordered`."""
    distinct = list(dict.fromkeys(clauses))
    keys = [set(c.columns) for c in distinct if isinstance(c, Key) and c.by is None]
    if set() in keys:
        return (Key(),)
    return tuple(c for c in distinct if not (isinstance(c, Key) and any(k < set(c.columns) for k in keys)))


def _names(columns: tuple[Any, ...], example: str) -> tuple[str, ...]:
    hint = f"For example {example}."
    for name in columns:
        if not isinstance(name, str) or not name:
            raise DependenceProblem(f"Expected the name of a column, got {name!r}.", hint=hint)
    if not columns or repeated(columns) is not None:
        raise DependenceProblem(
            f"Expected at least one column and none twice, got {list(columns)}.", hint=hint
        )
    return tuple(columns)


def _predicate(by: Any) -> Predicate:
    if isinstance(by, Predicate):
        return by
    if isinstance(by, str):
        return Predicate(columns=((_names((by,), "by='end_of_day'")[0], (True,)),))
    if isinstance(by, Mapping):
        names = _names(tuple(by), "by={'kind': 'end of day'}")
        allowed = (v if isinstance(v, (list, tuple, set, frozenset)) else (v,) for v in by.values())
        return Predicate(tuple((n, tuple(map(canonical, a))) for n, a in zip(names, allowed, strict=True)))
    if callable(by):
        return Predicate(function=by)
    raise DependenceProblem(
        f"Expected a predicate, got {shown(by)}.",
        hint="A column, a mapping such as {'kind': 'end of day'}, or a function of an event.",
    )


def _words(clause: Clause) -> str:
    if isinstance(clause, Function):
        return "dependent by a function"
    if isinstance(clause, Key) and clause.by is not None:
        return f"in order for each value of {getattr(clause.by, '__name__', 'a function').strip('<>')}"
    if isinstance(clause, Key):
        return f"in order for each {', '.join(clause.columns)}" if clause.columns else "ordered"
    if isinstance(clause, Synchronising):
        within = f" within {', '.join(clause.within)}" if clause.within else ""
        return f"synchronised by {clause.by.describe()}{within}"
    return f"punctuated by {clause.by.describe()} at {clause.time}"
