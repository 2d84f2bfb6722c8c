"""Operators' states over a traced window: where they started, and what each step changed."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from samovar.graph import operators as ops
from samovar.graph.operator import Operator
from samovar.graph.state import MapState, declared
from samovar.record.log import Counters
from samovar.record.state_files import read_state, restore
from samovar.replay.state.group_states import group_changes, groups_at_start
from samovar.replay.state.state_changes import Timeline, apply_changes, attributes, merged
from samovar.replay.trace.model import StateChange
from samovar.replay.trace.traced_window import TracedWindow
from samovar.replay.trace.tracer import Tracer
from samovar.replay.trace.window_counts import counted_before
from samovar.runtime.epochs.attempt import state_versions
from samovar.runtime.exchange.code_switch import CodeSwitch, restored_version
from samovar.runtime.exchange.task import Version

__all__ = ["Timelines"]

States = dict[int, dict[str, Any]]
"""The state of a Python operator by key partition."""


class Timelines:
    """States of a recording's operators. Safe for several threads; what was computed is kept with its window."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self._lock = threading.Lock()

    def timeline(self, traced: TracedWindow, operator: str) -> Timeline:
        """An operator's state over a window."""
        with self._lock:
            if operator not in traced.timelines:
                traced.timelines[operator] = self._timeline(traced, operator)
            return traced.timelines[operator]

    def counters(self, traced: TracedWindow, names: Sequence[str]) -> dict[str, Counters]:
        """How many tuples operators had taken and produced at a window's start."""
        with self._lock:
            if missing := [n for n in names if n not in traced.counters]:
                totals = self.tracer.history.totals(traced.segment.epoch)
                before = counted_before(self.tracer, traced, totals, missing)
                traced.counters |= {n: before.get(n) for n in missing}
            return {n: counted for n in names if (counted := traced.counters[n]) is not None}

    def _timeline(self, traced: TracedWindow, operator: str) -> Timeline:
        plan = self.tracer.plan
        if isinstance(plan.graph.ops[operator], ops.Python):
            return self._of_python(traced, operator)
        if plan.shape(operator) == "accumulate":
            return self._of_groups(traced, operator)
        return Timeline({}, [()] * len(traced.steps(operator)))

    def _of_groups(self, traced: TracedWindow, operator: str) -> Timeline:
        segment, window = traced.segment, traced.window
        base = groups_at_start(self.tracer, segment, operator, window)
        taken = [step.taken for step in traced.steps(operator)]
        inputs = {given.position: given.row for given in taken if given is not None}
        changes = group_changes(self.tracer, segment, operator, window, base, inputs) if inputs else {}
        return Timeline({"groups": base}, [changes.get(t.position, []) if t else [] for t in taken])

    # --- Python operators -------------------------------------------------------------------------------------------

    def _of_python(self, traced: TracedWindow, operator: str) -> Timeline:
        states, pickled = self._states(traced, operator)

        def applied(partition: int, delta: dict[str, Any]) -> list[StateChange]:
            if partition not in states:
                states[partition] = self._fresh(operator)
            return apply_changes(operator, states[partition], delta, pickled.setdefault(partition, {}))

        for partition, delta in traced.bases.get(operator, {}).items():
            applied(partition, delta)
        many = self.tracer.plan.buckets[operator] > 1
        if many:
            base = _together(states, self._maps(operator))
        else:
            base = merged(states or {0: self._fresh(operator)})
        base = {  # a copy: `applied` goes on changing the states themselves
            n: dict(v) if isinstance(v, dict) else list(v) if isinstance(v, list) else v
            for n, v in base.items()
        }
        changes: list[list[StateChange]] = []
        for step in traced.steps(operator):
            taken = traced.record(step)
            records = traced.ended.get(operator, []) if step.taken is None else [taken] if taken else []
            changes.append([])
            for record in records:
                partition = record.bucket
                of_step = applied(partition, record.changes)
                if many:
                    of_step = [_in_partition(change, partition, states[partition]) for change in of_step]
                changes[-1] += of_step
        return Timeline(base, changes)

    def _states(self, traced: TracedWindow, operator: str) -> tuple[States, dict[int, dict[str, bytes]]]:
        """The states that a window's trace starts from; and their plain values pickled."""
        states: States = {}
        pickled: dict[int, dict[str, bytes]] = {}
        for partition, version in self._versions(traced, operator).items():
            instance = self.instance(operator, traced.segment.epoch)
            deltas = (read_state(Path(file))[1] for file in version.files)
            restore(instance, deltas, pickled.setdefault(partition, {}))
            states[partition] = attributes(instance)
        return states, pickled

    def _versions(self, traced: TracedWindow, operator: str) -> dict[int, Version]:
        versions = traced.versions.get(operator)
        if versions is not None:
            return versions
        before = self.tracer.history.epochs[: traced.segment.epoch]
        return state_versions(self.tracer.recording, operator, before)

    def _fresh(self, operator: str) -> dict[str, Any]:
        return attributes(self.instance(operator))

    def _maps(self, operator: str) -> set[str]:
        """The names of an operator's declared maps."""
        kinds = declared(type(self.instance(operator)))
        return {name for name, kind in kinds.items() if isinstance(kind, MapState)}

    def instance(self, operator: str, epoch: int = 0) -> Operator:
        """An operator with the code of an epoch, without state."""
        instance: Operator = pickle.loads(self.tracer.code_at(epoch)[operator])
        return instance

    def instance_at(self, traced: TracedWindow, operator: str, number: int) -> Operator:
        """An operator in its state before one of its steps, to run that step again in this process."""
        steps, epoch = traced.steps(operator), traced.segment.epoch
        wanted = traced.record(steps[number])
        partition, version = (wanted.bucket, wanted.version) if wanted is not None else (0, 0)
        start = self._versions(traced, operator).get(partition)
        deltas = [read_state(Path(file))[1] for file in (start.files if start is not None else ())]
        if partition in traced.bases.get(operator, {}):
            deltas.append(traced.bases[operator][partition])
        records = (traced.record(step) for step in steps[:number])
        deltas += [r.changes for r in records if r is not None and r.bucket == partition]
        switches: Sequence[CodeSwitch] = self.tracer.switches(epoch, operator)
        switches = [s for s in switches if s.places is not None or s.bucket == partition]
        return restored_version(self.tracer.code_at(epoch)[operator], switches, version, deltas)


def _together(states: States, maps: set[str]) -> dict[str, Any]:
    """Declared maps of all key partitions together; other values by partition."""
    together: dict[str, Any] = {name: {} for name in maps}
    for partition, state in states.items():
        for name, value in state.items():
            if name in maps:
                together[name].update(value)
            else:
                together.setdefault(name, {})[partition] = value
    return together


def _in_partition(change: StateChange, partition: int, state: dict[str, Any]) -> StateChange:
    """A change as it shows in the state of all key partitions together."""
    if isinstance(state.get(change.name), list) and not change.whole:
        held: list[Any] = state[change.name]
        return StateChange(
            change.operator, change.name, partition, held[: change.key], held[: change.key + 1]
        )
    if change.whole:
        return StateChange(change.operator, change.name, partition, change.before, change.after)
    return change
