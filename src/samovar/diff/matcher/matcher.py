"""The matcher: two streams in, one event or one batch at a time; a verdict as soon as there is one.

Guarantee: the verdict "not equivalent" comes with the first event after which no continuation makes the streams
equivalent, "equivalent" with `close` if they are; in between only events without a partner are kept. Batches of
structured dependences go through arrays (`samovar.diff.matcher.columnar`), everything else event by event
(`samovar.diff.matcher.stepwise`); both reach the same verdict at the same event.

Not promised: safety with several threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from samovar.diff.comparison_errors import CheckpointProblem, DiffError, EventProblem
from samovar.diff.dependence import Dependence, as_dependence
from samovar.diff.equality import Equality, as_equality
from samovar.diff.event_values import SIDES, Side, as_event, check_side, rows_of
from samovar.diff.matcher import matcher_checkpoint
from samovar.diff.matcher.axioms import Samples, check_columns
from samovar.diff.matcher.columnar import LARGEST, Columnar, Unmatched, can_compare_columns
from samovar.diff.matcher.queues import Ids
from samovar.diff.matcher.row_words import Layout
from samovar.diff.matcher.stepwise import Relational, SettledPair, Stepwise, make_stepwise
from samovar.diff.verdict import Rest, Verdict, at_end

__all__ = ["Matcher"]

_SPILL_BYTES = 256 * 1024 * 1024
"""Unmatched rows of a side that stay in memory: enough for most streams, and little beside a Spark driver."""


class Matcher:
    """Compares two streams, "left" and "right".

    `depends` names the events that must keep their order: `independent`, `ordered`, `keyed(...)`, `synchronised(...)`,
    `punctuated(...)`, a union of these with `|`, or a symmetric function of two events. `equal` defines which events
    are equal: by default those with equal cells; else `equality(...)`, `accepts(...)`, or a function of two events.
    Unmatched rows of batches beyond `spill_bytes` a side are kept on disk.
    """

    def __init__(
        self,
        *,
        depends: Any,
        equal: Any = None,
        spill_bytes: int = _SPILL_BYTES,
        spill_folder: str | Path | None = None,
    ) -> None:
        self.depends: Dependence = as_dependence(depends)
        self.equal: Equality = as_equality(equal)
        check_columns(self.depends, self.equal)
        self.equal = self.equal.exact_in(self.depends.columns)
        self._spill_bytes = spill_bytes
        self._spill_folder = None if spill_folder is None else Path(spill_folder)
        self._samples = Samples(self.depends, self.equal)
        self._columnar: Columnar | None = None
        self._stepwise: Stepwise | None = None
        self._layout: Layout | None = None
        self._schemas: dict[Side, pa.Schema] = {}
        self._fallbacks = 0
        self._events_until = 0
        """Batches still to take event by event, after one that arrays could not take."""
        self._seen: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._verdict: Verdict | None = None
        self._closed = False

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, or None while there is none."""
        return self._verdict

    def seen(self, side: Side) -> int:
        """How many events of a side were taken in."""
        return self._seen[check_side(side)]

    def waiting(self, side: Side) -> int:
        """How many events of a side are without a partner."""
        side = check_side(side)
        if self._stepwise is not None:
            return len(self._stepwise.waiting[side])
        return self._columnar.pending[side].alive_count if self._columnar is not None else 0

    def unmatched(self, side: Side) -> list[Any]:
        """The events of a side without a partner, in order."""
        return self._rest(check_side(side)).events

    def push(self, side: Side, event: Any) -> Verdict | None:
        """Take one event in. The verdict if there is one; events after it change nothing."""
        side = check_side(side)
        if self._done():
            return self._verdict
        self._one_by_one(side, [as_event(event)], (self._seen[side],))
        return self._verdict

    def push_batch(
        self, side: Side, batch: pa.RecordBatch | pa.Table, *, positions: Ids | None = None
    ) -> Verdict | None:
        """Take the rows of a batch in, in order. The verdict if there is one; events after it change nothing.

        `positions` are the rows' places in a longer stream of which the matcher sees a part: ever larger numbers.
        """
        side = check_side(side)
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            raise EventProblem(
                f"Expected a pyarrow RecordBatch or Table, got {type(batch).__name__}.",
                hint="Use push(side, event) for a single event.",
            )
        pieces = _pieces(batch) if isinstance(batch, pa.Table) else [batch]
        start = 0
        for piece in pieces:
            if self._done():
                break
            first, rows = self._seen[side], piece.num_rows
            places = np.arange(first, first + rows) if positions is None else positions[start : start + rows]
            self._push_rows(side, piece, places)
            start += rows
        return self._verdict

    def oldest(self, side: Side, since: int = 0) -> int | None:
        """The first position of a side, from `since` on, whose event is without a partner; None if all have theirs."""
        side = check_side(side)
        if self._stepwise is not None:
            return min((p for p in self._stepwise.waiting[side] if p >= since), default=None)
        if self._columnar is None:
            return None
        pending = self._columnar.pending[side]
        if (first := pending.first_alive()) is None:
            return None
        if (position := int(pending.positions[first])) >= since:
            return position
        positions = pending.positions[: pending.length]
        later = positions[pending.alive[: pending.length] & (positions >= since)]
        return int(later.min()) if len(later) else None

    def close(self) -> Verdict:
        """Both streams have ended: the verdict. What is still without a partner is a difference."""
        self._verdict = self.if_ended()
        self._closed = True
        return self._verdict

    def if_ended(self) -> Verdict:
        """The verdict if both streams ended here; more events may follow."""
        if self._verdict is not None:
            return self._verdict
        return at_end({side: self._rest(side) for side in SIDES}, self.depends.describe())

    def undecided(self, seconds: float) -> Verdict:
        """The verdict if the comparison is given up now, after `seconds`; more events may follow."""
        if self._verdict is not None:
            return self._verdict
        rest = {side: self._rest(side) for side in SIDES}
        return Verdict(False, depends=self.depends.describe(), rest=rest, undecided_after=seconds)

    def save(self, path: str | Path) -> None:
        """Write a checkpoint (a folder), from which `Matcher.restore` goes on. Only while there is no verdict."""
        if self._verdict is not None:
            raise CheckpointProblem("Expected a matcher without a verdict, got one that has decided already.")
        saved = matcher_checkpoint.Saved(
            dict(self._seen),
            self.depends,
            self.equal,
            rows=None if self._columnar is None else self._columnar.unmatched(),
            events=None if self._stepwise is None else {s: self._rest(s).placed for s in SIDES},
            settled=list(self._stepwise.settled()) if isinstance(self._stepwise, Relational) else (),
        )
        matcher_checkpoint.write(Path(path), saved)

    @classmethod
    def restore(
        cls,
        path: str | Path,
        *,
        depends: Any = None,
        equal: Any = None,
        spill_bytes: int = _SPILL_BYTES,
        spill_folder: str | Path | None = None,
    ) -> Matcher:
        """Go on from a checkpoint. Functions are not part of it: pass a dependence or equality that is one again."""
        saved = matcher_checkpoint.read(Path(path))
        for name, value, known in (("depends", depends, saved.depends), ("equal", equal, saved.equal)):
            if value is None and known is None:
                raise CheckpointProblem(
                    f"Expected {name}=, since the matcher was saved with a function.",
                    hint=f"Call Matcher.restore(path, {name}=...) with the same function.",
                )
        matcher = cls(
            depends=saved.depends if depends is None else depends,
            equal=saved.equal if equal is None else equal,
            spill_bytes=spill_bytes,
            spill_folder=spill_folder,
        )
        return matcher._load(saved)

    def restored(self, path: str | Path) -> Matcher:
        """This matcher, which has seen no event yet, as a matcher for the same comparison was saved."""
        return self._load(matcher_checkpoint.read(Path(path)))

    def _load(self, saved: matcher_checkpoint.Saved) -> Matcher:
        self._seen = dict(saved.seen)
        difference = None
        if saved.rows is not None:
            difference = self._load_rows(saved.rows)
        elif saved.events is not None:
            difference = self._feed(saved.events, saved.settled)
        if difference is not None:
            raise CheckpointProblem(
                "Expected the dependence and the equality of the saved matcher, got others."
            )
        return self

    def tidy(self) -> None:
        """Nothing to do: a checkpoint holds the whole state, and replaces the one before."""

    def _done(self) -> bool:
        if self._closed:
            raise DiffError(
                "Expected no event after close().", hint="Make a new Matcher for another comparison."
            )
        return self._verdict is not None

    def _push_rows(self, side: Side, batch: pa.RecordBatch, positions: Ids) -> None:
        self._schemas[side] = batch.schema
        self._return_to_arrays()
        if self._stepwise is None and can_compare_columns(self.depends, self.equal):
            if self._columnar is None:
                self._columnar = self._new_columnar()
            taken = self._columnar.push(side, batch, positions)
            self._seen[side] += taken
            if taken == batch.num_rows:
                return
            self._to_stepwise()
            self._fall_back()
            batch, positions = batch.slice(taken), positions[taken:]
        elif self._columnar is None:
            self._check_schema(batch.schema)
        self._one_by_one(side, rows_of(batch), positions.tolist())

    def _fall_back(self) -> None:
        """Take batches event by event for some time: each time for twice as many batches as before."""
        self._fallbacks += 1
        self._events_until = 2**self._fallbacks

    def _return_to_arrays(self) -> None:
        """Go back to arrays some batches after one that arrays could not take, though it was no difference."""
        if not self._fallbacks or self._stepwise is None:
            return
        self._events_until -= 1
        if self._events_until > 0:
            return
        rows: dict[Side, tuple[Ids, pa.Table | None]] = {}
        try:
            for side in SIDES:
                waiting = self._stepwise.waiting[side]
                positions = np.fromiter(waiting, np.int64, len(waiting))
                table = pa.Table.from_pylist(list(waiting.values()), self._schemas[side]) if waiting else None
                rows[side] = (positions, table)
        except (pa.ArrowException, KeyError, TypeError, ValueError):
            self._fallbacks = 0  # events that no batch could hold: stay with events
            return
        stepwise, self._stepwise = self._stepwise, None
        self._load_rows(rows)
        if self._columnar is None:
            self._stepwise = stepwise
            self._fall_back()

    def _check_schema(self, schema: pa.Schema) -> None:
        if self._layout is None:
            columns = (*self.depends.columns, *(self.equal.columns or ()))
            equal = self.equal if self.equal.in_columns else Equality(columns=tuple(dict.fromkeys(columns)))
            self._layout = Layout(equal, columns)
        self._layout.fit(schema)

    def _one_by_one(self, side: Side, events: list[Any], positions: Sequence[int]) -> None:
        if self._stepwise is None:
            self._to_stepwise()
        assert self._stepwise is not None
        push = self._stepwise.push
        taken = 0
        try:
            for position, event in zip(positions, events, strict=True):
                difference = push(side, position, event)
                taken += 1
                if difference is not None:
                    rest = {side: self._rest(side) for side in SIDES}
                    self._verdict = replace(difference, depends=self.depends.describe(), rest=rest)
                    return
        finally:
            self._seen[side] += taken

    def _to_stepwise(self) -> None:
        """From arrays to events: only the unmatched rows are needed."""
        columnar, self._columnar = self._columnar, None
        self._stepwise = make_stepwise(self.depends, self.equal, self._samples)
        if columnar is not None:
            self._layout = columnar.layout
            self._feed(_as_events(columnar.unmatched()))

    def _feed(
        self, waiting: Mapping[Side, list[tuple[int, Any]]], settled: Sequence[SettledPair] = ()
    ) -> Verdict | None:
        """Push unmatched events into a fresh stepwise matcher; they depend on none of the other side."""
        if self._stepwise is None:
            self._stepwise = make_stepwise(self.depends, self.equal, self._samples)
        for side in SIDES:
            for position, event in waiting[side]:
                difference = self._stepwise.push(side, position, event)
                if difference is not None:
                    return difference
        if isinstance(self._stepwise, Relational):
            for pair in settled:
                self._stepwise.settle(pair)
        return None

    def _load_rows(self, rows: Unmatched) -> Verdict | None:
        """Push unmatched rows into a fresh columnar matcher; if it does not take them, into a stepwise one."""
        columnar = self._new_columnar()
        whole = True
        for side, (positions, table) in rows.items():
            if table is not None:
                batch = table.combine_chunks().to_batches()[0]
                whole = whole and columnar.push(side, batch, positions) == batch.num_rows
        if whole:
            self._columnar = columnar
            return None
        self._layout = columnar.layout
        return self._feed(_as_events(rows))

    def _new_columnar(self) -> Columnar:
        return Columnar(
            self.depends, self.equal, spill_bytes=self._spill_bytes, spill_folder=self._spill_folder
        )

    def _rest(self, side: Side) -> Rest:
        if self._stepwise is not None:
            waiting = self._stepwise.waiting[side]
            return Rest(list(waiting), list(waiting.values()))
        if self._columnar is not None:
            positions, table = self._columnar.pending[side].table()
            return Rest(positions.tolist(), [] if table is None else table)
        return Rest([], [])


def _pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows in large batches: each batch has a cost of its own, and is looked for in all before it."""
    for start in range(0, table.num_rows, LARGEST):
        yield from table.slice(start, LARGEST).combine_chunks().to_batches()


def _as_events(rows: Unmatched) -> dict[Side, list[tuple[int, Any]]]:
    """Unmatched rows with their positions, one by one."""
    return {
        side: list(zip(positions.tolist(), [] if table is None else rows_of(table), strict=True))
        for side, (positions, table) in rows.items()
    }
