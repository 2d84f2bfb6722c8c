"""Tuples that raised and wait for a decision, and the decisions that stand. Pure data for `machine.py`.

A decision about a tuple outlives the attempt it was made in: when the epoch is done again, the tuple is met at the
same place, and its ruling is in the worker's orders.
"""

from __future__ import annotations

from dataclasses import dataclass

from samovar.control import messages as m

__all__ = ["Decided", "Holds"]


@dataclass(frozen=True)
class Decided:
    """What came of one decision: for whom it is, and what stands because of it."""

    worker: str | None
    decision: m.Decision
    ruling: m.Ruling | None = None
    rule: m.Rule | None = None


class Holds:
    """Held tuples by the name of the hold."""

    def __init__(self) -> None:
        self.open: dict[str, m.Held] = {}
        self.rules: list[m.Rule] = []
        self.rulings: dict[m.Place, m.Ruling] = {}
        self._workers: dict[str, str | None] = {}
        self._decided: dict[str, m.Decision] = {}

    def add(self, held: m.Held, worker: str | None) -> m.Decision | None:
        """A tuple is held. Returns the decision if it was made before: by a rule, or before the connection broke."""
        if held.hold in self._decided:
            return self._decided[held.hold]
        ruling = self.rulings.get(held.place)
        ruled = any(r.operator == held.place.operator and r.like == held.like for r in self.rules)
        if ruled or (ruling is not None and ruling.verdict == "skip"):
            decision = m.Decision(hold=held.hold, verdict="skip")
            self._decided[held.hold] = decision
            return decision
        self.open[held.hold] = held
        self._workers[held.hold] = worker
        return None

    def decide(self, hold: str, verdict: m.Verdict, row: bytes) -> list[Decided]:
        """Decide about a held tuple; with "skip-all" also about those like it."""
        held = self.open[hold]
        rule = None
        chosen = [hold]
        if verdict == "skip-all":
            rule = m.Rule(operator=held.place.operator, like=held.like)
            self.rules.append(rule)
            chosen += [
                other
                for other, o in self.open.items()
                if other != hold and o.place.operator == rule.operator and o.like == rule.like
            ]
        made = []
        for name in chosen:
            this = self.open.pop(name)
            ruling = None
            if verdict != "retry":
                ruling = m.Ruling(this.place, "edit" if verdict == "edit" else "skip", row)
                self.rulings[this.place] = ruling
            decision = m.Decision(hold=name, verdict="skip" if verdict == "skip-all" else verdict, row=row)
            self._decided[name] = decision
            made.append(Decided(self._workers.pop(name), decision, ruling, rule if name == hold else None))
        return made

    def decision(self, hold: str) -> m.Decision | None:
        """What was decided about a tuple in this attempt, or since it was given up; None: nothing yet."""
        return self._decided.get(hold)

    def forget_worker(self, worker: str | None) -> None:
        """A worker is gone: what it held will be held again when its tuples are processed again."""
        for hold in [h for h, w in self._workers.items() if w == worker]:
            del self._workers[hold], self.open[hold]

    def forget_attempt(self) -> None:
        """The epoch's attempt is over: only rows found by the engine, which no worker holds, stay held."""
        for worker in {w for w in self._workers.values() if w is not None}:
            self.forget_worker(worker)
        self._decided.clear()

    @property
    def without_worker(self) -> bool:
        """Whether something is held that no worker waits for."""
        return None in self._workers.values()

    def standing(
        self, operators: tuple[str, ...], epoch: int
    ) -> tuple[tuple[m.Rule, ...], tuple[m.Ruling, ...]]:
        """Rules and rulings for a task."""
        rules = tuple(r for r in self.rules if r.operator in operators)
        places = self.rulings.items()
        return rules, tuple(r for p, r in places if p.operator in operators and p.epoch == epoch)
