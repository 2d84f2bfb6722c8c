"""Documents that several tests read: an operator of every kind, a small text, a single operator."""

from __future__ import annotations

import math
from typing import Any

import yaml

from samovar.graph import operators as ops
from samovar.graph.document import load
from samovar.graph.operators.base import Op

__all__ = ["EVERY", "SMALL", "V", "one"]

V = ops.Values(name="v", schema="a int", rows=((1,), (2,)))
W = ops.Values(name="w", schema="a int")
EVERY: list[Op] = [
    V,
    W,
    ops.Read(name="read", format="csv", path=("x/", "y z.csv"), schema="a int", options={"header": "true"}),
    ops.Table(name="table", table="db.t"),
    ops.Select(name="select", inputs=("v",), columns=("a", "a + 1 AS b", "explode(x): y")),
    ops.Filter(name="filter", inputs=("v",), condition="a > 1 AND b = 'it''s' -- # no comment"),
    ops.WithColumns(name="with", inputs=("v",), columns={"b": "a * 2", "on": "1", "yes": "2", "1": "3"}),
    ops.Rename(name="rename", inputs=("v",), columns={"a": "b"}),
    ops.ToDF(name="to_df", inputs=("v",), names=("x",)),
    ops.Drop(name="drop", inputs=("v",), columns=("a",)),
    ops.DropNa(name="drop_na", inputs=("v",), how="all", thresh=2, subset=("a",)),
    ops.FillNa(name="fill", inputs=("v",), value={"a": 1, "b": "x", "c": True, "d": 1.5}),
    ops.FillNa(name="fill_inf", inputs=("v",), value=math.inf, subset=("a",)),
    ops.Replace(name="replace", inputs=("v",), pairs=((1, None), ("on", "off"), (-math.inf, 0.5))),
    ops.Alias(name="alias", inputs=("v",), alias="t"),
    ops.Distinct(name="distinct", inputs=("v",)),
    ops.DropDuplicates(name="dd", inputs=("v",), subset=("a",)),
    ops.Union(name="union", inputs=("v", "w"), by_name=True, allow_missing=True),
    ops.SetOperation(name="set", inputs=("v", "w"), kind_of_set="exceptAll"),
    ops.Join(name="join", inputs=("v", "w"), on=("a",), how="left", build="right"),
    ops.Join(name="join2", inputs=("v", "w"), condition="v.a = w.a"),
    ops.Aggregate(
        name="agg",
        inputs=("v",),
        keys=("a",),
        aggregates=("count(*) AS n",),
        pivot="b",
        pivot_values=(1, "x"),
    ),
    ops.Sort(name="sort", inputs=("v",), keys=("a DESC",)),
    ops.Limit(name="limit", inputs=("v",), n=3, offset=1),
    ops.Sample(name="sample", inputs=("v",), fraction=0.25, seed=7, start=0.5),
    ops.Generate(name="generate", rows=10, columns={"id": "id", "x": "u * 2"}, seed=3),
    ops.Query(name="query", sql="SELECT 1", database="a b.db", options={"user": "ana"}),
    ops.Search(
        name="search",
        inputs=("v",),
        columns=("a", "b"),
        terms=("it's", "\\d+"),
        how="regex",
        require="all",
        case_sensitive=True,
        invert=True,
    ),
    ops.Clean(name="clean", inputs=("v",), columns=("a",), steps=("spaces", "lower"), as_type="date"),
    ops.Sentiment(name="sentiment", inputs=("v",), column="a", into="mood"),
    ops.Train(
        name="train",
        inputs=("v",),
        model="naive_bayes",
        label="b",
        text="a",
        features=("c",),
        params={"alpha": 1},
    ),
    ops.Predict(name="predict", inputs=("v", "w"), into="guess", type="string"),
    ops.Split(name="split", inputs=("v",), weights=(0.5, 0.25, 0.25), part=2, seed=9),
    ops.Python(
        name="python",
        inputs=("v", "w"),
        code="class A(sv.Operator):\n    output = 'a int'\n\n    x = '''\n  : # \n'''\n",
        class_name="A",
        params={"n": 5, "names": ["a", "on"], "deep": {"x": [1, {"y": None}]}},
        by=("a",),
        order="arrival",
        key_partitions=2,
    ),
    ops.Batches(
        name="batches", inputs=("v",), schema="a int", form="pandas", code="def f(i): yield", function="f"
    ),
]
EVERY += [ops.Sink(name=f"S_{op.name}", inputs=(op.name,)) for op in EVERY]
EVERY.append(
    ops.Chart(
        name="chart",
        inputs=("v",),
        chart="bar",
        x="a",
        y="b",
        by="c",
        measure="avg",
        bins=5,
        top=7,
        title="t",
    )
)
EVERY.append(
    ops.Write(
        name="write",
        inputs=("v",),
        format="csv",
        path="out/",
        mode="append",
        options={"sep": ";"},
        partition_by=("a",),
    )
)

SMALL = """\
samovar: 1
name: w
operators:
  - {name: r, op: read, format: csv, path: [data/, /abs/x, "s3://b/x", "file:/y"]}
  - {name: S, op: write, input: r, format: csv, path: out/}
"""


def one(kind: str, /, **fields: Any) -> Op:
    """A single operator `x` over sources `v` and `w`, through YAML."""
    document = {
        "samovar": 1,
        "name": "w",
        "operators": [
            {"name": "v", "op": "values", "schema": "a int"},
            {"name": "w", "op": "values", "schema": "a int"},
            {"name": "x", "op": kind, **fields},
        ],
    }
    return load(yaml.safe_dump(document, sort_keys=False))._ops["x"]
