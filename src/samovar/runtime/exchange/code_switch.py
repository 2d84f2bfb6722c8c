"""A switch of code inside an epoch: an operator goes on with other code from its next tuple, and the tuple is recorded.

An operator switches between two tuples, never inside one: the code that began a tuple ends it. While an operator is
still at work on its tuple, the operators behind it in the chain switch first. The place of a switch is written into the
attempt's folder and counts with the attempt, so that a replay of the epoch uses the right code for every tuple. For an
operator with state the place is the number of tuples of its key partition before the switch; for a stateless operator
the positions of the tuples that the new code got, since its partitions are not stable between attempts.
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
from samovar.positions import Position
from samovar.record.plain_values import read_files
from samovar.record.state_files import StateCapture, dumps, restore
from samovar.record.store import slug_unique
from samovar.runtime.exchange.plain_states import attributes

__all__ = [
    "ChainSwitches",
    "CodeSwitch",
    "SwitchRecord",
    "Transfer",
    "copy_changed",
    "hand_over",
    "read_switch_records",
    "read_switches",
    "restored_version",
    "write_switch_code",
    "write_switch_records",
]

FOLDER = "switches"
Transfer = Callable[[dict[str, Any]], Mapping[str, Any]]
"""From the old operator's state to values to set on the new one."""


@dataclass(frozen=True)
class CodeSwitch:
    """A switch of an operator to other code, from some tuple on."""

    operator: str
    version: int
    body: bytes
    transfer: bytes = b""
    bucket: int = 0
    tuples: int = 0
    """How many tuples of this key partition and epoch the old code takes."""
    places: frozenset[Position] | None = None
    """For a stateless operator: the tuples that the new code takes."""


@dataclass(frozen=True)
class SwitchRecord:
    """The place of an operator's switch to other code: what an epoch keeps of a `CodeSwitch`."""

    operator: str
    bucket: int
    version: int
    tuples: int
    places: tuple[Position, ...] | None = None


@dataclass
class ChainSwitches:
    """The switches of one chain: those ahead in the present bucket, and those done."""

    names: Sequence[str]
    stateful: bool
    recorded: tuple[CodeSwitch, ...] = ()
    """In a replay: all switches of the epoch."""
    ahead: dict[int, list[CodeSwitch]] = field(default_factory=dict)
    done: list[tuple[int, CodeSwitch]] = field(default_factory=list)
    """Stage and switch, in this bucket; `tuples` is where it happened."""
    _ordered: list[tuple[int, CodeSwitch]] = field(default_factory=list)
    """Switches ordered in this task. Every bucket begins with the epoch's code, so later buckets switch as well."""
    _places: dict[tuple[int, int], list[Position]] = field(default_factory=dict)
    _open: dict[int, list[Position]] = field(default_factory=dict)
    _others: dict[tuple[int, int], Operator] = field(default_factory=dict)

    def order(self, stage: int, switch: CodeSwitch) -> None:
        """Have an operator switch at its next tuple, here and in the buckets that follow."""
        self._ordered.append((stage, switch))
        self.ahead.setdefault(stage, []).append(switch)

    def enter(self, bucket: int) -> None:
        """Begin another bucket, with the code the epoch began with."""
        self.ahead, self.done = {}, []
        self._places, self._open = {}, {}
        recorded = [s for s in self.recorded if self.stateful and s.bucket == bucket]
        for stage, switch in (*((self.names.index(s.operator), s) for s in recorded), *self._ordered):
            self.ahead.setdefault(stage, []).append(switch)

    def due(self, stage: int, taken: int) -> CodeSwitch | None:
        """The next switch of an operator that has taken this many tuples; None: it is not due yet."""
        ahead = self.ahead.get(stage)
        if not ahead or ahead[0].tuples > taken:
            return None
        switch = ahead.pop(0)
        self.done.append((stage, replace(switch, tuples=taken)))
        self._open[stage] = self._places.setdefault((stage, switch.version), [])
        return switch

    def next_at(self, stage: int) -> int | None:
        """How many tuples an operator takes before its next switch; None: there is none."""
        ahead = self.ahead.get(stage)
        return ahead[0].tuples if ahead else None

    def note(self, stage: int, place: Position) -> None:
        """Note a tuple that a stateless operator is about to process with the code it has now."""
        places = self._open.get(stage)
        if places is not None:
            places.append(place)

    def other(self, stage: int, place: Position, instance: Operator, code: bytes) -> Operator:
        """In a replay: the stateless operator that processed a tuple; `instance` is the one the epoch began with."""
        name, chosen = self.names[stage], instance
        for switch in self.recorded:
            if switch.operator == name:
                key = (stage, switch.version)
                if key not in self._others:
                    self._others[key] = hand_over(name, instance, code, switch.body, switch.transfer)
                instance, code = self._others[key], switch.body
                if switch.places is not None and place in switch.places:
                    chosen = instance
        return chosen

    def version(self, stage: int, place: Position | None) -> int:
        """The version of the code a tuple was processed with; 0: the code the epoch began with."""
        if self.stateful:
            return max((s.version for at, s in self.done if at == stage), default=0)
        recorded = [s for s in self.recorded if s.operator == self.names[stage]]
        return max((s.version for s in recorded if s.places is not None and place in s.places), default=0)

    def forget(self, stage: int, code: bytes, tuples: int) -> None:
        """Undo the switches behind a tuple that is undone: they are ahead again. `code`: the operator's code now."""
        done = [s for at, s in self.done if at == stage]
        while done and done[-1].body != code and done[-1].tuples >= tuples:
            switch = done.pop()
            self.done.remove((stage, switch))
            self.ahead.setdefault(stage, []).insert(0, replace(switch, tuples=0))

    def records(self, bucket: int) -> list[SwitchRecord]:
        """What an epoch keeps of the switches done in this bucket."""
        records = []
        for stage, switch in self.done:
            places = None if self.stateful else tuple(self._places.get((stage, switch.version), ()))
            records.append(SwitchRecord(switch.operator, bucket, switch.version, switch.tuples, places))
        return records


