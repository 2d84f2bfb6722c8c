"""The published JSON Schema of workflow documents, made from the operators themselves.

`python -m samovar.graph.document` prints it; `docs/reference/workflow.schema.json` is that output, which a test
checks. Editors that know JSON Schema complete and check a document with it. It is as strict as `load` where a schema
can be; names, edges and cycles are checked by `load` alone.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from samovar.graph import operators as ops
from samovar.graph.operator_names import SCHEMA_PATTERN
from samovar.graph.operators.base import Op

__all__ = ["FIELDS", "KINDS", "VERSION", "field_description", "json_schema"]

VERSION = 1
"""The version of the document form, in its field `samovar`. `load` refuses newer versions."""

KINDS: dict[str, type[Op]] = {str(t.__struct_config__.tag): t for t in ops.ALL if t is not ops.FrameSource}
"""The operators a document may hold, by the word in `op`. A live DataFrame (`frame`) is not among them."""

FIELDS: dict[str, str] = {
    "name": "The operator's name, unique in the workflow.",
    "op": "The kind of operator.",
    "inputs": "The operators on its ports, in the order of the ports.",
    "input": "The operator on its only port; short for `inputs` with one item.",
    "enabled": "`false`: its consumers read its input instead; without one input, what it feeds is left out.",
    "options": "Options of the data source, as in PySpark.",
    "subset": "The columns to look at; all when left out.",
    "read.format": "parquet, csv, json, text, orc, or any other data source Spark knows.",
    "read.path": "Files, folders or patterns; relative to the document's folder.",
    "read.schema": "The schema in DDL form, instead of the one found in the files.",
    "table.table": "A table or view of Spark's catalog.",
    "values.schema": "The columns in DDL form: `id int, amount double`.",
    "values.rows": "The rows, as lists in the schema's order or as mappings.",
    "generate.rows": "How many rows.",
    "generate.columns": "Columns as SQL over `id`, `u` (even, 0 to 1), `z` (bell-shaped) and columns before.",
    "generate.seed": "Another seed gives other rows.",
    "query.sql": "The query: one SELECT.",
    "query.database": "A SQLite file; relative to the document's folder.",
    "query.url": "A JDBC address instead: `jdbc:postgresql://host/db`.",
    "search.columns": "The text columns to search.",
    "search.terms": "What to search for.",
    "search.how": "Anywhere in the text, as whole words or phrases, or as regular expressions.",
    "search.require": "Whether one of the terms is enough.",
    "search.case_sensitive": "Tell capital letters from small ones.",
    "search.invert": "Keep the other rows.",
    "clean.columns": "The text columns to tidy up.",
    "clean.steps": "What to do, in this order.",
    "clean.as_type": "A type for the result: `double`, `date`; what does not fit becomes null.",
    "sentiment.column": "The column with the text.",
    "sentiment.into": "The column that gets the number.",
    "split.weights": "The shares of the parts.",
    "split.part": "Which part to keep, from 0.",
    "split.seed": "The seed that Spark splits with; without one, rows are decided by their positions.",
    "train.model": "The kind of model.",
    "train.label": "The column to learn.",
    "train.features": "The columns to learn from.",
    "train.text": "One text column to learn from instead, by its words.",
    "train.params": "Parameters of scikit-learn's model, by name.",
    "predict.into": "The column that gets the prediction.",
    "predict.type": "The type of the prediction: that of the label.",
    "chart.chart": "The picture.",
    "chart.x": "The column along the bottom: groups, numbers, times, words.",
    "chart.y": "The column to measure; without it rows are counted.",
    "chart.by": "The column that makes series, or a heat map's rows.",
    "chart.measure": "What to compute of `y` for each `x`; `sum` when left out.",
    "chart.bins": "Ranges of a histogram.",
    "chart.top": "How many groups or words to show, the largest ones.",
    "chart.title": "A title; the operator's name when left out.",
    "select.columns": "SQL expressions: `amount * 2 AS twice`, `explode(tags) AS tag`.",
    "filter.condition": "A SQL condition: `amount > 100`.",
    "with_columns.columns": "New or replaced columns, each with its SQL expression.",
    "rename.columns": "Old names with their new names.",
    "to_df.names": "The new names of all columns, by position.",
    "drop.columns": "The columns to remove.",
    "drop_na.how": "`any`: rows with a null; `all`: rows of nothing but nulls.",
    "drop_na.thresh": "Keep rows with at least this many values; overrules `how`.",
    "fill_na.value": "A value for every fitting column, or values by column; `{$float: NaN}` stands for NaN.",
    "replace.pairs": "Pairs of an old and a new value; `{$float: NaN}` stands for NaN.",
    "alias.alias": "The name to qualify columns with.",
    "union.by_name": "Match columns by name instead of by position.",
    "union.allow_missing": "With `by_name`: fill columns that one input lacks with nulls.",
    "set_operation.kind": "Which operation; the names are those of PySpark's methods.",
    "join.on": "Columns that both inputs have and that must be equal.",
    "join.condition": "A SQL condition, instead of `on`; qualify columns with operator names or aliases.",
    "join.how": "The type of join.",
    "join.build": "The side that is read whole first; the smaller one when left out.",
    "aggregate.keys": "SQL expressions to group by; none: all rows are one group.",
    "aggregate.aggregates": "SQL aggregates: `sum(amount) AS total`.",
    "aggregate.grouping": "Plain groups, all subsets of the keys, or all prefixes of them.",
    "aggregate.pivot": "A column whose values become columns.",
    "aggregate.pivot_values": "The values to make columns of; found in the data when left out.",
    "sort.keys": "SQL sort keys: `amount DESC NULLS LAST`.",
    "limit.n": "How many rows; all when left out.",
    "limit.offset": "How many rows to skip first.",
    "sample.fraction": "The probability of each row, 0 to 1.",
    "sample.seed": "The seed that Spark draws with; without one, rows are decided by their positions.",
    "sample.start": "Without a seed: where the stretch of kept rows starts, 0 to 1.",
    "sample.replacement": "Whether a row can be drawn several times; needs a seed.",
    "python.code": "Python code that defines the class; `sv` is the samovar package.",
    "python.class": "The class, derived from `sv.Operator`; may be left out if there is just one.",
    "python.params": "Arguments for the constructor, by name.",
    "python.by": "SQL expressions: one instance for each key partition.",
    "python.order": "`canonical`: by position in the source; `arrival`: as tuples come, which is logged.",
    "python.key_partitions": "How many key partitions `by` makes; twice the cores when left out.",
    "batches.schema": "The rows the function gives, in DDL form.",
    "batches.form": "What the function gets: iterators of Arrow record batches or of pandas DataFrames.",
    "batches.code": "Python code that defines the function.",
    "batches.function": "The function's name; may be left out if there is just one.",
    "write.format": "parquet, csv, json, text or orc.",
    "write.path": "The folder to write; relative to the document's folder.",
    "write.mode": "What to do when the path exists.",
    "write.partition_by": "Folders by the values of these columns.",
}
"""What each field is for, by operator and field, or by field alone where several operators share it."""


def field_description(kind: str, key: str) -> str | None:
    """What a field of an operator is for."""
    return FIELDS.get(f"{kind}.{key}") or FIELDS.get(key)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of workflow documents."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Samovar workflow",
        "description": "A dataflow workflow that Samovar runs on Apache Spark.",
        "type": "object",
        "properties": {
            "samovar": {"description": "The version of the document form.", "const": VERSION},
            "name": {"description": "The workflow's name.", "type": "string", "pattern": SCHEMA_PATTERN},
            "operators": {
                "description": "The operators, in any order.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "op"],
                    "properties": {"op": {"enum": list(KINDS)}},
                    "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in KINDS],
                },
            },
        },
        "required": ["samovar", "name", "operators"],
        "additionalProperties": False,
        "$defs": {kind: _operator(kind, op_type) for kind, op_type in KINDS.items()},
    }


def _operator(kind: str, op_type: type[Op]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([op_type])
    generated = components[op_type.__name__]["properties"]
    fields = {f.encode_name: f for f in msgspec.structs.fields(op_type)}
    properties: dict[str, Any] = {
        "name": {"type": "string", "pattern": SCHEMA_PATTERN},
        "op": {"const": kind},
        **_ports(op_type),
        **{key: _loosened(key, generated[key]) for key in fields if key not in ("name", "inputs")},
    }
    for key, rule in properties.items():
        text = field_description(kind, key)
        properties[key] = ({"description": text} if text else {}) | rule
    described: dict[str, Any] = {
        "title": f"{kind}: {op_type.summary}",
        "description": inspect.cleandoc(op_type.__doc__ or ""),
        "type": "object",
        "properties": properties,
        "required": ["name", "op", *(key for key, f in fields.items() if f.required and key != "name")],
        "additionalProperties": False,
    }
    low, _ = op_type.ports
    if low == 1:
        described["oneOf"] = [{"required": ["inputs"]}, {"required": ["input"]}]
    elif low > 1:
        described["required"].append("inputs")
    return described


def _ports(op_type: type[Op]) -> dict[str, Any]:
    low, high = op_type.ports
    if high == 0:
        return {"inputs": {"type": "array", "maxItems": 0}}
    many: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "minItems": low}
    if high is not None:
        many["maxItems"] = high
    if low > 1:
        return {"inputs": many}
    return {"inputs": {"anyOf": [many, {"type": "string"}]}, "input": {"type": "string"}}


def _loosened(key: str, generated: dict[str, Any]) -> dict[str, Any]:
    """What `load` takes beyond the strict form: one text for a list of texts, rows as mappings, plain option values."""
    texts = {"type": "array", "items": {"type": "string"}}
    value = generated.get("default")
    value = list(value) if isinstance(value, tuple) else value
    default = {} if value in (None, [], {}, "") else {"default": value}
    if generated.get("items") == {"type": "string"}:
        return {"anyOf": [texts, {"type": "string"}]} | default
    if any(choice.get("items") == {"type": "string"} for choice in generated.get("anyOf", ())):
        return {"anyOf": [texts, {"type": "string"}, {"type": "null"}]}
    if key == "options":
        return {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    if key == "rows" and generated.get("type") == "array":
        return {"type": "array", "items": {"type": ["array", "object"]}}
    if key == "pairs":
        return {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}}
    if key == "value":
        scalars: list[dict[str, Any]] = [
            {"type": ["boolean", "number", "string"]},
            {"type": "object", "properties": {"$float": {"enum": ["NaN", "Infinity", "-Infinity"]}}}
            | {"required": ["$float"], "additionalProperties": False},
        ]
        return {"anyOf": [*scalars, {"type": "object", "additionalProperties": {"anyOf": scalars}}]}
    if key == "start":
        return {"type": "number", "minimum": 0, "maximum": 1} | default
    if key == "fraction":
        return {"type": "number", "minimum": 0, "maximum": 1}
    return {k: v for k, v in generated.items() if k != "default"} | default
