"""The frames of one epoch: from slices and stored parts to what has to be written.

`Frames` builds, lazily and each once, the DataFrames of the operators that work in an epoch. An epoch covers one level
that reads slices, or several levels in a row that read only what has already ended (aggregates, sorts); in the latter
nothing in between needs to be stored, so a chain such as aggregate, sort, limit, sink is one Spark plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, StructType

from samovar.compile.aggregates import final_frame, merge_frame, partial_frame
from samovar.compile.build_sides import build_keys
from samovar.compile.native import (
    apply_native,
    as_column,
    hidden,
    join,
    key_types,
    numbered,
    plain_aggregate,
    positioned,
    positions_last,
    sort_column,
    visible,
)
from samovar.compile.needed_columns import needed_columns
from samovar.compile.plan import ROWS, Plan
from samovar.compile.sqltext import stars
from samovar.graph import operators as ops
from samovar.ids import BUCKET, CONTROL, PORT
from samovar.positions import BLOCKING, PAD, ROW_WIDTH, Position, padded_columns, position_columns
from samovar.text import quote_name

__all__ = ["EpochInputs", "Frames"]


class EpochInputs(Protocol):
    """What the runtime gives an epoch to work with."""

    spark: SparkSession
    number: int
    """The epoch's number in the run."""
    first: bool
    """Whether this is the first epoch of its level."""
    last: bool
    """Whether the level's sources end with this epoch."""
    marks: tuple[Position, ...]
    """Positions at which Python operators keep their state: then they are told where their rows lie."""
    tallying: frozenset[str]
    """Aggregates that count the rows of each group, and so tell how many they took."""

    def slice(self, name: str) -> DataFrame: ...
    def whole(self, name: str) -> DataFrame: ...
    def parts(self, kind: str, name: str, schema: StructType) -> DataFrame: ...
    def passed(self, name: str) -> tuple[int, int]: ...
    def python(self, chain: tuple[str, ...]) -> Callable[..., Any]: ...
    def shared(
        self, key: str, make: Callable[[], DataFrame], by: Sequence[str] | None = None
    ) -> DataFrame: ...
    def reused(self, df: DataFrame) -> DataFrame: ...
    def counted(self, name: str, level: int | None, df: DataFrame) -> DataFrame: ...
    def tallied(self, name: str, df: DataFrame) -> DataFrame: ...
    def mended(self, name: str, df: DataFrame) -> DataFrame: ...


