"""Tuples that raised and wait for a decision, and the decisions that stand. Pure data for `machine.py`.

A decision about a tuple outlives the attempt it was made in: when the epoch is done again, the tuple comes again at the
same place, and the decision about it is in the worker's orders.
"""

from __future__ import annotations

from dataclasses import dataclass

from samovar.control import messages as m

__all__ = ["DecisionEffect", "HeldTuples"]


@dataclass(frozen=True)
class DecisionEffect:
    """What follows from a decision: the worker that waits for it, if one does, and what stands from now on."""

    worker: str | None
    decision: m.Decision
    standing: m.TupleDecision | None = None
    skip_all: m.SkipAllDecision | None = None


class HeldTuples:
    """Held tuples by the name of the hold."""

    def __init__(self) -> None:
        self.open: dict[str, m.Held] = {}
        self.skip_all: list[m.SkipAllDecision] = []
        self.decisions: dict[m.TuplePlace, m.TupleDecision] = {}
        self._workers: dict[str, str | None] = {}
        self._answers: dict[str, m.Decision] = {}

    def add(self, held: m.Held, worker: str | None) -> m.Decision | None:
        """Hold a tuple. Returns the decision if there is one already: about all tuples like it, about this one in an
        earlier attempt, or from before the connection broke."""
        if held.hold in self._answers:
            return self._answers[held.hold]
        before = self.decisions.get(held.place)
        like_others = any(d.operator == held.place.operator and d.like == held.like for d in self.skip_all)
        if like_others or (before is not None and before.kind == "skip"):
            decision = m.Decision(hold=held.hold, kind="skip")
            self._answers[held.hold] = decision
            return decision
        self.open[held.hold] = held
        self._workers[held.hold] = worker
        return None

    def decide(self, hold: str, kind: m.DecisionKind, row: bytes) -> list[DecisionEffect]:
        """Decide about a held tuple; with "skip-all" also about those like it."""
        held = self.open[hold]
        skip_all = None
        names = [hold]
        if kind == "skip-all":
            skip_all = m.SkipAllDecision(operator=held.place.operator, like=held.like)
            self.skip_all.append(skip_all)
            names += [
                name
                for name, other in self.open.items()
                if name != hold and other.place.operator == held.place.operator and other.like == held.like
            ]
        effects = []
        for name in names:
            place = self.open.pop(name).place
            standing = None
            if kind != "retry":
                standing = m.TupleDecision(place, "edit" if kind == "edit" else "skip", row)
                self.decisions[place] = standing
            decision = m.Decision(hold=name, kind="skip" if kind == "skip-all" else kind, row=row)
            self._answers[name] = decision
            # `skip_all` goes out once, with the tuple that was decided about
            first = skip_all if name == hold else None
            effects.append(DecisionEffect(self._workers.pop(name), decision, standing, first))
        return effects

    def decision(self, hold: str) -> m.Decision | None:
        """The decision about a tuple in this attempt, or since it was given up; None: there is none yet."""
        return self._answers.get(hold)

    def forget_worker(self, worker: str | None) -> None:
        """A worker is gone: what it held will be held again when its tuples are processed again."""
        for hold in [h for h, w in self._workers.items() if w == worker]:
            del self._workers[hold], self.open[hold]

    def forget_attempt(self) -> None:
        """The epoch's attempt is over: only rows that the engine reported, for which no worker waits, stay held."""
        for worker in {w for w in self._workers.values() if w is not None}:
            self.forget_worker(worker)
        self._answers.clear()

    def standing(
        self, operators: tuple[str, ...], epoch: int
    ) -> tuple[tuple[m.SkipAllDecision, ...], tuple[m.TupleDecision, ...]]:
        """The decisions that stand for a task: about kinds of tuples, and about single ones."""
        skip_all = tuple(d for d in self.skip_all if d.operator in operators)
        places = self.decisions.items()
        return skip_all, tuple(d for p, d in places if p.operator in operators and p.epoch == epoch)
