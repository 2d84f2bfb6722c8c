"""Spark's analysis errors about an operator as sentences: what was expected, what was found, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from samovar.errors import SchemaProblem, did_you_mean
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.text import with_caret

__all__ = ["explain_problem", "plain_text", "syntax_text"]


def explain_problem(
    spark: SparkSession, operator: str, error: PySparkException, inputs: list[DataFrame], op: Op | None = None
) -> SchemaProblem:
    """The error for Spark's analysis error: expected, got, and the nearest name or the input's types as a hint."""
    condition = str(error.getCondition() or "")
    parameters = error.getMessageParameters() or {}
    columns = [c for df in inputs for c in df.columns]
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_USING_COLUMN", "UNRESOLVED_MAP_KEY")):
        return _unknown_column(operator, condition, parameters, inputs, op)
    if condition.startswith("FIELD_NOT_FOUND"):
        wanted = parameters.get("fieldName", "").replace("`", "")
        fields = [f.strip(" `") for f in parameters.get("fields", "").split(",")]
        return _unknown(operator, "a field of that struct", fields, wanted)
    if condition.startswith("UNRESOLVED_ROUTINE"):
        wanted = parameters.get("routineName", "").replace("`", "").split(".")[-1]
        functions = [str(r[0]) for r in spark.sql("SHOW FUNCTIONS").collect() if str(r[0])[:1].isalpha()]
        return SchemaProblem(
            f"Expected a function Spark knows, got '{wanted}'.",
            operator=operator,
            hint=did_you_mean(wanted, functions, "`SHOW FUNCTIONS` in Spark SQL lists them all."),
        )
    if condition.startswith("PARSE_") or "\n== SQL ==\n" in str(error):
        example = "A condition is one SQL expression, such as \"amount > 100 AND country = 'DE'\"."
        hint = example if isinstance(op, ops.Filter) else None
        return SchemaProblem(syntax_text(str(error)), operator=operator, hint=hint)
    if condition.startswith("AMBIGUOUS"):
        wanted = parameters.get("name", "").replace("`", "") or "a column"
        names = " or ".join(f"{up}.{wanted}" for up in (op.inputs if op is not None else ()))
        return SchemaProblem(
            f"Expected one column named '{wanted}', got several ({_listed(columns)}).",
            operator=operator,
            hint=f"Say which: {names}; or rename one of them before."
            if isinstance(op, ops.Join)
            else "Rename or drop one of them before, for example with withColumnRenamed.",
        )
    return SchemaProblem(plain_text(error), operator=operator, hint=_types(op, inputs))


def _unknown_column(
    operator: str, condition: str, parameters: Mapping[str, str], inputs: list[DataFrame], op: Op | None
) -> SchemaProblem:
    columns = [c for df in inputs for c in df.columns]
    wanted = next(
        (parameters[k] for k in ("objectName", "colName", "columnName", "name") if parameters.get(k)), ""
    )
    wanted = wanted.replace("`", "")
    if not wanted and isinstance(op, ops.DropDuplicates) and op.subset is not None:
        lower = {c.lower() for c in columns}
        wanted = next((c for c in op.subset if c.lower() not in lower), "")
    if condition.startswith("UNRESOLVED_USING_COLUMN"):
        side = str(parameters.get("side", "")).lower()
        df = inputs[0] if side == "left" else inputs[-1]
        up = (op.inputs[0] if side == "left" else op.inputs[-1]) if op is not None else side
        return _unknown(operator, f"a column of '{up}', its {side} side", df.columns, wanted)
    if isinstance(op, ops.Union) and op.by_name:
        for up, df in zip(op.inputs, inputs, strict=True):
            if wanted and wanted not in df.columns:
                otherwise = "Add it there, or use allowMissingColumns=True to fill with null."
                return SchemaProblem(
                    f"Expected the column '{wanted}' in every input; '{up}' has {_listed(df.columns)}.",
                    operator=operator,
                    hint=did_you_mean(wanted.split(".")[-1], df.columns, otherwise),
                )
    is_expression = re.search(r"[(+*/<>=]|\s(as|desc|asc)\b", wanted, re.I)
    if is_expression and isinstance(op, ops.Select | ops.Sort | ops.Aggregate):
        instead = "use selectExpr(...) for SQL text"
        if not isinstance(op, ops.Select):
            instead = "add the expression with withColumn before"
        return SchemaProblem(
            f"Expected the name of a column of its input ({_listed(columns)}), got the expression '{wanted}'.",
            operator=operator,
            hint=f"A plain string is a column's name, as in PySpark; {instead}.",
        )
    return _unknown(operator, "a column of its input", columns, wanted)


def _unknown(operator: str, what: str, known: list[str], wanted: str) -> SchemaProblem:
    return SchemaProblem(
        f"Expected {what} ({_listed(known)}), got '{wanted}'.",
        operator=operator,
        hint=did_you_mean(wanted.split(".")[-1], known),
    )


def syntax_text(text: str) -> str:
    """A syntax error with the text and a caret under the place."""
    problem = _cleaned(text.split("\n== SQL ==")[0])
    problem = re.sub(r"\s*\(line \d+, pos \d+\)", "", problem).rstrip(". ")
    at = re.search(r"\(line (\d+), pos (\d+)\)", text)
    body = text.split("\n== SQL ==\n")[1] if "\n== SQL ==\n" in text else ""
    lines = [line for line in body.splitlines() if not re.fullmatch(r"(-*\^\^\^)?", line.strip())]
    if at is None or not lines:
        return f"Expected an SQL expression, got: {problem}."
    line = lines[min(int(at.group(1)), len(lines)) - 1]
    return f"Expected an SQL expression, got: {problem}.{with_caret(line, int(at.group(2)))}"


def plain_text(error: PySparkException) -> str:
    """The message of an error of Spark's without its codes and plans."""
    return _cleaned(str(error).split("\n== ")[0].split(";\n")[0])[:1200]


