"""A workflow as a Python program that builds it.

Guarantee: running the program gives equal operators. Each line is tried on a workflow of its own, without Spark and
without code of the user's; where no method of a Frame gives the operator, it is added as data. Python operators stand
in the program as they were written; where two define the same name, the later one wins, so rename one of them.
"""

from __future__ import annotations

import builtins
import datetime
import keyword
import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from msgspec import NODEFAULT
from msgspec.structs import fields

from samovar.errors import SamovarError
from samovar.graph import operators as ops
from samovar.graph.operator_names import unused
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Workflow, check_edges

__all__ = ["as_python"]

_TAKEN = {"flow", "sv", "ops", "datetime", "Decimal", *dir(builtins), *keyword.kwlist}


def as_python(name: str, all_ops: Mapping[str, Op]) -> str:
    """The program text for a workflow's operators. Columns of PySpark must have been turned into SQL text before."""
    order = check_edges(all_ops)
    names = _variables(order)
    code: list[str] = []
    lines: list[str] = []
    for op_name in order:
        op = all_ops[op_name]
        if isinstance(op, ops.Python | ops.Batches) and op.code.strip() and op.code.strip() not in code:
            code.append(op.code.strip())
        lines.append(_line(op, names, {n: all_ops[n] for n in order[: order.index(op_name)]}))
    body = "\n".join(lines)
    imports = ["import samovar as sv"]
    if "ops." in body:
        imports.append("from samovar.graph import operators as ops")
    standard = {"datetime.": "import datetime", "Decimal(": "from decimal import Decimal"}
    needed = [line for use, line in standard.items() if use in body]
    head = "\n".join([*needed, *([""] if needed else []), *imports])
    parts = [
        head,
        *code,
        f"flow = sv.Workflow({name!r})\n{body}",
        'if __name__ == "__main__":\n    flow.run()',
    ]
    return "\n\n\n".join(parts) + "\n"


def _variables(order: Iterable[str]) -> dict[str, str]:
    """A variable for each operator, as much like its name as Python allows."""
    variables: dict[str, str] = {}
    for name in order:
        base = re.sub(r"\W", "_", name, flags=re.ASCII)
        base = base if re.match(r"[A-Za-z_]", base) else f"op_{base}"
        variables[name] = unused(base, {*variables.values(), *_TAKEN})
    return variables


def _line(op: Op, names: Mapping[str, str], before: Mapping[str, Op]) -> str:
    text = _method(op, [_Code(names[up]) for up in op.inputs]) if op.enabled else None
    is_code = isinstance(op, ops.Python | ops.Batches)  # not tried: that would run code of the user's
    if text is None or not (is_code or _adds(text, op, names, before)):
        text = _call("flow.add", _Code(_call(f"ops.{type(op).__name__}", **_given(op))))
    return text if isinstance(op, ops.SINKS) else f"{names[op.name]} = {text}"


def _adds(text: str, op: Op, names: Mapping[str, str], before: Mapping[str, Op]) -> bool:
    """Whether a line, run after the others, adds just this operator."""
    flow = Workflow("tried")
    flow._ops.update(before)
    scope: dict[str, Any] = {names[n]: flow.frame(n) for n in before}
    try:
        eval(text, {"flow": flow, "datetime": datetime, "Decimal": Decimal, **scope})
    except (SamovarError, ValueError, TypeError, SyntaxError, NameError):
        return False
    return flow._ops.get(op.name) == op and len(flow._ops) == len(before) + 1


class _Code(str):
    """Text that stands in the program as it is: a variable, a class, a call."""

    def __repr__(self) -> str:
        return str(self)


def _call(function: str, *args: Any, users: Mapping[str, Any] = MappingProxyType({}), **named: Any) -> str:
    """A call as text. A named argument that is None stays at its default; `users`: arguments with names of users."""
    options = {name: value for name, value in named.items() if value is not None}.items()
    texts = [*map(_literal, args), *(f"{name}={_literal(v)}" for name, v in [*options, *users.items()])]
    return f"{function}({', '.join(texts)})"


