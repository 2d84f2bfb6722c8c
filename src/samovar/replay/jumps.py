"""Jumps: from the name of a place to a cursor in a traced window, and what a jump costs."""

from __future__ import annotations

from dataclasses import dataclass

from samovar.errors import ReplayDiffers, TimeTravelError
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.positions import Position, Window
from samovar.record.log import EpochCommitted, Interaction
from samovar.record.state_files import is_mark, mark_of
from samovar.record.store import History, Recording
from samovar.replay.replay_session import ReplaySession
from samovar.replay.trace.segments import Segment
from samovar.replay.trace.traced_window import Cursor, TracedWindow
from samovar.runtime.epochs.checkpoint_policy import JUMP

__all__ = ["JumpCost", "after_tuple", "after_tuples", "before_failure", "epoch_start", "jump_cost", "run_end"]


def epoch_start(session: ReplaySession, epoch: int) -> Cursor:
    """The start of an epoch. One behind the last is the end of the run, or the start of the epoch that failed."""
    count = len(session.history.epochs)
    if not 0 <= epoch <= count:
        raise TimeTravelError(
            f"Expected an epoch from 0 to {count}, got {epoch}.",
            hint=f"The run has {count} epochs; {count} is its end.",
        )
    segment = session.failed_segment() if epoch == count else None
    if segment is None and epoch == count:
        return run_end(session)
    segment = segment or next(s for s in session.segments if s.epoch == epoch)
    return Cursor.start(session.windows.first(segment))


def run_end(session: ReplaySession) -> Cursor:
    """The end of the last committed epoch."""
    committed = [s for s in session.segments if s.epoch < len(session.history.epochs)]
    if not committed:
        raise TimeTravelError(
            "No epoch of this run was committed: it has no end to go to.",
            hint="past.failure() is the moment before it failed.",
        )
    return Cursor.end(session.windows.last(committed[-1]))


# --- an operator's n-th tuple ---------------------------------------------------------------------------------------


def after_tuples(session: ReplaySession, operator: str, tuples: int) -> Cursor:
    """Where an operator has just processed its n-th tuple, and all tuples that follow from it are processed too."""
    session.op(operator)
    if isinstance(tuples, bool) or not isinstance(tuples, int):
        raise TimeTravelError(f"Expected a whole number of tuples, got {tuples!r}.", operator=operator)
    if tuples < 0:
        raise TimeTravelError(f"Expected 0 tuples or more, got {tuples}.", operator=operator)
    before = 0
    for segment in session.segments:
        here = session.taken_in(segment, operator)
        if session.works_in(segment, operator) and tuples <= before + here:
            return _at_rank(session, segment, operator, tuples - before)
        before += here
    raise TimeTravelError(
        f"Expected at most {before:,} tuples of '{operator}', got {tuples:,}.",
        operator=operator,
        hint=f"The run processed {before:,} tuples there: jump('{operator}', tuples={before}) is its end.",
    )


def _at_rank(session: ReplaySession, segment: Segment, operator: str, rank: int) -> Cursor:
    """The cursor after the `rank`-th tuple of a segment; 0: before the first."""
    if rank == 0:
        return Cursor.start(session.windows.first(segment), operator)
    if session.tracer.edges(segment.level).order.get(operator) == "arrival":
        return Cursor.after(session.windows.traced(segment, Window()), operator, rank)
    return _counted(session, segment, operator, rank) or _searched(session, segment, operator, rank)


def _counted(session: ReplaySession, segment: Segment, operator: str, rank: int) -> Cursor | None:
    """The cursor after a tuple, by the counts of chunks; None where chunks are not counted."""
    leaves, tally = session.leaves, session.tracer.tally
    if leaves.runs(segment) is None or operator in session.tracer.inside:
        return None
    edges = session.tracer.edges(segment.level)
    ups = [edges.inputs[operator][port] for port in edges.ports(operator)]
    straight = leaves.straight(segment, operator)
    if straight:
        low = high = leaves.after(segment, None, rank - 1)
    elif all(tally.can(segment, up) for up in ups):
        low, high = tally.chunk(segment, ups, rank) or (None, None)
    else:
        return None
    if low is None or high is None:
        raise _lost(operator, f"{rank:,}")
    traced = session.windows.around(segment, low, high)
    start = traced.window.low
    if start is None:
        before = 0
    elif straight:
        before = leaves.rows_before(segment, start)
    else:
        before = sum(tally.before(segment, ups, start).values())
    if sum(step.taken is not None for step in traced.steps(operator)) < rank - before:
        raise _lost(operator, f"{rank:,}")
    return Cursor.after(traced, operator, rank - before)


