"""``scripts/bench control``: what the control channel costs, and how fast it is. No Spark.

*Round trip*: a state is asked for and given, coordinator to worker process and back. *Pause*: from the command to
the last worker's word that it has stopped, and the same for resume, at random instants of worker processes in a
tight loop over tuples; more processes than cores wait for the scheduler. *Check*: a per-tuple filter in a tight
loop with a look at the client's flag after every 1, 10, ... tuples, against the same loop without; variants take
turns, and each is the best of all rounds. The same with a filter operator in the loop that Spark's workers run, by the
median of all rounds.
"""

from __future__ import annotations

import argparse
import ast
import gc
import inspect
import json
import multiprocessing
import pickle
import random
import statistics
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import samovar as sv
from benchmarks.session import machine
from samovar.control import events as e
from samovar.control import messages as m
from samovar.control.agent import Agent, TaskAbandoned
from samovar.control.client import Client, client_for
from samovar.control.desk import Desk
from samovar.runtime.exchange.task import Stage, Task
from samovar.runtime.worker import chain as worker_module
from samovar.runtime.worker.chain import Chain

__all__ = ["Check", "Large", "Latency", "checks", "engine_checks", "latencies", "main", "measure"]

_WAIT = 60.0
_EVERY = (1, 10, 100, 1_000, 10_000)
_BATCH = 10_000
"""Rows of a batch that Spark hands to a worker, unless it is told otherwise."""


@dataclass(frozen=True)
class Latency:
    """Milliseconds of one kind of command, with so many worker processes."""

    command: str
    workers: int
    samples: int
    median: float
    p95: float
    worst: float


@dataclass(frozen=True)
class Check:
    """A loop with a check after every so many tuples (0: none); `ratio` is against none."""

    every: int
    how: str
    ns_per_tuple: float
    ratio: float


# --- worker processes -----------------------------------------------------------------------------------------------


class _Rows:
    """The tuple loop of a worker process: a filter over numbers."""

    def __init__(self) -> None:
        self.number = 0
        self.kept = 0

    def run(self, agent: Agent, client: Client) -> None:
        while True:
            if client.news:
                agent.check()
            self.number += 1
            if self.number % 3:
                self.kept += 1

    def place(self) -> m.TuplePlace:
        return m.TuplePlace("F", 0, 0, 0, self.number)

    def state(self, operator: str) -> tuple[int, bytes]:
        return 0, b"%d" % self.kept

    def in_flight(self, operator: str, limit: int) -> tuple[list[bytes], int]:
        return [], 0

    def switch(self, codes: Mapping[str, m.CodeVersion]) -> tuple[m.SwitchPoint, ...]:
        return ()

    def breakpoints(self, standing: tuple[m.Breakpoint, ...]) -> None:
        pass

    def counted(self) -> list[m.TuplesCounted]:
        return []

    def credit(self, breakpoint: str, upto: int) -> None:
        pass

    def counts(self) -> dict[str, tuple[int, int]]:
        return {}

    def figures(self) -> dict[str, m.Figures]:
        return {"F": m.Figures(taken=self.number, given=self.kept)}


def _work(address: tuple[str, int], secret: bytes, name: str) -> None:
    client = client_for(address, "bench", secret)
    rows = _Rows()
    agent = Agent(client, rows)
    try:
        agent.begin(
            m.TaskBegun(task=name, run="bench", epoch=0, attempt="a", operators=("F",)), patience=_WAIT
        )
        rows.run(agent, client)
    except TaskAbandoned:
        agent.end()


class _Engine:
    """An engine with nothing to do."""

    def cancel(self, order: Any) -> None: ...

    def use_code(self, used: Any) -> None: ...

    def note(self, note: Any) -> None: ...

    def end(self, why: str) -> None: ...


@contextmanager
def _processes(workers: int) -> Iterator[Desk]:
    context = multiprocessing.get_context("spawn")
    desk = Desk("bench", _Engine(), patience=_WAIT)
    desk.begin_epoch(0, "a")
    address, secret = desk.coordinator.address, desk.coordinator.secret
    processes = [
        context.Process(target=_work, args=(address, secret, f"t{n}"), daemon=True) for n in range(workers)
    ]
    try:
        for process in processes:
            process.start()
        until = time.monotonic() + _WAIT
        while len(desk.machine.workers.busy) < workers:
            if time.monotonic() > until:
                raise TimeoutError(f"{workers} worker processes did not start within {_WAIT:g} s")
            time.sleep(0.01)
        yield desk
    finally:
        stop = desk.ask(lambda name: e.StopRequested(command=name))
        for process in processes:
            process.join(_WAIT)
        desk.report(e.RunOver())
        stop.result(_WAIT)
        desk.close()


