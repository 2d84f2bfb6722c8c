"""From what Spark raises to what a person can act on: which operator, which row, what to do.

Spark says what failed, seldom where. The operator is found by the SQL text Spark quotes, else by trying operators in
order; the row by splitting: first the epoch's files, then halves of the rows of one file. All of it happens after a
failure, costs some twenty small jobs, and gives up after `PATIENCE` seconds with what is known by then. Nothing is
kept in memory: the rows that are searched lie in the failed attempt's folder, which is removed with it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from samovar.compile.native import apply_native, as_column, hidden
from samovar.errors import (
    EnvironmentProblem,
    ExpressionFailed,
    OperatorFailed,
    OutputMismatch,
    RunError,
    SamovarError,
    SourceError,
    StorageProblem,
)
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.ids import new_attempt
from samovar.runtime.epoch import Epoch, RunContext
from samovar.runtime.rejected import first_bad_row

__all__ = ["explain_failure", "explain_start", "what_was_lost"]

log = logging.getLogger("samovar.failures")

PATIENCE = 20.0
"""Seconds after which the search for a row is given up."""
FEW = 4096
"""So many rows are held by the driver in the last steps of the search."""
_FULL = ("No space left on device", "Disk quota exceeded", "ENOSPC")
_GONE = (
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "stopped SparkContext",
    "Answer from Java side is empty",
    "Error while obtaining a new communication channel",
    "Error while sending or receiving",
    "An error occurred while trying to connect to the Java server",
    "Connection refused",
    "INVALID_HANDLE.SESSION",
)
_SPARK = (PySparkException, Py4JError)
_LOST = (
    ("Python worker exited unexpectedly", "a Python worker died"),
    ("Python worker failed to connect back", "a Python worker did not start"),
    ("ExecutorLostFailure", "an executor died"),
    ("ExecutorDeadException", "an executor died"),
    ("Remote RPC client disassociated", "an executor died"),
    ("MetadataFetchFailed", "what an executor held was lost"),
    ("FetchFailed", "what an executor held was lost"),
    ("Missing an output location for shuffle", "what an executor held was lost"),
    ("Could not find block", "what an executor held was lost"),
    ("Failed to get broadcast", "what an executor held was lost"),
    ("BlockNotFoundException", "what an executor held was lost"),
    ("Connection reset by peer", "a connection to a worker broke"),
)


def explain_failure(context: RunContext, error: BaseException) -> BaseException:
    """The error to show for what ended a run. Runs Spark jobs to find operator and row when an expression failed."""
    if isinstance(error, SamovarError) or not isinstance(error, Exception):
        return error
    text = str(error)
    if any(sign in text for sign in _FULL):
        return StorageProblem(
            "The disk is full: the epoch could not be written.",
            hint="Free some space and resume the run; every committed epoch is kept.",
        )
    if any(sign in text for sign in _GONE) or _stopped(context.spark):
        done = len(context.history.epochs)
        kept = f"{done} epochs are committed: go on with" if done else "Start it anew, or go on with"
        return EnvironmentProblem(
            "The Spark session ended while the run was going on.",
            hint=f"{kept} sv.open({str(context.recording.path)!r}).resume(). "
            "If Java was killed, look whether the machine ran out of memory (spark.driver.memory).",
        )
    if isinstance(error, OSError):
        return StorageProblem(f"The recording could not be written: {error}.")
    if not isinstance(error, _SPARK):
        return error
    epoch = len(context.history.epochs)
    said = _Said.of(error)
    try:
        found = _Search(context).find(said)
    except Exception:  # what is known already is worth showing
        log.debug("the search for the cause failed", exc_info=True)
        found = None
    if found is None:
        operator = context.working
        about = f"Operator '{operator}' failed" if operator else "Spark could not go on"
        return RunError(f"{about} in epoch {epoch}: {said.text}", operator=operator, hint=_advice(said, None))
    return _to_show(context, found, epoch)


def explain_start(spark: SparkSession | None, error: Exception) -> SamovarError | None:
    """The error to show for what kept a run from starting; None when it explains itself."""
    if isinstance(error, SamovarError):
        return None
    if any(sign in str(error) for sign in _GONE) or (spark is not None and _stopped(spark)):
        return EnvironmentProblem(
            "Expected a live Spark session, got one that has ended.",
            hint="Make a new one (SparkSession.builder.getOrCreate()), or leave spark= out.",
        )
    if isinstance(error, _SPARK):
        said = _Said.of(error)
        return RunError(f"Spark could not prepare the run: {said.text}", hint=_advice(said, None))
    return None


def what_was_lost(error: BaseException) -> str | None:
    """In a few words, what Spark lost (a Python worker, an executor, what it held); None for any other failure."""
    if isinstance(error, SamovarError) or not isinstance(error, _SPARK):
        return None
    text = str(error)
    return next((words for sign, words in _LOST if sign in text), None)


@dataclass(frozen=True)
class _Said:
    """What Spark said of a failure, without its stack."""

    condition: str
    message: str
    fragments: tuple[str, ...] = ()
    python: str = ""
    """The traceback of a Python function, limited to the user's code."""

    @classmethod
    def of(cls, error: BaseException) -> _Said:
        text = str(error)
        condition = ""
        fragments: list[str] = []
        if isinstance(error, PySparkException):
            condition = str(error.getCondition() or "")
            try:
                fragments = [str(c.fragment()) for c in error.getQueryContext() if str(c.fragment() or "")]
            except Exception:
                fragments = []
        python = _python_traceback(text)
        if python:
            lines = python.splitlines()
            return cls(condition, lines[-1], tuple(fragments), python if len(lines) > 1 else "")
        wanted = re.search(r"\[([A-Z][A-Z_0-9.]+)\] ?([^\n]*(?:\n(?!==|\tat |JVM)[^\n]+)?)", text)
        if wanted:
            condition, line = condition or wanted.group(1), wanted.group(2)
        else:
            causes = re.findall(r"Caused by: [\w.$]+: ([^\n]+)", text)
            lines = [ln.strip() for ln in text.splitlines() if ln.strip()]
            line = (
                causes[-1]
                if causes
                else next((ln for ln in lines if not ln.startswith(("py4j.", "at "))), text)
            )
        line = re.sub(r"\s*SQLSTATE: \w+", "", line)
        line = re.sub(r' If necessary set "[\w.]+" to "false" to bypass this error\.', "", line)
        return cls(condition, line.strip()[:600], tuple(fragments))

    @property
    def text(self) -> str:
        """In a line or two: the message, and the expression it is about."""
        about = f"\n    in: {self.fragments[0]}" if self.fragments and not self.python else ""
        return f"{self.message}{about}"


