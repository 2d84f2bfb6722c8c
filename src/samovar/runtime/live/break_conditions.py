"""Breakpoints by a condition on a Python operator, checked before any worker gets them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any

from samovar.control import messages as m
from samovar.errors import RunError, nearest
from samovar.graph.operator import Operator
from samovar.graph.state import declared

__all__ = ["breakpoint_on"]

ARGUMENTS = ("row", "port")
"""The arguments of `process`, which a condition may use beside columns and states."""


def breakpoint_on(
    name: str, operator: str, condition: str, columns: Mapping[str, Any], instance: Operator
) -> m.Breakpoint:
    """A breakpoint by a condition on a Python operator. Raises RunError for a condition that could never be evaluated:
    one that is no Python expression, or has unknown names."""
    try:
        tree = ast.parse(condition.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise RunError(
            f"Expected a Python expression, got {condition!r}: {getattr(error, 'msg', error)}.",
            operator=operator,
            hint="Write it over columns and states: \"amount > 1000 and customer == 'Bob'\".",
        ) from None
    states = {*declared(type(instance)), *(n for n in vars(instance) if not n.startswith("_sv_"))}
    known = {*states, *columns, *ARGUMENTS}
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {a.arg for n in ast.walk(tree) if isinstance(n, ast.Lambda) for a in n.args.args}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - bound
    for unknown in sorted(n for n in used - known if not hasattr(builtins, n)):
        close = nearest(unknown, known)
        raise RunError(
            f"Expected columns or states of '{operator}', got '{unknown}'.",
            operator=operator,
            hint=f"Did you mean '{close}'?" if close else f"Known: {', '.join(sorted(known))}.",
        )
    return m.Breakpoint(name, operator, condition.strip(), late=bool(used & states))
