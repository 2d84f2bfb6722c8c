"""Python operators under trace, inside Spark's workers: the recorded code over the recorded rows, one tuple at a time.

The running form (`runtime/worker/chain.py`) brings the operators to the window; from there on every step is written
down: the tuples it gave and what it changed. Nothing is saved: a trace leaves the recording as it is. Trace records
travel beside the rows in a column of their own, pickled; they come from our own workers over Spark's own channel.
"""

from __future__ import annotations

import ast
import os
import pickle
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import CodeType
from typing import Any

import pyarrow as pa

from samovar.errors import ReplayDiffers
from samovar.graph.logged_results import swap
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.state import declared
from samovar.positions import AT_END, START, Position, reaches
from samovar.record.state_files import dumps
from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.user_errors import RAISED, UserError, raised
from samovar.runtime.worker.arrival import in_arrival_order
from samovar.runtime.worker.batch import View
from samovar.runtime.worker.chain import FLUSH, Chain
from samovar.runtime.worker.entry import settle_garbage

__all__ = ["TRACE", "Probe", "Record", "probing_function", "read_records", "tracing_function"]

TRACE = "__sv_trace"
"""The column of trace records; null in rows that flow on."""

CHUNK = 8 << 20
"""Bytes of records that are compressed at once."""


@dataclass(frozen=True, slots=True)
class Record:
    """What one step did. `at` None: what the steps before the window changed since the epoch began."""

    stage: int
    bucket: int
    port: int
    at: Position | None
    outputs: tuple[tuple[Position, tuple[Any, ...]], ...]
    changes: dict[str, Any]
    error: Any = None
    """The failure, when the step raised."""
    ended: bool = False
    """Whether this is the step at the end of the input."""
    given: int = 0
    """With `at` None: how many tuples the steps before the window gave."""
    results: tuple[Any, ...] = ()
    """What `log_result` gave in this step."""
    version: int = 0
    """The code it ran with, if the operator switched to other code inside the epoch."""