def hand_over(name: str, old: Operator, code: bytes, body: bytes, transfer: bytes) -> Operator:
    """The new operator with the state of the old one, which was loaded from `code`."""
    new: Operator = pickle.loads(body)
    try:
        if transfer:
            for attribute, value in dict(pickle.loads(transfer)(attributes(old))).items():
                setattr(new, attribute, value)
        else:
            copy_changed(name, old, pickle.loads(code), new)
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


def copy_changed(name: str, old: Operator, fresh: Operator, new: Operator) -> None:
    """Set on the new operator what the old one has changed since it was built; the rest stays as the new one has it."""
    for attribute, value in vars(old).items():
        if attribute.startswith("_sv_"):
            continue
        begun = vars(fresh).get(attribute)
        if isinstance(value, StateMap) or attribute not in vars(fresh) or dumps(begun) != dumps(value):
            setattr(new, attribute, value)


def restored_version(
    code: bytes, switches: Sequence[CodeSwitch], version: int, changes: Sequence[dict[str, Any]]
) -> Operator:
    """An operator with the code of a version, in the state after some changes.

    Changes may be from before the switch: the state is then handed over from version to version. A change that was
    taken right after a switch holds the whole state, and names the version under "whole".
    """
    last = max((i for i, change in enumerate(changes) if change.get("whole")), default=0)
    reached = changes[last].get("whole", 0) if changes else 0
    code = next((s.body for s in reversed(switches) if s.version == reached), code)
    operator: Operator = pickle.loads(code)
    restore(operator, changes[last:])
    for switch in switches:
        if reached < switch.version <= version:
            operator = hand_over(switch.operator, operator, code, switch.body, switch.transfer)
            code = switch.body
    return operator


# --- on disk --------------------------------------------------------------------------------------------------------


def write_switch_records(
    attempt: Path, name: str, records: Sequence[SwitchRecord], state: Path | None
) -> None:
    """Write the switches of one bucket. Raises TaskAbandoned when the bucket was processed before.

    `state`: the file of its state, if there is one. A task that runs twice may switch at another tuple the second time.
    """
    file = attempt / FOLDER / f"{name}.msgpack"
    if file.exists() or (records and state is not None and state.exists()):
        raise TaskAbandoned("Rows were processed twice while their operator switched to other code.")
    if records:
        write_file(file, msgspec.msgpack.encode(records))


def read_switch_records(attempt: Path) -> list[SwitchRecord]:
    """The switches of an attempt. Plain data: reading it runs no code."""
    return list(read_files(attempt / FOLDER, SwitchRecord))


def write_switch_code(attempt: Path, operator: str, version: int, body: bytes, transfer: bytes) -> None:
    """Write the code of a switch beside its place."""
    write_file(_code_file(attempt, operator, version), msgspec.msgpack.encode((body, transfer)))


def _code_file(attempt: Path, operator: str, version: int) -> Path:
    return attempt / FOLDER / f"{slug_unique(operator)}.{version}.code"


def read_switches(attempt: Path, operators: Iterable[str]) -> tuple[CodeSwitch, ...]:
    """The switches of some operators in an epoch, with their code, version after version."""
    wanted = set(operators)
    switches: dict[tuple[str, int, int], CodeSwitch] = {}
    for record in read_switch_records(attempt) if (attempt / FOLDER).is_dir() else ():
        if record.operator not in wanted:
            continue
        key = (record.operator, record.bucket, record.version)
        places = frozenset(record.places or ())
        if key in switches:  # a stateless operator in several partitions
            switches[key] = replace(switches[key], places=(switches[key].places or frozenset()) | places)
            continue
        code = _code_file(attempt, record.operator, record.version).read_bytes()
        body, transfer = msgspec.msgpack.decode(code, type=tuple[bytes, bytes])
        kept = None if record.places is None else places
        switches[key] = CodeSwitch(
            record.operator, record.version, body, transfer, record.bucket, record.tuples, kept
        )
    return tuple(switches[key] for key in sorted(switches))
