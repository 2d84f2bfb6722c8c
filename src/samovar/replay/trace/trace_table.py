"""A window as one table, fetched by a single job: rows of its native operators, records of its Python operators.

A row of the table has the number of its operator (`op`), its position (`at`) and its columns in a column of that
operator's; a record has the number of its chain, counted down from -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType, VariantType

from samovar.compile.kept_types import has_variant, shown_types
from samovar.compile.native import at_or_behind, hidden, visible
from samovar.compile.plan import Plan
from samovar.graph import operators as ops
from samovar.positions import Position, padded_columns
from samovar.replay.trace.model import Edges, Tuple
from samovar.replay.trace.past_epoch import PastWindow
from samovar.replay.trace.segments import leaves_of, only_native
from samovar.replay.trace.traced_chain import TRACE, read_records
from samovar.replay.trace.traced_window import TracedWindow

__all__ = ["arrivals_of", "read_native", "read_python", "reports", "window_parts"]


def window_parts(
    edges: Edges, epoch: PastWindow, near: PastWindow
) -> tuple[list[DataFrame], list[tuple[str, list[str]]]]:
    """A frame for the rows of each operator that gives some in a window, and one for the records of each chain.

    Also the operators in the order of their frames, with their columns. `near`: the window for operators that need
    nothing of what was before it.
    """
    plan, level, window = epoch.plan, epoch.segment.level, epoch.window
    wanted = [
        n
        for n in edges.inputs
        if not plan.placement.is_sink(n)
        and not (plan.placement.ends(n) and n not in leaves_of(plan, level))
        and (edges.consumers(n) or n in plan.placement.stashed)
    ]
    fused = {n for chain in plan.chains.values() for n in chain}
    for tail in plan.chains:
        if edges.inputs.get(tail):
            epoch.frames.stream(tail, level)
    wide = max((plan.width[n] for n in wanted), default=0)
    parts: list[DataFrame] = []
    names: list[tuple[str, list[str]]] = []
    for name in wanted:
        stored = not edges.inputs[name]
        if name in fused and not stored and not isinstance(plan.graph.ops[name], ops.Batches):
            continue
        alone = only_native(plan, level, name)
        df = (near if alone else epoch).frames.stream(name, level)
        if window.low is not None and epoch.marks.prefix and not alone:
            df = df.filter(at_or_behind(df, window.low))
        own, shown = hidden(df), visible(df)
        plain = df.toDF(*(c if c in own else f"c{i}" for i, c in enumerate(df.columns)))
        fields = [f for f in plain.schema.fields if f.name not in own]
        places = padded_columns(own, wide)
        row = _row_of(fields)
        parts.append(
            plain.select(
                F.expr(f"{len(names)} AS op"),
                F.expr(f"array({', '.join(places)}) AS at"),
                row.alias(f"v{len(names)}"),
            )
        )
        names.append((name, shown))
    return [*parts, *reports(epoch)], names


def reports(epoch: PastWindow) -> list[DataFrame]:
    """The records that the workers of each chain of Python operators wrote."""
    return [
        chain.filter(F.col(TRACE).isNotNull()).select(F.lit(-1 - i).alias("op"), F.col(TRACE))
        for i, chain in enumerate(epoch.traced.values())
    ]


def read_native(plan: Plan, table: pa.Table, names: list[tuple[str, list[str]]]) -> dict[str, list[Tuple]]:
    """The tuples that native operators gave."""
    given: dict[str, list[Tuple]] = {}
    kinds = table.column("op").to_pylist()
    for i, (name, shown) in enumerate(names):
        chosen = table.filter(pa.array([k == i for k in kinds], pa.bool_()))
        width = plan.width[name]
        places = chosen.column("at").to_pylist()
        values = chosen.column(f"v{i}").to_pylist(maps_as_pydicts="strict")
        read = _reader(plan.schemas[name])
        given[name] = [
            Tuple(name, tuple(at[:width]), dict(zip(shown, read(value), strict=True)))
            for at, value in zip(places, values, strict=True)
        ]

    return given


def read_python(
    plan: Plan,
    table: pa.Table,
    chains: list[str],
    traced: TracedWindow,
    given: dict[str, list[Tuple]],
    ends: dict[str, list[Tuple]],
) -> None:
    """Add the records of Python operators to a window, and what they gave to `given` and, at their end, `ends`."""
    kinds = table.column("op").to_pylist()
    for i, tail in enumerate(chains):
        chain = plan.chains[tail]
        chosen = table.filter(pa.array([k == -1 - i for k in kinds], pa.bool_()))
        for record in read_records(chosen.column(TRACE)):
            name = chain[record.stage]
            traced.size += sum(
                len(v) for v in record.changes.get("values", {}).values() if isinstance(v, bytes)
            )
            names = plan.schemas[name].names
            outputs = [Tuple(name, at, dict(zip(names, row, strict=True))) for at, row in record.outputs]
            given.setdefault(name, []).extend(outputs)
            if record.error is not None:
                traced.failures.append((name, record))
            if record.ended:
                ends.setdefault(name, []).extend(outputs)
                traced.records.setdefault(name, {})[None] = record
                traced.ended.setdefault(name, []).append(record)
            elif record.at is None:
                traced.bases.setdefault(name, {})[record.bucket] = record.changes
                traced.given[name] = traced.given.get(name, 0) + record.given
            else:
                width = len(record.at)
                ups = plan.graph.ops[name].inputs
                place = record.at[: plan.width[ups[record.port]]] if width else ()
                traced.records.setdefault(name, {})[record.port, place] = record


def arrivals_of(edges: Edges, traced: TracedWindow) -> dict[str, dict[tuple[int, Position], int]]:
    """For operators that took tuples as they arrived: each tuple's place in that order, as they took them now."""
    arrivals: dict[str, dict[tuple[int, Position], int]] = {}
    for name, order in edges.order.items():
        if order == "arrival" and edges.inputs[name]:
            own = [key for key in traced.records.get(name, {}) if key is not None]
            arrivals[name] = {key: place for place, key in enumerate(own)}
    return arrivals


def _row_of(fields: Sequence[StructField]) -> Column:
    """A row's columns as one: a struct, in a list of one if it holds a VARIANT.

    Spark cannot hand over a struct that is null where its parts may not be, which is what a VARIANT is beside other
    operators' rows, and where it is null itself: an empty list can stand there.
    """
    parts = [f"array_compact(array({f.name}))" if _is_variant(f) else f.name for f in fields]
    kinds = [StructField(f.name, ArrayType(f.dataType) if _is_variant(f) else f.dataType) for f in fields]
    row = F.expr(f"struct({', '.join(parts)})").cast(shown_types(StructType(kinds)))
    return F.array(row) if any(has_variant(f.dataType) for f in fields) else row


def _reader(schema: StructType) -> Callable[[Any], Iterable[Any]]:
    """What takes a row apart that `_row_of` made."""
    if not has_variant(schema):
        return lambda value: value.values()
    lists = [_is_variant(f) for f in schema.fields]

    def read(value: Any) -> list[Any]:
        parts = zip(value[0].values(), lists, strict=True)
        return [(next(iter(part), None) if listed else part) for part, listed in parts]

    return read


def _is_variant(field: StructField) -> bool:
    return isinstance(field.dataType, VariantType)
