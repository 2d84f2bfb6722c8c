"""The points of a chart, from the rows a `chart` operator kept. Uses no Spark, so that a picture can grow during a run.

Files are read one after the other, only the columns the picture uses; groups are added up file by file. The answer is
small: at most `top` groups a series, 2,000 points, 200 rows of a table.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from samovar.errors import RunError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.record.store import History, Recording

__all__ = ["chart_data", "drawn"]

POINTS = 2_000
"""Points of a series: about one for each pixel of a wide picture."""
ROWS = 200
"""Rows of a table that are shown."""
SERIES = 12
"""Series of a picture: people cannot tell more colours apart."""
_WORD = re.compile(r"[^\W\d_][\w']*")
_DULL_WORDS = """
    a about after all also am an and any are as at be been but by can did do does for from get got
    had has have he her him his how i i'm if in into is it it's its just me more my no not of on or
    our out s she so some t than that the their them then there they this to too up us was we were
    what when which who will with would you your
"""
_DULL = frozenset(_DULL_WORDS.split())


def chart_data(recording: Recording, history: History, graph: Graph, name: str) -> dict[str, Any]:
    """The picture of a `chart` operator, from the epochs committed so far, as plain data."""
    charts = [n for n, op in graph.ops.items() if isinstance(op, ops.Chart)]
    op = graph.ops.get(name)
    if not isinstance(op, ops.Chart):
        raise UnknownName(name, charts, what="a chart")
    files = [f for p in recording.parts("results", name, history.epochs) for f in sorted(p.glob("*.parquet"))]
    return drawn(op, files)


def drawn(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    """The picture of rows in Parquet files."""
    picture: dict[str, Any] = {
        "name": op.name,
        "chart": op.chart,
        "title": op.title or op.name,
        "x": op.x,
        "y": op.y if op.y else "rows",
        "by": op.by,
        "measure": _measure(op) if op.chart in _GROUPED else None,
        "rows": _rows_in(files),
        "left_out": 0,
    }
    files = [f for f in files if _rows_in([f])]
    return {**picture, "series": [], **(_DRAWN[op.chart](op, files) if files else {})}


def _rows_in(files: Sequence[Path]) -> int:
    return sum(pq.read_metadata(f).num_rows for f in files)


def _measure(op: ops.Chart) -> str:
    return op.measure or ("sum" if op.y else "count")


def _tables(op: ops.Chart, files: Sequence[Path]) -> Iterator[pa.Table]:
    columns = sorted(set(op.used.values()))
    for file in files:
        yield pq.read_table(file, columns=columns, coerce_int96_timestamp_unit="us")


def _numbers(op: ops.Chart, field: str, table: pa.Table) -> pa.ChunkedArray:
    """The column that a chart uses as `field`, which must hold numbers."""
    column = table[op.used[field]]
    kind = column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.float64())
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise RunError(
            f"Expected numbers in '{op.used[field]}' for a {op.chart} chart, got {kind}.",
            operator=op.name,
            hint=f"Choose a column of numbers as '{field}', or turn it into one before.",
        )
    return column.cast(pa.float64())


def _plain(value: Any) -> Any:
    """A value for JSON; None for a number that is not finite."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def _kind(values: Sequence[Any]) -> str:
    known = [v for v in values if v is not None]
    if known and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known):
        return "number"
    if known and all(isinstance(v, str) and re.match(r"\d{4}-\d\d-\d\d([T ]|\Z)", v) for v in known):
        return "time"
    return "text"


# --- groups -----------------------------------------------------------------------------------------------------------


