"""Python operators under trace, inside Spark's workers: the recorded code over the recorded rows, one tuple at a time.

The chain of a run (`runtime/worker/chain.py`) brings the operators to the window; from there on an observer records
every step: the tuples it gave and what it changed. Nothing is saved: a trace leaves the recording as it is. Trace
records travel beside the rows in a column of their own, pickled; they come from our own workers over Spark's channel.
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
from typing import Any, NamedTuple

import pyarrow as pa

from samovar.errors import ReplayDiffers
from samovar.graph.logged_results import swap
from samovar.graph.operator import Operator, is_batch_form
from samovar.graph.state import declared
from samovar.positions import AT_END, START, Position, reaches
from samovar.record.state_files import dumps
from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.user_errors import RAISED, UserError, raised
from samovar.runtime.worker.batch import View
from samovar.runtime.worker.chain import FLUSH, Chain, Observer
from samovar.runtime.worker.entry import rows_of

__all__ = ["TRACE", "Probe", "Record", "probing_function", "read_records", "touches", "tracing_function"]

TRACE = "__sv_trace"
"""The column of trace records; null in rows that flow on."""

CHUNK = 8 << 20
"""Bytes of records that are compressed at once."""


class Record(NamedTuple):
    """What one step did. With `at` None: what the steps between the epoch's start and the window changed."""

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
    """With `at` None: how many tuples the steps before the window produced."""
    results: tuple[Any, ...] = ()
    """What `log_result` returned in this step."""
    version: int = 0
    """The version of the operator's code in this step, if it switched to other code inside the epoch."""


@dataclass(frozen=True)
class Probe:
    """What to search for in a stage's states: the first step after which a predicate holds, the last step that changed
    a key, or the positions of some steps."""

    stage: int
    expression: str | None = None
    """A Python expression over the state's names and `row`."""
    function: bytes | None = None
    """A pickled callable of the state."""
    key: tuple[str | None, Any] | None = None
    """A state's name (None: any) and a key in it: the search is for the last step that changed it."""
    before: Position | None = None
    """Only steps before this position count."""
    over: str = ""
    """A file that appears when the search is over, because an earlier piece has the answer."""
    places: tuple[int, int] | None = None
    """How many steps to skip and how many to report: the search is for the positions of their tuples."""


