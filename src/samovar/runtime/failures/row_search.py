"""Which operator failed, on which row: Spark says what failed, seldom where.

The operator is found by the SQL text Spark quotes, else by trying operators in order; the row by splitting: first the
epoch's files, then halves of the rows of one file. It costs some twenty small jobs and gives up after `PATIENCE`
seconds with what is known by then. Nothing is kept in memory: the rows that are searched lie in the failed attempt's
folder, which is removed with it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from samovar.compile.frames import EpochFrames
from samovar.compile.native import apply_native, as_column, hidden
from samovar.compile.strategy import Strategy
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.ids import new_attempt
from samovar.runtime.epochs.attempt import Attempt
from samovar.runtime.epochs.epoch import mends_of
from samovar.runtime.epochs.epoch_inputs import EpochInputs
from samovar.runtime.epochs.run_context import PresentEpoch, RunContext
from samovar.runtime.failures.searched_rows import FEW, SearchedRows
from samovar.runtime.failures.spark_errors import SPARK_ERRORS, SparkError
from samovar.runtime.parquet_files import writer_into

__all__ = ["FoundRow", "RowSearch"]

log = logging.getLogger("samovar.failures")

PATIENCE = 20.0
"""Seconds after which the search for a row is given up: a person waits for the error meanwhile."""


@dataclass(frozen=True)
class FoundRow:
    operator: str
    said: SparkError
    row: dict[str, Any] | None = None
    note: str = ""


# --- the search -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Role:
    """An operator's part in an epoch: what it makes there, and out of what (None: no single rows to search)."""

    name: str
    frame: Callable[[EpochFrames], DataFrame]
    inputs: Callable[[EpochFrames], list[DataFrame] | None]
    streams: bool = False
    """Whether its input comes straight from slices of files, so that the search can begin with the files."""


