"""A chain of Python operators over one epoch's rows, as it runs inside Spark's Python workers.

A worker gets rows sorted by bucket and position, brings each operator's state to the version the epoch starts from,
processes tuple by tuple, and writes what changed as a state file. The state of a bucket stays in the worker between
epochs under its version; a worker that holds an older version catches up by the state files since then. Nothing here
depends on which worker gets which bucket.

An exception in user code is written to a file and ends the task early without failing it: the driver finds the file,
does not commit the epoch, and reports operator, tuple and traceback without Spark's stack or Spark's retries.

There are three loops over tuples. `_feed_plainly` is for one operator in a run that nobody watches tuple by tuple: it
decides how fast a run is, so it keeps its counters in locals and looks at one flag for each tuple. `_feed_rows` is for
everything else in rows, `batches` for operators in batch form. Tracing, undoing and probing take part in the latter two
as an `Observer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from samovar.control.agent import TaskAbandoned
from samovar.control.client import Client
from samovar.errors import ReplayDiffers
from samovar.graph.logged_results import swap
from samovar.graph.operator import Operator, is_batch_form
from samovar.positions import PAD, Position, end_position, position_columns
from samovar.record.state_files import Header, composed, mark_name, write_state
from samovar.runtime.exchange.code_switch import ChainSwitches, hand_over, write_switch_records
from samovar.runtime.exchange.decisions import AT_END, EpochDecisions, file_name, replaced
from samovar.runtime.exchange.partition import partition_number
from samovar.runtime.exchange.task import Task
from samovar.runtime.exchange.user_errors import (
    RAISED,
    Failure,
    UserError,
    batch_misfit,
    column,
    fits,
    misfit,
    raised,
    wrong_row,
)
from samovar.runtime.worker.batch import View, fitted, is_simple, picker, rows_at, shown_batch, stretches
from samovar.runtime.worker.breakpoints import TaskBreakpoints
from samovar.runtime.worker.bucket_state import LoadedOperator, load, save, state_errors
from samovar.runtime.worker.marker import Marker
from samovar.runtime.worker.task_control import DUE, QUIET, Due, Quiet, RowFeed, TaskControl

__all__ = ["Chain", "Observer"]

FLUSH = 4096
"""Rows of the output that are sent on as one batch: enough for Arrow's speed, little to hold in memory."""
PIECE = 512
"""Rows of a batch that become Python objects at once. All 10,000 do not fit a core's cache, which cost W5 half a
microsecond a row."""
_Changes = tuple[tuple[int, pa.DataType], ...]


