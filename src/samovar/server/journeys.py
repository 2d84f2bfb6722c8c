"""Journeys: recordings that somebody travels in, and the moments they went to.

Moments are named by short ids, so that a browser can hold them. A journey keeps the last few hundred; a moment that is
forgotten can be gone to again. Journeys nobody used for a while give back what they hold. Each journey has a lock:
travelling shares traces, and those are made one at a time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import samovar as sv
from samovar.errors import NotInWorkspace, TimeTravelError
from samovar.replay.moment import Moment
from samovar.replay.past import Past
from samovar.server.engine import Engine
from samovar.server.plain import moment_data, plain, row_data

__all__ = ["STEPS", "Journey", "Journeys"]

STEPS = ("over", "into", "out", "back")
_MOMENTS = 300
_OPEN = 6
_STATES = 50
"""Entries of a map of the state on one page."""


class Journey:
    """A recording that is travelled in."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self._path = path
        self._engine = engine
        self.past: Past = sv.open(path, spark=engine.session())
        self.lock = threading.RLock()
        self.status = self.past.status
        self.operators = list(self.past.workflow.graph().ops)
        self._moments: OrderedDict[str, Moment] = OrderedDict()
        self._count = 0

    # --- going ----------------------------------------------------------------------------------------------------

    def jump(
        self,
        *,
        interaction: str | None = None,
        operator: str | None = None,
        tuples: int | None = None,
        epoch: int | None = None,
    ) -> dict[str, Any]:
        """Go to an interaction, after some tuples of an operator, an epoch's start, or (nothing given) the end."""
        with self.lock:
            self._refresh()
            return self._data(self.past.jump(interaction or operator, tuples=tuples, epoch=epoch))

    def step(self, id: str, how: str, operator: str | None) -> dict[str, Any]:
        """Step from a moment; `over` and `into` need an operator."""
        with self.lock:
            at = self._moment(id)
            if how in ("over", "into") and not operator:
                raise TimeTravelError(
                    f"Expected an operator to step {how}, got none.", hint="Choose an operator on the canvas."
                )
            if how == "over":
                made = at.step_over(str(operator))
            elif how == "into":
                made = at.step_into(str(operator))
            elif how == "out":
                made = at.step_out()
            elif how == "back":
                made = at.step_back()
            else:
                raise TimeTravelError(f"Expected one of {', '.join(STEPS)}, got '{how}'.")
            return self._data(made)

    def first(self, operator: str, predicate: str) -> dict[str, Any] | None:
        """The first moment where something holds, or None."""
        with self.lock:
            self._refresh()
            found = self.past.first(operator, predicate)
            return None if found is None else self._data(found)

    def failure(self) -> dict[str, Any] | None:
        """The moment just before the tuple a run failed at, or None."""
        with self.lock:
            found = self.past.failure()
            return None if found is None else self._data(found)

    # --- looking --------------------------------------------------------------------------------------------------

    def moment(self, id: str) -> dict[str, Any]:
        """A moment that was gone to."""
        with self.lock:
            return moment_data(id, self._moment(id), self.operators)

    def state(
        self, id: str, operator: str, name: str | None, start: int, where: str | None
    ) -> dict[str, Any]:
        """An operator's state: maps by page, other values whole (cut where they are large)."""
        with self.lock:
            at = self._moment(id)
            values = at.state(operator)
            made: dict[str, Any] = {}
            for key, value in values.items():
                if isinstance(value, Mapping):
                    paged = name == key
                    entries = at.page(
                        operator,
                        key,
                        start=start if paged else 0,
                        count=_STATES,
                        where=where if paged else None,
                    )
                    made[key] = {
                        "kind": "map",
                        "size": len(value),
                        "start": start if paged else 0,
                        "entries": [[plain(k), plain(v)] for k, v in entries],
                    }
                else:
                    made[key] = {"kind": "value", "value": plain(value)}
            return {"operator": operator, "state": made}

    def pending(self, id: str, operator: str, limit: int) -> list[dict[str, Any]]:
        """Tuples that wait at an operator."""
        with self.lock:
            found = self._moment(id).pending(operator, limit)
            return [{"from": t.operator, "row": row_data(t.row)} for t in found]

    def can_step(self, id: str, operator: str) -> dict[str, Any]:
        """Whether the operator's next tuple can be stepped over, and if not, why."""
        with self.lock:
            why_not = self._moment(id).why_not(operator)
            return {"operator": operator, "over": why_not is None, "why_not": why_not}

    def lines(self, id: str, operator: str | None) -> list[dict[str, Any]]:
        """The lines that the last step of a Python operator ran, with their locals."""
        with self.lock:
            found = self._moment(id).lines(operator)
            return [
                {
                    "number": line.number,
                    "text": line.text,
                    "event": line.event,
                    "locals": {k: plain(v) for k, v in line.locals.items()},
                    "value": plain(line.value),
                }
                for line in islice(found, 2000)
            ]

    def at(self, id: str) -> Moment:
        """The moment itself."""
        with self.lock:
            return self._moment(id)

    def close(self) -> None:
        """Give back what travelling has kept."""
        with self.lock:
            self._moments.clear()
            self.past.close()

    def _refresh(self) -> None:
        """See what was committed since, if the run was going on. Moments that were gone to stay."""
        if self.status not in ("completed", "failed", "stopped"):
            self.past = sv.open(self._path, spark=self._engine.session())
            self.status = self.past.status

    def _data(self, moment: Moment) -> dict[str, Any]:
        self._count += 1
        id = f"m{self._count}"
        made = moment_data(id, moment, self.operators)
        self._moments[id] = moment
        while len(self._moments) > _MOMENTS:
            self._moments.popitem(last=False)
        return made

    def _moment(self, id: str) -> Moment:
        found = self._moments.get(id)
        if found is None:
            raise NotInWorkspace(
                f"Expected a moment of this recording, got '{id}'.",
                hint="It was forgotten: jump there again.",
            )
        self._moments.move_to_end(id)
        return found


class Journeys:
    """The journeys that are open, the last used last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: OrderedDict[Path, Journey] = OrderedDict()
        self._guard = threading.Lock()

    def enter(self, path: Path) -> Journey:
        """The journey of a recording."""
        session = self._engine.session()  # may take seconds: not under the lock
        assert session is not None
        with self._guard:
            made = self._open.pop(path, None) or Journey(path, self._engine)
            self._open[path] = made
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)[1].close()
            return made

    def close(self) -> None:
        """Close all of them."""
        with self._guard:
            for journey in self._open.values():
                journey.close()
            self._open.clear()
