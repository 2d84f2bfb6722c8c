"""State of Python operators on disk: what an epoch changed, and now and then the whole.

A state file holds a header (counters, sizes; read alone by the driver) and a payload (pickled changes). Files are
written under a temporary name and renamed, so a reader sees a whole file or none; a task that runs twice writes the
same content twice. Opening a payload unpickles it: it runs code of the recording, as running the workflow does.
"""

from __future__ import annotations

import pickle
import struct
import sys
import zlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from samovar.errors import RecordingCorrupt, RecordingError, WorkflowError
from samovar.files import write_file
from samovar.graph.operator import Operator
from samovar.graph.state import ListState, MapState, StateList, StateMap, declared
from samovar.record.blocks import Patch, changed_blocks, joined, patched
from samovar.record.digests import DAMAGED, is_known, note_sound

__all__ = [
    "PYTHON",
    "Header",
    "StateCapture",
    "composed",
    "dumps",
    "is_mark",
    "mark_name",
    "mark_of",
    "read_header",
    "read_state",
    "restore",
    "state_problem",
    "write_state",
]

_MAGIC = b"SVS1"
"""The format and its version: a reader that does not know it stops before it unpickles anything."""
_LENGTHS = struct.Struct("<IQ")
"""Bytes of the header and of the payload, in front of both: the header can be read without the payload."""
_BY_VALUE = b"cloudpickle"
"""The module that every pickle with code by value names."""
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The version of Python that compiled code depends on."""


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the driver needs to know of a state file without unpickling it."""

    operator: str
    bucket: int
    epoch: int
    full: bool = False
    taken: tuple[int, ...] = ()
    given: int = 0
    entries: int = 0
    seconds: float = 0.0
    passed: int = 0
    """How many of the epoch's marks the tuples reached."""
    marks: tuple[int, ...] = ()
    """The marks at which the state was kept, counted from 1."""
    python: str = ""
    """The version of Python that pickled the payload, as 3.11: code in it runs in no other."""


class StateCapture:
    """Takes the state of one operator instance: whole, or as changes since the last time it was taken.

    Plain attributes are compared by their pickled form; declared maps and lists know their changes.
    """

    def __init__(self, name: str, instance: Operator) -> None:
        self.name = name
        self.instance = instance
        self._pickled: dict[str, bytes] = {}
        self._known: dict[str, bytes] = {}
        """Plain values as readers of all changes so far know them: patches lead from these to the present ones."""
        self._sizes: dict[str, int] = {}
        """How many keys each map had when its changes were last taken."""

    def changes(self) -> dict[str, Any]:
        """What changed since the last call (or `settle`); afterwards the present state is the new base."""
        kinds = declared(type(self.instance))
        maps: dict[str, Any] = {}
        lists: dict[str, Any] = {}
        values: dict[str, bytes | Patch] = {}
        present = self._attributes()
        for name, value in present.items():
            kind = kinds.get(name)
            if isinstance(kind, MapState) and isinstance(value, StateMap):
                if value.replaced:
                    maps[name] = (True, dict(dict.items(value)), ())
                elif value.changed or value.deleted:
                    maps[name] = (False, self._changed(name, value), tuple(value.deleted))
                value.settle()
                self._sizes[name] = len(value)
            elif isinstance(kind, ListState) and isinstance(value, StateList):
                if value.rewritten:
                    lists[name] = (None, list(list.__iter__(value)))
                elif len(value) > value.base:
                    lists[name] = (value.base, list.__getitem__(value, slice(value.base, None)))
                value.settle()
            else:
                pickled = self._pickle(name, value)
                if self._pickled.get(name) != pickled:
                    values[name] = changed_blocks(self._known.get(name), pickled)
                    self._pickled[name] = self._known[name] = pickled
        gone = tuple(n for n in self._pickled if n not in present)
        for name in gone:
            del self._pickled[name]
            self._known.pop(name, None)
        return {"maps": maps, "lists": lists, "values": values, "gone": gone}

    def _changed(self, name: str, value: StateMap[Any, Any]) -> dict[Any, Any]:
        """The changed items, new keys in the map's own order. Costs what changed, not what there is."""
        # an upper bound for the number of new keys, which stand at the end
        new = len(value) - self._sizes.get(name, 0) + len(value.deleted)
        tail = [k for k in islice(dict.__reversed__(value), max(0, new)) if k in value.changed]
        old = value.changed.difference(tail)
        return {k: dict.__getitem__(value, k) for k in (*old, *reversed(tail)) if k in value}

    def settle(self, known: dict[str, bytes] | None = None) -> None:
        """Take the present state as the base without writing it; `known` are plain values as the files have them."""
        self.changes()
        self._known = dict(known or {})

    @property
    def known(self) -> dict[str, bytes]:
        """Plain values as readers of all changes so far know them."""
        return dict(self._known)

    def whole(self) -> dict[str, Any]:
        """The whole state, in the form of changes from nothing."""
        kinds = declared(type(self.instance))
        state: dict[str, Any] = {"maps": {}, "lists": {}, "values": {}, "gone": ()}
        for name, value in self._attributes().items():
            kind = kinds.get(name)
            if isinstance(kind, MapState) and isinstance(value, StateMap):
                state["maps"][name] = (True, dict(dict.items(value)), ())
            elif isinstance(kind, ListState) and isinstance(value, StateList):
                state["lists"][name] = (None, list(list.__iter__(value)))
            else:
                state["values"][name] = self._pickle(name, value)
        return state

    def entries(self) -> int:
        """How many values the state holds: map keys, list items, and one for each other attribute."""
        values = self._attributes().values()
        return sum(len(value) if isinstance(value, StateMap | StateList) else 1 for value in values)

    def _attributes(self) -> dict[str, Any]:
        return {n: v for n, v in vars(self.instance).items() if not n.startswith("_sv_")}

    def _pickle(self, name: str, value: Any) -> bytes:
        try:
            return dumps(value)
        except Exception as error:
            raise _unpicklable(f"The state '{name}'", self.name, error) from None


