"""What the frames of an epoch read: slices of sources and stashes, what committed epochs stored, rows from workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.compile.analysis import empty_frame
from samovar.compile.frames import empty_output
from samovar.graph import operators as ops
from samovar.record.log import Counters, EpochCommitted
from samovar.record.store import slug_unique
from samovar.runtime.epochs.attempt import Attempt, chain_task
from samovar.runtime.epochs.row_counts import RowCounts, observed
from samovar.runtime.exchange.late_task import LateTask
from samovar.runtime.exchange.task import Task
from samovar.runtime.parquet_files import CHECKED, rows_in, stored_as, writer_into
from samovar.runtime.sources.input_files import check_files
from samovar.runtime.sources.rejected_rows import bad_rows
from samovar.runtime.sources.unit_list import Unit
from samovar.runtime.sources.units import CORRUPT, Source, is_bad, read_units
from samovar.runtime.worker.entry import batches_function, chain_function, late_chain_function

__all__ = ["EpochInputs"]


class EpochInputs:
    """The inputs of an attempt. `counts` gets the numbers that are known beforehand; None: nothing is counted.

    `complete`: what workers are sent beyond what `chain_task` knows. `empty`: makes a frame without rows.
    """

    def __init__(
        self,
        attempt: Attempt,
        counts: RowCounts | None = None,
        *,
        complete: Callable[[Task], Task] | None = None,
        empty: Callable[[StructType], DataFrame] | None = None,
    ) -> None:
        self.attempt = attempt
        self.context = attempt.context
        self.plan = attempt.plan
        self.empty = empty or partial(empty_frame, self.context.spark)
        self.corrupt: dict[str, tuple[Observation, range]] = {}
        """Of sources whose rows are parsed: what counts the rows that do not parse, and the units they are in."""
        self._counts = counts
        self._complete = complete
        self.late: dict[tuple[str, ...], LateTask] = {}
        """Of chains whose workers wait for the epoch's turn."""
        self._read: list[tuple[Source, list[Unit]]] = []
        """Input files that this epoch reads."""

    # --- what frames ask for ----------------------------------------------------------------------------------------

    def rows(self, name: str, level: int | None) -> DataFrame | None:
        """The rows of a source's units that belong to this epoch, or of a stash; all of a source without a level."""
        placement = self.plan.placement
        if placement.shapes[name] == "source":
            return self._whole(name) if level is None else self._slice(name)
        return self._slice(name) if level is not None and placement.is_read_back(name, level) else None

    def stored(self, kind: str, name: str, schema: StructType) -> DataFrame:
        """What committed epochs stored for an operator."""
        levels = self.plan.placement.level
        operator = name if name in levels else name.rpartition(".")[0]  # a port of it
        if levels[operator] >= self.attempt.covers.low:
            self.attempt.wait_for_turn()  # what lies on lower levels has ended
        return self.read_parts(kind, name, schema, self.context.history.epochs)

    def passed(self, name: str) -> tuple[int, int]:
        """How many rows an operator took and gave in committed epochs."""
        self.attempt.wait_for_turn()
        totals = self.context.history.totals().get(name, Counters())
        return sum(totals.taken), totals.given

    def python(self, chain: tuple[str, ...], df: DataFrame, schema: StructType) -> DataFrame:
        """What workers make of rows. Their input is computed ahead of the epoch's turn, their work waits for it."""
        turn, head = self.attempt.turn, self.plan.graph.ops[chain[0]]
        if turn is not None and not turn.has_come:
            if self._waits_in_workers():
                return df.mapInArrow(late_chain_function(self._late_task(chain)), schema)
            # This runs what comes before the shuffle, and keeps it. Without adaptive execution it would run nothing,
            # and frames that are read twice behind it would be computed twice. Without a shuffle it would run nothing
            # either, and counters would be read then and there: before a row has passed them.
            adaptive = self.context.spark.conf.get("spark.sql.adaptive.enabled", "true") == "true"
            if adaptive and self.plan.shape(chain[0]) == "python":
                df = df.localCheckpoint(eager=False)
            turn.wait()
        task = self.task(chain)
        if not isinstance(head, ops.Batches):
            return df.mapInArrow(chain_function(task), schema)
        call = df.mapInArrow if head.form == "arrow" else df.mapInPandas
        return call(batches_function(task), schema)

    def _waits_in_workers(self) -> bool:
        """Whether Python workers of an epoch ahead may occupy cores until its turn comes.

        One must be left over for what the present epoch still has to do.
        """
        plan, covers = self.plan, self.attempt.covers
        levels = range(covers.low, covers.high + 1)
        working = [n for n in plan.graph.ops if any(plan.placement.works(n, at) for at in levels)]
        if any(plan.shape(n) == "batches" for n in working):
            return False  # as many tasks as the input has
        heads = [chain[0] for chain in plan.chains.values() if chain[0] in working]
        return sum(map(plan.partitions, heads)) < self.context.cores

    def _late_task(self, chain: tuple[str, ...]) -> LateTask:
        late = LateTask(str(self.attempt.turn_folder / slug_unique(chain[0])), self.task(chain))
        self.late[chain] = late
        if (turn := self.attempt.turn) is not None and turn.has_come:  # in the meantime
            self.hand_out_tasks()
        return late

    def arrived(self) -> bool:
        """Whether workers that will wait for the epoch's turn have begun."""
        return any(late.arrived() for late in self.late.values())

    def hand_out_tasks(self) -> None:
        """Let workers that wait for the epoch's turn begin: it has come."""
        for chain, late in list(self.late.items()):
            late.hand_out(self.task(chain))

    def task(self, chain: tuple[str, ...]) -> Task:
        """What the workers need to know of a chain."""
        task = chain_task(self.attempt, chain)
        return task if self._complete is None else self._complete(task)

    # --- reading ----------------------------------------------------------------------------------------------------

    def _slice(self, name: str) -> DataFrame:
        start, stop = self.attempt.covers.units.get(name, (0, 0))
        if start == stop:
            return self.nothing(name)
        source = self.context.sources.get(name)
        if source is None:
            epochs = self.stash_epochs(name)[start:stop]
            if self._counts is not None:
                self._counts.measured[name, None] = rows_in(
                    self.context.recording.parts("stash", name, epochs)
                )
            return self.read_parts("stash", name, self.nothing(name).schema, epochs)
        self.note_size(source, range(start, stop))
        return self.read(source, range(start, stop))

    def _whole(self, name: str) -> DataFrame:
        source, placement = self.context.sources[name], self.plan.placement
        if self._counts is not None:
            self.context.progress.build_sides.sources[name] = source
        alone = self.attempt.covers.first and not placement.streams[name]
        here = bool(placement.whole[name]) and min(placement.whole[name]) >= self.attempt.covers.low
        every = range(len(source.units))
        df = self._parsed(source, every, counts_bad=alone and here)
        if alone:
            self.note_size(source, every)
        return df

    def nothing(self, name: str) -> DataFrame:
        """An operator's output without rows."""
        known = self.context.progress.nothing
        if name not in known or known[name][0] is not self.plan:
            known[name] = self.plan, empty_output(self.plan, name, self.empty)
        return known[name][1]

    def note_size(self, source: Source, units: range) -> None:
        """Count the rows of units whose files tell their number."""
        if self._counts is None or source.passes_over:
            return
        rows = [span.rows for _, span in source.units.spans_of(units)]
        if None not in rows:
            self._counts.measured[source.name, None] = sum(n or 0 for n in rows)

    def read(self, source: Source, units: range) -> DataFrame:
        """The rows of some units that parsed."""
        # a source may be read again on a higher level: its bad rows count once
        lowest = min(self.plan.placement.streams[source.name])
        return self._parsed(source, units, counts_bad=self.attempt.covers.low == lowest)

    def _parsed(self, source: Source, units: range, *, counts_bad: bool) -> DataFrame:
        """The rows that parsed; the others are counted on the way, and fetched after the epoch if there are any."""
        if self._counts is not None:  # who only looks has checked the files before
            files = [span for _, span in source.units.spans_of(units)]
            self._read.append((source, files))
            check_files(source, files, None)
        df = read_units(
            self.context.spark,
            source,
            units,
            positions=self.plan.width[source.name] > 0,
            corrupt=source.parses,
            tasks=self._tasks(source),
        )
        if not source.parses:
            return df
        bad = is_bad(df)
        if counts_bad and self._counts is not None and source.name not in self.corrupt:
            observation = Observation()
            self.corrupt[source.name] = (observation, units)
            df = df.observe(observation, F.count_if(bad).alias("bad"))
        return df.filter(~bad).drop(CORRUPT)

    def _tasks(self, source: Source) -> int:
        """How many tasks rows are dealt out to: before stateless Python operators nothing is shuffled."""
        plan, level = self.plan, self.attempt.covers.low
        heads = [n for n in plan.graph.ops if plan.shape(n) == "batches" and plan.placement.works(n, level)]
        if any(up.name == source.name for n in heads for up in plan.graph.upstream(n)):
            return int(plan.settings.get("parallelism", 1))
        return 1

    def read_parts(
        self, kind: str, name: str, schema: StructType, epochs: Iterable[EpochCommitted]
    ) -> DataFrame:
        """What some epochs stored for an operator."""
        folders = [str(p) for p in self.context.recording.parts(kind, name, epochs)]
        if not folders:
            return self.empty(schema)
        files = self.context.spark.read.schema(stored_as(schema)).options(**CHECKED).parquet(*folders)
        return files.toDF(*schema.names)

    def stash_epochs(self, name: str) -> list[EpochCommitted]:
        """The epochs that wrote to a stash: its units."""
        return self.context.history.epochs_on(self.plan.placement.level[name])

    # --- when the jobs are done -------------------------------------------------------------------------------------

    def check_files(self) -> None:
        """Raise SourceChanged when a file that this epoch read is not as it was listed."""
        read: dict[str, tuple[Source, dict[str, Unit]]] = {}
        # sources read whole, also by epochs before: Spark may have read them again
        whole = self.context.progress.build_sides.sources.values()
        for source, files in [*self._read, *((s, s.spans) for s in whole)]:
            read.setdefault(source.name, (source, {}))[1].update({f.path: f for f in files})
        for source, by_path in read.values():
            check_files(source, by_path.values(), self.context.spark)

    def write_rejected(self) -> dict[str, int]:
        """Store the rows that did not parse, with their text and file; how many there are of each source."""
        rejected: dict[str, int] = {}
        for name, (observation, units) in self.corrupt.items():
            if observed(observation, "bad") == 0:
                continue
            self.context.describe(f"epoch {self.attempt.number}, rejected rows of {name}")
            folder = self.attempt.folder / "rejected" / slug_unique(name)
            bad = bad_rows(self.context.spark, self.context.sources[name], units)
            writer_into(folder, bad.write).parquet(str(folder))
            rejected[name] = rows_in([folder])
        return {name: rows for name, rows in rejected.items() if rows}
