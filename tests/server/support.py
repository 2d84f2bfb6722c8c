"""A server in a thread with real sockets, and clients of shared documents that can lose their connection."""

from __future__ import annotations

import re
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import uvicorn
from pycrdt import Doc, Map, Text, create_sync_message, create_update_message

from samovar.server.app import make_app
from samovar.server.documents.document_form import new_id, read, shared_form
from samovar.server.documents.rooms import Member, Room
from samovar.server.documents.yjs_protocol import answer_message, parse
from samovar.server.limits import Limits
from samovar.server.services import Parts
from samovar.server.spark_service import Engine
from samovar.server.workspace import Workspace

TOKEN = "a-token-for-tests"
SMALL: dict[str, Any] = {
    "samovar": 1,
    "name": "small",
    "operators": [
        {"name": "numbers", "op": "values", "schema": "n int", "rows": [[i] for i in range(10)]},
        {"name": "large", "op": "filter", "inputs": ["numbers"], "condition": "n >= 4"},
        {"name": "S", "op": "sink", "inputs": ["large"]},
    ],
}


class Served:
    """A running server: an HTTP client with the token, and what stands behind it."""

    def __init__(self, parts: Parts, port: int) -> None:
        self.parts = parts
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(
            base_url=self.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60, trust_env=False
        )

    @property
    def app(self) -> Any:
        return self.parts_app

    parts_app: Any = None

    def json(self, method: str, path: str, **given: Any) -> Any:
        answer = self.http.request(method, path, **given)
        assert answer.status_code < 400, answer.text
        return answer.json() if answer.content else None


@contextmanager
def serving(
    folder: Path, session: Any = None, *, limits: Limits | None = None, public: str | None = None
) -> Iterator[Served]:
    """A server on a free port for the length of a `with`."""
    listening = socket.create_server(("127.0.0.1", 0))
    parts = Parts(Workspace(folder), Engine(session=session), limits or Limits())
    app = make_app(parts, token=TOKEN, public=public)
    config = uvicorn.Config(app, log_level="error", ws="websockets-sansio", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    started = threading.Event()
    original = server.startup

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await original(sockets)
        started.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert started.wait(30)
    served = Served(parts, listening.getsockname()[1])
    served.parts_app = app
    try:
        yield served
    finally:
        served.http.close()
        server.should_exit = True
        thread.join(30)
        listening.close()


def filled(app: Any, places: dict[str, str]) -> list[tuple[str, str]]:
    """Every method and path that the application answers over HTTP, with something in each place ("x" by default)."""
    found = []
    for route in _flat(app.routes):
        if "WebSocket" not in type(route).__name__:
            path = _filled(route.path, places) + ("/index.js" if type(route).__name__ == "Mount" else "")
            found += [(method, path) for method in sorted(getattr(route, "methods", None) or {"GET"})]
    return found


def sockets(app: Any) -> list[str]:
    """Every WebSocket's path."""
    return [_filled(r.path, {}) for r in _flat(app.routes) if "WebSocket" in type(r).__name__]


def _filled(path: str, places: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda m: places.get(m[1], "x"), path)


def _flat(listed: Any) -> Iterator[Any]:
    for route in listed:
        inner = getattr(route, "original_router", None)
        if hasattr(route, "path"):
            yield route
        elif inner is not None:
            yield from _flat(inner.routes)
        else:
            raise AssertionError(f"a route of an unknown kind: {route!r}")


class Client:
    """A browser's shared document, with a connection whose messages are delivered when the test says so."""

    def __init__(self) -> None:
        self.doc: Doc[Any] = Doc()
        shared_form(self.doc)
        self.room: Room | None = None
        self.member: Member | None = None
        self.outbox: deque[bytes] = deque()
        self.inbox: deque[bytes] = deque()
        self._taking = False
        self._watch = self.doc.observe(self._edited)

    def connect(self, room: Room) -> None:
        self.outbox, self.inbox = deque(), deque()
        inbox = self.inbox
        self.member = Member(inbox.append)
        self.room = room
        room.join(self.member)
        self.outbox.append(create_sync_message(self.doc))

    def disconnect(self) -> None:
        """What was on its way in either direction is lost."""
        if self.room is not None and self.member is not None:
            self.room.leave(self.member)
        self.room = self.member = None
        self.outbox.clear()
        self.inbox.clear()

    def _edited(self, event: Any) -> None:
        if self.room is not None and not self._taking:
            self.outbox.append(create_update_message(event.update))

    def deliver(self, random: Random | None = None) -> bool:
        """Deliver one message, out or in; False when there is none."""
        ways = [way for way in (self.outbox, self.inbox) if way]
        if not ways or self.room is None or self.member is None:
            return False
        way = random.choice(ways) if random is not None else ways[0]
        data = way.popleft()
        if way is self.outbox:
            self.room.receive(self.member, data)
        else:
            self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        match parse(data):
            case "vector", vector:
                self.outbox.append(answer_message(self.doc.get_update(vector)))
            case "update", update:
                self._taking = True
                try:
                    self.doc.apply_update(update)
                finally:
                    self._taking = False


KINDS = {"filter": {"condition": '"true"'}, "limit": {"n": "5"}, "union": {}, "distinct": {}, "sink": {}}


def edit(doc: Doc[Any], random: Random) -> None:
    """One random edit, as a person at a canvas makes it."""
    _, operators, edges = shared_form(doc)
    ids = sorted(operators.keys())
    what = random.choice(
        ["add", "add", "rename", "field", "connect", "connect", "move", "code", "code", "remove"]
    )
    if what == "add" or not ids:
        kind = random.choice([*KINDS, "python", "values"])
        fields: dict[str, Any] = dict(KINDS.get(kind, {}))
        if kind == "python":
            fields = {"code": Text("class A(sv.Operator):\n    pass\n")}
        elif kind == "values":
            fields = {"schema": '"n int"', "rows": "[[1]]"}
        place = {"x": float(random.randrange(900)), "y": float(random.randrange(600))}
        name = f"op_{random.randrange(40)}"
        operators[new_id()] = Map({"name": name, "op": kind, **place, "fields": Map(fields)})
        return
    id = random.choice(ids)
    entry = operators[id]
    if what == "rename":
        entry["name"] = f"op_{random.randrange(40)}"
    elif what == "move":
        with doc.transaction():
            entry["x"], entry["y"] = float(random.randrange(900)), float(random.randrange(600))
    elif what == "field":
        entry["fields"]["comment" if entry["op"] == "values" else "note"] = f'"{random.random()}"'
        del entry["fields"]["comment" if entry["op"] == "values" else "note"]
    elif what == "connect":
        edges[f"{id}/{random.randrange(2)}"] = random.choice(ids)
    elif what == "code":
        text = entry["fields"].get("code")
        if isinstance(text, Text):
            said = str(text)
            first = random.randrange(len(said) + 1)
            at = len(said[:first].encode())  # places in a text of pycrdt are bytes
            if random.random() < 0.3 and len(said) > first + 3:
                del text[at : at + len(said[first : first + 2].encode())]
            else:
                text.insert(at, random.choice(["x", "# é\n", "  ", "yield"]))
    elif what == "remove" and len(ids) > 5:
        with doc.transaction():
            del operators[id]
            for key in sorted(edges.keys()):
                if key.startswith(f"{id}/") or edges[key] == id:
                    del edges[key]


def read_all(clients: list[Client], room: Room) -> list[Any]:
    """What each reads: the room first."""
    return [room.read(), *(read(c.doc) for c in clients)]
