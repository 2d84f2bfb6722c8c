"""A place in the past of a run: a moment, the operator looked at, and the way back. Knows no commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samovar.cli.debug.debug_values import change_data
from samovar.graph import operators as ops
from samovar.record.log import Counters

if TYPE_CHECKING:
    from samovar.replay.moment import Moment
    from samovar.replay.past import Past

__all__ = ["Bookmark", "DebugPlace"]


@dataclass(frozen=True)
class Bookmark:
    """The moment looked at, the operator used last, the operators stepped into, and the mark before the last step."""

    moment: Moment | None
    operator: str
    inside: tuple[str, ...]
    before: Bookmark | None


class DebugPlace:
    """A moment of a run and the operator looked at. The moment is computed when it is first asked for."""

    def __init__(self, past: Past) -> None:
        self.past = past
        self.graph = past.workflow.graph()
        self.failed = past.status == "failed"
        self.totals = past.history.totals()
        self.epochs = len(past.history.epochs)
        self.operator = self._first_operator()
        self.inside: tuple[str, ...] = ()
        self.before: Bookmark | None = None
        self._moment: Moment | None = None

    @property
    def moment(self) -> Moment:
        """The moment looked at. Opened at the end of the run, or where a failed run failed."""
        if self._moment is None:
            self._moment = self._opened()
        return self._moment

    @property
    def error(self) -> str | None:
        """The error that a failed run ended with; None for other runs."""
        ended = self.past.history.ended
        return ended.error if ended is not None and self.failed else None

    def _first_operator(self) -> str:
        ended = self.past.history.ended
        if ended is not None and ended.operator in self.graph.ops:
            return str(ended.operator)
        names = [n for n, op in self.graph.ops.items() if not isinstance(op, ops.SOURCES)]
        return names[0] if names else next(iter(self.graph.ops))

    def _opened(self) -> Moment:
        failure = self.past.failure() if self.failed else None
        return failure if failure is not None else self.past.jump()

    def mark(self) -> Bookmark:
        """Where this is now, to come back to."""
        return Bookmark(self._moment, self.operator, self.inside, self.before)

    def restore(self, mark: Bookmark) -> None:
        """Return to a place that `mark` returned."""
        self._moment, self.operator = mark.moment, mark.operator
        self.inside, self.before = mark.inside, mark.before

    def move(
        self, moment: Moment, operator: str | None = None, *, inside: tuple[str, ...] = (), step: bool = False
    ) -> None:
        """Look at another moment. A `step` can be undone with the operator and the scopes that were open before it."""
        self.before = self.mark() if step else None
        self._moment = moment
        self.operator = operator or self.operator
        self.inside = inside

    def move_back(self) -> None:
        """Undo the last step, or go back by one tuple."""
        moment = self.moment.step_back()
        if self.before is not None and self.before.moment is moment:
            self.restore(self.before)
        else:
            self.move(moment)

    # --- as plain fields --------------------------------------------------------------------------------------------

    def where_data(self) -> dict[str, Any]:
        """The moment as plain fields: epoch, operator, its tuples, and every operator's counters."""
        here = self.moment
        counters = here.counters
        mine = counters.get(self.operator, Counters())
        whole = self.totals.get(self.operator, Counters())
        return {
            "epoch": here.epoch,
            "epochs": self.epochs,
            "operator": self.operator,
            "tuples": sum(mine.taken),
            "of": max(sum(whole.taken), sum(mine.taken)),
            "operators": [
                {
                    "name": name,
                    "taken": sum(counters.get(name, Counters()).taken),
                    "given": counters.get(name, Counters()).given,
                    "waiting": self.waiting(name, counters),
                }
                for name in self.graph.ops
            ],
        }

    def waiting(self, name: str, counters: Mapping[str, Counters]) -> int:
        """The number of tuples that wait at an operator: given upstream, not taken; behind a source, all the rest."""
        taken, whole = counters.get(name, Counters()).taken, self.totals.get(name, Counters()).taken
        total = 0
        for port, up in enumerate(self.graph.ops[name].inputs):
            done = taken[port] if port < len(taken) else 0
            if isinstance(self.graph.ops[up], ops.SOURCES):
                given = whole[port] if port < len(whole) else 0
            else:
                given = counters.get(up, Counters()).given
            total += max(0, given - done)
        if not total and self.moment.epoch >= self.epochs:
            # The epoch a run failed in has no counters in the log.
            return len(self.moment.pending(name))
        return total

    def step_data(self) -> dict[str, Any] | None:
        """The step that led here, as plain fields; None after a jump that no step leads to."""
        last = self.moment.last
        if last is None:
            return None
        return {
            "operator": last.operator,
            "port": last.port,
            "row": last.row,
            "outputs": list(last.outputs),
            "changes": [change_data(c) for c in last.changes],
        }
