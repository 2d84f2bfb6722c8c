"""Python operators as text: live objects from code, and self-contained code from live objects.

`operator_from_code` and `function_from_code` run code text in a module of its own, which is not importable: the
classes and functions made from it travel to Spark's workers by value. Their source lines travel along, so that a
traceback in a worker shows them under the file name `<operator FE>`.

`source_of` and `function_source` go the other way. They collect a class or function, and what it needs of its own
module: imports, constants, helper functions, base classes. They do not promise to recover attributes that were set
on an instance after its construction: a document holds the constructor's parameters.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import linecache
import math
import re
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import msgspec

from samovar.errors import WorkflowError, did_you_mean
from samovar.graph import operators as ops
from samovar.graph.class_check import check_class
from samovar.graph.operator import Operator, remember_source
from samovar.graph.operators.base import Op
from samovar.graph.self_contained_code import Unrecoverable, collect
from samovar.text import shortened, shown, with_caret

__all__ = [
    "function_from_code",
    "function_source",
    "operator_from_code",
    "recall_source",
    "remember_source",
    "source_of",
    "with_source",
]


# --- from code ------------------------------------------------------------------------------------------------------


def operator_from_code(op: ops.Python) -> Operator:
    """A fresh instance of the operator that `op.code` defines. Runs the code; raises WorkflowError that names `op`."""
    module = _executed(op.name, op.code)
    cls = _chosen_class(op, module)
    cls.__source__ = _source_mark(module)  # type: ignore[attr-defined]
    if not cls.output.strip():
        raise WorkflowError(
            f"Operator '{op.name}': class {cls.__name__} has no `output`.",
            hint='Declare its rows: output = "customer string, amount double".',
            operator=op.name,
        )
    _check_params(op, cls)
    try:
        operator = cls(**op.params)
    except Exception as error:
        raise WorkflowError(
            f"Operator '{op.name}': {cls.__name__}({_listed(op.params)}) raised {_error_line(error)}"
            f"{_place(error, module)}",
            hint="Look at `params` and at the class's __init__.",
            operator=op.name,
        ) from error
    check_class(operator, op.name)
    return operator


def function_from_code(op: ops.Batches) -> Callable[..., Any]:
    """The function that `op.code` defines. Runs the code; raises WorkflowError that names `op`."""
    module = _executed(op.name, op.code)
    functions = _defined(module, lambda value: isinstance(value, types.FunctionType))
    name = op.function or (functions[0] if len(functions) == 1 else "")
    function = vars(module).get(name)
    if not callable(function):
        raise WorkflowError(
            f"Operator '{op.name}': expected its code to define the function '{name}', "
            f"got {', '.join(functions) or 'no function'}.",
            hint=did_you_mean(name, functions, "Name the function in `function`."),
            operator=op.name,
        )
    if isinstance(function, types.FunctionType):
        function.__dict__["__source__"] = _source_mark(module)
    return function  # type: ignore[no-any-return]


def _defined(module: types.ModuleType, is_wanted: Callable[[Any], bool]) -> list[str]:
    """The names of the classes or functions that a module defines and does not import."""
    members = vars(module).items()
    return sorted(n for n, v in members if is_wanted(v) and v.__module__ == module.__name__)


def recall_source(thing: object) -> None:
    """Make the source lines of an operator or function made from code known in this process. Cheap; raises nothing."""
    holder = thing if isinstance(thing, types.FunctionType | type) else type(thing)
    mark = vars(holder).get("__source__")
    if mark is not None:
        remember_source(*mark)


def _executed(name: str, code: str) -> types.ModuleType:
    if not code.strip():
        raise WorkflowError(
            f"Operator '{name}' has no code.", hint="Put the class or function into `code`.", operator=name
        )
    digest = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
    filename = f"<operator {name}>"
    known = linecache.cache.get(filename)
    if known is not None and len(known) == 4 and "".join(known[2]) != code:
        filename = f"<operator {name} {digest[:6]}>"  # another version of it is in use: keep both readable
    remember_source(filename, code)
    try:
        compiled = compile(code, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise WorkflowError(_syntax_text(name, code, error), operator=name) from None
    except ValueError as error:  # null bytes
        raise WorkflowError(f"Operator '{name}': its code cannot be read: {error}.", operator=name) from None
    module = types.ModuleType(f"samovar_code_{re.sub(r'[^0-9A-Za-z_]', '_', name)}_{digest[:8]}")
    module.__file__ = filename
    package = importlib.import_module("samovar")
    vars(module).update(sv=package, samovar=package)
    # Dataclasses look their module up while they are made. Afterwards it must not be found, or pickle would refer
    # to it by name instead of sending it to the workers.
    sys.modules[module.__name__] = module
    try:
        exec(compiled, vars(module))
    except Exception as error:
        raise WorkflowError(
            f"Operator '{name}': its code raised {_error_line(error)}{_place(error, module)}",
            hint="Install the module on this machine and on the workers."
            if isinstance(error, ImportError)
            else None,
            operator=name,
        ) from error
    finally:
        sys.modules.pop(module.__name__, None)
    return module


def _source_mark(module: types.ModuleType) -> tuple[str, str]:
    filename = str(module.__file__)
    return filename, "".join(linecache.cache[filename][2])  # type: ignore[misc]


def _chosen_class(op: ops.Python, module: types.ModuleType) -> type[Operator]:
    classes = _defined(module, _is_operator_class)
    name = op.class_name or (classes[0] if len(classes) == 1 else "")
    cls = vars(module).get(name)
    if _is_operator_class(cls):
        return cls
    if cls is not None:
        raise WorkflowError(
            f"Operator '{op.name}': expected '{name}' to be a class derived from sv.Operator, got {cls!r}.",
            hint=f"Write class {name}(sv.Operator).",
            operator=op.name,
        )
    expected = f"the class '{name}'" if name else "one class derived from sv.Operator"
    raise WorkflowError(
        f"Operator '{op.name}': expected its code to define {expected}, "
        f"got {', '.join(classes) or 'no operator class'}.",
        hint=did_you_mean(name, classes, "Name the class in `class`."),
        operator=op.name,
    )


def _is_operator_class(value: Any) -> TypeGuard[type[Operator]]:
    return isinstance(value, type) and issubclass(value, Operator)


def _check_params(op: ops.Python, cls: type[Operator]) -> None:
    plain = cls.__init__ is object.__init__  # whose signature takes anything
    try:
        signature = inspect.Signature() if plain else inspect.signature(cls.__init__)
    except (TypeError, ValueError):
        return
    names = list(signature.parameters)[1:]
    try:
        signature.bind(*(() if plain else (None,)), **op.params)
    except TypeError as error:
        unknown = next((name for name in op.params if name not in names), None)
        raise WorkflowError(
            f"Operator '{op.name}': expected `params` that fit {cls.__name__}({', '.join(names)}), "
            f"got {{{_listed(op.params)}}}: {error}.",
            hint=did_you_mean(unknown, names) if unknown else None,
            operator=op.name,
        ) from None


def _listed(params: Mapping[str, Any]) -> str:
    return shortened(", ".join(f"{k}={v!r}" for k, v in params.items()), 200)


def _error_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _place(error: BaseException, module: types.ModuleType) -> str:
    """The innermost line of the operator's code on the way to the error."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == module.__file__]
    if not frames:
        return "."
    return f"\n  line {frames[-1].lineno}: {(frames[-1].line or '').strip()}"


