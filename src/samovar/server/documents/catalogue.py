"""The operators as a palette shows them: group, one line of help, ports, and the JSON Schema of the fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from samovar.graph.operators import SINKS
from samovar.graph.schema import KINDS, json_schema

__all__ = ["catalogue"]

_GROUPS: dict[str, tuple[str, ...]] = {
    "Sources": ("read", "query", "generate", "values", "table"),
    "Columns": ("select", "with_columns", "rename", "to_df", "drop", "alias"),
    "Rows": ("filter", "distinct", "drop_duplicates", "sort", "limit", "sample", "split"),
    "Text": ("search", "sentiment"),
    "Cleaning": ("clean", "drop_na", "fill_na", "replace"),
    "Combining": ("join", "union", "set_operation", "aggregate"),
    "Models": ("train", "predict"),
    "Python": ("python", "batches"),
    "Results": ("sink", "write"),
    "Charts": ("chart",),
}
_OWN = ("name", "op", "inputs", "input", "enabled")

_STARTS: dict[str, dict[str, Any]] = {
    "read": {"format": "parquet", "path": []},
    "values": {"schema": "id int, amount double", "rows": [[1, 10.5], [2, 250.0]]},
    "query": {"sql": "SELECT * FROM sqlite_master"},
    "generate": {
        "rows": 1000,
        "columns": {
            "id": "id",
            "customer": "element_at(array('Ann', 'Bob', 'Cem', 'Dia'), 1 + int(u * 4))",
            "amount": "round(abs(60 + 40 * z), 2)",
            "day": "date_add(DATE'2026-01-01', int(u * 28))",
        },
    },
    "search": {"columns": [], "terms": []},
    "clean": {"columns": [], "steps": ["trim", "spaces"]},
    "split": {"weights": [0.8, 0.2]},
    "chart": {"chart": "bar"},
    "select": {"columns": ["*"]},
    "filter": {"condition": "true"},
    "with_columns": {"columns": {}},
    "rename": {"columns": {}},
    "limit": {"n": 10},
    "sample": {"fraction": 0.1},
    "aggregate": {"keys": [], "aggregates": ["count(*) AS count"]},
    "set_operation": {"kind": "intersect"},
    "write": {"format": "parquet"},
    "python": {
        "code": (
            "class Counter(sv.Operator):\n"
            '    output = "row string, seen bigint"\n'
            "    seen = sv.ValueState(0)\n\n"
            "    def process(self, row, port=0):\n"
            "        self.seen += 1\n"
            '        yield {"row": str(dict(row)), "seen": self.seen}\n'
        )
    },
    "batches": {
        "schema": "id int",
        "code": "def batches(given):\n    for batch in given:\n        yield batch.select(['id'])\n",
    },
}
"""The fields a new operator starts with."""

_CSV = {"header": "true", "inferSchema": "true", "sep": ",", "escape": '"', "multiLine": "true"}
"""As spreadsheets and pandas write it, not as Spark's defaults read it: quotes are doubled in quotes, where line breaks
may stand as well. The separator stands there to be changed."""

_PRESETS: dict[str, tuple[tuple[str, str, dict[str, Any]], ...]] = {
    "read": (
        (
            "csv files",
            "reads CSV, with a header",
            {"format": "csv", "options": _CSV},
        ),
        ("json files", "reads JSON, one object a line", {"format": "json"}),
        ("parquet files", "reads Parquet", {"format": "parquet"}),
        ("text files", "reads text, one row a line", {"format": "text"}),
    ),
    "search": (
        ("keyword search", "keeps rows whose text holds a word", {"how": "contains"}),
        ("dictionary search", "keeps rows with words of a list", {"how": "words"}),
        ("regular expression", "keeps rows whose text fits a pattern", {"how": "regex"}),
    ),
    "set_operation": (
        ("intersect", "keeps rows both inputs have", {"kind": "intersect"}),
        ("subtract", "keeps rows the other input lacks", {"kind": "subtract"}),
    ),
    "chart": (
        ("bar chart", "one bar for each value", {"chart": "bar"}),
        ("line chart", "a line, over time say", {"chart": "line"}),
        ("scatter plot", "one point for each row", {"chart": "scatter"}),
        ("histogram", "how numbers are spread", {"chart": "histogram"}),
        ("box plot", "medians and quartiles", {"chart": "box"}),
        ("heat map", "two columns against each other", {"chart": "heatmap"}),
        ("pie chart", "shares of a whole", {"chart": "pie"}),
        ("word cloud", "the words of a text", {"chart": "wordcloud"}),
        ("table", "the first rows", {"chart": "table"}),
    ),
}
"""For operators that do several things: title, one line of help, and what they start with, for each of them."""


@cache
def catalogue() -> list[dict[str, Any]]:
    """All operators of documents, in the order of a palette."""
    definitions = json_schema()["$defs"]
    groups = {kind: group for group, kinds in _GROUPS.items() for kind in kinds}
    order = [kind for kinds in _GROUPS.values() for kind in kinds]
    known = [k for k in order if k in KINDS] + [k for k in KINDS if k not in order]
    entries = []
    for kind in known:
        op_type, schema = KINDS[kind], definitions[kind]
        low, high = op_type.ports
        fields = {k: v for k, v in schema["properties"].items() if k not in _OWN}
        entries.append(
            {
                "op": kind,
                "group": groups.get(kind, "Others"),
                "summary": op_type.summary,
                "description": schema["description"],
                "ports": {"least": low, "most": high},
                "output": not issubclass(op_type, SINKS),
                "start": _STARTS.get(kind, {}),
                "presets": [
                    {"title": title, "summary": summary, "start": {**_STARTS.get(kind, {}), **start}}
                    for title, summary, start in _PRESETS.get(kind, ())
                ],
                "schema": {
                    "type": "object",
                    "properties": fields,
                    "required": [k for k in schema["required"] if k not in _OWN],
                    "additionalProperties": False,
                },
            }
        )
    return entries
