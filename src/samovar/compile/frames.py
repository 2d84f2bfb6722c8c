"""The frames of one epoch: from rows that are read to what has to be written.

`EpochFrames` builds, lazily and each once, the DataFrames of the operators that work in an epoch. An epoch covers one
level that reads slices, or several levels in a row that read only what has already ended (aggregates, sorts); in the
latter nothing in between needs to be stored, so a chain such as aggregate, sort, limit, sink is one Spark plan.

What is read, and what Python makes of rows, it asks an `Inputs` object; how rows are counted, kept in memory and joined
is a `Strategy`. A run, a replay, a fork and the search for a failing row differ in these two alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import msgspec
from pyspark.sql import Column, DataFrame
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
from samovar.compile.strategy import EpochRange, Inputs, Strategy
from samovar.graph import operators as ops
from samovar.ids import BUCKET, CONTROL, PORT
from samovar.positions import BLOCKING, PAD, ROW_WIDTH, padded_columns, position_columns
from samovar.text import quote_name

__all__ = ["EpochFrames", "empty_output"]


def empty_output(plan: Plan, name: str, empty: Callable[[StructType], DataFrame]) -> DataFrame:
    """An operator's output without rows, with the positions it carries."""
    names = position_columns(plan.width[name])
    df = empty(plan.schemas[name])
    return positioned(df, names, ["0"] * len(names)) if names else df


