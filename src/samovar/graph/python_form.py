"""A workflow as a Python program that builds it.

Guarantee: running the program gives equal operators. Each line is tried on a workflow of its own, without Spark and
without code of the user's; where the methods of a Frame cannot say what an operator is, the operator is added as data.
Python operators stand in the program as they were written; where two define the same name, the later one wins for
what both call by that name, so rename one of them.
"""

from __future__ import annotations

import builtins
import datetime
import keyword
import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from samovar.errors import SamovarError
from samovar.graph import operators as ops
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
    standard = [
        text
        for text, used in (("import datetime", "datetime."), ("from decimal import Decimal", "Decimal("))
        if used in body
    ]
    head = "\n".join([*standard, *([""] if standard else []), *imports])
    parts = [head, *code, f"flow = sv.Workflow({name!r})\n{body}", _LAST]
    return "\n\n\n".join(parts) + "\n"


_LAST = 'if __name__ == "__main__":\n    flow.run()'


def _variables(order: Iterable[str]) -> dict[str, str]:
    """A variable for each operator: its name, as far as it is one."""
    made: dict[str, str] = {}
    for name in order:
        base = re.sub(r"\W", "_", name, flags=re.ASCII)
        base = base if re.match(r"[A-Za-z_]", base) else f"op_{base}"
        chosen, number = base, 1
        while chosen in made.values() or chosen in _TAKEN:
            number += 1
            chosen = f"{base}_{number}"
        made[name] = chosen
    return made


def _line(op: Op, names: Mapping[str, str], before: Mapping[str, Op]) -> str:
    pretty = _pretty(op, names)
    if pretty is None or not (isinstance(op, ops.Python | ops.Batches) or _gives(pretty, op, names, before)):
        if isinstance(op, ops.Python | ops.Batches):
            return f"{names[op.name]} = flow.add({_struct(op)})"
        pretty = f"flow.add({_struct(op)})"
    return pretty if isinstance(op, ops.SINKS) else f"{names[op.name]} = {pretty}"


def _gives(text: str, op: Op, names: Mapping[str, str], before: Mapping[str, Op]) -> bool:
    """Whether a line, run after the others, adds just this operator."""
    flow = Workflow("tried")
    flow._ops.update(before)
    scope: dict[str, Any] = {names[n]: flow.frame(n) for n in before}
    try:
        eval(text, {"flow": flow, "datetime": datetime, "Decimal": Decimal, **scope})
    except (SamovarError, ValueError, TypeError, SyntaxError, NameError):
        return False
    return flow._ops.get(op.name) == op and len(flow._ops) == len(before) + 1


def _struct(op: Op) -> str:
    given = {
        f.name: getattr(op, f.name)
        for f in msgspec.structs.fields(op)
        if f.required or getattr(op, f.name) != _default(f)
    }
    return f"ops.{type(op).__name__}({', '.join(f'{k}={_shown(v)}' for k, v in given.items())})"


