"""Other code inside an epoch: an operator goes over to it at its next tuple, and the tuple is written down.

An operator goes over between two of its own tuples, never inside one: what a tuple began with ends it. In a chain, the
operators behind go over first when one in front is still at work on its tuple. Where it happened is kept in the folder
of the attempt and counts with it, so that whoever computes the epoch again uses the right code for every tuple: for an
operator with state, how many tuples of its key partition came before; for a stateless one, whose partitions are
nobody's, the positions of the tuples that the new code got.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from samovar.control.agent import TaskAbandoned
from samovar.errors import RunError, SamovarError
from samovar.files import write_file
from samovar.graph.operator import Operator
from samovar.graph.state import StateMap
from samovar.record.plain_values import read_files
from samovar.record.state_files import StateCapture, dumps, restore
from samovar.record.store import slug_unique
from samovar.runtime.exchange.plain_states import attributes

__all__ = [
    "Transfer",
    "Turn",
    "Turned",
    "Turns",
    "brought",
    "carried",
    "hand_over",
    "keep_code",
    "keep_turned",
    "read_turned",
    "read_turns",
]

FOLDER = "switches"
Place = tuple[int, ...]
Transfer = Callable[[dict[str, Any]], Mapping[str, Any]]
"""From the old operator's state to values to set on the new one."""


@dataclass(frozen=True)
class Turn:
    """Other code for an operator, from some tuple on."""

    operator: str
    version: int
    body: bytes
    transfer: bytes = b""
    bucket: int = 0
    tuples: int = 0
    """How many tuples the operator takes before, in this key partition and epoch."""
    places: frozenset[Place] | None = None
    """Of a stateless operator: the tuples the code is for."""


@dataclass(frozen=True)
class Turned:
    """Where an operator went over to other code: what an epoch keeps of a `Turn`."""

    operator: str
    bucket: int
    version: int
    tuples: int
    places: tuple[Place, ...] | None = None


@dataclass
class Turns:
    """The turns of one chain: those ahead in the bucket at hand, and those made."""

    names: Sequence[str]
    stateful: bool
    recorded: tuple[Turn, ...] = ()
    """In a replay: all turns of the epoch."""
    ahead: dict[int, list[Turn]] = field(default_factory=dict)
    made: list[tuple[int, Turn]] = field(default_factory=list)
    """By stage, in this bucket; `tuples` says where it was."""
    _told: list[tuple[int, Turn]] = field(default_factory=list)
    _places: dict[tuple[int, int], list[Place]] = field(default_factory=dict)
    _open: dict[int, list[Place]] = field(default_factory=dict)
    _others: dict[tuple[int, int], Operator] = field(default_factory=dict)

    def tell(self, stage: int, turn: Turn) -> None:
        """The operator is to go over at its next tuple, here and in the buckets that follow."""
        self._told.append((stage, turn))
        self.ahead.setdefault(stage, []).append(turn)

    def enter(self, bucket: int) -> None:
        """Another bucket begins, with the code the epoch came with."""
        self.ahead, self.made = {}, []
        self._places, self._open = {}, {}
        mine = [(self.names.index(t.operator), t) for t in self.recorded if t.bucket == bucket]
        for stage, turn in (*(mine if self.stateful else ()), *self._told):
            self.ahead.setdefault(stage, []).append(turn)

    def due(self, stage: int, taken: int) -> Turn | None:
        """The next turn of an operator that has taken so many tuples; None: there is none yet."""
        ahead = self.ahead.get(stage)
        if not ahead or ahead[0].tuples > taken:
            return None
        turn = ahead.pop(0)
        self.made.append((stage, replace(turn, tuples=taken)))
        self._open[stage] = self._places.setdefault((stage, turn.version), [])
        return turn

    def next_at(self, stage: int) -> int | None:
        """How many tuples an operator takes before its next turn."""
        ahead = self.ahead.get(stage)
        return ahead[0].tuples if ahead else None

    def note(self, stage: int, place: Place) -> None:
        """A tuple of a stateless operator is about to be processed with the code it has now."""
        places = self._open.get(stage)
        if places is not None:
            places.append(place)

    def other(self, stage: int, place: Place, instance: Operator, code: bytes) -> Operator:
        """In a replay: the stateless operator that processed a tuple; `instance` is what the epoch began with."""
        name, chosen = self.names[stage], instance
        for turn in self.recorded:
            if turn.operator == name:
                key = (stage, turn.version)
                if key not in self._others:
                    self._others[key] = hand_over(name, instance, code, turn.body, turn.transfer)
                instance, code = self._others[key], turn.body
                if turn.places is not None and place in turn.places:
                    chosen = instance
        return chosen

    def version(self, stage: int, place: Place | None) -> int:
        """The version of the code a tuple was processed with; 0: what the epoch began with."""
        if self.stateful:
            return max((t.version for s, t in self.made if s == stage), default=0)
        own = [t for t in self.recorded if t.operator == self.names[stage]]
        return max((t.version for t in own if t.places is not None and place in t.places), default=0)

    def forget(self, stage: int, code: bytes, tuples: int) -> None:
        """A tuple is undone: turns made behind it are ahead again. `code` is what the operator has now."""
        own = [t for s, t in self.made if s == stage]
        while own and own[-1].body != code and own[-1].tuples >= tuples:
            turn = own.pop()
            self.made.remove((stage, turn))
            self.ahead.setdefault(stage, []).insert(0, replace(turn, tuples=0))

    def facts(self, bucket: int) -> list[Turned]:
        """What is kept of the turns made in this bucket."""
        made = []
        for stage, turn in self.made:
            places = None if self.stateful else tuple(self._places.get((stage, turn.version), ()))
            made.append(Turned(turn.operator, bucket, turn.version, turn.tuples, places))
        return made


