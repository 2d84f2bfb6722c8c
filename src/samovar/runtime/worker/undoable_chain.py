"""Hold and fix, inside a worker: a tuple that raises stops its run in place until somebody decides about it.

Before a tuple is processed again or skipped, everything it did is undone: rows it gave, states it changed, in its own
operator and in those behind it in the chain. Nothing is kept for that tuple by tuple. The states before it are computed
again from the last base (the epoch's start, or a state taken on the way, about every second): a second chain, whose
output nobody sees, processes the tuples since up to the one that raised. Calls of `log_result` return what they
returned the first time.

An operator that gives another result each time it is computed cannot be undone: its epoch is done again as a whole.
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
from samovar.runtime.exchange.fingerprints import Fingerprints
from samovar.runtime.exchange.partition import partition_number
from samovar.runtime.exchange.plain_states import attributes
from samovar.runtime.exchange.task import Version
from samovar.runtime.exchange.user_errors import UserError, frames_of
from samovar.runtime.worker.batch import View, rows_at, stretches
from samovar.runtime.worker.bucket_state import loaded_as
from samovar.runtime.worker.chain import Chain, Observer
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
    """Where an undo starts from: states as changes since the epoch's start, counters, and the tuples fed since."""

    deltas: list[list[bytes]]
    taken: list[list[int]]
    given: list[int]
    used: list[int]
    prints: list[Fingerprints]
    codes: list[bytes]
    bare: list[bool]
    """Whether an operator's deltas are all there is: it switched to other code since the epoch's start."""
    fed: list[tuple[View, int, int]] = field(default_factory=list)


class Undo(Observer):
    """Holds a tuple that raises until somebody decides about it, and undoes it then."""

    def __init__(self) -> None:
        self.base = _Base([], [], [], [], [], [], [])
        self.fixed: dict[tuple[int, int, int], RecordedDecision] = {}
        """Decisions in force in this bucket: by stage, port and number of the tuple."""
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
        self.base = _Base(
            deltas,
            [list(t) for t in chain.taken],
            list(chain.given),
            [len(one.results.made) for one in chain.loaded],
            [_copied(one.prints) for one in chain.loaded],
            [one.code for one in chain.loaded],
            [one.switched for one in chain.loaded],
        )
        self.switched_before = len(chain.switches.done) if chain.switches is not None else 0
        self._due = time.perf_counter() + EVERY

    def _rebase(self) -> None:
        """Take the states as they are now as the base."""
        began = time.perf_counter()
        deltas = self.base.deltas
        for own, one in zip(deltas, self.chain.loaded, strict=True):
            if one.gone is not None:
                own.clear()
            own.append(dumps(one.take_changes()))
            changes = pickle.loads(own[-1])  # a copy: later tuples may change what the state holds
            one.changes = changes if one.changes is None else composed(one.changes, changes)
        self._set_base(deltas)
        self._due += (time.perf_counter() - began) / SHARE

    # --- one tuple --------------------------------------------------------------------------------------------------

    def step(self, stage: int, row: dict[str, Any], port: int, at: Position) -> None:
        if stage == 0:
            self._note_row()
        chain = self.chain
        number = chain.taken[stage][port]
        kept = len(chain.rows)
        given = dict(row)  # operators may change the row they get
        while True:
            try:
                chain.step(stage, row, port, at)
                return
            except UserError as error:
                if error.failure.operator != chain.task.stages[stage].name or error.failure.row is None:
                    raise
                kind, edited = self._decide(stage, port, number, given, error)
                self._undo(stage, port, number, kept)
                if kind != "retry":
                    decision = self._decision(stage, port, number, kind, given, error, edited)
                    self.fixed[stage, port, number] = decision
                    if decision.edited is None:
                        chain.taken[stage][port] += 1
                        return
                    given = decision.edited
                row = dict(given)

    def _note_row(self) -> None:
        """Add the row that comes next to what was fed since the base; rows next to each other are noted as one."""
        if time.perf_counter() > self._due:
            self._rebase()
        (view, i), fed = self.chain.current, self.base.fed
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
        number = chain.taken[0][port]
        while True:
            if chain.switches is not None:
                chain.switch_code(0, ())
            if chain.loaded[0].gone is not None or time.perf_counter() > self._due:
                self._rebase()
            try:
                given = list(chain.batches(view, first, end))
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
                    self.fixed[0, port, number] = self._decision(0, port, number, kind, row, error, edited)
            else:
                self.base.fed.append((view, first, end))
                yield from given
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
                given = list(chain.finish(stage))
            except UserError as error:
                name = chain.task.stages[stage].name
                if error.failure.operator != name or error.failure.row is not None:
                    raise
                kind, _ = self._decide(stage, 0, AT_END, {}, error)
                self._take_back(_Again(self, None), stage, whole=True)
                chain.rows, chain.positions, chain.parents, chain.printed = [], [], [], 0
                if kind == "retry":
                    continue
                given = []
                self.fixed[stage, 0, AT_END] = self._decision(stage, 0, AT_END, "skip", {}, error, None)
            self.finishing = None
            yield from given
            return

    # --- decisions --------------------------------------------------------------------------------------------------

    def _decision(
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
            self.chain.task.stages[stage].name,
            self.chain.bucket or 0,
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
        chain, control = self.chain, self.chain.control
        if control is None or not control.heard:
            raise error
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
            # once only: a tuple that raises again with that decision needs another one
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
            (stage, port, number),
        )
        return decision.kind, pickle.loads(decision.row) if decision.row else None

    # --- undoing ----------------------------------------------------------------------------------------------------

    def _undo(self, stage: int, port: int, number: int, kept: int) -> None:
        """Bring this operator and those behind it to where they were before a tuple."""
        self._take_back(_Again(self, (stage, port, number)), stage)
        chain = self.chain
        del chain.rows[kept:], chain.parents[kept:]
        if chain.task.positions:
            del chain.positions[kept:]

    def _take_back(self, again: _Again, stage: int, *, whole: bool = False) -> None:
        """Bring an operator and those behind it to where another chain arrives. `whole`: no row waits to be sent on."""
        again.advance()
        chain, other = self.chain, again.chain
        for i in range(stage, len(chain.loaded)):
            own, before = chain.loaded[i], other.loaded[i]
            own.instance, own.capture, own.code = before.instance, before.capture, before.code
            own.switched, own.gone = before.switched, before.gone
            if chain.switches is not None:
                chain.switches.forget(i, before.code, sum(other.taken[i]))
            del own.results.made[before.results.place :]
            if whole or i + 1 < len(chain.loaded):
                own.prints = before.prints
            chain.taken[i], chain.given[i] = other.taken[i], other.given[i]