def _shown(value: Any) -> str:
    """A value as Python writes it; infinities and NaN, which have no literal, as calls."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(k)}: {_shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _arguments(*given: Any, **named: Any) -> str:
    plain = [_shown(g) for g in given]
    return ", ".join([*plain, *(f"{k}={_shown(v)}" for k, v in named.items() if v is not None)])


def _pretty(op: Op, names: Mapping[str, str]) -> str | None:
    """The line with the methods people know; None where there is none."""
    ups = [names[up] for up in op.inputs]
    first = ups[0] if ups else ""
    if not op.enabled:
        return None
    if isinstance(op, ops.SOURCES):
        return _source(op)
    if isinstance(op, ops.Python | ops.Batches):
        return _code(op, ups)
    for kind, write in _METHODS.items():
        if isinstance(op, kind):
            return write(op, first, ups)
    return None


def _source(op: Op) -> str | None:
    match op:
        case ops.Read(format=form, path=paths) if form in ops.FILE_FORMATS and not op.schema and paths:
            given = repr(paths[0]) if len(paths) == 1 else repr(list(paths))
            plain = all(k.isidentifier() for k in op.options)
            options = "".join(f", {k}={v!r}" for k, v in op.options.items()) if plain else ""
            return f"flow.read.{form}({given}, name={op.name!r}{options})"
        case ops.Read():
            schema = f".schema({op.schema!r})" if op.schema else ""
            options = f".options(**{op.options!r})" if op.options else ""
            paths_given = f"{list(op.path)!r}, " if op.path else ""
            return f"flow.read.format({op.format!r}){schema}{options}.load({paths_given}name={op.name!r})"
        case ops.Table():
            return f"flow.read.table({_arguments(op.table, name=op.name)})"
        case ops.Values():
            return f"flow.values({_arguments(op.schema, list(op.rows), name=op.name)})"
        case ops.Generate():
            return f"flow.generate({_arguments(op.rows, op.columns, seed=op.seed or None, name=op.name)})"
        case ops.Query():
            return f"flow.read.sql({_arguments(op.sql, op.database, url=op.url, name=op.name, **op.options)})"
    return None


def _code(op: ops.Python | ops.Batches, ups: list[str]) -> str | None:
    if isinstance(op, ops.Batches):
        found = op.function or _only(r"^def (\w+)\(", op.code)
        method = "mapInArrow" if op.form == "arrow" else "mapInPandas"
        return None if not found else f"{ups[0]}.{method}({found}, {op.schema!r}, name={op.name!r})"
    found = op.class_name or _only(r"^class (\w+)\b", op.code)
    if not found:
        return None
    params = ", ".join(f"{k}={v!r}" for k, v in op.params.items())
    options = {
        "by": list(op.by) or None,
        "order": op.order if op.order != "canonical" else None,
        "key_partitions": op.key_partitions,
        "name": op.name,
    }
    return f"flow.apply({found}({params}), {', '.join(ups)}, {_arguments(**options)})"


def _only(pattern: str, code: str) -> str | None:
    found = re.findall(pattern, code, re.MULTILINE)
    return str(found[0]) if len(found) == 1 else None


def _union(op: Any, first: str, ups: list[str]) -> str | None:
    if len(ups) != 2:
        return None
    if not op.by_name:
        return f"{first}.union({ups[1]}, name={op.name!r})"
    missing = ", allowMissingColumns=True" if op.allow_missing else ""
    return f"{first}.unionByName({ups[1]}{missing}, name={op.name!r})"


def _join(op: Any, first: str, ups: list[str]) -> str:
    on = list(op.on) if op.on is not None else op.condition
    given = f", {on!r}" if on is not None else ""
    return f"{first}.join({ups[1]}{given}, {_arguments(how=op.how, build=op.build, name=op.name)})"


def _aggregate(op: Any, first: str, _: list[str]) -> str:
    values = f", {list(op.pivot_values)!r}" if op.pivot_values is not None else ""
    pivot = f".pivot({op.pivot!r}{values})" if op.pivot else ""
    return f"{first}.{op.grouping}({_arguments(*op.keys)}){pivot}.agg({_arguments(*op.aggregates, name=op.name)})"


def _write(op: Any, first: str, _: list[str]) -> str:
    mode = f".mode({op.mode!r})" if op.mode != "error" else ""
    options = f".options(**{op.options!r})" if op.options else ""
    by = f".partitionBy({_arguments(*op.partition_by)})" if op.partition_by else ""
    return f"{first}.write{mode}{options}{by}.{op.format}({op.path!r}, name={op.name!r})"


def _method(text: Callable[[Any], str]) -> Callable[[Any, str, list[str]], str | None]:
    return lambda op, first, ups: f"{first}.{text(op)}"


def _named(method: str, *fields: str) -> Callable[[Any, str, list[str]], str | None]:
    """A method whose arguments are fields of the operator, by the same names; what is at its default is left out."""

    def write(op: Any, first: str, _: list[str]) -> str:
        defaults = {f.name: f for f in msgspec.structs.fields(op)}
        given: dict[str, Any] = {}
        for field in fields:
            value = getattr(op, field)
            if defaults[field].required or value != _default(defaults[field]):
                given[field] = list(value) if isinstance(value, tuple) else value
        return f"{first}.{method}({_arguments(**given, name=op.name)})"

    return write


def _sample(op: ops.Sample, first: str, ups: list[str]) -> str | None:
    if op.start:
        return None  # a stretch of a split; no method makes it
    given = [True, op.fraction, op.seed] if op.replacement else [op.fraction, op.seed]
    if op.seed is None:
        given.pop()
    return f"{first}.sample({_arguments(*given, name=op.name)})"


_METHODS: dict[type[Op], Callable[[Any, str, list[str]], str | None]] = {
    ops.Select: _method(lambda op: f"selectExpr({_arguments(*op.columns, name=op.name)})"),
    ops.Filter: _method(lambda op: f"filter({_arguments(op.condition, name=op.name)})"),
    ops.WithColumns: _method(lambda op: f"withColumns({_arguments(op.columns, name=op.name)})"),
    ops.Rename: _method(lambda op: f"withColumnsRenamed({_arguments(op.columns, name=op.name)})"),
    ops.ToDF: _method(lambda op: f"toDF({_arguments(*op.names, name=op.name)})"),
    ops.Drop: _method(lambda op: f"drop({_arguments(*op.columns, name=op.name)})"),
    ops.DropNa: _named("dropna", "how", "thresh", "subset"),
    ops.FillNa: _named("fillna", "value", "subset"),
    ops.Replace: _method(
        lambda op: (
            f"replace({_arguments(dict(op.pairs), subset=op.subset and list(op.subset), name=op.name)})"
        )
    ),
    ops.Alias: _method(lambda op: f"alias({_arguments(op.alias, name=op.name)})"),
    ops.Distinct: _method(lambda op: f"distinct({_arguments(name=op.name)})"),
    ops.DropDuplicates: _named("dropDuplicates", "subset"),
    ops.Union: _union,
    ops.SetOperation: lambda op, first, ups: f"{first}.{op.kind_of_set}({ups[1]}, name={op.name!r})",
    ops.Join: _join,
    ops.Aggregate: _aggregate,
    ops.Sort: _method(lambda op: f"orderBy({_arguments(*op.keys, name=op.name)})"),
    ops.Limit: _method(
        lambda op: (
            f"limit({_arguments(op.n, name=op.name)})"
            if op.n is not None
            else f"offset({_arguments(op.offset, name=op.name)})"
        )
    ),
    ops.Sample: _sample,
    ops.Search: _named("search", "columns", "terms", "how", "require", "case_sensitive", "invert"),
    ops.Clean: _named("clean", "columns", "steps", "as_type"),
    ops.Sentiment: _named("sentiment", "column", "into"),
    ops.Chart: _named("chart", "chart", "x", "y", "by", "measure", "bins", "top", "title"),
    ops.Write: _write,
    ops.Sink: _method(lambda op: f"sink({op.name!r})"),
}
"""How each operator is written; looked through in this order, so a chart comes before the sink it is."""
