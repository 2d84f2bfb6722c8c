"""Goes through experiments part by part, with a display of how far it is, and keeps each part at once."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.papers.context import Context, Sessions
from benchmarks.papers.experiment import Experiment
from benchmarks.papers.store import Store

__all__ = ["run", "to_measure"]

_LOOK = 0.2
"""Seconds before each part in which nothing is done, to see what else goes on."""


def to_measure(
    experiments: Sequence[Experiment], store: Store, size: str, *, again: bool = False
) -> list[tuple[Experiment, str]]:
    """Parts that are not there yet, in order; with `again` all of them."""
    return [
        (experiment, part)
        for experiment in experiments
        for part in experiment.parts(size)
        if again or not store.has(experiment.name, part, experiment.part_size(size, part))
    ]


def run(
    experiments: Sequence[Experiment],
    store: Store,
    size: str,
    *,
    root: Path,
    again: bool = False,
    console: Console | None = None,
) -> list[str]:
    """Measure what is missing; returns the parts that failed. An interruption keeps what was measured."""
    todo = to_measure(experiments, store, size, again=again)
    done = sum(len(e.parts(size)) for e in experiments) - len(todo)
    failed: list[str] = []
    sessions = Sessions()
    try:
        with _display(console or Console(stderr=True), done, done + len(todo)) as (tell, say):
            for experiment, part in todo:
                name = f"{experiment.name}/{part}"
                error = _measure(
                    experiment, part, store, size, root, sessions, lambda text, n=name: tell(n, text)
                )
                if error is not None:
                    failed.append(name)
                seconds = store.parts[name]["seconds"]
                say(f"{name}: {seconds:.1f} s" + (f", failed: {error}" if error is not None else ""))
    finally:
        sessions.stop()
    return failed


def _measure(
    experiment: Experiment,
    part: str,
    store: Store,
    size: str,
    root: Path,
    sessions: Sessions,
    tick: Callable[[str], None],
) -> Exception | None:
    numbers = experiment.part_size(size, part)
    busy = psutil.cpu_percent(_LOOK) / 100
    scratch = Path(tempfile.mkdtemp(prefix="samovar-bench-"))
    start = time.perf_counter()
    tick("")
    try:
        data = experiment.measure(Context(numbers, scratch, sessions, root, tick), part)
        store.put(experiment.name, part, numbers, time.perf_counter() - start, busy, data)
    except Exception as error:  # the others are measured all the same
        traceback.print_exc(file=sys.stderr)
        store.fail(experiment.name, part, numbers, time.perf_counter() - start, busy, error)
        sessions.stop()
        return error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return None


@contextmanager
def _display(
    console: Console, done: int, total: int
) -> Iterator[tuple[Callable[[str, str], None], Callable[[str], None]]]:
    """How to tell what is going on, and how to say what has been done: a bar on a terminal, else lines."""
    if not console.is_terminal:
        count = [done]

        def say(line: str) -> None:
            count[0] += 1
            console.print(f"[{count[0]}/{total}] {line}", markup=False, highlight=False, soft_wrap=True)

        yield lambda name, text: None, say
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=total, completed=done)

        def tell(name: str, text: str) -> None:
            bar.update(task, description=f"{name} {text}".strip())

        def said(line: str) -> None:
            bar.console.print(line, markup=False, highlight=False)
            bar.advance(task)

        yield tell, said
