"""The operators a workflow is made of, one module a family."""

from __future__ import annotations

from types import ModuleType

from samovar.graph.operators import model_operators, python, relational, shorthands, sinks, sources
from samovar.graph.operators.base import *
from samovar.graph.operators.model_operators import *
from samovar.graph.operators.python import *
from samovar.graph.operators.relational import *
from samovar.graph.operators.shorthands import *
from samovar.graph.operators.sinks import *
from samovar.graph.operators.sources import *


def _defined_in(module: ModuleType) -> list[type[Op]]:
    """The operators of a family in the order of its module."""
    names = vars(module).values()
    return [t for t in names if isinstance(t, type) and issubclass(t, Op) and t.__module__ == module.__name__]


_FAMILIES = (sources, relational, shorthands, model_operators, python, sinks)
ALL: tuple[type[Op], ...] = tuple(op_type for family in _FAMILIES for op_type in _defined_in(family))
"""All operators, in the order in which palettes and the document's schema list them."""
SOURCES = (Read, Table, Values, Generate, Query, FrameSource)
SINKS = (Sink, Write)