@dataclass(frozen=True)
class _Found:
    operator: str
    said: _Said
    row: dict[str, Any] | None = None
    note: str = ""


def _to_show(context: RunContext, found: _Found, epoch: int) -> SamovarError:
    op = context.plan.graph.ops[found.operator]
    said = found.said
    if isinstance(op, ops.SOURCES):
        return _source_problem(context, op, said)
    crashed = "exited unexpectedly" in said.message or "crashed" in said.message
    if crashed:
        return OperatorFailed(
            op.name,
            row=None,
            error="an error: the Python process running it ended without a word",
            traceback="",
            epoch=epoch,
            during="its input",
            hint="It may have run out of memory, or called os._exit or native code that crashed.",
        )
    if isinstance(op, ops.Batches):
        return OutputMismatch(
            op.name,
            row=None,
            error=re.sub(r"^PySpark\w+: | It can be caused by.*$", "", said.message),
            traceback="",
            epoch=epoch,
            during="its output",
            hint=f"Its batches must fit its schema: {context.plan.schemas[op.name].simpleString()[7:-1][:300]}.",
        )
    return ExpressionFailed(
        op.name,
        error=said.text,
        row=found.row,
        epoch=epoch,
        hint=_advice(said, op),
        note=found.note,
        traceback=said.python,
    )


