"""A recording one can move about in: its segments, their windows, and the states in them."""

from __future__ import annotations

import contextlib
import logging
import pickle
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from samovar.errors import ReplayDiffers, TimeTravelError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.operator import Operator
from samovar.graph.state import MapState, declared
from samovar.record.log import Counters
from samovar.record.state_files import read_state, restore
from samovar.replay.state.group_states import group_changes, groups_at_start
from samovar.replay.state.state_changes import Timeline, apply_changes, attributes, merged
from samovar.replay.trace.model import Change, Edges, Position, Step, StepKey, Window
from samovar.replay.trace.segments import Segment, edges_of, segments_of
from samovar.replay.trace.stepper import advanced, everything
from samovar.replay.trace.traced_chain import Record
from samovar.replay.trace.tracer import Traced, Tracer
from samovar.runtime.exchange.code_switch import restored_version
from samovar.runtime.exchange.task import Version

__all__ = ["Stretch", "Travel"]

log = logging.getLogger("samovar.replay")

WINDOW = 500
"""Leaf tuples that are traced at once."""
MARGIN = 50
"""Tuples before the moment that are traced too, for stepping back."""
KEPT = 24
"""Windows whose traces are kept."""
ROOM = 512 << 20
"""Bytes their states may take."""


@dataclass
class Stretch:
    """A traced window, and the states in it as far as somebody asked."""

    number: int
    """The number of its segment in the run."""
    traced: Traced
    timelines: dict[str, Timeline] = field(default_factory=dict)
    before: dict[str, Counters | None] = field(default_factory=dict)
    looked_ahead: bool = False

    @property
    def place(self) -> tuple[int, Window]:
        return self.number, self.traced.window

    @property
    def segment(self) -> Segment:
        return self.traced.segment

    @property
    def window(self) -> Window:
        return self.traced.window


