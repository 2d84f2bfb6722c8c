"""Hold and fix, inside a worker: a tuple that raises stops its run in place until somebody decides about it.

Before a tuple is processed again or skipped, everything it did is undone: the rows it produced and the states it
changed, in its own operator and in those behind it in the chain. Nothing is stored for each tuple. The states before it
are computed again from the last base (the epoch's start, or a state taken on the way, about twice a second): a second
chain, whose output is dropped, processes the tuples since then up to the one that raised. Calls of `log_result` return
what they returned the first time.

The work of an operator that is not deterministic cannot be undone this way: its epoch is done again as a whole.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from samovar.control import messages as m
from samovar.control.agent import TaskAbandoned
from samovar.graph.logged_results import Results
from samovar.graph.operator import Operator, is_batch_form
from samovar.positions import Position, counting_partition
from samovar.record.state_files import composed, dumps
from samovar.runtime.exchange.code_switch import ChainSwitches
from samovar.runtime.exchange.decisions import AT_END, RecordedDecision, file_name, replaced, write_decisions
from samovar.runtime.exchange.fingerprints import Fingerprints
from samovar.runtime.exchange.partition import partition_number
from samovar.runtime.exchange.plain_states import attributes
from samovar.runtime.exchange.task import Version
from samovar.runtime.exchange.user_errors import UserError, frames_of
from samovar.runtime.worker.batch import View, rows_at, stretches
from samovar.runtime.worker.bucket_state import LoadedOperator, changes_in
from samovar.runtime.worker.chain import Chain, Observer
from samovar.runtime.worker.task_control import Step
from samovar.text import shown

__all__ = ["Undo"]

EVERY = 0.5
"""Seconds between two bases at least: an undo repeats about this much work, if states are small."""
SHARE = 0.02
"""Share of the time that taking bases may cost: a large state has fewer bases, and an undo repeats more."""


class _Reached(TaskAbandoned):
    """The tuple that raised is next. Passes through the tuple loop as what ends a task does."""


@dataclass
class _Base:
    """Where an undo starts from for one operator: its state as changes since the epoch's start, and its counters."""

    deltas: list[bytes]
    taken: list[int]
    given: int
    results: int
    prints: Fingerprints
    code: bytes
    switched: bool
    """Whether it switched to other code since the epoch's start: then its deltas hold the whole state."""