class EpochFrames:
    """The frames of epoch `number`, over the levels `covers.low` to `covers.high` (inclusive)."""

    def __init__(
        self, plan: Plan, number: int, covers: EpochRange, inputs: Inputs, strategy: Strategy
    ) -> None:
        self.plan = plan
        self.number = number
        self.covers = covers
        self.inputs = inputs
        self.strategy = strategy
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
                counts = self.covers.first and level == min(placement.streams[name])
            else:
                counts = placement.works(name, level)
            if counts:
                df = self.strategy.counted(name, level, df)
            # counted before it is kept: a counter above the kept frame would count each time it is read
            if self._uses(name, level) > 1 and self._costly(name, level):
                df = self.strategy.keep(df)
            stored = placement.ends(name) or placement.is_read_back(name, level)
            self._streams[key] = self.plan.named(name, df, stored=stored)
        return self._streams[key]

    def _stream(self, name: str, level: int) -> DataFrame:
        plan = self.plan
        op = plan.graph.ops[name]
        shape = plan.shape(name)
        read = self.inputs.rows(name, level)
        if read is not None:
            return read
        if plan.placement.ends(name):
            return self.ended(name)
        if shape == "join":
            assert isinstance(op, ops.Join)
            b = plan.placement.build_port(name)
            probe = self.stream(op.inputs[1 - b], level)
            if name in plan.placement.inline:
                sides = [plan.schemas[op.inputs[i]].names for i in (b, 1 - b)]
                keys = build_keys(op, *sides)
                build = self.strategy.build_side(name, lambda: self._pruned(op.inputs[b]), keys)
            else:
                build = self.strategy.build_side(name, lambda: self.stash(op.inputs[b]), None)
                build = self.plan.named(op.inputs[b], build)
            return self._join_few(op, probe, build) if self.strategy.few else self._join(op, probe, build)
        if isinstance(op, ops.Python):
            return self._python(plan.chains[name], level)
        ins = self.taken(name, level)
        if isinstance(op, ops.Batches):
            return self._batches(op, ins[0])
        if isinstance(op, ops.Limit):
            return self._limit(op, ins[0])
        if shape == "sink":
            return ins[0].drop(*hidden(ins[0]))
        return self._trimmed(name, apply_native(op, ins, shape, self.number))

    def taken(self, name: str, level: int) -> list[DataFrame]:
        """What an operator takes in on a level, without rows that were skipped because it fails on them."""
        ins = [self.stream(up, level) for up in self.plan.graph.ops[name].inputs]
        mend = self.strategy.mends.get(name)
        return [mend(ins[0])] if mend is not None and len(ins) == 1 else ins

    def stash(self, name: str) -> DataFrame:
        """All rows that an operator stashed."""
        return self.inputs.stored("stash", name, self.empty(name).schema)

    def whole(self, name: str) -> DataFrame:
        """All rows of an operator's output, for a build side that is taken whole."""
        if name not in self._wholes:
            plan = self.plan
            op = plan.graph.ops[name]
            read = self.inputs.rows(name, None)
            if read is not None:
                df = read
            elif plan.placement.ends(name):
                df = self.ended(name, whole=True)
            elif isinstance(op, ops.Join) and plan.shape(name) == "join":
                b = plan.placement.build_port(name)
                df = self._join(op, self.whole(op.inputs[1 - b]), self.whole(op.inputs[b]))
            else:
                df = self._trimmed(
                    name, apply_native(op, [self.whole(up) for up in op.inputs], plan.shape(name))
                )
            if not self.plan.placement.streams[name]:
                df = self.strategy.counted(name, None, df)
            self._wholes[name] = self.plan.named(name, df, stored=plan.placement.ends(name))
        return self._wholes[name]

    def _pruned(self, name: str) -> DataFrame:
        """The whole output of an operator without columns that no operator needs."""
        df = self.whole(name)
        needed = needed_columns(self.plan, name) if self.strategy.prunes else None
        return df if needed is None else df.select(*map(quote_name, needed), *hidden(df))

    def _trimmed(self, name: str, df: DataFrame) -> DataFrame:
        """Positions an operator's consumers do not need are dropped where they end."""
        return df.drop(*hidden(df)) if hidden(df) and not self.plan.width[name] else df

    # --- blocking operators ---------------------------------------------------------------------------------------

    def ended(self, name: str, *, whole: bool = False) -> DataFrame:
        """A blocking operator's output; empty after the level's first epoch."""
        plan = self.plan
        if not self.covers.first and not whole:
            return self.empty(name)
        at = plan.placement.level[name]
        here = at >= self.covers.low  # its input flows in this very epoch
        if here and not (plan.shape(name) == "accumulate" and plan.ordered(name)):
            df = self._apply(name, self.taken(name, at))
        elif plan.shape(name) == "accumulate":
            cut = plan.accumulators[name]
            if here:
                partials = self.partial(name)
            else:
                partials = self.deltas(name).drop(ROWS)
            df = final_frame(merge_frame(partials, cut), cut)
        else:
            kept = self.kept_so_far(name)
            df = self._apply(name, kept)
        if plan.width[name]:
            return self.positioned(name, df)
        return df.drop(*hidden(df)) if hidden(df) else df

    def _apply(self, name: str, ins: Sequence[DataFrame]) -> DataFrame:
        """A blocking operator over its whole input."""
        op = self.plan.graph.ops[name]
        if isinstance(op, ops.Aggregate) and name in self.strategy.tallying:
            counting = msgspec.structs.replace(op, aggregates=(*op.aggregates, f"count(1) AS {ROWS}"))
            return self.strategy.tallying[name](plain_aggregate(counting, self._bare(name, ins[0])))
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

    def positioned(self, name: str, df: DataFrame) -> DataFrame:
        """A blocking operator's output with positions: the order of a sort, or else the order of all columns."""
        op = self.plan.graph.ops[name]
        group = BLOCKING + list(self.plan.graph.ops).index(name)
        if isinstance(op, ops.Sort):
            keys = [sort_column(k) for k in op.keys] + [F.col(c) for c in hidden(df)]
            return numbered(df, keys, group)
        names = df.columns
        plain = df.toDF(*(f"c{i}" for i in range(len(names))))  # the names need not be unique
        keys = [F.col(f.name) for f in plain.schema.fields if _orderable(f.dataType)]
        ordered = numbered(plain, keys, group)
        return ordered.toDF(*names, *hidden(ordered))

    def empty(self, name: str) -> DataFrame:
        """An operator's output without rows."""
        return empty_output(self.plan, name, self.inputs.empty)

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
        return self._counting_partial(name, self._accumulated(name))

    def _counting_partial(self, name: str, df: DataFrame) -> DataFrame:
        cut = self.plan.accumulators[name]
        counting = type(cut)((*cut.partial, f"count(1) AS {ROWS}"), cut.merge, cut.final)
        return partial_frame(df, self.plan.keys(name), counting)

    def deltas(self, name: str) -> DataFrame:
        """What earlier epochs added to an accumulating operator; the schema is found on an empty frame."""
        up = self.plan.graph.ops[name].inputs[0]
        schema = self._counting_partial(name, self.plan.named(up, self.empty(up))).schema
        return self.inputs.stored("deltas", name, schema)

    def kept_so_far(self, name: str) -> list[DataFrame]:
        """The rows that a keeping operator kept in earlier epochs, port by port."""
        return [
            self.plan.named(
                up, self.inputs.stored("deltas", f"{name}.{port}", self._kept(name, self.empty(up)).schema)
            )
            for port, up in enumerate(self.plan.graph.ops[name].inputs)
        ]

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

    def _join_few(self, op: ops.Join, probe: DataFrame, build: DataFrame) -> DataFrame:
        """A join for few probe rows: they are sent to where the build side is, not the other way round."""
        if op.on is None:
            return self._join(op, probe, build)
        if op.how == "inner":
            return self.strategy.keep(self._join(op, F.broadcast(probe), build))
        # Spark does not broadcast the outer side of an outer join: its keys choose the rows of the build side
        keys = F.broadcast(probe.select(*map(quote_name, op.on)))
        matching = self.strategy.keep(build.join(keys, on=list(op.on), how="left_semi"))
        return self._join(op, probe, matching)

    def _join(self, op: ops.Join, probe: DataFrame, build: DataFrame) -> DataFrame:
        side = self.plan.placement.build[op.name]
        ahead, behind = hidden(probe), hidden(build)
        wanted = self.plan.width[op.name]
        if behind:
            names = position_columns(len(behind), "q")
            build = build.withColumnsRenamed(dict(zip(behind, names, strict=True)))
            behind = names
        left, right = (build, probe) if side == "left" else (probe, build)
        joined = join(op, left, right)
        if not (ahead or behind):
            return joined
        if op.how in ("semi", "anti"):
            behind = []
        if not wanted:
            return joined.drop(*ahead, *behind)
        parts = padded_columns([*ahead, *(f"coalesce({c}, {PAD})" for c in behind)], wanted)
        return positioned(joined, position_columns(wanted), parts, instead=behind)

    def _limit(self, op: ops.Limit, df: DataFrame) -> DataFrame:
        taken, given = self.inputs.passed(op.name)
        skip = max(op.offset - taken, 0)
        left = None if op.n is None else max(op.n - given, 0)
        if left == 0:
            return self._trimmed(op.name, df.limit(0))
        if hidden(df) and not self.plan.aligned(op.name):
            df = df.orderBy(*hidden(df))
        df = df.offset(skip) if skip else df
        return self._trimmed(op.name, df if left is None else df.limit(left))

    # --- Python ---------------------------------------------------------------------------------------------------

    def _batches(self, op: ops.Batches, df: DataFrame) -> DataFrame:
        plain = df.drop(*hidden(df)) if hidden(df) else df
        output = self.inputs.python((op.name,), plain, self.plan.schemas[op.name])
        if self.plan.width[op.name]:
            output = positioned(output, position_columns(ROW_WIDTH), ["0", "monotonically_increasing_id()"])
        return output

    def _python(self, chain: tuple[str, ...], level: int) -> DataFrame:
        plan = self.plan
        head, tail = plan.graph.ops[chain[0]], chain[-1]
        assert isinstance(head, ops.Python)
        ins = [self.stream(up, level) for up in head.inputs]
        df = self._ports(head, ins) if len(ins) > 1 else ins[0]
        out = StructType(list(plan.schemas[tail].fields))
        for column in position_columns(plan.width[tail]):
            out = out.add(column, LongType(), True)
        if plan.shape(chain[0]) == "batches":
            return self.inputs.python(chain, df, out)
        buckets = plan.buckets[chain[0]]
        if head.by and len(ins) == 1:
            df = df.withColumn(BUCKET, _bucket([as_column(k) for k in head.by], buckets))
        if self.covers.last:
            # A row with a control sorts behind all others of its bucket: there operators see the end of their input.
            df = df.withColumn(CONTROL, F.lit(0))
            marks = F.col("id").cast("int").alias(BUCKET), F.lit(1).alias(CONTROL)
            rows = df.sparkSession.range(buckets).select(*marks)
            if not head.by:
                rows = rows.drop(BUCKET)
            df = df.unionByName(rows, allowMissingColumns=True)
        first = [c for c in (BUCKET, CONTROL) if c in df.columns]
        order = [] if head.order == "arrival" else hidden(df)
        workers = plan.partitions(chain[0])
        df = df.repartition(workers, BUCKET) if head.by else df.repartition(workers)
        df = df.sortWithinPartitions(*first, *order) if first or order else df
        if order and not plan.width[tail] and not self.covers.marks:
            df = df.drop(*order)  # they have done their work: a worker gets what it uses
        return self.inputs.python(chain, df, out)

    def _ports(self, head: ops.Python, ins: Sequence[DataFrame]) -> DataFrame:
        """Several ports in one frame: a row is a struct in the column of its port; positions order across ports."""
        width = max(len(hidden(df)) for df in ins)
        buckets = self.plan.buckets[head.name]
        ports: list[DataFrame] = []
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
            ports.append(df.select(*columns))
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), ports)

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
    """The columns an aggregate mentions, or none when the text does not show them: then all are kept."""
    texts = (*op.keys, *op.aggregates, op.pivot or "")
    unsure = any(getattr(t, "column", None) is not None or stars(t) for t in texts)
    if unsure or len({n.lower() for n in names}) < len(names):
        return []
    text = " ".join(texts).lower()
    return [n for n in names if n.lower() in text or quote_name(n).lower() in text]


def _orderable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_orderable(f.dataType) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return _orderable(kind.elementType)
    return kind.typeName() not in ("map", "variant", "interval", "void", "geometry", "geography")