def _source_problem(context: RunContext, op: Op, said: _Said) -> SourceError:
    source = context.sources[op.name]
    if "MALFORMED" in said.condition or "failfast" in str(source.options.get("mode", "")).lower():
        covers = context.range
        units = covers.units.get(op.name, (0, len(source.units))) if covers else (0, len(source.units))
        bad = first_bad_row(context.spark, source, source.units[units[0] : units[1]] or source.units)
        if bad is not None:
            file, line, text = bad
            return SourceError(
                f"Expected rows of {source.struct.simpleString()[:300]}, got a row that does not parse:\n"
                f"    {file}, line {line or '?'}: {text[:300]}",
                operator=op.name,
                hint='Mend the file, or read it with mode="PERMISSIVE": such rows are then kept as rejected.',
            )
    named = re.search(r"reading file (?:file:/*)?(/?\S+?)\.(?:\s|$)", said.message)
    where = "/" + named.group(1).lstrip("/") if named else ", ".join(getattr(op, "path", ()))
    detail = re.sub(r"^Encountered error while reading file \S+\s*", "", said.message)
    return SourceError(
        f"Expected {source.format} data that can be read, got a file that cannot: {where}"
        + (f"\n    {detail}" if detail else ""),
        operator=op.name,
        hint="All files of a source need the same columns and types: move this one away or rewrite it."
        if "MISMATCH" in said.condition
        else "The file is damaged or of another format: replace it, or move it out of the folder.",
    )


def _advice(said: _Said, op: Op | None) -> str | None:
    condition = f"{said.condition} {said.message}"
    coerced = isinstance(op, ops.Union | ops.Join)
    if "DIVIDE_BY_ZERO" in condition or "Division by zero" in condition or "REMAINDER_BY_ZERO" in condition:
        return "Filter such rows out first, or use try_divide(a, b), which gives null."
    if "CAST_INVALID_INPUT" in condition and coerced:
        kind = "columns of a union" if isinstance(op, ops.Union) else "two sides of a join condition"
        return (
            f"The {kind} differ in type, so Spark casts: cast one side yourself, or use try_cast(... AS ...)."
        )
    if "CAST" in condition or "CANNOT_PARSE" in condition:
        return "Clean the value first, or use try_cast(... AS ...), which gives null."
    if "OVERFLOW" in condition or "NUMERIC_VALUE_OUT_OF_RANGE" in condition:
        return "Cast to a wider type first (decimal(38, 0), double), or use try_add / try_multiply / try_sum."
    if "INVALID_ARRAY_INDEX" in condition or "INVALID_INDEX_OF_ZERO" in condition:
        return "Use get(array, index) or try_element_at(array, position), which give null."
    if said.python:
        return "Handle such values in the function, or filter the rows out before."
    return None


# --- the search -----------------------------------------------------------------------------------------------------


class _Probe(Epoch):
    """The failed epoch once more, to look into: counts nothing, keeps nothing in memory."""

    def counted(self, name: str, level: int | None, df: DataFrame) -> DataFrame:
        return df

    def reused(self, df: DataFrame) -> DataFrame:
        return df

    def shared(self, key: str, make: Callable[[], DataFrame], by: Sequence[str] | None = None) -> DataFrame:
        return self.context.shared[key] if key in self.context.shared else make()


@dataclass(frozen=True)
class _Role:
    """An operator's part in an epoch: what it makes there, and out of what (None: no single rows to search)."""

    name: str
    frame: Callable[[_Probe], DataFrame]
    inputs: Callable[[_Probe], list[DataFrame] | None]
    streams: bool = False
    """Whether its input comes straight from slices of files, so that the search can begin with the files."""


