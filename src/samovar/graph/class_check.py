"""Mistakes in operator classes that can be found before a tuple is processed.

Without these checks the mistakes raise no error and only change results: a row that is built and not yielded, state
on an operator that Spark runs without state, a container in the class body that all instances of a worker share.

Guarantee: it runs nothing, and refuses only what is certainly a mistake. What may be intended (a `process` that only
keeps state or writes somewhere) is a warning, which `return ()` silences. It reads bytecode, which
code typed at a prompt has too, and source text where that can be found. It does not see what a class does through
another name.
"""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
import warnings
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

from samovar.errors import SamovarWarning, WorkflowError
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.state import declared

__all__ = ["check_class", "gives_nothing", "lost_row", "mutated"]

_MUTABLE = (list, dict, set, bytearray, deque)
_FROZEN = (tuple, frozenset, bytes, MappingProxyType)
_MUTATORS = (
    {n for kind in _MUTABLE for n in dir(kind)} - {n for kind in _FROZEN for n in dir(kind)} - {"fromkeys"}
)
"""Methods that mutable containers have and their immutable counterparts lack."""
_PAUSES = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
)
_DICTS = {"BUILD_MAP", "BUILD_CONST_KEY_MAP", "DICT_UPDATE", "DICT_MERGE", "MAP_ADD"}
_STORES = ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL", "STORE_DEREF")
_EFFECTS = ("CALL", "DELETE_", "IMPORT_", *_STORES)
"""How the names of instructions begin that others can notice."""
_NO_WORK = {"CACHE", "NOP", "EXTENDED_ARG", "PRECALL", "RESUME", "NOT_TAKEN"}


def check_class(operator: Operator, name: str) -> None:
    """Raise a WorkflowError that names the operator for a certain mistake; warn of a `process` without rows."""
    cls = type(operator)
    main = "process_batch" if is_batch_form(cls) else "process"
    for method in (main, "finish"):
        function = getattr(cls, method)
        lost = lost_row(function.__code__) if isinstance(function, FunctionType) else None
        if lost is not None:
            raise WorkflowError(
                f"{cls.__name__}.{method}() {lost[1]} (line {lost[0]}): nobody gets it.",
                operator=name,
                hint=f"Write `yield {'batch' if main == 'process_batch' else '{...}'}`.",
            )
    _check_stateless(cls, name)
    _check_shared(operator, name)
    function = getattr(cls, main)
    ends = cls.finish is not Operator.finish
    if isinstance(function, FunctionType) and not ends and gives_nothing(function.__code__):
        text = f"Operator '{name}': {cls.__name__}.{main}() neither yields nor returns rows."
        if not _has_effect(function.__code__):
            raise WorkflowError(text, operator=name, hint="Yield each row: yield {'column': value}.")
        warnings.warn(
            f"{text} Hint: yield each row; if none is intended, end it with `return ()`.",
            SamovarWarning,
            stacklevel=2,
        )


# --- rows that are lost ---------------------------------------------------------------------------------------------


def gives_nothing(code: CodeType) -> bool:
    """Whether a function yields nothing and returns None, wherever it ends. A function that always raises does not."""
    if code.co_flags & _PAUSES:
        return False
    ends = list(_returned(code))
    return bool(ends) and all(
        end.opname.startswith(("LOAD_CONST", "RETURN_CONST")) and end.argval is None for end in ends
    )


def lost_row(code: CodeType) -> tuple[int, str] | None:
    """The line at which a function builds a row that it does not yield, and what it does with the row instead."""
    steps = _steps(code)
    for before, step in pairwise(steps):
        if step.opname == "POP_TOP" and before.opname in _DICTS:
            return _line(code, before), "makes a row and drops it"
    paused = bool(code.co_flags & _PAUSES)
    for end in _returned(code):
        if end.opname in _DICTS:
            return _line(code, end), "returns a row instead of yielding it"
        if paused and end.opname == "BUILD_LIST" and end.arg:
            return _line(code, end), "yields rows and returns others"
    return None


def _steps(code: CodeType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(code) if step.opname not in _NO_WORK]


def _returned(code: CodeType) -> Iterator[dis.Instruction]:
    """The instruction that built the value of each return; the return itself where several branches lead to it."""
    steps = _steps(code)
    for before, step in pairwise(steps):
        if step.opname == "RETURN_CONST":
            yield step
        elif step.opname == "RETURN_VALUE":
            yield step if step.is_jump_target else before


