"""Stand-ins for events and for what is computed from them: they note what is done, and leave every test open.

A test (a comparison, the truth of a value) has no known outcome; a `Way` says what it is to be this time. A value that
was computed from one event alone has a `Form`, which says how: two values of the same form, one of each event, that
are compared with `==` and found equal are what a reader looks for. What was computed from both events has no form.
Whatever would need a real value (a hash, a text, a number) raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["EVENT", "Form", "Outcome", "Outer", "Value", "Way"]


@dataclass(frozen=True)
class _Same:
    """An object of the outside: the same only as itself."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __str__(self) -> str:
        return str(getattr(self.value, "__name__", self.value))


@dataclass(frozen=True)
class Form:
    """How a value is computed from an event: `do` of the parts, which are forms, constants, or of the outside."""

    do: str
    parts: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    """Of a call, the names of its last parts."""

    @property
    def column(self) -> str | int | None:
        """The column, or the place in a tuple, if that is all there is to it."""
        if self.do == "item" and self.parts[0] == EVENT and self.parts[1].do in ("outer", "constant"):
            key = self.parts[1].parts[0].value
            return key if isinstance(key, (str, int)) else None
        return None

    def getter(self) -> Callable[[Any], Any]:
        """What computes it."""
        if self.do == "event":
            return lambda event: event
        if self.do in ("outer", "constant"):
            value = self.parts[0].value
            return lambda event: value
        parts = [part.getter() for part in self.parts]
        if self.do == "tuple":
            return lambda event: tuple([get(event) for get in parts])
        if self.do == "call":
            return _call(parts, self.names)
        first, rest = parts[0], parts[1:]
        does: Callable[..., Any] = _DOES[self.do]
        return lambda event: does(first(event), *[get(event) for get in rest])

    def __str__(self) -> str:
        if self.column is not None:
            return str(self.column)
        if self.do in ("outer", "constant"):
            return str(self.parts[0])
        return f"{self.do}({', '.join(map(str, self.parts))})" if self.parts else self.do


EVENT = Form("event")
_DOES: dict[str, Callable[..., Any]] = {
    "item": operator.getitem,
    "attr": getattr,
    "neg": operator.neg,
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")
    },
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def _call(parts: list[Callable[[Any], Any]], names: tuple[str, ...]) -> Callable[[Any], Any]:
    function, arguments = parts[0], parts[1 : len(parts) - len(names)]
    named = dict(zip(names, parts[len(parts) - len(names) :], strict=True))
    if not named and len(arguments) == 1:
        only = arguments[0]
        return lambda event: function(event)(only(event))
    return lambda event: function(event)(
        *[get(event) for get in arguments], **{n: get(event) for n, get in named.items()}
    )


Call = Callable[["Way", Any, tuple[Any, ...], dict[str, Any]], Any]


class Way:
    """One way through the function: what each test is to give, and which tests were of values of one form."""

    def __init__(self, answers: list[bool], call: Call) -> None:
        self.answers = answers
        self.asked = 0
        self.agreeing: set[Form] = set()
        self.differing: set[Form] = set()
        self.call = call
        """What a function of the outside gives for values of both events."""

    def answer(self) -> bool:
        if self.asked == len(self.answers):
            self.answers.append(True)
        self.asked += 1
        return self.answers[self.asked - 1]

    def next(self) -> list[bool] | None:
        """The answers of the way after this one; None after the last."""
        kept = list(self.answers)
        while kept and not kept.pop():
            pass
        turned = len(kept)
        return [*kept, False] if any(self.answers[turned:]) else None


def _refuse(self: Any, *_: Any) -> Any:
    raise TypeError("a stand-in has no such value")


class _Open:
    """What has an unknown truth, and no other use."""

    __hash__ = None  # type: ignore[assignment]
    __str__ = __repr__ = __format__ = __index__ = __int__ = __float__ = _refuse
    __iter__ = None

    def __init__(self, way: Way) -> None:
        self._sv_way = way
        self._sv_held: bool | None = None

    def __bool__(self) -> bool:
        if self._sv_held is None:  # `x and y` asks x, and may give it as the result, which is asked again
            self._sv_held = self._sv_way.answer()
        return self._sv_held

    def __contains__(self, item: object) -> bool:
        return self._sv_way.answer()

    def _sv_test(self, other: object) -> Any:
        return Outcome(self._sv_way)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _sv_test


