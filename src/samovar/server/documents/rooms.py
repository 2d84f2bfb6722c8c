"""Rooms: one for each workflow that is open, where its shared document lives and people meet.

A room merges what its members send, sends it on to the others and appends it to the journal. Guarantees: an update is
in the journal before anybody else sees it; a message that cannot be read, or is too large, raises `Refused` and leaves
the document as it was; a room is opened from its journal exactly as it was left. Rooms belong to one thread, the
server's event loop; what they do takes microseconds to a few milliseconds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pycrdt import Doc, create_sync_message, create_update_message

from samovar.server.documents.document_form import Reading, read, shared_form, write
from samovar.server.documents.journal import LEAST, Journal
from samovar.server.documents.yjs_protocol import (
    ProtocolError,
    State,
    answer_message,
    awareness_message,
    parse,
    read_states,
)
from samovar.server.workspace import Workspace

__all__ = ["JOURNAL", "MESSAGE_BYTES", "Member", "Refused", "Room", "Rooms"]

JOURNAL = "updates.log"
MESSAGE_BYTES = 4 * 1024 * 1024
"""The largest message a member may send."""
DOCUMENT_BYTES = 64 * 1024 * 1024
"""The largest shared document: beyond it nothing is added."""
BUSY_BYTES = 2 * 1024 * 1024
"""Growth of the journal that is compacted also while people are there."""


class Refused(Exception):
    """What a member sent cannot be taken; the connection is closed with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(eq=False)
class Member:
    """One connection. `send` takes a message without waiting."""

    send: Callable[[bytes], None]
    clients: set[int] = field(default_factory=set)
    """Yjs clients that speak through this connection."""


