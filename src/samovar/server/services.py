"""The parts of the server, created once and shared by all routes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from samovar.server.documents.document_check import Checker
from samovar.server.documents.rooms import Rooms
from samovar.server.limits import Limits
from samovar.server.news import Live
from samovar.server.runs.comparisons import Comparisons
from samovar.server.runs.executions import Executions
from samovar.server.runs.journeys import Journeys
from samovar.server.runs.notebook import Notebooks
from samovar.server.spark_service import Engine
from samovar.server.workspace import Workspace

__all__ = ["Parts", "The"]


@dataclass
class Parts:
    """The parts of the server that routes use."""

    workspace: Workspace
    engine: Engine
    limits: Limits = field(default_factory=Limits)
    live: Live = field(default_factory=Live)
    rooms: Rooms = field(init=False)
    checker: Checker = field(init=False)
    notebooks: Notebooks = field(init=False)
    executions: Executions = field(init=False)
    journeys: Journeys = field(init=False)
    comparisons: Comparisons = field(default_factory=Comparisons)
    _closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.rooms = Rooms(self.workspace)
        self.checker = Checker(self.workspace.files)
        self.notebooks = Notebooks(self.workspace.notebooks, lambda data: self.live.publish("notebook", data))
        self.executions = Executions(lambda data: self.live.publish("execution", data), self.notebooks.did)
        self.journeys = Journeys(self.engine)

    def rest_when_idle(self, minutes: float) -> None:
        """Free Spark's memory whenever nobody has used it for this long; checked several times within it."""

        def work() -> None:
            while not self._closed.wait(min(30.0, minutes * 15)):
                if self.engine.idle > minutes * 60 and all(e.done.is_set() for e in self.executions.list()):
                    self.journeys.close()
                    self.engine.rest()

        threading.Thread(target=work, name="samovar-idle", daemon=True).start()

    def close(self) -> None:
        """Stop runs, close recordings and rooms, and release the workspace's lock."""
        self._closed.set()
        self.executions.close()
        self.live.attach(None)
        self.journeys.close()
        self.rooms.close()
        self.engine.close()
        self.workspace.close()


def _parts(connection: HTTPConnection) -> Parts:
    return cast(Parts, connection.app.state.parts)


The = Annotated[Parts, Depends(_parts)]
"""The type of a route's argument for the parts of the server."""