class _Search:
    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.plan = context.plan
        self.until = time.monotonic() + PATIENCE
        self.scratch = 0

    def find(self, said: _Said) -> _Found | None:
        """The operator that fails in the epoch after the last committed one, and a row it fails on."""
        if self.context.range is None:
            return None
        self.context.describe("looking for the cause of a failure")
        probe = self._probe()
        roles = list(self._roles())
        quoted = [r for r in roles if any(_mentions(self.plan.graph.ops[r.name], f) for f in said.fragments)]
        for role in [*quoted, *(r for r in roles if r not in quoted)]:
            if quoted == [role]:  # nobody else has this text
                found = _Found(role.name, said)
            else:
                failed = _try(role.frame(probe))
                if failed is None:
                    if time.monotonic() > self.until:
                        return None
                    continue
                found = _Found(role.name, _Said.of(failed))
            try:
                return self._with_row(found, role)
            except _Late:
                return replace(found, note="The row was not looked for any longer.")
        return None

    def _probe(self, units: dict[str, tuple[int, int]] | None = None) -> _Probe:
        covers = self.context.range
        assert covers is not None
        if units is not None:
            covers = replace(covers, units=units)
        probe = _Probe(
            self.context, len(self.context.history.epochs), covers, attempt=f"probe-{new_attempt()}"
        )
        probe.folder.mkdir(parents=True, exist_ok=True)
        return probe

    def _roles(self) -> Iterator[_Role]:
        """What happens in the epoch, in the order of the workflow."""
        covers = self.context.range
        assert covers is not None
        place, graph = self.plan.placement, self.plan.graph
        for level in range(covers.low, covers.high + 1):
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
            lambda p: p.frames.stream(name, level),
            lambda p: self._streamed(p, op, level),
            streams=self._from_files(name),
        )

    def _whole(self, name: str, op: Op) -> _Role:
        return _Role(name, lambda p: p.frames.whole(name), lambda p: [p.frames.whole(up) for up in op.inputs])

    def _keyed(self, op: ops.Python, level: int) -> _Role:
        """The keys of a Python operator, apart from its code."""

        def keys(p: _Probe) -> DataFrame:
            made = [p.frames.stream(up, level).select(*(as_column(k) for k in op.by)) for up in op.inputs]
            return reduce(DataFrame.union, made)

        return _Role(
            op.name, keys, lambda p: self._streamed(p, op, level), streams=self._from_files(op.inputs[0])
        )

    def _ended(self, name: str, level: int) -> _Role:
        place = self.plan.placement
        covers = self.context.range
        assert covers is not None

        def frame(p: _Probe) -> DataFrame:
            return p.frames.stream(name, level) if level in place.streams[name] else p.frames.whole(name)

        def inputs(p: _Probe) -> list[DataFrame] | None:
            op = self.plan.graph.ops[name]
            if place.level[name] >= covers.low:
                return [p.frames.stream(up, place.level[name]) for up in op.inputs]
            if self.plan.shape(name) == "accumulate":
                return None
            return [
                p.frames._named(up, p.parts("deltas", f"{name}.{port}", p.frames.kept_schema(name, port)))
                for port, up in enumerate(op.inputs)
            ]

        return _Role(name, frame, inputs)

    def _taken(self, name: str, op: Op, level: int) -> Iterator[_Role]:
        if self.plan.shape(name) == "accumulate":
            yield _Role(
                name,
                lambda p: p.frames.partial(name),
                lambda p: [p.frames.stream(op.inputs[0], level)],
                streams=self._from_files(op.inputs[0]),
            )

    def _streamed(self, p: _Probe, op: Op, level: int) -> list[DataFrame]:
        place = self.plan.placement
        if op.name not in place.build:
            return [p.frames.stream(up, level) for up in op.inputs]
        b = 0 if place.build[op.name] == "left" else 1
        build = op.inputs[b]
        return [
            p.frames.whole(up)
            if up == build and i == b and op.name in place.inline
            else p.frames._named(up, p.whole(up))
            if i == b
            else p.frames.stream(up, level)
            for i, up in enumerate(op.inputs)
        ]

    def _from_files(self, name: str) -> bool:
        """Whether an operator's input in an epoch is a function of each file alone."""
        place, graph = self.plan.placement, self.plan.graph
        at = [graph.ops[name], *graph.upstream(name)]
        return all(place.free(o.name) for o in at) and not any(place.ends(o.name) for o in at)

    # --- the row ----------------------------------------------------------------------------------------------------

    def _with_row(self, found: _Found, role: _Role) -> _Found:
        op = self.plan.graph.ops[role.name]
        if isinstance(op, (*ops.SOURCES, *ops.SINKS, ops.Limit, ops.Sample, ops.Batches)) or (
            isinstance(op, ops.Python) and not op.by
        ):
            return found
        probe = self._narrowed(role) if role.streams else self._probe()
        inputs = role.inputs(probe)
        if inputs is None:
            return replace(found, note="It takes several rows together to fail.")
        held = [self._hold(probe, df, up) for df, up in zip(inputs, op.inputs, strict=True)]

        def failure(parts: Sequence[_Rows]) -> Exception | None:
            self._in_time()
            made = _evaluated(op, [p.frame() for p in parts], self.plan.shape(role.name))
            return _try(made, few=all(p.count <= FEW for p in parts))

        if isinstance(op, ops.Aggregate) and "OVERFLOW" in found.said.condition and not found.said.fragments:
            return self._group(found, op, held[0])
        chosen: list[_Rows] = list(held)

        def fails_with(i: int, part: _Rows) -> bool:
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
                or _Said.of(second).message != _Said.of(failing or second).message
            ):
                sides[up if up not in sides else f"{up} (right)"] = chosen[i].row()
        if not sides:
            sides = {up: rows.row() for up, rows in zip(op.inputs, chosen, strict=True)}
        if len(sides) == 1:
            return replace(
                found, row=next(iter(sides.values())), note=f"The row comes from '{next(iter(sides))}'."
            )
        return replace(found, row=sides or None)

    def _one(self, rows: _Rows, fails: Callable[[_Rows], bool]) -> _Rows | None:
        """The first row that fails by itself, by halves."""
        if rows.count == 0:
            return None
        while rows.count > 1:
            first, second = rows.halves()
            rows = first if fails(first) else second
        return rows if fails(rows) else None

    def _group(self, found: _Found, op: Op, rows: _Rows) -> _Found:
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

    def _narrowed(self, role: _Role) -> _Probe:
        """The epoch over the one file in which the operator fails."""
        covers = self.context.range
        assert covers is not None
        others = {n: (a, a) for n, (a, _) in covers.units.items()}
        filled = [n for n, (a, b) in covers.units.items() if a != b]
        for name in filled:
            start, stop = covers.units[name]
            if name != filled[-1] and _try(role.frame(self._probe({**others, name: (start, stop)}))) is None:
                continue
            while stop - start > 1:
                self._in_time()
                middle = (start + stop) // 2
                if _try(role.frame(self._probe({**others, name: (start, middle)}))) is not None:
                    stop = middle
                else:
                    start = middle
            return self._probe({**others, name: (start, stop)})
        return self._probe()

    def _hold(self, probe: _Probe, df: DataFrame, name: str) -> _Rows:
        """The rows of a frame as files, in order, so that parts of them can be looked at cheaply."""
        self._in_time()
        plain = df.drop(*hidden(df)) if hidden(df) else df
        names = plain.columns
        self.scratch += 1
        folder = probe.folder / f"search-{self.scratch}"
        physical = plain.toDF(*(f"c{i}" for i in range(len(names))))
        physical.write.option("maxRecordsPerFile", FEW).option("compression", "lz4").parquet(str(folder))
        files = [(p, pq.read_metadata(p).num_rows) for p in sorted(folder.glob("*.parquet"))]
        alias = name if name in self.plan.referenced else None
        return _Rows(self.context, plain, tuple(f for f in files if f[1]), 0, sum(n for _, n in files), alias)

    def _in_time(self) -> None:
        if time.monotonic() > self.until:
            raise _Late


