"""The Yjs wire protocol, as y-websocket speaks it: synchronisation and awareness. Pure: bytes in, messages out.

    message   = 0 sync | 1 awareness | 3 query-awareness
    sync      = 0 state-vector | 1 update (the answer to it) | 2 update (news)
    awareness = bytes of: count, then for each client: id, clock, JSON text ("null": it has left)

Numbers are variable-length unsigned integers, bytes and texts carry their length in front. `ProtocolError` is raised
for everything that does not read so; nothing else is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "Awareness",
    "ProtocolError",
    "Query",
    "StateVector",
    "Update",
    "awareness_message",
    "parse",
    "state_vector_message",
    "update_message",
]

_CLIENTS = 64
"""Clients one awareness message may speak of."""
_STATE = 16_384
"""Bytes of one client's awareness state."""


class ProtocolError(Exception):
    """Bytes that are no message of the protocol."""


@dataclass(frozen=True)
class StateVector:
    """What the other side has: it asks for the rest."""

    vector: bytes


@dataclass(frozen=True)
class Update:
    """Changes of the document."""

    update: bytes


@dataclass(frozen=True)
class Awareness:
    """Who is there: (client, clock, state as JSON text) each."""

    states: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True)
class Query:
    """Asks who is there."""


Message = StateVector | Update | Awareness | Query


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        made = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise ProtocolError("a number is cut off or too long")
            byte = self.data[self.at]
            self.at += 1
            made |= (byte & 0x7F) << shift
            if byte < 0x80:
                return made
            shift += 7

    def chunk(self) -> bytes:
        length = self.number()
        if self.at + length > len(self.data):
            raise ProtocolError("bytes are cut off")
        self.at += length
        return self.data[self.at - length : self.at]


def parse(data: bytes) -> Message:
    """The message that these bytes are."""
    reader = _Reader(data)
    kind = reader.number()
    if kind == 0:
        step = reader.number()
        if step == 0:
            return StateVector(reader.chunk())
        if step in (1, 2):
            return Update(reader.chunk())
        raise ProtocolError(f"a synchronisation step {step}")
    if kind == 1:
        return _awareness(reader.chunk())
    if kind == 3:
        return Query()
    raise ProtocolError(f"a message of kind {kind}")


def _awareness(data: bytes) -> Awareness:
    reader = _Reader(data)
    count = reader.number()
    if count > _CLIENTS:
        raise ProtocolError(f"{count} clients in one message")
    states: list[tuple[int, int, str]] = []
    for _ in range(count):
        client, clock, raw = reader.number(), reader.number(), reader.chunk()
        if len(raw) > _STATE:
            raise ProtocolError(f"a client's state of {len(raw)} bytes")
        try:
            text = raw.decode("utf-8")
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ProtocolError("a client's state that is no JSON") from error
        states.append((client, clock, text))
    return Awareness(tuple(states))


def _number(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _chunk(data: bytes) -> bytes:
    return _number(len(data)) + data


def state_vector_message(vector: bytes) -> bytes:
    """Asks the other side for what this one lacks."""
    return b"\x00\x00" + _chunk(vector)


def update_message(update: bytes, *, answer: bool = False) -> bytes:
    """Changes of the document; `answer`: what was asked for with a state vector."""
    return (b"\x00\x01" if answer else b"\x00\x02") + _chunk(update)


def awareness_message(states: Iterable[tuple[int, int, str]]) -> bytes:
    """Who is there, or has left (state "null")."""
    listed = list(states)
    body = _number(len(listed)) + b"".join(
        _number(client) + _number(clock) + _chunk(text.encode()) for client, clock, text in listed
    )
    return b"\x01" + _chunk(body)