class Frames:
    """Builds the frames of one epoch over the levels `low` to `high` (inclusive)."""

    def __init__(self, plan: Plan, inputs: EpochInputs, low: int, high: int) -> None:
        self.plan = plan
        self.inputs = inputs
        self.low = low
        self.high = high
        self._streams: dict[tuple[str, int], DataFrame] = {}
        self._wholes: dict[str, DataFrame] = {}

    # --- frames -----------------------------------------------------------------------------------------------------

    def stream(self, name: str, level: int) -> DataFrame:
        """The rows of an operator's output that flow on a level in this epoch."""
        key = (name, level)
        if key not in self._streams:
            df = self._stream(name, level)
            placement = self.plan.placement
            if placement.ends(name):
                counts = self.inputs.first and level == min(placement.streams[name])
            else:
                counts = placement.works(name, level)
            if counts:
                df = self._counted(name, level, df)
            if self._uses(name, level) > 1 and self._costly(name, level):
                df = self.inputs.reused(df)
            stored = placement.ends(name) or (name in placement.stashed and level > placement.level[name])
            self._streams[key] = self.plan.named(name, df, stored=stored)
        return self._streams[key]

    def _counted(self, name: str, level: int, df: DataFrame) -> DataFrame:
        return self.inputs.counted(name, level, df)

    def _stream(self, name: str, level: int) -> DataFrame:
        plan = self.plan
        op = plan.graph.ops[name]
        shape = plan.shape(name)
        if plan.placement.ends(name):
            return self.ended(name)
        if shape == "source" or (name in plan.placement.stashed and level > plan.placement.level[name]):
            return self.inputs.slice(name)
        if shape == "join":
            assert isinstance(op, ops.Join)
            side = plan.placement.build[name]
            b, p = (0, 1) if side == "left" else (1, 0)
            probe = self.stream(op.inputs[p], level)
            if name in plan.placement.inline:
                sides = [plan.schemas[op.inputs[i]].names for i in (b, p)]
                keys = build_keys(op, *sides)
                build = self.inputs.shared(f"build of {name}", lambda: self._pruned(op.inputs[b]), keys)
            else:
                build = self.inputs.shared(f"build of {name}", lambda: self.inputs.whole(op.inputs[b]))
                build = self.plan.named(op.inputs[b], build)
            return self._join_stream(op, probe, build)
        if isinstance(op, ops.Python):
            return self._python(plan.chains[name], level)
        ins = self.taken(name, level)
        if isinstance(op, ops.Batches):
            return self._batches(op, ins[0])
        if isinstance(op, ops.Limit):
            return self._limit(op, ins[0])
        if shape == "sink":
            return ins[0].drop(*hidden(ins[0]))
        return self._trimmed(name, apply_native(op, ins, shape, self.inputs.number))

    def taken(self, name: str, level: int) -> list[DataFrame]:
        """What an operator takes in on a level, without rows that were left out because it fails on them."""
        ins = [self.stream(up, level) for up in self.plan.graph.ops[name].inputs]
        return [self.inputs.mended(name, ins[0])] if len(ins) == 1 else ins

    def whole(self, name: str) -> DataFrame:
        """All rows of an operator's output, for a build side that is taken whole."""
        if name not in self._wholes:
            plan = self.plan
            op = plan.graph.ops[name]
            if plan.placement.ends(name):
                df = self.ended(name, whole=True)
            elif plan.shape(name) == "source":
                df = self.inputs.whole(name)
            elif isinstance(op, ops.Join) and plan.shape(name) == "join":
                side = plan.placement.build[name]
                b, p = (0, 1) if side == "left" else (1, 0)
                df = self._join(op, self.whole(op.inputs[p]), self.whole(op.inputs[b]))
            else:
                df = self._trimmed(
                    name, apply_native(op, [self.whole(up) for up in op.inputs], plan.shape(name))
                )
            if not self.plan.placement.streams[name]:
                df = self.inputs.counted(name, None, df)
            self._wholes[name] = self.plan.named(name, df, stored=plan.placement.ends(name))
        return self._wholes[name]

    def _pruned(self, name: str) -> DataFrame:
        """The whole output of an operator without columns nobody needs."""
        df = self.whole(name)
        needed = needed_columns(self.plan, name)
        return df if needed is None else df.select(*map(quote_name, needed), *hidden(df))

    def _trimmed(self, name: str, df: DataFrame) -> DataFrame:
        """Positions an operator's consumers do not need are dropped where they end."""
        return df.drop(*hidden(df)) if hidden(df) and not self.plan.width[name] else df

    # --- blocking operators ---------------------------------------------------------------------------------------

    def ended(self, name: str, *, whole: bool = False) -> DataFrame:
        """A blocking operator's output; empty after the level's first epoch."""
        plan = self.plan
        op = plan.graph.ops[name]
        if not self.inputs.first and not whole:
            return self._empty(name)
        at = plan.placement.level[name]
        here = at >= self.low  # its input flows in this very epoch
        if here and not (plan.shape(name) == "accumulate" and plan.ordered(name)):
            df = self._apply(name, self.taken(name, at))
        elif plan.shape(name) == "accumulate":
            cut = plan.accumulators[name]
            if here:
                partials = self.partial(name)
            else:
                partials = self.inputs.parts("deltas", name, self.partial_schema(name)).drop(ROWS)
            df = final_frame(merge_frame(partials, cut), cut)
        else:
            kept = [
                self.plan.named(
                    up, self.inputs.parts("deltas", f"{name}.{port}", self.kept_schema(name, port))
                )
                for port, up in enumerate(op.inputs)
            ]
            df = self._apply(name, kept)
        if plan.width[name]:
            return self._number(name, df)
        return df.drop(*hidden(df)) if hidden(df) else df

    def _apply(self, name: str, ins: Sequence[DataFrame]) -> DataFrame:
        """A blocking operator over its whole input."""
        op = self.plan.graph.ops[name]
        if isinstance(op, ops.Aggregate) and name in self.inputs.tallying:
            counting = msgspec.structs.replace(op, aggregates=(*op.aggregates, f"count(1) AS {ROWS}"))
            return self.inputs.tallied(name, plain_aggregate(counting, self._bare(name, ins[0])))
        if isinstance(op, ops.Aggregate | ops.Select) and self.plan.ordered(name):
            # aggregates take rows as they come: put each group in one partition, in order
            order = hidden(ins[0])
            grouped = isinstance(op, ops.Aggregate) and op.grouping == "groupBy" and op.pivot is None
            keys = [as_column(k) for k in op.keys] if isinstance(op, ops.Aggregate) and grouped else []
            spread = ins[0].repartition(*keys) if keys else ins[0].repartition(1)
            return apply_native(op, [spread.sortWithinPartitions(*order).drop(*order)], self.plan.shape(name))
        return apply_native(op, [self._bare(name, df) for df in ins], self.plan.shape(name))

    def _bare(self, name: str, df: DataFrame) -> DataFrame:
        """Input of a blocking operator: a sort keeps positions to break ties, a selected aggregate for their order."""
        op = self.plan.graph.ops[name]
        keeps = (isinstance(op, ops.Sort) and self.plan.width[name]) or (
            isinstance(op, ops.Select) and self.plan.ordered(name)
        )
        return df if keeps or not hidden(df) else df.drop(*hidden(df))

    def _number(self, name: str, df: DataFrame) -> DataFrame:
        """Positions for a blocking operator's output: the order of a sort, or else the order of all columns."""
        op = self.plan.graph.ops[name]
        group = BLOCKING + list(self.plan.graph.ops).index(name)
        if isinstance(op, ops.Sort):
            keys = [sort_column(k) for k in op.keys] + [F.col(c) for c in hidden(df)]
            return numbered(df, keys, group)
        names = df.columns
        plain = df.toDF(*(f"c{i}" for i in range(len(names))))  # the names need not be unique
        keys = [F.col(f.name) for f in plain.schema.fields if _orderable(f.dataType)]
        made = numbered(plain, keys, group)
        return made.toDF(*names, *hidden(made))

    def _empty(self, name: str) -> DataFrame:
        df = self._nothing(self.plan.schemas[name])
        names = position_columns(self.plan.width[name])
        return positioned(df, names, ["0"] * len(names)) if names else df

    def _nothing(self, schema: StructType) -> DataFrame:
        return self.inputs.spark.createDataFrame([], schema)

    def partial(self, name: str) -> DataFrame:
        """What an epoch adds to an accumulating operator: keys, accumulators."""
        plan = self.plan
        return partial_frame(self._accumulated(name), plan.keys(name), plan.accumulators[name])

    def _accumulated(self, name: str) -> DataFrame:
        """The input of an accumulating operator, with positions only if it looks at them."""
        (df,) = self.taken(name, self.plan.placement.level[name])
        return df if self.plan.ordered(name) else df.drop(*hidden(df))

    def stored_partial(self, name: str) -> DataFrame:
        """The same with the number of input rows, as it is stored."""
        plan = self.plan
        cut = plan.accumulators[name]
        counting = type(cut)((*cut.partial, f"count(1) AS {ROWS}"), cut.merge, cut.final)
        return partial_frame(self._accumulated(name), plan.keys(name), counting)

    def partial_schema(self, name: str) -> StructType:
        """The schema of stored deltas, found on an empty frame."""
        plan = self.plan
        cut = plan.accumulators[name]
        up = plan.graph.ops[name].inputs[0]
        counting = type(cut)((*cut.partial, f"count(1) AS {ROWS}"), cut.merge, cut.final)
        return partial_frame(self.plan.named(up, self._empty(up)), plan.keys(name), counting).schema

    def kept_schema(self, name: str, port: int) -> StructType:
        """The schema of kept input."""
        up = self.plan.graph.ops[name].inputs[port]
        return self._kept(name, self._empty(up)).schema

    def kept(self, name: str, port: int) -> DataFrame:
        """The rows a keeping operator adds to what it keeps."""
        return self._kept(name, self.taken(name, self.plan.placement.level[name])[port])

    def _kept(self, name: str, df: DataFrame) -> DataFrame:
        op = self.plan.graph.ops[name]
        if isinstance(op, ops.Aggregate):
            positions = hidden(df) if self.plan.ordered(name) else []
            used = _used_columns(op, visible(df))
            if used:
                return df.select(*map(quote_name, used), *positions)
            return positions_last(df) if positions else df.drop(*hidden(df))
        return positions_last(self._bare(name, df))

    # --- joins, limits ----------------------------------------------------------------------------------------------

    def _join_stream(self, op: ops.Join, probe: DataFrame, build: DataFrame) -> DataFrame:
        """What a join gives for the rows that flow; a replay has few of them, and joins otherwise."""
        return self._join(op, probe, build)

    def _join(self, op: ops.Join, probe: DataFrame, build: DataFrame) -> DataFrame:
        side = self.plan.placement.build[op.name]
        ahead, behind = hidden(probe), hidden(build)
        wanted = self.plan.width[op.name]
        if behind:
            names = position_columns(len(behind), "q")
            build = build.withColumnsRenamed(dict(zip(behind, names, strict=True)))
            behind = names
        left, right = (build, probe) if side == "left" else (probe, build)
        made = join(op, left, right)
        if not (ahead or behind):
            return made
        if op.how in ("semi", "anti"):
            behind = []
        if not wanted:
            return made.drop(*ahead, *behind)
        parts = padded_columns([*ahead, *(f"coalesce({c}, {PAD})" for c in behind)], wanted)
        return positioned(made, position_columns(wanted), parts, instead=behind)

    def _limit(self, op: ops.Limit, df: DataFrame) -> DataFrame:
        taken, given = self.inputs.passed(op.name)
        skip = max(op.offset - taken, 0)
        left = None if op.n is None else max(op.n - given, 0)
        if left == 0:
            return self._trimmed(op.name, df.limit(0))
        made = df if self.plan.aligned(op.name) or not hidden(df) else df.orderBy(*hidden(df))
        made = made.offset(skip) if skip else made
        return self._trimmed(op.name, made if left is None else made.limit(left))

    # --- Python ---------------------------------------------------------------------------------------------------

    def _batches(self, op: ops.Batches, df: DataFrame) -> DataFrame:
        function = self.inputs.python((op.name,))
        plain = df.drop(*hidden(df)) if hidden(df) else df
        call = plain.mapInArrow if op.form == "arrow" else plain.mapInPandas
        made = call(function, self.plan.schemas[op.name])
        if self.plan.width[op.name]:
            made = positioned(made, position_columns(ROW_WIDTH), ["0", "monotonically_increasing_id()"])
        return made

    def _python(self, chain: tuple[str, ...], level: int) -> DataFrame:
        plan = self.plan
        head, tail = plan.graph.ops[chain[0]], chain[-1]
        assert isinstance(head, ops.Python)
        ins = self._fed(chain, level)
        out = self._python_schema(tail)
        function = self.inputs.python(chain)
        if plan.shape(chain[0]) == "batches":
            df = ins[0] if len(ins) == 1 else self._ports(head, ins)
            return df.mapInArrow(function, out)
        df = self._ports(head, ins) if len(ins) > 1 else ins[0]
        buckets = plan.buckets[chain[0]]
        if head.by and len(ins) == 1:
            df = df.withColumn(BUCKET, _bucket([as_column(k) for k in head.by], buckets))
        controls = [-1] * self._python_begins() + [1] * self._python_ends()
        if controls:
            df = df.withColumn(CONTROL, F.lit(0))
        for control in controls:
            marks = F.col("id").cast("int").alias(BUCKET), F.lit(control).alias(CONTROL)
            rows = self.inputs.spark.range(buckets).select(*marks)
            if not head.by:
                rows = rows.drop(BUCKET)
            df = df.unionByName(rows, allowMissingColumns=True)
        first = [c for c in (BUCKET, CONTROL) if c in df.columns]
        order = [] if head.order == "arrival" else hidden(df)
        workers = plan.partitions(chain[0])
        df = df.repartition(workers, BUCKET) if head.by else df.repartition(workers)
        df = df.sortWithinPartitions(*first, *order) if first or order else df
        if order and not plan.width[tail] and not self.inputs.marks:
            df = df.drop(*order)  # they have done their work: a worker gets what it uses
        return df.mapInArrow(function, out)

    def _python_schema(self, tail: str) -> StructType:
        """What the workers give for a chain: its last operator's columns, then positions."""
        out = StructType(list(self.plan.schemas[tail].fields))
        for column in position_columns(self.plan.width[tail]):
            out = out.add(column, LongType(), True)
        return out

    def _fed(self, chain: tuple[str, ...], level: int) -> list[DataFrame]:
        """What a chain of Python operators takes in."""
        return [self.stream(up, level) for up in self.plan.graph.ops[chain[0]].inputs]

    def _python_begins(self) -> bool:
        """Whether Python operators first give what they gave before, because the epoch goes on from a mark."""
        return False

    def _python_ends(self) -> bool:
        """Whether Python operators see the end of their input in this epoch."""
        return self.inputs.last

    def _ports(self, head: ops.Python, ins: Sequence[DataFrame]) -> DataFrame:
        """Several ports in one frame: a row is a struct in the column of its port; positions order across ports."""
        width = max(len(hidden(df)) for df in ins)
        buckets = self.plan.buckets[head.name]
        made: DataFrame | None = None
        kinds = key_types(head.by, ins)
        for port, df in enumerate(ins):
            parts = [*map(F.expr, padded_columns(hidden(df), width)), F.lit(port)]
            names = position_columns(width + 1)
            columns = [
                F.struct(*map(quote_name, visible(df))).alias(f"__sv_v{port}"),
                F.lit(port).alias(PORT),
                *(c.cast("bigint").alias(n) for n, c in zip(names, parts, strict=True) if width),
            ]
            if head.by:
                keys = [as_column(k).cast(kind) for k, kind in zip(head.by, kinds, strict=True)]
                columns.append(_bucket(keys, buckets).alias(BUCKET))
            one = df.select(*columns)
            made = one if made is None else made.unionByName(one, allowMissingColumns=True)
        assert made is not None
        return made

    # --- what is shared ---------------------------------------------------------------------------------------------

    def _uses(self, name: str, level: int) -> int:
        """How often a frame is read in this epoch."""
        plan = self.plan
        uses = int(name in plan.placement.stashed and plan.placement.level[name] == level)
        for consumer, _ in plan.graph.consumers(name):
            uses += plan.placement.works(consumer, level)
        return uses

    def _costly(self, name: str, level: int) -> bool:
        """Whether computing a frame twice costs more than keeping it: after Python, joins and blocking operators."""
        plan = self.plan
        if plan.shape(name) in ("python", "batches", "join", "limit") or plan.placement.ends(name):
            return True
        if plan.shape(name) == "source":
            return False
        return any(self._costly(up, level) for up in plan.graph.ops[name].inputs)


def _bucket(keys: Sequence[Column], buckets: int) -> Column:
    return F.pmod(F.xxhash64(*keys), F.lit(buckets)).cast("int")


def _used_columns(op: ops.Aggregate, names: Sequence[str]) -> list[str]:
    """The columns an aggregate mentions, or none when that cannot be told: then all are kept."""
    texts = (*op.keys, *op.aggregates, op.pivot or "")
    unsure = any(getattr(t, "column", None) is not None or stars(t) for t in texts)
    if unsure or len({n.lower() for n in names}) < len(names):
        return []
    said = " ".join(texts).lower()
    return [n for n in names if n.lower() in said or quote_name(n).lower() in said]


def _orderable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_orderable(f.dataType) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return _orderable(kind.elementType)
    return kind.typeName() not in ("map", "variant", "interval", "void", "geometry", "geography")
