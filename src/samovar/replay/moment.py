"""`sv.Moment`: a point in the past of a run, and the steps that lead from it. A step returns a new moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from samovar.errors import TimeTravelError, UnknownName
from samovar.positions import END
from samovar.record.log import Counters
from samovar.replay.forks import Cut, start_fork
from samovar.replay.line_trace import ExecutedLine, run_lines
from samovar.replay.queries import find_last_change
from samovar.replay.replay_session import ReplaySession
from samovar.replay.state.state_pages import page_of
from samovar.replay.trace.model import StateChange, Step, StepKey, Tuple
from samovar.replay.trace.stepper import Overlap, advanced, next_step, open_steps, overlap, waiting
from samovar.replay.trace.traced_window import Cursor, TracedWindow
from samovar.runtime.run import Run
from samovar.text import shown

__all__ = ["Moment", "StepInfo"]


@dataclass(frozen=True)
class StepInfo:
    """The computation step that led to a moment: the tuple it took, the tuples it produced, and what it changed."""

    operator: str
    row: Mapping[str, Any] | None
    outputs: tuple[Mapping[str, Any], ...]
    changes: tuple[StateChange, ...]
    port: int = 0
    taken: Tuple | None = None
    """The tuple that was processed, for `moment.scope`; None for the step at the end of the input."""
    given: tuple[Tuple, ...] = ()
    """The tuples of `outputs`."""


class Moment:
    """A point of a run: an epoch, and how many tuples each operator has processed in it.

    `step_over`, `step_into`, `step_out` and `step_back` return other moments; this one stays as it is.
    """

    def __init__(
        self,
        session: ReplaySession,
        cursor: Cursor,
        *,
        inside: tuple[StepKey, ...] = (),
        previous: Moment | None = None,
    ) -> None:
        self._session = session
        self._cursor = cursor
        self._traced, self._counts = cursor.traced, cursor.counts
        self._segment, self._trace = cursor.traced.segment, cursor.traced.trace
        self._inside = inside
        """Steps that were stepped into and whose scope is not done."""
        self._previous = previous

    def __repr__(self) -> str:
        done = [f"{op}: {n}" for op, n in self._counts.items() if n]
        return f"Moment(epoch={self.epoch}, level={self._segment.level}, in window: {{{', '.join(done)}}})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Moment)
            and other._session is self._session
            and other._traced is self._traced
            and other._counts == self._counts
        )

    def __hash__(self) -> int:
        return hash((self._traced.place, tuple(sorted(self._counts.items()))))

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch this moment lies in.

        >>> moment.epoch
        0
        """
        return self._segment.epoch

    @property
    def operator(self) -> str | None:
        """The operator that a jump or step led to, which views show; None after a jump to an epoch.

        >>> moment.operator
        'H'
        """
        return self._cursor.operator

    @cached_property
    def counters(self) -> dict[str, Counters]:
        """How many tuples every operator has taken (on each port) and produced since the run began.

        >>> moment.counters["H"].given
        4
        """
        return self._counted(self._session.operators)

    def _counted(self, names: Sequence[str]) -> dict[str, Counters]:
        """The counters of some operators."""
        edges = self._trace.edges
        counters = self._session.timelines.counters(self._traced, names)
        for op in (name for name in names if name in self._trace.steps):
            taken, given = [0] * max(len(edges.inputs[op]), 1), 0
            for step in self._done(op):
                if step.taken is not None:
                    taken[step.port] += 1
                given += len(step.outputs)
            if edges.shapes[op] == "sink":  # the rows it keeps count as its output
                given = sum(taken)
            old = counters.get(op, Counters())
            sums = tuple(t + (old.taken[i] if i < len(old.taken) else 0) for i, t in enumerate(taken))
            counters[op] = Counters(sums, old.given + given)
        for leaf in (name for name in self._session.giving_leaves(self._segment) if name in names):
            places = {  # a tuple from storage counts as produced once some operator has taken it
                step.taken.position
                for op, _ in edges.consumers(leaf)
                for step in self._done(op)
                if step.taken is not None and step.taken.operator == leaf
            }
            old = counters.get(leaf, Counters())
            counters[leaf] = Counters(old.taken, old.given + len(places))
        return counters

    def _done(self, operator: str) -> tuple[Step, ...]:
        """An operator's steps of the window up to here."""
        return self._traced.steps(operator)[: self._cursor.done(operator)]

    def state(self, operator: str) -> dict[str, Any]:
        """An operator's state here: a mapping from state names to values.

        For a Python operator its declared states and attributes; for an aggregate its `groups`; for other operators how
        many tuples they have taken, produced (`given`) and dropped.

        >>> moment.state("H")["highest"]
        {'Chris': 60.0, 'Ann': 40.0, 'Bob': 50.0}
        """
        python, shape = self._session.is_python(operator), self._session.plan.shape(operator)
        if python or shape == "accumulate":
            traced, steps = self._state_place(operator)
            return self._session.timelines.timeline(traced, operator).at(steps)
        counted = self._counted([operator]).get(operator, Counters())
        taken, given = sum(counted.taken), counted.given
        if shape in ("sink", "keep"):
            return {"rows": taken}
        return {"taken": taken, "given": given} | ({"dropped": taken - given} if shape == "some" else {})

    def page(
        self,
        operator: str,
        name: str | None = None,
        *,
        start: int = 0,
        count: int = 50,
        where: str | None = None,
    ) -> list[tuple[Any, Any]]:
        """Some entries of a map of an operator's state, also where the whole would be too large to load.

        name: the state's name. start, count: which entries, by their number.
        where: SQL over a group's columns for an aggregate (whose groups come in the order of their keys), a Python
            expression over `key` and `value` for a Python operator.

        >>> moment.page("H", "highest", where="value > 50")
        [('Chris', 60.0)]
        """
        states = self.state(operator)
        maps = [n for n, v in states.items() if isinstance(v, Mapping)]
        name = name if name is not None else next(iter(maps), "")
        if name not in maps:
            raise UnknownName(name, maps, what=f"a map of '{operator}'")
        return page_of(states[name], start, count, where, sql=name == "groups", operator=operator)

    def _state_place(self, operator: str) -> tuple[TracedWindow, int]:
        """The window and the number of steps at which an operator has the state it has now."""
        session, here = self._session, self._segment
        if session.works_in(here, operator):
            return self._traced, self._cursor.done(operator)
        for segment in reversed(session.segments[: here.number + 1]):
            if session.works_in(segment, operator):
                traced = session.windows.last(segment)
                return traced, len(traced.steps(operator))
        for segment in session.segments[here.number :]:
            if session.works_in(segment, operator):
                return session.windows.first(segment), 0
        raise TimeTravelError(f"'{operator}' took no tuples in this run.", operator=operator)

    def pending(self, operator: str, limit: int | None = None) -> list[Tuple]:
        """Tuples that wait at an operator, in order; those of the traced window.

        Where none is left in the window, those of the next window. A tuple may wait for its turn: an operator with
        several inputs takes tuples in the order of the run.

        limit: how many tuples at most.

        >>> moment.pending("H", limit=1)[0].row["amount"]
        70.0
        """
        at = self._ready(operator, windows=1)
        trace = at._trace
        keys = waiting(trace, at._counts, operator, at._within(operator))
        tuples = (trace.step(k).taken for k in keys[:limit])
        return [t for t in tuples if t is not None]

    @property
    def last(self) -> StepInfo | None:
        """The computation step that led here; None right after a jump to an epoch's start.

        >>> moment.last.row["amount"]
        60.0
        """
        last = self._cursor.last
        return None if last is None else self._step_info(self._trace.step(last))

    def _step_info(self, step: Step) -> StepInfo:
        every = self._session.timelines.timeline(self._traced, step.operator).changes
        changes = tuple(every[step.number]) if step.number < len(every) else ()
        rows = tuple(output.row for output in step.outputs)
        return StepInfo(step.operator, step.row, rows, changes, step.port, step.taken, step.outputs)

    @property
    def steps(self) -> list[StepInfo]:
        """The computation steps between the moment before and this one, operator by operator.

        >>> [step.operator for step in moment.step_over("H").steps]
        ['large', 'H', 'S']
        """
        if self._previous is None:
            return []
        steps: list[StepInfo] = []
        traced: TracedWindow | None = self._previous._traced
        before = self._previous._counts
        while (
            traced is not None and traced.place != self._traced.place
        ):  # the rest of each window before this one
            steps += Moment(self._session, Cursor.end(traced))._steps_since(before)
            traced, before = self._session.windows.behind(traced), {}
        return steps + self._steps_since(before)

    def _steps_since(self, before: Mapping[str, int]) -> list[StepInfo]:
        return [
            self._step_info(step) for op in self._trace.steps for step in self._done(op)[before.get(op, 0) :]
        ]

    @property
    def changes(self) -> list[StateChange]:
        """What changed in all states since the moment before; after a jump, what the last step changed.

        >>> [change.operator for change in moment.changes]
        ['H']
        """
        if self._previous is None:
            return list(self.last.changes) if self.last is not None else []
        return [change for step in self.steps for change in step.changes]

    def scope(self, given: Tuple) -> list[Tuple]:
        """A tuple and all tuples that follow from it, within the traced window.

        given: the tuple, as `last` and `steps` have it.

        >>> [given.row["amount"] for given in moment.scope(moment.last.taken)]
        [60.0, 60.0]
        """
        trace = self._trace
        keys = trace.scope(trace.consumers(given))
        tuples = {given: None}
        for key in sorted(keys, key=lambda k: (list(trace.steps).index(k[0]), k[1])):
            for out in trace.step(key).outputs:
                tuples[out] = None
        return list(tuples)

    def last_change(self, operator: str, key: Any = None, name: str | None = None) -> Moment | None:
        """The moment after the last step, here or before, that changed a key of an operator's state.

        key: the key. name: the state's name, where several have such a key; a plain value has no key: `name` alone.

        >>> moment.last_change("H", "Bob").last.row["amount"]
        50.0
        """
        cursor = find_last_change(self._session, self._cursor, operator, key, name)
        return None if cursor is None else Moment(self._session, cursor)

    def lines(self, operator: str | None = None) -> list[ExecutedLine]:
        """The lines that a Python operator's last step before this moment ran, with the locals at each.

        >>> len(moment.lines("H")) > 1
        True
        """
        last = self._cursor.last
        chosen = operator or (last[0] if last else "")
        if not self._session.is_python(chosen):
            raise TimeTravelError(
                f"'{chosen}' runs inside Spark: it has no lines.",
                operator=chosen,
                hint="Lines can be shown for Python operators.",
            )
        number = self._cursor.done(chosen) - 1
        if number < 0:
            raise TimeTravelError(
                f"'{chosen}' has processed no tuple in the window before this moment.",
                operator=chosen,
                hint=f"Step first: m.step_into('{chosen}').lines('{chosen}').",
            )
        step = self._traced.steps(chosen)[number]
        record = self._traced.record(step)
        logged = record.results if record is not None else ()
        instance = self._session.timelines.instance_at(self._traced, chosen, number)
        return run_lines(instance, step.row, step.port, logged)

    # --- stepping ---------------------------------------------------------------------------------------------------

    def can_step_over(self, operator: str) -> bool:
        """Whether the operator's next tuple can be processed with its whole scope and no other tuple's scope.

        >>> moment.can_step_over("H")
        True
        """
        return self.why_not(operator) is None

    def why_not(self, operator: str) -> str | None:
        """Why `step_over` is not possible here; None when it is.

        >>> moment.why_not("H") is None
        True
        """
        at = self._ready(operator)
        key = next_step(at._trace, at._counts, operator, at._within(operator))
        if key is None:
            return at._no_tuple(operator).message
        clash = overlap(at._trace, at._counts, key)
        return None if clash is None else at._explain(clash)

    def step_over(self, operator: str) -> Moment:
        """Process an operator's next tuple, and all tuples that follow from it.

        operator: the operator whose next tuple is processed.

        >>> moment.step_over("H").state("H")["highest"]["Ann"]
        70.0
        """
        at = self._ready(operator)
        key = at._next(operator)
        clash = overlap(at._trace, at._counts, key)
        if clash is not None:
            raise TimeTravelError(
                at._explain(clash),
                operator=operator,
                hint="Use step_into: it goes operator by operator in the order of the run.",
            )
        counts = advanced(at._trace, at._counts, at._trace.scope([key]))
        return at._to(counts, key, operator, previous=self, inside=at._inside)

    def step_into(self, operator: str) -> Moment:
        """Have an operator process its next tuple; its output waits at the operators behind it.

        operator: the operator whose next tuple is processed.

        >>> moment.step_into("H").pending("S")[0].row["amount"]
        70.0
        """
        at = self._ready(operator)
        key = at._next(operator)
        counts = advanced(at._trace, at._counts, [key])
        return at._to(counts, key, operator, previous=self, inside=(*at._inside, key))

    def step_out(self) -> Moment:
        """Finish the scope of the tuple that was stepped into last.

        >>> moment.step_into("H").step_out().pending("S")
        []
        """
        for depth in range(len(self._inside), 0, -1):
            root = self._inside[depth - 1]
            left = open_steps(self._trace, self._counts, root)
            if left:
                counts = advanced(self._trace, self._counts, left)
                last = max(left, key=lambda k: (list(self._trace.steps).index(k[0]), k[1]))
                return self._to(counts, last, root[0], previous=self, inside=self._inside[: depth - 1])
        raise TimeTravelError(
            "Expected to be inside a tuple's scope, but none is open.",
            hint="Step into a tuple first: m.step_into('FE').",
        )

    def step_back(self) -> Moment:
        """Undo the last step; after a jump, go back by one tuple of the operator that was jumped to.

        >>> moment.step_back().counters["H"].given
        3
        """
        if self._previous is not None:
            return self._previous
        operator = self._cursor.operator or next(iter(self._trace.steps), None)
        if operator is None:
            raise TimeTravelError("There is nothing before this moment.")
        done = self._cursor.done(operator)
        if done:
            return Moment(self._session, Cursor.after(self._traced, operator, done - 1))
        before = self._session.windows.before(self._traced)
        if before is None:
            raise TimeTravelError("This is the beginning of the run: there is nothing before it.")
        last = len(before.steps(operator)) - 1
        if self._cursor.operator is None or last < 0:  # the same place, in the window before
            return Moment(self._session, Cursor.end(before, operator))
        return Moment(self._session, Cursor.after(before, operator, last))

    def _within(self, operator: str) -> set[str]:
        """The operators a person looks at: the operator of the last jump or step, and all behind it."""
        return self._trace.edges.downstream(self._chosen(operator))

    def _ready(self, operator: str, *, windows: int | None = None) -> Moment:
        """This moment, or the start of the next window that has a tuple for the operator, if this one has none left.

        windows: how many windows to go on at most (None: to the end), since each may have to be traced.
        """
        self._session.op(operator)
        at, passed = self, 0
        while len(at._traced.steps(operator)) == at._cursor.done(operator) and passed != windows:
            passed += 1
            following = self._session.windows.behind(at._traced)
            if following is None:
                break
            at = Moment(self._session, Cursor.start(following, self._chosen(operator)), previous=self)
        return at

    def _next(self, operator: str) -> StepKey:
        key = next_step(self._trace, self._counts, operator, self._within(operator))
        if key is None:
            raise self._no_tuple(operator)
        return key

    def _no_tuple(self, operator: str) -> TimeTravelError:
        """The error for an operator whose next tuple is not there."""
        trace, counts = self._trace, self._counts
        ready = (next_step(trace, counts, op, self._within(op)) for op in trace.steps)
        waits = [key[0] for key in ready if key is not None and trace.step(key).taken is not None]
        hint = f"Tuples wait at: {', '.join(waits)}." if waits else "This is the end of the run."
        early = waiting(trace, counts, operator, self._within(operator))
        missing = trace.steps[operator][self._cursor.done(operator)].taken if early else None
        if missing is None:
            message = f"Expected a tuple waiting at '{operator}', found none."
        else:  # it takes tuples in the order of the run
            message = (
                f"The next tuple of '{operator}' comes from '{missing.operator}' and is not there yet; "
                f"those that wait at '{operator}' come after it."
            )
        return TimeTravelError(message, operator=operator, hint=hint)

    def _explain(self, clash: Overlap) -> str:
        at = self._trace.step(clash.at)
        other = self._trace.step(clash.step)
        return (
            f"The next tuple of '{clash.operator}' cannot be stepped over alone: at '{at.operator}', {_row(at)} "
            f"comes before the end of its scope, and belongs to the next tuple {_row(other)}."
        )

    def _to(
        self,
        counts: Mapping[str, int],
        last: StepKey,
        operator: str,
        *,
        previous: Moment,
        inside: tuple[StepKey, ...] = (),
    ) -> Moment:
        self._session.windows.look_ahead(self._traced, sum(counts.values()))
        cursor = Cursor(self._traced, counts, last, self._chosen(operator))
        return Moment(self._session, cursor, inside=inside, previous=previous)

    def _chosen(self, operator: str) -> str:
        """The operator looked at after a step: it stays the same while steps are taken behind it."""
        present, edges = self._cursor.operator, self._trace.edges
        if present is not None and present in edges.inputs and operator in edges.downstream(present):
            return present
        return operator

    # --- another future ---------------------------------------------------------------------------------------------

    def fork(
        self,
        changes: Mapping[str, Any] | None = None,
        *,
        row: Mapping[str, Any] | None = None,
        record: str | os.PathLike[str] | None = None,
        interactive: bool | None = None,
    ) -> Run:
        """Start a new run from here with other logic, and return it.

        The new logic gets all source tuples that are not fully processed here: a tuple whose scope is open is processed
        again. The fork shares this run's recording up to here; its `write` operators keep their files in its recording.

        changes: by operator, as for `run.modify`: `{"FE": Fixed(), "FF": "label <> 'Fraud'"}`.
        row: columns to change in the next source tuple. record: the folder the fork's recording goes to; by default
            beside this run's. interactive: whether epochs are short.

        >>> moment.fork({"H": Highest()}).result("S").num_rows
        10
        """
        cut = self._cut()
        if row is not None and cut.at is None and cut.segment.level == cut.segment.low:
            cut = replace(cut, at=self._session.leaves.after(cut.segment, None, 0))
        return start_fork(
            self._session.tracer, cut, changes or {}, row=row, record=record, interactive=interactive
        )

    def _cut(self) -> Cut:
        """The first source tuple that is not fully processed by the operators looked at."""
        segment, window, trace = self._segment, self._traced.window, self._trace
        if segment.level > segment.low:
            return Cut(segment, None)
        leaves = self._session.leaves
        chosen = self._cursor.operator
        within = set(trace.steps)
        if chosen is not None and chosen in trace.edges.inputs:
            within &= trace.edges.downstream(chosen)
        if window.low is None and not any(self._cursor.done(op) for op in within):
            return Cut(segment, None)
        ahead = [
            trace.steps[op][self._cursor.done(op)].taken
            for op in within
            if self._cursor.done(op) < len(trace.steps[op])
        ]
        tuples = [t.position for t in ahead if t is not None and t.position[0] < END]
        places = [leaves.leaf_of(segment, at) for at in tuples]
        if places:
            return Cut(segment, min(places))
        if window.high is not None:
            return Cut(segment, window.high)
        if segment.number + 1 < len(self._session.segments):
            return Cut(self._session.segments[segment.number + 1], None)
        raise TimeTravelError(
            "This is the end of the run: nothing is left to process otherwise.",
            hint="Fork from an earlier moment.",
        )


def _row(step: Step) -> str:
    return "the end of its input" if step.row is None else shown(dict(step.row), 120)
