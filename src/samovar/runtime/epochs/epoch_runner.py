"""The epoch runner: level by level, epoch by epoch, commit by commit. Runs on a thread of its own.

Somebody may steer the run (run_control.py): an epoch begins when it may, and one that a pause has cancelled is done
again.

An epoch during which Spark lost a Python worker, an executor or what one of them held is done again as a fresh attempt:
at most `ATTEMPTS` times in a row, then the run fails and can be resumed. Errors of the user's code or expressions are
not retried. An epoch that was given up because a pause met it, or because it takes too long, takes fewer units the next
time, where it has more than one.
"""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import msgspec

from samovar.compile.strategy import EpochRange
from samovar.control import instructions as i
from samovar.control.events import Forecast
from samovar.errors import RunError, RunStopped
from samovar.graph import operators as ops
from samovar.ids import new_attempt
from samovar.positions import Position, RowRange
from samovar.record.log import EpochCommitted
from samovar.runtime.epochs.attempt import Attempt
from samovar.runtime.epochs.balance import check_balance
from samovar.runtime.epochs.checkpoint_policy import mark_count, mark_positions
from samovar.runtime.epochs.epoch import Epoch, EpochOutcome
from samovar.runtime.epochs.epoch_ahead import DEPTH, NextEpoch, Pipeline, may_run_ahead
from samovar.runtime.epochs.forecasts import forecast_of
from samovar.runtime.epochs.level_stream import LevelStream, take
from samovar.runtime.epochs.pacer import Pacer
from samovar.runtime.epochs.run_context import PresentEpoch, RunContext
from samovar.runtime.exchange.code_switch import read_switch_records
from samovar.runtime.exchange.decisions import write_decisions
from samovar.runtime.exchange.task_signs import EpochAbandoned, has_sign
from samovar.runtime.failures.explanation import what_was_lost
from samovar.runtime.live.held_rows import hold_row
from samovar.runtime.live.modification import apply_code, code_path, settle_switches
from samovar.runtime.live.run_control import Steering
from samovar.runtime.sources.units import row_ranges

__all__ = ["ATTEMPTS", "commit_epoch", "run_levels", "streams_of"]

log = logging.getLogger("samovar.engine")

ATTEMPTS = 3
"""How often an epoch is tried before a run gives up on workers or executors that keep dying.

A worker that dies of chance lives the second time; what kills it each time (too little memory) will not change.
"""
NOTHING_KNOWN = Forecast()


class _EpochShortened(Exception):
    """An epoch was given up, and the next attempt is to take fewer units."""

    def __init__(self, order: i.CancelEpoch) -> None:
        super().__init__(order.why)
        self.order = order


def streams_of(
    context: RunContext, level: int, after: Mapping[str, tuple[int, int]] | None = None
) -> list[LevelStream]:
    """The sources of a level in canonical order, with what earlier epochs of the level took.

    `after`: what the epoch takes that is under way, which counts as taken.
    """
    plan, history = context.plan, context.history
    streams = []
    for name in plan.placement.sources(level):
        source = context.sources.get(name)
        if source is not None:
            ends: Sequence[int] = source.units.ends
            edges = source.units.edges if source.grain else None
            order = source.number
        else:
            at = plan.placement.level[name]
            epochs = history.epochs_on(at)
            ends = [0, *accumulate(max(1, _folder_bytes(context, name, e)) for e in epochs)]
            edges = None
            ups = [
                context.sources[u.name].number for u in plan.graph.upstream(name) if u.name in context.sources
            ]
            order = min(ups, default=0)
        taken = after[name][1] if after is not None and name in after else history.taken(level, name)
        streams.append((order, LevelStream(name, ends, taken, edges)))
    return [stream for _, stream in sorted(streams, key=lambda pair: (pair[0], pair[1].name))]


def _folder_bytes(context: RunContext, name: str, epoch: EpochCommitted) -> int:
    return sum(
        f.stat().st_size
        for p in context.recording.parts("stash", name, [epoch], check=False)
        for f in p.iterdir()
    )


