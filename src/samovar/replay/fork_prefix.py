"""The part of a past epoch before a fork's moment, done again by the old logic as the fork's first epoch of its own.

Where the run kept states and rows at marks (see runtime/exchange/kept_rows.py), only the tuples between the last mark
before the moment and the moment are processed: stateful Python operators take up their states there and first give
what they gave, so that everything behind them gets the same rows in the same order as from the whole part. Native
operators behind them are computed again from these. Otherwise the part is done from the epoch's start on. Either way
calls of `log_result` give what they gave in the run.

Rows are not taken over when the epoch has no mark before the moment, when keeping them was given up, and when a
function over batches feeds a stateful operator in a way that its rows would have to be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame

from samovar.compile.counters import needs_counter
from samovar.compile.frames import EpochFrames
from samovar.compile.native import at_or_behind, hidden
from samovar.compile.plan import Plan
from samovar.graph import operators as ops
from samovar.positions import Position, Window
from samovar.record.state_files import Header, mark_name
from samovar.record.store import link, slug_unique
from samovar.replay.trace.past_epoch import PastWindow
from samovar.runtime.epochs.attempt import Attempt
from samovar.runtime.epochs.epoch import Epoch
from samovar.runtime.exchange.decisions import write_decisions
from samovar.runtime.exchange.kept_rows import kept_files, kept_folder
from samovar.runtime.exchange.task import Begun, Stage, Task

__all__ = ["Beginning", "usable_mark"]


def usable_mark(parent: PastWindow) -> int:
    """The last mark before a window from which its epoch can be gone on with; 0: there is none."""
    plan, level = parent.plan, parent.segment.level
    marks = parent.marks
    if not marks.mark or not all(h.kept for name in marks.stateful for h in marks.headers(name).values()):
        return 0
    for name, op in plan.graph.ops.items():
        if not plan.placement.works(name, level):
            continue
        if plan.shape(name) != "batches" or all(
            plan.shape(n) != "python" for n in _behind(plan, name, level)
        ):
            continue
        if isinstance(op, ops.Batches) or needs_counter(plan, name, level, frozenset(), frozenset()):
            return 0
    return marks.mark


def _behind(plan: Plan, name: str, level: int) -> Iterator[str]:
    for consumer, _ in plan.graph.consumers(name):
        if plan.placement.works(consumer, level):
            yield consumer
            yield from _behind(plan, consumer, level)


class Beginning:
    """Prepares attempts at that part. `parent`: the past epoch from the moment on; `mark`: to go on from, or 0."""

    def __init__(self, parent: PastWindow, mark: int) -> None:
        self.parent = parent
        self.marks = parent.marks
        self.mark = mark
        assert parent.recorded.committed is not None
        self.fact = parent.recorded.committed
        self.folder = parent.recorded.recording.epoch_folder(self.fact)

    def epoch(self, attempt: Attempt) -> Epoch:
        """An attempt, with what was kept up to the mark in its folder as if it had been kept there."""
        if self.parent.recorded.decisions:
            write_decisions(attempt.folder, "before", self.parent.recorded.decisions)
        if not self.mark:
            return Epoch(attempt, complete=self._task)
        self.parent.recorded.recording.checked_folder(self.fact, "kept")  # workers know no digests
        for name in self.marks.stateful:
            for header in self.marks.headers(name).values():
                self._share(name, header, attempt.folder)
        rows = _RowsFromMark(self.fact.marks[self.mark - 1])
        return Epoch(attempt, complete=self._task, feed=rows.feed)

    def _share(self, name: str, header: Header, target: Path) -> None:
        states = self.folder / "state" / slug_unique(name)
        files = [states / mark_name(header.bucket, n) for n in header.marks if n <= self.mark]
        files += kept_files(kept_folder(self.folder, name), header, self.mark)
        for file in files:
            shared = target / file.relative_to(self.folder)
            shared.parent.mkdir(parents=True, exist_ok=True)
            link(str(file), str(shared))

    # --- Python operators -------------------------------------------------------------------------------------------

    def _task(self, task: Task) -> Task:
        """A task with what was decided, what calls of `log_result` gave in the run, and states and rows at the mark."""
        chain = [stage.name for stage in task.stages]
        decided = tuple(d for d in self.parent.recorded.decisions if d.operator in chain)
        task = replace(task, decided=decided)
        if not task.stateful:
            return task
        stages = tuple(self._stage(stage) for stage in task.stages)
        if not self.mark:
            return replace(task, stages=stages)
        folder, begun = kept_folder(self.folder, chain[-1]), {}
        for bucket, header in self.marks.headers(chain[-1]).items():
            marks = tuple(n for n in header.marks if n <= self.mark)
            kept = tuple(str(f) for f in kept_files(folder, header, self.mark))
            begun[bucket] = Begun(min(header.passed, self.mark), marks, kept)
        return replace(task, stages=stages, begun=begun)

    def _stage(self, stage: Stage) -> Stage:
        folder = self.folder / "state" / slug_unique(stage.name)
        deltas = [f.bucket for f in self.fact.state.get(stage.name, ()) if not f.full]
        results = {b: str(folder / f"{b:04d}.delta") for b in deltas}
        if not self.mark:
            return replace(stage, results=results, goes_on=dict.fromkeys(results, 0))
        kept = self.marks.kept(stage.name)
        return replace(
            stage,
            versions=self.parent.versions(stage.name),
            results=results,
            given={b: header.given for b, (_, header) in kept.items()},
            taken={b: header.taken for b, (_, header) in kept.items()},
            goes_on={b: len(files) for b, (files, _) in kept.items()},
        )


class _RowsFromMark:
    """The rows from a mark on, which feed the stateful Python operators of an epoch that goes on from there.

    It is the inputs of frames of its own: these read from the mark on, and have all rows counted.
    """

    def __init__(self, start: Position) -> None:
        self._start = start
        self._frames: EpochFrames | None = None

    def feed(self, epoch: Epoch, name: str, level: int) -> DataFrame:
        """The rows of an operator's output from the mark on."""
        if self._frames is None:
            self._epoch = epoch
            self.empty, self.stored = epoch.inputs.empty, epoch.inputs.stored
            self.passed, self.python = epoch.inputs.passed, epoch.inputs.python
            strategy = replace(epoch.frames.strategy, counted=self._counted, feed=None)
            self._frames = EpochFrames(epoch.plan, epoch.number, epoch.attempt.covers, self, strategy)
        return self._frames.stream(name, level)

    def rows(self, name: str, level: int | None) -> DataFrame | None:
        """What these frames read; what stateful Python operators give comes from the epoch's own frames."""
        plan, inputs = self._epoch.plan, self._epoch.inputs
        if level is None:
            return inputs.rows(name, None)
        if plan.shape(name) == "source":
            return self._slice(name)
        if plan.shape(name) == "python":
            return self._cut(self._epoch.frames.stream(name, level))
        if plan.placement.ends(name) and self._frames is not None:
            df = self._frames.ended(name)
            return self._cut(df) if hidden(df) else df
        return inputs.rows(name, level)

    def _slice(self, name: str) -> DataFrame:
        inputs, source = self._epoch.inputs, self._epoch.context.sources[name]
        start, stop = self._epoch.attempt.covers.units.get(name, (0, 0))
        inputs.note_size(source, range(start, stop))
        behind = Window(self._start).units(source.number, start, stop)
        return self._cut(inputs.read(source, behind)) if behind else inputs.nothing(name)

    def _cut(self, df: DataFrame) -> DataFrame:
        return df.filter(at_or_behind(df, self._start))

    def _counted(self, name: str, level: int | None, df: DataFrame) -> DataFrame:
        """The frame as it is: all rows of the operator are counted, of which it has those from the mark on."""
        counts, frames = self._epoch.counts, self._epoch.frames
        if level is None:
            return counts.counted(name, None, df)
        if (name, None) not in counts.observations and counts.lacks(name, level):
            counts.count_apart(name, frames.stream(name, level))
        return df
