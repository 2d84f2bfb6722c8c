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
from samovar.compile.frames import Frames
from samovar.compile.native import at_or_behind, hidden
from samovar.compile.plan import Plan
from samovar.graph import operators as ops
from samovar.positions import Position, Window
from samovar.record.log import EpochCommitted
from samovar.record.state_files import Header, mark_name
from samovar.record.store import link, slug_unique
from samovar.replay.trace.past_epoch import Windowed
from samovar.runtime.epochs.epoch import Epoch, EpochRange, Outcome, RunContext
from samovar.runtime.exchange.kept_rows import kept_files, kept_folder
from samovar.runtime.exchange.task import Begun, Control, Stage, Task

__all__ = ["Beginning", "usable_mark"]


def usable_mark(parent: Windowed) -> int:
    """The last mark before a window from which its epoch can be gone on with; 0: there is none."""
    plan, level = parent.plan, parent.segment.level
    if not parent.mark or not all(h.kept for name in parent.stateful for h in parent._headers(name).values()):
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
    return parent.mark


def _behind(plan: Plan, name: str, level: int) -> Iterator[str]:
    for consumer, _ in plan.graph.consumers(name):
        if plan.placement.works(consumer, level):
            yield consumer
            yield from _behind(plan, consumer, level)


class Beginning(Epoch):
    """An attempt at that part. `parent` is the past epoch from the moment on; `mark`: where to go on from (0: none)."""

    def __init__(
        self,
        context: RunContext,
        number: int,
        covers: EpochRange,
        *,
        attempt: str,
        parent: Windowed,
        mark: int,
    ) -> None:
        super().__init__(context, number, covers, attempt=attempt)
        self.parent = parent
        self.mark = mark
        self.behind: _Behind | None = None
        if mark:
            self.frames = _FromMark(self.plan, self, covers.low, covers.high)
            self.behind = _Behind(self.plan, self, covers.low, covers.high)
            self.tallying = frozenset()  # frames behind the mark have but part of the rows

    @property
    def _fact(self) -> EpochCommitted:
        return self.parent.context.recorded[self.parent.number]

    @property
    def _folder(self) -> Path:
        return self.parent.context.recording.epoch_folder(self._fact)

    @property
    def start(self) -> Position:
        """The mark's position."""
        return self._fact.marks[self.mark - 1]

    def run(self, control: Control | None = None) -> Outcome:
        """Run the epoch's jobs, with what was kept up to the mark in its folder as if it had been kept here."""
        if self.mark:
            self.parent.context.recording.checked_folder(self._fact, "kept")  # workers know no digests
            for name in self.parent.stateful:
                for header in self.parent._headers(name).values():
                    self._share(name, header)
        return super().run(control)

    def _share(self, name: str, header: Header) -> None:
        states = self._folder / "state" / slug_unique(name)
        files = [states / mark_name(header.bucket, n) for n in header.marks if n <= self.mark]
        files += kept_files(kept_folder(self._folder, name), header, self.mark)
        for file in files:
            target = self.folder / file.relative_to(self._folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            link(str(file), str(target))

    # --- Python operators -------------------------------------------------------------------------------------------

    def task(self, chain: tuple[str, ...]) -> Task:
        """The same with what calls of `log_result` gave in the run, and with the states and rows kept at the mark."""
        made = super().task(chain)
        if not made.stateful:
            return made
        stages = tuple(self._stage(stage) for stage in made.stages)
        if not self.mark:
            return replace(made, stages=stages)
        folder, begun = kept_folder(self._folder, chain[-1]), {}
        for bucket, header in self.parent._headers(chain[-1]).items():
            marks = tuple(n for n in header.marks if n <= self.mark)
            kept = tuple(str(f) for f in kept_files(folder, header, self.mark))
            begun[bucket] = Begun(min(header.passed, self.mark), marks, kept)
        return replace(made, stages=stages, begun=begun)

    def _stage(self, stage: Stage) -> Stage:
        folder = self._folder / "state" / slug_unique(stage.name)
        deltas = [f.bucket for f in self._fact.state.get(stage.name, ()) if not f.full]
        results = {b: str(folder / f"{b:04d}.delta") for b in deltas}
        if not self.mark:
            return replace(stage, results=results, goes_on=dict.fromkeys(results, 0))
        kept = self.parent._kept(stage.name)
        return replace(
            stage,
            versions=self.parent._versions(stage.name),
            results=results,
            given={b: header.given for b, (_, header) in kept.items()},
            taken={b: header.taken for b, (_, header) in kept.items()},
            goes_on={b: len(files) for b, (files, _) in kept.items()},
        )

    # --- rows -------------------------------------------------------------------------------------------------------

    def slice_behind(self, name: str) -> DataFrame:
        """The rows of a source from the mark on."""
        start, stop = self.units.get(name, (0, 0))
        source = self.context.sources[name]
        chosen = source.units[start:stop]
        if all(u.rows is not None for u in chosen):
            self._measured[name, None] = sum(u.rows or 0 for u in chosen)
        behind = Window(self.start).units(source.number, start, stop)
        units = source.units[behind.start : behind.stop]
        return self.cut(self.read(source, units, behind.start)) if units else self.frames._empty(name)

    def cut(self, df: DataFrame) -> DataFrame:
        """Rows from the mark on."""
        return df.filter(at_or_behind(df, self.start))

    def count_whole(self, name: str, level: int) -> None:
        """Have all rows of an operator counted, of which those from the mark on are used."""
        known = frozenset(n for n, port in self._measured if port is None)
        told = (name, None) in self._observations or name in self._apart
        if told or not needs_counter(self.plan, name, level, self._stored, known):
            return
        df = self.frames.stream(name, level)
        if name not in self._apart:
            self._apart[name] = self._pool.submit(self._count_apart, name, df)


class _FromMark(Frames):
    """Frames whose stateful Python operators take rows from the mark on, and give those before it as they gave them."""

    inputs: Beginning

    def _fed(self, chain: tuple[str, ...], level: int) -> list[DataFrame]:
        behind = self.inputs.behind
        if behind is None or self.plan.shape(chain[0]) != "python":
            return super()._fed(chain, level)
        return [behind.stream(up, level) for up in self.plan.graph.ops[chain[0]].inputs]

    def _python_begins(self) -> bool:
        return True


class _Behind(Frames):
    """Frames of the rows from the mark on, which feed stateful Python operators."""

    inputs: Beginning

    def _stream(self, name: str, level: int) -> DataFrame:
        if self.plan.shape(name) == "source":
            return self.inputs.slice_behind(name)
        if self.plan.shape(name) == "python":
            return self.inputs.cut(self.inputs.frames.stream(name, level))
        made = super()._stream(name, level)
        return self.inputs.cut(made) if self.plan.placement.ends(name) and hidden(made) else made

    def _counted(self, name: str, level: int, df: DataFrame) -> DataFrame:
        self.inputs.count_whole(name, level)
        return df
