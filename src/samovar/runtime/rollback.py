"""Resuming a run after its last committed epoch, or after the last epoch whose files are all whole.

A commit names its files, which are flushed before. So a file that is not whole was damaged from outside: by a disk that
lost data it had confirmed, by a flipped bit, or because somebody removed it. Epochs from the first such file on are
computed again. Nothing is rewritten: the log gets a fact that says from which epoch on, and why.
"""

from __future__ import annotations

import time

from samovar.errors import RecordingCorrupt
from samovar.graph import operators as ops
from samovar.graph.workflow import Graph
from samovar.record.log import EpochCommitted, RunResumed
from samovar.record.store import History, Recording, slug_unique
from samovar.runtime.publication import moved_path

__all__ = ["take_up", "whole_epochs"]

MOST = 20
"""Problems that a fact names: after the loss of a disk there may be thousands."""


def take_up(recording: Recording, history: History, graph: Graph) -> str:
    """Log that the run goes on, and cut the history to the epochs it goes on from.

    Returns a notice for people, if epochs were damaged; else an empty text. Reads all files that the run and its
    results need. Raises RecordingCorrupt when damaged epochs have been published already.
    """
    count, problems = whole_epochs(recording, history, graph)
    lost = history.epochs[count:]
    if lost and history.published:
        raise RecordingCorrupt(
            f"{problems[0]} Its epoch cannot be computed again: results of this run lie at their paths already.",
            hint="Restore the file from a copy, or run the workflow again.",
        )
    if not lost and history.ended is not None and history.ended.status == "completed":
        return ""
    damaged = tuple(text.replace(f"{recording.path}/", "") for text in problems[:MOST])
    fact = RunResumed(at=time.time(), epoch=count, damaged=damaged)
    undone = sorted({n for c in history.changes for n in c.operators})
    assert recording.log is not None
    recording.log.append(fact)
    history.add(fact)
    if not lost:
        return ""
    recording.sweep()
    undone = [n for n in undone if not any(n in c.operators for c in history.changes)]
    return _notice(damaged[0], len(problems) - 1, count, len(lost), undone)


def whole_epochs(recording: Recording, history: History, graph: Graph) -> tuple[int, list[str]]:
    """How many epochs from the start are whole, and the problems of the files behind them. Takes no lock."""
    written = {slug_unique(o.name): o for o in graph.sinks if isinstance(o, ops.Write)}

    def moved(epoch: EpochCommitted, name: str) -> bool:
        kind, folder, *_ = name.split("/")
        op = written.get(folder) if kind == "results" else None
        if op is None or (recording.epoch_folder(epoch) / name).exists():
            return False
        return op.name in history.published or moved_path(recording, op, epoch, name).exists()

    return recording.whole_epochs(history, moved=moved)


def _notice(first: str, others: int, count: int, lost: int, undone: list[str]) -> str:
    which = f"epoch {count} is" if lost == 1 else f"epochs {count} to {count + lost - 1} are"
    more = f" (and {others} more)" if others else ""
    again = (
        f" Changes to {', '.join(undone)} came later and are undone: modify the run again." if undone else ""
    )
    return f"Of what was committed, {which} computed again: {first}{more}{again}"
