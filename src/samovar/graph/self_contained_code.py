"""The text of a class or function together with what it needs of its module, so that it can be run alone.

Names are found with `symtable`, so that a local variable is never taken for a global of the same name. Each needed
name is written, in this order of preference, as the import that bound it, as the source of the function or class of
the same module, as the literal value it has now, or as the module's one assignment to it.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import importlib.util
import inspect
import linecache
import math
import symtable
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

__all__ = ["Unrecoverable", "collect"]

_MODULE_NAMES = frozenset(
    {"__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__package__", "__loader__"}
)
_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, type(None))


class Unrecoverable(Exception):
    """A class or function, or something it needs, has no textual form."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def collect(target: type | types.FunctionType) -> str:
    """Code that defines `target` when run in an empty module. Raises Unrecoverable; runs nothing."""
    collection = _Collection(target)
    collection.add(target.__name__, target)
    future = ["from __future__ import annotations"] if collection.future else []
    head = "\n".join([*future, *sorted(collection.imports)])
    # neighbouring one-line assignments stay together
    runs = groupby(collection.blocks, key=lambda block: "\n" in block)
    body = "\n\n\n".join(("\n\n\n" if has_lines else "\n").join(run) for has_lines, run in runs)
    return f"{head}\n\n\n{body}\n" if head else f"{body}\n"


class _Collection:
    """What has been collected so far for one target; blocks come after the blocks they need."""

    def __init__(self, target: type | types.FunctionType) -> None:
        self.module_name = target.__module__
        self.globals: Mapping[str, Any] = _globals_of(target)
        self.tree = _module_tree(target, self.globals)
        self.future = self.globals.get("annotations") is __future__.annotations
        self.imports: set[str] = set()
        self.blocks: list[str] = []
        self._seen: set[str] = set()

    def add(self, name: str, value: Any) -> None:
        """Write down what `name` stands for, after what it needs itself."""
        if name in self._seen:
            return
        self._seen.add(name)
        if not self._is_own(value) and (imported := self._import(name, value)):
            self.imports.update(imported)
            return
        if self._is_own(value) and getattr(value, "__name__", "") != "<lambda>":
            source = _source(value)
            self._add_needs(source, value, name)
            self.blocks.append(source)
            if value.__name__ != name:
                self.blocks.append(f"{name} = {value.__name__}")
            return
        if (literal := _literal(value)) is not None:
            self.blocks.append(f"{name} = {literal}")
            return
        assignment = self._assignment(name)
        if assignment is None:
            raise Unrecoverable(
                f"it uses '{name}', a {type(value).__name__}, which has no textual form",
                f"Make '{name}' in __init__ or in process, or assign it once at the top of the module.",
            )
        self._add_needs(assignment, value, name)
        self.blocks.append(assignment)

    def _is_own(self, value: Any) -> bool:
        """Whether a function or class was written in the target's module."""
        inner = _unwrapped(value)
        return isinstance(inner, type | types.FunctionType) and inner.__module__ == self.module_name

    def _add_needs(self, source: str, value: Any, name: str) -> None:
        needed, hinted = _free_names(source)
        inner = _closed_over(value)
        if isinstance(value, type):
            inner = {b.__name__: b for b in value.__bases__} | inner
        for free in sorted(needed | hinted, key=source.find):
            if free == name or free in _MODULE_NAMES:
                continue
            if free in inner:
                self.add(free, inner[free])
            elif free in self.globals and free in needed:
                self.add(free, self.globals[free])
            elif free in self.globals:
                # only annotations mention it: useful, but not needed to run
                if not self._is_own(self.globals[free]):
                    self.imports.update(self._import(free, self.globals[free]))
            elif not hasattr(builtins, free) and free in needed:
                raise Unrecoverable(
                    f"it uses '{free}', which is not defined in its module",
                    f"Define '{free}' at the top of the module, before the workflow is written down.",
                )

    def _import(self, name: str, value: Any) -> list[str]:
        """Import statements that bind the name: as written in the module, else by the name and module of its value."""
        written = list(_imports_of(self.tree, name, str(self.globals.get("__package__") or "")))
        if written:
            return written
        if isinstance(value, types.ModuleType):
            return [f"import {name}" if value.__name__ == name else f"import {value.__name__} as {name}"]
        home = getattr(value, "__module__", None)
        own_name = getattr(value, "__qualname__", None)
        if not isinstance(home, str) or not isinstance(own_name, str) or home == self.module_name:
            return []
        if getattr(sys.modules.get(home), own_name, None) is not value:
            return []
        return [f"from {home} import {own_name}" + ("" if own_name == name else f" as {name}")]

    def _assignment(self, name: str) -> str | None:
        """The module's assignment to a name, if there is just one and it is at the top."""
        nodes = [node for node in (self.tree.body if self.tree else []) if name in _assigned(node)]
        return ast.unparse(nodes[0]) if len(nodes) == 1 and _assigned(nodes[0]) == {name} else None