def _grouped(op: ops.Chart, files: Sequence[Path]) -> list[tuple[tuple[Any, ...], float]]:
    """The measure of each group by its key, x and `by`; partial aggregates of each file are merged."""
    measure = _measure(op)
    keys = [op.used[field] for field in ("x", "by") if field in op.used]
    partials = []
    for table in _tables(op, files):
        columns = {f"k{i}": _flat(table[key]) for i, key in enumerate(keys)}
        if op.y is not None:
            columns["v"] = table[op.y] if measure == "count" else _numbers(op, "y", table)
        else:
            columns["v"] = pa.array([1] * table.num_rows)
        wanted = {"count": ["count"], "avg": ["sum", "count"]}.get(measure, [measure])
        groups = pa.table(columns).group_by(list(columns)[: len(keys)])
        partials.append(groups.aggregate([("v", w) for w in wanted]))
    whole = pa.concat_tables(partials, promote_options="permissive")
    merged = {"v_count": "sum", "v_sum": "sum", "v_min": "min", "v_max": "max"}
    again = [(c, merged[c]) for c in whole.column_names if c in merged]
    final = whole.group_by([c for c in whole.column_names if c not in merged]).aggregate(again)
    measures = []
    for row in final.to_pylist():
        key = tuple(_plain(row[f"k{i}"]) for i in range(len(keys)))
        if measure == "avg":
            value: Any = row["v_sum_sum"] / row["v_count_sum"] if row["v_count_sum"] else None
        else:
            value = row[f"v_{measure}_{merged[f'v_{measure}']}"]
        if _plain(value) is not None:
            measures.append((key, float(value)))
    return measures


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that can be grouped by: lists and other containers as text."""
    if pa.types.is_nested(column.type):
        return pa.chunked_array(
            [[str(v) if v is not None else None for v in column.to_pylist()]], pa.string()
        )
    return column


def _order(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool | int | float):
        return (0, value)
    return (2, "") if value is None else (1, str(value))


def _bars(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    groups = _grouped(op, files)
    totals: dict[Any, float] = {}
    for key, value in groups:
        totals[key[0]] = totals.get(key[0], 0.0) + abs(value)
    largest = sorted(totals, key=lambda x: (-totals[x], _order(x)))[: max(1, op.top)]
    kind = _kind(list(totals))
    shown = sorted(largest, key=_order) if kind != "text" and op.chart == "bar" else largest
    left_out = len(totals) - len(shown)
    return {"xs": shown, "kind": kind, "series": _series(groups, shown), "left_out": left_out}


def _series(groups: list[tuple[tuple[Any, ...], float]], xs: Sequence[Any]) -> list[dict[str, Any]]:
    by_name: dict[Any, dict[Any, float]] = {}
    for key, value in groups:
        by_name.setdefault(key[1] if len(key) > 1 else None, {})[key[0]] = value
    names = sorted(by_name, key=lambda n: (-sum(map(abs, by_name[n].values())), _order(n)))[:SERIES]
    return [
        {"name": n, "points": [[x, by_name[n][x]] for x in xs if x in by_name[n]]}
        for n in sorted(names, key=_order)
    ]


def _lines(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    groups = _grouped(op, files)
    xs = sorted({key[0] for key, _ in groups if key[0] is not None}, key=_order)
    count = min(len(xs), POINTS)
    shown = [xs[i * len(xs) // count] for i in range(count)]
    return {"xs": shown, "kind": _kind(xs), "series": _series(groups, shown), "left_out": len(xs) - count}


def _heat(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    groups = _grouped(op, files)
    axes = []
    for i in (0, 1):
        totals: Counter[Any] = Counter()
        for key, value in groups:
            totals[key[i]] += int(abs(value)) + 1
        axes.append(sorted((v for v, _ in totals.most_common(max(1, op.top))), key=_order))
    cells = [[k[0], k[1], v] for k, v in groups if k[0] in axes[0] and k[1] in axes[1]]
    return {"xs": axes[0], "ys": axes[1], "cells": cells, "left_out": len(groups) - len(cells)}


# --- values -----------------------------------------------------------------------------------------------------------


def _points(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    rows = _rows_in(files)
    every = max(1, math.ceil(rows / POINTS))
    series: dict[Any, list[list[Any]]] = {}
    at, kinds = 0, []
    for table in _tables(op, files):
        first = -at % every
        at += table.num_rows
        part = table.take(pa.array(range(first, table.num_rows, every), pa.int64()))
        ys = _numbers(op, "y", part).to_pylist()
        xs = [_plain(v) for v in part[op.used["x"]].to_pylist()]
        names = [_plain(v) for v in part[op.by].to_pylist()] if op.by else [None] * len(xs)
        kinds += xs
        for x, y, name in zip(xs, ys, names, strict=True):
            if x is not None and _plain(y) is not None:
                series.setdefault(name, []).append([x, y])
    shown = sorted(series, key=lambda n: (-len(series[n]), _order(n)))[:SERIES]
    return {
        "kind": _kind(kinds),
        "series": [{"name": n, "points": series[n]} for n in sorted(shown, key=_order)],
        "left_out": rows - sum(len(series[n]) for n in shown),
    }


def _histogram(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    low, high = math.inf, -math.inf
    for table in _tables(op, files):
        ends = pc.min_max(_finite(_numbers(op, "x", table)))
        if ends["min"].is_valid:
            low, high = min(low, ends["min"].as_py()), max(high, ends["max"].as_py())
    if low > high:
        return {}
    bins = max(1, min(200, op.bins))
    width = (high - low) / bins or 1.0
    counts = [0] * bins
    for table in _tables(op, files):
        values = _finite(_numbers(op, "x", table))
        places = pc.floor(pc.divide(pc.subtract(values, low), width)).cast(pa.int64())
        for counted in pc.value_counts(pc.min_element_wise(places, bins - 1)).to_pylist():
            counts[counted["values"]] += counted["counts"]
    points = [[low + i * width, low + (i + 1) * width, n] for i, n in enumerate(counts)]
    return {"series": [{"name": None, "points": points}]}


def _finite(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.filter(values, pc.fill_null(pc.is_finite(values), False))


def _boxes(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    groups: dict[Any, list[float]] = {}
    for table in _tables(op, files):
        values = _numbers(op, "y", table).to_pylist()
        names = [_plain(v) for v in table[op.x].to_pylist()] if op.x else [op.y] * len(values)
        for name, value in zip(names, values, strict=True):
            if _plain(value) is not None:
                groups.setdefault(name, []).append(value)
    shown = sorted(groups, key=lambda n: (-len(groups[n]), _order(n)))[: max(1, op.top)]
    points = []
    for name in sorted(shown, key=_order):
        quartiles = pc.quantile(pa.array(groups[name]), [0.0, 0.25, 0.5, 0.75, 1.0]).to_pylist()
        points.append([name, *quartiles])
    return {"series": [{"name": None, "points": points}], "left_out": len(groups) - len(shown)}


def _words(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    weights: Counter[str] = Counter()
    for table in _tables(op, files):
        texts = table[op.used["x"]].to_pylist()
        if op.y is not None:
            for word, weight in zip(texts, _numbers(op, "y", table).to_pylist(), strict=True):
                if word is not None and _plain(weight) is not None:
                    weights[str(word)] += weight
            continue
        for text in texts:
            if text is not None:
                weights.update(w for w in _WORD.findall(str(text).lower()) if w not in _DULL and len(w) > 1)
    largest = sorted(weights, key=lambda w: (-weights[w], w))[: max(1, op.top)]
    points = [[w, weights[w]] for w in largest]
    return {"series": [{"name": None, "points": points}], "left_out": len(weights) - len(points)}


def _rows(op: ops.Chart, files: Sequence[Path]) -> dict[str, Any]:
    names = list(op.used.values()) or pq.read_schema(files[0]).names
    rows: list[list[Any]] = []
    for file in files:
        table = pq.read_table(file, columns=names, coerce_int96_timestamp_unit="us")
        rows += [[_plain(row[n]) for n in names] for row in table.slice(0, ROWS - len(rows)).to_pylist()]
        if len(rows) >= ROWS:
            break
    return {"columns": names, "table": rows, "left_out": _rows_in(files) - len(rows)}


_GROUPED = ("bar", "pie", "line", "heatmap")
_DRAWN: dict[str, Callable[[ops.Chart, Sequence[Path]], dict[str, Any]]] = {
    "bar": _bars,
    "pie": _bars,
    "line": _lines,
    "heatmap": _heat,
    "scatter": _points,
    "histogram": _histogram,
    "box": _boxes,
    "wordcloud": _words,
    "table": _rows,
}
