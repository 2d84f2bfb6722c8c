"""Executions: runs that people of the workspace asked for, one after the other on the one Spark session.

An execution is queued, then becomes a run of the library. Everybody sees all of them: each change is passed to
`publish` as plain data, on the thread that made it. An ended execution stays listed until the server ends (and its
recording stays in the workspace). An execution lists who did what to it; `keep` receives that as well, once the run
has started.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from samovar.errors import CommandRefused, NotInWorkspace, SamovarError, WorkspaceError
from samovar.server.error_answers import problem_data, problem_fields
from samovar.server.json_values import row_data

if TYPE_CHECKING:
    from samovar.runtime.live.inspection import WorkerFigures
    from samovar.runtime.live.statistics import Statistics
    from samovar.runtime.run import Run

__all__ = ["Execution", "Executions"]

log = logging.getLogger("samovar")
_KEPT = 100
"""Ended executions that stay listed."""
_DEEDS = 300
"""Things people did to an execution that stay listed with it."""
_TICK = 0.3
"""Seconds between two looks at a run: figures of its workers, tuples it holds."""
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
        self.parent: str | None = None
        self.stopped_by: str | None = None
        self.paused_by: str | None = None
        self.error: dict[str, Any] | None = None
        self.deeds: deque[dict[str, Any]] = deque(maxlen=_DEEDS)
        self.watches: list[dict[str, Any]] = []
        self.live: dict[str, dict[str, Any]] = {}
        self._status = "queued"
        self.done = threading.Event()

    @property
    def status(self) -> str:
        """queued, starting, running, pausing, paused, holding, completed, failed or stopped."""
        if self.run is not None and self._status == "running":
            return self.run.status if self.run.status not in ENDED or self.done.is_set() else "running"
        return self._status

    def data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        run = self.run
        progress = run.progress.as_dict() if run is not None else None
        return {
            "execution": self.id,
            "workflow": self.workflow,
            "title": self.title,
            "by": self.by,
            "asked": self.asked,
            "status": self.status,
            "stopped_by": self.stopped_by,
            "paused_by": self.paused_by,
            "parent": self.parent,
            "run": run.id if run is not None else None,
            "progress": progress,
            "live": self.live,
            "held": self.held(),
            "reached": self.reached(),
            "watches": list(self.watches),
            "printed": 0 if run is None else len(run.console),
            "deeds": list(self.deeds),
            "error": self.error,
        }

    def held(self) -> list[dict[str, Any]]:
        """The tuples that wait for a decision, in brief."""
        if self.run is None or self.done.is_set():
            return []
        return [
            {"hold": h.hold, "operator": h.operator, "epoch": h.epoch, "error": h.error}
            for h in self.run.holds
        ]

    def going(self) -> Run:
        """The run, if it has started and not ended."""
        if self.run is None or self.done.is_set():
            raise CommandRefused(
                f"Expected an execution that runs, got one that is {self.status}.",
                state=self.status,
                hint="Wait until a queued execution starts; open the recording of an execution that has ended.",
            )
        return self.run

    def look(self, now: Statistics | None = None) -> Any:
        """The part of `data` that changes without a request: the state, held tuples, figures, printed lines."""
        run = self.run
        if run is None:
            return self.status
        if now is not None:
            self.live = _figures(now, run.figures)
        if self.paused_by is not None and run.status == "running":
            self.paused_by = None
        return self.status, [h["hold"] for h in self.held()], self.reached(), self.live, len(run.console)

    def reached(self) -> list[dict[str, Any]]:
        """The breakpoints at which the run is paused."""
        if self.run is None or self.done.is_set():
            return []
        return [
            {"operator": r.operator, "epoch": r.epoch, "row": row_data(r.row), "note": r.note}
            for r in self.run.reached
        ]


def _figures(now: Statistics, workers: Iterable[WorkerFigures]) -> dict[str, dict[str, Any]]:
    """Figures of each operator that took or gave tuples; `a_tuple`: seconds of work for each, where workers report."""
    seconds: dict[str, float] = defaultdict(float)
    taken: dict[str, int] = defaultdict(int)
    for worker in workers:
        seconds[worker.operator] += worker.seconds
        taken[worker.operator] += worker.taken
    figures = {}
    for op in now.operators:
        if op.taken or op.given or op.workers:
            data = asdict(op)
            del data["kind"]
            name = data.pop("name")
            figures[name] = {**data, "a_tuple": seconds[name] / taken[name] if taken[name] else None}
    return figures


class Executions:
    """The queue and its one worker thread."""

    def __init__(
        self,
        publish: Callable[[dict[str, Any]], None],
        keep: Callable[[str, dict[str, Any]], None] = lambda run, deed: None,
    ) -> None:
        self._publish = publish
        self._keep = keep
        self._queue: queue.Queue[Execution | None] = queue.Queue()
        self._all: dict[str, Execution] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(
        self,
        workflow: str | None,
        title: str,
        by: str,
        make: Callable[[], Run],
        *,
        parent: str | None = None,
    ) -> Execution:
        """Queue a run. `make` starts it, on the worker's thread; what it raises is the execution's error.

        `parent` is the run that it forks.
        """
        execution = Execution(workflow, title, by, make)
        execution.parent = parent
        self._note(execution, by, "asked for the fork" if parent is not None else "asked for the run")
        with self._lock:
            if self._closed:
                raise WorkspaceError("The server is ending: nothing new is started.")
            self._all[execution.id] = execution
            ended = [e for e in self._all.values() if e.done.is_set()]
            for old in ended[: max(0, len(ended) - _KEPT)]:
                del self._all[old.id]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="samovar-runs", daemon=True)
                self._thread.start()
        self._publish(execution.data())
        self._queue.put(execution)
        return execution

    def list(self) -> list[Execution]:
        """All executions, the newest last."""
        with self._lock:
            return list(self._all.values())

    def get(self, id: str) -> Execution:
        """The execution with this id. Raises NotInWorkspace."""
        with self._lock:
            execution = self._all.get(id)
        if execution is None:
            raise NotInWorkspace(f"No execution {id!r}.", hint="GET /api/executions lists them.")
        return execution

    def workflow_of(self, run: str) -> str | None:
        """The workflow of a run that this server started; None for other runs."""
        return next((e.workflow for e in self.list() if e.run is not None and e.run.id == run), None)

    def announce(self, execution: Execution, by: str, did: str, **about: Any) -> dict[str, Any]:
        """Publish that somebody did something to an execution; returns the execution as plain data."""
        self._note(execution, by, did, **about)
        execution.look()
        data = execution.data()
        self._publish(data)
        return data

    def _note(self, execution: Execution, by: str, did: str, **about: Any) -> None:
        deed = {"at": time.time(), "by": by, "did": did, **about}
        execution.deeds.append(deed)
        if execution.run is not None:
            self._keep_deed(execution.run.id, deed)

    def _keep_deed(self, run: str, deed: dict[str, Any]) -> None:
        try:
            self._keep(run, deed)
        except Exception:  # a full disk, say: what was asked for matters more than the note on it
            log.exception("the notebook of %s", run)

    def stop(self, id: str, by: str) -> Execution:
        """Stop an execution, queued or running, and wait until it has stopped."""
        execution = self.get(id)
        with self._lock:
            if execution.done.is_set():
                return execution
            execution.stopped_by = by
        self._note(execution, by, "stopped it")
        with self._lock:
            queued = execution._status == "queued"
            if queued:
                execution._status = "stopped"
                execution.done.set()
        if queued:
            self._publish(execution.data())
            return execution
        if execution.run is not None:
            execution.run.stop()
        execution.done.wait(60)
        return execution

    def close(self) -> None:
        """Stop what runs, and start nothing more."""
        with self._lock:
            self._closed = True
        for execution in self.list():
            self.stop(execution.id, "the server")
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(30)

    def _work(self) -> None:
        while (execution := self._queue.get()) is not None:
            with self._lock:
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
            for deed in list(execution.deeds):
                self._keep_deed(run.id, deed)
            execution.run = run
            execution._status = "running"
            self._publish(execution.data())
            threading.Thread(target=self._watch, args=(execution,), name="samovar-look", daemon=True).start()
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
            execution.error = problem_fields(type(error).__name__, str(error))
        if execution.stopped_by is not None and ended == "failed" and execution.run is None:
            ended = "stopped"
        execution._status = ended
        execution.done.set()
        execution.live = {}
        self._publish(execution.data())

    def _watch(self, execution: Execution) -> None:
        """Publish what changes without a request, until the execution has ended."""
        assert execution.run is not None
        before: Any = None
        for figures in execution.run.statistics(every=_TICK):
            now = execution.look(figures)
            if execution.done.is_set():
                execution.live = {}
                return
            if now != before:
                self._publish(execution.data())
            before = now