def run_levels(
    context: RunContext,
    pacer: Callable[[int], Pacer],
    *,
    watching: Callable[[], bool],
    stopping: Callable[[], bool],
    committed: Callable[[EpochCommitted], None],
    make: Callable[[Attempt], Epoch] = Epoch,
    noted: Callable[[str], None] = lambda _: None,
) -> None:
    """Run everything that is not committed yet. `committed` is called after each commit; `make`: see `commit_epoch`;
    `noted` gets what people should know."""
    plan = context.plan
    level = 0
    while level < plan.placement.levels:
        high = level if plan.placement.sources(level) else _closing(context, level)
        done = context.history.epochs_on(level)
        if done and done[-1].last:
            level = done[-1].level + done[-1].levels
            continue
        if _idle(context, level, high):
            level = high + 1
            continue
        pace = pacer(level)
        _run_level(context, level, high, pace, watching, stopping, committed, make, noted, first=not done)
        context.progress.build_sides.forget()


def _closing(context: RunContext, level: int) -> int:
    """The last of the levels after this one that read nothing but what has ended by then: they are one plan with it."""
    placement = context.plan.placement
    while level + 1 < placement.levels and not placement.sources(level + 1):
        level += 1
    return level


def _idle(context: RunContext, low: int, high: int) -> bool:
    plan = context.plan
    return not any(plan.placement.works(n, at) for n in plan.graph.ops for at in range(low, high + 1))


def _run_level(
    context: RunContext,
    low: int,
    high: int,
    pace: Pacer,
    watching: Callable[[], bool],
    stopping: Callable[[], bool],
    committed: Callable[[EpochCommitted], None],
    make: Callable[[Attempt], Epoch],
    noted: Callable[[str], None],
    *,
    first: bool,
) -> None:
    def choose(after: EpochRange | None, high: int = low) -> NextEpoch:
        """The next epoch; `after`: what the one before it covers, if that has not ended."""
        streams = streams_of(context, low, after.units if after is not None else None) if low == high else []
        remaining = sum(s.remaining for s in streams)
        mixed = _mixed(context, streams)
        wanted = remaining if mixed else pace.next_bytes(remaining, watching=watching())
        units, size = take(streams, wanted)
        last = all(units[s.name][1] == s.units for s in streams)
        begins = first and after is None
        if begins and last:  # everything in one epoch: what closes the level is part of the same plan
            high = _closing(context, high)
        marks = _marks(context, low, units, pace.longest_seconds(size))
        return NextEpoch(EpochRange(low, high, units, begins, last, marks), size, whole=mixed)

    runs_ahead = make is Epoch and low == high and may_run_ahead(context.plan, low)

    def behind(after: EpochRange) -> NextEpoch | None:
        return choose(after) if runs_ahead and pace.knows and not after.last else None

    plan = context.plan
    native = all(
        plan.shape(n) not in ("python", "batches") for n in plan.graph.ops if plan.placement.works(n, low)
    )
    pipeline = Pipeline(context, behind, DEPTH if native else 1)
    steering = context.steering
    try:
        while True:
            if stopping():
                raise RunStopped(
                    "The run was stopped.", hint="Go on with past.resume() or `samovar run --resume`."
                )
            ahead = pipeline.waiting()
            chosen = choose(None, high) if ahead is None else ahead.chosen
            size = chosen.size
            forecast = forecast_of(
                context, chosen.covers, pace, size, watching=watching(), whole=chosen.whole
            )
            try:
                fact = commit_epoch(
                    context, chosen.covers, size, stopping, forecast=forecast, make=make, pipeline=pipeline
                )
            except _EpochShortened as given_up:
                pipeline.drop()
                noted(_shorten(context, pace, chosen, given_up.order, native=native))
                continue
            prepares = bool(context.progress.build_sides.frames) and first
            assert context.progress.present is not None
            for _ in range(context.progress.present.interrupted):
                pace.interrupted()
            still, paused = (steering.still, steering.pausing) if steering is not None else (0.0, False)
            pace.observe(
                size, fact.seconds - still, prepares=prepares, paused=paused, ahead=ahead is not None
            )
            committed(fact)
            first = False
            if fact.last:
                return
    finally:
        pipeline.drop()