class Room:
    """A shared document and those who are at it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.doc: Doc[Any] = Doc()
        shared_form(self.doc)
        self._journal = Journal(folder / JOURNAL)
        self._size = 0
        for update in self._journal.updates:
            self.doc.apply_update(update)
            self._size += len(update)
        self._journal.updates.clear()
        self._members: list[Member] = []
        self._states: dict[int, tuple[int, str]] = {}
        self._speaking: Member | None = None
        self._watch = self.doc.observe(self._changed)

    @property
    def members(self) -> int:
        """The number of connections."""
        return len(self._members)

    @property
    def people(self) -> list[Any]:
        """The awareness states of those who are there."""
        return [json.loads(text) for _, text in self._states.values() if text != "null"]

    # --- members --------------------------------------------------------------------------------------------------

    def join(self, member: Member) -> None:
        """Add a member: ask it for what it has, and send it who is there."""
        self._members.append(member)
        member.send(create_sync_message(self.doc))
        if self._states:
            member.send(self._present())

    def leave(self, member: Member) -> None:
        """Remove a member, and send that to the others."""
        if member not in self._members:
            return
        self._members.remove(member)
        gone = [
            (client, self._states.pop(client)[0] + 1, "null")
            for client in member.clients
            if client in self._states
        ]
        if gone:
            self._send(awareness_message(gone), None)
        if not self._members:
            self._compact()

    def receive(self, member: Member, data: bytes) -> None:
        """Take a message of a member's. Raises Refused."""
        if len(data) > MESSAGE_BYTES:
            raise Refused(1009, f"a message of {len(data)} bytes; at most {MESSAGE_BYTES} are taken")
        try:
            kind, payload = parse(data)
            if kind == "awareness":
                self._take_states(member, read_states(payload))
        except ProtocolError as error:
            raise Refused(1007, f"not a message of the Yjs protocol: {error}") from None
        if kind == "vector":
            member.send(self._missing(payload))
        elif kind == "update":
            self._apply(member, payload)
            self._compact(BUSY_BYTES)
        elif kind == "query":
            member.send(self._present())

    def _missing(self, vector: bytes) -> bytes:
        try:
            return answer_message(self.doc.get_update(vector))
        except BaseException as error:
            raise _refusal(error, "a state vector that cannot be read") from None

    def _apply(self, member: Member | None, update: bytes) -> None:
        if self._size + len(update) > DOCUMENT_BYTES:
            raise Refused(1009, f"the document would grow beyond {DOCUMENT_BYTES} bytes")
        try:
            trial: Doc[Any] = Doc()
            trial.apply_update(update)  # what cannot be read shall fail there, not in everybody's document
            self._speaking = member
            self.doc.apply_update(update)
        except BaseException as error:
            raise _refusal(error, "an update that cannot be read") from None
        finally:
            self._speaking = None

    def _changed(self, event: Any) -> None:
        """Called by the document within each change, also the server's own."""
        update: bytes = event.update
        self._journal.append(update)
        self._size += len(update)
        self._send(create_update_message(update), self._speaking)

    def _send(self, message: bytes, but: Member | None) -> None:
        for other in list(self._members):
            if other is not but:
                other.send(message)

    # --- who is there -----------------------------------------------------------------------------------------------

    def _present(self) -> bytes:
        return awareness_message((client, clock, text) for client, (clock, text) in self._states.items())

    def _take_states(self, member: Member, states: list[State]) -> None:
        """Keep what is newer than what is known. (Clients repeat what they hear of others: that is never newer.)"""
        news: list[State] = []
        for client, clock, text in states:
            known = self._states.get(client)
            if known is None and text == "null":
                continue
            if known is not None and (clock < known[0] or (clock == known[0] and text != "null")):
                continue
            if text == "null":
                self._states.pop(client, None)
                member.clients.discard(client)
            else:
                self._states[client] = (clock, text)
                for other in self._members:
                    other.clients.discard(client)
                member.clients.add(client)
            news.append((client, clock, text))
        if len(member.clients) > 8:
            raise Refused(1008, "more than 8 clients on one connection")
        if news:
            self._send(awareness_message(news), member)

    # --- the document -------------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """The workflow document as it is now."""
        return read(self.doc)

    def write(
        self, document: Mapping[str, Any], layout: Mapping[str, tuple[float, float]] | None = None
    ) -> None:
        """Change the shared document into this workflow document; all members see it as an edit."""
        write(self.doc, document, layout)

    def _compact(self, least: int = LEAST) -> None:
        if self._journal.wants_compaction(least):
            whole = self.doc.get_update()
            self._journal.compact(whole)
            self._size = len(whole)

    def close(self) -> None:
        """Compact the journal if it is worth it, and close it. Members have to leave first."""
        self.doc.unobserve(self._watch)
        self._compact()
        self._journal.close()


def _refusal(error: BaseException, what: str) -> Refused:
    """A refusal for whatever the library of shared documents raised, a panic of its native part included."""
    if isinstance(error, KeyboardInterrupt | SystemExit | asyncio.CancelledError | Refused):
        raise error
    return Refused(1007, what)


class Rooms:
    """The open rooms. A room closes when its last member leaves, and opens again for the next one."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._open: dict[str, Room] = {}

    def enter(self, id: str, member: Member) -> Room:
        """Bring a member into the room of a workflow."""
        room = self._open.get(id)
        if room is None:
            room = self._open[id] = Room(self._workspace.workflow(id))
        room.join(member)
        return room

    def leave(self, id: str, member: Member) -> None:
        """Let a member go; the last one closes the room."""
        room = self._open.get(id)
        if room is not None:
            room.leave(member)
            if not room.members:
                del self._open[id]
                room.close()

    @contextmanager
    def use(self, id: str) -> Iterator[Room]:
        """The room of a workflow, for the length of a `with`."""
        member = Member(lambda _: None)
        try:
            yield self.enter(id, member)
        finally:
            self.leave(id, member)

    def people(self, id: str) -> int:
        """The number of connections to a workflow."""
        room = self._open.get(id)
        return room.members if room is not None else 0

    def drop(self, id: str) -> None:
        """Close the room of a workflow that is deleted, if it is open."""
        room = self._open.pop(id, None)
        if room is not None:
            room.close()

    def close(self) -> None:
        """Close all rooms."""
        for id in list(self._open):
            self.drop(id)