class Outcome(_Open):
    """The outcome of a comparison: unknown, and asked for when it matters."""

    def __init__(self, way: Way, form: Form | None = None) -> None:
        super().__init__(way)
        self._sv_form = form

    def __bool__(self) -> bool:
        known = self._sv_held
        held = super().__bool__()
        if known is None and self._sv_form is not None:
            (self._sv_way.agreeing if held else self._sv_way.differing).add(self._sv_form)
        return held


def _binary(name: str) -> tuple[Any, Any]:
    def there(self: Value, other: object) -> Value:
        return self._sv_made(name, (self, other))

    def back(self: Value, other: object) -> Value:
        return self._sv_made(name, (other, self))

    return there, back


class Value(_Open):
    """A value that nobody knows, computed from some of the two events."""

    def __init__(self, way: Way, events: Iterable[int], form: Form | None) -> None:
        super().__init__(way)
        self._sv_events = frozenset(events)
        self._sv_form = form if len(self._sv_events) < 2 else None

    def __eq__(self, other: object) -> Any:
        form = self._sv_form
        if (
            form is not None
            and form != EVENT
            and isinstance(other, Value)
            and form == other._sv_form
            and len(self._sv_events | other._sv_events) == 2
        ):
            return Outcome(self._sv_way, form)
        return Outcome(self._sv_way)

    __hash__ = None

    def __getitem__(self, key: Any) -> Value:
        return self._sv_made("item", (self, key))

    def __getattr__(self, name: str) -> Value:
        if name.startswith(("__", "_sv_")):
            raise AttributeError(name)
        return self._sv_made("attr", (self, name))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._sv_made("call", (self, *arguments, *named.values()), tuple(named))

    def __neg__(self) -> Value:
        return self._sv_made("neg", (self,))

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __lshift__, __rlshift__ = _binary("lshift")
    __rshift__, __rrshift__ = _binary("rshift")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")

    def _sv_made(self, do: str, parts: tuple[Any, ...], names: tuple[str, ...] = ()) -> Value:
        forms = tuple(_form(part) for part in parts)
        whole = None if any(form is None for form in forms) else Form(do, forms, names)
        return Value(self._sv_way, _events(parts), whole)


class Outer(Value):
    """A value that the function knows from outside. It may change: its truth is open, too."""

    def __init__(self, way: Way, real: Any) -> None:
        super().__init__(way, (), Form("outer", (_Same(real),)))
        self._sv_real = real

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_sv_")):
            raise AttributeError(name)
        return Outer(self._sv_way, getattr(self._sv_real, name))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        events = _events((*arguments, *named.values()))
        if self._sv_real is bool and len(arguments) == 1:
            return arguments[0]
        if len(events) == 2:
            return self._sv_way.call(self._sv_way, self._sv_real, arguments, dict(named))
        if not events:
            return Value(self._sv_way, (), None)
        return super().__call__(*arguments, **named)


def _events(parts: Iterable[Any]) -> frozenset[int]:
    """Of which events these are made."""
    found: frozenset[int] = frozenset()
    for part in parts:
        if isinstance(part, Outcome):
            found |= {0, 1}
        elif isinstance(part, Value):
            found |= part._sv_events
        elif isinstance(part, tuple):
            found |= _events(part)
    return found


def _form(part: Any) -> Form | None:
    if isinstance(part, Value):
        return part._sv_form
    if isinstance(part, Outcome):
        return None
    if isinstance(part, tuple):
        forms = tuple(_form(each) for each in part)
        return None if any(form is None for form in forms) else Form("tuple", forms)
    return Form("constant", (_Constant(type(part), part),))


@dataclass(frozen=True)
class _Constant:
    kind: type
    value: Any

    def __str__(self) -> str:
        return repr(self.value)
