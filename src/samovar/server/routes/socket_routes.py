"""WebSockets: shared documents (Yjs), and news of executions."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from samovar.errors import SamovarError
from samovar.server.documents.rooms import Member, Refused
from samovar.server.outbox import Message, Outbox
from samovar.server.services import The

__all__ = ["router"]

router = APIRouter()


@router.websocket("/api/documents/{id}")
async def document(the: The, socket: WebSocket, id: str) -> None:
    """The shared document of a workflow: the protocol of y-websocket, binary messages."""
    await socket.accept()
    waiting: Outbox[bytes] = Outbox()
    member = Member(waiting.put)
    try:
        room = the.rooms.enter(id, member)
    except SamovarError as error:
        await socket.close(4404, error.message[:120])
        return
    sending = asyncio.create_task(_send(socket, waiting, socket.send_bytes))
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                break
            data = message.get("bytes")
            if data is None:
                raise Refused(1003, "expected a binary message, got text")
            room.receive(member, data)
    except Refused as refused:
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await socket.close(refused.code, refused.reason[:120])
    finally:
        the.rooms.leave(id, member)
        sending.cancel()


@router.websocket("/api/live")
async def live(the: The, socket: WebSocket) -> None:
    """News of executions as JSON texts; on connecting, all of them as they are."""
    await socket.accept()
    listener: Outbox[str] = Outbox()
    the.live.add(listener)
    known = [e.data() for e in the.executions.list()]
    listener.put(json.dumps({"kind": "executions", "data": known}))
    sending = asyncio.create_task(_send(socket, listener, socket.send_text))
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
    finally:
        the.live.remove(listener)
        sending.cancel()


async def _send(
    socket: WebSocket, waiting: Outbox[Message], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Send what waits, until the other side is gone or too far behind."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        while (message := await waiting.get()) is not None:
            await send(message)
        await socket.close(1013, "too far behind")
