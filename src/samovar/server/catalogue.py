"""The operators as a palette shows them: group, one line of help, ports, and the JSON Schema of the fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from samovar.graph.schema import KINDS, json_schema

__all__ = ["catalogue"]

_GROUPS: dict[str, tuple[str, ...]] = {
    "Sources": ("read", "table", "values"),
    "Columns": ("select", "with_columns", "rename", "to_df", "drop", "alias"),
    "Rows": ("filter", "distinct", "drop_duplicates", "sort", "limit", "sample"),
    "Cleaning": ("drop_na", "fill_na", "replace"),
    "Combining": ("join", "union", "set_operation", "aggregate"),
    "Python": ("python", "batches"),
    "Results": ("sink", "write"),
}
_OWN = ("name", "op", "inputs", "input")

_STARTS: dict[str, dict[str, Any]] = {
    "read": {"format": "parquet", "path": []},
    "values": {"schema": "id int, amount double", "rows": [[1, 10.5], [2, 250.0]]},
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


@cache
def catalogue() -> list[dict[str, Any]]:
    """All operators of documents, in the order of a palette."""
    definitions = json_schema()["$defs"]
    groups = {kind: group for group, kinds in _GROUPS.items() for kind in kinds}
    order = [kind for kinds in _GROUPS.values() for kind in kinds]
    known = [k for k in order if k in KINDS] + [k for k in KINDS if k not in order]
    made = []
    for kind in known:
        op_type, schema = KINDS[kind], definitions[kind]
        low, high = op_type.ports
        fields = {k: v for k, v in schema["properties"].items() if k not in _OWN}
        made.append(
            {
                "op": kind,
                "group": groups.get(kind, "Others"),
                "summary": op_type.summary,
                "description": schema["description"],
                "ports": {"least": low, "most": high},
                "output": kind not in ("sink", "write"),
                "start": _STARTS.get(kind, {}),
                "schema": {
                    "type": "object",
                    "properties": fields,
                    "required": [k for k in schema["required"] if k not in _OWN],
                    "additionalProperties": False,
                },
            }
        )
    return made
