"""Mistakes in a Python operator's code that can be found without running it: syntax, unknown names, missing parts.

Guarantee: it runs nothing, and remarks only on what would fail or is certainly a mistake. It misses most mistakes;
trying the code finds those.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

from samovar.graph.class_check import gives_nothing, lost_row, mutated

__all__ = ["Remark", "remarks"]

_KNOWN = {*dir(builtins), "sv", "samovar", "__name__", "__file__", "__doc__"}
_LETTERS = 200_000
"""Longer code is not checked: the check runs while a person types and must be quick."""


@dataclass(frozen=True)
class Remark:
    """A mistake, at a line and a column counted from 1."""

    line: int
    column: int
    message: str


def remarks(code: str) -> list[Remark]:
    """What is wrong with the code of a Python operator, in the order of its lines."""
    if len(code) > _LETTERS:
        return [Remark(1, 1, f"Expected code of at most {_LETTERS} letters, got {len(code)}.")]
    try:
        tree = ast.parse(code)
        table = symtable.symtable(code, "<operator>", "exec")
    except SyntaxError as error:
        return [Remark(error.lineno or 1, error.offset or 1, f"{error.msg}.")]
    except (ValueError, RecursionError, MemoryError) as error:
        return [Remark(1, 1, f"The code cannot be read: {error}.")]
    try:
        mistakes = [*_unknown(tree, table), *_missing(tree), *_certain_mistakes(tree, code)]
        return sorted(mistakes, key=lambda r: (r.line, r.column))
    except RecursionError:
        return []


def _unknown(tree: ast.Module, table: symtable.SymbolTable) -> list[Remark]:
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree)):
        return []
    defined = {
        s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()
    }
    wanted = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    waiting = list(table.get_children())
    while waiting:
        inner = waiting.pop()
        for symbol in inner.get_symbols():
            if symbol.is_declared_global() and symbol.is_assigned():
                defined.add(symbol.get_name())
            if symbol.is_global() and symbol.is_referenced():
                wanted.add(symbol.get_name())
        waiting += inner.get_children()
    unknown = wanted - defined - _KNOWN
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    names.sort(key=lambda name: (name.lineno, name.col_offset), reverse=True)
    first = {name.id: name for name in names if name.id in unknown}
    return [
        Remark(n.lineno, n.col_offset + 1, f"Nothing here defines or imports '{n.id}'.")
        for n in first.values()
    ]


def _operators(tree: ast.Module) -> list[ast.ClassDef]:
    """The classes that derive from `sv.Operator` directly."""
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    names = {"sv.Operator", "samovar.Operator"}
    return [cls for cls in classes if any(ast.unparse(base) in names for base in cls.bases)]


def _assigned(node: ast.ClassDef) -> dict[str, ast.expr | None]:
    """The names that a class body sets, and to what."""
    names: dict[str, ast.expr | None] = {}
    for inner in node.body:
        targets = inner.targets if isinstance(inner, ast.Assign) else [getattr(inner, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(inner, ast.Assign | ast.AnnAssign):
                names[target.id] = inner.value
    return names


def _certain_mistakes(tree: ast.Module, code: str) -> Iterator[Remark]:
    """What `check_class` refuses or warns of, as far as it can be seen in the text: bases may be defined elsewhere."""
    classes = {c.co_name: c for c in _inner(compile(code, "<operator>", "exec", dont_inherit=True))}
    for node in _operators(tree):
        methods = {c.co_name: c for c in _inner(classes[node.name])} if node.name in classes else {}
        ends = "finish" in methods or len(node.bases) > 1
        for name in methods.keys() & {"process", "process_batch", "finish"}:
            if (lost := lost_row(methods[name])) is not None:
                yield Remark(lost[0], 1, f"{name}() {lost[1]}: write `yield`.")
            elif not ends and gives_nothing(methods[name]):
                text = f"{node.name} gives no rows: yield them, or end {name}() with `return ()`."
                yield Remark(methods[name].co_firstlineno, 1, text)
        values = _assigned(node)
        states = [n for n, value in values.items() if _is_state(value)]
        stateless = values.get("stateless")
        if states and isinstance(stateless, ast.Constant) and stateless.value is True:
            text = f"{node.name} is stateless and declares state ({', '.join(states)}): nothing keeps it."
            yield Remark(node.lineno, 1, text)
        for name in mutated(node):
            value = values.get(name)
            if isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
                text = f"{name} is shared by all instances: declare it as state, or set it in __init__."
                yield Remark(value.lineno, value.col_offset + 1, text)


def _inner(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _is_state(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return name in ("ValueState", "MapState", "ListState")


def _missing(tree: ast.Module) -> Iterator[Remark]:
    for node in _operators(tree):
        methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        if "output" not in _assigned(node):
            text = f'{node.name} has no `output`: write output = "customer string, amount double".'
            yield Remark(node.lineno, 1, text)
        if not methods & {"process", "process_batch"} and len(node.bases) == 1:
            yield Remark(node.lineno, 1, f"{node.name} has no process(self, row, port=0).")