def _cleaned(message: str) -> str:
    message = re.sub(r"\s*SQLSTATE: \w+", "", message.strip())
    message = re.sub(r"^\[[\w.]+\]\s*", "", message)
    message = re.sub(r";?\s*line \d+,? pos \d+;?\s*$", "", message)
    return re.sub(r"\.\.+$", ".", message.strip())


def _types(op: Op | None, inputs: list[DataFrame]) -> str | None:
    """The columns of the inputs with their types; for a union, where they differ."""
    if isinstance(op, ops.Union | ops.SetOperation) and len(inputs) == 2 and op is not None:
        one, two = inputs
        pairs = [
            f"{a.name} {a.dataType.simpleString()} / {b.name} {b.dataType.simpleString()}"
            for a, b in zip(one.schema.fields, two.schema.fields, strict=False)
            if a.dataType != b.dataType
        ]
        extra = [f.name for f in (one if len(one.columns) > len(two.columns) else two).schema.fields]
        extra = extra[min(len(one.columns), len(two.columns)) :]
        differ = f"They differ in {'; '.join(pairs[:6])}. " if pairs and not extra else ""
        more = f"Only one of them has {', '.join(extra[:8])}. " if extra else ""
        return (
            f"{differ}{more}Columns are matched by position: select and cast them alike, or use unionByName."
        )
    names = op.inputs if op is not None else ()
    shown = [
        f"{name}: {', '.join(f'{f.name} {f.dataType.simpleString()}' for f in df.schema.fields)[:400]}"
        for name, df in zip(names, inputs, strict=False)
    ]
    return "Its input is " + "; ".join(shown) + "." if shown else None


def _listed(names: list[str], limit: int = 20) -> str:
    shown = ", ".join(names[:limit])
    return shown + (", ..." if len(names) > limit else "")