def tracing_function(
    task: Task, start: Position | None, *, passes: bool = False
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows flow on as in a run; from `start` on, steps are recorded.

    `passes`: nobody needs the output before `start`, so it is not sent on.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        recorder = _StepRecorder(start, passes=passes)
        chain = _replayed(task, recorder)
        try:
            for batch in chain.run(rows_of(task, batches)):
                yield _with_trace(batch, None)
                yield from recorder.drained()
        except UserError as error:
            recorder.failed(error)
            for _ in batches:
                pass
        yield from recorder.drained()

    return run


def probing_function(
    task: Task, probe: Probe
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows flow on as in a run; steps that the probe finds are reported as records."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prober = _Prober(probe)
        for batch in _replayed(task, prober).run(rows_of(task, batches)):
            yield _with_trace(batch, None)
        for record in prober.found.values():
            prober.report(record)
        yield from prober.drained()

    return run


def _replayed(task: Task, observer: Observer) -> Chain:
    """A chain over the rows of a past epoch. Writes no files; caches its states apart from those of the run."""
    return Chain(replace(task, saves=False, signs=False, marks=(), run=f"{task.run}#trace"), observer)


def read_records(column: pa.ChunkedArray) -> list[Record]:
    """The records of a trace column, in the order they were written."""
    records: list[Record] = []
    for blob in column.to_pylist():
        with pa.CompressedInputStream(pa.BufferReader(blob), "zstd") as stream:
            records += (Record(*pickle.loads(record)) for record in pickle.loads(stream.read()))
    return records


def _with_trace(batch: pa.RecordBatch, records: bytes | None) -> pa.RecordBatch:
    column = pa.array([records] * batch.num_rows, type=pa.binary())
    fields = [pa.field(f.name, f.type, True) for f in batch.schema]
    return pa.RecordBatch.from_arrays(
        [*batch.columns, column], schema=pa.schema([*fields, pa.field(TRACE, pa.binary())])
    )


class _Reader(Observer):
    """What a recorder of steps and a prober share: records on their way out, and rows processed at a run's speed."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.packed: list[bytes] = []
        """Records of earlier steps, compressed: states that change as a whole resemble each other."""
        self.size = 0
        self.doing: tuple[int, int, Position] | None = None
        """The step that has begun last: stage, port and position."""

    def entered(self) -> None:
        for loaded in self.chain.loaded:
            loaded.capture.settle(loaded.capture.known)

    def drained(self) -> Iterator[pa.RecordBatch]:
        """The records so far, as batches of their own."""
        self._pack()
        if self.packed:
            schema = self.chain.output_schema()
            nulls = pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in schema], schema=schema)
            packed, self.packed = self.packed, []
            for blob in packed:
                yield _with_trace(nulls, blob)

    def report(self, record: Record) -> None:
        """Send a record. It is pickled at once: the next step may change the values it holds."""
        self.records.append(dumps(tuple(record)))  # a plain tuple is pickled in a tenth of the time
        self.size += len(self.records[-1])
        if self.size > CHUNK:
            self._pack()

    def _pack(self) -> None:
        if self.records:
            self.packed.append(pa.compress(dumps(self.records), codec="zstd", asbytes=True))
            self.records, self.size = [], 0

    def _alone(self, view: View) -> bool:
        """Whether the chain is one operator with one port that takes its rows in order, none skipped or replaced."""
        chain, task = self.chain, self.chain.task
        plain = len(task.stages) == 1 and view.ports is None and task.stateful and not task.arrival
        return plain and not (chain.decided or task.switches or is_batch_form(type(chain.loaded[0].instance)))

    def _pass_by(
        self, view: View, start: int, stop: int, holds: Callable[[dict[str, Any]], Any] | None = None
    ) -> int | None:
        """Process rows of an operator that is alone at the speed of a run: its output is only counted and compared.

        Stops behind the first row after which `holds` is true, and returns that row's number. This is the chain's
        plain loop without control and output: sharing it would slow the run's loop down.
        """
        chain = self.chain
        name, loaded, pick = chain.task.stages[0].name, chain.loaded[0], chain.pickers[0]
        process = chain.process(0)
        rows: list[tuple[Any, ...]] = []
        number, row, out, output, asking, match = start - 1, None, None, None, False, None
        outside = swap(loaded.results)
        try:
            for number, row in enumerate(view.rows(start, stop), start):
                out = process(row)
                if out is not None:
                    for output in out:
                        if output is not None:
                            rows.append(pick(output) if pick is not None else chain.pick(0, output))
                    if len(rows) >= FLUSH:
                        self._count_given(rows)
                if holds is not None:
                    asking = True
                    if holds(row):
                        match = number
                        break
                    asking = False
        except RAISED as error:
            self.doing, chain.path[0] = (0, 0, view.position(number)), row
            if asking or isinstance(error, UserError | ReplayDiffers):
                raise
            if output is not None and isinstance(error, KeyError | TypeError | IndexError):
                chain.pick(0, output)  # raises with what is missing, if that is it
            chain.check_rows(0, out, error)
            raise UserError(raised(name, row, error)) from None
        finally:
            swap(outside)
        chain.taken[0][0] += number + 1 - start
        self._count_given(rows)
        return match

    def _count_given(self, rows: list[tuple[Any, ...]]) -> None:
        self.chain.given[0] += len(rows)
        self.chain.loaded[0].prints.add(rows)
        rows.clear()


class _StepRecorder(_Reader):
    """Records the steps of a window."""

    def __init__(self, start: Position | None, *, passes: bool = False) -> None:
        super().__init__()
        self.start = start or START
        self.passes = passes
        self.based = False
        self.outputs: dict[int, list[tuple[Position, tuple[Any, ...]]]] = {}
        """The output of each operator in its present step."""
        self.used: dict[int, int] = {}
        self.inside = False
        """Whether the present tuple lies in the window: output before the window is not recorded."""
        self.begun: list[tuple[int, int, Position]] = []
        """The steps of the window that have begun and not ended: that of each operator down the chain."""

    def failed(self, error: UserError) -> None:
        """Record the step that raised, with its output and changes up to there; and the steps that led to it."""
        for stage, port, at in self.begun[:-1]:
            self._record(stage, port, at)
        if self.doing is not None:
            stage, port, at = self.doing
            self._record(stage, port, at, error=error.failure)

    def entered(self) -> None:
        super().entered()
        self.based = False
        self.used = {}

    def leaving(self) -> None:
        self._base()

    def stretch(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        behind = start
        if self.passes and self._alone(view):
            size = len(self.start)
            behind += bisect_left(range(start, stop), self.start, key=lambda i: view.place(i)[:size])
        if behind > start:
            self._pass_by(view, start, behind)
        if behind < stop:
            yield from self.chain.stretch(view, behind, stop)

    def step(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        self.inside = reaches(at, self.start)
        self.doing = (stage, port, at)
        if not self.inside:
            self.chain.step(stage, row, port, at)
            return
        self._base()
        self.outputs[stage] = []
        self.begun.append(self.doing)
        self.chain.step(stage, row, port, at)
        self.begun.pop()
        self._record(stage, port, at)

    def give(self, stage: int, row: Mapping[str, Any], at: Position) -> None:
        chain = self.chain
        if self.inside:
            self.outputs.setdefault(stage, []).append((at, chain.pick(stage, row)))
            doing = self.doing
            chain.give(stage, row, at)
            self.doing = doing  # the operators behind it have finished this tuple
        elif self.passes and stage + 1 == len(chain.task.stages):
            chain.given[stage] += 1
            chain.loaded[stage].prints.add_one(chain.pick(stage, row))
        else:
            chain.give(stage, row, at)

    def batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Process row by row: the output of an operator in batch form must not depend on how rows are cut."""
        for i in range(start, stop):
            port = view.ports[i] if view.ports is not None else 0
            at = view.position(i)
            traced = reaches(at, self.start)
            if traced:
                self._base()
            outputs = self.outputs[0] = []
            self.doing = (0, port, at)
            for batch in self.chain.batches(view, i, i + 1):
                rows = batch.select(self.chain.task.stages[0].schema.names).to_pylist(
                    maps_as_pydicts="strict"
                )
                first = len(outputs)
                outputs += [((*at, first + n), tuple(row.values())) for n, row in enumerate(rows)]
                yield batch
            if traced:
                self._record(0, port, at)

    def finish(self, stage: int) -> Iterator[pa.RecordBatch]:
        self._base()
        self.inside = True
        self.outputs[stage] = []
        yield from self.chain.finish(stage)
        self._record(stage, 0, (), ended=True)

    def _base(self) -> None:
        """Record, once in a bucket, what the steps between the epoch's start and the window changed."""
        if not self.based:
            self.based = True
            for stage in range(len(self.chain.loaded)):
                self.outputs[stage] = []
                self._record(stage, 0, None)

    def _record(
        self, stage: int, port: int, at: Position | None, *, error: Any = None, ended: bool = False
    ) -> None:
        chain, loaded = self.chain, self.chain.loaded[stage]
        results = loaded.results.since(self.used.get(stage, 0))
        self.used[stage] = loaded.results.place
        self.report(
            Record(
                stage,
                chain.bucket or 0,
                port,
                at,
                tuple(self.outputs.get(stage, ())),
                loaded.take_changes(),
                error,
                ended,
                chain.given[stage] if at is None else 0,
                results,
                chain.switches.version(stage, at) if chain.switches is not None else 0,
            )
        )
        self.outputs[stage] = []


class _Prober(_Reader):
    """Looks at the state after each step of one stage; reports the step that the probe describes."""

    def __init__(self, probe: Probe) -> None:
        super().__init__()
        self.probe = probe
        self.found: dict[int, Record] = {}
        """By bucket."""
        self.asked: tuple[Operator, Callable[[Mapping[str, Any] | None], Any]] | None = None
        self.over = False
        """Whether nobody waits for this search any more."""
        self.seen = 0

    @property
    def done(self) -> bool:
        """Whether the rest of the bucket need not run: the search is for the first step, and it is found.

        A stateless operator takes its tuples in any order: an earlier tuple may still come.
        """
        found = (self.chain.bucket or 0) in self.found
        return self.over or (self.asks and self.chain.task.stateful and found)

    def stretch(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        self.over = self.over or (bool(self.probe.over) and os.path.exists(self.probe.over))
        if self.done:
            return
        if not self.asks or not self._alone(view):
            yield from self.chain.stretch(view, start, stop)
            return
        match = self._pass_by(view, start, stop, self.holds)
        if match is not None:
            self._find(0, view.position(match))

    def step(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        if self.done:
            return
        self.chain.step(stage, row, port, at)
        if stage == self.probe.stage:
            self._look(port, at, row)

    def batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        for i in range(start, stop):
            if self.done:
                return
            port = view.ports[i] if view.ports is not None else 0
            for _ in self.chain.batches(view, i, i + 1):
                pass
            self._look(port, view.position(i), view.batch_of(port, i, i + 1).to_pylist()[0])
        yield from ()

    def give(self, stage: int, row: Mapping[str, Any], at: Position) -> None:
        """Skip operators behind the stage that is searched."""
        if stage < self.probe.stage:
            self.chain.give(stage, row, at)
        else:
            self.chain.loaded[stage].prints.add_one(self.chain.pick(stage, row))

    def finish(self, stage: int) -> Iterator[pa.RecordBatch]:
        if self.done:
            return
        yield from self.chain.finish(stage)
        if stage == self.probe.stage:
            self._look(0, AT_END, None, ended=True)

    def _look(self, port: int, at: Position, row: Mapping[str, Any] | None, *, ended: bool = False) -> None:
        probe, bucket = self.probe, self.chain.bucket or 0
        if probe.places is not None:
            if probe.places[0] <= self.seen < sum(probe.places) and not ended:
                self.report(Record(probe.stage, bucket, port, at, (), {}))
            self.seen += 1
            return
        if probe.before is not None and reaches(at, probe.before):
            return
        if probe.key is not None:
            if touches(self.chain.loaded[probe.stage].take_changes(), *probe.key):
                self._find(port, at, ended=ended)
            return
        if (bucket not in self.found or at < (self.found[bucket].at or ())) and self.holds(row):
            self._find(port, at, ended=ended)

    def _find(self, port: int, at: Position, *, ended: bool = False) -> None:
        bucket = self.chain.bucket or 0
        self.found[bucket] = Record(self.probe.stage, bucket, port, at, (), {}, ended=ended)

    @cached_property
    def asks(self) -> bool:
        """Whether the search is for the first step after which a predicate holds."""
        return self.probe.expression is not None or self.probe.function is not None

    @property
    def holds(self) -> Callable[[Mapping[str, Any] | None], Any]:
        """The predicate over the operator's present instance, as a function of the tuple it has just processed."""
        instance = self.chain.loaded[self.probe.stage].instance
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
            getattr(instance, name)  # creates the state: it is an attribute from its first use on
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
                    return False  # at the end of the input there is no row: `row["amount"] > 9` does not hold
                raise

        return holds

    @cached_property
    def expression(self) -> tuple[tuple[str, ...], CodeType]:
        """The names in the predicate, and its code: compiled once, evaluated after every tuple."""
        text = self.probe.expression or ""
        named = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
        return tuple(named - {"row"}), compile(text, "<predicate>", "eval")


def touches(changes: Mapping[str, Any], name: str | None, key: Any) -> bool:
    """Whether changes of a state reach a key of a map, or (with no key) a plain value of that name."""
    for state, (replaced, changed, deleted) in changes["maps"].items():
        if name in (None, state) and (replaced or key in changed or key in deleted):
            return True
    return name is not None and (name in changes["values"] or name in changes["lists"]) and key is None
