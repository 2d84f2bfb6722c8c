"""The parts of the server, made once and shared by all routes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from starlette.requests import HTTPConnection

from samovar.server.checking import Checker
from samovar.server.engine import Engine
from samovar.server.executions import Executions
from samovar.server.journeys import Journeys
from samovar.server.live import Live
from samovar.server.rooms import Rooms
from samovar.server.workspace import Workspace

__all__ = ["Parts", "parts"]


@dataclass
class Parts:
    """What routes work with."""

    workspace: Workspace
    engine: Engine
    live: Live = field(default_factory=Live)
    rooms: Rooms = field(init=False)
    checker: Checker = field(init=False)
    executions: Executions = field(init=False)
    journeys: Journeys = field(init=False)

    def __post_init__(self) -> None:
        self.rooms = Rooms(self.workspace)
        self.checker = Checker(self.workspace.files)
        self.executions = Executions(lambda data: self.live.publish("execution", data))
        self.journeys = Journeys(self.engine)

    def close(self) -> None:
        """Stop runs, close recordings and rooms, and give the workspace's lock back."""
        self.executions.close()
        self.live.attach(None)
        self.journeys.close()
        self.rooms.close()
        self.engine.close()
        self.workspace.close()


def parts(connection: HTTPConnection) -> Parts:
    """The parts of the server a request or a WebSocket is at; for FastAPI's `Depends`."""
    return cast(Parts, connection.app.state.parts)
