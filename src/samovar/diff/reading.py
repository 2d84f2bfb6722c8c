"""What can be read off a function of two events without knowing any: columns in which dependent events agree.

`lambda a, b: a["taxi"] == b["taxi"] and a["at"] > 5` says yes only to events of one taxi, so that it need not be asked
about the others. Such a function is called a few times with stand-ins for the events, once for each way through it.
Guarantee: where a column is named, the function is false for every two events whose cells there are not equal. Nothing
is said (an empty answer) about a function that does more than look at cells, compare them, and combine the results.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import FunctionType
from typing import Any

__all__ = ["agreeing_columns"]

_PLAIN = frozenset(
    {
        "BINARY_SUBSCR",
        "CACHE",
        "COMPARE_OP",
        "COPY",
        "JUMP_FORWARD",
        "JUMP_IF_FALSE_OR_POP",
        "JUMP_IF_TRUE_OR_POP",
        "LOAD_CONST",
        "LOAD_FAST",
        "LOAD_FAST_LOAD_FAST",
        "NOP",
        "NOT_TAKEN",
        "POP_JUMP_FORWARD_IF_FALSE",
        "POP_JUMP_FORWARD_IF_TRUE",
        "POP_JUMP_IF_FALSE",
        "POP_JUMP_IF_TRUE",
        "POP_TOP",
        "RESUME",
        "RETURN_CONST",
        "RETURN_VALUE",
        "SWAP",
        "TO_BOOL",
        "UNARY_NOT",
    }
)
"""What a function may consist of. No loops, no calls, no `is` and no `in`: stand-ins would mislead these."""
_WAYS = 64


class _Way:
    """One way through the function: what each test is to give, and which tests were equal cells of one column."""

    def __init__(self, answers: list[bool]) -> None:
        self.answers = answers
        self.asked = 0
        self.agreeing: set[Any] = set()
        self.differing: set[Any] = set()

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


class _Test:
    """The outcome of a comparison: unknown, and asked for when it matters."""

    def __init__(self, way: _Way, column: Any = None, *, same: bool = False) -> None:
        self._way = way
        self._column = column
        self._same = same
        self._held: bool | None = None

    def __bool__(self) -> bool:
        if self._held is None:  # `x and y` asks x, and may give it as the result, which is asked again
            self._held = self._way.answer()
            if self._same:
                (self._way.agreeing if self._held else self._way.differing).add(self._column)
        return self._held


class _Cell:
    """A value that nobody knows."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, way: _Way, event: int, column: Any) -> None:
        self._way = way
        self._place = (event, column)
        self._truth = _Test(way)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, _Cell) and self._place[0] != other._place[0]:
            return _Test(self._way, self._place[1], same=self._place[1] == other._place[1])
        return _Test(self._way)

    def _unknown(self, other: object) -> Any:
        return _Test(self._way)

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _unknown

    def __bool__(self) -> bool:
        return bool(self._truth)


class _Event:
    def __init__(self, way: _Way, number: int) -> None:
        self._way = way
        self._number = number

    def __getitem__(self, column: Any) -> _Cell:
        if not isinstance(column, (str, int)):
            raise TypeError(column)
        return _Cell(self._way, self._number, column)


def agreeing_columns(function: Callable[[Any, Any], Any]) -> tuple[Any, ...]:
    """Columns (or places in a tuple) in which events agree wherever the function is true; none if that is not clear."""
    if not isinstance(function, FunctionType) or function.__closure__ or function.__defaults__:
        return ()
    if any(i.opname not in _PLAIN for i in dis.get_instructions(function)):
        return ()
    agreed: set[Any] | None = None
    answers: list[bool] | None = []
    for _ in range(_WAYS):
        assert answers is not None
        way = _Way(answers)
        try:
            held = bool(function(_Event(way, 0), _Event(way, 1)))
        except Exception:
            return ()
        if held and not way.agreeing & way.differing:
            agreed = set(way.agreeing) if agreed is None else agreed & way.agreeing
        if (answers := way.next()) is None:
            return tuple(sorted(agreed, key=repr)) if agreed else ()
    return ()