def _shorten(
    context: RunContext, pace: Pacer, chosen: NextEpoch, order: i.CancelEpoch, *, native: bool
) -> str:
    """Make the next epoch shorter than one that was given up; returns what people should know."""
    if order.cause == "pause":
        pace.interrupted()
        return ""
    units = sum(b - a for a, b in chosen.covers.units.values())
    # a unit for each core, and half of one since units differ: they are done at the same time
    least = int(chosen.size * (context.cores + 0.5) / units) if native else None
    pace.overran(chosen.size, order.worked, order.expected, least)
    about = "" if order.expected is None else f" (it would have taken {order.expected:.0f} s)"
    note = f"epoch {order.epoch} was given up after {order.worked:.1f} s{about} and is done again shorter"
    log.info("run %s: %s", context.tag, note)
    return note


def _marks(
    context: RunContext, level: int, units: dict[str, tuple[int, int]], seconds: float
) -> tuple[Position, ...]:
    """Where Python operators keep their state on the way: nowhere, if a jump would not start there."""
    plan = context.plan
    working = {n: op for n, op in plan.graph.ops.items() if plan.placement.works(n, level)}
    shapes = {plan.shape(n) for n in working}
    if "python" not in shapes or "limit" in shapes or context.marks_policy == "none" or context.holds:
        return ()
    if any(isinstance(op, ops.Python) and op.order == "arrival" for op in working.values()):
        return ()  # its tuples have no place before or behind a mark
    ranges: list[RowRange] = []
    for name in plan.placement.sources(level):
        source = context.sources.get(name)
        rows_of_units = None if source is None else row_ranges(source, range(*units.get(name, (0, 0))))
        if rows_of_units is None:
            return ()
        ranges += rows_of_units
    rows = sum(n for _, _, n in ranges)
    return mark_positions(sorted(ranges), mark_count(context.marks_policy, context.tau, rows, seconds))


def commit_epoch(
    context: RunContext,
    covers: EpochRange,
    size: int,
    stopping: Callable[[], bool],
    *,
    forecast: Forecast = NOTHING_KNOWN,
    make: Callable[[Attempt], Epoch] = Epoch,
    pipeline: Pipeline | None = None,
) -> EpochCommitted:
    """Run one epoch and commit it. `forecast`: what is known of it; `make`: prepares an attempt at it.

    `pipeline`: where the epoch may have begun already, and where the one behind it may begin.
    """
    present = context.progress.present = PresentEpoch(covers)
    pipeline = pipeline or Pipeline(context, lambda _: None)
    epoch, outcome = _attempt(context, present, stopping, forecast, make, pipeline)
    number, name = epoch.number, epoch.attempt.name
    if present.mended:
        write_decisions(epoch.folder, "rows", present.mended)
    # before the fact is made: it changes the state files that the fact lists
    state, switched = settle_switches(context, number, epoch.folder, name, outcome.state)
    fact = EpochCommitted(
        at=time.time(),
        epoch=number,
        level=covers.low,
        levels=covers.high - covers.low + 1,
        attempt=name,
        units={n: r for n, r in covers.units.items() if r[0] != r[1]},
        last=covers.last,
        seconds=round(outcome.seconds, 4),
        counters=outcome.counters,
        state=state,
        rejected=outcome.rejected,
        bytes=size,
        marks=() if switched else covers.marks,
        switched=switched,
        files=context.recording.sealed(epoch.folder),
        code_files=context.recording.sealed_code(
            code_path(context.recording, n, v) for n, v in switched.items()
        ),
    )
    assert context.recording.log is not None
    context.recording.log.append(fact)  # this is the commit: what comes before it can be done again
    context.history.add(fact)
    if context.steering is not None:
        context.steering.committed(fact.counters)
    return fact


