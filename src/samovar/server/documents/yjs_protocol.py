"""The Yjs wire protocol, as y-websocket speaks it: synchronisation and awareness. Pure: bytes in, messages out.

    message   = 0 sync | 1 awareness | 3 query-awareness
    sync      = 0 state-vector | 1 update (the answer to it) | 2 update (news)
    awareness = bytes of: count, then for each client: id, clock, JSON text ("null": it has left)

Numbers are variable-length unsigned integers; bytes and texts have their length in front. Messages are written by
pycrdt and read here: pycrdt's decoder accepts bytes that are cut off and numbers of any length. `ProtocolError` is the
only exception that reading raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal

from pycrdt import YMessageType, YSyncMessageType, create_awareness_message, write_message, write_var_uint

__all__ = ["ProtocolError", "State", "answer_message", "awareness_message", "parse", "read_states"]

_CLIENTS = 64
"""Clients in one awareness message: a browser sends its own, a server all who are present."""
_STATE = 16_384
"""Bytes of one client's awareness state: a name, a colour, a selection and a cursor take some hundreds."""

State = tuple[int, int, str]
"""A client, its clock, its state as JSON text."""


class ProtocolError(Exception):
    """Bytes that are not a message of the protocol."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise ProtocolError("a number is cut off or too long")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def chunk(self) -> bytes:
        length = self.number()
        if self.at + length > len(self.data):
            raise ProtocolError("bytes are cut off")
        self.at += length
        return self.data[self.at - length : self.at]


def parse(data: bytes) -> tuple[Literal["vector", "update", "awareness", "query"], bytes]:
    """The kind of a message and its payload: a state vector, an update, awareness states (see `read_states`)."""
    reader = _Reader(data)
    match reader.number():
        case 0:
            step = reader.number()
            if step > 2:
                raise ProtocolError(f"a synchronisation step {step}")
            return ("update" if step else "vector"), reader.chunk()
        case 1:
            return "awareness", reader.chunk()
        case 3:
            return "query", b""
        case kind:
            raise ProtocolError(f"a message of kind {kind}")


def read_states(data: bytes) -> list[State]:
    """The clients in the payload of an awareness message."""
    reader = _Reader(data)
    count = reader.number()
    if count > _CLIENTS:
        raise ProtocolError(f"{count} clients in one message")
    states: list[State] = []
    for _ in range(count):
        client, clock, raw = reader.number(), reader.number(), reader.chunk()
        if len(raw) > _STATE:
            raise ProtocolError(f"a client's state of {len(raw)} bytes")
        try:
            text = raw.decode("utf-8")
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ProtocolError("a client's state that is not JSON") from error
        states.append((client, clock, text))
    return states


def answer_message(update: bytes) -> bytes:
    """The update that answers a state vector."""
    return bytes([YMessageType.SYNC, YSyncMessageType.SYNC_STEP2]) + write_message(update)


def awareness_message(states: Iterable[State]) -> bytes:
    """Clients that are present, or have left (state "null"). (pycrdt's Encoder counts characters, not bytes.)"""
    parts = [
        write_var_uint(client) + write_var_uint(clock) + write_message(text.encode())
        for client, clock, text in states
    ]
    return create_awareness_message(write_var_uint(len(parts)) + b"".join(parts))