class _Late(Exception):
    """The search has taken too long."""


@dataclass(frozen=True)
class _Rows:
    """Rows `start` to `stop` of some files."""

    context: RunContext
    like: DataFrame
    files: tuple[tuple[Path, int], ...]
    start: int
    stop: int
    alias: str | None

    @property
    def count(self) -> int:
        return self.stop - self.start

    def halves(self) -> tuple[_Rows, _Rows]:
        middle = (self.start + self.stop) // 2
        ends = 0
        for _, rows in self.files:  # cut between files while there are several
            ends += rows
            if self.start < ends < self.stop and abs(ends - middle) <= self.count // 4:
                middle = ends
                break
        return replace(self, stop=middle), replace(self, start=middle)

    def other(self, one: _Rows) -> _Rows:
        """A row apart from that one, if there is any: the last, or the first."""
        last = replace(self, start=self.stop - 1)
        return last if last != one else replace(self, stop=self.start + 1)

    def frame(self) -> DataFrame:
        """The rows as a frame: a few of them held by the driver, where Spark needs no job to evaluate expressions."""
        made = self._few() if self.count <= FEW else None
        if made is None:
            made = self._read()
        return made.alias(self.alias) if self.alias else made

    def _inside(self) -> list[tuple[Path, int, int, int]]:
        """Files that hold some of the rows: first, last and number of rows of each."""
        inside = []
        at = 0
        for path, rows in self.files:
            low, high = max(self.start - at, 0), min(self.stop - at, rows)
            if low < high:
                inside.append((path, low, high, rows))
            at += rows
        return inside

    def _few(self) -> DataFrame | None:
        inside = self._inside()
        if not inside:
            return None
        try:
            table = pa.concat_tables(pq.read_table(p).slice(low, high - low) for p, low, high, _ in inside)
            schema = StructType(
                [StructField(f"c{i}", f.dataType) for i, f in enumerate(self.like.schema.fields)]
            )
            return self.context.spark.createDataFrame(table, schema).toDF(*self.like.columns)
        except Exception:  # a type that Arrow and Spark see differently: read the files
            log.debug("rows could not be held by the driver", exc_info=True)
            return None

    def _read(self) -> DataFrame:
        spark = self.context.spark
        inside = self._inside()
        if not inside:
            return spark.createDataFrame([], self.like.schema)
        read = spark.read.parquet(*(str(p) for p, _, _, _ in inside))
        name, index = F.col("_metadata.file_name"), F.col("_metadata.row_index")
        for path, low, high, rows in inside:
            if low:
                read = read.filter((name != path.name) | (index >= low))
            if high < rows:
                read = read.filter((name != path.name) | (index < high))
        return read.toDF(*self.like.columns)

    def row(self) -> dict[str, Any] | None:
        found = self._read().limit(1).collect()
        return dict(zip(self.like.columns, found[0], strict=True)) if found else None


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
            return apply_native(
                op, [df.union(df)], shape
            )  # Spark does not sort, nor evaluate the keys of, one row
    return apply_native(op, list(parts), shape)