class _Again(Observer):
    """The chain once more from its base, up to a tuple; without one, up to the end of what was fed."""

    def __init__(self, undo: Undo, target: tuple[int, int, int] | None) -> None:
        first, base = undo.chain, undo.base
        chain = self.chain = Chain(first.task, self)
        self.target = target
        self.fixed = undo.fixed
        self.fed = base.fed
        self.finishing = undo.finishing
        chain.bucket, chain.started = first.bucket, first.started
        chain.taken = [list(t) for t in base.taken]
        chain.given = list(base.given)
        for i, stage in enumerate(chain.task.stages):
            instance: Operator = pickle.loads(base.codes[i])
            capture = StateCapture(stage.name, instance)
            files = () if base.bare[i] else stage.versions.get(chain.bucket or 0, Version()).files
            changes = [*(read_state(Path(f))[1] for f in files), *(pickle.loads(d) for d in base.deltas[i])]
            if changes:
                known: dict[str, bytes] = {}
                restore(instance, changes, known)
                capture.settle(known)
            results = Results(list(first.loaded[i].results.made), base.used[i])
            loaded = loaded_as(instance, capture, base.codes[i], results, _copied(base.prints[i]))
            loaded.switched = base.bare[i]
            chain.loaded.append(loaded)
        chain.switches = None
        if first.switches is not None:
            chain.switches = ChainSwitches(first.switches.names, chain.task.stateful)
            for i, switch in first.switches.done[undo.switched_before :]:
                chain.switches.ahead.setdefault(i, []).append(switch)

    def advance(self) -> None:
        """Process the tuples since the base up to the one that raised."""
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


def _copied(prints: Fingerprints) -> Fingerprints:
    other = copy.copy(prints)
    other.made = list(prints.made)
    return other