def _unwrapped(value: Any) -> Any:
    """What decorators that keep `__wrapped__` were put around."""
    return inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value


def _globals_of(target: type | types.FunctionType) -> Mapping[str, Any]:
    if isinstance(target, types.FunctionType):
        return target.__globals__
    for function in _functions_of(target):
        return function.__globals__
    module = sys.modules.get(target.__module__)
    return vars(module) if module is not None else {}


def _functions_of(cls: type) -> Iterator[types.FunctionType]:
    """The functions written in a class body, wrapped ones and those of properties too."""
    for member in vars(cls).values():
        inside = (getattr(member, a, None) for a in ("__func__", "fget", "fset", "__wrapped__", "func"))
        for inner in (member, *inside):
            is_function = isinstance(inner, types.FunctionType)
            if is_function and inner.__qualname__.startswith(f"{cls.__qualname__}."):
                yield inner


def _closed_over(value: Any) -> dict[str, Any]:
    """The variables of enclosing functions that a function, or a class's methods, refer to."""
    inner = _unwrapped(value)
    functions = list(_functions_of(inner)) if isinstance(inner, type) else [inner]
    variables: dict[str, Any] = {}
    for function in functions:
        code = function.__code__ if isinstance(function, types.FunctionType) else None
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True) if code else ():
            with contextlib.suppress(ValueError):  # an empty cell: nothing is assigned to the variable yet
                variables[name] = cell.cell_contents
    variables.pop("__class__", None)
    return variables


def _source(value: Any) -> str:
    inner = _unwrapped(value)
    try:
        text = inspect.getsource(inner)
    except (OSError, TypeError, IndentationError):
        text = _class_in_cell(inner) if isinstance(inner, type) else ""
    text = textwrap.dedent(text).rstrip()
    if not text or _parsed(text) is None:
        raise Unrecoverable(f"the source of {inner.__qualname__} was not found")
    return text


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _class_in_cell(cls: type) -> str:
    """A class typed into a notebook: `inspect` looks for a file, but the cell's text is in `linecache`."""
    for function in _functions_of(cls):
        text = "".join(linecache.getlines(function.__code__.co_filename))
        line = function.__code__.co_firstlineno
        nodes = ast.walk(_parsed(text) or ast.Module([], []))
        for node in (n for n in nodes if isinstance(n, ast.ClassDef) and n.name == cls.__name__):
            if node.lineno <= line <= (node.end_lineno or 0):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return ""


def _module_tree(target: type | types.FunctionType, namespace: Mapping[str, Any]) -> ast.Module | None:
    functions = [target] if isinstance(target, types.FunctionType) else list(_functions_of(target))
    for name in (namespace.get("__file__"), *(f.__code__.co_filename for f in functions)):
        if isinstance(name, str):
            tree = _parsed("".join(linecache.getlines(name, dict(namespace))))
            if tree is not None and tree.body:
                return tree
    return None


def _free_names(source: str) -> tuple[set[str], set[str]]:
    """Names a piece of code takes from its surroundings: those needed to run, and all that annotations mention."""
    needed: set[str] = set()
    top = symtable.symtable(source, "<source>", "exec")
    stack = [top]
    while stack:
        table = stack.pop()
        stack.extend(table.get_children())
        for symbol in table.get_symbols():
            outer = table is top and not symbol.is_assigned() and not symbol.is_imported()
            if symbol.is_referenced() and (outer or (table is not top and symbol.is_global())):
                needed.add(symbol.get_name())
    needed -= {s.get_name() for s in top.get_symbols() if s.is_assigned()}
    hinted: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(note, ast.AST):
                hinted |= {n.id for n in ast.walk(note) if isinstance(n, ast.Name)}
    return needed, hinted


def _assigned(node: ast.stmt) -> set[str]:
    """The names that an assignment binds; none for other statements."""
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _imports_of(tree: ast.Module | None, name: str, package: str) -> Iterator[str]:
    stack: list[ast.AST] = list(tree.body) if tree else []
    while stack:
        node = stack.pop(0)
        if isinstance(node, ast.If | ast.Try | ast.With):
            stack.extend(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) == name:
                    yield ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module != "__future__":
                    yield ast.unparse(ast.ImportFrom(_absolute(node, package), [alias], 0))


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


def _literal(value: Any) -> str | None:
    """Python text that gives the value again, or None."""
    if type(value) not in _PLAIN:
        return None
    if type(value) is float and not math.isfinite(value):
        return f'float("{value}")'
    text = repr(value)
    try:
        same = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return text if same == value and type(same) is type(value) else None
