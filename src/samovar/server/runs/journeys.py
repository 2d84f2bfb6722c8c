"""Journeys: recordings that people travel in, and the moments they visited.

Moments are named by short ids, so that a browser can hold them. A journey keeps the last few hundred; a moment that is
forgotten can be visited again by its address: the jump that led there, and the steps after it. An address means the
same to every server that has the recording. Journeys that nobody used for a while are closed. Each journey has a lock:
its moments share traces, and those are computed one at a time.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import samovar as sv
from samovar.errors import NotInWorkspace, TimeTravelError
from samovar.replay.moment import Moment
from samovar.replay.past import Past
from samovar.replay.trace.model import Tuple
from samovar.server.json_values import map_data, moment_data, plain, row_data
from samovar.server.spark_service import Engine

__all__ = ["Address", "Journey", "Journeys", "StepKind"]

StepKind = Literal["over", "into", "out", "back"]
_MOMENTS = 300
_OPEN = 6
_KEYS = 100_000
"""Keys of a map that are looked through for one."""
_STATES = 50
"""Entries of a map of the state on one page."""


@dataclass(frozen=True)
class Address:
    """Where a moment is: the jump that led there (`to`), and the steps (how, operator) after it."""

    to: Mapping[str, Any]
    steps: tuple[tuple[StepKind, str | None], ...] = ()

    def stepped(self, how: StepKind, operator: str | None) -> Address:
        """The address after one more step; a step back takes the one before it away."""
        if how == "back" and self.steps and self.steps[-1][0] != "back":
            return Address(self.to, self.steps[:-1])
        taken = operator if how in ("over", "into") else None
        return Address(self.to, (*self.steps, (how, taken)))

    def data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"to": dict(self.to), "steps": [list(s) for s in self.steps]}


def _stepped(at: Moment, how: StepKind, operator: str | None) -> Moment:
    if how == "out":
        return at.step_out()
    if how == "back":
        return at.step_back()
    if not operator:
        raise TimeTravelError(
            f"Expected an operator to step {how}, got none.", hint="Choose an operator on the canvas."
        )
    return at.step_over(operator) if how == "over" else at.step_into(operator)


def _key(value: Any, shown: Any) -> Any:
    """The key of a map that a browser knows in its plain form; of a list, the index."""
    if isinstance(value, Mapping):
        for key in islice(value, _KEYS):
            if plain(key) == shown:
                return key
    if isinstance(shown, list | dict):
        raise TimeTravelError(f"Expected a key of this state, got {str(shown)[:80]}.")
    return shown


class Journey:
    """A recording that people travel in, and the moments they visited."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self._path = path
        self._engine = engine
        self.past: Past = sv.open(path, spark=engine.session())
        self.lock = threading.RLock()
        self.status = self.past.status
        self._graph = self.past.workflow.graph()
        self.operators = list(self._graph.ops)
        self._moments: OrderedDict[str, tuple[Moment, Address]] = OrderedDict()
        self._count = 0

    # --- going ----------------------------------------------------------------------------------------------------

    def visit(self, address: Address) -> dict[str, Any]:
        """Compute the moment at an address and keep it."""
        with self.lock:
            self.refresh()
            to = address.to
            at: Moment | None
            if to.get("failure"):
                at = self.past.failure()
            elif "predicate" in to:
                at = self.past.first(str(to["operator"]), str(to["predicate"]))
            else:
                name = to.get("interaction") or to.get("operator")
                at = self.past.jump(name, tuples=to.get("tuples"), epoch=to.get("epoch"))
            if at is None:
                raise TimeTravelError("No moment at this address: what it names never happened in this run.")
            for how, operator in address.steps:
                at = _stepped(at, how, operator)
            return self._keep(at, address)

    def arrive(self, at: Moment, operator: str | None, otherwise: Address | None = None) -> dict[str, Any]:
        """Keep a moment that a search returned. Its address: a number of tuples of an operator, if that leads to it."""
        with self.lock:
            address = otherwise or Address({"epoch": at.epoch})
            counted = at.counters.get(operator or "")
            if operator is not None and counted is not None:
                number = sum(counted.taken)
                with contextlib.suppress(TimeTravelError):  # in an epoch that failed no tuples are counted
                    again = self.past.jump(operator, tuples=number)
                    if again.epoch == at.epoch and again.counters == at.counters:
                        address = Address({"operator": operator, "tuples": number})
            return self._keep(at, address)

    def step(self, id: str, how: StepKind, operator: str | None) -> dict[str, Any]:
        """Step from a moment; `over` and `into` need an operator."""
        with self.lock:
            at, address = self._moment(id), self._moments[id][1]
            return self._keep(_stepped(at, how, operator), address.stepped(how, operator))

    def first(self, operator: str, predicate: str) -> dict[str, Any] | None:
        """The first moment where something holds, or None."""
        with self.lock:
            self.refresh()
            moment = self.past.first(operator, predicate)
            address = Address({"operator": operator, "predicate": predicate})
            return None if moment is None else self.arrive(moment, operator, address)

    def failure(self) -> dict[str, Any] | None:
        """The moment just before the tuple a run failed at, or None."""
        with self.lock:
            moment = self.past.failure()
            return None if moment is None else self._keep(moment, Address({"failure": True}))

    def last_change(self, id: str, operator: str, name: str, key: Any, keyed: bool) -> dict[str, Any] | None:
        """The moment after the last step that changed a value of an operator's state, or an entry of one."""
        with self.lock:
            at = self._moment(id)
            real = _key(at.state(operator).get(name), key) if keyed else None
            moment = at.last_change(operator, real, name)
            return None if moment is None else self.arrive(moment, operator)

    # --- looking --------------------------------------------------------------------------------------------------

    def moment(self, id: str) -> dict[str, Any]:
        """A moment that was visited before, as plain data."""
        with self.lock:
            return self._data(id)

    def state(
        self, id: str, operator: str, name: str | None, start: int, where: str | None
    ) -> dict[str, Any]:
        """An operator's state: maps by page, other values whole (cut where they are large)."""
        with self.lock:
            at = self._moment(id)
            values = at.state(operator)
            state: dict[str, Any] = {}
            for key, value in values.items():
                if isinstance(value, Mapping):
                    first, condition = (start, where) if key == name else (0, None)
                    entries = at.page(operator, key, start=first, count=_STATES, where=condition)
                    state[key] = map_data(value, first, entries)
                else:
                    state[key] = {"kind": "value", "value": plain(value)}
            return {"operator": operator, "state": state}

    def pending(self, id: str, operator: str, limit: int) -> list[dict[str, Any]]:
        """Tuples that wait at an operator."""
        with self.lock:
            tuples = self._moment(id).pending(operator, limit)
            return [{"from": t.operator, "row": row_data(t.row)} for t in tuples]

    def scope(self, id: str, of: str, operator: str, number: int) -> dict[str, Any]:
        """A tuple and all that was made from it: of those that wait at an operator, of the last step or its outputs."""
        with self.lock:
            at = self._moment(id)
            last = at.last
            tuples: Sequence[Tuple | None] = ()
            if of == "pending":
                tuples = at.pending(operator, number + 1)
            elif last is not None:
                tuples = [last.taken] if of == "taken" else last.given
            chosen = tuples[number] if number < len(tuples) else None
            if chosen is None:
                raise TimeTravelError(f"No {of} tuple with the number {number} at this moment.")
            scope = at.scope(chosen)
            givers = {t.operator for t in scope}
            takers = {op.name for op in self._graph.ops.values() if givers & set(op.inputs)}
            return {
                "operators": sorted(givers | takers),
                "from": sorted(givers),
                "tuples": [{"operator": t.operator, "row": row_data(t.row)} for t in scope[:200]],
            }

    def can_step(self, id: str, operator: str) -> dict[str, Any]:
        """Whether the operator's next tuple can be stepped over, and if not, why."""
        with self.lock:
            why_not = self._moment(id).why_not(operator)
            return {"operator": operator, "over": why_not is None, "why_not": why_not}

    def lines(self, id: str, operator: str | None) -> list[dict[str, Any]]:
        """The lines that the last step of a Python operator ran, with their locals."""
        with self.lock:
            return [
                {
                    "number": line.number,
                    "text": line.text,
                    "event": line.event,
                    "locals": row_data(line.locals),
                    "value": plain(line.value),
                }
                for line in islice(self._moment(id).lines(operator), 2000)
            ]

    def at(self, id: str) -> Moment:
        """The moment under an id. Raises NotInWorkspace."""
        with self.lock:
            return self._moment(id)

    def close(self) -> None:
        """Forget the moments, and free what replaying kept."""
        with self.lock:
            self._moments.clear()
            self.past.close()

    def refresh(self) -> None:
        """Read what was committed since, if the run had not ended. Moments that were visited stay."""
        if self.status not in ("completed", "failed", "stopped"):
            self.past = sv.open(self._path, spark=self._engine.session())
            self.status = self.past.status

    def address(self, id: str) -> Address:
        """The address of the moment under an id."""
        with self.lock:
            self._moment(id)
            return self._moments[id][1]

    def _keep(self, moment: Moment, address: Address) -> dict[str, Any]:
        """Keep a moment under a new id; returns it as plain data."""
        self._count += 1
        id = f"m{self._count}"
        self._moments[id] = (moment, address)
        while len(self._moments) > _MOMENTS:
            self._moments.popitem(last=False)
        return self._data(id)

    def _data(self, id: str) -> dict[str, Any]:
        data = moment_data(id, self._moment(id), self.operators)
        return {**data, "address": self._moments[id][1].data()}

    def _moment(self, id: str) -> Moment:
        if id not in self._moments:
            raise NotInWorkspace(
                f"No moment '{id}' of this recording.", hint="It was forgotten: jump there again."
            )
        self._moments.move_to_end(id)
        return self._moments[id][0]


class Journeys:
    """The journeys that are open, the last used last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: OrderedDict[Path, Journey] = OrderedDict()
        self._lock = threading.Lock()

    def enter(self, path: Path) -> Journey:
        """The journey of a recording, opened if need be; the least recently used one may be closed for it."""
        self._engine.session()  # may take seconds: not while the lock is held
        with self._lock:
            journey = self._open.pop(path, None) or Journey(path, self._engine)
            self._open[path] = journey
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)[1].close()
            return journey

    def close(self) -> None:
        """Close all journeys."""
        with self._lock:
            for journey in self._open.values():
                journey.close()
            self._open.clear()