def _timed(desk: Desk, kind: Any, **arguments: Any) -> float:
    started = time.perf_counter()
    desk.ask(lambda name: kind(command=name, **arguments)).result(_WAIT)
    return (time.perf_counter() - started) * 1000


def _latency(command: str, workers: int, samples: Sequence[float]) -> Latency:
    ordered = sorted(samples)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return Latency(command, workers, len(ordered), statistics.median(ordered), p95, ordered[-1])


def latencies(workers: int, samples: int) -> list[Latency]:
    """Pause, look while paused, resume: again and again, at random instants."""
    instants = random.Random(7)
    pauses, looks, resumes = [], [], []
    with _processes(workers) as desk:
        for _ in range(samples):
            time.sleep(instants.uniform(0.005, 0.03))
            pauses.append(_timed(desk, e.PauseRequested))
            looks.append(_timed(desk, e.InspectRequested, operator="F"))
            resumes.append(_timed(desk, e.ResumeRequested))
    named = {"pause": pauses, "round trip, paused": looks, "resume": resumes}
    return [_latency(name, workers, found) for name, found in named.items()]


# --- checks ---------------------------------------------------------------------------------------------------------


def _plain(rows: list[dict[str, Any]], client: Client) -> int:
    kept = 0
    for row in rows:
        if row["amount"] > 500:
            kept += 1
    return kept


def _each(rows: list[dict[str, Any]], client: Client) -> int:
    kept = 0
    for row in rows:
        if client.news:
            raise RuntimeError("nobody was to say anything")
        if row["amount"] > 500:
            kept += 1
    return kept


def _called(rows: list[dict[str, Any]], client: Client) -> int:
    kept = 0

    def poll() -> bool:
        return client.news

    for row in rows:
        if poll():
            raise RuntimeError("nobody was to say anything")
        if row["amount"] > 500:
            kept += 1
    return kept


def _stretch(every: int) -> Any:
    def loop(rows: list[dict[str, Any]], client: Client) -> int:
        kept = 0
        for start in range(0, len(rows), every):
            if client.news:
                raise RuntimeError("nobody was to say anything")
            for row in rows[start : start + every]:
                if row["amount"] > 500:
                    kept += 1
        return kept

    return loop


def checks(tuples: int, rounds: int) -> list[Check]:
    """What checks cost. The client is connected, and its thread at work."""
    rows = [{"id": n, "amount": n * 37 % 1000} for n in range(tuples)]
    variants: dict[tuple[int, str], Any] = {(0, "none"): _plain, (1, "poll()"): _called, (1, "news"): _each}
    variants |= {(every, "news"): _stretch(every) for every in _EVERY[1:]}
    best = dict.fromkeys(variants, float("inf"))
    desk = Desk("bench", _Engine())
    client = Client(desk.coordinator.address, "bench", desk.coordinator.secret)
    client.wait_connected(_WAIT)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for key, loop in variants.items():
                started = time.perf_counter()
                loop(rows, client)
                best[key] = min(best[key], time.perf_counter() - started)
    finally:
        gc.enable()
        client.close()
        desk.close()
    plain = best[0, "none"]
    return [Check(every, how, took / tuples * 1e9, took / plain) for (every, how), took in best.items()]


# --- checks in the engine's own loop --------------------------------------------------------------------------------


class Large(sv.Operator):
    """A per-tuple filter: one comparison, and the tuple as it came."""

    output = "id bigint, amount bigint"
    stateless = True

    def process(self, row: Any, port: int = 0) -> Iterator[Any]:
        if row["amount"] > 500:
            yield row


class _Every(ast.NodeTransformer):
    """The tuple loop with a check after every so many tuples; 0: none."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.found = 0

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        test = ast.unparse(node.test)
        if not test.endswith(".news"):
            return node
        self.found += 1
        if self.every == 0:
            return ast.Pass()
        node.test = ast.parse(f"not done % {self.every} and ({test})", mode="eval").body
        return node


def _loop(every: int) -> Any:
    """The engine's loop over the tuples of one operator with other checks. All are compiled anew, `every` 1 as well."""
    tree: ast.AST = ast.parse(textwrap.dedent(inspect.getsource(Chain._feed_plainly)))
    changing = _Every(every)
    if every != 1:
        tree = changing.visit(tree)
        assert changing.found == 2, "a check before each tuple, and one at each mini-step"
    names = dict(vars(worker_module))
    exec(compile(ast.unparse(ast.fix_missing_locations(tree)), f"<every {every}>", "exec"), names)
    return names["_feed_plainly"]


