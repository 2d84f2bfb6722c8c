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
from dataclasses import dataclass
from typing import Any

from samovar.errors import WorkflowError, nearest
from samovar.graph import operators as ops
from samovar.graph.class_check import check_class
from samovar.graph.operator import Operator, remember_source
from samovar.graph.self_contained_code import Unrecoverable, collect

__all__ = [
    "FunctionSource",
    "PythonSource",
    "function_from_code",
    "function_source",
    "operator_from_code",
    "recall_source",
    "remember_source",
    "source_of",
]


@dataclass(frozen=True)
class PythonSource:
    """What makes a Python operator: run `code`, then call class `class_name` with `params`."""

    code: str
    class_name: str
    params: dict[str, Any]


@dataclass(frozen=True)
class FunctionSource:
    """What makes a function: run `code`, then take `function`."""

    code: str
    function: str


# --- from code ------------------------------------------------------------------------------------------------------


def operator_from_code(op: ops.Python) -> Operator:
    """A fresh instance of the operator that `op.code` defines. Runs the code; raises WorkflowError that names `op`."""
    module = _executed(op.name, op.code)
    cls = _chosen_class(op, module)
    cls.__source__ = _source_mark(module)  # type: ignore[attr-defined]
    if not cls.output.strip():
        raise WorkflowError(
            f"Operator '{op.name}': class {cls.__name__} has no `output`.",
            hint='Say what rows it gives: output = "customer string, amount double".',
            operator=op.name,
        )
    _check_params(op, cls)
    try:
        made = cls(**op.params)
    except Exception as error:
        raise WorkflowError(
            f"Operator '{op.name}': {cls.__name__}({_shown(op.params)}) raised {_error_line(error)}"
            f"{_place(error, module)}",
            hint="Look at `params` and at the class's __init__.",
            operator=op.name,
        ) from error
    check_class(made, op.name)
    return made


def function_from_code(op: ops.Batches) -> Callable[..., Any]:
    """The function that `op.code` defines. Runs the code; raises WorkflowError that names `op`."""
    module = _executed(op.name, op.code)
    own = {
        n: v
        for n, v in vars(module).items()
        if isinstance(v, types.FunctionType) and v.__module__ == module.__name__
    }
    name = op.function or (next(iter(own)) if len(own) == 1 else "")
    found = vars(module).get(name)
    if not callable(found):
        close = nearest(name, own)
        raise WorkflowError(
            f"Operator '{op.name}': expected its code to define the function '{name}', "
            f"got {_listed(own) or 'no function'}.",
            hint=f"Did you mean '{close}'?" if close else "Say which function in `function`.",
            operator=op.name,
        )
    if isinstance(found, types.FunctionType):
        found.__dict__["__source__"] = _source_mark(module)
    return found  # type: ignore[no-any-return]


def recall_source(thing: object) -> None:
    """Make the source lines of an operator or function made from code known in this process. Cheap; no error."""
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
    own = {
        n: v
        for n, v in vars(module).items()
        if isinstance(v, type) and issubclass(v, Operator) and v.__module__ == module.__name__
    }
    name = op.class_name or (next(iter(own)) if len(own) == 1 else "")
    found = vars(module).get(name)
    if isinstance(found, type) and issubclass(found, Operator):
        return found
    if found is not None:
        raise WorkflowError(
            f"Operator '{op.name}': expected '{name}' to be a class derived from sv.Operator, got {found!r}.",
            hint=f"Write class {name}(sv.Operator).",
            operator=op.name,
        )
    close = nearest(name, own)
    wanted = f"the class '{name}'" if name else "one class derived from sv.Operator"
    raise WorkflowError(
        f"Operator '{op.name}': expected its code to define {wanted}, got {_listed(own) or 'no operator class'}.",
        hint=f"Did you mean '{close}'?" if close else "Say which class in `class`.",
        operator=op.name,
    )


def _check_params(op: ops.Python, cls: type[Operator]) -> None:
    try:
        signature = inspect.signature(cls.__init__)
    except (TypeError, ValueError):
        return
    own = list(signature.parameters)[1:] if cls.__init__ is not object.__init__ else []
    try:
        if cls.__init__ is object.__init__:
            if op.params:
                raise TypeError(f"got an unexpected keyword argument '{next(iter(op.params))}'")
        else:
            signature.bind(None, **op.params)
    except TypeError as error:
        unknown = next((p for p in op.params if p not in own), None)
        close = nearest(unknown, own) if unknown else None
        raise WorkflowError(
            f"Operator '{op.name}': expected `params` that fit {cls.__name__}({', '.join(own)}), "
            f"got {{{_shown(op.params)}}}: {error}.",
            hint=f"Did you mean '{close}'?" if close else None,
            operator=op.name,
        ) from None


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(sorted(names))


def _shown(params: Mapping[str, Any]) -> str:
    text = ", ".join(f"{k}={v!r}" for k, v in params.items())
    return text if len(text) <= 200 else text[:197] + "..."


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
    line = lines[error.lineno - 1]
    caret = "\n" + " " * (4 + max(error.offset - 1, 0)) + "^" if error.offset else ""
    return f"{text}, line {error.lineno}:\n    {line.rstrip()}{caret}"


# --- to code --------------------------------------------------------------------------------------------------------


def source_of(operator: Operator) -> PythonSource:
    """Self-contained code for a live operator, and the parameters it was made with.

    Raises WorkflowError when its source cannot be found (typed into a plain Python prompt), when it needs something
    that has no textual form, or when a parameter is not plain data.
    """
    cls = type(operator)
    mark = vars(cls).get("__source__")
    code = mark[1] if mark is not None else _collected(cls)
    return PythonSource(code, cls.__name__, _params(operator))


def function_source(function: Callable[..., Any]) -> FunctionSource:
    """Self-contained code for a plain function. Raises WorkflowError for lambdas and other callables."""
    if not isinstance(function, types.FunctionType):
        raise WorkflowError(
            f"Expected a function written with def, got {function!r}.",
            hint="Wrap it: def rows(batches): yield from your_callable(batches).",
        )
    if function.__name__ == "<lambda>":
        raise WorkflowError(
            "A lambda has no source of its own to write down.", hint="Write it as a function with def."
        )
    mark = vars(function).get("__source__")
    return FunctionSource(mark[1] if mark is not None else _collected(function), function.__name__)


def _collected(target: type | types.FunctionType) -> str:
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
    found: dict[str, Any] = {}
    for name, value in list(signature.bind(operator, *args, **kwargs).arguments.items())[1:]:
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        elif kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise WorkflowError(
                f"{cls.__name__} takes '{name}' by position only; a document has names.", hint=hint
            )
        else:
            found[name] = value
    return {
        name: _json_able(value, f"{cls.__name__}: parameter '{name}'", hint) for name, value in found.items()
    }


def _json_able(value: Any, what: str, hint: str) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json_able(v, what, hint) for v in value]
    if isinstance(value, dict) and all(type(k) is str for k in value):
        return {k: _json_able(v, what, hint) for k, v in value.items()}
    shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."
    raise WorkflowError(f"{what} is not plain data: a document cannot hold {shown}.", hint=hint)
