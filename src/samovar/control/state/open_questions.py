"""Questions to workers that are not answered by all yet. Pure data for `machine.py`."""

from __future__ import annotations

from dataclasses import dataclass, field

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m

__all__ = ["OpenQuestions"]

_Given = m.StateGiven | m.InFlightGiven


@dataclass
class _Ask:
    message: m.StateWanted | m.InFlightWanted
    waiting: set[str]
    given: list[tuple[str, _Given]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def answer(self, state: str) -> i.CommandAnswer:
        note = "" if self.given or self.missing else f"no worker runs '{self.message.operator}' now"
        missing = (*self.missing, *sorted(self.waiting))
        return i.CommandAnswer(self.message.request, state, note, tuple(self.given), missing)


class OpenQuestions:
    """Open questions by the name of their command."""

    def __init__(self) -> None:
        self._asks: dict[str, _Ask] = {}

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands that wait for answers."""
        return tuple(self._asks)

    def ask(
        self, event: e.InspectRequested | e.InFlightRequested, workers: list[str]
    ) -> list[tuple[str, m.StateWanted | m.InFlightWanted]]:
        """Ask some workers; returns the message for each of them."""
        message: m.StateWanted | m.InFlightWanted
        if isinstance(event, e.InspectRequested):
            message = m.StateWanted(request=event.command, operator=event.operator)
        else:
            message = m.InFlightWanted(request=event.command, operator=event.operator, limit=event.limit)
        self._asks[event.command] = _Ask(message, set(workers))
        return [(worker, message) for worker in workers]

    def again(self, worker: str) -> list[m.StateWanted | m.InFlightWanted]:
        """The questions that a worker which is back has not answered."""
        return [ask.message for ask in self._asks.values() if worker in ask.waiting]

    def given(self, worker: str, given: _Given) -> None:
        """A worker's answer; a late or second one is dropped."""
        ask = self._asks.get(given.request)
        if ask is not None and worker in ask.waiting:
            ask.waiting.discard(worker)
            ask.given.append((worker, given))

    def without(self, worker: str) -> None:
        """A worker will not answer."""
        for ask in self._asks.values():
            if worker in ask.waiting:
                ask.waiting.discard(worker)
                ask.missing.append(worker)

    def give_up(self, command: str, state: str) -> list[i.CommandAnswer]:
        """Answer with what workers have sent so far."""
        ask = self._asks.pop(command, None)
        return [] if ask is None else [ask.answer(state)]

    def settled(self, state: str) -> list[i.CommandAnswer]:
        """Answers to the questions for which no worker is waited for any more."""
        done = [command for command, ask in self._asks.items() if not ask.waiting]
        return [self._asks.pop(command).answer(state) for command in done]