def _try(df: DataFrame, *, few: bool = False) -> Exception | None:
    """What evaluating a frame raises; `few` rows come to the driver, which is quicker than a job that drops them."""
    try:
        if few:
            df.toDF(*(f"c{i}" for i in range(len(df.columns)))).toArrow()
        else:
            df.write.format("noop").mode("overwrite").save()
    except _SPARK as error:
        return error
    return None


def _mentions(op: Op, fragment: str) -> bool:
    wanted = _bare(fragment)
    return any(wanted in _bare(text) for text in op.expressions())


def _bare(text: str) -> str:
    return re.sub(r"[\s`()]+", "", str(text)).lower()


def _stopped(spark: SparkSession) -> bool:
    try:
        spark_context = spark.sparkContext
    except Exception:  # Spark Connect has none
        return False
    try:
        return spark_context._jsc is None or not spark_context.defaultParallelism
    except Exception:
        return True


_FRAME = re.compile(r'  File "(?P<file>[^"]+)", line \d+, in [^\n]*\n(?:    [^\n]*\n)*')


def _python_traceback(text: str) -> str:
    """The last Python traceback in a text, without the frames of Spark, of Samovar and of libraries."""
    start = text.rfind("Traceback (most recent call last):")
    if start < 0:
        return ""
    body = text[start:].split("\n\tat ")[0].split("\n\nJVM stacktrace")[0]
    frames = [m for m in _FRAME.finditer(body) if not _foreign(m.group("file"))]
    ends = [m.end() for m in _FRAME.finditer(body)]
    last = body[ends[-1] :].strip() if ends else body.splitlines()[-1]
    last = re.sub(r"^[\w.]+\.(\w+(?:Error|Exception|Warning)):", r"\1:", last)
    if not frames:
        return last[:800].splitlines()[0]
    return "Traceback (most recent call last):\n" + "".join(m.group(0) for m in frames[-8:]) + last[:800]


def _foreign(file: str) -> bool:
    return any(
        part in file for part in ("/pyspark/", "pyspark.zip", "/samovar/", "site-packages", "/lib/python3")
    )