class Observer:
    """Takes part in a chain's work: records steps, undoes a step, or searches states.

    A chain with an observer calls the observer's method in place of its own method of the same name; the observer does
    its part and calls the chain's method, or skips it. A method that is not overridden works as in a run. An observer
    belongs to one chain.
    """

    chain: Chain

    def entered(self) -> None:
        """Called when a bucket begins and its states are loaded."""

    def leaving(self) -> None:
        """Called when a bucket is over, before its states are saved."""

    def stretch(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Process some rows of a bucket."""
        return self.chain.stretch(view, start, stop)

    def step(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        """Process one tuple of one operator, and what it produces down the chain."""
        self.chain.step(stage, row, port, at)

    def give(self, stage: int, row: Mapping[str, Any], at: Position) -> None:
        """Take one tuple of an operator's output."""
        self.chain.give(stage, row, at)

    def batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Process some rows by an operator in batch form."""
        return self.chain.batches(view, start, stop)

    def batch(self, view: View, port: int, first: int, end: int) -> pa.RecordBatch | None:
        """The rows of one port for an operator in batch form; None: they are skipped."""
        return self.chain.batch(view, port, first, end)

    def finish(self, stage: int) -> Iterator[pa.RecordBatch]:
        """Process the end of an operator's input."""
        return self.chain.finish(stage)


class Chain:
    """A chain of operators at work on one task's rows. Public methods are for observers."""

    client: Client | Quiet = QUIET
    control: TaskControl | None = None
    feed: RowFeed | None = None
    """The rows in the loop, from which the loop's progress is read."""
    at_hand: tuple[View, int] | None = None
    """The batch that the rows in the loop come from, and the number of the first of them in it."""
    breakpoints: TaskBreakpoints | None = None
    """Breakpoints; None until somebody sets one."""

    def __init__(self, task: Task, observer: Observer | None = None) -> None:
        self.task = task
        self.observer = observer
        if observer is not None:
            observer.chain = self
        self.loaded: list[LoadedOperator] = []
        self.taken: list[list[int]] = []
        self.given: list[int] = []
        self.passed = [(0, 0) for _ in task.stages]
        """How many tuples each operator took and produced in the buckets before this one."""
        self.bucket: int | None = None
        self.started = 0.0
        self.pickers = [picker(s.schema) for s in task.stages]
        self.rows: list[tuple[Any, ...]] = []
        self.printed = 0
        """How many of these rows are in the fingerprints already."""
        self.positions: list[Position] = []
        self.parents: list[dict[str, Any] | tuple[dict[str, Any] | None, ...]] = []
        """For each row of the output, the row that each operator of the chain was processing (one: not in a tuple)."""
        self.path: list[dict[str, Any] | None] = [None] * len(task.stages)
        self.marker = Marker(task.marks, task.mark_share)
        self.decided = EpochDecisions(task.decided, by_number=task.stateful)
        self.switches: ChainSwitches | None = None
        """Switches of code inside the epoch; None: there is none."""
        if task.switches:
            self.switches = ChainSwitches([s.name for s in task.stages], task.stateful, task.switches)
        self.rows_at: Callable[[list[Any]], list[dict[str, Any]]] = list
        """From items of `feed` to the rows they stand for."""
        self.began: dict[int, Operator] = {}
        """In a replay: the stateless operators with the code the epoch began with."""
        self.known: list[dict[tuple[type, ...], _Changes]] = [{} for _ in task.stages]
        """How rows of some types change on their way to the next operator, as if they went through Spark."""

    # --- rows in ----------------------------------------------------------------------------------------------------

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process all rows of the task, bucket after bucket."""
        for batch in batches:
            view = View(batch, self.task.positions > 0)
            for start, stop in stretches(view.buckets, 0, batch.num_rows):
                self._enter(view.buckets[start] if view.buckets is not None else 0)
                # The plan adds control rows, which carry no tuple and sort behind a bucket, for the end of its input.
                end = stop - int(view.controls is not None and view.controls[stop - 1] > 0)
                for first, behind in self.marker.cut(view, start, end, self._mark):
                    self.at_hand = (view, first)
                    yield from (self.observer or self).stretch(view, first, behind)
                if end < stop:
                    for stage in range(len(self.loaded)):
                        yield from (self.observer or self).finish(stage)
        self._leave()
        if self.rows:
            yield self.flush()
        if self.task.signs:
            folder = Path(self.task.stages[0].folder)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"ran-{partition_number()}").touch()

    def stretch(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Process some rows of a bucket."""
        if is_batch_form(type(self.loaded[0].instance)):
            yield from (self.observer or self).batches(view, start, stop)
        elif self._is_plain(view):
            for first in range(start, stop, PIECE):
                behind = min(first + PIECE, stop)
                self.at_hand = (view, first)
                yield from self._feed_plainly(view.rows(first, behind), stop - behind)
        else:
            yield from self._feed_rows(view, start, stop)

    def _is_plain(self, view: View) -> bool:
        one = len(self.task.stages) == 1 and not self.task.positions and view.ports is None
        return one and self.observer is None and not self.decided and not self.task.switches

    def _feed_plainly(self, rows: list[dict[str, Any]], behind: int) -> Iterator[pa.RecordBatch]:
        """One operator, one port, no positions: the same as `_feed_rows` without what it does not need.

        `behind`: how many rows of the batch come after these.
        """
        process = self.process(0)
        outside = swap(self.loaded[0].results)
        pick = self.pickers[0]
        client = self.client
        before, done, given = self.taken[0][0], 0, 0
        feed = self.feed = RowFeed(rows, before, kept=len(self.rows), behind=behind)
        row: dict[str, Any] | None = None
        output: Mapping[str, Any] | None = None
        out: Any = None
        # The loop looks at one flag for each tuple: the client's, which is set when an order has come. Before a tuple
        # at which a switch of code may be due it looks at DUE's instead, which is always set.
        asked: Client | Quiet | Due = client if self.switches is None else DUE
        try:
            for row in feed.waiting:
                if asked.news:
                    given = self._count(before + done, given)
                    self._attend(0, 0, before + done)
                    asked = client
                    if self.switches is not None:
                        self.switch_code(0, ())
                    process = self.process(0)
                done += 1  # before it is processed: a tuple that raises counts as taken
                out = process(row)
                if out is None:
                    continue
                for output in out:
                    if output is None:
                        if client.news:
                            given = self._count(before + done, given)
                            self._attend(0, 0, before + done - 1)
                            process = self.process(0)
                            asked = client if self.switches is None else DUE
                        continue
                    given += 1
                    self.rows.append(pick(output) if pick is not None else self.pick(0, output))
                    self.parents.append(row)
                if len(self.rows) >= FLUSH:
                    given = self._count(before + done, given)
                    swap(outside)
                    yield self.flush()
                    feed.kept = 0
                    swap(self.loaded[0].results)
                    process = self.process(0)
                    asked = client if self.switches is None else DUE
        except TaskAbandoned:
            raise
        except UserError as error:
            if error.failure.row is None and error.failure.mismatch:
                raise UserError(replace(error.failure, row=row)) from None
            raise
        except RAISED as error:
            self.path[0] = row
            if (
                given
                and pick is not None
                and isinstance(error, KeyError | TypeError | IndexError)
                and _raised_here(error)
            ):
                self.pick(0, output)  # raises with what is missing
            self.check_rows(0, out, error)
            raise UserError(raised(self.task.stages[0].name, row, error)) from None
        finally:
            swap(outside)
        self._count(before + done, given)
        self.feed = None

    def _feed_rows(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        step = self.step if self.observer is None else self.observer.step
        rows = view.rows(start, stop) if view.ports is None else []
        self.feed = RowFeed(range(start, stop), sum(self.taken[0]))
        self.rows_at = partial(rows_at, view, rows, start)
        for i in self.feed.waiting:
            port = view.ports[i] if view.ports is not None else 0
            row = rows[i - start] if view.ports is None else view.structs(port)[i]
            step(0, row, port, view.position(i))
            if len(self.rows) >= FLUSH:
                yield self.flush()
        self.feed = None

    def _attend(self, stage: int, port: int, number: int) -> None:
        """Obey orders, at a tuple of an operator. Afterwards operators may have other code."""
        if self.control is not None:
            self.control.check(stage, port, number)

    def process(self, stage: int) -> Callable[..., Any]:
        """An operator's `process`, with breakpoints around it if there are any."""
        process: Callable[..., Any] = self.loaded[stage].instance.process
        return self.breakpoints.around(stage, process) if self.breakpoints else process

    def _count(self, taken: int, given: int) -> int:
        """Publish the counts that the plain loop keeps in locals. Returns 0, from which the loop counts on."""
        self.taken[0][0] = taken
        self.given[0] += given
        if self.feed is not None:
            self.feed.kept = len(self.rows)
        return 0

    def located(self, failure: Failure) -> Failure:
        """A failure with the place of the tuple in the loop, if that is the tuple that failed."""
        if self.feed is None or failure.mismatch or failure.row is None:
            return failure
        view, i = self.current
        taken = self.feed.before + self.feed.taken if self.task.stateful else 0
        return replace(failure, position=view.place(i), taken=taken)

    @property
    def current(self) -> tuple[View, int]:
        """The batch, and the number in it, of the row that the loop has begun last."""
        assert self.at_hand is not None
        assert self.feed is not None
        view, first = self.at_hand
        return view, first + self.feed.taken - 1

    def counts(self, stage: int) -> tuple[int, int]:
        """How many tuples an operator has taken and produced in this task."""
        taken, given = self.passed[stage]
        if self.bucket is None:
            return taken, given
        return taken + sum(self.taken[stage]), given + self.given[stage]

    # --- one tuple --------------------------------------------------------------------------------------------------

    def step(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        """Process one tuple of one operator, and what it produces down the chain."""
        if self.client.news:
            self._attend(stage, port, self.taken[stage][port])
        if self.switches is not None:
            self.switch_code(stage, at)
        self.taken[stage][port] += 1
        if self.decided:
            number = self.taken[stage][port] - 1
            name = self.task.stages[stage].name
            decision = self.decided.of(name, self.bucket or 0, port, number, row)
            if decision is not None:
                if decision.edited is None:
                    return
                row = dict(decision.edited)
        self.path[stage] = row
        out: Any = None
        observer = self.observer
        outside = swap(self.loaded[stage].results)
        try:
            process = self.process(stage)
            out = process(row) if self.task.stages[stage].ports == 1 else process(row, port)
            if out is not None:
                child = 0
                for output in out:
                    if output is None:
                        if self.client.news:
                            self._attend(stage, port, self.taken[stage][port] - 1)
                        continue
                    if observer is None:
                        self.give(stage, output, (*at, child) if at else at)
                    else:
                        observer.give(stage, output, (*at, child) if at else at)
                    child += 1
        except (UserError, ReplayDiffers, TaskAbandoned):
            raise
        except RAISED as error:
            self._blame(self.path[: stage + 1])
            self.check_rows(stage, out, error)
            raise UserError(raised(self.task.stages[stage].name, row, error)) from None
        finally:
            swap(outside)

    def switch_code(self, stage: int, at: Position) -> None:
        """Switch to other code, if a switch is due at this tuple."""
        switches, loaded, name = self.switches, self.loaded[stage], self.task.stages[stage].name
        assert switches is not None
        if not self.task.stateful and switches.recorded:
            began = self.began.setdefault(stage, loaded.instance)
            loaded.instance = switches.other(stage, at, began, loaded.code)
            return
        while (switch := switches.due(stage, sum(self.taken[stage]))) is not None:
            try:
                new = hand_over(name, loaded.instance, loaded.code, switch.body, switch.transfer)
            except RAISED as error:
                if self.control is not None:
                    self.control.cannot(switch.version, error)
                raise
            loaded.switch_to(new, switch.body, switch.version)
        if not self.task.stateful:
            switches.note(stage, at)

    def give(self, stage: int, row: Mapping[str, Any], at: Position) -> None:
        """Take a tuple of an operator's output to the next operator, or to the chain's output."""
        self.given[stage] += 1
        picked = self.pick(stage, row)
        if stage + 1 < len(self.task.stages):
            changes = self.known[stage].get(tuple(map(type, picked)))
            if changes is None:
                changes = self.check_types(stage, picked)
            if changes:
                picked = self._changed(stage, picked, changes)
            names = self.task.stages[stage].schema.names
            self.loaded[stage].prints.add_one(picked)
            following = dict(zip(names, picked, strict=True))
            if self.observer is None:
                self.step(stage + 1, following, 0, at)
            else:
                self.observer.step(stage + 1, following, 0, at)
            return
        self.rows.append(picked)
        self.parents.append(tuple(self.path))
        if self.task.positions:
            self.positions.append(at)

    def pick(self, stage: int, row: Any) -> tuple[Any, ...]:
        """The values of an output row, in the order of the schema."""
        names = self.task.stages[stage].schema.names
        picker = self.pickers[stage]
        try:
            return picker(row) if picker is not None else (row[names[0]],)
        except (KeyError, TypeError, IndexError):
            raise UserError(wrong_row(self.task.stages[stage].name, self.path[stage], names, row)) from None

    def check_types(self, stage: int, picked: tuple[Any, ...]) -> _Changes:
        """Which columns of rows with these types change when they go through Spark: between operators in one worker
        they must change in the same way.

        Raises UserError if a value does not fit its column. The answer is kept: rows of a stage seldom differ in types.
        """
        kinds = tuple(map(type, picked))
        if kinds in self.known[stage]:
            return self.known[stage][kinds]
        changes: list[tuple[int, pa.DataType]] = []
        for i, (value, field) in enumerate(zip(picked, self.task.stages[stage].schema, strict=True)):
            if not fits(value, field):
                raise UserError(misfit(self.task.stages[stage].name, self.path[stage], value, field))
            if value is not None and (
                type(pa.scalar(value, field.type).as_py()) is not type(value) or not is_simple(field.type)
            ):
                changes.append((i, field.type))
        self.known[stage][kinds] = tuple(changes)
        return tuple(changes)

    def _changed(self, stage: int, picked: tuple[Any, ...], changes: _Changes) -> tuple[Any, ...]:
        values = list(picked)
        for i, kind in changes:
            try:
                values[i] = pa.scalar(values[i], kind).as_py(maps_as_pydicts="strict")
            except Exception:
                spec = self.task.stages[stage]
                raise UserError(misfit(spec.name, self.path[stage], values[i], spec.schema[i])) from None
        return tuple(values)

    def check_rows(self, stage: int, out: Any, error: BaseException) -> None:
        """Raise when an operator returned something that is not rows at all."""
        if out is not None and not isinstance(out, Iterable) and _raised_here(error):
            names = self.task.stages[stage].schema.names
            raise UserError(wrong_row(self.task.stages[stage].name, self.path[stage], names, out))

    def _blame(self, path: Sequence[dict[str, Any] | None]) -> None:
        """Raise for the first operator of a chain whose output row did not fit, although the next operator took it."""
        for stage in range(1, len(path)):
            row = path[stage] or {}
            for field in self.task.stages[stage - 1].schema if row else ():
                if not fits(row[field.name], field):
                    name = self.task.stages[stage - 1].name
                    raise UserError(misfit(name, path[stage - 1], row[field.name], field))

    def finish(self, stage: int) -> Iterator[pa.RecordBatch]:
        """Call an operator's `finish` for the end of each port."""
        give = self.give if self.observer is None else self.observer.give
        spec = self.task.stages[stage]
        if self.switches is not None and self.task.stateful:
            self.switch_code(stage, ())
        instance = self.loaded[stage].instance
        self.path = [None] * len(self.task.stages)
        if self.decided and self.decided.of(spec.name, self.bucket or 0, 0, AT_END, {}) is not None:
            return
        for port in range(spec.ports):
            outside = swap(self.loaded[stage].results)
            try:
                out = instance.finish() if spec.ports == 1 else instance.finish(port)
                for child, output in enumerate(o for o in (out or ()) if o is not None):
                    for row in output.to_pylist() if isinstance(output, pa.RecordBatch) else (output,):
                        give(stage, row, self._end_position(stage, port, child))
                    if len(self.rows) >= FLUSH:
                        yield self.flush()
            except (UserError, ReplayDiffers, TaskAbandoned):
                raise
            except RAISED as error:
                raise UserError(raised(spec.name, None, error)) from None
            finally:
                swap(outside)

    def _end_position(self, stage: int, port: int, child: int) -> Position:
        """The position of a row produced at the end: behind all input; then by bucket, port and order."""
        if not self.task.positions:
            return ()
        width = self.task.positions - (len(self.task.stages) - 1 - stage)
        return end_position(self.task.stages[stage].rank, self.bucket or 0, port, child, width)

    # --- batches ----------------------------------------------------------------------------------------------------

    def batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Process rows by an operator in batch form."""
        spec = self.task.stages[0]
        for first, end in self._cut(stretches(view.ports, start, stop)):
            port = view.ports[first] if view.ports is not None else 0
            data = (self.observer or self).batch(view, port, first, end)
            self.taken[0][port] += end - first
            if data is None:
                continue
            child = 0
            outside = swap(self.loaded[0].results)
            try:
                for output in self.loaded[0].instance.process_batch(data, port) or ():  # type: ignore[attr-defined]
                    if output is None:
                        if self.client.news:
                            self._attend(0, port, self.taken[0][port] - 1)
                        continue
                    if failure := batch_misfit(spec.name, output, spec.schema, by_name=True):
                        raise UserError(failure)
                    self.given[0] += output.num_rows
                    self.loaded[0].prints.add_batch(output.select(spec.schema.names))
                    yield fitted(output, spec.schema, view.position(first), child, self.task.positions)
                    child += output.num_rows
            except (ReplayDiffers, TaskAbandoned):
                raise
            except RAISED as error:
                during = shown_batch(data, (data.slice(0, 1).to_pylist() or [{}])[0])
                if isinstance(error, UserError):
                    raise UserError(replace(error.failure, during=during)) from None
                raise UserError(raised(spec.name, None, error, during=during)) from None
            finally:
                swap(outside)

    def batch(self, view: View, port: int, first: int, end: int) -> pa.RecordBatch | None:
        """Rows for an operator in batch form; None: they are skipped."""
        data = view.batch_of(port, first, end)
        if self.decided:
            name, number = self.task.stages[0].name, self.taken[0][port]
            return replaced(data, self.decided.of(name, self.bucket or 0, port, number, data.to_pylist()[0]))
        return data

    def _cut(self, parts: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The same stretches of rows, cut where other code begins, and at each row if there are decisions."""
        for start, stop in parts:
            first = start
            while first < stop and self.decided:  # any row may be one that was skipped or replaced
                yield first, first + 1
                first += 1
            while first < stop and self.switches is not None:
                self.switch_code(0, ())
                before = sum(self.taken[0])
                at = self.switches.next_at(0)
                end = stop if at is None else min(stop, first + max(1, at - before))
                yield first, end
                first = end
            if first < stop:
                yield first, stop

    # --- rows out ---------------------------------------------------------------------------------------------------

    def _print(self) -> None:
        """Add rows that wait to be sent on to the fingerprints."""
        self.loaded[-1].prints.add(self.rows[self.printed :])
        self.printed = len(self.rows)

    def flush(self) -> pa.RecordBatch:
        """Rows that wait to be sent on, as a batch."""
        self._print()
        self.printed = 0
        spec = self.task.stages[-1]
        columns = list(zip(*self.rows, strict=True))
        arrays = []
        for values, field in zip(columns, spec.schema, strict=True):
            try:
                arrays.append(column(values, field))
            except Exception as error:
                raise UserError(self._misfit(values, field, error)) from None
        arrays += [
            pa.array([p[i] if i < len(p) else PAD for p in self.positions], type=pa.int64())
            for i in range(self.task.positions)
        ]
        self.rows, self.positions, self.parents = [], [], []
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema())

    def output_schema(self) -> pa.Schema:
        """The columns of the last operator, then positions."""
        positions = [pa.field(name, pa.int64()) for name in position_columns(self.task.positions)]
        return pa.schema([*self.task.stages[-1].schema, *positions])

    def _misfit(self, values: Sequence[Any], field: pa.Field, error: Exception) -> Failure:
        name = self.task.stages[-1].name
        for i, value in enumerate(values):
            if not fits(value, field):
                parents = self.parents[i]
                path = (parents,) if isinstance(parents, dict) else parents
                self._blame(path)
                return misfit(name, path[-1], value, field)
        return Failure(name, None, f"'{field.name}': {error}", "", mismatch=True, during="its output")

    # --- state ------------------------------------------------------------------------------------------------------

    def _enter(self, bucket: int) -> None:
        if self.bucket == bucket:
            return
        self._leave()  # first: it saves under the number of the bucket that ends
        self.bucket = bucket
        self.started = time.perf_counter()
        self.loaded = [load(self.task, stage, bucket) for stage in self.task.stages]
        self.marker = Marker(self.task.marks, self.task.mark_share)
        self.taken = [[0] * s.ports for s in self.task.stages]
        self.given = [s.given.get(bucket, 0) for s in self.task.stages]
        if self.switches is not None:
            self.switches.enter(bucket)
        if self.observer is not None:
            self.observer.entered()

    def _leave(self) -> None:
        if self.bucket is None:
            return
        if self.observer is not None:
            self.observer.leaving()
        self._print()  # before states are saved: the fingerprints are part of them
        if self.control is not None:
            first = self.task.stages[0]
            name = file_name(first.name, self.bucket, 0 if self.task.stateful else partition_number())
            state = Path(first.folder) / f"{self.bucket:04d}.delta" if self.task.stateful else None
            records = self.switches.records(self.bucket) if self.switches is not None else []
            write_switch_records(Path(self.task.errors).parent, name, records, state)
        if self.task.stateful and self.task.saves:
            for i, stage in enumerate(self.task.stages):
                save(self.task, stage, self.loaded[i], self._header(i))
        self.passed = [self.counts(i) for i in range(len(self.loaded))]
        self.bucket = None

    def _header(self, stage: int) -> Header:
        return Header(
            operator=self.task.stages[stage].name,
            bucket=self.bucket or 0,
            epoch=self.task.epoch,
            taken=tuple(self.taken[stage]),
            given=self.given[stage],
            entries=self.loaded[stage].capture.entries(),
            seconds=time.perf_counter() - self.started,
            passed=self.marker.passed,
            marks=tuple(self.marker.written),
        )

    def _mark(self, number: int) -> None:
        """Write what changed since the mark before."""
        for i, (stage, loaded) in enumerate(zip(self.task.stages, self.loaded, strict=True)):
            with state_errors(loaded):
                changes = loaded.take_changes()
                loaded.changes = changes if loaded.changes is None else composed(loaded.changes, changes)
                kept = {**changes, "used": len(loaded.results.made)}
                write_state(Path(stage.folder) / mark_name(self.bucket or 0, number), self._header(i), kept)


def _raised_here(error: BaseException) -> bool:
    """Whether an exception was raised by this module itself, not by code it called."""
    at = error.__traceback__
    return at is not None and at.tb_next is None