def _line(code: CodeType, at: dis.Instruction) -> int:
    """The line of the source that an instruction comes from."""
    lines = (line for start, stop, line in code.co_lines() if start <= at.offset < stop and line)
    return next(lines, code.co_firstlineno)


def _has_effect(code: CodeType) -> bool:
    return any(step.opname.startswith(_EFFECTS) for step in _steps(code))


# --- state ----------------------------------------------------------------------------------------------------------


def _check_stateless(cls: type[Operator], name: str) -> None:
    kept = list(declared(cls)) if cls.stateless else []
    if kept:
        raise WorkflowError(
            f"{cls.__name__} is stateless and declares state ({', '.join(kept)}): nothing keeps it.",
            operator=name,
            hint="Remove `stateless = True`, or the state. With apply(..., by=...) an operator with state is run in "
            "parallel by key.",
        )
    counted = next((c for node in _nodes(cls) for c in _counted(node)), None) if cls.stateless else None
    if counted is not None:
        raise WorkflowError(
            f"{cls.__name__} is stateless and changes self.{counted} from row to row: nothing keeps it.",
            operator=name,
            hint=f"Remove `stateless = True`, and declare {counted} = sv.ValueState(...).",
        )


def _check_shared(operator: Operator, name: str) -> None:
    """Refuse containers in the class body: all instances of a worker share them, and no recording holds them."""
    cls = type(operator)
    shared = {
        n: getattr(cls, n)
        for base in cls.__mro__
        if base not in Operator.__mro__
        for n, v in vars(base).items()
        if isinstance(v, _MUTABLE) and not n.startswith("__") and n not in vars(operator)
    }
    changed = {n for node in _nodes(cls) for n in mutated(node)} if shared else set()
    for attribute, value in shared.items():
        empty = isinstance(value, _MUTABLE) and not value and attribute not in _assigned(cls)
        if attribute in changed or empty:
            kind = type(value).__name__
            state = {"list": "ListState()", "dict": "MapState()"}.get(kind, f"ValueState({kind}())")
            raise WorkflowError(
                f"{cls.__name__}.{attribute} is a {kind} in the class body: it is shared by all instances and is no "
                "state, so that it is lost when a worker ends and is in no recording.",
                operator=name,
                hint=f"Declare it: {attribute} = sv.{state}. "
                + ("A constant is a tuple or a frozenset." if empty else "Or set it in __init__."),
            )


def _assigned(cls: type) -> set[str]:
    """Attributes that methods of the class set as a whole."""
    functions = [v for base in cls.__mro__ for v in vars(base).values() if isinstance(v, FunctionType)]
    return {s.argval for f in functions for s in _steps(f.__code__) if s.opname == "STORE_ATTR"}


def _nodes(cls: type) -> Iterator[ast.ClassDef]:
    """The source of a class and its bases, where it can be found."""
    mark = vars(cls).get("__source__")  # code of a document: no module that `inspect` could find
    for base in cls.__mro__:
        if base in Operator.__mro__:
            return
        try:
            text = mark[1] if mark is not None else textwrap.dedent(inspect.getsource(base))
            tree = ast.parse(text)
        except (OSError, TypeError, SyntaxError, ValueError):
            continue
        yield from (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == base.__name__)


def mutated(node: ast.ClassDef) -> set[str]:
    """Attributes of `self` or of the class that methods change in place: `self.seen.append(x)`, `self.seen[k] = x`."""
    attributes = set()
    for inner in ast.walk(node):
        place: Any = None
        match inner:
            case ast.Call(func=ast.Attribute(attr=method, value=place)) if method in _MUTATORS:
                pass
            case ast.Subscript(ctx=ast.Store() | ast.Del(), value=place):
                pass
            case ast.AugAssign(target=ast.Attribute() as place):
                pass
        if (attribute := _attribute_of_self(place, node.name)) is not None:
            attributes.add(attribute)
    return attributes


def _counted(node: ast.ClassDef) -> Iterator[str]:
    """Attributes that `process` or `process_batch` adds to: `self.n += 1`."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in ("process", "process_batch"):
            for inner in ast.walk(method):
                target = inner.target if isinstance(inner, ast.AugAssign) else None
                if (attribute := _attribute_of_self(target, node.name)) is not None:
                    yield attribute


def _attribute_of_self(place: Any, cls: str) -> str | None:
    """The attribute's name if a place is `self.name`, `cls.name`, `Class.name` or `type(self).name`."""
    match place:
        case ast.Attribute(value=ast.Name(id=holder), attr=attribute) if holder in ("self", "cls", cls):
            return str(attribute)
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type")), attr=attribute):
            return str(attribute)
    return None
