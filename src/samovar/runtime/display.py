"""The live display of a run: a picture redrawn in place on a terminal, lines elsewhere.

Columns have fixed widths, so that nothing moves but the numbers; the picture fits 80 columns. Between two epochs only
the clock and the spinner change: counters are those of committed epochs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from samovar.runtime.progress import GOING, Progress

if TYPE_CHECKING:
    from samovar.runtime.run import Run

__all__ = ["Eta", "count", "counted", "duration", "follow", "line", "render", "size"]

_SOURCES = ("read", "table", "values", "frame")
_SINKS = ("sink", "write")
_MARKS = {
    "completed": ("✓", "bold green"),
    "failed": ("✗", "bold red"),
    "stopped": ("■", "bold yellow"),
    "interrupted": ("■", "bold yellow"),
}
_WIDEST = 100
_LINE_EVERY = 1.0
"""Seconds between two lines where no terminal is attached."""


def follow(
    run: Run,
    timeout: float | None = None,
    *,
    console: Console | None = None,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Show a run's progress on stderr until it ends, or `until` returns True; the last picture stays."""
    console = console or Console(stderr=True)
    deadline = None if timeout is None else time.monotonic() + timeout
    if console.is_terminal and not console.is_dumb_terminal:
        _draw(run, console, deadline, until)
    else:
        _print(run, console, deadline, until)


def _draw(run: Run, console: Console, deadline: float | None, until: Callable[[], bool]) -> None:
    eta = Eta()
    spinner = Spinner("dots")

    def picture() -> Group:
        progress = run.progress
        return render(progress, left=eta.left(progress), width=console.width, spinner=spinner)

    with Live(picture(), console=console, refresh_per_second=8, transient=False) as live:
        while not run.wait_ended(0.12) and not until():
            live.update(picture())
            _check(run, deadline)
        live.update(picture())


def _print(run: Run, console: Console, deadline: float | None, until: Callable[[], bool]) -> None:
    eta = Eta()
    shown, last = 0, time.monotonic() - _LINE_EVERY
    while not run.wait_ended(0.1) and not until():
        _check(run, deadline)
        progress = run.progress
        left = eta.left(progress)
        if progress.epoch > shown and time.monotonic() - last >= _LINE_EVERY:
            console.print(line(progress, left=left), highlight=False, soft_wrap=True)
            shown, last = progress.epoch, time.monotonic()
    console.print(line(run.progress), highlight=False, soft_wrap=True)


def _check(run: Run, deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise TimeoutError(f"run {run.id} has not ended in time")


@dataclass
class Eta:
    """How long a run still takes, from how its fraction grew over the last epochs.

    The first epoch counts only until there is a second: it pays for starting workers and compiling code.
    """

    _points: list[tuple[float, float]] = field(default_factory=list)
    _epoch: int = -1

    def left(self, progress: Progress, now: float | None = None) -> float | None:
        """Seconds left; None while no two epochs are known to compute it from."""
        now = time.monotonic() if now is None else now
        if progress.status != "running":
            return None
        if progress.epoch > self._epoch:
            self._epoch = progress.epoch
            self._points.append((now, progress.fraction))
        recent = self._points[1:][-6:] if len(self._points) > 2 else self._points
        (start, before), (end, after) = recent[0], recent[-1]
        if after <= before:
            return None
        pace = (end - start) / (after - before)
        return max(0.0, pace * (1 - after) - (now - end))


def render(
    progress: Progress,
    *,
    left: float | None = None,
    width: int = 80,
    spinner: Spinner | None = None,
) -> Group:
    """A picture of a progress: where it stands, a bar, and a line for each operator."""
    room = min(width, _WIDEST)
    parts: list[RenderableType] = [_head(progress, left, spinner), _bar(progress, room)]
    if progress.operators:
        parts.append(_table(progress, room))
    if progress.note and progress.status in GOING:
        parts.append(Text(progress.note, style="dim", no_wrap=True, overflow="ellipsis"))
    parts += [
        Text(f"{counted(n, 'row')} of '{source}' did not parse: kept as rejected", style="yellow")
        for source, n in progress.rejected.items()
    ]
    return Group(*parts)


def line(progress: Progress, *, left: float | None = None) -> str:
    """A progress as one line of text."""
    read = sum(op.given for op in progress.operators if op.kind in _SOURCES)
    parts = [
        f"{progress.workflow or progress.run}: {progress.status}",
        f"epoch {progress.epoch}",
        f"{progress.fraction:.0%}",
        f"{read:,} tuples read",
        duration(progress.seconds),
    ]
    if left is not None:
        parts.append(f"{duration(left)} left")
    rejected = sum(progress.rejected.values())
    if rejected:
        parts.append(f"{counted(rejected, 'row')} rejected")
    return ", ".join(parts)


def _head(progress: Progress, left: float | None, spinner: Spinner | None) -> RenderableType:
    facts = [progress.status, f"epoch {progress.epoch}", duration(progress.seconds)]
    if left is not None:
        facts.append(f"{duration(left)} left")
    text = Text.assemble((progress.workflow or progress.run, "bold"), ("  " + "  ·  ".join(facts), "none"))
    grid = Table.grid(padding=(0, 1, 0, 0))
    mark = _MARKS.get(progress.status)
    grid.add_row(Text(*mark) if mark else spinner or Text("·"), text)
    return grid


def _bar(progress: Progress, room: int) -> Table:
    going = progress.status in GOING
    bar = ProgressBar(
        total=1.0,
        completed=progress.fraction,
        width=max(10, room - 8),
        pulse=going and progress.fraction == 0,
    )
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(bar, Text(f"{progress.fraction:>4.0%}", style="bold"))
    return grid


def _table(progress: Progress, room: int) -> Table:
    numbers = {"in": 9, "out": 9, "per s": 7, "state": 19}
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", pad_edge=False)
    kind = min(9, max(len(op.kind) for op in progress.operators))
    fits = room - sum(numbers.values()) - len(numbers) - kind - 2
    widest = min(max(8, fits), max(8, *(len(op.name) for op in progress.operators)))
    table.add_column("operator", width=widest, no_wrap=True, overflow="ellipsis")
    table.add_column("", width=kind, no_wrap=True, overflow="ellipsis", style="dim")
    for title, wide in numbers.items():
        table.add_column(title, width=wide, justify="right", no_wrap=True)
    for op in progress.operators:
        state = f"{count(op.state_entries)} in {size(op.state_bytes)}" if op.state_bytes else ""
        table.add_row(
            Text(op.name),
            op.kind,
            "" if op.kind in _SOURCES else count(op.taken),
            "" if op.kind in _SINKS else count(op.given),
            count(round(op.rate)) if op.rate and progress.status == "running" else "",
            state,
        )
    return table


def count(n: int) -> str:
    """A number of tuples in at most nine characters."""
    if n < 10_000_000:
        return f"{n:,}"
    return f"{n / 1e6:,.1f} M" if n < 100_000_000_000 else f"{n / 1e9:,.1f} G"


def counted(n: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def size(n: int) -> str:
    """Bytes as people read them."""
    amount = float(n)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def duration(seconds: float) -> str:
    """A time as people read it: `7.2 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