class Travel:
    """Finds and traces what is asked for. Safe for several threads: a window is traced once."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.leaves = tracer.leaves
        self.segments: list[Segment] = segments_of(tracer.history.epochs)
        self._kept: OrderedDict[tuple[int, Window], Stretch] = OrderedDict()
        self._under_way: dict[tuple[int, Window], Future[Stretch]] = {}
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="samovar-ahead")
        self._lock = threading.RLock()

    # --- names and places -------------------------------------------------------------------------------------------

    @property
    def operators(self) -> list[str]:
        return list(self.tracer.plan.graph.ops)

    def check(self, operator: str) -> None:
        """Raise when there is no such operator."""
        if operator not in self.tracer.plan.graph.ops:
            raise UnknownName(operator, self.operators, what="an operator of the run")

    @cached_property
    def edges(self) -> dict[int, Edges]:
        """The operators at work on each level."""
        levels = {s.level for s in self.segments}
        return {level: edges_of(self.tracer.tracing, level) for level in levels}

    def works_in(self, segment: Segment, operator: str) -> bool:
        """Whether an operator takes tuples in a segment."""
        return bool(self.edges[segment.level].inputs.get(operator))

    def taken_in(self, segment: Segment, operator: str) -> int:
        """How many tuples an operator took in a segment, by the log."""
        if segment.epoch >= len(self.tracer.history.epochs):
            return 0  # it failed: nothing of it was counted
        counters = self.tracer.history.epochs[segment.epoch].counters.get(operator)
        if counters is None or not self.works_in(segment, operator):
            return 0
        edges = self.edges[segment.level]
        return sum(counters.taken[p] for p in edges.ports(operator) if p < len(counters.taken))

    # --- windows ----------------------------------------------------------------------------------------------------

    def stretch(self, number: int, window: Window) -> Stretch:
        """The trace of a window, from memory if it is there.

        Where an operator took tuples as they arrived, a range of positions is no stretch of time: then it is the whole.
        """
        if "arrival" in self.edges[self.segments[number].level].order.values():
            window = Window()
        key = (number, window)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            waiting = self._under_way.get(key)
            if waiting is None:
                own = self._under_way[key] = Future[Stretch]()
        if waiting is not None:
            return waiting.result()
        try:
            made = Stretch(number, self.tracer.trace(self.segments[number], window))
        except BaseException as error:
            with self._lock:
                del self._under_way[key]
            own.set_exception(error)
            raise
        with self._lock:
            self._kept[key] = made
            del self._under_way[key]
            while len(self._kept) > KEPT or (len(self._kept) > 2 and self._size() > ROOM):
                self._kept.popitem(last=False)
        own.set_result(made)
        return made

    def _size(self) -> int:
        return sum(stretch.traced.size for stretch in self._kept.values())

    def look_ahead(self, stretch: Stretch, done: int) -> None:
        """Trace the window behind in the background once somebody has stepped through half of this one."""
        steps = sum(map(len, stretch.traced.trace.steps.values()))
        if stretch.looked_ahead or steps < WINDOW // 2 or done < steps // 2:
            return
        stretch.looked_ahead = True
        with contextlib.suppress(RuntimeError):  # it was closed
            self._ahead.submit(self._follow, stretch)

    def _follow(self, stretch: Stretch) -> None:
        try:
            self.following(stretch)
        except Exception:  # whoever goes there will hear of it
            log.debug("tracing ahead failed", exc_info=True)

    def close(self) -> None:
        """End what goes on in the background, and remove what was computed again."""
        self._ahead.shutdown(wait=True, cancel_futures=True)
        self.tracer.close()

    def opening(self, number: int) -> Stretch:
        """The first window of a segment."""
        return self.stretch(number, Window(None, self.leaves.edge_after(self.segments[number], None, WINDOW)))

    def following(self, stretch: Stretch) -> Stretch | None:
        """The window behind another one; None at the end of the run."""
        if stretch.window.high is None:
            return self.opening(stretch.number + 1) if stretch.number + 1 < len(self.segments) else None
        low = stretch.window.high
        high = self.leaves.edge_after(stretch.segment, low, WINDOW)
        return self.stretch(stretch.number, Window(low, high))

    def preceding(self, stretch: Stretch) -> Stretch | None:
        """The window before another one; None at the start of the run."""
        low = stretch.window.low
        if low is not None:
            first = self.leaves.edge_before(stretch.segment, low, WINDOW)
            return self.stretch(stretch.number, Window(first, low))
        number = stretch.number - 1
        if number < 0:
            return None
        return self.last_of(number)

    def first_leaf(self, segment: Segment) -> Position | None:
        """The position of a segment's first tuple; None when it has none."""
        return self.leaves.after(segment, None, 0)

    # --- finding a tuple --------------------------------------------------------------------------------------------

    def after(self, operator: str, tuples: int) -> tuple[Stretch, dict[str, int], StepKey | None]:
        """Where an operator has just processed so many tuples, with all that came of them."""
        self.check(operator)
        if isinstance(tuples, bool) or not isinstance(tuples, int):
            raise TimeTravelError(f"Expected a whole number of tuples, got {tuples!r}.", operator=operator)
        if tuples < 0:
            raise TimeTravelError(f"Expected 0 tuples or more, got {tuples}.", operator=operator)
        seen = 0
        for number, segment in enumerate(self.segments):
            here = self.taken_in(segment, operator)
            if tuples > seen + here or not self.works_in(segment, operator):
                seen += here
                continue
            return self._at_rank(number, segment, operator, tuples - seen)
        raise TimeTravelError(
            f"Expected at most {seen:,} tuples of '{operator}', got {tuples:,}.",
            operator=operator,
            hint=f"The run processed {seen:,} tuples there: jump('{operator}', tuples={seen}) is its end.",
        )

    def _at_rank(
        self, number: int, segment: Segment, operator: str, rank: int
    ) -> tuple[Stretch, dict[str, int], StepKey | None]:
        if rank == 0:
            stretch = self.opening(number)
            return stretch, dict.fromkeys(stretch.traced.trace.steps, 0), None
        if self.edges[segment.level].order.get(operator) == "arrival":
            stretch = self.stretch(number, Window())
            steps = stretch.traced.trace.steps[operator]
            taken = steps[rank - 1].taken
            assert taken is not None
            return self.behind(stretch, operator, taken.position)
        return self._counted_rank(number, operator, rank) or self._looked_rank(number, operator, rank)

    def _counted_rank(
        self, number: int, operator: str, rank: int
    ) -> tuple[Stretch, dict[str, int], StepKey | None] | None:
        """The same where the chunks tell in which of them a tuple lies; None where they do not."""
        segment, leaves, tally = self.segments[number], self.leaves, self.tracer.tally
        if leaves.runs(segment) is None or operator in self.tracer.inside:
            return None
        edges = self.edges[segment.level]
        ups = [edges.inputs[operator][port] for port in edges.ports(operator)]
        straight = leaves.straight(segment, operator)
        if straight:
            low = high = leaves.after(segment, None, rank - 1)
        elif all(tally.can(segment, up) for up in ups):
            place = tally.place(segment, ups, rank)
            low, high = (None, None) if place is None else (place.low, place.high)
        else:
            return None
        if low is None or high is None:
            raise _lost(operator, f"{rank:,}")
        low = leaves.edge_before(segment, low, MARGIN)
        stretch = self.stretch(number, Window(low, leaves.edge_after(segment, high, WINDOW)))
        if low is None:
            before = 0
        elif straight:
            before = leaves.rows_before(segment, low)
        else:
            before = sum(tally.before(segment, ups, low).values())
        steps = [s for s in stretch.traced.trace.steps.get(operator, ()) if s.taken is not None]
        if len(steps) < rank - before:
            raise _lost(operator, f"{rank:,}")
        taken = steps[rank - before - 1].taken
        assert taken is not None
        return self.behind(stretch, operator, taken.position)

    def _looked_rank(
        self, number: int, operator: str, rank: int
    ) -> tuple[Stretch, dict[str, int], StepKey | None]:
        """The same by looking for the positions of the operator's tuples."""
        segment = self.segments[number]
        skip = max(0, rank - 1 - MARGIN)
        start, before = self.tracer.marked(segment, operator, skip)
        places = self.tracer.positions(
            segment, operator, skip=skip - before, count=WINDOW + MARGIN, low=start
        )
        if len(places) < rank - skip:
            raise _lost(operator, f"{rank:,}")
        width = self.leaf_width(segment)
        low = self.leaves.floor(segment, places[0][:width]) if skip else None
        high = places[-1][:width] if len(places) == WINDOW + MARGIN else None
        high = self.leaves.ceil(segment, high) if high is not None else None
        return self.behind(self.stretch(number, Window(low, high)), operator, places[rank - 1 - skip])

    def leaf_width(self, segment: Segment) -> int:
        """How many parts of a position name the leaf tuple it comes from."""
        return self.leaves.width(segment, self.tracer.tracing.width)

    def behind(
        self, stretch: Stretch, operator: str, at: Position
    ) -> tuple[Stretch, dict[str, int], StepKey | None]:
        """The cursor behind the whole scope of the tuple at a position of an operator's input."""
        trace = stretch.traced.trace
        steps = trace.steps.get(operator, ())
        number = next(
            (s.number for s in steps if s.taken is not None and _same_place(s.taken.position, at)), None
        )
        if number is None:
            raise _lost(operator, f"at {at}")
        own = [(operator, n) for n in range(number + 1)]
        return stretch, advanced(trace, {}, trace.scope(own)), (operator, number)

    def around(
        self, number: int, operator: str, at: Position
    ) -> tuple[Stretch, dict[str, int], StepKey | None]:
        """The cursor behind the tuple at a position of an operator's input, in a window around it."""
        segment = self.segments[number]
        leaf = at[: self.leaf_width(segment)]
        low = self.leaves.edge_before(segment, leaf, MARGIN)
        high = self.leaves.edge_after(segment, leaf, WINDOW)
        return self.behind(self.stretch(number, Window(low, high)), operator, at)

    def failed_segment(self) -> int | None:
        """The number of the segment of the epoch that failed, if one did."""
        fact = self.tracer.history.failed
        if fact is None:
            return None
        high = fact.level + fact.levels - 1
        segment = Segment(fact.epoch, fact.level, fact.level, high, fact.units, fact.first, fact.last)
        if not self.segments or self.segments[-1] != segment:
            self.segments.append(segment)
            self.edges[segment.level] = edges_of(self.tracer.tracing, segment.level)
        return len(self.segments) - 1

    def failing(self) -> tuple[Stretch, dict[str, int], str] | None:
        """The cursor before the tuple at which the run failed, in a Python operator; None when it failed elsewhere."""
        number = self.failed_segment()
        if number is None:
            return None
        segment = self.segments[number]
        width = self.leaf_width(segment)
        if (leaf := self._failed_leaf(segment)) is not None:
            stretch = self._up_to(number, leaf)
            raised = (f for f in stretch.traced.failures if f[1].at is not None and f[1].at[:width] == leaf)
            if (found := next(raised, None)) is not None:
                return self._before_failing(stretch, *found)
        found = self.tracer.failed_step(segment)
        if found is None or found[1].at is None:
            return None
        return self._before_failing(self._up_to(number, found[1].at[:width]), *found)

    def _failed_leaf(self, segment: Segment) -> Position | None:
        """The leaf tuple a run failed at, by its log; None where that does not tell."""
        fact = self.tracer.history.failed
        if fact is None or not self.works_in(segment, fact.operator):
            return None
        if fact.position:
            return fact.position[: self.leaf_width(segment)]
        head = next((c[0] for c in self.tracer.tracing.chains.values() if fact.operator in c), fact.operator)
        if fact.taken and self.leaves.runs(segment) is not None and self.leaves.straight(segment, head):
            return self.leaves.after(segment, None, fact.taken - 1)
        return None

    def _up_to(self, number: int, leaf: Position) -> Stretch:
        """The window that ends with a leaf tuple."""
        segment = self.segments[number]
        low = self.leaves.edge_before(segment, leaf, MARGIN)
        return self.stretch(number, Window(low, self.leaves.after(segment, leaf, 1)))

    def _before_failing(
        self, stretch: Stretch, operator: str, raised: Record
    ) -> tuple[Stretch, dict[str, int], str]:
        """The cursor before a step that raised."""
        trace, at = stretch.traced.trace, raised.at or ()
        steps = trace.steps[operator]
        place = next(s.number for s in steps if s.taken is not None and _same_place(s.taken.position, at))
        own = [(operator, n) for n in range(place)]
        return stretch, advanced(trace, {}, trace.scope(own)), operator

    def first_of(self, epoch: int) -> int:
        """The number of an epoch's first segment."""
        return next(i for i, s in enumerate(self.segments) if s.epoch == epoch)

    def last_of(self, number: int) -> Stretch:
        """The last window of a segment."""
        return self.stretch(
            number, Window(self.leaves.edge_before(self.segments[number], None, WINDOW), None)
        )

    def end(self) -> tuple[Stretch, dict[str, int]]:
        """The end of the run, or of what was committed of it."""
        committed = [i for i, s in enumerate(self.segments) if s.epoch < len(self.tracer.history.epochs)]
        if not committed:
            raise TimeTravelError(
                "No epoch of this run was committed: it has no end to go to.",
                hint="past.failure() is the moment before it failed.",
            )
        stretch = self.last_of(committed[-1])
        return stretch, everything(stretch.traced.trace)

    # --- states -----------------------------------------------------------------------------------------------------

    def timeline(self, stretch: Stretch, operator: str) -> Timeline:
        """An operator's state over a window."""
        with self._lock:
            if operator not in stretch.timelines:
                stretch.timelines[operator] = self._timeline(stretch, operator)
            return stretch.timelines[operator]

    def _timeline(self, stretch: Stretch, operator: str) -> Timeline:
        steps = stretch.traced.trace.steps.get(operator, ())
        plan = self.tracer.plan
        if isinstance(plan.graph.ops[operator], ops.Python):
            return self._python_timeline(stretch, operator)
        if plan.shape(operator) == "accumulate":
            return self._group_timeline(stretch, operator)
        return Timeline({}, [()] * len(steps))

    def _python_timeline(self, stretch: Stretch, operator: str) -> Timeline:
        traced = stretch.traced
        states, known = self.python_states(stretch, operator)
        for bucket, delta in traced.bases.get(operator, {}).items():
            state = states.setdefault(bucket, self._fresh(operator))
            apply_changes(operator, state, delta, known.setdefault(bucket, {}))
        many = self.tracer.plan.buckets[operator] > 1
        maps = self._maps(operator)
        base = _by_bucket(states, maps) if many else merged(states or {0: self._fresh(operator)})
        base = {
            n: dict(v) if isinstance(v, dict) else list(v) if isinstance(v, list) else v
            for n, v in base.items()
        }
        records = traced.records.get(operator, {})
        changes: list[list[Change]] = []
        for step in traced.trace.steps.get(operator, ()):
            record = _record_of(records, step)
            own = (
                traced.ended.get(operator, ()) if step.taken is None else () if record is None else (record,)
            )
            told: list[Change] = []
            for part in own:
                state = states.setdefault(part.bucket, self._fresh(operator))
                made = apply_changes(operator, state, part.changes, known.setdefault(part.bucket, {}))
                told += [_in_bucket(c, part.bucket, state) for c in made] if many else made
            changes.append(told)
        return Timeline(base, changes)

    def _maps(self, operator: str) -> set[str]:
        """The names of an operator's declared maps."""
        kinds = declared(type(self.instance(operator)))
        return {name for name, kind in kinds.items() if isinstance(kind, MapState)}

    def python_states(
        self, stretch: Stretch, operator: str
    ) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, bytes]]]:
        """The state of a Python operator that a window's trace starts from, by key partition; plain values pickled."""
        made: dict[int, dict[str, Any]] = {}
        known: dict[int, dict[str, bytes]] = {}
        for bucket, version in self._version(stretch, operator).items():
            instance = self.instance(operator, stretch.segment.epoch)
            restore(instance, (read_state(Path(f))[1] for f in version.files), known.setdefault(bucket, {}))
            made[bucket] = attributes(instance)
        return made, known

    def _version(self, stretch: Stretch, operator: str) -> dict[int, Version]:
        traced = stretch.traced.versions.get(operator)
        return traced if traced is not None else self.tracer.original(stretch.segment)._versions(operator)

    def instance(self, operator: str, epoch: int = 0) -> Operator:
        """An operator as it was written when an epoch ran, without state."""
        made: Operator = pickle.loads(self.tracer.code_at(epoch)[operator])
        return made

    def record_of(self, stretch: Stretch, step: Step) -> Record | None:
        """What a worker told of a step of a Python operator."""
        return _record_of(stretch.traced.records.get(step.operator, {}), step)

    def instance_at(self, stretch: Stretch, operator: str, number: int) -> Operator:
        """An operator as it was before one of its steps, to run that step again here."""
        records = stretch.traced.records.get(operator, {})
        steps = stretch.traced.trace.steps[operator]
        wanted = _record_of(records, steps[number])
        bucket = wanted.bucket if wanted is not None else 0
        epoch = stretch.segment.epoch
        version = self._version(stretch, operator).get(bucket)
        files = version.files if version is not None else ()
        deltas = [read_state(Path(f))[1] for f in files]
        if bucket in stretch.traced.bases.get(operator, {}):
            deltas.append(stretch.traced.bases[operator][bucket])
        for step in steps[:number]:
            record = _record_of(records, step)
            if record is not None and record.bucket == bucket:
                deltas.append(record.changes)
        own = [t for t in self.tracer.switches(epoch, operator) if t.places is not None or t.bucket == bucket]
        return restored_version(
            self.tracer.code_at(epoch)[operator], own, wanted.version if wanted is not None else 0, deltas
        )

    def _fresh(self, operator: str) -> dict[str, Any]:
        return attributes(self.instance(operator))

    def _group_timeline(self, stretch: Stretch, operator: str) -> Timeline:
        segment, window = stretch.segment, stretch.window
        base = groups_at_start(self.tracer, segment, operator, window)
        steps = stretch.traced.trace.steps.get(operator, ())
        inputs = {s.taken.position: s.taken.row for s in steps if s.taken is not None}
        found = group_changes(self.tracer, segment, operator, window, base, inputs) if inputs else {}
        changes: Sequence[list[Change]] = [
            found.get(s.taken.position, []) if s.taken is not None else [] for s in steps
        ]
        return Timeline({"groups": base}, changes)

    def counters(self, stretch: Stretch, names: Sequence[str] | None = None) -> dict[str, Counters]:
        """What operators (all of them, if none are named) had taken and given at a window's start."""
        with self._lock:
            wanted = self.operators if names is None else list(names)
            if missing := [n for n in wanted if n not in stretch.before]:
                totals = self.tracer.history.totals(stretch.segment.epoch)
                found = self.tracer.counted_before(stretch.traced, totals, missing)
                stretch.before |= {n: found.get(n) for n in missing}
            return {n: counted for n in wanted if (counted := stretch.before[n]) is not None}