def hand_over(name: str, old: Operator, code: bytes, body: bytes, transfer: bytes) -> Operator:
    """The new operator with the state of the old one, which was made from `code`."""
    new: Operator = pickle.loads(body)
    try:
        if transfer:
            for attribute, value in dict(pickle.loads(transfer)(attributes(old))).items():
                setattr(new, attribute, value)
        else:
            carried(name, old, pickle.loads(code), new)
        StateCapture(name, new).whole()
    except SamovarError:
        raise
    except Exception as error:
        raise RunError(
            f"The state of '{name}' could not be handed to the new operator: {type(error).__name__}: {error}.",
            operator=name,
            hint="Give transfer=: a function from the old state (a mapping) to values to set on the new operator.",
        ) from None
    return new


def carried(name: str, old: Operator, fresh: Operator, new: Operator) -> None:
    """Set on the new operator what the old one had changed since it was made; the rest is as the new one made it."""
    for attribute, value in vars(old).items():
        if attribute.startswith("_sv_"):
            continue
        begun = vars(fresh).get(attribute)
        if isinstance(value, StateMap) or attribute not in vars(fresh) or dumps(begun) != dumps(value):
            setattr(new, attribute, value)


def brought(code: bytes, turns: Sequence[Turn], version: int, changes: Sequence[dict[str, Any]]) -> Operator:
    """An operator in the state that changes lead to, some of them from before it went over to the code of a version."""
    last = max((i for i, change in enumerate(changes) if change.get("whole")), default=0)
    reached = changes[last].get("whole", 0) if changes else 0
    code = next((t.body for t in reversed(turns) if t.version == reached), code)
    made: Operator = pickle.loads(code)
    restore(made, changes[last:])
    for turn in turns:
        if reached < turn.version <= version:
            made = hand_over(turn.operator, made, code, turn.body, turn.transfer)
            code = turn.body
    return made


# --- on disk --------------------------------------------------------------------------------------------------------


def keep_turned(attempt: Path, name: str, made: Sequence[Turned], state: Path | None) -> None:
    """Keep where operators went over in one bucket. Raises TaskAbandoned when the bucket was processed before.

    `state`: the file its state goes to, if there is one. A task that runs twice may go over elsewhere the second time.
    """
    file = attempt / FOLDER / f"{name}.msgpack"
    if file.exists() or (made and state is not None and state.exists()):
        raise TaskAbandoned("Rows were processed twice while their operator went over to other code.")
    if made:
        write_file(file, msgspec.msgpack.encode(made))


def read_turned(attempt: Path) -> list[Turned]:
    """Where operators went over to other code in an attempt. Plain data: looking at it runs no code."""
    return list(read_files(attempt / FOLDER, Turned))


def keep_code(attempt: Path, operator: str, version: int, body: bytes, transfer: bytes) -> None:
    """Keep the code of a turn beside where it happened."""
    write_file(
        attempt / FOLDER / f"{slug_unique(operator)}.{version}.code", msgspec.msgpack.encode((body, transfer))
    )


def read_turns(attempt: Path, operators: Iterable[str]) -> tuple[Turn, ...]:
    """The turns of some operators in an epoch, with their code, version after version."""
    wanted = set(operators)
    found: dict[tuple[str, int, int], Turn] = {}
    for turned in read_turned(attempt) if (attempt / FOLDER).is_dir() else ():
        if turned.operator not in wanted:
            continue
        key = (turned.operator, turned.bucket, turned.version)
        places = frozenset(turned.places or ())
        if key in found:  # a stateless operator in several partitions
            found[key] = replace(found[key], places=(found[key].places or frozenset()) | places)
            continue
        file = attempt / FOLDER / f"{slug_unique(turned.operator)}.{turned.version}.code"
        body, transfer = msgspec.msgpack.decode(file.read_bytes(), type=tuple[bytes, bytes])
        kept = None if turned.places is None else places
        found[key] = Turn(turned.operator, turned.version, body, transfer, turned.bucket, turned.tuples, kept)
    return tuple(found[key] for key in sorted(found))