def _searched(session: ReplaySession, segment: Segment, operator: str, rank: int) -> Cursor:
    """The cursor after a tuple, by a search for the positions of the operator's tuples."""
    skip = max(0, rank - 1 - session.windows.margin)
    most = session.windows.size + session.windows.margin
    start, before = session.tracer.marked(segment, operator, skip)
    places = session.tracer.positions(segment, operator, skip=skip - before, count=most, low=start)
    if len(places) < rank - skip:
        raise _lost(operator, f"{rank:,}")
    leaves, wanted = session.leaves, places[rank - 1 - skip]
    first, leaf, last = (leaves.leaf_of(segment, at) for at in (places[0], wanted, places[-1]))
    low = leaves.floor(segment, first) if skip else None
    high = None
    if len(places) == most:  # many tuples may come from one leaf tuple
        high = leaves.ceil(segment, last) if last > leaf else leaves.edge_after(segment, leaf, 1)
    return _behind(session.windows.traced(segment, Window(low, high)), operator, wanted)


# --- the tuple at a position ----------------------------------------------------------------------------------------


def after_tuple(session: ReplaySession, segment: Segment, operator: str, at: Position) -> Cursor:
    """Where an operator has just processed the tuple at a position, and all tuples that follow from it."""
    leaf = session.leaves.leaf_of(segment, at)
    return _behind(session.windows.around(segment, leaf, leaf), operator, at)


def _behind(traced: TracedWindow, operator: str, at: Position) -> Cursor:
    number = traced.step_at(operator, at)
    if number is None:
        raise _lost(operator, f"at {at}")
    return Cursor.after(traced, operator, number + 1)


def _lost(operator: str, which: str) -> ReplayDiffers:
    return ReplayDiffers(
        f"The tuple {which} of '{operator}' was not found when its epoch was computed again.",
        operator=operator,
        hint="Is every operator before it deterministic? sv.log_result(...) records what a call returned.",
    )


# --- the tuple that failed ------------------------------------------------------------------------------------------


def before_failure(session: ReplaySession) -> Cursor | None:
    """The cursor before the tuple at which the run failed, in a Python operator; None when it failed elsewhere."""
    segment = session.failed_segment()
    if segment is None:
        return None
    leaves = session.leaves
    if (leaf := _failed_leaf(session, segment)) is not None:
        traced = session.windows.up_to(segment, leaf)
        for operator, record in traced.failures:
            if record.at is not None and leaves.leaf_of(segment, record.at) == leaf:
                return _before(traced, operator, record.at)
    failed = session.tracer.failed_step(segment)
    if failed is None or failed[1].at is None:
        return None
    operator, at = failed[0], failed[1].at
    return _before(session.windows.up_to(segment, leaves.leaf_of(segment, at)), operator, at)


def _failed_leaf(session: ReplaySession, segment: Segment) -> Position | None:
    """The leaf tuple a run failed at, by its log; None where the log does not have it."""
    fact, leaves = session.history.failed, session.leaves
    if fact is None or not session.works_in(segment, fact.operator):
        return None
    if fact.position:
        return leaves.leaf_of(segment, fact.position)
    chains = session.tracer.tracing.chains.values()
    head = next((chain[0] for chain in chains if fact.operator in chain), fact.operator)
    if fact.taken and leaves.runs(segment) is not None and leaves.straight(segment, head):
        return leaves.after(segment, None, fact.taken - 1)
    return None


def _before(traced: TracedWindow, operator: str, at: Position) -> Cursor:
    """The cursor before a step that raised."""
    number = traced.step_at(operator, at)
    assert number is not None
    cursor = Cursor.after(traced, operator, number)
    return Cursor(traced, cursor.counts, operator=operator)


# --- costs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JumpCost:
    """What a jump to a moment costs."""

    seconds: float
    """Expected seconds of the jump."""
    bytes: int
    """Bytes kept for it: the states at the marks before it in its epoch."""


def jump_cost(recording: Recording, history: History, graph: Graph, to: Interaction) -> JumpCost:
    """A jump takes a fixed time, and where the run has Python operators with state, the work since the last mark."""
    fact = history.epochs[to.epoch]
    stateful = any(isinstance(graph.ops[name], ops.Python) for name in fact.state)
    if not stateful:
        return JumpCost(JUMP, 0)
    share = _share(history, fact, to)
    parts = len(fact.marks) + 1
    passed = min(int(share * parts), parts - 1)
    files = [f for f in (recording.epoch_folder(fact) / "state").glob("*/*") if is_mark(f)]
    kept = sum(f.stat().st_size for f in files if mark_of(f)[1] <= passed)
    return JumpCost(round(JUMP + (share - passed / parts) * fact.seconds, 2), kept)


def _share(history: History, fact: EpochCommitted, to: Interaction) -> float:
    """How much of the epoch's work lies before the interaction."""
    counted = fact.counters.get(to.operator)
    inside = sum(counted.taken) if counted is not None else 0
    if to.tuples is None or not inside:
        return 1.0
    before = history.totals(fact.epoch).get(to.operator)
    done = to.tuples - (sum(before.taken) if before is not None else 0)
    return min(max(done / inside, 0.0), 1.0)