def composed(first: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """The changes that do what two changes do one after the other."""
    maps = dict(first["maps"])
    for name, (replaced, changed, deleted) in then["maps"].items():
        before = maps.get(name)
        if replaced or before is None:
            maps[name] = (replaced, changed, deleted)
            continue
        kept = {k: v for k, v in before[1].items() if k not in deleted}
        gone = tuple(dict.fromkeys((*before[2], *deleted)))
        maps[name] = (before[0], kept | changed, gone)
    lists = dict(first["lists"])
    for name, (base, items) in then["lists"].items():
        if base is None or name not in lists:
            lists[name] = (base, items)
        else:
            lists[name] = (lists[name][0], [*lists[name][1], *items])
    values = {n: v for n, v in first["values"].items() if n not in then["gone"]}
    for name, value in then["values"].items():
        values[name] = joined(values[name], value) if name in values else value
    gone = tuple(n for n in dict.fromkeys((*first["gone"], *then["gone"])) if n not in values)
    return {"maps": maps, "lists": lists, "values": values, "gone": gone}


def dumps(value: Any) -> bytes:
    """Pickled; with the classes themselves where another process could not import them (a document's, a script's)."""
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:
        from pyspark import cloudpickle

        return bytes(cloudpickle.dumps(value))


def _unpicklable(what: str, operator: str, error: Exception) -> WorkflowError:
    return WorkflowError(
        f"{what} of operator '{operator}' cannot be pickled: {error}",
        operator=operator,
        hint="Open such things (connections, locks, files) in process(), or keep plain data in state.",
    )


def restore(
    instance: Operator, changes: Iterable[dict[str, Any]], pickled: dict[str, bytes] | None = None
) -> None:
    """Bring an instance to the state that a sequence of changes leads to.

    `pickled` holds the plain values it has now, as a capture knows them (none: it is fresh), and afterwards those it
    has then.
    """
    kinds = declared(type(instance))
    pickled = {} if pickled is None else pickled
    plain: set[str] = set()
    for change in changes:
        for name, (replaced, changed, deleted) in change["maps"].items():
            target = getattr(instance, name)
            if replaced:
                dict.clear(target)
            for key in deleted:  # before the changes: a key that went and came back stands at the end
                dict.pop(target, key, None)
            dict.update(target, changed)
        for name, (base, items) in change["lists"].items():
            if base is None:
                setattr(instance, name, items)
            else:
                target = getattr(instance, name)
                if len(target) != base:
                    raise RecordingCorrupt(
                        f"List '{name}' has {len(target)} items where its delta expects {base}."
                    )
                list.extend(target, items)
        for name, value in change["values"].items():
            pickled[name] = patched(pickled.get(name), value)
            plain.add(name)
        for name in change["gone"]:
            instance.__dict__.pop(name, None)
            pickled.pop(name, None)
    for name in plain & pickled.keys():
        instance.__dict__[name] = pickle.loads(pickled[name])
    for name, kind in kinds.items():
        if isinstance(kind, MapState | ListState):
            getattr(instance, name).settle()


def mark_name(bucket: int, number: int) -> str:
    """The name of the file a bucket's state is kept in at a mark (the first is 1)."""
    return f"{bucket:04d}.mark{number:04d}"


def mark_of(path: Path) -> tuple[int, int]:
    """The bucket and the number of a mark, from the name of its file."""
    return int(path.stem), int(path.suffix.removeprefix(".mark"))


def is_mark(path: Path) -> bool:
    """Whether a state file belongs to a mark."""
    return path.suffix.startswith(".mark")


def write_state(path: Path, header: Header, payload: dict[str, Any]) -> int:
    """Write a state file whole or not at all; returns its size."""
    try:
        body = dumps(payload)
    except Exception as error:
        raise _unpicklable("The state", header.operator, error) from None
    head = msgspec.msgpack.encode(msgspec.structs.replace(header, python=PYTHON))
    data = _MAGIC + _LENGTHS.pack(len(head), len(body)) + head + body
    data += struct.pack("<I", zlib.crc32(data))
    write_file(path, data)
    return len(data)


def read_header(path: Path, *, check: bool = True) -> Header:
    """The header alone: a few hundred bytes are read.

    `check`: before that the whole file is compared with its checksum, unless this process did so already.
    """
    if check and not (path.exists() and is_known(path)):
        return _parts(_checked(path))[0]
    with path.open("rb") as file:
        start = file.read(len(_MAGIC) + _LENGTHS.size)
        if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + _LENGTHS.size:
            raise RecordingCorrupt(f"{path} is not a state file.")
        head_length, _ = _LENGTHS.unpack(start[len(_MAGIC) :])
        return msgspec.msgpack.decode(file.read(head_length), type=Header)


def read_state(path: Path) -> tuple[Header, dict[str, Any]]:
    """Header and payload, checked against the checksum before anything is unpickled."""
    header, body = _parts(_checked(path))
    if header.python not in ("", PYTHON) and _BY_VALUE in body:
        raise RecordingError(
            f"State file {path} holds classes as Python {header.python} compiled them; this is Python {PYTHON}.",
            hint=f"Use Python {header.python} for whatever needs this state. Results and the log can be read by any.",
        )
    payload: dict[str, Any] = pickle.loads(body)
    return header, payload


def state_problem(path: Path, size: int | None = None) -> str | None:
    """What is wrong with a state file, in a sentence; None: nothing. `size`: its bytes, if they are known."""
    try:
        length = len(_checked(path))
    except RecordingCorrupt as error:
        return error.message
    return f"Expected {size} bytes in {path}, found {length}." if size not in (None, length) else None


def _checked(path: Path) -> bytes:
    try:
        status = path.stat()
        data = path.read_bytes()
    except FileNotFoundError:
        raise RecordingCorrupt(f"State file {path} is gone.", hint=DAMAGED) from None
    # 20 bytes: format, lengths, and a checksum at the end over all before it, with nothing in between
    if len(data) < 20 or struct.unpack("<I", data[-4:])[0] != zlib.crc32(data[:-4]):
        raise RecordingCorrupt(f"State file {path} does not match its checksum.", hint=DAMAGED)
    if not data.startswith(_MAGIC):
        raise RecordingCorrupt(f"{path} is not a state file.", hint=DAMAGED)
    note_sound(path, status, 0)
    return data


def _parts(data: bytes) -> tuple[Header, bytes]:
    start = len(_MAGIC) + _LENGTHS.size
    head_length, body_length = _LENGTHS.unpack(data[len(_MAGIC) : start])
    head = msgspec.msgpack.decode(data[start : start + head_length], type=Header)
    return head, data[start + head_length : start + head_length + body_length]
