"""What a jump to an interaction is expected to take, from the log and the sizes of files alone."""

from __future__ import annotations

from dataclasses import dataclass

from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.record.log import EpochCommitted, Interaction
from samovar.record.state_files import is_mark
from samovar.record.store import History, Recording
from samovar.runtime.epochs.checkpoint_policy import JUMP

__all__ = ["JumpCost", "jump_cost"]


@dataclass(frozen=True)
class JumpCost:
    """What the way to a moment costs."""

    seconds: float
    """Expected seconds of the jump."""
    bytes: int
    """Bytes kept for it: the state at the marks up to it in its epoch."""


def jump_cost(recording: Recording, history: History, graph: Graph, to: Interaction) -> JumpCost:
    """A jump takes its fixed time, and the work since the last mark where Python operators must be brought there."""
    fact = history.epochs[to.epoch]
    stateful = any(isinstance(graph.ops[name], ops.Python) for name in fact.state)
    if not stateful:
        return JumpCost(JUMP, 0)
    share = _share(history, fact, to)
    parts = len(fact.marks) + 1
    passed = min(int(share * parts), parts - 1)
    files = [f for f in (recording.epoch_folder(fact) / "state").glob("*/*") if is_mark(f)]
    kept = sum(f.stat().st_size for f in files if int(f.suffix.removeprefix(".mark")) <= passed)
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
