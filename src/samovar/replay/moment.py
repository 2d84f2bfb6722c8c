"""`sv.Moment`: a point in the past of a run, and the steps that lead from it. Immutable: a step gives a new moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from samovar.errors import TimeTravelError, UnknownName
from samovar.graph import operators as ops
from samovar.record.log import Counters
from samovar.replay.forks import Cut, start_fork
from samovar.replay.line_trace import Line, run_lines
from samovar.replay.queries import find_last_change
from samovar.replay.state.state_changes import Timeline
from samovar.replay.state.state_pages import page_of
from samovar.replay.state.windows import Stretch, Travel
from samovar.replay.trace.model import END, Change, Step, StepKey, Trace, Tuple
from samovar.replay.trace.segments import gives_here, leaves_of
from samovar.replay.trace.stepper import (
    Overlap,
    advanced,
    everything,
    next_step,
    open_steps,
    overlap,
    waiting,
)
from samovar.runtime.run import Run
from samovar.text import shown

__all__ = ["Moment", "StepInfo"]


@dataclass(frozen=True)
class StepInfo:
    """The computation step that led to a moment: what was taken, what was given, what it changed."""

    operator: str
    row: Mapping[str, Any] | None
    outputs: tuple[Mapping[str, Any], ...]
    changes: tuple[Change, ...]
    port: int = 0
    taken: Tuple | None = None
    """The tuple that was processed, for `moment.scope`; None for the step at the end of the input."""
    given: tuple[Tuple, ...] = ()
    """The tuples of `outputs`."""


class Moment:
    """A point of a run: an epoch, and how many tuples each operator has processed in it.

    `step_over`, `step_into`, `step_out` and `step_back` give other moments; this one stays as it is.
    """

    def __init__(
        self,
        travel: Travel,
        stretch: Stretch,
        counts: Mapping[str, int],
        *,
        last: StepKey | None = None,
        inside: tuple[StepKey, ...] = (),
        previous: Moment | None = None,
        operator: str | None = None,
    ) -> None:
        self._travel = travel
        self._stretch = stretch
        self._counts = dict(counts)
        self._last = last
        self._inside = inside
        """Steps that were stepped into and whose scope is not done."""
        self._previous = previous
        self._operator = operator
        """The operator somebody looks at: what `step_back` goes by after a jump."""

    def __repr__(self) -> str:
        return f"Moment(epoch={self.epoch}, {self._brief()})"

    def _brief(self) -> str:
        here = self._stretch.segment
        done = [f"{op}: {n}" for op, n in self._counts.items() if n]
        return f"level={here.level}, in window: {{{', '.join(done)}}}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Moment)
            and other._travel is self._travel
            and other._stretch is self._stretch
            and other._counts == self._counts
        )

    def __hash__(self) -> int:
        return hash((self._stretch.number, self._stretch.window, tuple(sorted(self._counts.items()))))

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch this moment lies in.

        >>> moment.epoch
        0
        """
        return self._stretch.segment.epoch

    @property
    def operator(self) -> str | None:
        """The operator that is looked at: the one that was jumped to or stepped; None after a jump to an epoch.

        >>> moment.operator
        'H'
        """
        return self._operator

    @cached_property
    def counters(self) -> dict[str, Counters]:
        """What every operator has taken (on each port) and given since the run began.

        >>> moment.counters["H"].given
        4
        """
        return self._counted()

    def _counted(self, names: Sequence[str] | None = None) -> dict[str, Counters]:
        """The counters of some operators; of all, if none are named."""
        trace = self._stretch.traced.trace
        before = self._travel.counters(self._stretch, names)
        made = dict(before)
        for op, steps in trace.steps.items():
            if names is not None and op not in names:
                continue
            done = steps[: self._counts.get(op, 0)]
            ports = max(len(trace.edges.inputs[op]), 1)
            taken = [0] * ports
            given = 0
            for step in done:
                if step.taken is not None:
                    taken[step.port] += 1
                given += len(step.outputs)
            if trace.edges.shapes[op] == "sink":  # gives what it keeps
                given = sum(taken)
            old = before.get(op, Counters())
            sums = tuple(t + (old.taken[i] if i < len(old.taken) else 0) for i, t in enumerate(taken))
            made[op] = Counters(sums, old.given + given)
        self._add_leaves(made, names)
        return made

    def _add_leaves(self, made: dict[str, Counters], names: Sequence[str] | None) -> None:
        """Count what came from storage as given once somebody has taken it."""
        travel, level = self._travel, self._stretch.segment.level
        for leaf in leaves_of(travel.tracer.tracing, level):
            if gives_here(travel.tracer.tracing, leaf, level) and (names is None or leaf in names):
                places = {
                    step.taken.position
                    for op, _ in self._trace.edges.consumers(leaf)
                    for step in self._trace.steps.get(op, ())[: self._counts.get(op, 0)]
                    if step.taken is not None and step.taken.operator == leaf
                }
                old = made.get(leaf, Counters())
                made[leaf] = Counters(old.taken, old.given + len(places))

    def state(self, operator: str) -> dict[str, Any]:
        """An operator's state here: a mapping from state names to values.

        A Python operator's declared states and attributes; an aggregate's `groups`; for other operators how many tuples
        they have taken, given and dropped.

        >>> moment.state("H")["highest"]
        {'Chris': 60.0, 'Ann': 40.0, 'Bob': 50.0}
        """
        self._travel.check(operator)
        plan = self._travel.tracer.plan
        op = plan.graph.ops[operator]
        if isinstance(op, ops.Python) or plan.shape(operator) == "accumulate":
            stretch, steps = self._state_place(operator)
            return self._travel.timeline(stretch, operator).at(steps)
        counted = self._counted([operator]).get(operator, Counters())
        if plan.shape(operator) == "sink":
            return {"rows": sum(counted.taken)}
        if plan.shape(operator) == "keep":
            return {"rows": sum(counted.taken)}
        made = {"taken": sum(counted.taken), "given": counted.given}
        if plan.shape(operator) == "some":
            made["dropped"] = made["taken"] - made["given"]
        return made

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

        >>> moment.page("H", "highest", where="value > 50").items
        """
        states = self.state(operator)
        maps = [n for n, v in states.items() if isinstance(v, Mapping)]
        name = name if name is not None else next(iter(maps), "")
        if name not in maps:
            raise UnknownName(name, maps, what=f"a map of '{operator}'")
        return page_of(states[name], start, count, where, sql=name == "groups", operator=operator)

    def _state_place(self, operator: str) -> tuple[Stretch, int]:
        """Where an operator's state can be read: here, or at the end of the level it worked on last."""
        travel, here = self._travel, self._stretch
        if travel.works_in(here.segment, operator):
            return here, self._counts.get(operator, 0)
        for number in range(here.number, -1, -1):
            if travel.works_in(travel.segments[number], operator):
                stretch = travel.last_of(number)
                return stretch, len(stretch.traced.trace.steps.get(operator, ()))
        for number in range(here.number, len(travel.segments)):
            if travel.works_in(travel.segments[number], operator):
                return travel.opening(number), 0
        raise TimeTravelError(f"'{operator}' took no tuples in this run.", operator=operator)

    def pending(self, operator: str, limit: int | None = None) -> list[Tuple]:
        """Tuples given to an operator and not yet processed by it, in order; those of the traced window.

        Where none is left of the window, those of the next one.

        limit: how many tuples at most.

        >>> moment.pending("H", limit=1)[0]["amount"]
        70.0
        """
        at = self._ready(operator, windows=1)
        trace = at._trace
        found = waiting(trace, at._counts, operator, at._within(operator))
        tuples = (trace.step(k).taken for k in found[:limit])
        return [t for t in tuples if t is not None]

    @property
    def last(self) -> StepInfo | None:
        """The computation step that led here; None right after a jump to an epoch's start.

        >>> moment.last.row["amount"]
        60.0
        """
        if self._last is None:
            return None
        return self._told(self._stretch.traced.trace.step(self._last))

    def _told(self, step: Step) -> StepInfo:
        line = self._timeline(step.operator)
        changes = tuple(line.changes[step.number]) if step.number < len(line.changes) else ()
        rows = tuple(t.row for t in step.outputs)
        return StepInfo(step.operator, step.row, rows, changes, step.port, step.taken, step.outputs)

    def _timeline(self, operator: str) -> Timeline:
        return self._travel.timeline(self._stretch, operator)

    @property
    def steps(self) -> list[StepInfo]:
        """The computation steps between the moment before and this one, operator by operator.

        >>> [step.operator for step in moment.step_over("H").steps]
        ['H', 'S']
        """
        if self._previous is None:
            return []
        found: list[StepInfo] = []
        stretch: Stretch | None = self._previous._stretch
        before = self._previous._counts
        while stretch is not None and stretch.place != self._stretch.place:  # what was left of windows before
            here = Moment(self._travel, stretch, everything(stretch.traced.trace))
            found += here._steps_since(before)
            stretch, before = self._travel.following(stretch), {}
        return found + self._steps_since(before)

    def _steps_since(self, before: Mapping[str, int]) -> list[StepInfo]:
        return [
            self._told(s)
            for op, own in self._trace.steps.items()
            for s in own[before.get(op, 0) : self._counts.get(op, 0)]
        ]

    @property
    def changes(self) -> list[Change]:
        """What changed in all states since the moment before; after a jump, what the last step changed.

        >>> [change.operator for change in moment.changes]
        ['H']
        """
        if self._previous is None:
            return list(self.last.changes) if self.last is not None else []
        return [change for step in self.steps for change in step.changes]

    def scope(self, given: Tuple) -> list[Tuple]:
        """A tuple and all that was made from it, within the traced window.

        given: the tuple, as `last` and `steps` have it.

        >>> moment.scope(moment.last)
        """
        trace = self._stretch.traced.trace
        keys = trace.scope(trace.consumers(given))
        found = {given: None}
        for key in sorted(keys, key=lambda k: (list(trace.steps).index(k[0]), k[1])):
            for out in trace.step(key).outputs:
                found[out] = None
        return list(found)

    def last_change(self, operator: str, key: Any = None, name: str | None = None) -> Moment | None:
        """The moment after the last step, here or before, that changed a key of an operator's state.

        key: the key. name: the state's name, where several have such a key; a plain value has no key: `name` alone.

        >>> moment.last_change("H", "Bob").last.row["amount"]
        50.0
        """
        found = find_last_change(self._travel, self._stretch, self._counts, operator, key, name)
        if found is None:
            return None
        stretch, counts, last = found
        return Moment(self._travel, stretch, counts, last=last, operator=operator)

    def lines(self, operator: str | None = None) -> list[Line]:
        """The lines that a Python operator's last step before this moment ran, with the locals at each.

        >>> len(moment.lines("H")) > 1
        True
        """
        chosen = operator or (self._last[0] if self._last else "")
        self._travel.check(chosen)
        if not isinstance(self._travel.tracer.plan.graph.ops[chosen], ops.Python):
            raise TimeTravelError(
                f"'{chosen}' runs inside Spark: it has no lines.",
                operator=chosen,
                hint="Lines can be shown for Python operators.",
            )
        number = self._counts.get(chosen, 0) - 1
        if number < 0:
            raise TimeTravelError(
                f"'{chosen}' has processed no tuple in the window before this moment.",
                operator=chosen,
                hint=f"Step first: m.step_into('{chosen}').lines('{chosen}').",
            )
        step = self._trace.steps[chosen][number]
        record = self._travel.record_of(self._stretch, step)
        logged = record.results if record is not None else ()
        instance = self._travel.instance_at(self._stretch, chosen, number)
        return run_lines(instance, step.row, step.port, logged)

    # --- stepping ---------------------------------------------------------------------------------------------------

    def can_step_over(self, operator: str) -> bool:
        """Whether the operator's next tuple can be processed with its whole scope and no other tuple's.

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
            return at._nothing(operator)
        found = overlap(at._trace, at._counts, key)
        return None if found is None else at._explain(found)

    def step_over(self, operator: str) -> Moment:
        """Process an operator's next tuple, and all that comes of it.

        operator: by default the one that is looked at.

        >>> moment.step_over("H").state("H")["highest"]["Ann"]
        70.0
        """
        at = self._ready(operator)
        key = at._next(operator)
        found = overlap(at._trace, at._counts, key)
        if found is not None:
            raise TimeTravelError(
                at._explain(found),
                operator=operator,
                hint="Use step_into: it goes operator by operator in the order of the run.",
            )
        counts = advanced(at._trace, at._counts, at._trace.scope([key]))
        return at._to(counts, key, operator, previous=self, inside=at._inside)

    def step_into(self, operator: str) -> Moment:
        """Have an operator process its next tuple; what it gives waits at the operators behind it.

        operator: by default the one that is looked at.

        >>> moment.step_into("H").pending("S")[0]["amount"]
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
        operator = self._operator or next(iter(self._trace.steps), None)
        if operator is None:
            raise TimeTravelError("There is nothing before this moment.")
        done = self._counts.get(operator, 0)
        if done:
            own = [(operator, n) for n in range(done - 1)]
            counts = advanced(self._trace, {}, self._trace.scope(own))
            last = (operator, done - 2) if done > 1 else None
            return Moment(self._travel, self._stretch, counts, last=last, operator=operator)
        before = self._travel.preceding(self._stretch)
        if before is None:
            raise TimeTravelError("This is the beginning of the run: there is nothing before it.")
        trace = before.traced.trace
        return Moment(self._travel, before, everything(trace), operator=operator)._back_within(operator)

    def _back_within(self, operator: str) -> Moment:
        number = self._counts.get(operator, 0) - 1
        last = (operator, number) if number >= 0 else None
        return Moment(self._travel, self._stretch, self._counts, last=last, operator=operator)

    def _within(self, operator: str) -> set[str]:
        """The operators looked at: the one that was jumped to or stepped, and all behind it."""
        edges = self._trace.edges
        chosen = self._operator
        if chosen is not None and chosen in edges.inputs:
            found = edges.downstream(chosen)
            if operator in found:
                return found
        return edges.downstream(operator)

    @property
    def _trace(self) -> Trace:
        return self._stretch.traced.trace

    def _ready(self, operator: str, *, windows: int | None = None) -> Moment:
        """This moment, or the start of the next window when nothing is left of this one for the operator.

        Goes on until a window has something for it, at most over so many windows: each may have to be traced.
        """
        self._travel.check(operator)
        at, gone = self, 0
        while self._counts_left(at, operator) == 0 and gone != windows:
            gone += 1
            following = self._travel.following(at._stretch)
            if following is None:
                break
            counts = dict.fromkeys(following.traced.trace.steps, 0)
            at = Moment(self._travel, following, counts, previous=self, operator=self._chosen(operator))
        return at

    @staticmethod
    def _counts_left(at: Moment, operator: str) -> int:
        return len(at._trace.steps.get(operator, ())) - at._counts.get(operator, 0)

    def _next(self, operator: str) -> StepKey:
        key = next_step(self._trace, self._counts, operator, self._within(operator))
        if key is None:
            raise TimeTravelError(self._nothing(operator), operator=operator, hint=self._where(operator))
        return key

    def _nothing(self, operator: str) -> str:
        return f"Expected a tuple waiting at '{operator}', found none."

    def _where(self, operator: str) -> str:
        waits = [op for op in self._trace.steps if waiting(self._trace, self._counts, op, self._within(op))]
        return f"Tuples wait at: {', '.join(waits)}." if waits else "This is the end of the run."

    def _explain(self, found: Overlap) -> str:
        at = self._trace.step(found.at)
        other = self._trace.step(found.step)
        return (
            f"The next tuple of '{found.operator}' cannot be stepped over alone: at '{at.operator}', {_row(at)} "
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
        self._travel.look_ahead(self._stretch, sum(counts.values()))
        return Moment(
            self._travel,
            self._stretch,
            counts,
            last=last,
            inside=inside,
            previous=previous,
            operator=self._chosen(operator),
        )

    def _chosen(self, operator: str) -> str:
        """The operator looked at stays the same while steps are taken behind it."""
        mine = self._operator
        inside = mine is not None and mine in self._trace.edges.inputs
        return mine if mine and inside and operator in self._trace.edges.downstream(mine) else operator

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

        What the moment has not fully processed, the new logic gets: a source tuple whose scope is open begins anew. The
        fork shares this run's recording up to here; `write` operators of a fork keep their files in its recording.

        changes: by operator, as for `run.modify`: `{"FE": Fixed(), "FF": "label <> 'Fraud'"}`.
        row: columns to change in the next source tuple. record: the folder the fork's recording goes to; by default
            beside this run's. interactive: whether epochs are short.

        >>> moment.fork({"H": Highest()}).result("S").num_rows
        10
        """
        cut = self._cut()
        if row is not None and cut.at is None and cut.segment.level == cut.segment.low:
            cut = replace(cut, at=self._travel.first_leaf(cut.segment))
        return start_fork(
            self._travel.tracer, cut, changes or {}, row=row, record=record, interactive=interactive
        )

    def _cut(self) -> Cut:
        """The first source tuple that is not fully processed by the operators looked at."""
        stretch, trace = self._stretch, self._trace
        segment = stretch.segment
        if segment.level > segment.low:
            return Cut(segment, None)
        width = self._travel.leaf_width(segment)
        chosen = self._operator
        within = set(trace.steps)
        if chosen is not None and chosen in trace.edges.inputs:
            within = trace.edges.downstream(chosen)
        if stretch.window.low is None and not any(self._counts.get(op, 0) for op in within):
            return Cut(segment, None)
        ahead = [
            steps[self._counts.get(op, 0)].taken
            for op, steps in trace.steps.items()
            if op in within and self._counts.get(op, 0) < len(steps)
        ]
        places = [t.position[:width] for t in ahead if t is not None and t.position[0] < END]
        if places:
            return Cut(segment, min(places))
        if stretch.window.high is not None:
            return Cut(segment, stretch.window.high)
        following = stretch.number + 1
        if following < len(self._travel.segments):
            return Cut(self._travel.segments[following], None)
        raise TimeTravelError(
            "This is the end of the run: nothing is left to process otherwise.",
            hint="Fork from an earlier moment.",
        )


def _row(step: Step) -> str:
    return "the end of its input" if step.row is None else shown(dict(step.row), 120)