def _syntax_text(name: str, code: str, error: SyntaxError) -> str:
    lines = code.splitlines()
    text = f"Operator '{name}': its code is not valid Python: {error.msg}"
    if error.lineno is None or not 1 <= error.lineno <= len(lines):
        return text + "."
    return (
        f"{text}, line {error.lineno}:{with_caret(lines[error.lineno - 1], max((error.offset or 1) - 1, 0))}"
    )


# --- to code --------------------------------------------------------------------------------------------------------


def with_source(op: Op, live: Any) -> Op:
    """The operator with the code of its live instance or function as text; raises what `source_of` raises."""
    if isinstance(op, ops.Python) and live is not None:
        return msgspec.structs.replace(op, **source_of(live))
    if isinstance(op, ops.Batches) and live is not None:
        return msgspec.structs.replace(op, **function_source(live))
    return op


def source_of(operator: Operator) -> dict[str, Any]:
    """The fields `code`, `class_name` and `params` for a live operator; the code is self-contained.

    Raises WorkflowError when its source cannot be found (typed into a plain Python prompt), when it needs something
    that has no textual form, or when a parameter is not plain data.
    """
    cls = type(operator)
    return {"code": _code_of(cls), "class_name": cls.__name__, "params": _params(operator)}


def function_source(function: Callable[..., Any]) -> dict[str, Any]:
    """The fields `code` and `function` for a plain function. Raises WorkflowError for lambdas and other callables."""
    if not isinstance(function, types.FunctionType):
        raise WorkflowError(
            f"Expected a function written with def, got {function!r}.",
            hint="Wrap it: def rows(batches): yield from your_callable(batches).",
        )
    if function.__name__ == "<lambda>":
        raise WorkflowError(
            "A lambda has no source of its own to write down.", hint="Write it as a function with def."
        )
    return {"code": _code_of(function), "function": function.__name__}


def _code_of(target: type | types.FunctionType) -> str:
    """The code that a class or function was made from, or what it needs of its module put together."""
    if (mark := vars(target).get("__source__")) is not None:
        return str(mark[1])
    try:
        return collect(target)
    except Unrecoverable as error:
        raise WorkflowError(
            f"The source of {target.__name__} cannot be written down: {error}.",
            hint=error.hint
            or "Define it at the top of a .py file or notebook cell, with what it needs beside it.",
        ) from error.__cause__


def _params(operator: Operator) -> dict[str, Any]:
    cls = type(operator)
    args, kwargs = operator._sv_params
    if not args and not kwargs:
        return {}
    hint = "Make the constructor take numbers, texts, lists and mappings by name, and build the rest in __init__."
    signature = inspect.signature(cls.__init__)
    params: dict[str, Any] = {}
    for name, value in list(signature.bind(operator, *args, **kwargs).arguments.items())[1:]:
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            params.update(value)
        elif kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise WorkflowError(
                f"{cls.__name__} takes '{name}' by position only; a document has names.", hint=hint
            )
        else:
            params[name] = value
    return {n: _json_able(value, f"{cls.__name__}: parameter '{n}'", hint) for n, value in params.items()}


def _json_able(value: Any, what: str, hint: str) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json_able(v, what, hint) for v in value]
    if isinstance(value, dict) and all(type(k) is str for k in value):
        return {k: _json_able(v, what, hint) for k, v in value.items()}
    raise WorkflowError(f"{what} is not plain data: a document cannot hold {shown(value, 80)}.", hint=hint)
