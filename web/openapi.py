"""Prints the OpenAPI description of the server's HTTP API as JSON, without starting Spark."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from samovar.server.app import make_app
from samovar.server.services import Parts
from samovar.server.spark_service import Engine
from samovar.server.workspace import Workspace

with tempfile.TemporaryDirectory() as folder:
    workspace = Workspace(Path(folder))
    print(json.dumps(make_app(Parts(workspace, Engine()), token="").openapi(), indent=1))
    workspace.close()