def engine_checks(tuples: int, rounds: int) -> list[Check]:
    """The same for a filter operator in the loop a Spark worker runs, Arrow batches in and out, without Spark.

    Batches are as large as Spark's: a single one would mostly measure how fast memory is given out. All loops are made
    from the engine's own source in the same way. Variants take turns in a random order; each one's time and ratio to
    none are the medians of the rounds, because the best of several rounds differs by 2 % between two equal loops.
    """
    table = pa.table(
        {"id": pa.array(range(tuples)), "amount": pa.array([n * 37 % 1000 for n in range(tuples)])}
    )
    batches = table.to_batches(max_chunksize=_BATCH)
    schema = pa.schema([("id", pa.int64()), ("amount", pa.int64())])
    stage = Stage("F", pickle.dumps(Large()), schema, "", {})
    task = Task("bench", 0, "a", (stage,), 0, False, "")
    kinds = {every: type("Made", (Chain,), {"_feed_plainly": _loop(every)}) for every in (0, *_EVERY)}
    taken: dict[int, list[float]] = {every: [] for every in kinds}
    desk = Desk("bench", _Engine())
    client = Client(desk.coordinator.address, "bench", desk.coordinator.secret)
    client.wait_connected(_WAIT)
    chance = random.Random(3)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for every in chance.sample(list(kinds), len(kinds)):
                chain = kinds[every](task)
                chain.client = client
                started = time.perf_counter()
                rows = sum(made.num_rows for made in chain.run(iter(batches)))
                taken[every].append(time.perf_counter() - started)
                assert rows == sum(n * 37 % 1000 > 500 for n in range(1000)) * tuples // 1000
    finally:
        gc.enable()
        client.close()
        desk.close()
    how = {0: "none", 1: "as it is"}
    return [
        Check(
            every,
            how.get(every, "news"),
            statistics.median(own) / tuples * 1e9,
            statistics.median(mine / none for mine, none in zip(own, taken[0], strict=True)),
        )
        for every, own in taken.items()
    ]


# --- the report -----------------------------------------------------------------------------------------------------


def report(console: Console, found: Sequence[Latency], costs: Mapping[str, Sequence[Check]]) -> None:
    """Three tables."""
    table = Table(title="Commands to worker processes in a tight loop (ms)")
    for column in ("command", "workers", "samples", "median", "p95", "worst"):
        table.add_column(column, justify="left" if column == "command" else "right")
    for one in found:
        numbers = (f"{one.median:.2f}", f"{one.p95:.2f}", f"{one.worst:.2f}")
        table.add_row(one.command, str(one.workers), str(one.samples), *numbers)
    console.print(table)
    for name, title in (("checks", "in a bare loop"), ("engine_checks", "in the engine's loop")):
        table = Table(title=f"A check after every n tuples, in a filter of one comparison, {title}")
        for column in ("tuples between checks", "by", "ns a tuple", "against none"):
            table.add_column(column, justify="right")
        for cost in costs[name]:
            table.add_row(
                f"{cost.every:,}" if cost.every else "none",
                cost.how,
                f"{cost.ns_per_tuple:.1f}",
                f"{cost.ratio:.3f}",
            )
        console.print(table)


def measure(
    workers: Sequence[int] = (1, 2, 4, 8), samples: int = 100, tuples: int = 500_000, rounds: int = 7
) -> dict[str, Any]:
    """Everything, as plain data. `tuples`: a multiple of a thousand."""
    return {
        "latencies": [asdict(one) for n in workers for one in latencies(n, samples)],
        "checks": [asdict(one) for one in checks(tuples, rounds)],
        "engine_checks": [asdict(one) for one in engine_checks(tuples, rounds)],
    }


def main(argv: Sequence[str]) -> int:
    """Measure, print tables, write JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench control", description=__doc__)
    parser.add_argument("--workers", default="1,2,4,8", help="numbers of worker processes, by commas")
    parser.add_argument("--samples", type=int, default=100, help="pauses for each number of workers")
    parser.add_argument("--tuples", type=int, default=500_000, help="tuples in the loop with checks")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the loops with checks")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    options = parser.parse_args(argv)
    workers = [int(n) for n in options.workers.split(",")]
    results = measure(workers, options.samples, options.tuples // 1000 * 1000, options.rounds)
    found = [Latency(**one) for one in results["latencies"]]
    costs = {name: [Check(**one) for one in results[name]] for name in ("checks", "engine_checks")}
    report(Console(), found, costs)
    if options.json:
        document = {"benchmark": "control", "machine": machine(), **results}
        Path(options.json).write_text(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