def _literal(value: Any) -> str:
    """A value as Python writes it; infinities and NaN, which have no literal, as calls."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _given(op: Op) -> dict[str, Any]:
    """The fields of an operator that are not at their defaults."""
    defaults = {
        f.name: f.default_factory() if f.default is NODEFAULT else f.default
        for f in fields(op)
        if not f.required
    }
    values = {f.name: getattr(op, f.name) for f in fields(op)}
    return {name: v for name, v in values.items() if name not in defaults or v != defaults[name]}


_METHODS: dict[type[Op], str] = {
    ops.Table: "flow.read.table table",
    ops.Values: "flow.values schema rows",
    ops.Generate: "flow.generate rows columns seed=",
    ops.Query: "flow.read.sql sql database= url= options**",
    ops.Select: "selectExpr *columns",
    ops.Filter: "filter condition",
    ops.WithColumns: "withColumns columns",
    ops.Rename: "withColumnsRenamed columns",
    ops.ToDF: "toDF *names",
    ops.Drop: "drop *columns",
    ops.DropNa: "dropna how= thresh= subset=",
    ops.FillNa: "fillna value subset=",
    ops.Alias: "alias alias",
    ops.Distinct: "distinct",
    ops.DropDuplicates: "dropDuplicates subset=",
    ops.Sort: "orderBy *keys",
    ops.Sample: "sample fraction seed=",
    ops.Search: "search columns terms how= require= case_sensitive= invert=",
    ops.Clean: "clean columns steps= as_type=",
    ops.Sentiment: "sentiment column into=",
    ops.Chart: "chart chart x= y= by= measure= bins= top= title=",
}
"""Methods whose arguments are fields of the operator: by position, spread (*field), by name (field=, field**)."""


def _method(op: Op, ups: list[_Code]) -> str | None:
    """The line with the methods people know; None where there is none. It need not be right: it is tried."""
    frame = ups[0] if ups else ""
    match op:
        case ops.Read(format=form, path=path) if form in ops.FILE_FORMATS and not op.schema and path:
            paths = path[0] if len(path) == 1 else list(path)
            return _call(f"flow.read.{form}", paths, name=op.name, users=op.options)
        case ops.Read():
            schema = _call(".schema", op.schema) if op.schema else ""
            reader = f"flow.read{_call('.format', op.format)}{schema}{_options(op.options)}"
            return _call(f"{reader}.load", *([list(op.path)] if op.path else []), name=op.name)
        case ops.Replace():
            return _call(f"{frame}.replace", dict(op.pairs), subset=op.subset and [*op.subset], name=op.name)
        case ops.Union(by_name=False):
            return _call(f"{frame}.union", ups[1], name=op.name)
        case ops.Union():
            filled = op.allow_missing or None
            return _call(f"{frame}.unionByName", ups[1], allowMissingColumns=filled, name=op.name)
        case ops.SetOperation():
            return _call(f"{frame}.{op.kind_of_set}", ups[1], name=op.name)
        case ops.Join():
            on = list(op.on) if op.on is not None else op.condition
            return _call(f"{frame}.join", ups[1], on=on, how=op.how, build=op.build, name=op.name)
        case ops.Aggregate():
            values = [] if op.pivot_values is None else [list(op.pivot_values)]
            pivot = _call(".pivot", op.pivot, *values) if op.pivot else ""
            return _call(
                f"{frame}{_call(f'.{op.grouping}', *op.keys)}{pivot}.agg", *op.aggregates, name=op.name
            )
        case ops.Limit():
            method, number = ("offset", op.offset) if op.n is None else ("limit", op.n)
            return _call(f"{frame}.{method}", number, name=op.name)
        case ops.Sample(replacement=True):
            return _call(f"{frame}.sample", True, op.fraction, op.seed, name=op.name)
        case ops.Batches():
            function = op.function or _only(r"^def (\w+)\(", op.code)
            method = f"{frame}.mapInArrow" if op.form == "arrow" else f"{frame}.mapInPandas"
            return _call(method, _Code(function), op.schema, name=op.name) if function else None
        case ops.Python():
            cls = op.class_name or _only(r"^class (\w+)\b", op.code)
            instance = _Code(_call(cls, users=op.params))
            options = {k: v for k, v in _given(op).items() if k in ("order", "key_partitions", "name")}
            return _call("flow.apply", instance, *ups, by=list(op.by) or None, **options) if cls else None
        case ops.Write():
            mode = _call(".mode", op.mode) if op.mode != "error" else ""
            by = _call(".partitionBy", *op.partition_by) if op.partition_by else ""
            return _call(f"{frame}.write{mode}{_options(op.options)}{by}.{op.format}", op.path, name=op.name)
        case ops.Sink() if not isinstance(op, ops.Chart):
            return _call(f"{frame}.sink", op.name)
    return _by_fields(op, frame) if type(op) in _METHODS else None


def _by_fields(op: Op, frame: str) -> str:
    """The call that `_METHODS` describes."""
    method, *arguments = _METHODS[type(op)].split()
    values = {f.name: getattr(op, f.name) for f in fields(op)}
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    args = [values[a] for a in arguments if a in values]
    spread = [v for a in arguments if a.startswith("*") for v in values[a[1:]]]
    options = {a[:-1]: values[a[:-1]] for a in arguments if a.endswith("=") and a[:-1] in _given(op)}
    more = {k: v for a in arguments if a.endswith("**") for k, v in values[a[:-2]].items()}
    prefix = "" if method.startswith("flow.") else f"{frame}."
    return _call(f"{prefix}{method}", *args, *spread, **options, name=op.name, users=more)


def _options(options: Mapping[str, str]) -> str:
    return f".options(**{options!r})" if options else ""


def _only(pattern: str, code: str) -> str:
    """What a pattern finds in the code, if it occurs once."""
    names = re.findall(pattern, code, re.MULTILINE)
    return str(names[0]) if len(names) == 1 else ""