class Undo(Observer):
    """Holds a tuple that raises until somebody decides about it, and undoes it then."""

    def __init__(self) -> None:
        self.base: list[_Base] = []
        self.fed: list[tuple[View, int, int]] = []
        """The rows processed since the base: a batch, the first of its rows, and the row behind the last."""
        self.fixed: dict[Step, RecordedDecision] = {}
        """Decisions in force in this bucket."""
        self.finishing: int | None = None
        """The operator that sees the end of its input."""
        self.switched_before = 0
        """How many switches were done up to the base."""
        self._due = math.inf
        self._decided_before: set[m.TuplePlace] = set()

    # --- buckets and bases ------------------------------------------------------------------------------------------

    def entered(self) -> None:
        self.fixed = {}
        self._set_base([[] for _ in self.chain.loaded])

    def leaving(self) -> None:
        if self.fixed:
            task = self.chain.task
            name = file_name(task.stages[0].name, self.chain.bucket or 0, self._partition)
            write_decisions(Path(task.errors).parent, name, self.fixed.values())

    @property
    def _partition(self) -> int:
        """Where the tuples of a stateless operator are counted; a bucket is the same whichever partition it is in."""
        return 0 if self.chain.task.stateful else partition_number()

    def _set_base(self, deltas: list[list[bytes]]) -> None:
        chain = self.chain
        self.fed = []
        self.base = [
            _Base(
                deltas[i],
                list(chain.taken[i]),
                chain.given[i],
                len(loaded.results.made),
                loaded.prints.copy(),
                loaded.code,
                loaded.switched,
            )
            for i, loaded in enumerate(chain.loaded)
        ]
        self.switched_before = len(chain.switches.done) if chain.switches is not None else 0
        self._due = time.perf_counter() + EVERY

    def _rebase(self) -> None:
        """Take the states as they are now as the base."""
        began = time.perf_counter()
        for base, loaded in zip(self.base, self.chain.loaded, strict=True):
            if loaded.gone is not None:
                base.deltas.clear()
            base.deltas.append(dumps(loaded.take_changes()))
            changes = pickle.loads(base.deltas[-1])  # a copy: later tuples may change what the state holds
            loaded.changes = changes if loaded.changes is None else composed(loaded.changes, changes)
        self._set_base([base.deltas for base in self.base])
        self._due += (time.perf_counter() - began) / SHARE

    # --- one tuple --------------------------------------------------------------------------------------------------

    def step(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        if stage == 0:
            self._note_row()
        chain = self.chain
        place = (stage, port, chain.taken[stage][port])
        kept = len(chain.rows)
        original = dict(row)  # operators may change the row they get
        while True:
            try:
                chain.step(stage, row, port, at)
                return
            except UserError as error:
                if error.failure.operator != chain.task.stages[stage].name or error.failure.row is None:
                    raise
                kind, edited = self._decide(place, original, error)
                self._undo(place, kept)
                if kind != "retry":
                    decision = self._fix(place, kind, original, error, edited)
                    if decision.edited is None:
                        chain.taken[stage][port] += 1
                        return
                    original = decision.edited
                row = dict(original)

    def _note_row(self) -> None:
        """Add the next row to those processed since the base; neighbouring rows of a batch are one entry."""
        if time.perf_counter() > self._due:
            self._rebase()
        (view, i), fed = self.chain.current, self.fed
        if fed and fed[-1][0] is view and fed[-1][2] == i:
            fed[-1] = (view, fed[-1][1], i + 1)
        else:
            fed.append((view, i, i + 1))

    def give(self, stage: int, row: Any, at: Position) -> None:
        chain = self.chain
        if stage + 1 == len(chain.task.stages):  # types that do not fit would show only when rows are sent on
            chain.check_types(stage, chain.pick(stage, row))
        chain.give(stage, row, at)

    # --- batches ----------------------------------------------------------------------------------------------------

    def batches(self, view: View, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        for first, end in stretches(view.ports, start, stop):
            yield from self._hold_batch(view, first, end)

    def _hold_batch(self, view: View, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """Process rows as one batch; if that raises, undo it and process its halves, down to the row that raises."""
        chain = self.chain
        port = view.ports[first] if view.ports is not None else 0
        place = (0, port, chain.taken[0][port])
        while True:
            if chain.switches is not None:
                chain.switch_code(0, ())
            if chain.loaded[0].gone is not None or time.perf_counter() > self._due:
                self._rebase()
            try:
                outputs = list(chain.batches(view, first, end))
            except UserError as error:
                self._take_back(_Again(self, None), 0, whole=True)
                if end - first > 1:
                    middle = (first + end) // 2
                    yield from self._hold_batch(view, first, middle)
                    yield from self._hold_batch(view, middle, end)
                    return
                row = view.batch_of(port, first, end).to_pylist(maps_as_pydicts="strict")[0]
                before = self.fixed.get(place)
                kind, edited = self._decide(place, (before and before.edited) or row, error)
                if kind != "retry":
                    self._fix(place, kind, row, error, edited)
            else:
                self.fed.append((view, first, end))
                yield from outputs
                return

    def batch(self, view: View, port: int, first: int, end: int) -> pa.RecordBatch | None:
        return replaced(view.batch_of(port, first, end), self.fixed.get((0, port, self.chain.taken[0][port])))

    # --- the end ----------------------------------------------------------------------------------------------------

    def finish(self, stage: int) -> Iterator[pa.RecordBatch]:
        chain = self.chain
        if type(chain.loaded[stage].instance).finish is Operator.finish and chain.switches is None:
            return
        if chain.rows:
            yield chain.flush()
        self._rebase()
        self.finishing = stage
        while True:
            try:
                outputs = list(chain.finish(stage))
            except UserError as error:
                name = chain.task.stages[stage].name
                if error.failure.operator != name or error.failure.row is not None:
                    raise
                kind, _ = self._decide((stage, 0, AT_END), {}, error)
                self._take_back(_Again(self, None), stage, whole=True)
                chain.rows, chain.positions, chain.parents, chain.printed = [], [], [], 0
                if kind == "retry":
                    continue
                outputs = []
                self._fix((stage, 0, AT_END), "skip", {}, error, None)
            self.finishing = None
            yield from outputs
            return

    # --- decisions --------------------------------------------------------------------------------------------------

    def _fix(
        self, place: Step, kind: str, row: dict[str, Any], error: UserError, edited: dict[str, Any] | None
    ) -> RecordedDecision:
        """Put a decision about a tuple into force."""
        stage, port, number = place
        before = self.fixed.get(place)  # an edited tuple may raise again
        decision = self.fixed[place] = RecordedDecision(
            self.chain.task.stages[stage].name,
            self.chain.bucket or 0,
            port,
            number,
            "edit" if kind == "edit" and edited is not None else "skip",
            row if before is None else before.row,
            error.failure.error,
            edited if kind == "edit" else None,
        )
        return decision

    def _decide(self, step: Step, row: dict[str, Any], error: UserError) -> tuple[str, dict[str, Any] | None]:
        """Report the tuple and wait for a decision, unless there is one already."""
        chain, control = self.chain, self.chain.control
        if control is None or not control.heard:
            raise error
        stage, port, number = step
        name = chain.task.stages[stage].name
        partition = counting_partition(chain.bucket or 0, self._partition)
        place = m.TuplePlace(name, chain.task.epoch, partition, port, number)
        cause = error.__context__
        frames = frames_of(cause) if cause is not None and not error.failure.mismatch else []
        last = f"{frames[-1].file}:{frames[-1].line}" if frames else error.failure.error[:80]
        like = f"{type(cause).__name__ if frames else 'output'} at {last}"
        agent = control.agent
        before = agent.decisions.get(place)
        if before is not None and place not in self._decided_before:
            # once only: a tuple that raises again after that decision needs another one
            self._decided_before.add(place)
            return before.kind, pickle.loads(before.row) if before.row else None
        if (name, like) in agent.skip_all:
            return "skip", None
        decision = control.hold(
            m.Held(
                hold=agent.new_hold(),
                place=place,
                error=error.failure.error,
                like=like,
                row=dumps(row),
                shown=shown(row, 600) if number != AT_END else "the end of its input",
                frames=tuple(frames),
                state=shown(attributes(chain.loaded[stage].instance), 2000),
            ),
            step,
        )
        return decision.kind, pickle.loads(decision.row) if decision.row else None

    # --- undoing ----------------------------------------------------------------------------------------------------

    def _undo(self, place: Step, kept: int) -> None:
        """Bring the operator of a tuple and those behind it to their states before the tuple."""
        self._take_back(_Again(self, place), place[0])
        chain = self.chain
        del chain.rows[kept:], chain.parents[kept:]
        if chain.task.positions:
            del chain.positions[kept:]

    def _take_back(self, again: _Again, stage: int, *, whole: bool = False) -> None:
        """Take the states of another chain for an operator and those behind it. `whole`: no row waits to be sent on."""
        again.advance()
        chain, other = self.chain, again.chain
        for i in range(stage, len(chain.loaded)):
            now, before = chain.loaded[i], other.loaded[i]
            now.instance, now.capture, now.code = before.instance, before.capture, before.code
            now.switched, now.gone = before.switched, before.gone
            if chain.switches is not None:
                chain.switches.forget(i, before.code, sum(other.taken[i]))
            del now.results.made[before.results.place :]
            # Rows of the last operator that wait to be sent on have no fingerprints yet: those stay as they are.
            if whole or i + 1 < len(chain.loaded):
                now.prints = before.prints
            chain.taken[i], chain.given[i] = other.taken[i], other.given[i]


class _Again(Observer):
    """A second chain that starts from the base and processes the rows since, up to a tuple (None: all of them)."""

    def __init__(self, undo: Undo, target: Step | None) -> None:
        first = undo.chain
        chain = self.chain = Chain(first.task, self)
        self.target = target
        self.fixed = undo.fixed
        self.fed = undo.fed
        self.finishing = undo.finishing
        chain.bucket, chain.started = first.bucket, first.started
        chain.taken = [list(base.taken) for base in undo.base]
        chain.given = [base.given for base in undo.base]
        for stage, base, now in zip(chain.task.stages, undo.base, first.loaded, strict=True):
            results = Results(list(now.results.made), base.results)
            loaded = LoadedOperator(
                stage.name, base.code, results, base.prints.copy(), switched=base.switched
            )
            files = () if base.switched else stage.versions.get(chain.bucket or 0, Version()).files
            if files or base.deltas:
                loaded.catch_up([*changes_in(files), *map(pickle.loads, base.deltas)])
            chain.loaded.append(loaded)
        chain.switches = None
        if first.switches is not None:
            chain.switches = ChainSwitches(first.switches.names, chain.task.stateful)
            for i, switch in first.switches.done[undo.switched_before :]:
                chain.switches.ahead.setdefault(i, []).append(switch)

    def advance(self) -> None:
        """Process the rows since the base up to the tuple that raised."""
        chain = self.chain
        try:
            for seen, start, stop in self.fed:
                # a new view: operators may have changed the rows they got
                view = View(seen.batch, chain.task.positions > 0)
                if is_batch_form(type(chain.loaded[0].instance)):
                    for _ in chain.batches(view, start, stop):
                        pass
                    continue
                rows = view.rows(start, stop) if view.ports is None else []
                for i, row in enumerate(rows_at(view, rows, start, range(start, stop)), start):
                    self.step(0, row, view.ports[i] if view.ports is not None else 0, view.position(i))
                chain.rows, chain.parents, chain.positions = [], [], []
            if self.target is None:
                return
            if self.finishing is not None:
                for _ in chain.finish(self.finishing):
                    pass
        except _Reached:
            return
        except UserError as error:
            self._differs(error.failure.error)
        self._differs("the tuple did not come again")

    def batch(self, view: View, port: int, first: int, end: int) -> pa.RecordBatch | None:
        return replaced(view.batch_of(port, first, end), self.fixed.get((0, port, self.chain.taken[0][port])))

    def _differs(self, why: str) -> NoReturn:
        raise TaskAbandoned(f"A tuple could not be undone, since its operator is not deterministic: {why}")

    def step(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        chain = self.chain
        if chain.switches is not None:
            chain.switch_code(stage, at)
        place = (stage, port, chain.taken[stage][port])
        if place == self.target:
            raise _Reached("the tuple is reached")
        decision = self.fixed.get(place)
        if decision is not None and decision.edited is None:
            chain.taken[stage][port] += 1
            return
        chain.step(stage, row if decision is None else dict(decision.edited or {}), port, at)