def _attempt(
    context: RunContext,
    present: PresentEpoch,
    stopping: Callable[[], bool],
    forecast: Forecast,
    make: Callable[[Attempt], Epoch],
    pipeline: Pipeline,
) -> tuple[Epoch, EpochOutcome]:
    """Run an epoch; again, as a fresh attempt, when Spark lost something on the way or a pause cancelled it."""
    steering = context.steering
    lost = ""
    tried = 0
    while tried < ATTEMPTS:
        ahead, fits = pipeline.take(present.covers), True
        name = new_attempt() if ahead is None else ahead.attempt.name
        if steering is not None:
            if present.mended:  # they are counted with all of this epoch's rows
                forecast = msgspec.structs.replace(forecast, aim=None)
            if not steering.begin(len(context.history.epochs), name, forecast):
                raise RunStopped(
                    "The run was stopped.", hint="Go on with past.resume() or `samovar run --resume`."
                )
            code = steering.take_code()
            if code is not None:
                pipeline.drop()  # it was computed, or is being computed, by the old code
                apply_code(context, code)
                fits = False
        context.check_storage()
        number = len(context.history.epochs)  # not before: other code may have come as an epoch of its own
        if ahead is not None and not (fits and ahead.begin()):
            pipeline.drop()
            if steering is not None:
                steering.failed()
            continue  # as an attempt of another name: a task of the dropped one may still write into its folder
        if ahead is not None:
            epoch = ahead.epoch
        else:
            folder = context.recording.attempt_folder(number, name)
            control = steering.control if steering is not None else None
            mended = tuple(present.mended)
            epoch = make(Attempt(context, number, present.covers, name, folder, control, mended=mended))
        try:
            pipeline.start_next(epoch)
            outcome = epoch.run() if ahead is None else pipeline.finish(ahead)
            if steering is not None and (odd := _mixed_up(steering, epoch)):
                lost = odd
            elif not epoch.recomputed():
                context.check_storage()  # executors may have joined in the meantime
                epoch.inputs.check_files()
                check_balance(epoch)  # not before: what Spark computed twice may count twice
                # last of all: from here on a pause comes too late to cancel this attempt
                if steering is None or steering.may_commit():
                    return epoch, outcome
                lost = "cancelled"
            else:
                lost = "an executor was lost and its part computed again, so that counters may be off"
        except Exception as error:
            present.working = epoch.working
            if steering is not None and isinstance(error, EpochAbandoned):
                steering.desk.hear_out()
            cancelled = steering is not None and steering.failed() and not stopping()
            reason = _lost(error) if not cancelled else "cancelled"
            if stopping():
                raise
            if reason is None:
                if steering is None or not context.holds:
                    raise
                # before a decision is waited for, which may take hours: the disk is free meanwhile
                shutil.rmtree(epoch.folder, ignore_errors=True)
                hold_row(context, present, steering, error)
                continue
            lost = reason
        if (
            steering is None or not steering.failed()
        ):  # an attempt that a pause has cancelled is not a failed one
            tried += 1
            log.warning("run %s: epoch %d, attempt %d of %d: %s", context.tag, number, tried, ATTEMPTS, lost)
        shutil.rmtree(epoch.folder, ignore_errors=True)
        order = steering.cancelled if steering is not None else None
        if order is not None and order.shorter and not present.mended:
            raise _EpochShortened(order)
        present.interrupted += order is not None and order.cause == "pause"
    number = len(context.history.epochs)
    raise RunError(
        f"Spark lost workers in epoch {number}, {ATTEMPTS} times in a row: {lost}.",
        hint="Often memory is short: look at the executors' logs, use smaller epochs (epoch_bytes=) or more memory "
        "(spark.executor.memory), then resume the run. Every committed epoch is kept.",
    )


def _mixed_up(steering: Steering, epoch: Epoch) -> str:
    """Why it is not known which code an attempt ran, if operators switched to other code in it; empty: it is."""
    if not read_switch_records(epoch.folder):
        return ""
    if steering.repeated():
        return "a task ran twice while its operators switched to other code"
    if has_sign(epoch.folder / "errors", "unattended"):
        return "a worker could not be told of other code"
    return ""


def _lost(error: Exception) -> str | None:
    if isinstance(error, EpochAbandoned):
        return "a worker gave its task up"
    return what_was_lost(error)


def _mixed(context: RunContext, streams: list[LevelStream]) -> bool:
    """Whether rows of several sources of a level lie between each other in canonical order, and the order counts.

    An epoch takes source after source, which is the canonical order unless one of them is a stash of several sources,
    or of an operator that gives rows at its end: these belong behind all others. Such a level is one epoch.
    """
    plan = context.plan
    reached = -1.0
    for stream in streams:
        if not plan.width[stream.name]:
            continue
        source = context.sources.get(stream.name)
        if source is not None:
            first = last = float(source.number)
        else:
            ups = [plan.graph.ops[stream.name], *plan.graph.upstream(stream.name)]
            numbers = [context.sources[u.name].number for u in ups if u.name in context.sources]
            first = float(min(numbers, default=0))
            gives_late = any(plan.shape(u.name) == "python" for u in ups)
            last = math.inf if gives_late else float(max(numbers, default=0))
        if first <= reached:
            return True
        reached = max(reached, last)
    return False
