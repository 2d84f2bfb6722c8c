"""A diamond whose operators stamp their version on each tuple; a network that holds messages back; a replay's stamps.

A and B run side by side in one Spark task, C in a task of its own behind B, D behind the union of C's branch and one
without: tuples are in flight between A and B, B and C, C and D.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.steered import WAIT, numbers

import samovar as sv
from samovar.control import messages as m
from samovar.control.coordinator import Coordinator
from samovar.positions import Window

Stamps = list[tuple[int, int, int, int, int]]


class A(sv.Operator):
    output = "x bigint, a bigint"

    def __init__(self, version: int = 1, *, folder: str = "", stop: int = -1, seconds: float = 0.0) -> None:
        self.version = version
        self.folder, self.stop, self.seconds = folder, stop, seconds
        self.n = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.n += 1
        if row["x"] == self.stop:
            Path(self.folder, "arrived").touch()
            until = time.monotonic() + WAIT
            while not Path(self.folder, "go").exists() and time.monotonic() < until:
                time.sleep(0.002)
                yield
        if self.seconds:
            time.sleep(self.seconds)
            yield
        yield {"x": row["x"], "a": self.version}


class B(sv.Operator):
    output = "x bigint, a bigint, b bigint"
    stateless = True

    def __init__(self, version: int = 1, seconds: float = 0.0) -> None:
        self.version, self.seconds = version, seconds

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        if self.seconds:
            time.sleep(self.seconds)
        yield {**row, "b": self.version}


class C(sv.Operator):
    output = "x bigint, a bigint, b bigint, c bigint"
    stateless = True

    def __init__(self, version: int = 1, seconds: float = 0.0) -> None:
        self.version, self.seconds = version, seconds

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        if self.seconds:
            time.sleep(self.seconds)
        yield {**row, "c": self.version}


class D(sv.Operator):
    output = "x bigint, a bigint, b bigint, c bigint, d bigint"

    def __init__(self, version: int = 1, seconds: float = 0.0) -> None:
        self.version, self.seconds = version, seconds
        self.n = 0

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        self.n += 1
        if self.seconds:
            time.sleep(self.seconds)
        yield {**row, "d": self.version}


def diamond(
    folder: Path, *, rows: int = 20, files: int = 3, seconds: float = 0.0, stop: int = -1
) -> sv.Workflow:
    flow = sv.Workflow("diamond")
    source = flow.read.parquet(numbers(folder, rows, files), name="numbers")
    first = source.apply(A(folder=str(folder), stop=stop, seconds=seconds), name="A")
    second = first.filter("x >= 0", name="between").apply(B(seconds=seconds), name="B")
    left = second.filter("x % 2 = 0", name="even").apply(C(seconds=seconds), name="C")
    right = second.filter("x % 2 = 1", name="odd").selectExpr("x", "a", "b", "b AS c", name="same")
    left.union(right, name="both").apply(D(seconds=seconds), name="D").sink("S")
    return flow


def local_diamond(
    folder: Path, *, rows: int = 20, files: int = 3, seconds: float = 0.0, stop: int = -1
) -> sv.Workflow:
    """The same of Python operators alone: `B` gives to two branches, so that each operator has tasks of its own."""
    flow = sv.Workflow("diamond")
    source = flow.read.parquet(numbers(folder, rows, files), name="numbers")
    first = source.apply(A(folder=str(folder), stop=stop, seconds=seconds), name="A")
    second = first.drop("nothing", name="between").apply(B(seconds=seconds), name="B")
    left = (
        second.apply(Kept(0), name="even").drop("nothing", name="evens").apply(C(seconds=seconds), name="C")
    )
    right = second.apply(Kept(1), name="odd").apply(Same(), name="same")
    left.union(right, name="both").apply(D(seconds=seconds), name="D").sink("S")
    return flow


class Kept(sv.Operator):
    """Keeps even or odd numbers."""

    output = "x bigint, a bigint, b bigint"
    stateless = True

    def __init__(self, remainder: int) -> None:
        self.remainder = remainder

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        if row["x"] % 2 == self.remainder:
            yield row


class Same(sv.Operator):
    """The branch without `C`."""

    output = "x bigint, a bigint, b bigint, c bigint"
    stateless = True

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        yield {**row, "c": row["b"]}


def versions(number: int, folder: Path, *, seconds: float = 0.0, stop: int = -1) -> dict[str, sv.Operator]:
    """All operators in another version."""
    return {
        "A": A(number, folder=str(folder), stop=stop, seconds=seconds),
        "B": B(number, seconds),
        "C": C(number, seconds),
        "D": D(number, seconds),
    }


def stamps(run: Any) -> Stamps:
    """Each tuple with the versions it met."""
    return sorted(tuple(r[n] for n in "xabcd") for r in run.result("S").to_pylist())  # type: ignore[misc]


def replayed_rows(past: sv.Past, operator: str) -> list[dict[str, Any]]:
    """What an operator gave, by computing every epoch again."""
    session = past._session
    made: list[dict[str, Any]] = []
    for segment in session.segments:
        traced = session.tracer.trace(segment, Window(None, None))
        for step in traced.trace.steps.get(operator, ()):
            made += [dict(out.row) for out in step.outputs]
    return made


def replayed_stamps(past: sv.Past) -> Stamps:
    """The same by computing every epoch again."""
    return sorted(tuple(r[n] for n in "xabcd") for r in replayed_rows(past, "D"))  # type: ignore[misc]


class SlowNetwork:
    """Messages to workers that take their time: by worker in order, but for those that never come."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, delay: Callable[[m.ToWorker], float | None]) -> None:
        """`delay`: seconds a message takes; None: it is lost."""
        self._delay = delay
        self._send = Coordinator.send
        self._lines: dict[str, queue.SimpleQueue[tuple[Coordinator, m.ToWorker, float]]] = {}
        self._turn = threading.Lock()
        monkeypatch.setattr(Coordinator, "send", lambda own, worker, message: self.send(own, worker, message))

    def send(self, coordinator: Coordinator, worker: str, message: m.ToWorker) -> None:
        delay = self._delay(message)
        if delay is None:
            return
        with self._turn:
            if worker not in self._lines:
                self._lines[worker] = queue.SimpleQueue()
                threading.Thread(target=self._deliver, args=(worker,), daemon=True).start()
            self._lines[worker].put((coordinator, message, delay))

    def _deliver(self, worker: str) -> None:
        while True:
            coordinator, message, delay = self._lines[worker].get()
            if delay:
                time.sleep(delay)
            self._send(coordinator, worker, message)


def jitter(seed: int, most: float) -> Callable[[m.ToWorker], float]:
    """Delays of a bad network: mostly none, now and then up to `most` seconds."""
    chance = random.Random(seed)
    return lambda _: chance.random() * most if chance.random() < 0.5 else 0.0
