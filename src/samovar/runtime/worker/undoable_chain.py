"""Hold and fix, inside a worker: a tuple that raises stops its run in place until somebody decides about it.

Before a tuple is processed again or left out, everything it did is undone: rows it gave, states it changed, in its own
operator and in those behind it in the chain. Nothing is kept for that tuple by tuple. The states before it are made
again from the last base (the epoch's start, or a state taken on the way, about every second) by processing the tuples
since once more, unseen, up to the one that raised. What `log_result` gave is given back, not asked for again.

An operator that gives something else each time it is computed cannot be undone: its epoch is done again as a whole.
"""

from __future__ import annotations

import copy
import math
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from samovar.control import messages as m
from samovar.control.agent import TaskAbandoned
from samovar.graph.logged_results import Results
from samovar.graph.operator import Operator, is_batch_form
from samovar.positions import Position, counting_partition
from samovar.record.state_files import StateCapture, composed, dumps, read_state, restore
from samovar.runtime.exchange.code_switch import ChainSwitches
from samovar.runtime.exchange.decisions import AT_END, RecordedDecision, file_name, replaced, write_decisions
from samovar.runtime.exchange.fingerprints import Prints
from samovar.runtime.exchange.plain_states import attributes
from samovar.runtime.exchange.task import Task, Version
from samovar.runtime.exchange.user_errors import UserError, frames_of
from samovar.runtime.worker.arrival import partition_number
from samovar.runtime.worker.batch import View, stretches
from samovar.runtime.worker.bucket_state import loaded_as
from samovar.runtime.worker.chain import FLUSH, Chain
from samovar.runtime.worker.task_control import Feeding
from samovar.text import shown

__all__ = ["HoldingChain"]

EVERY = 0.5
"""Seconds between bases at least: so much work is done again at most, if states are small."""
SHARE = 0.02
"""Of the time, what taking bases may cost."""


class _Reached(TaskAbandoned):
    """The tuple that raised is next. Passes through the tuple loop as what ends a task does."""


@dataclass
class _Base:
    """A place to start from again: states as changes since the epoch's start, counters, and the tuples since."""

    deltas: list[list[bytes]]
    taken: list[list[int]]
    given: list[int]
    used: list[int]
    prints: list[Prints]
    codes: list[bytes]
    bare: list[bool]
    """Whether an operator's deltas are all there is: it switched to other code since the epoch's start."""
    fed: list[tuple[View, int, int]] = field(default_factory=list)


