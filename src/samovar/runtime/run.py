"""Runs as people handle them. Where a run starts: `samovar.runtime.start`; its thread: `samovar.runtime.run_thread`."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
from pyspark.sql import DataFrame

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control.desk import Desk
from samovar.errors import CommandRefused, RunError, UnknownName
from samovar.graph import operators as ops
from samovar.graph.arguments import checked_arguments
from samovar.graph.workflow import Graph
from samovar.record.state_files import dumps
from samovar.record.store import History, Recording
from samovar.runtime.chart_points import chart_data
from samovar.runtime.exchange.console import ConsoleLine
from samovar.runtime.live.inspection import (
    HeldTuple,
    InFlight,
    Inspection,
    WorkerFigures,
    check_python,
    figures_of,
    held_tuple,
    in_flight,
    inspection,
    snapshot,
)
from samovar.runtime.live.modification import Modified, Transfer, modification, modified
from samovar.runtime.live.statistics import Meter, Statistics
from samovar.runtime.live.watches import BreakpointReached, BreakpointSet
from samovar.runtime.progress import GOING, Progress, Status
from samovar.runtime.run_thread import PreparedRun, RunThread, Services
from samovar.runtime.sources.rejected_rows import read_rejected, rejection
from samovar.runtime.spark.job_tags import cancel_tagged
from samovar.runtime.summary import read_result, result_frame
from samovar.runtime.workflow_file import read_graph

__all__ = ["Run"]

log = logging.getLogger("samovar")

BOUNDARY = 1.5
"""Seconds that a strict modification waits for an epoch that was expected to end: then the epoch is given up, so that
it is in force within two."""


class Run:
    """A run that goes on, or has ended. All methods can be called from any thread.

    Commands (`pause`, `modify`, ...) are carried out or refused (CommandRefused) within seconds. In the examples, `run`
    is a run of a workflow whose Python operator `H` keeps the highest order of each customer; `finished` is the same
    run when it is complete, and `holding` one whose `H` raised on an order.
    """

    def __init__(self, prepared: PreparedRun, services: Services, *, interactive: bool | None = None) -> None:
        self._thread = RunThread(prepared, services, interactive=interactive)
        self._scratch = prepared.scratch
        self._warned = False
        self._thread.begin(services.door(self, prepared.context.recording.path))

    def __repr__(self) -> str:
        return f"Run({self.id!r}, {self.status})"

    def __del__(self) -> None:
        scratch = getattr(self, "_scratch", None)
        if scratch is not None and self.ended:
            shutil.rmtree(scratch, ignore_errors=True)

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The run's name; also the name of its folder.

        >>> finished.id
        'shop-1'
        """
        return self._thread.recording.run_id

    @property
    def status(self) -> Status:
        """starting, running, pausing, paused, holding, completed, failed or stopped.

        >>> finished.status
        'completed'
        """
        return self._thread.present_status()

    @property
    def ended(self) -> bool:
        """Whether the run has ended, one way or another.

        >>> finished.ended
        True
        """
        return self._thread.ended.is_set()

    @property
    def error(self) -> BaseException | None:
        """What ended the run, if it failed.

        >>> finished.error is None
        True
        """
        return self._thread.error

    @property
    def recording(self) -> Path | None:
        """The folder of the recording; None when nothing is recorded.

        >>> finished.recording.name
        'shop-1'
        """
        return None if self._scratch is not None else self._thread.recording.path

    @property
    def graph(self) -> Graph:
        """The operators, as they run now.

        >>> list(finished.graph.ops)
        ['orders', 'large', 'H', 'S']
        """
        return self._thread.context.plan.graph

    @property
    def history(self) -> History:
        """The epochs committed so far, and what else the log holds.

        >>> len(finished.history.epochs)
        1
        """
        return self._thread.context.history

    @property
    def store(self) -> Recording:
        """The recording as files; of a run that leaves none, those it works with.

        >>> finished.store.run_id
        'shop-1'
        """
        return self._thread.recording

    @property
    def desk(self) -> Desk:
        """Where commands go, and what workers have reported. For tools; its methods may change.

        >>> finished.desk.over
        True
        """
        return self._thread.steering.desk

    @property
    def progress(self) -> Progress:
        """Counters of every operator, as of the last committed epoch.

        >>> finished.progress.fraction
        1.0
        """
        return self._thread.progress()

    def on_progress(self, listener: Callable[[Progress], None]) -> None:
        """Call a function after each epoch, on the run's thread.

        listener: the function; it gets the progress.

        >>> epochs = []
        >>> run.on_progress(lambda progress: epochs.append(progress.epoch))
        """
        self._thread.listeners.append(listener)

    def wait(self, timeout: float | None = None, *, progress: bool | None = None, warn: bool = True) -> Run:
        """Wait for the end. Raises what made the run fail, and TimeoutError.

        timeout: seconds to wait at most. progress: whether a progress bar is drawn; by default on a terminal.
        warn: whether the logger `samovar` gets a warning of rows that are not in the results.

        >>> finished.wait().status
        'completed'
        """
        show = progress if progress is not None else sys.stderr.isatty()
        if show and not self.ended:
            from samovar.runtime.display import follow

            self._thread.displays += 1
            try:
                follow(self, timeout)
            finally:
                self._thread.displays -= 1
        elif not self.wait_ended(timeout):
            raise TimeoutError(f"run {self.id} has not ended after {timeout} s")
        self._warn_of_rejected(silent=show or not warn)  # the progress bar shows them
        if self.error is not None:
            raise self.error
        return self

    def wait_ended(self, timeout: float | None = None) -> bool:
        """Wait for the end; returns whether it has come. Raises nothing.

        timeout: seconds to wait at most.

        >>> finished.wait_ended(1.0)
        True
        """
        return self._thread.ended.wait(timeout)

    def wait_until(self, *states: Status, timeout: float | None = None) -> Status:
        """Wait until the run is in one of some states, or has ended; returns the state. Raises TimeoutError.

        >>> run.wait_until("running", timeout=60)
        'running'
        """

        def there() -> bool:
            return self.status in states or self.status not in GOING

        if not self.desk.wait_for(there, timeout):
            raise TimeoutError(f"the run is {self.status} after {timeout} s, not {' or '.join(states)}")
        return self.status

    def result(self, sink: str = "S") -> pa.Table:
        """The rows a sink kept, as a pyarrow Table; waits for the end.

        >>> finished.result("S").column_names
        ['customer', 'amount']
        """
        self.wait(progress=False)
        return read_result(self.store, self.history, self.graph, sink)

    def dataframe(self, sink: str = "S") -> DataFrame:
        """The rows a sink kept, as a Spark DataFrame over the recording's files; waits for the end.

        >>> finished.dataframe("S").groupBy("customer").count().count()
        3
        """
        self.wait(progress=False)
        return result_frame(self._thread.context.spark, self.store, self.history, self.graph, sink)

    def chart(self, name: str) -> dict[str, Any]:
        """What a `chart` operator shows of the epochs committed so far: its series and points, as plain data.

        >>> charted.chart("by customer")["chart"]
        'bar'
        """
        return chart_data(self.store, self.store.history(), read_graph(self.store), name)

    def rejected(self, source: str) -> pa.Table:
        """Rows of a source that did not parse, of the epochs committed so far: file, line, text.

        For a Python operator: the tuples that were skipped, as epoch, error and row.

        >>> finished.rejected("orders").num_rows
        0
        """
        return read_rejected(self.store, source)

    def _warn_of_rejected(self, *, silent: bool) -> None:
        """Warn, once, of rows that are not in the results. `silent`: the warning was shown in another way."""
        if not self._warned:
            self._warned = True
            for name, rows in self.history.rejected().items() if not silent else ():
                log.warning(rejection(name, rows, self._thread.context.sources.get(name)))

    # --- looking into the workers -----------------------------------------------------------------------------------

    def inspect(self, operator: str) -> Inspection:
        """The state of a Python operator now: each worker sends its part at once, without waiting for the others.

        Key partitions that no worker processes have their state of the last epoch's end.

        >>> sorted(finished.inspect("H").state["highest"])
        ['Ann', 'Bob', 'Chris']
        """
        context = self._thread.context
        check_python(context, operator)
        answer = None
        if self._thread.status == "running":
            with contextlib.suppress(CommandRefused):  # the run has just ended: its last epoch's end is shown
                answer = self._command(e.InspectRequested, operator=operator)
        return inspection(context, operator, answer)

    def snapshot(self, *operators: str) -> dict[str, Inspection]:
        """The states of Python operators (none named: of all) at one moment inside the epoch: consistent, at once.

        All workers stand still while they are asked, for some milliseconds; what each has taken in by then, the
        operators before it have given. Refused when a worker works more than 3 seconds on one tuple.

        >>> finished.snapshot("H")["H"].consistent
        True
        """
        context = self._thread.context
        chosen = operators or tuple(n for n, op in self.graph.ops.items() if isinstance(op, ops.Python))
        for operator in chosen:
            check_python(context, operator)
        if self._thread.status != "running":
            return {operator: inspection(context, operator, None) for operator in chosen}
        return snapshot(context, self._thread.steering, chosen)

    def in_flight(self, operator: str, limit: int = 100) -> InFlight:
        """The tuples that workers have taken in for a Python operator and not finished, at most `limit` of them.

        >>> sorted(run.in_flight("H", limit=1).rows[0])
        ['amount', 'customer', 'id']
        """
        check_python(self._thread.context, operator)
        return in_flight(operator, self._command(e.InFlightRequested, operator=operator, limit=limit))

    @property
    def figures(self) -> tuple[WorkerFigures, ...]:
        """What each Python operator does in each worker now, twice a second: tuples, seconds of work, queue, state.

        >>> [figure.taken for figure in run.figures if figure.worker == "nobody"]
        []
        """
        return figures_of(self.desk)

    def statistics(self, every: float = 0.5) -> Iterator[Statistics]:
        """Figures of every operator, at once and then every `every` seconds until the run has ended.

        Tuples, rates, the share of the time its workers are at work, state, queue and skew between workers. Python
        operators report while they work, twice a second; for operators that Spark runs, figures are those of the
        committed epochs.

        >>> next(finished.statistics())["H"].taken
        980
        """
        if every <= 0:
            raise RunError(f"Expected a time above 0 seconds, got {every}.")
        meter = Meter(self)
        while True:
            over = self.ended
            yield meter.read()
            if over:
                return
            self.wait_ended(every)

    @property
    def console(self) -> tuple[ConsoleLine, ...]:
        """What Python operators have printed, line by line: the last 2,000 lines.

        >>> finished.console[0].text
        'the first order'
        """
        return tuple(ConsoleLine(at, p.operator, p.epoch, p.text) for at, p in tuple(self.desk.printed))

    # --- pausing and changing ---------------------------------------------------------------------------------------

    def pause(self, mode: e.PauseMode = "direct") -> None:
        """Stop the run, to look at it. Returns when all has stopped.

        mode: "direct": Python operators stop at their next tuple or mini-step, with tuples in flight; an epoch that
            only Spark works on is cancelled and done again on `resume`. It is waited for if it is nearly over, has
            worked for more than two seconds, or was cancelled by pauses before. "aligned": the present epoch is
            finished first; one that has just begun and would take long is cancelled instead. If that takes more than
            3 seconds, the run is `pausing` meanwhile.

        >>> run.pause()
        >>> run.status
        'paused'
        """
        if mode not in get_args(e.PauseMode):
            raise RunError(f"Expected mode 'direct' or 'aligned', got {mode!r}.")
        self._command(e.PauseRequested, mode=mode, at=time.monotonic())

    def resume(self) -> None:
        """Go on after a pause.

        >>> run.resume()
        """
        self._command(e.ResumeRequested)

    def modify(
        self,
        changes: Mapping[str, Any],
        *,
        consistency: e.Consistency = "strict",
        transfer: Transfer | Mapping[str, Transfer] | None = None,
    ) -> Modified:
        """Replace the logic of operators. It is checked before anything changes.

        Returns when the logic is in force, usually within two seconds, with what became of it: since which `epoch`, how
        many tuples each operator had `taken` by then, and whether it came too `late`, because the last epoch was
        committed before. Raises CommandRefused when the run had ended.

        changes: by operator. A Python operator takes an `sv.Operator`, or the source text of one; a native one that
            keeps nothing (a filter, a select) SQL text (several: a list) or a mapping of its fields, and changes
            between two epochs, whichever consistency is asked for.
        consistency: "strict": in force between two epochs, for all operators at once: no tuple meets old and new
            logic. If the present epoch is not about to end, it is given up and done again with the new logic.
            "backward": all workers stop, switch, and go on: a tuple in flight may have met old logic before and meets
            new logic behind, never the other way round. "none": each worker switches at its next tuple. A stateless
            operator without anything behind it that needs the order of tuples changes between epochs, whichever is
            asked for.
        transfer: a function from the old state (a mapping) to values to set on the new operator, or a mapping of such
            functions by operator; without one, the new operator gets what the old one had changed.

        >>> run.modify({"H": Highest()}, consistency="none").late
        False
        """
        if consistency not in get_args(e.Consistency):
            raise RunError(f"Expected consistency 'strict', 'backward' or 'none', got {consistency!r}.")
        if not changes:
            raise RunError('Expected operators to modify, got none: run.modify({"FE": NewFE()}).')
        context, steering = self._thread.context, self._thread.steering
        make = modification(context, changes, consistency, transfer)
        strict = consistency == "strict"
        answer = steering.answer(make, BOUNDARY if strict else None)
        result = modified(context, steering.desk, tuple(changes), answer)
        log.info("run %s: %s modified: %s", self.id, ", ".join(changes), result)
        return result

    # --- tuples that raised -----------------------------------------------------------------------------------------

    @property
    def held(self) -> HeldTuple | None:
        """The tuple that waits for a decision (with `on_error="hold"`); None: there is none.

        >>> holding.wait_until("holding", timeout=60)
        'holding'
        >>> holding.held.row["amount"]
        -1.0
        """
        return next(iter(self.holds), None)

    @property
    def holds(self) -> tuple[HeldTuple, ...]:
        """All tuples that wait for a decision: several workers may hold one at once.

        >>> [held.operator for held in holding.holds]
        ['H']
        """
        return tuple(map(held_tuple, self.desk.held)) if self._thread.status == "running" else ()

    def retry(self, row: Mapping[str, Any] | None = None, *, operator: str | None = None) -> None:
        """Process the held tuple again, from where the state was before it.

        row: columns to change in it first. operator: whose tuple, if several are held; by default the first.

        >>> holding.retry({"amount": 1.0})
        """
        held = self._held(operator)
        if row is None:
            self._command(e.DecisionMade, hold=held.hold, kind="retry")
            return
        unknown = [c for c in row if c not in held.row]
        if unknown:
            raise UnknownName(unknown[0], held.row, what=f"a column of the tuple '{held.operator}' holds")
        self._command(e.DecisionMade, hold=held.hold, kind="edit", row=dumps({**held.row, **row}))

    def skip(self, *, all_like_it: bool = False, operator: str | None = None) -> None:
        """Skip the held tuple; it is kept among the `rejected`.

        all_like_it: and all others that raise the same kind of error at the same place, from now on.
        operator: whose tuple, if several are held; by default the first.

        >>> holding.wait_until("holding", timeout=60)
        'holding'
        >>> holding.skip(all_like_it=True)
        """
        held = self._held(operator)
        self._command(e.DecisionMade, hold=held.hold, kind="skip-all" if all_like_it else "skip")

    def _held(self, operator: str | None) -> HeldTuple:
        known = [h for h in self.holds if operator in (None, h.operator)]
        if not known:
            about = f" by '{operator}'" if operator else ""
            raise CommandRefused(
                f"No tuple is held{about}: the run is {self.status}.",
                state=self.status,
                hint='Start the run with on_error="hold" to have tuples held that raise.',
            )
        return known[0]

    # --- moments and breakpoints ------------------------------------------------------------------------------------

    def interact(self, operator: str, note: str = "", *, every: float | None = None) -> str | None:
        """Mark this moment, without pausing: a global state near the tuple the operator is at. Returns its name.

        The state itself is computed later, by `sv.open(...).jump("I1")`: it is always that after a whole number of
        tuples of the operator. Which number that is: for a Python operator, what its workers reported last. They report
        twice a second and when they stop, so the moment is at most half a second old, and exact while the run is
        paused. Operators that Spark runs do not report: the share of the epoch's time that had passed stands for the
        share of its tuples. So it does with `every`, for all operators.

        note: kept with the interaction. every: mark a moment every so many seconds, from now on.

        >>> run.interact("H", "before the change")
        'I1'
        """
        self._check_operator(operator)
        if every is not None:
            if every <= 0:
                raise RunError(f"Expected a time above 0 seconds, got {every}.", operator=operator)
            self._thread.interactions.every(operator, every, note)
            return None
        counted = (
            isinstance(self.graph.ops[operator], ops.Python) and self._thread.steering.control is not None
        )
        tuples = self.desk.taken(operator) if counted else None
        name = self._thread.interactions.ask(operator, note, tuples=tuples)
        if self.ended:
            raise RunError(
                "The run has ended: there is nothing to mark.",
                operator=operator,
                hint="Go to any moment of it: sv.open(run.recording).jump(...).",
            )
        return name

    @checked_arguments(pause="break_at(...)", tuples="break_at(tuples=...)", outputs="break_at(outputs=...)")
    def watch(self, operator: str, condition: str, *, limit: int = 100) -> str:
        """Mark a moment for every tuple an operator takes that meets a condition. The run does not stop.

        Returns a name for `unwatch`. The moment is the one after all that came of the tuple.

        condition: SQL over the tuple; if it names columns that only the output has (the other side of a join), over
            the rows made from it. limit: how many moments are marked in an epoch at most.

        >>> run.watch("H", "amount > 97")
        'W1'
        """
        self._check_going(operator)
        return self._thread.watches.watch(operator, condition, limit)

    def break_at(
        self,
        operator: str,
        condition: str | None = None,
        *,
        tuples: int | None = None,
        outputs: int | None = None,
    ) -> str:
        """Set a breakpoint: the run pauses at a tuple that meets a condition, or after a number of tuples.

        Returns a name for `unwatch`.

        condition: for a Python operator a Python expression over the tuple's columns, the operator's states, `row` and
            `port`; the run stops before the tuple, or after it if a state is named. For other operators and those in
            batch form SQL as for `watch`; the run stops at the end of the epoch that has such a tuple, whose moment is
            marked.
        tuples, outputs: the run pauses when the operator has taken, or given, this number in all: all workers together,
            exactly, or at the epoch's end for operators of Spark.

        >>> run.break_at("H", "len(highest) > 100")
        'B2'
        """
        self._check_going(operator)
        return self._thread.watches.break_at(operator, condition, tuples, outputs)

    @property
    def breakpoints(self) -> tuple[BreakpointSet, ...]:
        """The breakpoints that stand. One that counts is gone when it was reached.

        >>> [breakpoint.condition for breakpoint in run.breakpoints]
        ['len(highest) > 100']
        """
        return self._thread.watches.breakpoints

    def unwatch(self, name: str) -> None:
        """Remove a watch or a breakpoint.

        >>> run.unwatch("B2")
        """
        self._thread.watches.remove(name)

    @property
    def reached(self) -> tuple[BreakpointReached, ...]:
        """The breakpoints at which the run is paused; empty when it is not, or for another reason.

        >>> run.reached
        ()
        """
        return () if self.ended else self._thread.watches.reached

    def stop(self, *, wait: bool = True) -> None:
        """Stop the run. Committed epochs are kept; the run can be resumed.

        wait: whether to return only when the run has stopped. From a function that `on_progress` calls, use False.

        >>> run.stop()
        >>> run.status
        'stopped'
        """
        self._thread.stop.set()
        self.desk.ask(lambda name: e.StopRequested(command=name))
        cancel_tagged(self._thread.context.spark, self.id)
        if wait:
            self._thread.ended.wait()

    def _command(self, kind: type[e.RunCommand], /, **fields: Any) -> i.CommandAnswer:
        """Carry out a command and wait for the answer. Raises CommandRefused."""
        return self._thread.steering.answer(lambda name: kind(command=name, **fields))

    def _check_operator(self, operator: str) -> None:
        if operator not in self.graph.ops:
            raise UnknownName(operator, self.graph.ops, what="an operator of the run")

    def _check_going(self, operator: str) -> None:
        if self.ended:
            raise RunError("The run has ended.", hint="Use sv.open(run.recording).first(...) or .log(...).")
        self._check_operator(operator)
