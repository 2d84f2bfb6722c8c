"""What can be read off a function of two events without knowing any: values in which dependent events agree.

`lambda a, b: a["taxi"] == b["taxi"] and a["at"] > 5` says yes only to events of one taxi, so that it need not be asked
about the others; `zone(a) == zone(b)`, with any function `zone` of one event, only to events of one zone. Such a
function is called a few times with stand-ins for the events, once for each way through it.

Guarantee: where a value is named, the function is false for every two events that do not agree in it, as long as it is
a function: its answer depends on the two events alone, and it changes nothing. What it calls is not run, apart from
functions of both events, which are read as it is. Nothing is said (an empty answer) about a function that does more
than look at events, compute something from one of them, compare, and combine the results.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from samovar.diff.matcher.symbolic_values import EVENT, Form, Outer, Value, Way

__all__ = ["agreeing", "key_of"]

_PLAIN = frozenset(
    [
        "BINARY_OP",
        "BINARY_SUBSCR",
        "BUILD_TUPLE",
        "CACHE",
        "CALL",
        "CALL_KW",
        "COMPARE_OP",
        "CONTAINS_OP",
        "COPY",
        "COPY_FREE_VARS",
        "EXTENDED_ARG",
        "JUMP_FORWARD",
        "JUMP_IF_FALSE_OR_POP",
        "JUMP_IF_TRUE_OR_POP",
        "KW_NAMES",
        "LOAD_ATTR",
        "LOAD_CONST",
        "LOAD_DEREF",
        "LOAD_FAST",
        "LOAD_FAST_BORROW",
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        "LOAD_FAST_CHECK",
        "LOAD_FAST_LOAD_FAST",
        "LOAD_GLOBAL",
        "LOAD_METHOD",
        "LOAD_SMALL_INT",
        "NOP",
        "NOT_TAKEN",
        "POP_JUMP_FORWARD_IF_FALSE",
        "POP_JUMP_FORWARD_IF_TRUE",
        "POP_JUMP_IF_FALSE",
        "POP_JUMP_IF_TRUE",
        "POP_TOP",
        "PRECALL",
        "PUSH_NULL",
        "RESUME",
        "RETURN_CONST",
        "RETURN_VALUE",
        "STORE_FAST",
        "STORE_FAST_LOAD_FAST",
        "STORE_FAST_STORE_FAST",
        "SWAP",
        "TO_BOOL",
        "UNARY_NEGATIVE",
        "UNARY_NOT",
    ]
)
"""What a function may consist of. No loops and no `is`: stand-ins would mislead these. Of what `in` looks into, tuples
ask their members one by one, as they do with real values; all else is a stand-in itself (see `_code`)."""
_OTHER_KINDS = 0x20 | 0x80 | 0x100 | 0x200  # generators and coroutines
_WAYS = 64


def agreeing(function: Callable[[Any, Any], Any]) -> tuple[Form, ...]:
    """Values of an event in which events agree wherever the function is true; none if that is not clear."""
    if not isinstance(function, FunctionType) or not _is_plain(function):
        return ()
    agreed: set[Form] | None = None
    answers: list[bool] | None = []
    for _ in range(_WAYS):
        assert answers is not None
        way = Way(answers, _called)
        try:
            held = bool(_called(way, function, (Value(way, {0}, EVENT), Value(way, {1}, EVENT)), {}))
        except Exception:
            return ()
        if held and not way.agreeing & way.differing:
            agreed = set(way.agreeing) if agreed is None else agreed & way.agreeing
        if (answers := way.next()) is None:
            return tuple(sorted(agreed, key=str)) if agreed else ()
    return ()


def key_of(forms: Sequence[Form]) -> Callable[[Any], tuple[Any, ...]]:
    """What takes these values from an event."""
    if all(form.column is not None for form in forms):
        columns = [form.column for form in forms]
        return lambda event: tuple([event[c] for c in columns])
    getters = [form.getter() for form in forms]
    return lambda event: tuple([get(event) for get in getters])


def _is_plain(function: FunctionType) -> bool:
    code = function.__code__
    if code.co_flags & _OTHER_KINDS or function.__kwdefaults__:
        return False
    if any(name.startswith("__") for name in code.co_names):
        return False
    return all(i.opname in _PLAIN for i in dis.get_instructions(function))


def _called(way: Way, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a function gives for stand-ins, all that it knows from outside being a stand-in, too."""
    if not isinstance(function, FunctionType) or not _is_plain(function):
        return Value(way, {0, 1}, None)
    known = {**vars(builtins), **function.__globals__}
    outside = {n: Outer(way, known[n]) for n in function.__code__.co_names if n in known}
    closure = tuple(CellType(Outer(way, cell.cell_contents)) for cell in function.__closure__ or ())
    defaults = tuple(Outer(way, value) for value in function.__defaults__ or ())
    copy = FunctionType(
        _code(way, function), {**outside, "__builtins__": {}}, function.__name__, defaults, closure
    )
    return copy(*arguments, **named)


def _code(way: Way, function: FunctionType) -> CodeType:
    """The function's code, constant sets (`in {"a", "b"}`) being stand-ins: a set asks for a hash, and none has one."""
    code = function.__code__
    if not any(isinstance(constant, frozenset) for constant in code.co_consts):
        return code
    constants = [Outer(way, c) if isinstance(c, frozenset) else c for c in code.co_consts]
    return code.replace(co_consts=tuple(constants))
