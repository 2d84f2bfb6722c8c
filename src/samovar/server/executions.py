"""Executions: runs that people of the workspace asked for, one after the other on the one Spark session.

An execution is queued, then becomes a run of the library. Everybody sees all of them: each change is handed to
`publish` as plain data, on the thread that made it. What ended stays listed until the server ends (and its recording
stays in the workspace).
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from samovar.errors import NotInWorkspace, SamovarError, WorkspaceError
from samovar.server.problems import problem_data

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["Execution", "Executions"]

log = logging.getLogger("samovar")
_KEPT = 100
"""Ended executions that stay listed."""
ENDED = ("completed", "failed", "stopped")


class Execution:
    """A run that was asked for. `data()` is what everybody sees of it."""

    def __init__(self, workflow: str | None, title: str, by: str, make: Callable[[], Run]) -> None:
        self.id = secrets.token_hex(6)
        self.workflow = workflow
        self.title = title
        self.by = by
        self.asked = time.time()
        self.make = make
        self.run: Run | None = None
        self.stopped_by: str | None = None
        self.error: dict[str, Any] | None = None
        self._status = "queued"
        self.done = threading.Event()

    @property
    def status(self) -> str:
        """queued, starting, running, completed, failed or stopped."""
        if self.run is not None and self._status == "running":
            return self.run.status if self.run.status not in ENDED or self.done.is_set() else "running"
        return self._status

    def data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        run = self.run
        return {
            "execution": self.id,
            "workflow": self.workflow,
            "title": self.title,
            "by": self.by,
            "asked": self.asked,
            "status": self.status,
            "stopped_by": self.stopped_by,
            "run": run.id if run is not None else None,
            "progress": run.progress.as_dict() if run is not None else None,
            "error": self.error,
        }


class Executions:
    """The queue and its one worker thread."""

    def __init__(self, publish: Callable[[dict[str, Any]], None]) -> None:
        self._publish = publish
        self._queue: queue.Queue[Execution | None] = queue.Queue()
        self._all: dict[str, Execution] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, workflow: str | None, title: str, by: str, make: Callable[[], Run]) -> Execution:
        """Queue a run. `make` starts it, on the worker's thread; what it raises is the execution's error."""
        made = Execution(workflow, title, by, make)
        with self._guard:
            if self._closed:
                raise WorkspaceError("The server is ending: nothing new is started.")
            self._all[made.id] = made
            ended = [e for e in self._all.values() if e.done.is_set()]
            for old in ended[: max(0, len(ended) - _KEPT)]:
                del self._all[old.id]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="samovar-runs", daemon=True)
                self._thread.start()
        self._publish(made.data())
        self._queue.put(made)
        return made

    def list(self) -> list[Execution]:
        """All of them, the newest last."""
        with self._guard:
            return list(self._all.values())

    def get(self, id: str) -> Execution:
        """One by its id."""
        with self._guard:
            found = self._all.get(id)
        if found is None:
            raise NotInWorkspace(
                f"Expected an execution, got {id!r}.",
                hint="GET /api/executions lists them.",
            )
        return found

    def stop(self, id: str, by: str) -> Execution:
        """Stop an execution, queued or running, and wait until it has stopped."""
        found = self.get(id)
        with self._guard:
            if found.done.is_set():
                return found
            found.stopped_by = by
            queued = found._status == "queued"
            if queued:
                found._status = "stopped"
                found.done.set()
        if queued:
            self._publish(found.data())
            return found
        if found.run is not None:
            found.run.stop()
        found.done.wait(60)
        return found

    def close(self) -> None:
        """Stop what runs, and start nothing more."""
        with self._guard:
            self._closed = True
        for execution in self.list():
            self.stop(execution.id, "the server")
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(30)

    def _work(self) -> None:
        while (execution := self._queue.get()) is not None:
            with self._guard:
                if execution.done.is_set():
                    continue
                execution._status = "starting"
            self._publish(execution.data())
            self._carry_out(execution)

    def _carry_out(self, execution: Execution) -> None:
        ended = "failed"
        try:
            run = execution.make()
            run.on_progress(lambda _: self._publish(execution.data()))
            execution.run = run
            execution._status = "running"
            self._publish(execution.data())
            if execution.stopped_by is not None:  # while it started
                run.stop()
            try:
                run.wait(progress=False)
            finally:
                ended = run.status
        except SamovarError as error:
            execution.error = problem_data(error)
        except Exception as error:
            log.exception("execution %s", execution.id)
            execution.error = {
                "kind": type(error).__name__,
                "message": str(error),
                "hint": None,
                "operator": None,
            }
        if execution.stopped_by is not None and ended == "failed" and execution.run is None:
            ended = "stopped"
        execution._status = ended
        execution.done.set()
        self._publish(execution.data())
