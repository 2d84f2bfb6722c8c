"""What can be said of a Python operator's code without running it: syntax, unknown names, what an operator needs.

Guarantee: it runs nothing, and complains only of what would fail. It misses most mistakes; trying the code finds those.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from dataclasses import dataclass

__all__ = ["Remark", "remarks"]

_KNOWN = {*dir(builtins), "sv", "samovar", "__name__", "__file__", "__doc__"}
_LETTERS = 200_000


@dataclass(frozen=True)
class Remark:
    """Something wrong, at a line and a column counted from 1."""

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
        return sorted([*_unknown(tree, table), *_missing(tree)], key=lambda r: (r.line, r.column))
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
    found: dict[str, ast.Name] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in unknown and isinstance(node.ctx, ast.Load):
            first = found.get(node.id)
            if first is None or (node.lineno, node.col_offset) < (first.lineno, first.col_offset):
                found[node.id] = node
    return [
        Remark(n.lineno, n.col_offset + 1, f"Nothing here defines or imports '{n.id}'.")
        for n in found.values()
    ]


def _missing(tree: ast.Module) -> list[Remark]:
    made = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or not any(_is_operator(b) for b in node.bases):
            continue
        names = {
            t.id for n in node.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
        }
        names |= {
            n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        }
        methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        if "output" not in names:
            made.append(
                Remark(
                    node.lineno,
                    1,
                    f'{node.name} says no `output`: write output = "customer string, amount double".',
                )
            )
        if not methods & {"process", "process_batch"} and len(node.bases) == 1:
            made.append(Remark(node.lineno, 1, f"{node.name} has no process(self, row, port=0)."))
    return made


def _is_operator(base: ast.expr) -> bool:
    return (
        isinstance(base, ast.Attribute)
        and base.attr == "Operator"
        and ast.unparse(base.value) in ("sv", "samovar")
    )
