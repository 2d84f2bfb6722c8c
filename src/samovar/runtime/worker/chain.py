"""What runs inside Spark's Python workers: a chain of Python operators over one epoch's rows.

A worker gets rows sorted by bucket and position, brings each operator's state to the version the epoch starts from,
processes tuple by tuple, and writes what changed as a state file. The state of a bucket is kept in the worker between
epochs under its version; a worker that holds an older version catches up by the state files since. Nothing here
depends on which worker gets which bucket.

An exception in user code is written to a file and ends the task early without failing it: the driver finds the file,
does not commit the epoch, and reports operator, tuple and traceback without Spark's stack or Spark's retries.
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
from samovar.record.state_files import (
    Header,
    composed,
    mark_name,
    write_state,
)
from samovar.runtime.exchange.code_switch import ChainSwitches, hand_over, write_switch_records
from samovar.runtime.exchange.decisions import AT_END, EpochDecisions, RecordedDecision, file_name, replaced
from samovar.runtime.exchange.kept_rows import Keeping, read_kept
from samovar.runtime.exchange.task import Begun, Task
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
from samovar.runtime.worker.arrival import partition_number
from samovar.runtime.worker.batch import View, fitted, is_simple, picker, rows_at, shown_batch, stretches
from samovar.runtime.worker.breakpoints import Watched
from samovar.runtime.worker.bucket_state import Loaded, load, save, told
from samovar.runtime.worker.marker import Marker
from samovar.runtime.worker.task_control import DUE, QUIET, Attendance, Due, Feeding, Quiet

__all__ = [
    "Chain",
    "Failure",
]

FLUSH = 4096
"""Output rows are sent on when this many have gathered."""
_Changes = tuple[tuple[int, pa.DataType], ...]


class Chain(Keeping):
    """A chain of operators at work on one task's rows."""

    client: Client | Quiet = QUIET
    attendance: Attendance | None = None
    feeding: Feeding | None = None
    """The rows at hand, for whoever asks how far the loop has come."""
    at_hand: tuple[View, int] | None = None
    """Where they are from: a batch, and the first of them in it."""
    watched: Watched | None = None
    """Breakpoints, if somebody has set one."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.loaded: list[Loaded] = []
        self.taken: list[list[int]] = []
        self.given: list[int] = []
        self.passed = [(0, 0) for _ in task.stages]
        """What each operator took and gave in the buckets before this one."""
        self.bucket: int | None = None
        self.started = 0.0
        self.pickers = [picker(s.schema) for s in task.stages]
        self.rows: list[tuple[Any, ...]] = []
        self.printed = 0
        """Of how many of these rows fingerprints are taken."""
        self.positions: list[Position] = []
        self.parents: list[dict[str, Any] | tuple[dict[str, Any] | None, ...]] = []
        """For each output row, the row each operator of the chain was processing; the row itself in a chain of one."""
        self.path: list[dict[str, Any] | None] = [None] * len(task.stages)
        self.marker = Marker(task.marks, task.mark_share)
        self.decided = EpochDecisions(task.decided, by_number=task.stateful)
        self.switches: ChainSwitches | None = None
        """Switches of code inside the epoch; None: there is none."""
        if task.switches:
            self.switches = ChainSwitches([s.name for s in task.stages], task.stateful, task.switches)
        self.rows_at: Callable[[list[Any]], list[dict[str, Any]]] = list
        """The rows that some items of `feeding` stand for."""
        self.began: dict[int, Operator] = {}
        """In a replay: stateless operators as the epoch began with them."""
        self.known: list[dict[tuple[type, ...], _Changes]] = [{} for _ in task.stages]
        """How rows of some types are changed on their way to the next operator: as if they went through Spark."""

    # --- rows in ----------------------------------------------------------------------------------------------------

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process all rows of the task, bucket after bucket."""
        for batch in batches:
            view = View(batch, self.task.positions > 0)
            for start, stop in stretches(view.buckets, 0, batch.num_rows):
                self._enter(view.buckets[start] if view.buckets is not None else 0)
                if view.controls is not None and view.controls[start] < 0:
                    yield from self._drained()
                    yield from read_kept(self._begun().kept, self.output_schema(), self.given[-1])
                    start += 1
                end = stop - int(view.controls is not None and view.controls[stop - 1] > 0)
                for first, behind in self.marker.cut(view, start, end, self._mark):
                    self.at_hand = (view, first)
                    yield from self._drained()
                    yield from self._noted(self._feed_stretch(view, first, behind))
                if end < stop:
                    self._end_kept()
                    yield from self._drained()
                    yield from self._finish_all()
        self._leave()
        yield from self._drained()
        if self.rows:
            yield self._flush()
        if self.task.signs:
            folder = Path(self.task.stages[0].folder)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"ran-{partition_number()}").touch()

    def _feed_stretch(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        if is_batch_form(type(self.loaded[0].instance)):
            yield from self._feed_batches(view, start, stop)
        elif self._is_plain(view):
            yield from self._feed_plainly(view.rows(start, stop))
        else:
            yield from self._feed_rows(view, start, stop)

    def _is_plain(self, view: View) -> bool:
        one = len(self.task.stages) == 1 and not self.task.positions and view.ports is None
        return one and not self.decided and not self.task.switches

    def _feed_plainly(self, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        """One operator, one port, no positions: the same as `_feed_rows` without what it does not need."""
        process = self._process(0)
        outside = swap(self.loaded[0].results)
        pick = self.pickers[0]
        client = self.client
        before, done, given = self.taken[0][0], 0, 0
        feeding = self.feeding = Feeding(rows, before, kept=len(self.rows))
        row: dict[str, Any] | None = None
        made: Mapping[str, Any] | None = None
        out: Any = None
        asked: Client | Quiet | Due = client if self.switches is None else DUE  # one look at one flag
        try:
            for row in feeding.waiting:
                if asked.news:
                    given = self._count(before + done, given)
                    self._attend(0, 0, before + done)
                    asked = client
                    if self.switches is not None:
                        self._switch_code(0, ())
                    process = self._process(0)
                done += 1
                out = process(row)
                if out is None:
                    continue
                for made in out:
                    if made is None:
                        if client.news:
                            given = self._count(before + done, given)
                            self._attend(0, 0, before + done - 1)
                            process = self._process(0)
                            asked = client if self.switches is None else DUE
                        continue
                    given += 1
                    self.rows.append(pick(made) if pick is not None else self._pick(0, made))
                    self.parents.append(row)
                if len(self.rows) >= FLUSH:
                    given = self._count(before + done, given)
                    swap(outside)
                    yield self._flush()
                    feeding.kept = 0
                    swap(self.loaded[0].results)
                    process = self._process(0)
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
                self._pick(0, made)  # raises with what is missing
            self._no_rows(0, out, error)
            raise UserError(raised(self.task.stages[0].name, row, error)) from None
        finally:
            swap(outside)
        self._count(before + done, given)
        self.feeding = None

    def _feed_rows(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        rows = view.rows(start, stop) if view.ports is None else []
        self.feeding = Feeding(range(start, stop), sum(self.taken[0]))
        self.rows_at = partial(rows_at, view, rows, start)
        for i in self.feeding.waiting:
            port = view.ports[i] if view.ports is not None else 0
            row = rows[i - start] if view.ports is None else view.structs(port)[i]
            self._feed(0, row, port, view.position(i))
            if len(self.rows) >= FLUSH:
                yield self._flush()
        self.feeding = None

    def _attend(self, stage: int, port: int, number: int) -> None:
        """Obey what has come, at a tuple of an operator. Afterwards operators may have other code."""
        if self.attendance is not None:
            self.attendance.check(stage, port, number)

    def _process(self, stage: int) -> Callable[..., Any]:
        """An operator's `process`, as it is to be called now."""
        process: Callable[..., Any] = self.loaded[stage].instance.process
        return self.watched.around(stage, process) if self.watched else process

    def _count(self, taken: int, given: int) -> int:
        """What the plain loop has counted by itself, told to all; 0, to count on from."""
        self.taken[0][0] = taken
        self.given[0] += given
        if self.feeding is not None:
            self.feeding.kept = len(self.rows)
        return 0

    def located(self, failure: Failure) -> Failure:
        """A failure with the place of the tuple at hand, if it failed at that very one."""
        if self.feeding is None or self.at_hand is None or failure.mismatch or failure.row is None:
            return failure
        (view, first), done = self.at_hand, self.feeding.taken
        taken = self.feeding.before + done if self.task.stateful else 0
        return replace(failure, position=view.place(first + done - 1), taken=taken)

    def counts(self, stage: int) -> tuple[int, int]:
        """What an operator has taken and given in this task."""
        taken, given = self.passed[stage]
        return (
            (taken, given)
            if self.bucket is None
            else (taken + sum(self.taken[stage]), given + self.given[stage])
        )

    # --- one tuple --------------------------------------------------------------------------------------------------

    def _feed(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        if self.client.news:
            self._attend(stage, port, self.taken[stage][port])
        if self.switches is not None:
            self._switch_code(stage, at)
        self.taken[stage][port] += 1
        if self.decided:
            found = self._decision(stage, port, row)
            if found is not None and found.edited is None:
                return
            row = row if found is None else dict(found.edited or {})
        self.path[stage] = row
        out: Any = None
        outside = swap(self.loaded[stage].results)
        try:
            process = self._process(stage)
            out = process(row) if self.task.stages[stage].ports == 1 else process(row, port)
            if out is not None:
                child = 0
                for made in out:
                    if made is None:
                        if self.client.news:
                            self._attend(stage, port, self.taken[stage][port] - 1)
                        continue
                    self._emit(stage, made, (*at, child) if at else at)
                    child += 1
        except (UserError, ReplayDiffers, TaskAbandoned):
            raise
        except RAISED as error:
            self._blame(self.path[: stage + 1])
            self._no_rows(stage, out, error)
            raise UserError(raised(self.task.stages[stage].name, row, error)) from None
        finally:
            swap(outside)

    def _switch_code(self, stage: int, at: Position) -> None:
        """Switch to other code, if this is the tuple to do it at."""
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
                if self.attendance is not None:
                    self.attendance.cannot(switch.version, error)
                raise
            loaded.switch_to(new, switch.body, switch.version)
        if not self.task.stateful:
            switches.note(stage, at)

    def _decision(self, stage: int, port: int, row: dict[str, Any]) -> RecordedDecision | None:
        """What was decided in the run about the tuple that has just been taken."""
        number = self.taken[stage][port] - 1
        return self.decided.of(self.task.stages[stage].name, self.bucket or 0, port, number, row)

    def _emit(self, stage: int, row: Mapping[str, Any], at: Position) -> None:
        self.given[stage] += 1
        picked = self._pick(stage, row)
        if stage + 1 < len(self.task.stages):
            kinds = tuple(map(type, picked))
            changes = self.known[stage].get(kinds)
            if changes is None:
                changes = self._learn(stage, kinds, picked)
            if changes:
                picked = self._changed(stage, picked, changes)
            names = self.task.stages[stage].schema.names
            self.loaded[stage].prints.add_one(picked)
            self._feed(stage + 1, dict(zip(names, picked, strict=True)), 0, at)
            return
        self.rows.append(picked)
        self.parents.append(tuple(self.path))
        if self.task.positions:
            self.positions.append(at)

    def _pick(self, stage: int, row: Any) -> tuple[Any, ...]:
        names = self.task.stages[stage].schema.names
        picker = self.pickers[stage]
        try:
            return picker(row) if picker is not None else (row[names[0]],)
        except (KeyError, TypeError, IndexError):
            raise UserError(wrong_row(self.task.stages[stage].name, self.path[stage], names, row)) from None

    def _learn(self, stage: int, kinds: tuple[type, ...], picked: tuple[Any, ...]) -> _Changes:
        """Which columns of rows of these types change when they go through Spark, as between operators apart."""
        made: list[tuple[int, pa.DataType]] = []
        for i, (value, field) in enumerate(zip(picked, self.task.stages[stage].schema, strict=True)):
            if not fits(value, field):
                raise UserError(misfit(self.task.stages[stage].name, self.path[stage], value, field))
            if value is not None and (
                type(pa.scalar(value, field.type).as_py()) is not type(value) or not is_simple(field.type)
            ):
                made.append((i, field.type))
        self.known[stage][kinds] = tuple(made)
        return tuple(made)

    def _changed(self, stage: int, picked: tuple[Any, ...], changes: _Changes) -> tuple[Any, ...]:
        values = list(picked)
        for i, kind in changes:
            try:
                values[i] = pa.scalar(values[i], kind).as_py(maps_as_pydicts="strict")
            except Exception:
                field = self.task.stages[stage].schema[i]
                raise UserError(
                    misfit(self.task.stages[stage].name, self.path[stage], values[i], field)
                ) from None
        return tuple(values)

    def _no_rows(self, stage: int, out: Any, error: BaseException) -> None:
        """Raise when an operator returned what is no rows at all."""
        if out is not None and not isinstance(out, Iterable) and _raised_here(error):
            names = self.task.stages[stage].schema.names
            raise UserError(wrong_row(self.task.stages[stage].name, self.path[stage], names, out))

    def _blame(self, path: Sequence[dict[str, Any] | None]) -> None:
        """Raise for the first operator of a chain whose row did not fit, although the next one took it."""
        for stage in range(1, len(path)):
            row = path[stage] or {}
            for field in self.task.stages[stage - 1].schema if row else ():
                if not fits(row[field.name], field):
                    name = self.task.stages[stage - 1].name
                    raise UserError(misfit(name, path[stage - 1], row[field.name], field))

    def _finish_all(self) -> Iterator[pa.RecordBatch]:
        """The end of all ports, operator by operator down the chain."""
        for stage in range(len(self.loaded)):
            yield from self._finish(stage)

    def _finish(self, stage: int) -> Iterator[pa.RecordBatch]:
        spec = self.task.stages[stage]
        if self.switches is not None and self.task.stateful:
            self._switch_code(stage, ())
        instance = self.loaded[stage].instance
        self.path = [None] * len(self.task.stages)
        if self.decided and self.decided.of(spec.name, self.bucket or 0, 0, AT_END, {}) is not None:
            return
        for port in range(spec.ports):
            outside = swap(self.loaded[stage].results)
            try:
                out = instance.finish() if spec.ports == 1 else instance.finish(port)
                for child, made in enumerate(m for m in (out or ()) if m is not None):
                    if isinstance(made, pa.RecordBatch):
                        for row in made.to_pylist():
                            self._emit(stage, row, self._end_position(stage, port, child))
                    else:
                        self._emit(stage, made, self._end_position(stage, port, child))
                    if len(self.rows) >= FLUSH:
                        yield self._flush()
            except (UserError, ReplayDiffers, TaskAbandoned):
                raise
            except RAISED as error:
                raise UserError(raised(spec.name, None, error)) from None
            finally:
                swap(outside)

    def _end_position(self, stage: int, port: int, child: int) -> Position:
        """After all input; then by bucket, port and order."""
        if not self.task.positions:
            return ()
        width = self.task.positions - (len(self.task.stages) - 1 - stage)
        return end_position(self.task.stages[stage].rank, self.bucket or 0, port, child, width)

    # --- batches ----------------------------------------------------------------------------------------------------

    def _feed_batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        spec = self.task.stages[0]
        for first, end in self._cut(stretches(view.ports, start, stop)):
            port = view.ports[first] if view.ports is not None else 0
            data = self._batch(view, port, first, end)
            self.taken[0][port] += end - first
            if data is None:
                continue
            child = 0
            outside = swap(self.loaded[0].results)
            try:
                for made in self.loaded[0].instance.process_batch(data, port) or ():  # type: ignore[attr-defined]
                    if made is None:
                        if self.client.news:
                            self._attend(0, port, self.taken[0][port] - 1)
                        continue
                    if failure := batch_misfit(spec.name, made, spec.schema, by_name=True):
                        raise UserError(failure)
                    self.given[0] += made.num_rows
                    self.loaded[0].prints.add_batch(made.select(spec.schema.names))
                    yield fitted(made, spec.schema, view.position(first), child, self.task.positions)
                    child += made.num_rows
            except (ReplayDiffers, TaskAbandoned):
                raise
            except RAISED as error:
                first_row = (data.slice(0, 1).to_pylist() or [{}])[0]
                if isinstance(error, UserError):
                    raise UserError(replace(error.failure, during=shown_batch(data, first_row))) from None
                failed = raised(spec.name, None, error, during=shown_batch(data, first_row))
                raise UserError(failed) from None
            finally:
                swap(outside)

    def _batch(self, view: View, port: int, first: int, end: int) -> pa.RecordBatch | None:
        """Rows for an operator in batch form; None: they were left out."""
        data = view.batch_of(port, first, end)
        if self.decided:
            name, number = self.task.stages[0].name, self.taken[0][port]
            return replaced(data, self.decided.of(name, self.bucket or 0, port, number, data.to_pylist()[0]))
        return data

    def _cut(self, parts: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The same stretches of rows, cut where other code begins."""
        for start, stop in parts:
            first = start
            while first < stop and self.decided:  # each row may have been decided about
                yield first, first + 1
                first += 1
            while first < stop and self.switches is not None:
                self._switch_code(0, ())
                before = sum(self.taken[0])
                at = self.switches.next_at(0)
                end = stop if at is None else min(stop, first + max(1, at - before))
                yield first, end
                first = end
            if first < stop:
                yield first, stop

    # --- rows out ---------------------------------------------------------------------------------------------------

    def _print(self) -> None:
        """Take the fingerprints of rows that wait to be sent on."""
        self.loaded[-1].prints.add(self.rows[self.printed :])
        self.printed = len(self.rows)

    def _flush(self) -> pa.RecordBatch:
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
        self._leave()
        self.bucket = bucket
        self.started = time.perf_counter()
        self.loaded = [load(self.task, stage, bucket) for stage in self.task.stages]
        begun = self._begun()
        self.marker = Marker(self.task.marks, self.task.mark_share, begun.passed, begun.marks)
        self.keep_from(bucket, self.task)
        self.taken = [list(s.taken.get(bucket, (0,) * s.ports)) for s in self.task.stages]
        self.given = [s.given.get(bucket, 0) for s in self.task.stages]
        if self.switches is not None:
            self.switches.enter(bucket)

    def _begun(self) -> Begun:
        return self.task.begun.get(self.bucket or 0, Begun())

    def _leave(self) -> None:
        if self.bucket is None:
            return
        self._end_kept()
        self._print()
        if self.attendance is not None:
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
            kept=self.keeps,
        )

    def _mark(self, number: int) -> None:
        """Keep what changed since the mark before, and what was given."""
        self._cut_kept(number)
        for i, (stage, loaded) in enumerate(zip(self.task.stages, self.loaded, strict=True)):
            with told(stage, loaded):
                changes = loaded.take_changes()
                loaded.changes = changes if loaded.changes is None else composed(loaded.changes, changes)
                kept = {**changes, "used": len(loaded.results.made)}
                write_state(Path(stage.folder) / mark_name(self.bucket or 0, number), self._header(i), kept)


def _raised_here(error: BaseException) -> bool:
    """Whether an exception was raised by this module itself, not by code it called."""
    at = error.__traceback__
    return at is not None and at.tb_next is None