class HoldingChain(Chain):
    """A chain that waits for a decision when a tuple raises."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.base = _Base([], [], [], [], [], [], [])
        self.fixed: dict[tuple[int, int, int], RecordedDecision] = {}
        """Decisions in force in this bucket: by stage, port and number of the tuple."""
        self._due = math.inf
        self._decided_before: set[m.TuplePlace] = set()
        self._switched_before = 0
        """How many switches were done up to the base."""
        self.finishing: int | None = None
        """The operator that sees the end of its input."""

    # --- rows in ----------------------------------------------------------------------------------------------------

    def _feed_plainly(self, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        raise AssertionError("a chain that holds feeds row by row")

    def _is_plain(self, view: View) -> bool:
        return False

    def _feed_rows(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        rows = view.rows(start, stop) if view.ports is None else []
        self.feeding = Feeding(range(start, stop), sum(self.taken[0]))
        self.rows_at = lambda waiting: [_row(view, rows, start, i) for i in waiting]
        first = start
        for i in self.feeding.waiting:
            if time.perf_counter() > self._due:
                self._rebase()
                first = i
            if self.base.fed and first < i:
                self.base.fed[-1] = (view, first, i + 1)
            else:
                self.base.fed.append((view, i, i + 1))
                first = i
            port = view.ports[i] if view.ports is not None else 0
            self._feed(0, _row(view, rows, start, i), port, view.position(i))
            if len(self.rows) >= FLUSH:
                yield self._flush()
        self.feeding = None

    # --- batches ----------------------------------------------------------------------------------------------------

    def _feed_batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        for first, end in stretches(view.ports, start, stop):
            yield from self._hold_batch(view, first, end)

    def _hold_batch(self, view: View, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """Process rows as one batch; if that raises, undo it and process its halves, down to the row that raises."""
        port = view.ports[first] if view.ports is not None else 0
        number = self.taken[0][port]
        while True:
            if self.switches is not None:
                self._switch_code(0, ())
            if self.loaded[0].gone is not None or time.perf_counter() > self._due:
                self._rebase()
            try:
                made = list(super()._feed_batches(view, first, end))
            except UserError as error:
                self._take_back(_Again(self, None), 0, whole=True)
                if end - first > 1:
                    middle = (first + end) // 2
                    yield from self._hold_batch(view, first, middle)
                    yield from self._hold_batch(view, middle, end)
                    return
                row = view.batch_of(port, first, end).to_pylist(maps_as_pydicts="strict")[0]
                before = self.fixed.get((0, port, number))
                kind, edited = self._decide(0, port, number, (before and before.edited) or row, error)
                if kind != "retry":
                    self.fixed[0, port, number] = self._decided(0, port, number, kind, row, error, edited)
            else:
                self.base.fed.append((view, first, end))
                yield from made
                return

    def _batch(self, view: View, port: int, first: int, end: int) -> pa.RecordBatch | None:
        return replaced(view.batch_of(port, first, end), self.fixed.get((0, port, self.taken[0][port])))

    # --- the end ----------------------------------------------------------------------------------------------------

    def _finish(self, stage: int) -> Iterator[pa.RecordBatch]:
        if type(self.loaded[stage].instance).finish is Operator.finish and self.switches is None:
            return
        if self.rows:
            yield self._flush()
        self._rebase()
        self.finishing = stage
        while True:
            try:
                made = list(super()._finish(stage))
            except UserError as error:
                name = self.task.stages[stage].name
                if error.failure.operator != name or error.failure.row is not None:
                    raise
                kind, _ = self._decide(stage, 0, AT_END, {}, error)
                self._take_back(_Again(self, None), stage, whole=True)
                self.rows, self.positions, self.parents, self.printed = [], [], [], 0
                if kind == "retry":
                    continue
                made = []
                self.fixed[stage, 0, AT_END] = self._decided(stage, 0, AT_END, "skip", {}, error, None)
            self.finishing = None
            yield from made
            return

    # --- buckets ----------------------------------------------------------------------------------------------------

    def _enter(self, bucket: int) -> None:
        if self.bucket == bucket:
            return
        super()._enter(bucket)
        self.fixed = {}
        self._set_base([[] for _ in self.loaded])

    def _leave(self) -> None:
        bucket = self.bucket
        super()._leave()
        if bucket is not None and self.fixed:
            name = file_name(self.task.stages[0].name, bucket, self._partition)
            write_decisions(Path(self.task.errors).parent, name, self.fixed.values())

    @property
    def _partition(self) -> int:
        """Where the tuples of a stateless operator are counted; a bucket is the same whichever partition it is in."""
        return 0 if self.task.stateful else partition_number()

    # --- bases ------------------------------------------------------------------------------------------------------

    def _set_base(self, deltas: list[list[bytes]]) -> None:
        self.base = _Base(
            deltas,
            [list(t) for t in self.taken],
            list(self.given),
            [len(one.results.made) for one in self.loaded],
            [_copied(one.prints) for one in self.loaded],
            [one.code for one in self.loaded],
            [one.switched for one in self.loaded],
        )
        self._switched_before = len(self.switches.done) if self.switches is not None else 0
        self._due = time.perf_counter() + EVERY

    def _rebase(self) -> None:
        """Take the states as they are now as the base."""
        began = time.perf_counter()
        deltas = self.base.deltas
        for own, one in zip(deltas, self.loaded, strict=True):
            if one.gone is not None:
                own.clear()
            own.append(dumps(one.take_changes()))
            changes = pickle.loads(own[-1])  # a copy: later tuples may change what the state holds
            one.changes = changes if one.changes is None else composed(one.changes, changes)
        self._set_base(deltas)
        self._due += (time.perf_counter() - began) / SHARE

    # --- one tuple --------------------------------------------------------------------------------------------------

    def _feed(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        number = self.taken[stage][port]
        kept = len(self.rows)
        given = dict(row)  # operators may change the row they get
        while True:
            try:
                super()._feed(stage, row, port, at)
            except UserError as error:
                if error.failure.operator != self.task.stages[stage].name or error.failure.row is None:
                    raise
                kind, edited = self._decide(stage, port, number, given, error)
                self._undo(stage, port, number, kept)
                if kind == "retry":
                    row = dict(given)
                    continue
                decided = self._decided(stage, port, number, kind, given, error, edited)
                self.fixed[stage, port, number] = decided
                if decided.edited is None:
                    self.taken[stage][port] += 1
                    return
                given = decided.edited
                row = dict(given)
            else:
                return

    def _emit(self, stage: int, row: Any, at: Position) -> None:
        if stage + 1 == len(self.task.stages):  # types that do not fit would show only when rows are sent on
            picked = self._pick(stage, row)
            kinds = tuple(map(type, picked))
            if kinds not in self.known[stage]:
                self._learn(stage, kinds, picked)
        super()._emit(stage, row, at)

    def _decided(
        self,
        stage: int,
        port: int,
        number: int,
        kind: str,
        row: dict[str, Any],
        error: UserError,
        edited: dict[str, Any] | None,
    ) -> RecordedDecision:
        before = self.fixed.get((stage, port, number))  # an edited tuple may raise again
        return RecordedDecision(
            self.task.stages[stage].name,
            self.bucket or 0,
            port,
            number,
            "edit" if kind == "edit" and edited is not None else "skip",
            row if before is None else before.row,
            error.failure.error,
            edited if kind == "edit" else None,
        )

    def _decide(
        self, stage: int, port: int, number: int, row: dict[str, Any], error: UserError
    ) -> tuple[str, dict[str, Any] | None]:
        """Report the tuple and wait for a decision, unless one stands already."""
        attendance = self.attendance
        if attendance is None or not attendance.heard:
            raise error
        name = self.task.stages[stage].name
        partition = counting_partition(self.bucket or 0, self._partition)
        place = m.TuplePlace(name, self.task.epoch, partition, port, number)
        cause = error.__context__
        frames = frames_of(cause) if cause is not None and not error.failure.mismatch else []
        last = f"{frames[-1].file}:{frames[-1].line}" if frames else error.failure.error[:80]
        like = f"{type(cause).__name__ if frames else 'output'} at {last}"
        agent = attendance.agent
        before = agent.decisions.get(place)
        if before is not None and place not in self._decided_before:
            # once only: a tuple that raises again with that decision needs another one
            self._decided_before.add(place)
            return before.kind, pickle.loads(before.row) if before.row else None
        if (name, like) in agent.skip_all:
            return "skip", None
        decision = attendance.hold(
            m.Held(
                hold=agent.new_hold(),
                place=place,
                error=error.failure.error,
                like=like,
                row=dumps(row),
                shown=shown(row, 600) if number != AT_END else "the end of its input",
                frames=tuple(frames),
                state=shown(attributes(self.loaded[stage].instance), 2000),
            ),
            (stage, port, number),
        )
        return decision.kind, pickle.loads(decision.row) if decision.row else None

    # --- undoing ----------------------------------------------------------------------------------------------------

    def _undo(self, stage: int, port: int, number: int, kept: int) -> None:
        """Bring this operator and those behind it to where they were before a tuple."""
        self._take_back(_Again(self, (stage, port, number)), stage)
        del self.rows[kept:], self.parents[kept:]
        if self.task.positions:
            del self.positions[kept:]

    def _take_back(self, again: _Again, stage: int, *, whole: bool = False) -> None:
        """Bring an operator and those behind it to where another chain comes. `whole`: no row waits to be sent on."""
        again.advance()
        for i in range(stage, len(self.loaded)):
            own, made = self.loaded[i], again.loaded[i]
            own.instance, own.capture, own.code = made.instance, made.capture, made.code
            own.switched, own.gone = made.switched, made.gone
            if self.switches is not None:
                self.switches.forget(i, made.code, sum(again.taken[i]))
            del own.results.made[made.results.place :]
            if whole or i + 1 < len(self.loaded):
                own.prints = made.prints
            self.taken[i], self.given[i] = again.taken[i], again.given[i]


class _Again(Chain):
    """The chain once more from its base, up to a tuple; without one, up to the end of what was fed."""

    def __init__(self, chain: HoldingChain, target: tuple[int, int, int] | None) -> None:
        super().__init__(chain.task)
        base = chain.base
        self.target = target
        self.fixed = chain.fixed
        self.fed = base.fed
        self.finishing = chain.finishing
        self.bucket, self.started = chain.bucket, chain.started
        self.taken = [list(t) for t in base.taken]
        self.given = list(base.given)
        for i, stage in enumerate(self.task.stages):
            instance: Operator = pickle.loads(base.codes[i])
            capture = StateCapture(stage.name, instance)
            files = () if base.bare[i] else stage.versions.get(self.bucket or 0, Version()).files
            changes = [*(read_state(Path(f))[1] for f in files), *(pickle.loads(d) for d in base.deltas[i])]
            if changes:
                known: dict[str, bytes] = {}
                restore(instance, changes, known)
                capture.settle(known)
            results = Results(list(chain.loaded[i].results.made), base.used[i])
            self.loaded.append(loaded_as(instance, capture, base.codes[i], results, _copied(base.prints[i])))
            self.loaded[i].switched = base.bare[i]
        self.switches = None
        if chain.switches is not None:
            self.switches = ChainSwitches(chain.switches.names, self.task.stateful)
            for i, switch in chain.switches.done[chain._switched_before :]:
                self.switches.ahead.setdefault(i, []).append(switch)

    def advance(self) -> None:
        """Process the tuples since the base up to the one that raised."""
        try:
            for seen, start, stop in self.fed:
                view = View(
                    seen.batch, self.task.positions > 0
                )  # operators may have changed the rows they got
                if is_batch_form(type(self.loaded[0].instance)):
                    for _ in self._feed_batches(view, start, stop):
                        pass
                    continue
                rows = view.rows(start, stop) if view.ports is None else []
                for i in range(start, stop):
                    port = view.ports[i] if view.ports is not None else 0
                    self._feed(0, _row(view, rows, start, i), port, view.position(i))
                self.rows, self.parents, self.positions = [], [], []
            if self.target is None:
                return
            if self.finishing is not None:
                for _ in self._finish(self.finishing):
                    pass
        except _Reached:
            return
        except UserError as error:
            self._differs(error.failure.error)
        self._differs("the tuple did not come again")

    def _batch(self, view: View, port: int, first: int, end: int) -> pa.RecordBatch | None:
        return replaced(view.batch_of(port, first, end), self.fixed.get((0, port, self.taken[0][port])))

    def _differs(self, why: str) -> NoReturn:
        raise TaskAbandoned(f"A tuple could not be undone, since its operator is not deterministic: {why}")

    def _feed(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        if self.switches is not None:
            self._switch_code(stage, at)
        place = (stage, port, self.taken[stage][port])
        if place == self.target:
            raise _Reached("the tuple is reached")
        decided = self.fixed.get(place)
        if decided is not None and decided.edited is None:
            self.taken[stage][port] += 1
            return
        super()._feed(stage, row if decided is None else dict(decided.edited or {}), port, at)


def _row(view: View, rows: list[dict[str, Any]], start: int, i: int) -> dict[str, Any]:
    if view.ports is None:
        return rows[i - start]
    return view.structs(view.ports[i])[i]


def _copied(prints: Prints) -> Prints:
    made = copy.copy(prints)
    made.made = list(prints.made)
    return made