def tracing_function(
    task: Task, start: Position | None, *, passes: bool = False
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows flow on as in a run; from `start` on, steps are recorded.

    `passes`: nobody needs the rows that are given before `start`, so that they are not sent on.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_garbage()
        tracer = _Tracer(task, start, passes=passes)
        try:
            for batch in tracer.run(in_arrival_order(task.order_log, batches) if task.arrival else batches):
                yield _with_trace(batch, None)
                yield from tracer.drained()
        except UserError as error:
            tracer.failed(error)
            for _ in batches:
                pass
        yield from tracer.drained()

    return run


def read_records(column: pa.ChunkedArray) -> list[Record]:
    """The records of a trace column, in the order they were written."""
    made = []
    for blob in column.to_pylist():
        for stage, bucket, port, at, told, error, ended, given in pickle.loads(_unpacked(blob)):
            outputs, changes, logged, *version = pickle.loads(told)
            made.append(
                Record(stage, bucket, port, at, outputs, changes, error, ended, given, logged, *version)
            )
    return made


class _Tracer(Chain):
    """A chain that writes down its steps."""

    def __init__(self, task: Task, start: Position | None, *, passes: bool = False) -> None:
        super().__init__(replace(task, saves=False, signs=False, marks=(), run=f"{task.run}#trace"))
        self.start = start or START
        self.passes = passes
        self.based = False
        self.made: list[list[tuple[Position, tuple[Any, ...]]]] = [[] for _ in task.stages]
        self.records: list[tuple[Any, ...]] = []
        self.packed: list[bytes] = []
        """Records of earlier steps, compressed: states that change as a whole resemble each other."""
        self.size = 0
        self.used: dict[int, int] = {}
        self.inside = False
        """Whether the tuple at hand lies in the window: what is given before it is not written down."""
        self.doing: tuple[int, int, Position] | None = None
        self.begun: list[tuple[int, int, Position]] = []
        """The steps of the window that have begun and not ended: that of each operator down the chain."""
        self.schema = pa.schema([])

    def drained(self) -> Iterator[pa.RecordBatch]:
        """The records so far, as a batch of their own."""
        self._pack()
        if self.packed and len(self.schema):
            columns = [pa.nulls(1, f.type) for f in self.schema]
            batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
            packed, self.packed = self.packed, []
            for blob in packed:
                yield _with_trace(batch, blob)

    def _pack(self) -> None:
        if self.records:
            self.packed.append(_packed(dumps(self.records)))
            self.records, self.size = [], 0

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.schema = self.output_schema()
        yield from super().run(batches)

    def failed(self, error: UserError) -> None:
        """The step that raised is a record too, with what it gave and changed before; so are those that led to it."""
        for stage, port, at in self.begun[:-1]:
            self._record(stage, port, at)
        if self.doing is not None:
            stage, port, at = self.doing
            self._record(stage, port, at, error=error.failure)

    # --- rows before the window -------------------------------------------------------------------------------------

    def _feed_stretch(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        behind = start
        if self.passes and self._alone(view):
            size = len(self.start)
            behind += bisect_left(range(start, stop), self.start, key=lambda i: view.place(i)[:size])
        if behind > start:
            self._pass_by(view, start, behind)
        if behind < stop:
            yield from super()._feed_stretch(view, behind, stop)

    def _alone(self, view: View) -> bool:
        """Whether the chain is one operator with one port that gets its rows in order and took them as they are."""
        task = self.task
        plain = len(task.stages) == 1 and view.ports is None and task.stateful and not task.arrival
        return plain and not (
            self.decided or self.task.switches or is_batch_form(type(self.loaded[0].instance))
        )

    def _pass_by(
        self, view: View, start: int, stop: int, holds: Callable[[dict[str, Any]], Any] | None = None
    ) -> int | None:
        """Rows of an operator that is alone, at the speed of a run: what it gives is counted, and compared.

        Stops behind the first row after which something holds, and says which one that was.
        """
        name, loaded, pick = self.task.stages[0].name, self.loaded[0], self.pickers[0]
        process = self._process(0)
        rows: list[tuple[Any, ...]] = []
        number, row, out, made, asking, found = start - 1, None, None, None, False, None
        outside = swap(loaded.results)
        try:
            for number, row in enumerate(view.rows(start, stop), start):
                out = process(row)
                if out is not None:
                    for made in out:
                        if made is not None:
                            rows.append(pick(made) if pick is not None else self._pick(0, made))
                    if len(rows) >= FLUSH:
                        self._count_given(rows)
                if holds is not None:
                    asking = True
                    if holds(row):
                        found = number
                        break
                    asking = False
        except RAISED as error:
            self.doing, self.path[0], self.made[0] = (0, 0, view.position(number)), row, []
            if asking or isinstance(error, UserError | ReplayDiffers):
                raise
            if made is not None and isinstance(error, KeyError | TypeError | IndexError):
                self._pick(0, made)  # raises with what is missing, if that is it
            self._no_rows(0, out, error)
            raise UserError(raised(name, row, error)) from None
        finally:
            swap(outside)
        self.taken[0][0] += number + 1 - start
        self._count_given(rows)
        return found

    def _count_given(self, rows: list[tuple[Any, ...]]) -> None:
        self.given[0] += len(rows)
        self.loaded[0].prints.add(rows)
        rows.clear()

    # --- one tuple --------------------------------------------------------------------------------------------------

    def _feed(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        traced = self.inside = reaches(at, self.start)
        self.doing = (stage, port, at)
        if not traced:
            super()._feed(stage, row, port, at)
            return
        if not self.based:
            self._base()
        self.made[stage] = []
        self.begun.append(self.doing)
        super()._feed(stage, row, port, at)
        self.begun.pop()
        self._record(stage, port, at)

    def _emit(self, stage: int, row: Mapping[str, Any], at: Position) -> None:
        if not self.inside:
            if self.passes and stage + 1 == len(self.task.stages):
                self.given[stage] += 1
                self.loaded[stage].prints.add_one(self._pick(stage, row))
            else:
                super()._emit(stage, row, at)
            return
        self.made[stage].append((at, self._pick(stage, row)))
        made, doing = self.made[stage], self.doing
        super()._emit(stage, row, at)
        self.made[stage], self.doing = made, doing

    def _feed_batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """A batch form under trace gets its rows one by one: what it makes must not depend on how rows are cut."""
        for i in range(start, stop):
            port = view.ports[i] if view.ports is not None else 0
            at = view.position(i)
            traced = reaches(at, self.start)
            if traced and not self.based:
                self._base()
            self.made[0] = []
            self.doing = (0, port, at)
            for batch in super()._feed_batches(view, i, i + 1):
                shown = batch.select(self.task.stages[0].schema.names).to_pylist(maps_as_pydicts="strict")
                children = len(self.made[0])
                self.made[0] += [((*at, children + n), tuple(row.values())) for n, row in enumerate(shown)]
                yield batch
            if traced:
                self._record(0, port, at)

    def _finish_all(self) -> Iterator[pa.RecordBatch]:
        if not self.based:
            self._base()
        self.inside = True
        for stage in range(len(self.loaded)):
            self.made[stage] = []
            yield from self._finish(stage)
            self._record(stage, 0, (), ended=True)

    # --- state ------------------------------------------------------------------------------------------------------

    def _enter(self, bucket: int) -> None:
        if self.bucket == bucket:
            return
        super()._enter(bucket)
        self.based = False
        self.used = {}
        for loaded in self.loaded:
            loaded.capture.settle(loaded.capture.known)

    def _leave(self) -> None:
        if self.bucket is not None and not self.based:
            self._base()
        super()._leave()

    def _base(self) -> None:
        """What the steps before the window changed since the epoch began."""
        self.based = True
        for stage in range(len(self.loaded)):
            self.made[stage] = []
            self._record(stage, 0, None)

    def _record(
        self, stage: int, port: int, at: Position | None, *, error: Any = None, ended: bool = False
    ) -> None:
        changes = self.loaded[stage].take_changes()
        results = self.loaded[stage].results
        logged = results.since(self.used.get(stage, 0))
        self.used[stage] = results.place
        version = self.switches.version(stage, at) if self.switches is not None else 0
        # pickled now: the next step may change what they hold
        told = dumps((tuple(self.made[stage]), changes, logged, version))
        given = self.given[stage] if at is None else 0
        self.records.append((stage, self.bucket or 0, port, at, told, error, ended, given))
        self.size += len(told)
        if self.size > CHUNK:
            self._pack()
        self.made[stage] = []


def _packed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + bytes(pa.compress(data, codec="zstd", asbytes=True))


def _unpacked(data: bytes) -> bytes:
    size = int.from_bytes(data[:8], "little")
    return bytes(pa.decompress(data[8:], decompressed_size=size, codec="zstd", asbytes=True))


def _with_trace(batch: pa.RecordBatch, records: bytes | None) -> pa.RecordBatch:
    column = pa.array([records] * batch.num_rows, type=pa.binary())
    fields = [pa.field(f.name, f.type, True) for f in batch.schema]
    return pa.RecordBatch.from_arrays(
        [*batch.columns, column], schema=pa.schema([*fields, pa.field(TRACE, pa.binary())])
    )


@dataclass(frozen=True)
class Probe:
    """What to look for in a stage's states: the first step after which it holds, or the last that changed a key."""

    stage: int
    expression: str | None = None
    """A Python expression over the state's names and `row`."""
    function: bytes | None = None
    """A pickled callable of the state."""
    key: tuple[str | None, Any] | None = None
    """A state's name (None: any) and a key in it: looked for is the last step that changed it."""
    before: Position | None = None
    """Only steps before this position count."""
    over: str = ""
    """A file that comes to be when the search is over, because it was found before."""
    places: tuple[int, int] | None = None
    """Looked for are so many steps behind so many others: where their tuples lie."""


def probing_function(
    task: Task, probe: Probe
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows flow on as in a run; what the probe found comes as a record."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_garbage()
        prober = _Prober(task, probe)
        for batch in prober.run(in_arrival_order(task.order_log, batches) if task.arrival else batches):
            yield _with_trace(batch, None)
        yield from prober.drained()

    return run


_NOTHING = dumps(((), {}, ()))


class _Prober(_Tracer):
    """Looks at the state after each step of one stage; records the step that was looked for."""

    def __init__(self, task: Task, probe: Probe) -> None:
        super().__init__(task, None)
        self.probe = probe
        self.found: dict[int, tuple[Any, ...]] = {}
        self.asked: tuple[Operator, Callable[[Mapping[str, Any] | None], Any]] | None = None
        self.over = False
        """Whether nobody waits any more for what is found here."""
        self.seen = 0

    @property
    def done(self) -> bool:
        """Whether the rest of the bucket need not run: the first step was looked for, and it is found.

        A stateless operator takes its tuples in any order: there may be an earlier one.
        """
        return self.over or (self.asks and self.task.stateful and (self.bucket or 0) in self.found)

    def _feed_stretch(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        self.over = self.over or (bool(self.probe.over) and os.path.exists(self.probe.over))
        if self.done:
            return
        if not self.asks or not self._alone(view):
            yield from super()._feed_stretch(view, start, stop)
            return
        found = self._pass_by(view, start, stop, self.holds)
        if found is not None:
            self._find(0, view.position(found))

    def _feed(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        if self.done:
            return
        Chain._feed(self, stage, row, port, at)
        if stage == self.probe.stage:
            self._look(port, at, row)

    def _feed_batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        for i in range(start, stop):
            if self.done:
                return
            port = view.ports[i] if view.ports is not None else 0
            for _ in Chain._feed_batches(self, view, i, i + 1):
                pass
            self._look(port, view.position(i), view.batch_of(port, i, i + 1).to_pylist()[0])
        yield from ()

    def _emit(self, stage: int, row: Mapping[str, Any], at: Position) -> None:
        """What is given behind the operator is not looked at by anybody."""
        if stage < self.probe.stage:
            Chain._emit(self, stage, row, at)
        else:
            self.loaded[stage].prints.add_one(self._pick(stage, row))

    def _look(self, port: int, at: Position, row: Mapping[str, Any] | None, *, ended: bool = False) -> None:
        probe, bucket = self.probe, self.bucket or 0
        if probe.places is not None:
            if probe.places[0] <= self.seen < sum(probe.places) and not ended:
                self.records.append((probe.stage, bucket, port, at, _NOTHING, None, ended, 0))
            self.seen += 1
            return
        if probe.before is not None and reaches(at, probe.before):
            return
        if probe.key is not None:
            if _touches(self.loaded[probe.stage].take_changes(), *probe.key):
                self._find(port, at, ended=ended)
            return
        if (bucket not in self.found or at < self.found[bucket][3]) and self.holds(row):
            self._find(port, at, ended=ended)

    def _find(self, port: int, at: Position, *, ended: bool = False) -> None:
        bucket = self.bucket or 0
        self.found[bucket] = (self.probe.stage, bucket, port, at, _NOTHING, None, ended, 0)

    @cached_property
    def asks(self) -> bool:
        """Whether the first step is looked for after which something holds."""
        return self.probe.expression is not None or self.probe.function is not None

    @property
    def holds(self) -> Callable[[Mapping[str, Any] | None], Any]:
        """The predicate, asked about the operator at work now and the tuple it has just processed."""
        instance = self.loaded[self.probe.stage].instance
        if self.asked is None or self.asked[0] is not instance:
            self.asked = (instance, self._question(instance))
        return self.asked[1]

    def _question(self, instance: Operator) -> Callable[[Mapping[str, Any] | None], Any]:
        kinds, now = tuple(declared(type(instance))), vars(instance)
        if self.probe.function is not None:
            function = pickle.loads(self.probe.function)
            return lambda row: function({n: getattr(instance, n) for n in (*kinds, *now)})
        named, code = self.expression
        asks_row = "row" in code.co_names
        for name in kinds:
            getattr(instance, name)  # a state is there from its first use on
        scope: dict[str, Any] = {}

        def holds(row: Mapping[str, Any] | None) -> Any:
            for name in named:
                if name in now:
                    scope[name] = now[name]
                else:
                    scope.pop(name, None)
            scope["row"] = row
            try:
                return eval(code, scope)
            except (TypeError, AttributeError):
                if row is None and asks_row:
                    return False  # at an end there is no row to ask about: `row["amount"] > 9` does not hold
                raise

        return holds

    @cached_property
    def expression(self) -> tuple[tuple[str, ...], CodeType]:
        """The names in the predicate, and its code: read once, it is asked after every tuple."""
        text = self.probe.expression or ""
        named = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
        return tuple(named - {"row"}), compile(text, "<predicate>", "eval")

    def _finish_all(self) -> Iterator[pa.RecordBatch]:
        for stage in range(len(self.loaded) if not self.done else 0):
            yield from self._finish(stage)
            if stage == self.probe.stage:
                self._look(0, AT_END, None, ended=True)

    def _base(self) -> None:
        self.based = True

    def _leave(self) -> None:
        Chain._leave(self)

    def drained(self) -> Iterator[pa.RecordBatch]:
        self.records += self.found.values()
        yield from super().drained()


def _touches(changes: Mapping[str, Any], name: str | None, key: Any) -> bool:
    """Whether changes reach a key of a map, or a plain value that is named."""
    for own, (replaced, changed, deleted) in changes["maps"].items():
        if name in (None, own) and (replaced or key in changed or key in deleted):
            return True
    return name is not None and (name in changes["values"] or name in changes["lists"]) and key is None