class RowSearch:
    """A search in the epoch that failed, `present`."""

    def __init__(self, context: RunContext, present: PresentEpoch) -> None:
        self.context = context
        self.plan = context.plan
        self.covers = present.covers
        self.mended = present.mended
        self.folder = context.recording.attempt_folder(len(context.history.epochs), f"probe-{new_attempt()}")
        self.until = time.monotonic() + PATIENCE
        self.scratch = 0

    def find(self, said: SparkError) -> FoundRow | None:
        """The operator that fails in the epoch after the last committed one, and a row it fails on."""
        self.context.describe("looking for the cause of a failure")
        probe = self._probe()
        roles = list(self._roles())
        quoted = [r for r in roles if any(_mentions(self.plan.graph.ops[r.name], f) for f in said.fragments)]
        for role in [*quoted, *(r for r in roles if r not in quoted)]:
            if quoted == [role]:  # nobody else has this text
                found = FoundRow(role.name, said)
            else:
                failed = _try(role.frame(probe))
                if failed is None:
                    if time.monotonic() > self.until:
                        return None
                    continue
                found = FoundRow(role.name, SparkError.of(failed))
            try:
                return self._with_row(found, role)
            except _Late:
                return replace(found, note="The row was not looked for any longer.")
        return None

    def _probe(self, units: Mapping[str, tuple[int, int]] | None = None) -> EpochFrames:
        """The failed epoch once more, to look into: counts nothing, keeps nothing in memory."""
        context, covers = self.context, self.covers
        if units is not None:
            covers = replace(covers, units=units)
        number, kept = len(context.history.epochs), context.progress.build_sides.frames
        name = new_attempt()
        folder = self.folder / name  # what Python operators write
        folder.mkdir(parents=True)
        attempt = Attempt(context, number, covers, name, folder, looks=True)
        strategy = Strategy(
            mends=mends_of(self.mended),
            build_side=lambda key, make, by: kept[key] if key in kept else make(),
        )
        return EpochFrames(self.plan, number, covers, EpochInputs(attempt), strategy)

    def _roles(self) -> Iterator[_Role]:
        """What happens in the epoch, in the order of the workflow."""
        place, graph = self.plan.placement, self.plan.graph
        for level in range(self.covers.low, self.covers.high + 1):
            for name, op in graph.ops.items():
                if name in self.plan.fused:
                    continue
                if place.ends(name):
                    if level in place.streams[name] or level in place.whole[name]:
                        yield self._ended(name, level)
                    if place.level[name] == level:
                        yield from self._taken(name, op, level)
                elif place.works(name, level) and not place.is_sink(name):
                    if isinstance(op, ops.Python) and op.by:
                        yield self._keyed(op, level)
                    yield self._working(name, op, level)
                elif level in place.whole[name] and not place.works(name, level):
                    yield self._whole(name, op)

    def _working(self, name: str, op: Op, level: int) -> _Role:
        return _Role(
            name,
            lambda p: p.stream(name, level),
            lambda p: self._streamed(p, op, level),
            streams=self._from_files(name),
        )

    def _whole(self, name: str, op: Op) -> _Role:
        return _Role(name, lambda p: p.whole(name), lambda p: [p.whole(up) for up in op.inputs])

    def _keyed(self, op: ops.Python, level: int) -> _Role:
        """The keys of a Python operator, apart from its code."""

        def keys(p: EpochFrames) -> DataFrame:
            ports = [p.stream(up, level).select(*(as_column(k) for k in op.by)) for up in op.inputs]
            return reduce(DataFrame.union, ports)

        return _Role(
            op.name, keys, lambda p: self._streamed(p, op, level), streams=self._from_files(op.inputs[0])
        )

    def _ended(self, name: str, level: int) -> _Role:
        place = self.plan.placement

        def frame(p: EpochFrames) -> DataFrame:
            return p.stream(name, level) if level in place.streams[name] else p.whole(name)

        def inputs(p: EpochFrames) -> list[DataFrame] | None:
            if place.level[name] >= self.covers.low:
                return p.taken(name, place.level[name])
            if self.plan.shape(name) == "accumulate":
                return None
            return p.kept_so_far(name)

        return _Role(name, frame, inputs)

    def _taken(self, name: str, op: Op, level: int) -> Iterator[_Role]:
        if self.plan.shape(name) == "accumulate":
            yield _Role(
                name,
                lambda p: p.partial(name),
                lambda p: p.taken(name, level),
                streams=self._from_files(op.inputs[0]),
            )

    def _streamed(self, p: EpochFrames, op: Op, level: int) -> list[DataFrame]:
        place = self.plan.placement
        if op.name not in place.build:
            return p.taken(op.name, level)
        b = place.build_port(op.name)
        build = op.inputs[b]
        return [
            p.whole(up)
            if up == build and i == b and op.name in place.inline
            else self.plan.named(up, p.stash(up))
            if i == b
            else p.stream(up, level)
            for i, up in enumerate(op.inputs)
        ]

    def _from_files(self, name: str) -> bool:
        """Whether an operator's input in an epoch is a function of each file alone."""
        place, graph = self.plan.placement, self.plan.graph
        at = [graph.ops[name], *graph.upstream(name)]
        return all(place.free(o.name) for o in at) and not any(place.ends(o.name) for o in at)

    # --- the row ----------------------------------------------------------------------------------------------------

    def _with_row(self, found: FoundRow, role: _Role) -> FoundRow:
        op = self.plan.graph.ops[role.name]
        if isinstance(op, (*ops.SOURCES, *ops.SINKS, ops.Limit, ops.Sample, ops.Batches)) or (
            isinstance(op, ops.Python) and not op.by
        ):
            return found
        probe = self._narrowed(role) if role.streams else self._probe()
        inputs = role.inputs(probe)
        if inputs is None:
            return replace(found, note="It takes several rows together to fail.")
        held = [self._hold(df, up) for df, up in zip(inputs, op.inputs, strict=True)]

        def failure(parts: Sequence[SearchedRows]) -> Exception | None:
            self._in_time()
            df = _evaluated(op, [p.frame() for p in parts], self.plan.shape(role.name))
            return _try(df, few=all(p.count <= FEW for p in parts))

        if isinstance(op, ops.Aggregate) and "OVERFLOW" in found.said.condition and not found.said.fragments:
            return self._group(found, op, held[0])
        chosen: list[SearchedRows] = list(held)

        def fails_with(i: int, part: SearchedRows) -> bool:
            return failure([p if j != i else part for j, p in enumerate(chosen)]) is not None

        for i, rows in enumerate(held):
            one = self._one(rows, partial(fails_with, i))
            if one is None:
                if isinstance(op, ops.Union):
                    continue
                return self._group(found, op, held[0]) if len(held) == 1 else found
            if isinstance(op, ops.Union):
                return replace(found, row=one.row())
            chosen[i] = one
        if len(held) == 1:
            return replace(found, row=chosen[0].row())
        # a side is not to blame when another of its rows fails in the same words
        sides = {}
        failing = failure(chosen)
        for i, up in enumerate(op.inputs):
            other = held[i].other(chosen[i])
            second = failure([p if j != i else other for j, p in enumerate(chosen)])
            if (
                other == chosen[i]
                or second is None
                or SparkError.of(second).message != SparkError.of(failing or second).message
            ):
                sides[up if up not in sides else f"{up} (right)"] = chosen[i].row()
        if not sides:
            sides = {up: rows.row() for up, rows in zip(op.inputs, chosen, strict=True)}
        if len(sides) == 1:
            return replace(
                found, row=next(iter(sides.values())), note=f"The row comes from '{next(iter(sides))}'."
            )
        return replace(found, row=sides or None)

    def _one(self, rows: SearchedRows, fails: Callable[[SearchedRows], bool]) -> SearchedRows | None:
        """The first row that fails by itself, by halves."""
        if rows.count == 0:
            return None
        while rows.count > 1:
            first, second = rows.halves()
            rows = first if fails(first) else second
        return rows if fails(rows) else None

    def _group(self, found: FoundRow, op: Op, rows: SearchedRows) -> FoundRow:
        """No row fails alone: the group whose rows fail together, if there are groups."""
        note = "No single row fails: it takes several together."
        if not isinstance(op, ops.Aggregate) or not op.keys or op.grouping != "groupBy":
            return replace(found, note=note)
        mark = F.xxhash64(*(as_column(k) for k in op.keys))
        marks = sorted(r[0] for r in rows.frame().select(mark).distinct().limit(100_000).collect())
        low, high = 0, len(marks)
        while high - low > 1:
            self._in_time()
            middle = (low + high) // 2
            part = rows.frame().filter((mark >= marks[low]) & (mark < marks[middle]))
            if _try(apply_native(op, [part], "keep")) is not None:
                high = middle
            else:
                low = middle
        keys = (
            rows.frame()
            .filter(mark == marks[low])
            .select(*(as_column(k) for k in op.keys))
            .distinct()
            .limit(2)
            .collect()
        )
        if len(keys) != 1:
            return replace(found, note=note)
        return replace(
            found, row=keys[0].asDict(recursive=True), note="It is the rows of this group together."
        )

    def _narrowed(self, role: _Role) -> EpochFrames:
        """The epoch over the one file in which the operator fails."""
        others = {n: (a, a) for n, (a, _) in self.covers.units.items()}
        filled = [n for n, (a, b) in self.covers.units.items() if a != b]
        for name in filled:
            start, stop = self.covers.units[name]
            if name != filled[-1] and _try(role.frame(self._probe({**others, name: (start, stop)}))) is None:
                continue
            source = self.context.sources.get(name)
            edges = source.units.edges if source is not None else range(start, stop)
            while between := [edge for edge in edges if start < edge < stop]:
                self._in_time()
                middle = between[len(between) // 2]
                if _try(role.frame(self._probe({**others, name: (start, middle)}))) is not None:
                    stop = middle
                else:
                    start = middle
            return self._probe({**others, name: (start, stop)})
        return self._probe()

    def _hold(self, df: DataFrame, name: str) -> SearchedRows:
        """The rows of a frame as files, in order, so that parts of them can be looked at cheaply."""
        self._in_time()
        plain = df.drop(*hidden(df)) if hidden(df) else df
        names = plain.columns
        self.scratch += 1
        folder = self.folder / f"search-{self.scratch}"
        physical = plain.toDF(*(f"c{i}" for i in range(len(names))))
        writer = physical.write.option("maxRecordsPerFile", FEW).option("compression", "lz4")
        writer_into(folder, writer).parquet(str(folder))
        files = [(p, pq.read_metadata(p).num_rows) for p in sorted(folder.glob("*.parquet"))]
        files = [f for f in files if f[1]]
        return SearchedRows(
            self.context.spark, self.plan, name, plain, tuple(files), 0, sum(n for _, n in files)
        )

    def _in_time(self) -> None:
        if time.monotonic() > self.until:
            raise _Late


class _Late(Exception):
    """The search has taken too long."""


def _evaluated(op: Op, parts: Sequence[DataFrame], shape: str) -> DataFrame:
    """What an operator computes of its input, and no more."""
    df = parts[0]
    match op:
        case ops.Filter():
            return df.select(as_column(op.condition).alias("v"))
        case ops.WithColumns() if shape == "one":
            return df.select(*(as_column(v).alias(f"v{i}") for i, v in enumerate(op.columns.values())))
        case ops.Python():
            return df.select(*(as_column(k) for k in op.by))
        case ops.Sort() if not any("." in key for key in op.keys):
            # Spark does not sort a single row, nor evaluate its keys
            return apply_native(op, [df.union(df)], shape)
    return apply_native(op, list(parts), shape)


def _try(df: DataFrame, *, few: bool = False) -> Exception | None:
    """What evaluating a frame raises; `few` rows come to the driver, which is quicker than a job that drops them."""
    try:
        if few:
            df.toDF(*(f"c{i}" for i in range(len(df.columns)))).toArrow()
        else:
            df.write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS as error:
        return error
    return None


def _mentions(op: Op, fragment: str) -> bool:
    wanted = _bare(fragment)
    return any(wanted in _bare(text) for text in op.expressions())


def _bare(text: str) -> str:
    return re.sub(r"[\s`()]+", "", str(text)).lower()