def _lost(operator: str, which: str) -> ReplayDiffers:
    return ReplayDiffers(
        f"The tuple {which} of '{operator}' was not found when its epoch was computed again.",
        operator=operator,
        hint="Is every operator before it deterministic? sv.log_result(...) records what a call gave.",
    )


def _record_of(records: dict[Any, Record], step: Step) -> Record | None:
    return records.get(None if step.taken is None else (step.port, step.taken.position))


def _same_place(a: Position, b: Position) -> bool:
    short = min(len(a), len(b))
    return a[:short] == b[:short] and all(v == -1 for v in (*a[short:], *b[short:]))


def _by_bucket(states: dict[int, dict[str, Any]], maps: set[str]) -> dict[str, Any]:
    """Declared maps of all key partitions together; other values by partition."""
    made: dict[str, Any] = {name: {} for name in maps}
    for bucket, state in states.items():
        for name, value in state.items():
            if name in maps:
                made[name].update(value)
            else:
                made.setdefault(name, {})[bucket] = value
    return made


def _in_bucket(change: Change, bucket: int, state: dict[str, Any]) -> Change:
    """A change as it shows in the state of all key partitions together."""
    if isinstance(state.get(change.name), list) and not change.whole:
        held: list[Any] = state[change.name]
        return Change(change.operator, change.name, bucket, held[: change.key], held[: change.key + 1])
    if change.whole:
        return Change(change.operator, change.name, bucket, change.before, change.after)
    return change
